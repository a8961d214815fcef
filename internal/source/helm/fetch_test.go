// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

func TestRealChartsComeFromAClassicRepository(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	charts := map[string][]byte{}
	files := map[string]map[string]string{}
	var lines []string
	for _, version := range []string{"6.5.4", "6.11.2", "6.7.1"} {
		charts[version], files[version] = realChart(t, "podinfo/"+version, "podinfo")
		server.Put("/charts/podinfo-"+version+".tgz", charts[version])
		lines = append(lines, line(version, "charts/podinfo-"+version+".tgz", digest.FromBytes(charts[version])))
	}
	lines = append(lines, line("6.12.0-rc.1", "charts/none.tgz", ""))
	server.Put("/index.yaml", []byte("apiVersion: v1\nentries:\n  podinfo:\n"+strings.Join(lines, "")))
	for wanted, want := range map[string]string{"": "6.11.2", "6.5.4": "6.5.4", "~6.7": "6.7.1", "<6.11": "6.7.1", "=6.5.4": "6.5.4"} {
		server.ForgetRequests()
		src := Source{Repository: server.URL(""), Chart: "podinfo", Version: wanted, Insecure: true}
		pinned, got, err := get(t, New(Options{}).At(src), newStore(t))
		if err != nil {
			t.Errorf("%q: %v", wanted, err)
			continue
		}
		sum := digest.FromBytes(charts[want])
		if diff := cmp.Diff(source.Pinned{Ref: server.URL("/charts/podinfo-" + want + ".tgz@" + sum.String()), Digest: sum, Version: want}, pinned); diff != "" {
			t.Errorf("%q: pinned (-want +got):\n%s", wanted, diff)
		}
		if diff := cmp.Diff(files[want], got); diff != "" {
			t.Errorf("%q: files (-want +got):\n%s", wanted, diff)
		}
		if n := len(server.Requests()); n != 2 {
			t.Errorf("%q: %d requests, want one for the index and one for the chart", wanted, n)
		}
	}
}

func TestRealChartsComeFromARegistry(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	files := map[string]map[string]string{}
	for _, version := range []string{"3.12.2", "3.13.1", "3.13.1+b.7"} {
		var packed []byte
		packed, files[version] = realChart(t, "metrics-server/"+strings.TrimSuffix(version, "+b.7"), "metrics-server")
		image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.helm.config.v1+json"),
			mutate.Addendum{Layer: static.NewLayer(packed, unpack.MediaTypeChart), MediaType: unpack.MediaTypeChart},
			mutate.Addendum{Layer: static.NewLayer([]byte("signature"), "application/vnd.cncf.helm.chart.provenance.v1.prov"), MediaType: "application/vnd.cncf.helm.chart.provenance.v1.prov"})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(registry.Host() + "/charts/metrics-server:" + tagOf(version))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	for wanted, want := range map[string]string{"": "3.13.1", "3.12.2": "3.12.2", "<3.13": "3.12.2", "3.13.1+b.7": "3.13.1+b.7"} {
		store := newStore(t)
		src := oci.Source{Ref: registry.Host() + "/charts/metrics-server", Insecure: true}
		pinned, got, err := get(t, InRegistry(oci.New(store, oci.Options{}), src, wanted), store)
		if err != nil || pinned.Version != want || !strings.HasPrefix(pinned.Ref, src.Ref+"@sha256:") {
			t.Errorf("%q: %+v, %v", wanted, pinned, err)
			continue
		}
		if diff := cmp.Diff(files[want], got); diff != "" {
			t.Errorf("%q: files (-want +got):\n%s", wanted, diff)
		}
	}
	for wanted, reason := range map[string]string{"9.9.9": source.ReasonNotFound, ">=9": source.ReasonNotFound, "newest": source.ReasonInvalidReference} {
		store := newStore(t)
		src := oci.Source{Ref: registry.Host() + "/charts/metrics-server", Insecure: true}
		if _, _, err := get(t, InRegistry(oci.New(store, oci.Options{}), src, wanted), store); source.ReasonOf(err) != reason {
			t.Errorf("%q: %v", wanted, err)
		}
	}
}

