// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/signing"
	"rukpak.io/rukpak/internal/verify"
	"rukpak.io/rukpak/internal/verify/cosign"
)

// content pushes an image and pins it.
func pushed(t *testing.T, place signing.Place, src Source) (source.Pinned, Source) {
	t.Helper()
	ref, err := name.ParseReference(place.Repository+":1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	var options []remote.Option
	if place.Transport != nil {
		options = append(options, remote.WithTransport(place.Transport))
	}
	if err := remote.Write(ref, imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer)), options...); err != nil {
		t.Fatal(err)
	}
	src.Ref, src.Insecure = ref.Name(), true
	pinned, err := New(nil, Options{}).Resolve(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return pinned, src
}

func keyVerifier(t *testing.T, pem string) verify.Verifier {
	t.Helper()
	keys, err := cosign.ParseKeys([]byte(pem))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := cosign.ByKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	return verifier
}

func find(t *testing.T, f *Fetcher, src Source, pinned source.Pinned, verifier verify.Verifier) (verify.Verdict, error) {
	t.Helper()
	return verify.Find(t.Context(), verifier, pinned.Digest, f.Attached(t.Context(), src, pinned, verifier.Query(pinned.Digest)))
}

// bothKinds are a registry without the API that lists referrers, and one with it.
func bothKinds(t *testing.T) map[string]signing.Place {
	t.Helper()
	distribution := ociregistry.New(t, ociregistry.Options{})
	modern := httptest.NewServer(ggcr.New(ggcr.WithReferrersSupport(true)))
	t.Cleanup(modern.Close)
	return map[string]signing.Place{
		"WithoutReferrersAPI": {Repository: distribution.Host() + "/app"},
		"WithReferrersAPI":    {Repository: strings.TrimPrefix(modern.URL, "http://") + "/app"},
	}
}

func TestSignaturesAreFoundWhereCosignPutsThem(t *testing.T) {
	key := signing.Key(t)
	verifier := keyVerifier(t, signing.PEM(t, key))
	for name, place := range bothKinds(t) {
		t.Run(name, func(t *testing.T) {
			for way, push := range map[string]func(place signing.Place, content digest.Digest){
				"Tag": func(place signing.Place, content digest.Digest) {
					place.PushSimple(t, content, signing.Simple(t, key, content))
				},
				"Referrer": func(place signing.Place, content digest.Digest) {
					place.PushReferrer(t, content, signing.BundleType, nil, signing.Bundle(t, key, content, signing.SignPredicate))
				},
				"BehindOthers": func(place signing.Place, content digest.Digest) {
					stranger := signing.Key(t)
					place.PushSimple(t, content, signing.Simple(t, stranger, content), signing.Simple(t, key, content))
					place.PushReferrer(t, content, signing.BundleType, nil, signing.Bundle(t, stranger, content, signing.SignPredicate))
				},
			} {
				t.Run(way, func(t *testing.T) {
					place := signing.Place{Repository: place.Repository + "-" + strings.ToLower(way)}
					pinned, src := pushed(t, place, Source{})
					if _, err := find(t, New(nil, Options{}), src, pinned, verifier); reasonOf(err) != verify.ReasonSignatureMissing {
						t.Fatalf("before it is signed: %v", err)
					}
					push(place, pinned.Digest)
					verdict, err := find(t, New(nil, Options{}), src, pinned, verifier)
					if err != nil || !strings.HasPrefix(verdict.Signer, "sha256:") {
						t.Fatalf("%+v, %v", verdict, err)
					}
				})
			}
		})
	}
}

func reasonOf(err error) string {
	if refusal, ok := err.(*verify.Refusal); ok { //nolint:errorlint // it is never wrapped
		return refusal.Reason
	}
	return source.ReasonOf(err)
}

