// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// AnnotationPrune on a live object keeps it from being deleted by Prune and Teardown, if its value is "disabled".
const AnnotationPrune = provisioner.AnnotationPrune

// Options say how far a call may go. The zero value takes nothing from others and deletes nothing to change it.
type Options struct {
	// Adoption says what may be done with objects of others.
	Adoption ownership.Adoption
	// Alive tells which instances exist. Nil means all do.
	Alive ownership.Alive
	// RecreateImmutable deletes and creates an object if a field that cannot be changed has changed. It is never done
	// to namespaces, volumes, claims and CustomResourceDefinitions with custom resources: what they hold would be lost.
	RecreateImmutable bool
	// DeleteCRDsInUse lets Prune and Teardown delete a CustomResourceDefinition and with it all its custom resources.
	DeleteCRDsInUse bool
	// DefaultNamespace is for namespaced objects without a namespace.
	DefaultNamespace string
	// Earlier returns what earlier revisions may have written of an object, so that Apply can tell a field that the
	// content dropped from one that the API server filled in. No object means that no other revision wrote it: say so
	// once a revision is active. A nil Earlier means that it is not known: then an object that we created costs one
	// more write, the first time that it changes. It is called from several goroutines.
	Earlier func(ownership.ID) []*unstructured.Unstructured
	// Keep names objects that Prune and Teardown must not touch: those of the set that stays. It is called from
	// several goroutines. Nil keeps none.
	Keep func(ownership.ID) bool
	// PassForbidden lets Apply go on with later phases where all that failed in one is what the account may not do: for
	// objects that stood before, and that a stronger account made.
	PassForbidden bool
	// UIDs has the UID of objects that Prune and Teardown may only delete if they are still that one.
	UIDs map[ownership.ID]types.UID
	// Tasks says which tasks Apply runs. The zero value runs none: then only state is applied.
	Tasks Tasks
}