func TestWrongRepositoriesAreRefused(t *testing.T) {
	good, bad := simple(t, "1.0.0"), pack(t, "Chart.yaml", "name: app\n", "templates/a.yaml", "a")
	server := webserver.New(t, webserver.Options{})
	server.Put("/app.tgz", good)
	server.Put("/bad.tgz", bad)
	other := digest.FromString("other")
	for name, tc := range map[string]struct {
		index   []byte
		version string
		kind    source.Kind
		reason  string
		want    string
	}{
		"Digest":        {indexOf(line("1.0.0", "app.tgz", other)), "", source.Waiting, source.ReasonContentMismatch, "the source asks for " + other.String()},
		"NoTopFolder":   {indexOf(line("1.0.0", "bad.tgz", "")), "", source.Terminal, source.ReasonUnsafeContent, `entry "Chart.yaml": it is outside the folder of the chart`},
		"NoChart":       {[]byte("entries:\n  b: []\n  a: []\n"), "", source.Waiting, source.ReasonNotFound, `the repository has no chart "app"; it has a, b`},
		"NoVersion":     {indexOf(line("1.0.0", "app.tgz", "")), ">=2", source.Waiting, source.ReasonNotFound, `in the range ">=2"; the highest is 1.0.0`},
		"BadRange":      {indexOf(line("1.0.0", "app.tgz", "")), "newest", source.Terminal, source.ReasonInvalidReference, "not a range"},
		"NoVersions":    {[]byte("entries:\n  app: []\n"), "", source.Waiting, source.ReasonNotFound, "no versions at all"},
		"Syntax":        {[]byte("entries:\n  app:\n  - version: \"1\n"), "", source.Waiting, source.ReasonSourceError, "index.yaml: line"},
		"Type":          {[]byte("entries:\n  app:\n  - version: [1]\n"), "", source.Waiting, source.ReasonSourceError, "index.yaml: line 3"},
		"HTML":          {[]byte("<html>\n<body>hello</body>"), "", source.Waiting, source.ReasonSourceError, "index.yaml:"},
		"NotARepo":      {[]byte("kind: Pod\n"), "", source.Waiting, source.ReasonSourceError, "is this the address of a Helm repository?"},
		"NoURL":         {[]byte("entries:\n  app:\n  - version: 1.0.0\n"), "", source.Waiting, source.ReasonSourceError, "version 1.0.0 has no URL"},
		"BadURL":        {indexOf(line("1.0.0", "http://[", "")), "", source.Waiting, source.ReasonSourceError, "does not parse"},
		"LongURL":       {indexOf(line("1.0.0", strings.Repeat("a", 2000), "")), "", source.Waiting, source.ReasonSourceError, "longer than 1024"},
		"OCI":           {indexOf(line("1.0.0", "oci://registry.example.com/charts/app:1.0.0", "")), "", source.Waiting, source.ReasonSourceError, `set repository to "oci://registry.example.com/charts"`},
		"BadDigest":     {indexOf(line("1.0.0", "app.tgz", "") + "    digest: abc\n"), "", source.Waiting, source.ReasonSourceError, "is not a SHA-256"},
		"ChartGone":     {indexOf(line("1.0.0", "gone.tgz", "")), "", source.Waiting, source.ReasonNotFound, "/gone.tgz"},
		"ToMetadata":    {indexOf(line("1.0.0", "http://169.254.169.254/a", "")), "", source.Waiting, source.ReasonSourceError, "metadata service"},
		"NotAnArchive":  {indexOf(line("1.0.0", "index.yaml", "")), "", source.Terminal, source.ReasonUnsafeContent, "gzip"},
		"Huge":          {make([]byte, 2<<20), "", source.Waiting, source.ReasonLimitExceeded, "index.yaml is larger than 1048576 bytes"},
		"DuplicateName": {[]byte("entries:\n  app: []\n  app: []\n"), "", source.Waiting, source.ReasonSourceError, "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Put("/index.yaml", tc.index)
			src := Source{Repository: server.URL("/"), Chart: "app", Version: tc.version, Insecure: true}
			_, _, err := get(t, New(Options{IndexBytes: 1 << 20}).At(src), newStore(t))
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %s, %s: %v", source.KindOf(err), source.ReasonOf(err), err)
			}
			if !strings.HasPrefix(err.Error(), "helm http") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error must be one line that names the repository: %v", err)
			}
		})
	}
}

func TestFaultsOfRepositoriesAreClassified(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	server.Put("/app.tgz", simple(t, "1.0.0"))
	server.Put("/index.yaml", indexOf(line("1.0.0", "app.tgz", "")))
	src := Source{Repository: server.URL(""), Chart: "app", Insecure: true}
	for name, tc := range map[string]struct {
		action fault.Action
		reason string
	}{
		"Unauthorised": {fault.Status(401), source.ReasonAuthenticationFailed},
		"NotFound":     {fault.Status(404), source.ReasonNotFound},
		"Down":         {fault.Status(500), source.ReasonSourceUnreachable},
		"Cut":          {fault.Truncate(20), source.ReasonSourceUnreachable},
	} {
		server.Faults.Add(fault.Rule{Action: tc.action})
		if _, _, err := get(t, New(Options{}).At(src), newStore(t)); source.ReasonOf(err) != tc.reason {
			t.Errorf("%s: %v", name, err)
		}
		server.Faults.Clear()
	}
}

