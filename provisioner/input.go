// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// InputError says what is wrong with content, parameters or configuration. It is final until one of them changes, so
// nothing is tried again.
type InputError struct {
	// File is a slash-separated path in the content, or "parameters" or "config" for these; "" if it concerns all of the
	// content. A file of the content with one of these names is "./config".
	File   string
	Line   int    // in the file, from 1; 0 if it is not known
	Object string // such as "Deployment.apps namespace/name"; "" if it is not known
	Reason string // what is wrong and what to do about it, in one line
}

// Error gives "file:line: object: reason", without what is not known.
func (e *InputError) Error() string {
	var parts []string
	if e.File != "" {
		place := e.File
		if e.Line > 0 {
			place += ":" + strconv.Itoa(e.Line)
		}
		parts = append(parts, place)
	}
	if e.Object != "" {
		parts = append(parts, e.Object)
	}
	return strings.Join(append(parts, e.Reason), ": ")
}

// IsInputError reports whether err is, or wraps, bad input.
func IsInputError(err error) bool {
	var input *InputError
	return errors.As(err, &input)
}

// IsConfigError reports whether err is bad input, and all that is bad is in the configuration.
func IsConfigError(err error) bool {
	faults := InputErrors(err)
	return len(faults) > 0 && !slices.ContainsFunc(faults, func(fault *InputError) bool { return fault.File != "config" })
}

// InputErrors lists what is bad input in err, which may join or wrap several; none if nothing is.
func InputErrors(err error) []*InputError {
	switch err := err.(type) { //nolint:errorlint // what is wrapped is looked at below
	case *InputError:
		return []*InputError{err}
	case interface{ Unwrap() []error }:
		var all []*InputError
		for _, one := range err.Unwrap() {
			all = append(all, InputErrors(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return InputErrors(err.Unwrap())
	}
	return nil
}

// Join makes one error of several faults, always in the same order: by file, line, object and reason, each only once.
// It returns nil if there are none.
func Join(faults []*InputError) error {
	faults = slices.DeleteFunc(slices.Clone(faults), func(e *InputError) bool { return e == nil })
	slices.SortFunc(faults, func(a, b *InputError) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Reason, b.Reason))
	})
	var joined []error
	for i, fault := range faults {
		if i == 0 || *fault != *faults[i-1] {
			joined = append(joined, fault)
		}
	}
	if len(joined) == 1 {
		return joined[0]
	}
	return errors.Join(joined...)
}

// TakesNone is for a provisioner without parameters or configuration: it refuses any field in a JSON object, naming the
// first ones. what is "parameters" or "config".
func TakesNone(id, what string, raw json.RawMessage) error {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return &InputError{File: what, Reason: "is not a JSON object; " + id + " takes none, leave it out"}
	}
	if len(fields) == 0 {
		return nil
	}
	var names []string
	for name := range fields {
		names = append(names, strconv.Quote(name))
	}
	slices.Sort(names)
	if len(names) > 5 {
		names = append(names[:5], "...")
	}
	return &InputError{File: what, Reason: "unknown field " + strings.Join(names, ", ") + ": " + id + " takes none, leave it out"}
}
