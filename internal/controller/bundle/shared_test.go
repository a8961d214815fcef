// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/depot"
	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/controller/bundle"
	"rukpak.io/rukpak/internal/controller/gc"
	"rukpak.io/rukpak/internal/controller/origin"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/testenv/places"
	"rukpak.io/rukpak/internal/testenv/signing"
)

// another makes a manager with an empty disk that works on the same objects, with
// a shared store if place is not nil.
func (s *stage) another(place objects.Backend) (*stage, *content.Disk, *depot.Depot) {
	s.Helper()
	dir := s.TempDir()
	store, err := content.OpenDisk(s.Context(), dir, content.Options{Grace: -1})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = store.Close() })
	made, control := *s, *s.control
	control.Contents = store
	control.Sources = &origin.Opener{Live: s.client, Namespace: s.own, OCI: oci.New(store, oci.Options{})}
	made.control = &control
	if place == nil {
		return &made, store, nil
	}
	guarded := objects.Guard(place, objects.Patience{Tries: 2, Pause: time.Millisecond, Rest: time.Nanosecond})
	shared := depot.Open(s.Context(), store, guarded, depot.Options{Cluster: "this", Grace: -1, Log: testr.New(s.T)})
	control.Shared = shared
	made.control = &control
	return &made, store, shared
}

func (s *stage) condition(b *v1alpha1.Bundle, kind string, want metav1.ConditionStatus, says ...string) {
	s.Helper()
	found := meta.FindStatusCondition(b.Status.Conditions, kind)
	if found == nil || found.Status != want {
		s.Fatalf("%s: %+v, want %s", kind, found, want)
	}
	for _, text := range says {
		if !strings.Contains(found.Message, text) {
			s.Errorf("%s: %q does not say %q", kind, found.Message, text)
		}
	}
}

// still checks that the controller has nothing to do and writes nothing.
func (s *stage) still(b *v1alpha1.Bundle) {
	s.Helper()
	version := b.ResourceVersion
	if s.act(b) || b.ResourceVersion != version {
		s.Errorf("at rest it writes or wants to try again: %+v", b.Status.Conditions)
	}
}

