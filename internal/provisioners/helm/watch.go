// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"text/template"

	"rukpak.io/rukpak/provisioner"
)

// unnamed is the number of a template that is no file of its own.
const unnamed = -1

// watch sees how the templates of one render run, and ends them when they do too much or nobody waits any more.
type watch struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one render
	files   []string        // by number: where templates are in the content
	shown   map[string]string
	running []string // the files of the templates that are running, innermost last
	steps   int      // done
	written int      // bytes
	varies  map[string]struct{}
	nested  map[string]string // texts that became templates, and what they were made
	failed  error             // why the templates were ended
}

func newWatch(ctx context.Context) *watch {
	return &watch{ctx: ctx, shown: map[string]string{}, varies: map[string]struct{}{}, nested: map[string]string{}}
}

// stop ends the templates. Errors and panics of functions do, and go through all templates that are running.
func (w *watch) stop(err error) error {
	if w.failed == nil {
		w.failed = err
	}
	return w.failed
}

func (w *watch) tooMuch(form string, args ...any) error {
	return w.stop(&provisioner.InputError{File: w.file(), Reason: fmt.Sprintf(form, args...)})
}

// file is the one whose template is running.
func (w *watch) file() string {
	if len(w.running) == 0 {
		return ""
	}
	return w.running[len(w.running)-1]
}

// step counts work, and looks whether anybody still waits for it.
func (w *watch) step(count int) error {
	w.steps += count
	if w.steps > maxSteps {
		return w.tooMuch("the templates of the chart do not end: they took %d steps, of which a turn of a loop is one and the use of a named template %d", maxSteps, entering)
	}
	if err := w.ctx.Err(); err != nil {
		return w.stop(err)
	}
	return nil
}

// write counts bytes that are printed.
func (w *watch) write(count int) error {
	if w.written += count; w.written > maxWritten {
		return w.tooMuch("the templates of the chart write more than %d MiB", maxWritten>>20)
	}
	return nil
}

func (w *watch) enter(number, length int) (string, error) {
	file := w.file()
	if number >= 0 {
		file = w.files[number]
	}
	w.running = append(w.running, file)
	if len(w.running) > maxCalls {
		return "", w.tooMuch("more than %d templates run one inside another: does one include itself?", maxCalls)
	}
	if err := w.step(entering); err != nil {
		return "", err
	}
	return "", w.write(length)
}

func (w *watch) leave() string {
	w.running = w.running[:len(w.running)-1]
	return ""
}

func (w *watch) turn(length int) (string, error) {
	if err := w.step(1); err != nil {
		return "", err
	}
	return "", w.write(length)
}

// out sees what is printed and gives it back as it is, also when there is nothing.
func (w *watch) out(value reflect.Value) (reflect.Value, error) {
	if !value.IsValid() {
		return value, nil
	}
	size, err := w.weigh(value)
	if err != nil {
		return value, err
	}
	return value, w.write(size)
}

// nest sees the text that becomes a template, and gives it back with calls in it.
func (w *watch) nest(value reflect.Value) (reflect.Value, error) {
	inner := value
	for inner.IsValid() && inner.Kind() == reflect.Interface {
		inner = inner.Elem()
	}
	if !inner.IsValid() || inner.Kind() != reflect.String {
		return value, nil // tpl says what is wrong with it
	}
	text := inner.String()
	woven, known := w.nested[text]
	if !known {
		var ok bool
		if woven, ok = watched(text, unnamed); !ok {
			return value, w.tooMuch("a template that is made by tpl has more than %d blocks one inside another", maxNesting)
		}
		if len(w.nested) < 1000 {
			w.nested[text] = woven
		}
	}
	return reflect.ValueOf(woven), nil
}

// differs notes that a function was called whose result is not the same each time.
func (w *watch) differs(name string) { w.note("calls " + name) }

func (w *watch) note(what string) { w.varies[w.file()+" "+what] = struct{}{} }

// variations are sorted.
func (w *watch) variations() []string { return slices.Sorted(maps.Keys(w.varies)) }

// calls are the functions that are put into templates.
func (w *watch) calls() template.FuncMap {
	return template.FuncMap{
		callEnter: w.enter, callLeave: w.leave, callStep: w.turn, callOut: w.out, callNested: w.nest,
	}
}
