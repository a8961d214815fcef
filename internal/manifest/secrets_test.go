// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/testenv"
)

var cluster testenv.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// shelf is a namespace with a revision in it. The revision is a ConfigMap in truth, since the kind does not matter here.
type shelf struct {
	*testing.T
	client   client.WithWatch
	revision *corev1.ConfigMap
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	env := cluster.Env(t)
	config := env.Config()
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	revision := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.NewNamespace(t), Name: "shop-1"}}
	if err := c.Create(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	return &shelf{t, c, revision}
}

func (s *shelf) save(c client.Client, b []byte) error {
	return manifest.Save(s.Context(), c, s.revision, manifest.KindManifest, b)
}

func (s *shelf) load() ([]byte, error) {
	return manifest.LoadVerified(s.Context(), s.client, s.revision.Namespace, s.revision.Name, manifest.DigestOf(s.bytes(2)))
}

// bytes are different for each seed and need two parts.
func (s *shelf) bytes(seed uint64) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed)})
	b := make([]byte, manifest.MaxPart+100)
	if _, err := source.Read(b); err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *shelf) secrets() map[string]corev1.Secret {
	s.Helper()
	list := &corev1.SecretList{}
	if err := s.client.List(s.Context(), list, client.InNamespace(s.revision.Namespace), client.MatchingLabels{manifest.LabelRevision: s.revision.Name}); err != nil {
		s.Fatal(err)
	}
	found := map[string]corev1.Secret{}
	for _, secret := range list.Items {
		found[secret.Name] = secret
	}
	return found
}

func TestWhatIsSavedIsLoaded(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	if err := s.save(s.client, s.bytes(2)); err != nil {
		t.Fatal(err)
	}
	b, err := s.load()
	if err != nil || !cmp.Equal(b, s.bytes(2)) {
		t.Fatalf("%v, %d bytes", err, len(b))
	}
	before := s.secrets()
	if len(before) != 2 {
		t.Errorf("%d Secrets", len(before))
	}
	first := before["shop-1-manifest-0"]
	if first.Type != "rukpak.io/manifest" || first.Immutable == nil || !*first.Immutable || len(first.OwnerReferences) != 1 || first.OwnerReferences[0].UID != s.revision.UID {
		t.Errorf("%+v", first.ObjectMeta)
	}
	if err := s.save(s.client, s.bytes(2)); err != nil {
		t.Fatal(err)
	}
	for name, secret := range s.secrets() {
		if secret.ResourceVersion != before[name].ResourceVersion {
			t.Errorf("%s was written again", name)
		}
	}
}

