// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/gitserver"
)

func modulesOf(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "[submodule \"%s\"]\n\tpath = %s\n\turl = %s\n", pairs[i], pairs[i], pairs[i+1])
	}
	return b.String()
}

func TestSubmodules(t *testing.T) {
	const password = "secret-password"
	server := gitserver.New(t, gitserver.Options{User: "u", Password: password})
	other := gitserver.New(t, gitserver.Options{})
	deepest := gitserver.NewRepository(t, server.Root, "libs/deepest.git").Commit(t, "main", map[string]string{"z": "deepest"})
	lib := gitserver.NewRepository(t, server.Root, "libs/lib.git")
	libModules := modulesOf("down", "../deepest.git")
	old := lib.Commit(t, "main", map[string]string{"l": "old", "down#": deepest, ".gitmodules": libModules, "link@": "../../top"})
	lib.Commit(t, "main", map[string]string{"l": "new"})
	foreign := gitserver.NewRepository(t, other.Root, "f.git").Commit(t, "main", map[string]string{"f": "foreign"})
	app := gitserver.NewRepository(t, server.Root, "team/app.git")
	modules := modulesOf("third/lib", "../../libs/lib.git", "third/f", other.URL("f.git"))
	app.Commit(t, "main", map[string]string{"top": "t", "third/lib#": old, "third/f#": foreign, ".gitmodules": modules})

	src := insecure(server, "team/app.git")
	src.Credentials = Credentials{Username: "u", Password: password}
	store := newStore(t)
	without, err := try(t, store, New(Options{}), src)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, without, map[string]string{"top": "t", "third/lib/": "", "third/f/": "", ".gitmodules": modules})

	src.Submodules = true
	all := map[string]string{"top": "t", ".gitmodules": modules, "third/lib/l": "old", "third/lib/.gitmodules": libModules, "third/lib/link@": "../../top",
		"third/lib/down/z": "deepest", "third/f/f": "foreign"}
	for range 2 {
		with, err := try(t, store, New(Options{}), src)
		if err != nil {
			t.Fatal(err)
		}
		wantFiles(t, with, all)
		if with.stats.Fetched != 1 {
			t.Error("submodules must be asked for again: whoever may read the repository need not be allowed to read them")
		}
	}
	if len(other.Requests()) == 0 {
		t.Fatal("the submodule on the other server was not fetched")
	}
	for _, request := range other.Requests() {
		if request.Authorization != "" {
			t.Errorf("the other server was sent credentials: %+v", request)
		}
	}

	app.Git(t, "config", "uploadpack.allowFilter", "true")
	src.SubPath = "third"
	in, err := try(t, newStore(t), New(Options{}), src)
	if err == nil {
		t.Fatalf("a link that leaves the directory was taken: %v", in.files)
	}
	wantError(t, err, source.Terminal, source.ReasonUnsafeContent, `entry "lib/link"`, `submodule "lib"`)
}

func TestSubmodulesOfADirectory(t *testing.T) {
	for _, filter := range []string{"true", "false"} {
		server := gitserver.New(t, gitserver.Options{})
		lib := gitserver.NewRepository(t, server.Root, "lib.git").Commit(t, "main", map[string]string{"l": "lib"})
		app := gitserver.NewRepository(t, server.Root, "app.git")
		app.Git(t, "config", "uploadpack.allowFilter", filter)
		app.Commit(t, "main", map[string]string{"dir/a": "a", "dir/lib#": lib, "elsewhere#": strings.Repeat("1", 40), ".gitmodules": modulesOf("dir/lib", "../lib.git")})
		src := insecure(server, "app.git")
		src.SubPath, src.Submodules = "dir", true
		found, err := try(t, newStore(t), New(Options{}), src)
		if err != nil {
			t.Fatal(err)
		}
		wantFiles(t, found, map[string]string{"a": "a", "lib/l": "lib"})
	}
}