// A registry that does not answer has not said that there is no signature.
func TestFaultsOfTheRegistryAreNotTakenForMissingSignatures(t *testing.T) {
	key := signing.Key(t)
	verifier := keyVerifier(t, signing.PEM(t, key))
	registry := ociregistry.New(t, ociregistry.Options{})
	place := signing.Place{Repository: registry.Host() + "/app"}
	pinned, src := pushed(t, place, Source{})
	place.PushSimple(t, pinned.Digest, signing.Simple(t, signing.Key(t), pinned.Digest))
	for name, tc := range map[string]struct {
		path   string
		status int
		reason string
		kind   source.Kind
	}{
		"Unauthorized":    {".sig", http.StatusUnauthorized, source.ReasonAuthenticationFailed, source.Waiting},
		"Forbidden":       {"/referrers/", http.StatusForbidden, source.ReasonAuthenticationFailed, source.Waiting},
		"Broken":          {".sig", http.StatusInternalServerError, source.ReasonRegistryUnreachable, source.Transient},
		"BrokenReferrers": {"/referrers/", http.StatusBadGateway, source.ReasonRegistryUnreachable, source.Transient},
		"BrokenBlob":      {"/blobs/", http.StatusInternalServerError, source.ReasonRegistryUnreachable, source.Transient},
		"Busy":            {".sig", http.StatusTooManyRequests, source.ReasonRegistryUnreachable, source.Transient},
		"ContentGone":     {"/manifests/sha256:", http.StatusNotFound, source.ReasonNotFound, source.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			defer registry.Faults.Clear()
			registry.Faults.Add(fault.Rule{Path: regexp.MustCompile(regexp.QuoteMeta(tc.path)), Action: fault.Status(tc.status)})
			_, err := find(t, New(nil, Options{}), src, pinned, verifier)
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != tc.kind {
				t.Errorf("got %q (%v): %v", source.ReasonOf(err), source.KindOf(err), err)
			}
		})
	}
	if _, err := find(t, New(nil, Options{}), src, pinned, verifier); reasonOf(err) != verify.ReasonSignatureInvalid {
		t.Errorf("without a fault: %v", err)
	}
}

func TestWhatOthersPushIsBounded(t *testing.T) {
	key := signing.Key(t)
	verifier := keyVerifier(t, signing.PEM(t, key))
	registry := ociregistry.New(t, ociregistry.Options{})
	huge := signing.SimpleOver(t, key, []byte(`{"x": "`+strings.Repeat("x", maxAttachedSize)+`"}`))
	for name, tc := range map[string]struct {
		blobs func(content digest.Digest) []signing.Blob
		want  string
	}{
		"HugeSignature": {func(digest.Digest) []signing.Blob { return []signing.Blob{huge} }, "more than 1048576"},
		"Thousand": {func(content digest.Digest) []signing.Blob {
			var all []signing.Blob
			for i := range 1000 {
				blob := signing.Simple(t, key, content) // pushed once
				blob.Annotations[signing.AnnotationSignature] = base64.StdEncoding.EncodeToString(fmt.Append(nil, i))
				all = append(all, blob)
			}
			return all
		}, "none of 201 signatures counts"},
		"NoJSON": {func(digest.Digest) []signing.Blob {
			return []signing.Blob{signing.SimpleOver(t, key, []byte(`{"critical": `))}
		}, "no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			place := signing.Place{Repository: registry.Host() + "/bounded-" + strings.ToLower(name)}
			pinned, src := pushed(t, place, Source{})
			place.PushSimple(t, pinned.Digest, tc.blobs(pinned.Digest)...)
			before := len(registry.Requests())
			_, err := find(t, New(nil, Options{}), src, pinned, verifier)
			if reasonOf(err) != verify.ReasonSignatureInvalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if asked := len(registry.Requests()) - before; asked > maxAttached+10 {
				t.Errorf("%d requests", asked)
			}
		})
	}
}

func TestManifestOfSignaturesThatIsTooLargeIsNoTerminalFault(t *testing.T) {
	verifier := keyVerifier(t, signing.PEM(t, signing.Key(t)))
	registry := ociregistry.New(t, ociregistry.Options{})
	place := signing.Place{Repository: registry.Host() + "/app"}
	pinned, src := pushed(t, place, Source{})
	registry.Faults.Add(fault.Rule{Path: regexp.MustCompile(`\.sig`), Action: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte(`{"x": "` + strings.Repeat("x", maxManifest) + `"}`))
	}})
	_, err := find(t, New(nil, Options{}), src, pinned, verifier)
	if reasonOf(err) != verify.ReasonSignatureInvalid || !strings.Contains(err.Error(), "larger") {
		t.Errorf("got %v", err)
	}
}

