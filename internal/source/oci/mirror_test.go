// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/base64"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/forwardproxy"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// ruled makes a fetcher with rules.
func ruled(t *testing.T, list ...rules.Rule) *Fetcher {
	t.Helper()
	return New(newStore(t), Options{Registries: reach.Fixed(rules.NewSet(list, nil), nil)})
}

func plain(registry *ociregistry.Registry, path string) rules.Mirror {
	return rules.Mirror{Location: registry.Host() + path, From: "mirror " + path, Access: rules.Access{PlainHTTP: true}}
}

func login(user, password string) []registry.Login {
	l := registry.Login{}
	l.Username, l.Password = user, password
	return []registry.Login{l}
}

func app(t *testing.T) v1.Image {
	t.Helper()
	return imageOf(t, part(tarOf(t, "a", "x"), types.OCIUncompressedLayer))
}

// asked tells which repositories a registry was asked for, each once.
func asked(registry *ociregistry.Registry) []string {
	found := []string{}
	pattern := regexp.MustCompile(`^/v2/(.+)/(manifests|blobs)/`)
	for _, r := range registry.Requests() {
		if m := pattern.FindStringSubmatch(r.Path); m != nil && !slices.Contains(found, m[1]) {
			found = append(found, m[1])
		}
	}
	return found
}

func TestTheFirstMirrorThatHasItWins(t *testing.T) {
	empty, full, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	down := ociregistry.New(t, ociregistry.Options{})
	down.Stop()
	push(t, full, "cache/team/app:1", app(t))
	ref := push(t, primary, "team/app:1", app(t))
	for _, r := range []*ociregistry.Registry{full, primary} {
		r.ForgetRequests()
	}
	fetcher := ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Mirrors: []rules.Mirror{plain(down, ""), plain(empty, ""), plain(full, "/cache")}})
	src := Source{Ref: ref, Insecure: true}
	pinned, err := fetcher.Resolve(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(pinned.Ref, primary.Host()+"/team/app@") {
		t.Errorf("the name is not that of the user: %s", pinned.Ref)
	}
	if _, _, err := fetcher.Fetch(t.Context(), src, pinned); err != nil {
		t.Fatal(err)
	}
	got := [][]string{asked(empty), asked(full), asked(primary)}
	if diff := cmp.Diff([][]string{{"team/app"}, {"cache/team/app"}, {}}, got); diff != "" {
		t.Errorf("repositories asked of the empty mirror, the full one and the primary (-want +got):\n%s", diff)
	}
	for _, r := range full.Requests() {
		if r.Path != "/v2/" && r.Query != "ns="+strings.ReplaceAll(primary.Host(), ":", "%3A") {
			t.Errorf("the mirror is not told whose content it is: %s?%s", r.Path, r.Query)
		}
	}
}

func TestThePrimaryIsAskedLastOrNever(t *testing.T) {
	mirror, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	ref := push(t, primary, "team/app:1", app(t))
	rule := rules.Rule{Prefix: primary.Host(), From: `the rule "x"`, Mirrors: []rules.Mirror{plain(mirror, "")}}
	if _, _, err := fetchAll(t, ruled(t, rule), Source{Ref: ref, Insecure: true}); err != nil {
		t.Errorf("what only the primary has is not found: %v", err)
	}
	primary.ForgetRequests()
	rule.MirrorOnly = true
	_, _, err := fetchAll(t, ruled(t, rule), Source{Ref: ref, Insecure: true})
	if source.ReasonOf(err) != source.ReasonNotFound || source.KindOf(err) != source.Waiting {
		t.Errorf("got %v", err)
	}
	if got := primary.Requests(); len(got) != 0 {
		t.Errorf("the primary was asked: %v", got)
	}
	mirror.Stop()
	_, _, err = fetchAll(t, ruled(t, rule), Source{Ref: ref, Insecure: true})
	if source.ReasonOf(err) != source.ReasonRegistryUnreachable || source.KindOf(err) != source.Transient {
		t.Errorf("got %v", err)
	}
}

