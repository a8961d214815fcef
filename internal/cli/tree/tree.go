// SPDX-License-Identifier: Apache-2.0

// Package tree draws the objects of an instance with their health: by phase, and
// below each what it made in turn, such as ReplicaSets and Pods. It stands at the
// end of RukPak's flow, where people look at what watch sees, and does no I/O but
// writing; package cli fills it.
package tree

import (
	"fmt"
	"io"

	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/health"
)

// Tree is all objects of an instance.
type Tree struct {
	Instance string  `json:"instance"`
	State    string  `json:"state"`
	Revision string  `json:"revision,omitempty"`
	Groups   []Group `json:"groups"`
}

// Group is a phase, or a kind where the phases are not known.
type Group struct {
	Name    string  `json:"name"`
	Objects []*Node `json:"objects"`
}

// Node is one object. Its children are what it made, by owner reference.
type Node struct {
	Object   string        `json:"object"` // "Kind.group namespace/name"
	Status   health.Status `json:"status"`
	Message  string        `json:"message,omitempty"`
	Children []*Node       `json:"children,omitempty"`
	// BelongsTo says whose an object is that is not the instance's, "" for its own.
	BelongsTo string `json:"belongsTo,omitempty"`
}

// Count is how many objects there are; children are not counted.
type Count struct {
	Total   int // that there should be
	Foreign int // that are somebody else's
	Current int // of its own that are as they should be
}

// Count counts.
func (t Tree) Count() Count {
	var c Count
	for _, group := range t.Groups {
		for _, node := range group.Objects {
			c.Total++
			switch {
			case node.BelongsTo != "":
				c.Foreign++
			case node.Status == health.Current:
				c.Current++
			}
		}
	}
	return c
}

// Mark is one sign for a status.
func Mark(status health.Status) string {
	switch status {
	case health.Current:
		return "✓"
	case health.InProgress:
		return "…"
	case health.Failed:
		return "✗"
	case health.Terminating:
		return "⌫"
	case health.NotFound:
		return "○"
	case health.Unknown:
	}
	return "?"
}

// Write draws the groups below a title.
func (t Tree) Write(w io.Writer, title string, painter paint.Painter) error {
	d := drawing{out: w, paint: painter}
	d.line("", title)
	for i, group := range t.Groups {
		last := i == len(t.Groups)-1
		d.line(branch(last), painter.Bold(group.Name))
		d.nodes(indent("", last), group.Objects)
	}
	return d.err
}

type drawing struct {
	out   io.Writer
	paint paint.Painter
	err   error
}

func (d *drawing) line(prefix, text string) {
	if d.err == nil {
		_, d.err = fmt.Fprintln(d.out, d.paint.Faint(prefix)+text)
	}
}

func (d *drawing) nodes(prefix string, nodes []*Node) {
	for i, node := range nodes {
		last := i == len(nodes)-1
		d.line(prefix+branch(last), d.text(node))
		d.nodes(indent(prefix, last), node.Children)
	}
}

func (d *drawing) text(node *Node) string {
	name := paint.Clean(node.Object)
	text := Mark(node.Status) + " " + name
	if node.BelongsTo != "" {
		return d.paint.Bad("! "+name) + "  belongs to " + paint.Clean(node.BelongsTo)
	}
	switch node.Status {
	case health.Current:
		text = d.paint.Good(Mark(node.Status)) + " " + name
	case health.InProgress, health.Terminating:
		text = d.paint.Busy(text)
	case health.Failed, health.NotFound, health.Unknown:
		text = d.paint.Bad(text)
	}
	if node.Status != health.Current {
		text += "  " + string(node.Status)
		if node.Message != "" {
			text += ": " + paint.Clean(node.Message)
		}
	}
	return text
}

func branch(last bool) string {
	if last {
		return "└─ "
	}
	return "├─ "
}

func indent(prefix string, last bool) string {
	if last {
		return prefix + "   "
	}
	return prefix + "│  "
}
