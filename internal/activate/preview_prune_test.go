// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"testing"
	"time"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/provisioner"
)

func TestPreviewOfPruneSeesItsOwnDeletionsAndWaitsForNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd, cr, operator := widgets(t, s.namespace), widget(t, s.namespace, "w"), deployment(t, "operator")
	t.Cleanup(func() { s.deleteCRD(crd) })
	s.mustApply(crd, cr, operator)
	s.edit(cr, `{"metadata":{"finalizers":["example.com/operator"]}}`)
	t.Cleanup(func() { s.release(cr) })
	begun := time.Now()
	result := s.engine.Previews(s.admin, s.owner, s.options).Prune(t.Context(), provisioner.ByKind(objects(crd, cr, operator)))
	if !result.Complete || result.Count(activate.Deleted) != 3 || time.Since(begun) > 4*time.Second {
		t.Errorf("got %s after %s", result, time.Since(begun))
	}
	if s.gone(cr) || s.gone(operator) || s.gone(crd) {
		t.Error("something was really deleted")
	}
	s.stranger(widget(t, s.namespace, "theirs"))
	result = s.engine.Previews(s.admin, s.owner, s.options).Prune(t.Context(), provisioner.ByKind(objects(crd, cr, operator)))
	if result.Count(activate.Kept) != 1 {
		t.Errorf("with a custom resource of somebody else: got %s", result)
	}
}