func TestErrorsTellOfAllThatWereAsked(t *testing.T) {
	mirror, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	mirror.Faults.Add(fault.Rule{Action: fault.Status(http.StatusForbidden)})
	hub := plain(mirror, "/hub")
	hub.From = `mirrors[0] of rule "x" of RegistryConfig corp`
	digests := plain(mirror, "/digests")
	digests.For = rules.Digests
	const rule = `rule "x" of RegistryConfig corp`
	fromMirror := mirror.Host() + `/hub/none (mirrors[0] of rule "x" of RegistryConfig corp): the registry answers 403 Forbidden; no pull secret has credentials for it`
	passed := "; passed over: " + mirror.Host() + " (it is only for references by digest)"
	for name, tc := range map[string]struct {
		rule rules.Rule
		want string // after the reference
	}{
		"Primary":       {rules.Rule{}, "the registry answers 404"},
		"Both":          {rules.Rule{Mirrors: []rules.Mirror{hub}}, primary.Host() + ": the registry answers 404 .*; asked before: " + regexp.QuoteMeta(fromMirror) + "$"},
		"MirrorAlone":   {rules.Rule{Mirrors: []rules.Mirror{hub}, MirrorOnly: true}, regexp.QuoteMeta(fromMirror) + "$"},
		"NotForTags":    {rules.Rule{Mirrors: []rules.Mirror{digests}}, primary.Host() + ": the registry answers 404 .*" + regexp.QuoteMeta(passed) + "$"},
		"OneNotForTags": {rules.Rule{Mirrors: []rules.Mirror{digests, hub}, MirrorOnly: true}, regexp.QuoteMeta(fromMirror+passed) + "$"},
		"Rewritten": {rules.Rule{Rewrite: mirror.Host() + "/hub", Primary: rules.Access{PlainHTTP: true}},
			regexp.QuoteMeta(mirror.Host()+`/hub/none (`+rule+"): the registry answers 403") + " "},
	} {
		t.Run(name, func(t *testing.T) {
			tc.rule.Prefix, tc.rule.From = primary.Host(), rule
			ref := primary.Host() + "/none:1"
			_, err := ruled(t, tc.rule).Resolve(t.Context(), Source{Ref: ref, Insecure: true})
			if err == nil || !regexp.MustCompile("^oci "+ref+": "+tc.want).MatchString(err.Error()) {
				t.Errorf("got  %v\nwant oci %s: %s", err, ref, tc.want)
			}
			want := source.ReasonNotFound
			if tc.rule.MirrorOnly || tc.rule.Rewrite != "" {
				want = source.ReasonAuthenticationFailed
			}
			if got := source.ReasonOf(err); got != want {
				t.Errorf("reason %s, want %s", got, want)
			}
		})
	}
}

// TestALayerThatAMirrorBreaksOffNamesTheMirror fails half-way: no other endpoint is asked then.
func TestALayerThatAMirrorBreaksOffNamesTheMirror(t *testing.T) {
	mirror := ociregistry.New(t, ociregistry.Options{})
	push(t, mirror, "hub/app:1", app(t))
	mirror.Faults.Add(fault.Rule{Path: regexp.MustCompile(`/blobs/`), Action: fault.Truncate(100)})
	rule := rules.Rule{Prefix: "registry.example.com", From: "rule", MirrorOnly: true, Mirrors: []rules.Mirror{plain(mirror, "/hub")}}
	_, _, err := fetchAll(t, ruled(t, rule), Source{Ref: "registry.example.com/app:1"})
	if err == nil || !strings.Contains(err.Error(), mirror.Host()+"/hub/app (mirror /hub): blob sha256:") {
		t.Errorf("got %v", err)
	}
}

func TestDockersRegistryIsNamedAsUsersWriteIt(t *testing.T) {
	mirror := ociregistry.New(t, ociregistry.Options{})
	push(t, mirror, "hub/library/app:1", app(t))
	fetcher := ruled(t, rules.Rule{Prefix: "docker.io", From: "rule", MirrorOnly: true, Mirrors: []rules.Mirror{plain(mirror, "/hub")}})
	for _, ref := range []string{"app:1", "docker.io/app:1", "index.docker.io/library/app:1"} {
		pinned, err := fetcher.Resolve(t.Context(), Source{Ref: ref})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := fetcher.Fetch(t.Context(), Source{Ref: ref}, pinned); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(pinned.Ref, "docker.io/library/app@sha256:") {
			t.Errorf("%s is named %s", ref, pinned.Ref)
		}
	}
}

