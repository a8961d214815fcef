// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// ErrDeep says that values are nested too deeply. It quotes nothing of them.
var ErrDeep = fmt.Errorf("its values are nested more than %d levels deep", maxDepth)

// Deep gives ErrDeep if the values in a text, YAML or JSON that another reader is to read, are nested more deeply than those
// that this package reads. What it cannot read as YAML is left to that reader to refuse.
func Deep(text []byte) error {
	if mayNest(text) <= maxDepth {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return tooDeepFor(err)
		case deeper(&root, maxDepth+1): // and the document around the value
			return ErrDeep
		}
	}
}

// tooDeepFor tells the fault that the parser of YAML calls by a name, and that is ours, from all others.
func tooDeepFor(err error) error {
	if bytes.Contains([]byte(err.Error()), []byte("exceeded max depth")) {
		return ErrDeep
	}
	return nil
}

func deeper(node *yaml.Node, left int) bool {
	if left < 0 {
		return true
	}
	for _, child := range node.Content {
		if deeper(child, left-1) {
			return true
		}
	}
	return false
}

// mayNest is no less than the depth of the values in a text: each level of it takes a bracket of its own, or begins further
// to the right in its line than the one around it, but for a list, which may begin where the mapping around it does.
func mayNest(text []byte) int {
	brackets, widest := 0, 0
	for line := range bytes.Lines(text) {
		indent := 0
		for indent < len(line) && bytes.IndexByte([]byte(" -?:\t"), line[indent]) >= 0 {
			indent++
		}
		widest = max(widest, indent)
		for at, c := range line {
			if (c == '[' || c == '{') && (at+1 == len(line) || line[at+1] != c+2) {
				brackets++
			}
		}
	}
	return 2*(widest+1) + brackets
}