func TestSubmodulesThatCannotBeFetched(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	locked := gitserver.New(t, gitserver.Options{User: "u", Password: "p"})
	gitserver.NewRepository(t, locked.Root, "lib.git")
	commit := strings.Repeat("1", 40)
	gitserver.NewRepository(t, server.Root, "lib.git").Commit(t, "main", map[string]string{"l": "x"})
	app := gitserver.NewRepository(t, server.Root, "app.git")
	for name, tc := range map[string]struct {
		modules string
		kind    source.Kind
		reason  string
		want    string
	}{
		"NoModulesFile": {"", source.Terminal, source.ReasonInvalidReference, "has no url for the path"},
		"OtherPath":     {modulesOf("other", "../lib.git"), source.Terminal, source.ReasonInvalidReference, "has no url for the path"},
		"NoURL":         {"[submodule \"lib\"]\npath = lib\n", source.Terminal, source.ReasonInvalidReference, "has no url for the path"},
		"NotAFile":      {"[submodule \"lib", source.Terminal, source.ReasonInvalidReference, "does not parse"},
		"FileURL":       {modulesOf("lib", "file:///etc"), source.Terminal, source.ReasonInvalidReference, "must begin with"},
		"LocalPath":     {modulesOf("lib", "/srv/lib.git"), source.Terminal, source.ReasonInvalidReference, "must begin with"},
		"Option":        {modulesOf("lib", "--upload-pack=touch /tmp/x"), source.Terminal, source.ReasonInvalidReference, "must begin with"},
		"Password":      {modulesOf("lib", "https://u:hunter22@example.com/lib"), source.Terminal, source.ReasonInvalidReference, "no credentials"},
		"OutOfServer":   {modulesOf("lib", "../../.."), source.Terminal, source.ReasonInvalidReference, "leads out of the server"},
		"CommitAbsent":  {modulesOf("lib", "../lib.git"), source.Waiting, source.ReasonNotFound, commit},
		"Absent":        {modulesOf("lib", "../none.git"), source.Waiting, source.ReasonNotFound, "404"},
		"Locked":        {modulesOf("lib", locked.URL("lib.git")), source.Waiting, source.ReasonAuthenticationFailed, "401"},
		"SSH":           {modulesOf("lib", "git@127.0.0.1:lib.git"), source.Waiting, source.ReasonUntrustedServer, "known_hosts"},
		"Metadata":      {modulesOf("lib", "http://169.254.169.254/latest"), source.Waiting, source.ReasonSourceError, "metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := map[string]string{"a": "x", "lib#": commit, ".gitmodules": tc.modules}
			if tc.modules == "" {
				delete(tree, ".gitmodules")
			}
			app.Commit(t, "main", tree)
			src := insecure(server, "app.git")
			src.Submodules = true
			_, err := try(t, newStore(t), New(Options{}), src)
			wantError(t, err, tc.kind, tc.reason, tc.want)
			if name != "NotAFile" {
				wantError(t, err, tc.kind, tc.reason, `submodule "lib"`)
			}
			if err != nil && strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestSubmodulesThatNeverEnd(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	commit := repo.Commit(t, "main", map[string]string{"a": "x"})
	for range maxModuleDepth + 1 { // a commit cannot hold itself, but what is below it can be as deep as one likes
		commit = repo.Commit(t, "main", map[string]string{"d#": commit, ".gitmodules": modulesOf("d", "./")})
	}
	src := insecure(server, "app.git")
	src.Submodules = true
	_, err := try(t, newStore(t), New(Options{}), src)
	wantError(t, err, source.Terminal, source.ReasonLimitExceeded, "nested more than 8 deep")

	tree, modules := map[string]string{}, ""
	for i := range maxModules + 1 {
		path := fmt.Sprintf("m%03d", i)
		tree[path+"#"] = commit
		modules += modulesOf(path, "./")
	}
	tree[".gitmodules"] = modules
	repo.Commit(t, "main", tree)
	_, err = try(t, newStore(t), New(Options{}), src)
	wantError(t, err, source.Terminal, source.ReasonLimitExceeded, "more than 100 submodules")
}
