// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestObjectsAreRetainedAlsoWhenTheClassThatSaysSoIsDeletedFirst(t *testing.T) {
	for name, test := range map[string]struct {
		policies []v1alpha1.ReclaimPolicy // one after the other
		stays    bool
	}{
		"Delete":                      {[]v1alpha1.ReclaimPolicy{v1alpha1.ReclaimDelete}, false},
		"Retain":                      {[]v1alpha1.ReclaimPolicy{v1alpha1.ReclaimRetain}, true},
		"Retain after the activation": {[]v1alpha1.ReclaimPolicy{v1alpha1.ReclaimDelete, v1alpha1.ReclaimRetain}, true},
		"Retain until it was Delete":  {[]v1alpha1.ReclaimPolicy{v1alpha1.ReclaimRetain, v1alpha1.ReclaimDelete}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			instance := s.instance("app")
			one := s.revise(instance, 1, configMap("a"))
			class := &v1alpha1.ProvisionerClass{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
			for _, policy := range test.policies {
				s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(class), class))
				class.Spec.ReclaimPolicy = policy
				s.must(s.client.Update(t.Context(), class))
				s.until(instance, "active and healthy", s.is(one, v1alpha1.ConditionActive, v1alpha1.ReasonCompleted))
			}
			s.must(s.client.Delete(t.Context(), class))
			s.must(s.client.Delete(t.Context(), instance))
			s.until(instance, "the instance is gone", func() bool {
				return s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), &v1alpha1.BundleInstance{}) != nil
			})
			if s.exists("a") != test.stays {
				t.Errorf("the object stays: %v, want %v", s.exists("a"), test.stays)
			}
		})
	}
}
