// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fakeSetupEnvtest = `#!/bin/sh
echo "$@" > "$ARGS"
mkdir -p "$6/k8s"
for name in etcd kube-apiserver kubectl; do printf '#!/bin/sh\n' > "$6/k8s/$name"; chmod +x "$6/k8s/$name"; done
printf '%s\n' "$6/k8s"
`

func TestSetupEnvtestBringsWhatItHas(t *testing.T) {
	finder := onTheInternet(t, fakeSetupEnvtest)
	dir := cacheDir(t, finder)
	found, err := finder.Find(t.Context(), Etcd, APIServer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Paths{Etcd: filepath.Join(dir, Etcd), APIServer: filepath.Join(dir, APIServer)}, found); diff != "" {
		t.Error(diff)
	}
	asked, err := os.ReadFile(os.Getenv("ARGS"))
	if want := "use 1.2.3 --print path --bin-dir " + dir + "/envtest\n"; err != nil || string(asked) != want {
		t.Errorf("asked for %q (%v), want %q", asked, err, want)
	}
	if _, err := os.Stat(filepath.Join(dir, serversBinary)); err == nil {
		t.Error("built all the same")
	}
}

func TestFailedDownloadIsFollowedByABuild(t *testing.T) {
	finder, said := onTheInternet(t, "#!/bin/sh\nexit 1\n"), &lines{}
	finder.Progress = said
	if _, err := finder.Find(t.Context(), Etcd); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "download failed, building instead: setup-envtest: exit status 1") {
		t.Errorf("said:\n%s", said)
	}
}

// onTheInternet returns a finder that finds a downloader on the PATH and an address that answers.
func onTheInternet(t *testing.T, downloader string) *Finder {
	t.Helper()
	finder, bin := newFinder(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "setup-envtest"), []byte(downloader), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("ARGS", filepath.Join(bin, "args"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	finder.Internet = listener.Addr().String()
	return finder
}

func TestReleasesBringWhatSetupEnvtestLacks(t *testing.T) {
	finder := onTheInternet(t, fakeSetupEnvtest)
	finder.Releases = releaseServer(t, "#!/bin/sh\nprintf real\n", "")
	if _, err := finder.Find(t.Context(), Etcd, ControllerManager); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(cacheDir(t, finder), ControllerManager))
	if want := "#!/bin/sh\nprintf real\n"; err != nil || string(content) != want {
		t.Errorf("got %q, %v", content, err)
	}
	if _, err := os.Stat(filepath.Join(cacheDir(t, finder), serversBinary)); err == nil {
		t.Error("built all the same")
	}
}

func TestReleaseWithAnotherDigestIsNotTaken(t *testing.T) {
	finder, said := onTheInternet(t, fakeSetupEnvtest), &lines{}
	finder.Releases, finder.Progress = releaseServer(t, "cut sh", strings.Repeat("0", 64)), said
	if _, err := finder.Find(t.Context(), Scheduler); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "download failed, building instead: kube-scheduler: sha256 is ") {
		t.Errorf("said:\n%s", said)
	}
	if target, err := os.Readlink(filepath.Join(cacheDir(t, finder), Scheduler)); err != nil || target != serversBinary {
		t.Errorf("got a link to %q (%v), want one to what was built", target, err)
	}
}

// releaseServer serves one content for all programs, and its digest unless another is given.
func releaseServer(t *testing.T, content, sum string) string {
	t.Helper()
	if sum == "" {
		sum = fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	}
	prefix := "/v1.2.3/bin/" + runtime.GOOS + "/" + runtime.GOARCH + "/kube-"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, prefix):
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = fmt.Fprintln(w, sum)
		default:
			_, _ = fmt.Fprint(w, content)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