func TestCredentialsGoToAnotherHostOnlyIfTheSourceSaysSo(t *testing.T) {
	home := webserver.New(t, webserver.Options{User: "ann", Password: "hunter2"})
	other := webserver.New(t, webserver.Options{User: "ann", Password: "hunter2"})
	home.Put("/index.yaml", indexOf(line("1.0.0", other.Put("/app.tgz", simple(t, "1.0.0")), "")))
	src := Source{Repository: home.URL(""), Chart: "app", Insecure: true, Credentials: web.Credentials{Username: "ann", Password: "hunter2"}}
	_, _, err := get(t, New(Options{}).At(src), newStore(t))
	if source.ReasonOf(err) != source.ReasonAuthenticationFailed || !strings.Contains(err.Error(), "were not sent to this one") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	for _, r := range other.Requests() {
		if r.Header.Get("Authorization") != "" {
			t.Error("the other host saw the credentials")
		}
	}
	src.PassCredentials = true
	if _, _, err := get(t, New(Options{}).At(src), newStore(t)); err != nil {
		t.Errorf("with passCredentials: %v", err)
	}
}

func TestAChartIsFetchedAgainFromWhereItIsNow(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	chart := simple(t, "1.0.0")
	sum := digest.FromBytes(chart)
	server.Put("/app.tgz", chart)
	server.Put("/index.yaml", indexOf(line("1.0.0", "app.tgz", sum)))
	src := Source{Repository: server.URL(""), Chart: "app", Insecure: true}
	pinned, _, err := get(t, New(Options{}).At(src), newStore(t))
	if err != nil {
		t.Fatal(err)
	}
	fetch := func() (map[string]string, error) {
		store := newStore(t)
		to := begin(t, store)
		layers, _, err := New(Options{}).At(src).Fetch(t.Context(), pinned, to)
		if err != nil {
			return nil, err
		}
		return filesOf(t, store, to, layers), nil
	}
	server.Put("/moved.tgz", chart)
	server.Put("/app.tgz", []byte("another"))
	server.Put("/index.yaml", indexOf(line("1.0.0", "moved.tgz", sum), line("2.0.0", "app.tgz", "")))
	if got, err := fetch(); err != nil || len(got) != 1 {
		t.Errorf("moved: %v, %v", got, err)
	}
	server.Put("/app.tgz", chart)
	server.Put("/index.yaml", indexOf(line("2.0.0", "other.tgz", "")))
	if got, err := fetch(); err != nil || len(got) != 1 {
		t.Errorf("no longer in the index: %v, %v", got, err)
	}
	server.Put("/app.tgz", simple(t, "1.0.1"))
	if _, err := fetch(); source.ReasonOf(err) != source.ReasonContentMismatch {
		t.Errorf("another chart in its place: %v", err)
	}
}

func TestLookingAgainAtAnUnchangedIndexCostsOneConditionalRequest(t *testing.T) {
	server := webserver.New(t, webserver.Options{})
	chart := simple(t, "1.0.0")
	server.Put("/app.tgz", chart)
	server.Put("/index.yaml", indexOf(line("1.0.0", "app.tgz", digest.FromBytes(chart))))
	src := Source{Repository: server.URL(""), Chart: "app", Insecure: true}
	fetcher, store := New(Options{}), newStore(t)
	first, _, err := get(t, fetcher.At(src), store)
	if err != nil {
		t.Fatal(err)
	}
	server.ForgetRequests()
	second, files, err := get(t, fetcher.At(src), store)
	if err != nil || second != first || len(files) != 1 {
		t.Errorf("%+v, %v", second, err)
	}
	if requests := server.Requests(); len(requests) != 1 || requests[0].Header.Get("If-None-Match") == "" {
		t.Errorf("%+v", requests)
	}
	server.Put("/app2.tgz", simple(t, "1.1.0"))
	server.Put("/index.yaml", indexOf(line("1.0.0", "app.tgz", digest.FromBytes(chart)), line("1.1.0", "app2.tgz", "")))
	if third, _, err := get(t, fetcher.At(src), store); err != nil || third.Version != "1.1.0" {
		t.Errorf("a new version: %+v, %v", third, err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(indexOf(line("1.0.0", "app.tgz", digest.FromString("a")), line("v2.0.0-rc.1", "https://example.com/a", "")), "*")
	f.Add([]byte("entries: {app: [{version: 1.0.0, urls: [a], digest: sha256:abc}]}"), "^1")
	f.Add([]byte("entries: &a\n  app: *a\n"), "1.0.0")
	f.Add([]byte("- &a [*a]\n"), "")
	f.Fuzz(func(t *testing.T, data []byte, wanted string) {
		charts, err := parseIndex(data, "app")
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || len(text) > 1000 {
				t.Errorf("the error is not one short line: %q", text)
			}
			return
		}
		chosen, err := choose(charts, wanted)
		if err != nil {
			return
		}
		if sum, err := chosen.sum(); err == nil && sum != "" && sum.Validate() != nil {
			t.Errorf("%q is no digest", sum)
		}
	})
}
