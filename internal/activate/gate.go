// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// gates says which objects of a phase later phases have to wait for, and how long that takes. There are only two:
// a CustomResourceDefinition, since operators do not start without their kinds, and an API service if the set has
// objects of what it serves. Namespaces need no waiting, but one that is being deleted is waited for like any object
// that is. Nothing else is waited for: whether workloads become ready is for health to say.
type gates struct {
	ledger *Ledger
}

var apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}

// survey notes which kinds the set itself makes the API server serve.
func (s *session) survey(all []provisioner.Phase) {
	s.brings, s.serving = map[schema.GroupKind]bool{}, map[schema.GroupVersion]bool{}
	for _, phase := range all {
		for _, object := range phase.Objects {
			switch object.GroupVersionKind().GroupKind() {
			case crdKind:
				s.brings[definedKind(object)] = true
			case apiServiceKind:
				s.serving[servedVersion(object)] = true
			}
		}
	}
}

func definedKind(crd *unstructured.Unstructured) schema.GroupKind {
	return schema.GroupKind{Group: text(crd, "spec", "group"), Kind: text(crd, "spec", "names", "kind")}
}

func servedVersion(service *unstructured.Unstructured) schema.GroupVersion {
	return schema.GroupVersion{Group: text(service, "spec", "group"), Version: text(service, "spec", "version")}
}

func text(object *unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...) // anything else is for the API server to refuse
	return found
}

// open waits for what later phases depend on, and notes in the results, one for each object, what is not there after a
// while.
func (g *gates) open(ctx context.Context, s *session, objects []*unstructured.Unstructured, results []ObjectResult, later []provisioner.Phase) {
	for i, object := range objects {
		condition := awaited(object, later)
		id := results[i].ID
		if last, ok := g.ledger.find(s.owner.UID, id); condition == "" || ok && last.serves {
			continue
		}
		why, err := g.until(ctx, s, object, condition)
		switch {
		case err != nil:
			results[i].Action, results[i].Err = Failed, classify(id, err)
		case why != "":
			results[i].Wait = why
		default:
			g.served(s, id)
		}
	}
}

// awaited returns the condition of an object that later phases depend on, "" if they do not.
func awaited(object *unstructured.Unstructured, later []provisioner.Phase) string {
	switch object.GroupVersionKind().GroupKind() {
	case crdKind:
		if len(later) > 0 {
			return "Established"
		}
	case apiServiceKind:
		served := servedVersion(object)
		for _, phase := range later {
			for _, other := range phase.Objects {
				if other.GroupVersionKind().GroupVersion() == served {
					return "Available"
				}
			}
		}
	}
	return ""
}

// until looks at an object until its condition is true. It returns why it is not, if that takes too long.
func (g *gates) until(ctx context.Context, s *session, object *unstructured.Unstructured, condition string) (why string, err error) {
	for {
		live, err := s.get(ctx, object)
		if err != nil {
			return "", err
		}
		ready, why := isTrue(live, condition)
		if ready {
			return "", nil
		}
		if !s.wait(ctx) {
			return why, ctx.Err()
		}
	}
}

// isTrue reports whether a condition of a live object is true and, if not, in words what its conditions say.
func isTrue(live *unstructured.Unstructured, condition string) (ready bool, why string) {
	why = "not " + condition + " yet"
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, entry := range conditions {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		kind, status := fields["type"], fields["status"]
		if kind == condition && status == "True" {
			return true, ""
		}
		// A name that another definition has is why it is never established.
		if message, ok := fields["message"].(string); ok && status == "False" && (kind == "NamesAccepted" || kind == condition && condition != "Established") {
			why = "not " + condition + ": " + oneLine(message)
		}
	}
	return false, why
}

func (g *gates) served(s *session, id ownership.ID) {
	if last, ok := g.ledger.find(s.owner.UID, id); ok {
		last.serves = true
		g.ledger.keep(s.owner.UID, id, last)
	}
}