func TestEachEndpointHasItsOwnCredentials(t *testing.T) {
	mirror := ociregistry.New(t, ociregistry.Options{User: "m", Password: "of-the-mirror"})
	open := ociregistry.New(t, ociregistry.Options{})
	primary := ociregistry.New(t, ociregistry.Options{User: "p", Password: "of-the-primary"})
	ref := pushAs(t, primary, "app:1", app(t), basic("p", "of-the-primary"))
	pushAs(t, mirror, "app:1", app(t), basic("m", "of-the-mirror"))
	for _, r := range []*ociregistry.Registry{mirror, primary} {
		r.ForgetRequests()
	}
	withLogin := plain(mirror, "")
	withLogin.Logins = login("m", "of-the-mirror")
	pull, err := registry.FromSecrets(nil)
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.Rule{Prefix: primary.Host(), From: "rule", Primary: rules.Access{Logins: login("p", "of-the-primary")}}
	for name, mirrors := range map[string][]rules.Mirror{
		"Own":  {plain(open, ""), withLogin},
		"None": {plain(open, ""), plain(mirror, "")},
	} {
		t.Run(name, func(t *testing.T) {
			rule.Mirrors = mirrors
			if _, _, err := fetchAll(t, ruled(t, rule), Source{Ref: ref, Insecure: true, Credentials: pull}); err != nil {
				t.Error(err)
			}
		})
	}
	secret := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	allowed := map[*ociregistry.Registry]string{mirror: secret("m", "of-the-mirror"), open: "", primary: secret("p", "of-the-primary")}
	for r, only := range allowed {
		sent := 0
		for _, request := range r.Requests() {
			if request.Authorization != "" && request.Authorization != only {
				t.Errorf("%s got credentials of another: %s", r.Host(), request.Path)
			}
			if request.Authorization != "" {
				sent++
			}
		}
		if only != "" && sent == 0 {
			t.Errorf("%s never got its own credentials", r.Host())
		}
	}
}

func TestBlockedReferencesAreNotFetched(t *testing.T) {
	primary := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, primary, "team/app:1", app(t))
	primary.ForgetRequests()
	_, _, err := fetchAll(t, ruled(t, rules.Rule{Prefix: primary.Host() + "/team", From: `rule "x" of RegistryConfig corp`, Blocked: true}), Source{Ref: ref, Insecure: true})
	if source.ReasonOf(err) != source.ReasonBlocked || !strings.Contains(err.Error(), `is blocked by rule "x" of RegistryConfig corp`) {
		t.Errorf("got %v", err)
	}
	if got := primary.Requests(); len(got) != 0 {
		t.Errorf("it was asked: %v", got)
	}
}

func TestScopesOfMirrors(t *testing.T) {
	mirror, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	push(t, mirror, "app:1", app(t))
	ref := push(t, primary, "app:1", app(t))
	for _, scope := range []rules.Scope{rules.Digests, rules.Tags} {
		t.Run(string(scope), func(t *testing.T) {
			mirror.ForgetRequests()
			only := plain(mirror, "")
			only.For = scope
			if _, _, err := fetchAll(t, ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Mirrors: []rules.Mirror{only}}), Source{Ref: ref, Insecure: true}); err != nil {
				t.Fatal(err)
			}
			tags, digests := 0, 0
			for _, r := range mirror.Requests() {
				switch {
				case strings.HasSuffix(r.Path, "/manifests/1"):
					tags++
				case strings.Contains(r.Path, "/manifests/") || strings.Contains(r.Path, "/blobs/"):
					digests++
				}
			}
			if (tags > 0) != (scope == rules.Tags) || (digests > 0) != (scope == rules.Digests) {
				t.Errorf("%d requests by tag, %d by digest", tags, digests)
			}
		})
	}
}

