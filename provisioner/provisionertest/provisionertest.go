// SPDX-License-Identifier: Apache-2.0

// Package provisionertest checks that a Provisioner keeps the contract of package provisioner. It stands beside the flow
// (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch), in the tests of
// everything that implements Render:
//
//	func TestConformance(t *testing.T) {
//		provisionertest.Run(t, provisionertest.Subject{
//			Provisioner: mine.New(),
//			Good:        []provisionertest.Case{{Name: "small", Content: os.DirFS("testdata/small")}},
//			Bad:         []provisionertest.Case{{Name: "syntax", Content: os.DirFS("testdata/syntax")}},
//		})
//	}
package provisionertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"rukpak.io/rukpak/provisioner"
)

// Subject is what is tested.
type Subject struct {
	Provisioner provisioner.Provisioner
	// Good cases render. At least one is needed.
	Good []Case
	// Bad cases are refused by Render or by Validate. At least one is needed.
	Bad []Case
	// Network declares that the provisioner reaches the network. Without it, whatever goes out by net/http or asks for
	// the address of a host is an error.
	Network bool
}

// Case is one input.
type Case struct {
	Name       string
	Content    fs.FS
	Parameters json.RawMessage
	Config     json.RawMessage
	Cluster    provisioner.Cluster
	Reader     provisioner.Reader
	// File is where a bad case is at fault: the error has to name it. "" asks for any file, or for "parameters" or
	// "config".
	File string
	// Whole says that a bad case is at fault as a whole, so that no file need be named.
	Whole bool
}

func (c Case) request(content fs.FS) provisioner.Request {
	return provisioner.Request{
		Instance: types.NamespacedName{Namespace: "conformance", Name: "subject"},
		Content:  content, Parameters: bytes.Clone(c.Parameters), Config: bytes.Clone(c.Config),
		Revision: 1, Cluster: c.Cluster, Reader: c.Reader,
	}
}

// patience is how long a call may take after its context has ended.
const patience = 10 * time.Second

// Run checks everything, each in a subtest.
func Run(t *testing.T, s Subject) {
	t.Helper()
	if len(s.Good) == 0 || len(s.Bad) == 0 {
		t.Fatal("a subject needs at least one good and one bad case")
	}
	if !s.Network {
		forbidNetwork(t)
	}
	t.Run("ID", func(t *testing.T) {
		if faults := validation.IsDNS1123Subdomain(s.Provisioner.ID()); len(faults) > 0 {
			t.Errorf("%q is no DNS name: %v", s.Provisioner.ID(), faults)
		}
	})
	for _, c := range s.Good {
		t.Run("Good/"+c.Name, func(t *testing.T) { s.good(t, c) })
	}
	for _, c := range s.Bad {
		t.Run("Bad/"+c.Name, func(t *testing.T) { s.bad(t, c) })
	}
	t.Run("EmptyContent", func(t *testing.T) { s.bad(t, Case{Content: fstest.MapFS{}, Whole: true}) })
	t.Run("UnreadableContent", s.unreadable)
	t.Run("Cancelled", s.cancelled)
	t.Run("RandomBytes", s.random)
}

func (s Subject) good(t *testing.T, c Case) {
	watched := &watchedFS{inner: c.Content}
	if err := s.Provisioner.Validate(t.Context(), watched, c.Parameters); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	if err := s.Provisioner.Validate(t.Context(), nil, c.Parameters); err != nil {
		t.Errorf("Validate without content: %v", err)
	}
	req := c.request(watched)
	first, err := s.Provisioner.Render(t.Context(), req)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	checkResult(t, first)
	if !bytes.Equal(req.Parameters, c.Parameters) || !bytes.Equal(req.Config, c.Config) {
		t.Error("Render changed the parameters or the configuration of its request")
	}
	want := encode(t, first)
	spoil(first) // a result belongs to the caller: one that the provisioner keeps would come back spoilt
	results := make(chan []byte, 4)
	for range cap(results) {
		go func() {
			again, err := s.Provisioner.Render(t.Context(), c.request(c.Content))
			if err != nil {
				t.Errorf("Render once more: %v", err)
			}
			results <- encode(t, again)
		}()
	}
	var other []byte
	for range cap(results) { // all of them: none may report to a test that has ended
		if got := <-results; !bytes.Equal(want, got) {
			other = got
		}
	}
	if other != nil && len(first.Varies) == 0 {
		t.Errorf("the same request renders to other bytes, and Varies does not say so:\nfirst %s\nthen  %s", want, other)
	}
}

// checkResult checks what plan and activation rely on.
func checkResult(t *testing.T, result provisioner.Result) {
	t.Helper()
	if err := result.Check(); err != nil {
		t.Errorf("the result breaks the contract: %v", err)
	}
}