func TestARestartWithAnEmptyDiskNeedsNoSource(t *testing.T) {
	places.Each(t, func(t *testing.T, fresh func(*testing.T) objectstest.Place) {
		place := fresh(t)
		s := newStage(t)
		key := signing.Key(t)
		asked := byKey(signing.PEM(t, key))
		s.place.PushSimple(t, s.content, signing.Simple(t, key, s.content))
		one, _, _ := s.another(place.Open(t))
		b := one.bundle(&asked)
		if one.act(b) {
			t.Error("it is to be tried again")
		}
		one.taken(b, 1)
		one.condition(b, v1alpha1.ConditionShared, metav1.ConditionTrue, one.control.Shared.String())
		one.still(b)
		s.registry.Stop()
		two, disk, _ := s.another(place.Open(t))
		version := b.ResourceVersion
		if two.act(b) {
			t.Error("it is to be tried again")
		}
		two.taken(b, 1)
		if b.ResourceVersion != version {
			t.Error("bringing content back writes to the API server")
		}
		opened, err := disk.Open(t.Context(), digest.Digest(b.Status.Content.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := fs.ReadFile(opened, "a.yaml"); err != nil || string(text) != "kind: "+s.namespace {
			t.Errorf("%q, %v", text, err)
		}
		two.still(b)
	})
}

func TestContentThatIsNoLongerTrustedIsNotBroughtBack(t *testing.T) {
	place := places.Folder(t)
	s := newStage(t)
	one, _, _ := s.another(place.Open(t))
	b := one.bundle(nil)
	one.act(b)
	one.taken(b, 0)
	s.class(ruleFor(s.registry.Host(), byKey(signing.PEM(t, signing.Key(t)))))
	two, disk, _ := s.another(place.Open(t))
	two.act(b)
	two.condition(b, v1alpha1.ConditionReady, metav1.ConditionFalse, "signature")
	if disk.Has(digest.Digest(b.Status.Content.Digest)) {
		t.Error("unsigned content is brought back though the class wants a signature now")
	}
}

func TestASharedStoreThatIsAwayHoldsNothingUp(t *testing.T) {
	fresh := places.Buckets(t, true)
	place := fresh(t)
	s := newStage(t)
	one, _, _ := s.another(place.Open(t))
	heal := place.Fail(t, objectstest.Busy)
	b := one.bundle(nil)
	if !one.act(b) {
		t.Error("it is not tried again")
	}
	one.taken(b, 0)
	one.condition(b, v1alpha1.ConditionShared, metav1.ConditionFalse, "shared store s3://", "503 Service Unavailable", "it is tried again")
	version := b.ResourceVersion
	if !one.act(b) || b.ResourceVersion != version {
		t.Error("a second try that fails the same way writes, or is the last one")
	}
	heal()
	if one.act(b) {
		t.Error("it is to be tried again")
	}
	one.condition(b, v1alpha1.ConditionShared, metav1.ConditionTrue)
	one.still(b)

	// Neither the store nor the source: both are named, and what is known stays.
	heal = place.Fail(t, objectstest.Forbid)
	s.registry.Stop()
	had := *b.Status.Content
	two, _, _ := s.another(place.Open(t))
	if !two.act(b) {
		t.Error("it is not tried again")
	}
	two.condition(b, v1alpha1.ConditionReady, metav1.ConditionFalse, s.registry.Host(), "nor does the shared store help", "403 Forbidden", "give the manager credentials")
	if b.Status.Content == nil || b.Status.Content.Digest != had.Digest {
		t.Error("the digest of the content is forgotten")
	}
	// The store alone.
	if err := s.registry.Restart(); err != nil {
		t.Fatal(err)
	}
	two.act(b)
	two.taken(b, 0)
	two.condition(b, v1alpha1.ConditionShared, metav1.ConditionFalse, "403 Forbidden")
	heal()
	two.act(b)
	two.condition(b, v1alpha1.ConditionShared, metav1.ConditionTrue)

	// Without the flag the condition goes.
	three, _, _ := s.another(nil)
	three.act(b)
	three.taken(b, 0)
	if found := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionShared); found != nil {
		t.Errorf("without a shared store: %+v", found)
	}
	three.still(b)
}

func TestDamageInTheSharedStoreIsHealedFromThePinnedDigest(t *testing.T) {
	places.Each(t, func(t *testing.T, fresh func(*testing.T) objectstest.Place) {
		place := fresh(t)
		s := newStage(t)
		one, _, _ := s.another(place.Open(t))
		b := one.bundle(nil)
		one.act(b)
		one.taken(b, 0)
		tree := digest.Digest(b.Status.Content.Digest)
		place.Harm(t, "trees/"+tree.Encoded(), objectstest.Flip)
		s.push(s.place.Repository + ":2") // moves nothing that is pinned
		two, disk, _ := s.another(place.Open(t))
		if two.act(b) {
			t.Error("it is to be tried again")
		}
		two.taken(b, 0)
		if !disk.Has(tree) || digest.Digest(b.Status.Content.Digest) != tree {
			t.Error("the content is not what was pinned")
		}
		s.registry.Stop()
		three, _, _ := s.another(place.Open(t))
		three.act(b)
		three.taken(b, 0)
	})
}

func TestTwoManagersFetchTheSameAtOnce(t *testing.T) {
	place := places.Buckets(t, false)(t)
	s := newStage(t)
	managers := make([]*stage, 3)
	bundles := make([]*v1alpha1.Bundle, 3)
	for i := range managers {
		managers[i], _, _ = s.another(place.Open(t))
		bundles[i] = s.bundle(nil)
	}
	var all sync.WaitGroup
	for i, m := range managers {
		all.Go(func() {
			if _, err := m.control.Reconcile(t.Context(), bundles[i].DeepCopy()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	trees := 0
	err := place.Open(t).List(t.Context(), func(name string) error {
		if strings.HasPrefix(name, "trees/") {
			trees++
		}
		return nil
	})
	if err != nil || trees != 1 {
		t.Errorf("%d trees, %v; want one", trees, err)
	}
	for i, m := range managers {
		if err := m.client.Get(t.Context(), client.ObjectKeyFromObject(bundles[i]), bundles[i]); err != nil {
			t.Fatal(err)
		}
		m.taken(bundles[i], 0)
		m.condition(bundles[i], v1alpha1.ConditionShared, metav1.ConditionTrue)
	}
}

func TestTheSharedStoreIsCollectedByWhatBundlesName(t *testing.T) {
	dir := t.TempDir()
	place := places.FolderAt(dir)
	s := newStage(t)
	one, disk, shared := s.another(place.Open(t))
	kept, gone := one.bundle(nil), one.of(v1alpha1.BundleSource{Inline: &v1alpha1.InlineSource{Files: map[string]string{"b.yaml": "x"}}})
	for _, b := range []*v1alpha1.Bundle{kept, gone} {
		one.act(b)
		one.taken(b, 0)
	}
	var lost []types.NamespacedName
	collector := &gc.SharedCollector{Client: s.client, Store: shared, Lost: func(name types.NamespacedName) {
		if name.Namespace == s.namespace { // other tests have bundles, too
			lost = append(lost, name)
		}
	}}
	if err := s.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	got, err := collector.Collect(t.Context())
	if err != nil || got.Trees != 1 || got.Packs != 1 || len(lost) > 0 {
		t.Errorf("%+v, %v, lost %v; want one tree with its pack removed", got, err, lost)
	}
	// Somebody empties the folder: the bundle is told, and its content put there again.
	if err := os.RemoveAll(dir + "/trees"); err != nil {
		t.Fatal(err)
	}
	if _, err := collector.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(lost) != 1 || lost[0] != client.ObjectKeyFromObject(kept) {
		t.Errorf("lost %v, want %s", lost, kept.Name)
	}
	s.registry.Stop()
	one.act(kept)
	one.taken(kept, 0)
	if !shared.Holds(digest.Digest(kept.Status.Content.Digest)) || !disk.Has(digest.Digest(kept.Status.Content.Digest)) {
		t.Error("the content is not in the shared store again")
	}
	one.still(kept)
}

var _ bundle.Shared = (*depot.Depot)(nil)
