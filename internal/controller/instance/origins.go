// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/class"
	"rukpak.io/rukpak/provisioner"
)

// originsOf says where the content of a bundle came from.
func originsOf(bundle *v1alpha1.Bundle) []provisioner.Origin {
	var origins []provisioner.Origin
	for i, source := range bundle.Spec.Sources {
		if i >= len(bundle.Status.Sources) {
			break
		}
		origins = append(origins, provisioner.Origin{Path: source.Path, Kind: kindOf(source), Ref: bundle.Status.Sources[i].Ref})
	}
	return origins
}

// placesOf are the origins as far as a revision depends on them: none if its provisioner does not look at them, and without
// digests, since the content itself is told apart by its own.
func (c *Controller) placesOf(w *work) []provisioner.Origin {
	placed, ok := c.Provisioners.Find(w.class.Spec.Provisioner).(provisioner.Placed)
	if !ok || !placed.UsesOrigins(class.Parameters(w.class), w.config) {
		return nil
	}
	places := originsOf(w.bundle)
	for i := range places {
		if at := strings.LastIndex(places[i].Ref, "@"); at >= 0 {
			places[i].Ref = places[i].Ref[:at]
		}
	}
	return places
}

// kindOf is the name of the field that is set.
func kindOf(source v1alpha1.BundleSource) string {
	for _, one := range []struct {
		kind string
		set  bool
	}{
		{"oci", source.OCI != nil}, {"git", source.Git != nil}, {"http", source.HTTP != nil}, {"helm", source.Helm != nil},
		{"bucket", source.Bucket != nil}, {"configMap", source.ConfigMap != nil}, {"secret", source.Secret != nil},
		{"inline", source.Inline != nil}, {"bundle", source.Bundle != nil}, {"flux", source.Flux != nil}, {"upload", source.Upload != nil},
	} {
		if one.set {
			return one.kind
		}
	}
	return ""
}
