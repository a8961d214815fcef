// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/health"
)

var update = flag.Bool("update", false, "write golden files")

func example() Tree {
	pod := &Node{Object: "Pod web/web-5d-x", Status: health.InProgress, Message: "container web is starting"}
	set := &Node{Object: "ReplicaSet.apps web/web-5d", Status: health.Current, Children: []*Node{
		{Object: "Pod web/web-5d-a", Status: health.Current}, pod,
	}}
	return Tree{Instance: "web", State: "Activating", Revision: "web-2", Groups: []Group{
		{Name: "namespaces", Objects: []*Node{{Object: "Namespace web", Status: health.Current}}},
		{Name: "workloads", Objects: []*Node{
			{Object: "Deployment.apps web/web", Status: health.InProgress, Message: "1 of 2 replicas are ready", Children: []*Node{set}},
			{Object: "Job.batch web/migrate", Status: health.Failed, Message: "failed"},
		}},
		{Name: "custom", Objects: []*Node{
			{Object: "Web.example.com web/a", Status: health.NotFound, Message: "does not exist"},
			{Object: "Web.example.com web/b", Status: health.Terminating},
			{Object: "Web.example.com web/c", Status: health.Unknown, Message: "you may not read it"},
			{Object: "Web.example.com web/d", Status: health.Current, BelongsTo: "other/web"},
		}},
	}}
}

func TestTreeIsDrawn(t *testing.T) {
	for _, test := range []struct {
		file string
		mode string
	}{{"plain.txt", paint.Never}, {"colour.txt", paint.Always}} {
		t.Run(test.file, func(t *testing.T) {
			var out strings.Builder
			painter := paint.New(test.mode, false, func(string) string { return "" })
			if err := example().Write(&out, "web", painter); err != nil {
				t.Fatal(err)
			}
			golden(t, test.file, out.String())
		})
	}
}

func TestOnlyOwnObjectsAreCounted(t *testing.T) {
	if got, want := example().Count(), (Count{Total: 7, Foreign: 1, Current: 1}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update writes it:\n%s", path, diff)
	}
}
