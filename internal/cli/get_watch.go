// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/table"
)

// follow prints what is there, then each change, until the user has seen enough
// or the API server ends the watch. A watch without a version begins with all
// that is there.
func (v *getVerb) follow(ctx context.Context, k kind, names []string) error {
	cluster, namespace, err := v.place()
	if err != nil {
		return err
	}
	name := ""
	if len(names) == 1 {
		name = names[0]
	}
	options, err := v.listOptions(namespace, name)
	if err != nil {
		return err
	}
	events, err := cluster.Watch(ctx, k.list(), options)
	if err != nil {
		return err
	}
	defer events.Stop()
	printer := &watchPrinter{getVerb: v, kind: k}
	for event := range events.ResultChan() {
		if err := printer.event(event); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// watchPrinter prints rows as they come; a column grows when it must, and never
// shrinks, since what is printed cannot be changed.
type watchPrinter struct {
	*getVerb
	kind   kind
	widths []int
	begun  bool
}

func (p *watchPrinter) event(event watch.Event) error {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		return p.object(event.Object.(client.Object))
	case watch.Error:
		return fmt.Errorf("the watch ended: %w", apierrors.FromObject(event.Object))
	case watch.Bookmark:
	}
	return nil
}

func (p *watchPrinter) object(object client.Object) error {
	if !p.output.forPeople() {
		if p.begun && p.output.format == formatYAML {
			p.print("---")
		}
		p.begun = true
		return p.getVerb.object(object, p.output.format, "")
	}
	rows := p.rows()
	cells := rows.row(object)
	shown := table.Table{}
	if !p.begun {
		p.begun = true
		p.widths = make([]int, len(cells))
		titles := rows.titles(p.kind)
		p.grow(titles)
		p.grow(cells)
		shown.Add(p.padded(titles)...)
	}
	p.grow(cells)
	shown.Add(p.padded(cells)...)
	return shown.Write(p.Out)
}

func (p *watchPrinter) grow(cells []string) {
	for i, cell := range cells {
		p.widths[i] = max(p.widths[i], paint.Width(cell), 1)
	}
}

func (p *watchPrinter) padded(cells []string) []string {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		shown[i] = cell + strings.Repeat(" ", p.widths[i]-paint.Width(cell))
	}
	return shown
}
