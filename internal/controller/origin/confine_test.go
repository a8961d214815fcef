// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"testing"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/files"
	"rukpak.io/rukpak/internal/unpack"
)

// TestADigestIsNoTicketToWhatAnotherTenantWasGiven pins what stands in a Secret of one namespace for a source of
// another, whose own object holds something else.
func TestADigestIsNoTicketToWhatAnotherTenantWasGiven(t *testing.T) {
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	to := source.Destination{Session: session, Budget: unpack.NewBudget(unpack.Limits{})}
	named := func(namespace, name, text string) source.Source {
		from := files.Source{Name: "Secret " + namespace + "/" + name, Ref: "secret/" + namespace + "/" + name, Files: map[string][]byte{"key": []byte(text)}}
		return confine(from, Place{Namespace: namespace}, "Secret", name)
	}
	of := func(namespace, text string) source.Source { return named(namespace, "s", text) }
	pinned, err := of("a", "of a").Resolve(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	layers, _, err := of("a", "of a").Fetch(t.Context(), pinned, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := of("b", "of b").Fetch(t.Context(), pinned, to); source.ReasonOf(err) != source.ReasonContentMismatch {
		t.Errorf("a source of another namespace gives %v, want %s", err, source.ReasonContentMismatch)
	}
	if _, _, err := of("a", "changed since").Fetch(t.Context(), pinned, to); err != nil {
		t.Errorf("a source of the same namespace, whose content is in the store: %v", err)
	}
	if _, _, err := named("a", "other", "of who may not read it").Fetch(t.Context(), pinned, to); source.ReasonOf(err) != source.ReasonContentMismatch {
		t.Errorf("another Secret of the same namespace gives %v, want %s", err, source.ReasonContentMismatch)
	}
	if found, ok := session.In(of("a", "").(confined).scope).Layer(layers[0].Key); !ok || found.Key != layers[0].Key {
		t.Errorf("the layer is not recorded under the key that it has: %v", layers[0].Key)
	}
	if _, ok := session.Layer(layers[0].Key); !ok {
		t.Error("a collection, which knows no scope, does not find the layer by its key")
	}
}
