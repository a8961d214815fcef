// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestARevisionIsTheWorkOfAllWhoChangedTheInstanceSinceWhatIsActive(t *testing.T) {
	const annotation = "1 ann\n3 bob\n4 eve 100%25%0A5 dan"
	at := func(generation int64) *v1alpha1.InstanceRevision {
		return &v1alpha1.InstanceRevision{Spec: v1alpha1.InstanceRevisionSpec{InstanceGeneration: generation}}
	}
	for name, test := range map[string]struct {
		noted  string
		active *v1alpha1.InstanceRevision
		want   []string
	}{
		"nothing is active":             {annotation, nil, []string{"ann", "bob", "eve 100%\n5 dan"}},
		"what is active has their work": {annotation, at(3), []string{"eve 100%\n5 dan"}},
		"all of it is active":           {annotation, at(4), nil},
		"nobody is noted":               {"", nil, nil},
		"what is no note":               {"x ann\n7\n\n8 bob", nil, []string{"bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			instance := &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationChangedBy: test.noted}}}
			if diff := cmp.Diff(test.want, changedBy(instance, test.active)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