func encode(t *testing.T, result provisioner.Result) []byte {
	encoded, err := json.Marshal(result)
	if err != nil {
		t.Errorf("the result cannot be written as JSON: %v", err)
	}
	return encoded
}

func spoil(result provisioner.Result) {
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			unstructured.RemoveNestedField(object.Object, "metadata")
			object.Object["spoilt"] = true
		}
	}
}

func (s Subject) bad(t *testing.T, c Case) {
	err := s.Provisioner.Validate(t.Context(), c.Content, c.Parameters)
	if err == nil {
		var result provisioner.Result
		if result, err = s.Provisioner.Render(t.Context(), c.request(c.Content)); err == nil {
			t.Fatalf("renders to %s", encode(t, result))
		}
	}
	var fault *provisioner.InputError
	switch {
	case !errors.As(err, &fault):
		t.Errorf("is refused with a %T, which is no bad input: %v", err, err)
	case fault.Reason == "":
		t.Errorf("gives no reason: %+v", fault)
	case !c.Whole && (fault.File == "" || c.File != "" && fault.File != c.File):
		t.Errorf("names file %q, want %q: %v", fault.File, c.File, err)
	}
	again := s.Provisioner.Validate(t.Context(), c.Content, c.Parameters)
	if again == nil {
		_, again = s.Provisioner.Render(t.Context(), c.request(c.Content))
	}
	if again == nil || again.Error() != err.Error() {
		t.Errorf("the same input is refused with other words:\nfirst %v\nthen  %v", err, again)
	}
}

var errUnreadable = errors.New("the store is broken")

type unreadableFS struct {
	fs.FS
	asked bool
}

func (f *unreadableFS) Open(name string) (fs.File, error) {
	if info, err := fs.Stat(f.FS, name); err == nil && info.IsDir() {
		return f.FS.Open(name)
	}
	f.asked = true
	return nil, &fs.PathError{Op: "open", Path: name, Err: errUnreadable}
}

// unreadable checks that a fault of the store is not blamed on the content, since that would be final.
func (s Subject) unreadable(t *testing.T) {
	c := s.Good[0]
	content := &unreadableFS{FS: c.Content}
	_, err := s.Provisioner.Render(t.Context(), c.request(content))
	if provisioner.IsInputError(err) || err == nil && content.asked {
		t.Errorf("files cannot be read: got %v, want an error that is no bad input", err)
	}
}

func (s Subject) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	started := time.Now()
	_, err := s.Provisioner.Render(ctx, s.Good[0].request(s.Good[0].Content))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an error that wraps the context's", err)
	}
	if took := time.Since(started); took > patience {
		t.Errorf("took %s after the context had ended", took)
	}
}

// random feeds files with random bytes, and good files with random changes. All that is asked for is that nothing panics
// or takes long, and that what renders keeps the contract.
func (s Subject) random(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same on every run, so that failures repeat
	for range 200 {
		c := s.Good[source.IntN(len(s.Good))]
		content := distort(t, source, c.Content)
		result, err := s.Provisioner.Render(t.Context(), c.request(content))
		if err == nil {
			checkResult(t, result)
		}
	}
}

// distort copies a tree, and changes one of its files.
func distort(t *testing.T, source *rand.Rand, content fs.FS) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	var names []string
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(content, name)
		files[name], names = &fstest.MapFile{Data: bytes.Clone(data)}, append(names, name)
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("a good case cannot be read, or has no files: %v", err)
	}
	file := files[names[source.IntN(len(names))]]
	if source.IntN(3) == 0 || len(file.Data) == 0 {
		file.Data = make([]byte, source.IntN(500))
		for i := range file.Data {
			file.Data[i] = byte(source.UintN(256))
		}
		return files
	}
	for range 1 + source.IntN(5) {
		file.Data[source.IntN(len(file.Data))] = byte(source.UintN(256))
	}
	file.Data = file.Data[:1+source.IntN(len(file.Data))]
	return files
}

// watchedFS hides whatever else a file system can do, such as to be written to.
type watchedFS struct{ inner fs.FS }

// Open opens a file for reading, which is all that it can be used for.
func (f *watchedFS) Open(name string) (fs.File, error) {
	file, err := f.inner.Open(name)
	if err != nil {
		return nil, err
	}
	if dir, ok := file.(fs.ReadDirFile); ok {
		return readOnlyDir{dir}, nil
	}
	return readOnlyFile{file}, nil
}

type readOnlyFile struct{ fs.File }

type readOnlyDir struct{ fs.ReadDirFile }
