// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/bucket"
	"rukpak.io/rukpak/internal/source/git"
	"rukpak.io/rukpak/internal/source/helm"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/unpack"
)

// newOpener knows every kind of source.
func newOpener(live client.Reader, store *content.Disk, limits unpack.Limits, registries *reach.Config) *origin.Opener {
	transports := &outbound.Transports{Registries: registries}
	images := oci.New(store, oci.Options{Limits: limits, Registries: registries, Transport: toRegistries(), Onward: onward()})
	return &origin.Opener{
		Live:   live,
		OCI:    images,
		Bucket: bucket.New(bucket.Options{Transports: transports}),
		Helm:   helm.New(helm.Options{Client: web.NewClient(web.Options{Transports: transports}), Registry: images}),
		HTTP:   web.New(web.NewClient(web.Options{Transports: transports})),
		Git:    git.New(git.Options{Transports: transports}),
	}
}

// toRegistries gives the transport to registries that no rule is about.
func toRegistries() *http.Transport { return forRegistries(outbound.NewTransport(false)) }

// onward gives that to where their answers lead.
func onward() *http.Transport { return forRegistries(outbound.NewTransport(true)) }

// forRegistries keeps more connections: the layers of many artifacts are fetched
// from one registry at once.
func forRegistries(transport *http.Transport) *http.Transport {
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 100, 50
	return transport
}

// follower looks at the sources of templates for the instance controller.
type follower struct {
	opener *origin.Opener
	store  *content.Disk
	limits unpack.Limits
}

// Look resolves every source; see instance.Follower. What a source had to fetch
// for it stays in the store for the bundle that is made next.
func (f follower) Look(ctx context.Context, namespace string, spec v1alpha1.BundleSpec) ([]v1alpha1.ResolvedSource, string, error) {
	session, err := f.store.Begin()
	if err != nil {
		return nil, v1alpha1.ReasonStoreFailed, err
	}
	defer session.Close()
	to := source.Destination{Session: session, Budget: unpack.NewBudget(f.limits)}
	var pins []v1alpha1.ResolvedSource
	for i, one := range spec.Sources {
		at := origin.Place{Namespace: namespace, Field: fmt.Sprintf("spec.bundle.sources[%d]", i), ServiceAccount: spec.ServiceAccountName}
		opened, _, err := f.opener.Open(ctx, one, at)
		var pinned source.Pinned
		if err == nil {
			pinned, err = opened.Resolve(ctx, to)
		}
		if err != nil {
			reason, _ := origin.Classify(err)
			return nil, reason, err
		}
		pins = append(pins, origin.Resolved(pinned))
	}
	return pins, "", nil
}
