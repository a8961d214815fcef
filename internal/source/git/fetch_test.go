// SPDX-License-Identifier: Apache-2.0

package git

import (
	"maps"
	"strings"
	"sync"
	"testing"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/gitserver"
	"rukpak.io/rukpak/internal/unpack"
)

func TestEveryWayToChooseACommit(t *testing.T) {
	for name, options := range map[string]gitserver.Options{"Version2": {}, "Version0": {OldProtocol: true}} {
		t.Run(name, func(t *testing.T) {
			server := gitserver.New(t, options)
			repo := gitserver.NewRepository(t, server.Root, "team/app.git")
			commits := map[string]string{}
			for _, version := range []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "2.0.0"} {
				commits[version] = repo.Commit(t, "main", map[string]string{"version": version})
				repo.Git(t, "tag", "v"+version)
			}
			annotated := repo.Commit(t, "side/branch", map[string]string{"version": "annotated"})
			repo.Git(t, "tag", "-a", "-m", "about it", "3.0.0", annotated)
			repo.Git(t, "tag", "v1", commits["1.0.0"])
			repo.Git(t, "tag", "latest", commits["1.0.0"])
			repo.Git(t, "branch", "main-2", commits["1.0.0"])
			repo.Git(t, "tag", "lib/v9.0.0", commits["1.2.0"])
			for _, tc := range []struct {
				about     string
				choose    Source
				version   string
				wantFiles string
			}{
				{"default branch", Source{}, "main", "2.0.0"},
				{"branch", Source{Branch: "side/branch"}, "side/branch", "annotated"},
				{"tag", Source{Tag: "v1.2.0"}, "v1.2.0", "1.2.0"},
				{"annotated tag", Source{Tag: "3.0.0"}, "3.0.0", "annotated"},
				{"range", Source{Semver: ">=1.0.0 <2.0.0"}, "v1.10.0", "1.10.0"},
				{"range of anything", Source{Semver: "*"}, "3.0.0", "annotated"},
				{"range with pre-releases", Source{Semver: ">=1.0.0-0 <2.0.0"}, "v2.0.0-rc.1", "2.0.0-rc.1"},
				{"tilde", Source{Semver: "~1.2"}, "v1.2.0", "1.2.0"},
				{"range of tags with a prefix", Source{Semver: "*", TagPrefix: "lib/"}, "lib/v9.0.0", "1.2.0"},
				{"commit", Source{Commit: annotated}, "", "annotated"},
			} {
				src := tc.choose
				src.URL, src.Insecure = server.URL("team/app.git"), true
				found, err := try(t, newStore(t), New(Options{}), src)
				if err != nil {
					t.Errorf("%s: %v", tc.about, err)
					continue
				}
				wantFiles(t, found, map[string]string{"version": tc.wantFiles})
				if found.pinned.Version != tc.version {
					t.Errorf("%s: version is %q, want %q", tc.about, found.pinned.Version, tc.version)
				}
				if want := server.URL("team/app.git") + "@" + string(found.pinned.Digest); found.pinned.Ref != want || !strings.HasPrefix(string(found.pinned.Digest), "sha1:") {
					t.Errorf("%s: pinned as %+v", tc.about, found.pinned)
				}
			}
		})
	}
}

func TestContentIsWhatTheCommitHolds(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	tree := map[string]string{
		"a.yaml": "kind: A\n", "empty": "", "bin/run*": "#!/bin/sh\n", "dir/deep/er/b.txt": strings.Repeat("b", 100_000), "dir/link@": "deep/er/b.txt",
		".gitattributes": "secret.txt export-ignore\n*.txt text eol=crlf\n", "secret.txt": "line\n", ".gitignore": "*", "dir/.hidden": "x", "with space": "y", "ünï": "z",
	}
	repo.Commit(t, "main", map[string]string{"old": "history"})
	repo.Commit(t, "main", tree)
	found, err := try(t, newStore(t), New(Options{}), insecure(server, "app.git"))
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, found, tree)
	if found.stats.Fetched != 1 || found.stats.Layers != 1 || found.stats.Bytes == 0 || found.stats.Bytes > 20_000 {
		t.Errorf("stats: %+v", found.stats)
	}
}

