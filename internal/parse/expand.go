// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// ExpansionError says what is wrong with the aliases of a text. It quotes nothing of it.
type ExpansionError struct{ reason string }

// Error gives what is wrong.
func (e *ExpansionError) Error() string { return e.reason }

// Expands says what is wrong with a text that another reader of YAML is to read in this process, or nil: its aliases must not
// make far more of it than it is. Other readers count aliases and not what they stand for, so that a text of a mebibyte may
// become terabytes. It is ErrDeep or an
// *ExpansionError, or about YAML that this cannot read.
func Expands(text []byte) error {
	if err := Deep(text); err != nil {
		return err
	}
	if !bytes.ContainsRune(text, '&') || !bytes.ContainsRune(text, '*') {
		return nil
	}
	if structure(text) > MaxStructure {
		return &ExpansionError{fmt.Sprintf("it has aliases and more than %d values", MaxStructure)}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		sizes := expansion{known: map[*yaml.Node]int{}}
		if size := sizes.of(&root, 0); sizes.circle {
			return &ExpansionError{"an alias stands for something that contains it, or its values are too deep"}
		} else if size > maxExpanded+nodeSize*structure(text)+len(text) {
			return &ExpansionError{fmt.Sprintf("aliases make it larger by more than %d MiB", maxExpanded>>20)}
		}
	}
}

// nodeSize is what a value takes beside its text, about.
const nodeSize = 16

// expansion measures what nodes become when aliases are replaced by what they stand for. Each node is looked at once.
type expansion struct {
	known  map[*yaml.Node]int // of anchors; -1 while it is measured
	circle bool
}

func (e *expansion) of(node *yaml.Node, depth int) int {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node == nil || depth > 2*maxDepth || e.known[node] < 0 {
		e.circle = true
		return 0
	}
	if size, measured := e.known[node]; measured {
		return size
	}
	if node.Anchor != "" {
		e.known[node] = -1
	}
	const most = 1 << 40
	size := nodeSize + len(node.Value)
	for _, child := range node.Content {
		size = min(most, size+e.of(child, depth+1))
	}
	if node.Anchor != "" {
		e.known[node] = size
	}
	return size
}