func TestReferrersAreListedPageByPage(t *testing.T) {
	key := signing.Key(t)
	verifier := keyVerifier(t, signing.PEM(t, key))
	registry := ociregistry.New(t, ociregistry.Options{})
	place := signing.Place{Repository: registry.Host() + "/app"}
	pinned, src := pushed(t, place, Source{})
	place.PushReferrer(t, pinned.Digest, signing.BundleType, nil, signing.Bundle(t, key, pinned.Digest, signing.SignPredicate))
	var listed struct {
		Manifests []json.RawMessage `json:"manifests"`
	}
	tag, err := name.ParseReference(place.Repository+":"+strings.Replace(pinned.Digest.String(), ":", "-", 1), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Get(tag)
	if err == nil {
		err = json.Unmarshal(got.Manifest, &listed)
	}
	if err != nil || len(listed.Manifests) != 1 {
		t.Fatalf("%d referrers, %v", len(listed.Manifests), err)
	}
	pages := 0
	registry.Faults.Add(fault.Rule{Path: regexp.MustCompile("/referrers/"), Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		pages++
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		if r.URL.Query().Get("page") == "" {
			w.Header().Set("Link", fmt.Sprintf(`<%s?page=2>; rel="next"`, r.URL.Path))
			_, _ = fmt.Fprint(w, `{"manifests": []}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"manifests": [%s]}`, listed.Manifests[0])
	}})
	if _, err := find(t, New(nil, Options{}), src, pinned, verifier); err != nil || pages != 2 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

func TestMirrorsCannotHideOrForgeSignatures(t *testing.T) {
	key, stranger := signing.Key(t), signing.Key(t)
	verifier := keyVerifier(t, signing.PEM(t, key))
	image := app(t)
	sum, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	content := digest.Digest(sum.String())
	mirror, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	push(t, mirror, "team/app:1", image)
	ref := push(t, primary, "team/app:1", image)
	atMirror := signing.Place{Repository: mirror.Host() + "/team/app"}
	atPrimary := signing.Place{Repository: primary.Host() + "/team/app"}
	rule := rules.Rule{Prefix: primary.Host(), From: "rule", Mirrors: []rules.Mirror{plain(mirror, "")}}
	src := Source{Ref: ref, Insecure: true}
	pinned, err := ruled(t, rule).Resolve(t.Context(), src)
	if err != nil || pinned.Digest != content {
		t.Fatalf("%+v, %v", pinned, err)
	}

	atMirror.PushSimple(t, content, signing.Simple(t, stranger, content))
	if _, err := find(t, ruled(t, rule), src, pinned, verifier); reasonOf(err) != verify.ReasonSignatureInvalid {
		t.Errorf("another signature at the mirror, none at the primary: %v", err)
	}
	atPrimary.PushSimple(t, content, signing.Simple(t, key, content))
	if _, err := find(t, ruled(t, rule), src, pinned, verifier); err != nil {
		t.Errorf("another signature at the mirror, the right one at the primary: %v", err)
	}
	var many []signing.Blob
	for range maxAttached + 50 {
		many = append(many, signing.Simple(t, stranger, content))
	}
	atMirror.PushSimple(t, content, many...)
	if _, err := find(t, ruled(t, rule), src, pinned, verifier); err != nil {
		t.Errorf("plenty of junk at the mirror: %v", err)
	}
	mirror.Stop()
	if _, err := find(t, ruled(t, rule), src, pinned, verifier); err != nil {
		t.Errorf("the mirror is down: %v", err)
	}
	if err := mirror.Restart(); err != nil {
		t.Fatal(err)
	}
	primary.Stop()
	if _, err := find(t, ruled(t, rule), src, pinned, verifier); source.ReasonOf(err) != source.ReasonRegistryUnreachable {
		t.Errorf("no right signature at the mirror, and the primary is down: %v", err)
	}
	atMirror.PushSimple(t, content, signing.Simple(t, key, content))
	if _, err := find(t, ruled(t, rule), src, pinned, verifier); err != nil {
		t.Errorf("the right signature at the mirror, and the primary is down: %v", err)
	}
}

func TestSignaturesAreReadWithTheCredentialsOfTheSource(t *testing.T) {
	key := signing.Key(t)
	verifier := keyVerifier(t, signing.PEM(t, key))
	registry := ociregistry.New(t, ociregistry.Options{User: "robot", Password: "right-password"})
	good := basic("robot", "right-password")
	ref := pushAs(t, registry, "app:1", app(t), good)
	src := Source{Ref: ref, Insecure: true, Credentials: fixed{basic("robot", "wrong-password"), good}}
	pinned, err := New(nil, Options{}).Resolve(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := find(t, New(nil, Options{}), src, pinned, verifier); reasonOf(err) != verify.ReasonSignatureMissing {
		t.Errorf("with the right credentials second: %v", err)
	}
	src.Credentials = fixed{basic("robot", "wrong-password")}
	_, err = find(t, New(nil, Options{}), src, pinned, verifier)
	if source.ReasonOf(err) != source.ReasonAuthenticationFailed || strings.Contains(err.Error(), "wrong-password") {
		t.Errorf("with wrong credentials: %v", err)
	}
}
