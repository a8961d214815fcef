// SPDX-License-Identifier: Apache-2.0

package instance_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/provisioners/plain"
)

// placed renders as plain does, and says that it looks at where content came from.
type placed struct {
	*plain.Provisioner
	looks bool
}

func (p placed) UsesOrigins(json.RawMessage, json.RawMessage) bool { return p.looks }

// comesFrom gives the instance another bundle of the same content.
func (s *stage) comesFrom(name, ref string) {
	s.Helper()
	content, moved := &v1alpha1.Bundle{}, &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "content"}, content))
	moved.Spec = content.Spec
	s.must(s.client.Create(s.Context(), moved))
	moved.Status.ProvisionerClassName, moved.Status.Content = content.Status.ProvisionerClassName, content.Status.Content
	meta.SetStatusCondition(&moved.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"})
	moved.Status.Sources = []v1alpha1.ResolvedSource{{Ref: ref, Digest: v1alpha1.PinnedDigest(ref[len(ref)-len("sha256:")-64:])}}
	s.must(s.client.Status().Update(s.Context(), moved))
	app := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "app"}, app))
	app.Spec.BundleRef.Name = name
	s.must(s.client.Update(s.Context(), app))
	s.reconcile()
}

func TestContentThatWasMovedMakesARevisionWhereThatMatters(t *testing.T) {
	t.Parallel()
	const zero, one = "@sha256:0000000000000000000000000000000000000000000000000000000000000000", "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	for name, test := range map[string]struct {
		looks bool
		want  int
	}{"it is looked at": {true, 2}, "it is not": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.serve(placed{plain.New(), test.looks})
			s.comesFrom("first", "a.example/app"+zero)
			s.comesFrom("same-place", "a.example/app"+one)
			if got := s.revisions(); len(got) != 1 {
				t.Fatalf("of the same place there are %d revisions, want one", len(got))
			}
			s.comesFrom("moved", "b.example/app"+one)
			if got := s.revisions(); len(got) != test.want {
				t.Errorf("after the move there are %d revisions, want %d", len(got), test.want)
			}
			s.reconcile()
			if got := s.revisions(); len(got) != test.want {
				t.Errorf("looked at again there are %d revisions, want %d", len(got), test.want)
			}
		})
	}
}