func TestOnlyTheChosenDirectoryCounts(t *testing.T) {
	for name, filter := range map[string]string{"ServerThatLeavesFilesOut": "true", "ServerThatGivesAll": "false"} {
		t.Run(name, func(t *testing.T) {
			server := gitserver.New(t, gitserver.Options{})
			repo := gitserver.NewRepository(t, server.Root, "mono.git")
			repo.Git(t, "config", "uploadpack.allowFilter", filter)
			repo.Commit(t, "main", map[string]string{
				"apps/one/a.yaml": "a", "apps/one/sub/b.yaml": "b", "apps/two/c.yaml": "c",
				"test/out@": "/etc/passwd", "test/up@": "../../../x", "huge": noise(300_000), "lfs": lfsPrefix + "v1\noid sha256:1\nsize 1\n",
			})
			src := insecure(server, "mono.git")
			src.SubPath = "apps/one"
			store := newStore(t)
			found, err := try(t, store, New(Options{}), src)
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, found, map[string]string{"a.yaml": "a", "sub/b.yaml": "b"})
			if left := found.stats.Bytes < 10_000; left != (filter == "true") {
				t.Errorf("%d bytes were fetched", found.stats.Bytes)
			}
			src.SubPath = "apps/two" // of the same commit: another layer
			found, err = try(t, store, New(Options{}), src)
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, found, map[string]string{"c.yaml": "c"})
			for directory, want := range map[string]string{
				"apps/three": "is not in the commit", "huge": `"huge" is a file`, "test/out": "is a symbolic link", "apps/one/a.yaml/x": "is a file",
			} {
				src.SubPath = directory
				_, err := try(t, store, New(Options{}), src)
				wantError(t, err, source.Terminal, source.ReasonNotFound, want, directory)
			}
		})
	}
}

// noise does not compress.
func noise(size int) string {
	var b strings.Builder
	state := uint64(1)
	for b.Len() < size {
		state = state*6364136223846793005 + 1442695040888963407
		b.WriteByte(byte(state >> 56))
	}
	return b.String()
}

func TestDeltasAreApplied(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	tree := map[string]string{}
	text := noise(40_000)
	for i := range 60 {
		text = text[:i*500] + "changed here" + text[i*500+7:]
		tree["files/"+strings.Repeat("x", i+1)] = text
	}
	large := noise(3 << 20) // its base is not held in memory
	tree["large1"], tree["large2"], tree["large3"] = large, "before"+large, large+"after"
	repo.Commit(t, "main", tree)
	repo.Git(t, "repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=100")
	found, err := try(t, newStore(t), New(Options{}), insecure(server, "app.git"))
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(found.files, tree) {
		t.Error("files differ")
	}
	if found.stats.Bytes > 4<<20 {
		t.Errorf("%d bytes were fetched: git has made no deltas, so this test shows nothing", found.stats.Bytes)
	}
}

func TestAMovedTagDoesNotChangeWhatWasPinned(t *testing.T) {
	for name, options := range map[string]gitserver.Options{"Version2": {}, "Version0": {OldProtocol: true}} {
		t.Run(name, func(t *testing.T) {
			server := gitserver.New(t, options)
			repo := gitserver.NewRepository(t, server.Root, "app.git")
			repo.Commit(t, "main", map[string]string{"a": "first"})
			repo.Git(t, "tag", "v1", "main")
			if options.OldProtocol {
				repo.Git(t, "config", "uploadpack.allowReachableSHA1InWant", "true")
			}
			src := insecure(server, "app.git")
			src.Tag = "v1"
			store := newStore(t)
			fetcher := New(Options{})
			pinned, err := fetcher.At(src).Resolve(t.Context(), destination(t, store, unpack.Limits{}))
			if err != nil {
				t.Fatal(err)
			}
			repo.Commit(t, "main", map[string]string{"a": "second"})
			repo.Git(t, "tag", "-f", "v1", "main")
			found, err := tryPinned(t, store, fetcher, src, pinned, unpack.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, found, map[string]string{"a": "first"})
		})
	}
}

