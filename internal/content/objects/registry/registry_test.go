// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"net/http"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/places"
)

func TestRegistry(t *testing.T) { objectstest.Run(t, places.Registry) }

func TestErrorsNameTheRepositoryAndWhatToDo(t *testing.T) {
	server := places.NewRegistry(t)
	err := places.OpenRegistry(t, server, "wrong").Put(t.Context(), "packs/a", objects.Bytes([]byte("x")))
	if !objects.Is(err, objects.Refused) || !strings.Contains(err.Error(), "oci://"+server.Host()+"/team/store") || !strings.Contains(err.Error(), "give the manager credentials") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("got %v", err)
	}
	b := places.OpenRegistry(t, server, "")
	if err := b.Put(t.Context(), "packs/a", objects.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	server.Faults.Add(fault.Rule{Method: http.MethodDelete, Action: fault.Status(405)})
	if err := b.Delete(t.Context(), "packs/a"); !objects.Is(err, objects.Unsupported) || !strings.Contains(err.Error(), "allow it there") {
		t.Errorf("where nothing can be removed: %v", err)
	}
}

func TestAManifestThatIsNotOursIsDamageAndReplaced(t *testing.T) {
	server := places.NewRegistry(t)
	places.PushImage(t, server, "packs-a")
	b := places.OpenRegistry(t, server, "")
	if _, err := b.Get(t.Context(), "packs/a"); !objects.Is(err, objects.Damaged) {
		t.Errorf("Get: %v", err)
	}
	if err := b.Put(t.Context(), "packs/a", objects.Bytes([]byte("x"))); err != nil {
		t.Error(err)
	}
	if info, err := b.Stat(t.Context(), "packs/a"); err != nil || info.Size != 1 {
		t.Errorf("%+v, %v", info, err)
	}
}
