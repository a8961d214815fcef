// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"rukpak.io/rukpak/provisioner"
)

// asker asks the manager, one question at a time. If the manager is gone, so is the process.
type asker struct {
	mu   sync.Mutex
	line *line
}

func (a *asker) ask(q question) (*answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.line.send(fromProcess{Ask: &q}); err != nil {
		return nil, err
	}
	var said toProcess
	if err := a.line.receive(&said); err != nil {
		return nil, err
	}
	if said.Answer == nil {
		return nil, errors.New("what was said is no answer")
	}
	return said.Answer, said.Answer.Failed.asError()
}

// tree is the content, which the manager reads.
type tree struct{ *asker }

var (
	_ fs.ReadFileFS = tree{}
	_ fs.ReadDirFS  = tree{}
	_ fs.StatFS     = tree{}
)

func (t tree) about(do operation, name string) (*answer, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: string(do), Path: name, Err: fs.ErrInvalid}
	}
	found, err := t.ask(question{Do: do, Path: name})
	if err != nil {
		return nil, &fs.PathError{Op: string(do), Path: name, Err: err}
	}
	return found, nil
}

// Open opens a file or folder. What is in it is read when it is asked for.
func (t tree) Open(name string) (fs.File, error) {
	info, err := t.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &folder{tree: t, name: name, info: info}, nil
	}
	return &file{tree: t, name: name, info: info}, nil
}

// Stat tells of a file or folder.
func (t tree) Stat(name string) (fs.FileInfo, error) {
	found, err := t.about(opStat, name)
	if err != nil {
		return nil, err
	}
	if len(found.Entries) != 1 {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: errors.New("it was not told of")}
	}
	return info{found.Entries[0]}, nil
}

// ReadFile reads a whole file.
func (t tree) ReadFile(name string) ([]byte, error) {
	found, err := t.about(opReadFile, name)
	if err != nil {
		return nil, err
	}
	return found.Data, nil
}

// ReadDir lists a folder.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	found, err := t.about(opReadDir, name)
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, 0, len(found.Entries))
	for _, one := range found.Entries {
		entries = append(entries, fs.FileInfoToDirEntry(info{one}))
	}
	return entries, nil
}

// ReadLink tells where a link leads.
func (t tree) ReadLink(name string) (string, error) {
	found, err := t.about(opReadLink, name)
	if err != nil {
		return "", err
	}
	return string(found.Data), nil
}

// Lstat tells of a file, folder or link, by way of the folder that it is in.
func (t tree) Lstat(name string) (fs.FileInfo, error) {
	if name == "." {
		return t.Stat(name)
	}
	found, err := t.about(opReadDir, path.Dir(name))
	if err != nil {
		return nil, err
	}
	for _, one := range found.Entries {
		if one.Name == path.Base(name) {
			return info{one}, nil
		}
	}
	return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
}

type info struct{ entry }

func (i info) Name() string       { return i.entry.Name }
func (i info) Size() int64        { return i.entry.Size }
func (i info) Mode() fs.FileMode  { return i.entry.Mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.entry.Mode.IsDir() }
func (i info) Sys() any           { return nil }

type file struct {
	tree tree
	name string
	info fs.FileInfo
	data *bytes.Reader
}

// Stat tells of the file.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read reads the whole file at first.
func (f *file) Read(into []byte) (int, error) {
	if f.data == nil {
		data, err := f.tree.ReadFile(f.name)
		if err != nil {
			return 0, err
		}
		f.data = bytes.NewReader(data)
	}
	return f.data.Read(into)
}

// Close does nothing.
func (f *file) Close() error { return nil }

type folder struct {
	tree tree
	name string
	info fs.FileInfo
	read bool
	left []fs.DirEntry
}

// Stat tells of the folder.
func (f *folder) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read fails.
func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.name, Err: errors.New("is a directory")}
}

// Close does nothing.
func (f *folder) Close() error { return nil }

// ReadDir lists the next n entries, or all.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !f.read {
		entries, err := f.tree.ReadDir(f.name)
		if err != nil {
			return nil, err
		}
		f.read, f.left = true, entries
	}
	if n <= 0 {
		n = len(f.left)
	} else if len(f.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.left))
	found := f.left[:n]
	f.left = f.left[n:]
	return found, nil
}

// cluster is the cluster, which the manager reads as the instance's service account.
type cluster struct{ *asker }

var _ provisioner.Reader = cluster{}

// Get reads one object.
func (c cluster) Get(_ context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	found, err := c.objects(question{Do: opGet, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: name})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, errors.New("the answer is not one object")
	}
	return found[0], nil
}

// List reads the objects of a namespace, or of all.
func (c cluster) List(_ context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	return c.objects(question{Do: opList, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: types.NamespacedName{Namespace: namespace}})
}

func (c cluster) objects(q question) ([]*unstructured.Unstructured, error) {
	found, err := c.ask(q)
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	if err := utiljson.Unmarshal(found.Data, &all); err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(all))
	for _, fields := range all {
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return objects, nil
}
