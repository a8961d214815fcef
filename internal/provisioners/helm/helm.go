// SPDX-License-Identifier: Apache-2.0

// Package helm is the provisioner "helm.rukpak.io": content that is a Helm chart. What it renders is what `helm template` of
// the library's version renders from the same chart and values.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is
// one of those that implement provisioner.Render.
//
// # How it renders
//
// The chart is read from the content into memory within limits (load.go). Its templates are watched (watch.go): calls are
// put into them that end a render whose context has ended or that does too much, since text/template knows no limits. Then
// Helm's engine runs them, with some functions replaced (functions.go): those that would reach the network or the machine,
// those whose result is not the same each time, which are reported, and those whose size has to be bounded. What comes out
// becomes objects (documents.go), tasks (hooks.go) and definitions of kinds (crds.go).
//
// The values are the configuration of the instance; all else is in the parameters of the class (parameters.go).
package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"rukpak.io/rukpak/provisioner"
)

// ID is the name of this provisioner.
const ID = "helm.rukpak.io"

// Limits on what one chart may make this process do. They bound memory and time, not what is useful.
const (
	maxFiles   = 10_000         // of a chart, those of its subcharts included
	maxBytes   = 64 << 20       // of these files
	maxCharts  = 200            // in one chart
	maxLevels  = 16             // of charts in charts
	maxDepth   = 40             // of folders
	maxObjects = 50_000         //
	maxFaults  = 20             // that are told at once
	maxNotes   = 4096           // bytes
	maxSteps   = 500_000        // a turn of a loop is one, the use of a named template is entering, a key or a password is dear
	maxCalls   = 1_000          // templates that are running one inside another
	maxNesting = 500            // blocks one inside another in a template
	maxWritten = 128 << 20      // bytes, each as often as it is handed from one template to another
	maxText    = 16 << 20       // bytes of one text, and of what one template renders
	maxOutput  = 64 << 20       // bytes that all templates render
	maxList    = 1_000_000      // numbers that a function lists
	maxParts   = 1_000_000      // values in a value that is written as text
	maxInside  = 1_000          // values one inside another in such a value
	entering   = 5              // steps
	dear       = maxSteps / 100 // steps
)

// Provisioner renders charts. It keeps nothing between calls.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

var _ provisioner.Provisioner = (*Provisioner)(nil)

// ID returns "helm.rukpak.io".
func (*Provisioner) ID() string { return ID }

// Validate checks the parameters and, unless content is nil, that it holds a chart that is whole.
func (*Provisioner) Validate(ctx context.Context, content fs.FS, raw json.RawMessage) error {
	parameters, err := parseParameters(raw)
	if err != nil || content == nil {
		return err
	}
	_, err = within(ctx, func() (*loaded, error) { return load(ctx, content, parameters) })
	return err
}

// Render runs the templates of the chart.
func (*Provisioner) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	parameters, err := parseParameters(req.Parameters)
	if err != nil {
		return provisioner.Result{}, err
	}
	values, err := parseConfig(req.Config)
	if err != nil {
		return provisioner.Result{}, err
	}
	return within(ctx, func() (provisioner.Result, error) {
		chart, err := load(ctx, req.Content, parameters)
		if err != nil {
			return provisioner.Result{}, err
		}
		return render(ctx, req, parameters, chart, values)
	})
}

// within lets whoever waits go when its context ends, even if a library takes longer to notice, and turns panics into errors.
func within[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := make(chan outcome, 1)
	go func() {
		var end outcome
		defer func() {
			if cause := recover(); cause != nil {
				end.err = &provisioner.InputError{Reason: oneLine(fmt.Sprintf("helm cannot cope with the content: %v", cause))}
			}
			done <- end
		}()
		end.result, end.err = work()
	}()
	select {
	case end := <-done:
		if err := ctx.Err(); end.err != nil && err != nil && !errors.Is(end.err, err) {
			return none, fmt.Errorf("%w: %w", err, end.err)
		}
		return end.result, end.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func refuse(file, form string, args ...any) *provisioner.InputError {
	return &provisioner.InputError{File: file, Reason: fmt.Sprintf(form, args...)}
}

// oneLine joins the lines of a library's text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
