// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/spelling"
)

// rowMaker makes table rows of objects; it does no I/O.
type rowMaker struct {
	paint     paint.Painter
	now       time.Time
	wide      bool
	namespace bool // a first column with the namespace
}

// titles of the columns of a kind. STATE is one word from package state.
func (m rowMaker) titles(k kind) []string {
	var titles, wide []string
	switch k.name {
	case "instance":
		titles = []string{"NAME", "STATE", "ACTIVE", "PENDING", "HEALTHY", "AGE"}
		wide = []string{"BUNDLE", "ACCOUNT", "MESSAGE"}
	case "revision":
		titles = []string{"NAME", "INSTANCE", "STATE", "ADDED", "CHANGED", "REMOVED", "PROBLEMS", "AGE"}
		wide = []string{"BUNDLE", "MANIFESTS", "MESSAGE"}
	case "bundle":
		titles = []string{"NAME", "CLASS", "STATE", "FILES", "SIZE", "IMAGE", "AGE"}
		wide = []string{"CONTENT", "MESSAGE"}
	case "approval":
		titles = []string{"NAME", "REVISION", "DECISION", "APPROVER", "STATE", "AGE"}
		wide = []string{"MANIFESTS", "MESSAGE"}
	case "class":
		titles = []string{"NAME", "PROVISIONER", "APPROVAL", "STATE", "AGE"}
		wide = []string{"RECLAIM", "ACCOUNT", "MESSAGE"}
	}
	if m.wide {
		titles = append(titles, wide...)
	}
	if m.namespace && !k.cluster {
		titles = append([]string{"NAMESPACE"}, titles...)
	}
	return titles
}

// row is one object below those titles.
func (m rowMaker) row(object client.Object) []string {
	var cells, wide []string
	namespaced := true
	switch object := object.(type) {
	case *v1alpha1.BundleInstance:
		cells, wide = m.instance(object)
	case *v1alpha1.InstanceRevision:
		cells, wide = m.revision(object)
	case *v1alpha1.Bundle:
		cells, wide = m.bundle(object)
	case *v1alpha1.Approval:
		cells, wide = m.approval(object)
	case *v1alpha1.ProvisionerClass:
		cells, wide = m.class(object)
		namespaced = false
	}
	if m.wide {
		cells = append(cells, wide...)
	}
	if m.namespace && namespaced {
		cells = append([]string{object.GetNamespace()}, cells...)
	}
	return cells
}

func (m rowMaker) instance(instance *v1alpha1.BundleInstance) (cells, wide []string) {
	found := state.OfInstance(instance)
	cells = []string{
		instance.Name, m.word(found), revisionName(instance.Status.Active), revisionName(instance.Status.Pending),
		counts(instance.Status.Objects), m.age(instance.CreationTimestamp),
	}
	bundle := instance.Status.BundleName
	if bundle == "" && instance.Spec.BundleRef != nil {
		bundle = instance.Spec.BundleRef.Name
	}
	return cells, []string{bundle, instance.Spec.ServiceAccountName, found.Message}
}

func (m rowMaker) revision(revision *v1alpha1.InstanceRevision) (cells, wide []string) {
	found := state.OfRevision(revision)
	added, changed, removed, problems := "", "", "", ""
	if plan := revision.Status.Plan; plan != nil {
		added, changed, removed = number(plan.Added), number(plan.Changed), number(plan.Removed)
		if revision.Status.ActiveAt == nil { // those of a plan that was carried out are history
			problems = number(max(plan.Conflicts+plan.Failing, int64(len(plan.Problems))) + int64(len(plan.MissingPermissions)))
		}
	}
	cells = []string{
		revision.Name, revision.Spec.Instance.Name, m.word(found), added, changed, removed, problems, m.age(revision.CreationTimestamp),
	}
	return cells, []string{revision.Spec.BundleName, string(revision.Spec.ManifestDigest), found.Message}
}

func (m rowMaker) bundle(bundle *v1alpha1.Bundle) (cells, wide []string) {
	found := state.OfBundle(bundle)
	class, files, size, content := bundle.Status.ProvisionerClassName, "", "", ""
	if class == "" {
		class = bundle.Spec.ProvisionerClassName
	}
	if held := bundle.Status.Content; held != nil {
		files, size, content = number(held.Files), bytesText(held.Bytes), string(held.Digest)
	}
	return []string{bundle.Name, class, m.word(found), files, size, sourcesText(bundle.Spec.Sources), m.age(bundle.CreationTimestamp)},
		[]string{content, found.Message}
}

func (m rowMaker) approval(approval *v1alpha1.Approval) (cells, wide []string) {
	spec := approval.Spec
	return []string{
		approval.Name, spec.Revision, string(spec.Decision), spelling.Name(spec.Approver), m.word(state.OfApproval(approval)), m.age(approval.CreationTimestamp),
	}, []string{string(spec.ManifestDigest), paint.Clean(spec.Message)}
}

func (m rowMaker) class(class *v1alpha1.ProvisionerClass) (cells, wide []string) {
	found := state.OfClass(class)
	name, account := class.Name, ""
	if class.Annotations[v1alpha1.AnnotationDefaultClass] == "true" {
		name += " (default)"
	}
	if class.Spec.Identity != nil {
		account = class.Spec.Identity.DefaultServiceAccount
	}
	return []string{name, class.Spec.Provisioner, string(class.Spec.Approval.Mode), m.word(found), m.age(class.CreationTimestamp)},
		[]string{string(class.Spec.ReclaimPolicy), account, found.Message}
}

func (m rowMaker) word(found state.State) string { return colourState(m.paint, found.Mood, found.Word) }

func colourState(painter paint.Painter, mood state.Mood, text string) string {
	switch mood {
	case state.Good:
		return painter.Good(text)
	case state.Busy:
		return painter.Busy(text)
	case state.Bad:
		return painter.Bad(text)
	case state.Quiet:
		return painter.Faint(text)
	}
	return text
}

func (m rowMaker) age(since metav1.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(m.now.Sub(since.Time))
}

func revisionName(reference *v1alpha1.RevisionReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

func counts(objects *v1alpha1.ObjectCounts) string {
	if objects == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", objects.Healthy, objects.Total)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// bytesText is a size with a binary unit: "512B", "1.5KiB".
func bytesText(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + "B"
	}
	value, unit := float64(n)/(1<<10), 0
	for value >= 1000 && unit < 3 {
		value, unit = value/(1<<10), unit+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + []string{"KiB", "MiB", "GiB", "TiB"}[unit]
}