func TestAuthorityAndClientCertificateOfARule(t *testing.T) {
	secure := ociregistry.New(t, ociregistry.Options{TLS: true, Clients: true})
	ref := push(t, secure, "app:1", app(t))
	certificate := &rules.KeyPair{Certificate: secure.Client().Certificate, Key: secure.Client().Key}
	for name, tc := range map[string]struct {
		access rules.Access
		works  bool
	}{
		"Both":          {rules.Access{CA: secure.CA(), Certificate: certificate}, true},
		"NoCA":          {rules.Access{Certificate: certificate}, false},
		"NoCertificate": {rules.Access{CA: secure.CA()}, false},
		"SkipVerify":    {rules.Access{SkipVerify: true, Certificate: certificate}, true},
		"EitherWay":     {rules.Access{SkipVerify: true, PlainHTTP: true, Certificate: certificate}, true},
		"PlainHTTP":     {rules.Access{PlainHTTP: true, CA: secure.CA(), Certificate: certificate}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fetchAll(t, ruled(t, rules.Rule{Prefix: secure.Host(), From: "rule", Primary: tc.access}), Source{Ref: ref})
			if (err == nil) != tc.works {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEitherHTTPSOrHTTP(t *testing.T) {
	open := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, open, "app:1", app(t))
	for name, tc := range map[string]struct {
		access rules.Access
		works  bool
	}{
		"Neither":    {rules.Access{}, false},
		"SkipVerify": {rules.Access{SkipVerify: true}, false}, // it is still HTTPS
		"PlainHTTP":  {rules.Access{PlainHTTP: true}, true},
		"Both":       {rules.Access{PlainHTTP: true, SkipVerify: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fetchAll(t, ruled(t, rules.Rule{Prefix: open.Host(), From: "rule", Primary: tc.access}), Source{Ref: ref})
			if (err == nil) != tc.works {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSourceDoesNotMakeOthersInsecure(t *testing.T) {
	mirror, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	push(t, mirror, "app:1", app(t))
	ref := push(t, primary, "app:1", app(t))
	mirror.ForgetRequests()
	strict := plain(mirror, "")
	strict.PlainHTTP = false
	if _, _, err := fetchAll(t, ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Mirrors: []rules.Mirror{strict}}), Source{Ref: ref, Insecure: true}); err != nil {
		t.Fatal(err)
	}
	if got := mirror.Requests(); len(got) != 0 {
		t.Errorf("the mirror was asked over plain HTTP: %v", got)
	}
}

func TestThroughAProxy(t *testing.T) {
	secure := ociregistry.New(t, ociregistry.Options{TLS: true})
	push(t, secure, "app:1", app(t))
	const host = "kubernetes.default.svc" // the certificate has that name, and only the proxy knows where it is
	for name, tc := range map[string]struct {
		password string
		noProxy  []string
	}{
		"Through":       {password: "through"},
		"WrongPassword": {password: "wrong-password"},
		"NoProxy":       {password: "through", noProxy: []string{".default.svc"}},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := forwardproxy.New(t, forwardproxy.Options{User: "u", Password: "through", Hosts: map[string]string{host + ":443": secure.Host()}})
			rule := rules.Rule{Prefix: host, From: "rule", Primary: rules.Access{
				CA: secure.CA(), Proxy: &rules.Proxy{URL: proxy.URL(), User: "u", Password: tc.password, NoProxy: tc.noProxy},
			}}
			_, _, err := fetchAll(t, ruled(t, rule), Source{Ref: host + "/app:1"})
			works := name == "Through"
			if (err == nil) != works {
				t.Errorf("got %v", err)
			}
			if err != nil && (source.ReasonOf(err) != source.ReasonRegistryUnreachable || strings.Contains(err.Error(), "wrong-password")) {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
			if seen := proxy.Seen(); works != slices.Contains(seen, "CONNECT "+host+":443") {
				t.Errorf("the proxy saw %q", seen)
			}
		})
	}
}

func TestAMirrorWithBrokenLayersIsPassedOverNextTime(t *testing.T) {
	mirror, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	push(t, mirror, "app:1", app(t))
	ref := push(t, primary, "app:1", app(t))
	fetcher := ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Mirrors: []rules.Mirror{plain(mirror, "")}})
	src := Source{Ref: ref, Insecure: true}
	t.Run("Absent", func(t *testing.T) {
		mirror.Faults.Add(fault.Rule{Path: regexp.MustCompile(`/blobs/`), Action: fault.Status(http.StatusNotFound)})
		defer mirror.Faults.Clear()
		if _, _, err := fetchAll(t, ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Mirrors: []rules.Mirror{plain(mirror, "")}}), src); err != nil {
			t.Errorf("a layer that only the primary has is not found: %v", err)
		}
	})
	t.Run("Cut", func(t *testing.T) {
		mirror.Faults.Add(fault.Rule{Path: regexp.MustCompile(`/blobs/`), Action: fault.Truncate(100)})
		defer mirror.Faults.Clear()
		if _, _, err := fetchAll(t, fetcher, src); err == nil {
			t.Fatal("half a layer was taken for a whole one")
		}
		if _, _, err := fetchAll(t, fetcher, src); err != nil {
			t.Errorf("the primary was not asked instead: %v", err)
		}
	})
}

func TestAPIAtAnotherPath(t *testing.T) {
	inner := ociregistry.New(t, ociregistry.Options{})
	push(t, inner, "app:1", app(t))
	front := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/api/docker/")
		if !ok {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		r.URL.Path = "/v2/" + rest
		forward(t, w, r, inner.Host())
	})
	mirror := rules.Mirror{Location: front.host(), APIPath: "/api/docker", From: "mirror", Access: rules.Access{PlainHTTP: true}}
	fetcher := ruled(t, rules.Rule{Prefix: "registry.example.com", From: "rule", MirrorOnly: true, Mirrors: []rules.Mirror{mirror}})
	if _, _, err := fetchAll(t, fetcher, Source{Ref: "registry.example.com/app:1"}); err != nil {
		t.Error(err)
	}
}

