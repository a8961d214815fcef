// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// noteReclaim keeps on the target what its class says of its objects. Whoever deletes the class first, and the instance
// after that, has not said that the objects are to go. It writes when the policy changes, and nothing for the default.
func (c *Controller) noteReclaim(ctx context.Context, w *work) error {
	class := &v1alpha1.ProvisionerClass{}
	if err := c.Client.Get(ctx, types.NamespacedName{Name: w.target.Spec.ProvisionerClassName}, class); err != nil {
		return client.IgnoreNotFound(err)
	}
	noted := w.target.Annotations[v1alpha1.AnnotationReclaimPolicy] == string(v1alpha1.ReclaimRetain)
	if retain := class.Spec.ReclaimPolicy == v1alpha1.ReclaimRetain; retain == noted {
		return nil
	}
	// The answer would take the place of what is in memory and not written yet.
	before := w.before[w.target.UID]
	changed := before.DeepCopy()
	changed.Annotations = maps.Clone(changed.Annotations)
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[v1alpha1.AnnotationReclaimPolicy] = string(class.Spec.ReclaimPolicy)
	if err := c.Client.Patch(ctx, changed, client.MergeFrom(before)); err != nil {
		return err
	}
	for _, known := range []*v1alpha1.InstanceRevision{before, w.target} {
		known.ResourceVersion, known.Annotations = changed.ResourceVersion, changed.Annotations
	}
	return nil
}
