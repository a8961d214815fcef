// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/provisioner"
)

// phaseCRDs is before all others, as Helm makes the definitions of kinds before it even runs the first hook.
const phaseCRDs = "chart-crds"

// result puts what templates wrote and the folder crds/ into phases.
func (c *loaded) result(w *watch, req provisioner.Request, parameters parameters, written map[string]string, namespace string) (provisioner.Result, error) {
	notes := c.takeNotes(written)
	rendered := &documents{ctx: w.ctx}
	rendered.written(written, w.shown)
	faults := rendered.faults
	var sorted sorting
	faults = append(faults, sorted.sortOut(rendered.found)...)
	defined := c.definitions(w)
	faults = append(faults, defined.faults...)
	sorted.crds = append(defined.found, sorted.crds...)
	faults = append(faults, twice(slices.Concat(sorted.crds, sorted.state), namespace)...)
	if err := w.ctx.Err(); err != nil {
		return provisioner.Result{}, err
	}
	if len(faults) > 0 {
		return provisioner.Result{}, provisioner.Join(faults[:min(len(faults), maxFaults)])
	}
	sorted.runOnly(parameters.Hooks)
	left, err := sorted.defineOnly(w, req, parameters.CRDs, namespace)
	if err != nil {
		return provisioner.Result{}, err
	}
	phases := sorted.all(namespace)
	if len(phases) == 0 {
		if left > 0 {
			return provisioner.Result{}, refuse("parameters", "crds is %s, so that nothing of the chart is left to be made: choose %s, or another chart", parameters.CRDs, crdsCreateReplace)
		}
		return provisioner.Result{}, refuse(path.Join(c.root, chartFile), "the chart renders no object with these values; activating nothing would remove all that is there")
	}
	return provisioner.Result{Phases: phases, Notes: bounded(append(sorted.notes, notes)), Varies: w.variations()}, nil
}

// definitions reads the folders crds/ of the chart and of those in it, whose files are no templates.
func (c *loaded) definitions(w *watch) *documents {
	d := &documents{ctx: w.ctx}
	for _, crd := range c.CRDObjects() {
		shown := c.from[crd.File]
		if shown == "" {
			shown = crd.Filename
		}
		d.text(string(bytes.TrimPrefix(crd.File.Data, byteOrderMark)), shown, "")
	}
	return d
}

func (s *sorting) runOnly(which string) {
	switch which {
	case hooksNone:
		s.hooks = nil
	case hooksNoTests:
		for i := range s.hooks {
			s.hooks[i].on[stepTest] = nil
		}
	}
}

// defineOnly leaves out definitions that the class does not want, and keeps the others in the cluster whatever happens: to
// delete one deletes all objects of its kind. It counts what it leaves out.
func (s *sorting) defineOnly(w *watch, req provisioner.Request, which, namespace string) (left int, err error) {
	all := s.crds
	s.crds = nil
	if which == crdsSkip {
		return len(all), nil
	}
	for _, one := range all {
		if which == crdsCreate && req.Reader != nil {
			there, err := exists(w, req.Reader, one, namespace)
			if err != nil {
				return 0, err
			}
			w.varies[fmt.Sprintf("%s: %s is left out if the cluster has it", one.from, provisioner.Describe(one.Object))] = struct{}{}
			if there {
				left++
				continue
			}
		}
		annotate(one, provisioner.AnnotationPrune, provisioner.PruneDisabled)
		s.crds = append(s.crds, one)
	}
	return left, nil
}

func exists(w *watch, reader provisioner.Reader, one object, namespace string) (bool, error) {
	name := types.NamespacedName{Name: one.GetName()}
	if !isDefinition(one) { // which alone is sure to be in no namespace
		name.Namespace = identityOf(one, namespace).namespace
	}
	_, err := reader.Get(w.ctx, one.GroupVersionKind(), name)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	}
	return false, fmt.Errorf("look for %s: %w", provisioner.Describe(one.Object), err)
}

func isDefinition(o object) bool {
	kind := o.GroupVersionKind()
	return kind.Group == "apiextensions.k8s.io" && kind.Kind == "CustomResourceDefinition"
}

// all puts the phases in order: definitions, hooks before, state, hooks after, and what runs at other times.
func (s *sorting) all(namespace string) []provisioner.Phase {
	var phases []provisioner.Phase
	if len(s.crds) > 0 {
		phases = append(phases, provisioner.Phase{Name: phaseCRDs, Objects: plain(s.crds)})
	}
	phases = append(phases, s.phases(stepBefore, namespace)...)
	// ByKind has to see the definitions, to know which kinds they define.
	defined := map[*unstructured.Unstructured]bool{}
	for _, one := range s.crds {
		defined[one.Unstructured] = true
	}
	for _, phase := range provisioner.ByKind(plain(slices.Concat(s.crds, s.state))) {
		phase.Objects = slices.DeleteFunc(phase.Objects, func(o *unstructured.Unstructured) bool { return defined[o] })
		if len(phase.Objects) > 0 {
			phases = append(phases, phase)
		}
	}
	for at := stepAfter; at < steps; at++ {
		phases = append(phases, s.phases(at, namespace)...)
	}
	return phases
}

func plain(objects []object) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, one := range objects {
		all = append(all, one.Unstructured)
	}
	return all
}

// bounded joins notes and cuts them to what RukPak keeps.
func bounded(notes []string) string {
	text := strings.ToValidUTF8(strings.TrimSpace(strings.Join(notes, "\n")), "")
	if len(text) <= maxNotes {
		return text
	}
	const more = "\n..."
	end := maxNotes - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
