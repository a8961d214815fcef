// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plan"
)

// uncut is the width for what goes to no terminal: values are shown whole.
const uncut = 1 << 16

// planValue is `plan -o json`.
type planValue struct {
	Instance       string                `json:"instance"`
	Revision       string                `json:"revision"`
	ManifestDigest v1alpha1.Digest       `json:"manifestDigest"`
	Summary        *v1alpha1.PlanSummary `json:"summary"`
	Full           *plan.Plan            `json:"full,omitempty"` // absent where it cannot be read
}

func (v *planVerb) write(ctx context.Context, revision *v1alpha1.InstanceRevision) error {
	if v.output.forPeople() {
		return v.writePlan(ctx, v.Out, revision, planDepth{summary: v.summary, full: v.full})
	}
	shown := planValue{
		Instance: revision.Spec.Instance.Name, Revision: revision.Name,
		ManifestDigest: revision.Spec.ManifestDigest, Summary: revision.Status.Plan,
	}
	if !v.summary {
		full, err := v.readPlan(ctx, revision)
		if err != nil {
			return err
		}
		shown.Full = full
	}
	return v.value(shown, v.output.format)
}

// planDepth is how much of a plan is shown; the zero value is all but the manifests of added objects.
type planDepth struct{ summary, full bool }

// showPlan writes the plan of a revision before somebody decides about it.
func (s *session) showPlan(ctx context.Context, w io.Writer, revision *v1alpha1.InstanceRevision) error {
	return s.writePlan(ctx, w, revision, planDepth{})
}

// writePlan writes a plan for people: the full one if the user may read it, else the summary.
func (s *session) writePlan(ctx context.Context, w io.Writer, revision *v1alpha1.InstanceRevision, depth planDepth) error {
	painter := paint.New(s.colour, isTerminal(w), s.env)
	var full *plan.Plan
	if !depth.summary {
		var err error
		if full, err = s.readPlan(ctx, revision); err != nil {
			return err
		}
	}
	if full == nil {
		_, err := io.WriteString(w, summaryText(revision, painter))
		return err
	}
	options := plan.RenderOptions{Colour: painter.On(), Width: terminalWidth(w)}
	if options.Width == 0 {
		options.Width = uncut
	}
	if depth.full {
		objects, err := s.objectsOf(ctx, revision)
		if err != nil {
			return err
		}
		options.Objects = objects
	}
	if _, err := io.WriteString(w, planHead(revision, painter)); err != nil {
		return err
	}
	return plan.Render(w, full, options)
}

// readPlan reads the full plan with the user's own rights. Who may not is told
// which right that takes, and gets none.
func (s *session) readPlan(ctx context.Context, revision *v1alpha1.InstanceRevision) (*plan.Plan, error) {
	cluster, err := s.client()
	if err != nil {
		return nil, err
	}
	encoded, err := manifest.Load(ctx, cluster, revision.Namespace, revision.Name, manifest.KindPlan)
	switch {
	case apierrors.IsForbidden(err):
		if served, err := s.servedPlan(ctx, revision); err == nil {
			return served, nil
		}
		s.say("note: this is the summary; the full plan takes the verb \"get\" on instancerevisions/diff of the group content.rukpak.io in namespace %q, for example by the cluster role rukpak-viewer", revision.Namespace)
		return nil, nil //nolint:nilnil // who may not read it gets the summary
	case errors.Is(err, manifest.ErrIncomplete):
		s.say("note: this is the summary; the full plan is not there: %v", err)
		return nil, nil //nolint:nilnil // what is not there cannot be shown
	case err != nil:
		return nil, err
	}
	return plan.Decode(encoded)
}

// servedPlan reads the full plan by way of the content API, which takes no right
// on Secrets.
func (s *session) servedPlan(ctx context.Context, revision *v1alpha1.InstanceRevision) (*plan.Plan, error) {
	encoded, err := s.served(ctx, revision, contentv1.Diff, nil)
	if err != nil {
		return nil, err
	}
	return plan.Decode(encoded)
}

// objectsOf reads the manifests of a revision, as they would be approved.
func (s *session) objectsOf(ctx context.Context, revision *v1alpha1.InstanceRevision) (func(ownership.ID) *unstructured.Unstructured, error) {
	set, err := s.manifestsOf(ctx, revision)
	if err != nil {
		return nil, err
	}
	objects := map[ownership.ID]*unstructured.Unstructured{}
	for _, object := range set.Objects() {
		objects[ownership.IDOf(object)] = object
	}
	return func(id ownership.ID) *unstructured.Unstructured { return objects[id] }, nil
}
