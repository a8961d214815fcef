// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// environment keeps git from what the machine's user has set.
func environment() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	}
}

// Repository is a bare repository that a server serves.
type Repository struct {
	Dir string
}

// NewRepository makes an empty repository below a server's root, such as "team/app.git".
func NewRepository(t testing.TB, root, name string) *Repository {
	t.Helper()
	r := &Repository{Dir: filepath.Join(root, name)}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git(t, "init", "--quiet", "--bare", "--initial-branch=main", ".")
	return r
}

// Git runs git in the repository and gives what it prints, without the line break at the end.
func (r *Repository) Git(t testing.TB, args ...string) string {
	t.Helper()
	return r.Pipe(t, nil, args...)
}

// Pipe runs git with something to read.
func (r *Repository) Pipe(t testing.TB, in io.Reader, args ...string) string {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir, command.Stdin = r.Dir, in
	command.Env = append(append(os.Environ(), environment()...), "GIT_DIR="+r.Dir, "GIT_INDEX_FILE="+filepath.Join(r.Dir, "index-of-a-test"))
	var said bytes.Buffer
	command.Stderr = &said
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSuffix(string(printed), "\n")
}

// Commit adds a commit to a branch that has just these files, and gives its name. A path that ends in "*" is
// executable, one in "@" a symbolic link, one in "#" a submodule at the commit that stands for the content.
func (r *Repository) Commit(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	var entries strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		mode, name := "100644", path
		switch path[len(path)-1] {
		case '*':
			mode, name = "100755", path[:len(path)-1]
		case '@':
			mode, name = "120000", path[:len(path)-1]
		case '#':
			mode, name = "160000", path[:len(path)-1]
		}
		object := files[path]
		if mode != "160000" {
			object = r.Object(t, "blob", []byte(files[path]))
		}
		entries.WriteString(mode + " " + object + "\t" + name + "\n")
	}
	r.Git(t, "read-tree", "--empty")
	r.Pipe(t, strings.NewReader(entries.String()), "update-index", "--add", "--index-info")
	return r.CommitTree(t, branch, r.Git(t, "write-tree", "--missing-ok"))
}

// CommitTree adds a commit with this tree to a branch.
func (r *Repository) CommitTree(t testing.TB, branch, tree string) string {
	t.Helper()
	args := []string{"commit-tree", tree, "-m", "a change"}
	if parent := r.Git(t, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch); parent != "" {
		args = append(args, "-p", parent)
	}
	commit := r.Git(t, args...)
	r.Git(t, "update-ref", "refs/heads/"+branch, commit)
	return commit
}

// Object stores an object as it is, be it nonsense, and gives its name.
func (r *Repository) Object(t testing.TB, kind string, data []byte) string {
	t.Helper()
	return r.Pipe(t, bytes.NewReader(data), "hash-object", "-w", "--literally", "-t", kind, "--stdin")
}

// Fill adds a commit with many files of much the same text in 50 folders to a branch: git's own importer makes it.
func (r *Repository) Fill(t testing.TB, branch string, files, size int) {
	t.Helper()
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/%s\ncommitter Test <test@example.com> 0 +0000\ndata 0\n", branch)
	for i := range files {
		text := strings.Repeat(fmt.Sprintf("line of file %d: %x\n", i%100, i*i), size/24)
		fmt.Fprintf(&in, "M 100644 inline d%02d/file-%05d.yaml\ndata %d\n%s\n", i%50, i, len(text), text)
	}
	r.Pipe(t, strings.NewReader(in.String()), "fast-import", "--quiet")
}
