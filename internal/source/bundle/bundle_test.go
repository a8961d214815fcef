// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// stage is a store with the content of one Bundle.
type stage struct {
	store *content.Disk
	tree  content.Tree
	now   digest.Digest // what the Bundle holds, "" if there is none
	lost  int
}

func newStage(t *testing.T, entries ...content.Entry) *stage {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{Grace: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &stage{store: store}
	to := s.begin(t)
	layer := content.Layer{Key: content.LayerKey{Digest: digest.FromString("base"), Format: "test"}, Entries: entries}
	for i := range layer.Entries {
		if e := &layer.Entries[i]; e.Kind == content.File {
			if e.Sum, err = to.Session.AddFile(strings.NewReader(e.Path), int64(len(e.Path))); err != nil {
				t.Fatal(err)
			}
			e.Size = int64(len(e.Path))
		}
	}
	if err := to.Session.PutLayer(layer); err != nil {
		t.Fatal(err)
	}
	if s.tree, err = to.Session.PutTree([]content.Layer{layer}); err != nil {
		t.Fatal(err)
	}
	s.now = s.tree.Digest
	to.Session.Close() // else a collection would spare what it wrote
	return s
}

func (s *stage) begin(t *testing.T) source.Destination {
	t.Helper()
	session, err := s.store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return source.Destination{Session: session, Budget: unpack.NewBudget(unpack.Limits{})}
}

func (s *stage) source(subPath string) Source {
	return Source{
		Field: "spec.sources[0]", Namespace: "team-a", Name: "base", SubPath: subPath,
		Content: func(context.Context) (digest.Digest, error) {
			if s.now == "" {
				return "", &source.Error{Kind: source.Waiting, Reason: source.ReasonNotFound, Err: errors.New("there is none")}
			}
			return s.now, nil
		},
		Lost: func() { s.lost++ },
	}
}

var files = []content.Entry{
	{Path: "README.md", Kind: content.File},
	{Path: "deploy/app.yaml", Kind: content.File},
	{Path: "deploy/inside", Kind: content.Link, Target: "app.yaml"},
	{Path: "deploy/run.sh", Kind: content.File, Exec: true},
	{Path: "odd/out", Kind: content.Link, Target: "../README.md"},
}

func TestContentOfAnotherBundleIsTheSameContent(t *testing.T) {
	s := newStage(t, files...)
	to := s.begin(t)
	pinned, err := s.source("").Resolve(t.Context(), to)
	if err != nil || pinned.Digest != s.tree.Digest || pinned.Ref != "bundle/team-a/base@"+s.tree.Digest.String() {
		t.Fatalf("%+v, %v", pinned, err)
	}
	layers, _, err := s.source("").Fetch(t.Context(), pinned, to)
	if err != nil {
		t.Fatal(err)
	}
	if tree, err := to.Session.PutTree(layers); err != nil || tree.Digest != s.tree.Digest {
		t.Errorf("%s, %v; want %s", tree.Digest, err, s.tree.Digest)
	}
}

func TestAFolderOfItIsTheRoot(t *testing.T) {
	s := newStage(t, files...)
	to := s.begin(t)
	pinned, err := s.source("deploy").Resolve(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	layers, _, err := s.source("deploy").Fetch(t.Context(), pinned, to)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range layers[0].Entries {
		names = append(names, e.Path)
	}
	if got := strings.Join(names, " "); got != "app.yaml inside run.sh" || !layers[0].Entries[2].Exec {
		t.Errorf("it holds %s", got)
	}
	for sub, want := range map[string]string{
		"nothing":         `has no folder "nothing"`,
		"README.md":       `has no folder "README.md"`,
		"deploy/app.yaml": `has no folder`,
		"odd":             `the link "out" leads out of the folder "odd"`,
	} {
		_, _, err := s.source(sub).Fetch(t.Context(), pinned, to)
		if source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", sub, err, want)
		}
	}
}

// Digests are no secrets, so a pinned one opens nothing that the named Bundle
// does not have.
func TestADigestAloneOpensNothing(t *testing.T) {
	s := newStage(t, files...)
	pinned := source.Pinned{Digest: s.tree.Digest}
	s.now = digest.FromString("what the Bundle has instead")
	_, _, err := s.source("").Fetch(t.Context(), pinned, s.begin(t))
	if source.ReasonOf(err) != source.ReasonContentMismatch {
		t.Errorf("of another content: %v", err)
	}
	s.now = ""
	if _, _, err := s.source("").Fetch(t.Context(), pinned, s.begin(t)); source.ReasonOf(err) != source.ReasonNotFound {
		t.Errorf("without the Bundle: %v", err)
	}
}

func TestWhatWasTakenOutlivesTheOtherBundle(t *testing.T) {
	s := newStage(t, files...)
	to := s.begin(t)
	pinned, _ := s.source("deploy").Resolve(t.Context(), to)
	layers, _, err := s.source("deploy").Fetch(t.Context(), pinned, to)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := to.Session.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
	to.Session.Close()
	s.now = ""
	if _, err := s.store.Collect(t.Context(), func(d digest.Digest) bool { return d == mine.Digest }); err != nil {
		t.Fatal(err)
	}
	if s.store.Has(s.tree.Digest) || !s.store.Has(mine.Digest) {
		t.Fatal("the collection kept the wrong tree")
	}
	if _, _, err := s.source("deploy").Fetch(t.Context(), pinned, s.begin(t)); err != nil {
		t.Errorf("after the other Bundle is gone: %v", err)
	}
}

func TestLostContentIsAskedForAgain(t *testing.T) {
	s := newStage(t, files...)
	pinned, _ := s.source("").Resolve(t.Context(), s.begin(t))
	gone := digest.FromString("content that the store has lost")
	s.now = gone
	pinned.Digest = gone
	_, _, err := s.source("").Fetch(t.Context(), pinned, s.begin(t))
	if source.KindOf(err) != source.Transient || s.lost != 1 || !strings.Contains(err.Error(), "is fetched again first") {
		t.Errorf("%v, told %d times", err, s.lost)
	}
}
