// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resmap"

	"rukpak.io/rukpak/provisioner"
)

// result turns what was built into objects. file is what asked for the build: a Kustomization, or "config".
func result(built resmap.ResMap, file string) (provisioner.Result, error) {
	if built.Size() == 0 {
		return provisioner.Result{}, refuse(file, "the Kustomization builds no object")
	}
	if built.Size() > maxObjects {
		return provisioner.Result{}, refuse(file, "there are more than %d objects: split the bundle", maxObjects)
	}
	var objects []*unstructured.Unstructured
	var faults []*provisioner.InputError
	for _, one := range built.Resources() {
		object := &unstructured.Unstructured{}
		encoded, err := one.MarshalJSON()
		if err == nil {
			err = object.UnmarshalJSON(encoded)
		}
		if err != nil {
			faults = append(faults, &provisioner.InputError{File: file, Object: one.CurId().String(), Reason: oneLine(err.Error())})
			continue
		}
		if fault := provisioner.Check(object.Object); fault != "" {
			faults = append(faults, &provisioner.InputError{File: file, Object: provisioner.Describe(object.Object), Reason: fault})
			continue
		}
		provisioner.Tidy(object)
		objects = append(objects, object)
	}
	if len(faults) > 0 {
		return provisioner.Result{}, provisioner.Join(faults[:min(len(faults), maxFaults)])
	}
	return provisioner.Result{Phases: provisioner.ByKind(objects)}, nil
}

var pathInText = regexp.MustCompile(contentRoot + `(/[^\s'":,]+)?`)

// fault makes an error of the library, which is about the content unless the content could not be read. file is blamed
// unless the text names another.
func (t *tree) fault(err error, file string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return fmt.Errorf("read the content: %w", t.broken)
	}
	text := pathInText.ReplaceAllStringFunc(oneLine(err.Error()), func(found string) string {
		return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(found, contentRoot), "/"), ".")
	})
	return &provisioner.InputError{File: cmp.Or(t.named(text), file), Reason: text}
}

// named is the last file that a text names, by its path or as a Kustomization refers to it: an error of the library goes
// from what was asked for to what is wrong.
func (t *tree) named(text string) string {
	dirs := []string{"."}
	for name := range t.checked {
		dirs = append(dirs, path.Dir(name))
	}
	slices.Sort(dirs)
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" '\":,", r) })
	for _, word := range slices.Backward(words) {
		for _, dir := range dirs {
			name := path.Join(dir, word)
			if info, err := fs.Stat(t.content, name); strings.Contains(word, ".") && err == nil && !info.IsDir() {
				return name
			}
		}
	}
	return ""
}