func TestACommitThatIsGoneIsSaidToBe(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	repo.Commit(t, "main", map[string]string{"a": "first"})
	src := insecure(server, "app.git")
	fetcher := New(Options{})
	pinned, err := fetcher.At(src).Resolve(t.Context(), destination(t, newStore(t), unpack.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	repo.Git(t, "update-ref", "-d", "refs/heads/main")
	repo.Commit(t, "main", map[string]string{"a": "rewritten"})
	repo.Git(t, "gc", "-q", "--prune=now")
	_, err = tryPinned(t, newStore(t), fetcher, src, pinned, unpack.Limits{})
	wantError(t, err, source.Waiting, source.ReasonNotFound, "does not give the commit", "force-push", strings.TrimPrefix(string(pinned.Digest), "sha1:"))
}

func TestAnOldServerGivesOnlyWhatABranchPointsAt(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{OldProtocol: true})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	first := repo.Commit(t, "main", map[string]string{"a": "first"})
	repo.Commit(t, "main", map[string]string{"a": "second"})
	src := insecure(server, "app.git")
	src.Commit = first
	_, err := try(t, newStore(t), New(Options{}), src)
	wantError(t, err, source.Waiting, source.ReasonNotFound, "no branch or tag points at it", "allowReachableSHA1InWant")
}

func TestTheStoreIsUsedOnlyByWhoMayRead(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{User: "u", Password: "right-password"})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	commit := repo.Commit(t, "main", map[string]string{"a": "x"})
	src := insecure(server, "app.git")
	src.Commit, src.Credentials = commit, Credentials{Username: "u", Password: "right-password"}
	store := newStore(t)
	if _, err := try(t, store, New(Options{}), src); err != nil {
		t.Fatal(err)
	}
	server.ForgetRequests()
	again, err := try(t, store, New(Options{}), src)
	if err != nil {
		t.Fatal(err)
	}
	if requests := server.Requests(); len(requests) != 1 || again.stats.Fetched != 0 || again.stats.Bytes != 0 {
		t.Errorf("the second time took %d requests: %v, %+v", len(requests), requests, again.stats)
	}
	src.Credentials = Credentials{}
	_, err = try(t, store, New(Options{}), src)
	wantError(t, err, source.Waiting, source.ReasonAuthenticationFailed, "401")
	other := gitserver.New(t, gitserver.Options{})
	gitserver.NewRepository(t, other.Root, "app.git")
	src.URL = other.URL("app.git")
	_, err = try(t, store, New(Options{}), src)
	wantError(t, err, source.Waiting, source.ReasonNotFound, commit)
}

func TestResolvingFetchesNoContent(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	commit := repo.Commit(t, "main", map[string]string{"a": noise(500_000)})
	resolve := func(src Source) []gitserver.Request {
		t.Helper()
		server.ForgetRequests()
		if _, err := New(Options{}).At(src).Resolve(t.Context(), destination(t, newStore(t), unpack.Limits{})); err != nil {
			t.Fatal(err)
		}
		return server.Requests()
	}
	src := insecure(server, "app.git")
	if seen := resolve(src); len(seen) != 2 || seen[0].Path != "/app.git/info/refs" || seen[1].Path != "/app.git/git-upload-pack" {
		t.Errorf("a branch takes the requests %v", seen)
	}
	server.Faults.Add(fault.Rule{Path: packs, Action: fault.Truncate(1000)}) // a list of references is shorter than that
	resolve(src)
	src.Commit = commit
	if seen := resolve(src); len(seen) != 0 {
		t.Errorf("a commit takes the requests %v", seen)
	}
}

func TestOfSeveralFetchesOfACommitOneDoesTheWork(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	src := insecure(server, "app.git")
	src.Commit = repo.Commit(t, "main", map[string]string{"a": noise(100_000), "b/c": "x"})
	store, fetcher := newStore(t), New(Options{})
	var all sync.WaitGroup
	fetched := make([]int, 6)
	for i := range fetched {
		to := destination(t, store, unpack.Limits{})
		all.Go(func() {
			at := fetcher.At(src)
			pinned, err := at.Resolve(t.Context(), to)
			if err != nil {
				t.Error(err)
				return
			}
			_, stats, err := at.Fetch(t.Context(), pinned, to)
			if err != nil {
				t.Error(err)
			}
			fetched[i] = stats.Fetched
		})
	}
	all.Wait()
	sum := 0
	for _, n := range fetched {
		sum += n
	}
	if sum != 1 {
		t.Errorf("%v fetched it", fetched)
	}
	posts := 0
	for _, request := range server.Requests() {
		if request.Method == "POST" {
			posts++
		}
	}
	if posts != 1 {
		t.Errorf("%d packs were asked for", posts)
	}
}