func TestInterruptedSaveIsNotLoadedAndIsCompleted(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, seed := range []uint64{1, 2} { // first nothing is there, then other bytes
		for allowed := range 4 {
			left := allowed
			crash := errors.New("killed")
			limited := func() error {
				if left--; left < 0 {
					return crash
				}
				return nil
			}
			c := interceptor.NewClient(s.client, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if err := limited(); err != nil {
						return err
					}
					return c.Create(ctx, object, options...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					if err := limited(); err != nil {
						return err
					}
					return c.Delete(ctx, object, options...)
				},
			})
			err := s.save(c, s.bytes(seed))
			b, loadErr := manifest.Load(t.Context(), s.client, s.revision.Namespace, s.revision.Name, manifest.KindManifest)
			switch {
			case loadErr == nil && !cmp.Equal(b, s.bytes(1)) && !cmp.Equal(b, s.bytes(2)):
				t.Errorf("seed %d, after %d writes: neither the old nor the new bytes", seed, allowed)
			case loadErr != nil && !errors.Is(loadErr, manifest.ErrIncomplete):
				t.Errorf("seed %d, after %d writes: %v", seed, allowed, loadErr)
			case err != nil && !errors.Is(err, crash):
				t.Errorf("seed %d, after %d writes: %v", seed, allowed, err)
			}
		}
		if err := s.save(s.client, s.bytes(seed)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := manifest.Load(t.Context(), s.client, s.revision.Namespace, s.revision.Name, manifest.KindManifest); err != nil || !cmp.Equal(b, s.bytes(2)) {
		t.Errorf("%v, %d bytes", err, len(b))
	}
}

func TestSmallerPlanReplacesALargerOne(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, b := range [][]byte{s.bytes(1), []byte("small"), s.bytes(2)} {
		if err := manifest.Save(t.Context(), s.client, s.revision, manifest.KindPlan, b); err != nil {
			t.Fatal(err)
		}
		got, err := manifest.Load(t.Context(), s.client, s.revision.Namespace, s.revision.Name, manifest.KindPlan)
		if err != nil || !cmp.Equal(b, got) {
			t.Errorf("%v, %d bytes", err, len(got))
		}
	}
}

func TestWhatIsNotWholeOrNotApprovedIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil      func(s *shelf)
		want       string
		incomplete bool
	}{
		"NothingSaved": {func(s *shelf) { s.deletePart(0); s.deletePart(1) }, `Secret "shop-1-manifest-0" does not exist`, true},
		"FirstGone":    {func(s *shelf) { s.deletePart(0) }, `Secret "shop-1-manifest-0" does not exist`, true},
		"LastGone":     {func(s *shelf) { s.deletePart(1) }, `Secret "shop-1-manifest-1" does not exist`, true},
		"OtherBytes":   {func(s *shelf) { s.mustSave(s.bytes(3)) }, "they were changed and are not used", false},
		"PartOfOthers": {func(s *shelf) {
			s.replace(1, func(c *corev1.Secret) { c.Annotations[manifest.AnnotationDigest] = "sha256:00" })
		}, "belongs to other bytes", true},
		"Tampered": {func(s *shelf) { s.replace(1, func(c *corev1.Secret) { c.Data[manifest.DataKey][5]++ }) }, "of InstanceRevision", false},
		"Swapped": {func(s *shelf) {
			one, two := s.secrets()["shop-1-manifest-0"], s.secrets()["shop-1-manifest-1"]
			s.replace(0, func(c *corev1.Secret) { c.Data = two.Data })
			s.replace(1, func(c *corev1.Secret) { c.Data = one.Data })
		}, "decompress", false},
		"NoParts": {func(s *shelf) {
			s.replace(0, func(c *corev1.Secret) { delete(c.Annotations, manifest.AnnotationParts) })
		}, "is not a number of parts", false},
		"ManyParts": {func(s *shelf) {
			s.replace(0, func(c *corev1.Secret) { c.Annotations[manifest.AnnotationParts] = "1000000" })
		}, "is not a number of parts", false},
		"OtherType": {func(s *shelf) { s.replace(0, func(c *corev1.Secret) { c.Type = "Opaque" }) }, `is "Opaque", not "rukpak.io/manifest"`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.mustSave(s.bytes(2))
			test.spoil(s)
			b, err := s.load()
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %d bytes and %v, want an error with %q", len(b), err, test.want)
			}
			if got := errors.Is(err, manifest.ErrIncomplete); got != test.incomplete {
				t.Errorf("incomplete is %v: %v", got, err)
			}
			s.mustSave(s.bytes(2)) // which mends everything
			if _, err := s.load(); err != nil {
				t.Errorf("after another save: %v", err)
			}
		})
	}
}

func TestFaultOfTheClusterIsToldAsSuch(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := manifest.Load(ctx, s.client, s.revision.Namespace, s.revision.Name, manifest.KindManifest)
	var stored *manifest.StoredError
	if err == nil || errors.As(err, &stored) {
		t.Errorf("got %v", err)
	}
}

// TestTheyGoWithTheRevision needs no garbage collector: that the reference is one which it understands is enough.
func TestTheyGoWithTheRevision(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustSave([]byte("x"))
	owner := s.secrets()["shop-1-manifest-0"].OwnerReferences[0]
	if owner.APIVersion != "rukpak.io/v1alpha1" || owner.Kind != "InstanceRevision" || owner.Name != "shop-1" {
		t.Errorf("%+v", owner)
	}
}

func (s *shelf) mustSave(b []byte) {
	s.Helper()
	if err := s.save(s.client, b); err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) deletePart(part int) {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.revision.Namespace, Name: manifest.SecretName("shop-1", manifest.KindManifest, part)}}
	if err := s.client.Delete(s.Context(), secret); err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
}

func (s *shelf) replace(part int, change func(*corev1.Secret)) {
	s.Helper()
	secret := s.secrets()[manifest.SecretName("shop-1", manifest.KindManifest, part)]
	s.deletePart(part)
	fresh := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels, Annotations: secret.Annotations, OwnerReferences: secret.OwnerReferences},
		Type:       secret.Type, Immutable: secret.Immutable, Data: secret.Data,
	}
	change(fresh)
	if err := s.client.Create(s.Context(), fresh); err != nil {
		s.Fatal(err)
	}
}