func TestRetriesAndRatesOfARule(t *testing.T) {
	primary := ociregistry.New(t, ociregistry.Options{})
	ref := push(t, primary, "app:1", app(t))
	primary.Faults.Add(fault.Rule{Path: regexp.MustCompile(`/manifests/`), Times: 4, Action: fault.Status(http.StatusServiceUnavailable)})
	access := rules.Access{PlainHTTP: true, Retry: rules.Retry{Attempts: 5, Delay: 1, MaxDelay: 1}}
	if _, err := ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Primary: access}).Resolve(t.Context(), Source{Ref: ref}); err != nil {
		t.Errorf("a fifth attempt was not made: %v", err)
	}
	primary.Faults.Clear()
	primary.Faults.Add(fault.Rule{Path: regexp.MustCompile(`/manifests/`), Action: fault.Status(http.StatusServiceUnavailable)})
	primary.ForgetRequests()
	access.Retry.Attempts = 1
	if _, err := ruled(t, rules.Rule{Prefix: primary.Host(), From: "rule", Primary: access}).Resolve(t.Context(), Source{Ref: ref}); source.KindOf(err) != source.Transient {
		t.Errorf("got %v", err)
	}
	manifests := 0
	for _, r := range primary.Requests() {
		if strings.Contains(r.Path, "/manifests/") {
			manifests++
		}
	}
	if manifests != 1 {
		t.Errorf("one attempt made %d requests", manifests)
	}
}

func TestARuleThatCannotBeUsedIsNotGoneWithout(t *testing.T) {
	mirror, primary := ociregistry.New(t, ociregistry.Options{}), ociregistry.New(t, ociregistry.Options{})
	ref := push(t, primary, "app:1", app(t))
	primary.ForgetRequests()
	broken := errors.New("credentials: Secret rukpak-system/none does not exist")
	rule := rules.Rule{Prefix: primary.Host(), From: "the rule", Primary: rules.Access{PlainHTTP: true, Problem: broken}}
	_, err := ruled(t, rule).Resolve(t.Context(), Source{Ref: ref})
	if source.ReasonOf(err) != source.ReasonInvalidRegistryConfig || source.KindOf(err) != source.Waiting || !strings.Contains(err.Error(), "the rule cannot be used: "+broken.Error()) {
		t.Errorf("got %s: %v", source.ReasonOf(err), err)
	}
	if got := primary.Requests(); len(got) != 0 {
		t.Errorf("it was asked: %v", got)
	}
	push(t, mirror, "app:1", app(t))
	rule.Mirrors = []rules.Mirror{plain(mirror, "")}
	if _, err := ruled(t, rule).Resolve(t.Context(), Source{Ref: ref}); err != nil {
		t.Errorf("the other endpoint was not asked: %v", err)
	}
}
