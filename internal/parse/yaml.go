// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"rukpak.io/rukpak/provisioner"
)

// readYAML gives the documents of a chunk up to the first fault.
func readYAML(file string, c chunk) ([]Document, []*provisioner.InputError) {
	var docs []Document
	decoder := yaml.NewDecoder(bytes.NewReader(c.data))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return docs, []*provisioner.InputError{syntaxFault(file, c, err)}
		}
		doc, fault := readNode(&root, c)
		if fault != nil {
			fault.File = file
			return docs, []*provisioner.InputError{fault}
		}
		if doc.Value != nil {
			docs = append(docs, doc)
		}
	}
}

var yamlError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// syntaxFault puts the line within the chunk, which the parser tells in its text, into the file.
func syntaxFault(file string, c chunk, err error) *provisioner.InputError {
	text := strings.Join(strings.Fields(err.Error()), " ")
	fault := &provisioner.InputError{File: file, Line: c.line, Reason: "is not YAML: " + text}
	if parts := yamlError.FindStringSubmatch(text); parts != nil {
		if line, err := strconv.Atoi(parts[1]); err == nil {
			fault.Line = c.line + line - 1
		}
		fault.Reason = "is not YAML: " + parts[2]
	}
	return fault
}

func readNode(root *yaml.Node, c chunk) (Document, *provisioner.InputError) {
	before := c.line - 1
	r := &resolver{before: before, within: map[*yaml.Node]bool{}}
	if loneTag.Match(c.data) {
		r.lines = bytes.Split(c.data, []byte("\n"))
	}
	if len(root.Content) != 1 {
		return Document{}, nil
	}
	top := root.Content[0]
	value, err := r.value(top, 0)
	if err != nil {
		var fault *nodeError
		if errors.As(err, &fault) {
			return Document{}, &provisioner.InputError{Line: before + fault.line, Reason: fault.err.Error()}
		}
		return Document{}, &provisioner.InputError{Line: before + top.Line, Reason: err.Error()}
	}
	doc := Document{Value: value, Line: before + top.Line, repeated: r.repeated, expanded: r.expanded}
	if top.Kind == yaml.MappingNode {
		doc.items = r.itemLines(top)
	}
	return doc, nil
}

// resolver makes values of nodes.
type resolver struct {
	before   int                 // lines before the chunk
	within   map[*yaml.Node]bool // anchors that are being resolved
	expanded int                 // what aliases have added
	aliases  int                 // depth of aliases
	lines    [][]byte            // of the chunk, if it may have the tag "!"
	repeated []int               // lines with a key that was set before to the same value
}

// loneTag finds what may be the tag "!". It makes text of a scalar, but the parser does not tell of it.
var loneTag = regexp.MustCompile(`(?m)!([\s,\]}]|$)`)

func (r *resolver) hasLoneTag(node *yaml.Node) bool {
	if node.Line > len(r.lines) {
		return false
	}
	line := []rune(string(r.lines[node.Line-1]))
	return node.Column <= len(line) && line[node.Column-1] == '!'
}

// nodeError is a fault at a line of the chunk.
type nodeError struct {
	line int
	err  error
}

func (e *nodeError) Error() string { return e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

func at(node *yaml.Node, form string, args ...any) error {
	return &nodeError{line: node.Line, err: fmt.Errorf(form, args...)}
}

func (r *resolver) value(node *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, at(node, "is nested more than %d levels deep", maxDepth)
	}
	if r.aliases > 0 {
		if r.expanded += 16 + len(node.Value); r.expanded > maxExpanded {
			return nil, at(node, "aliases make the document larger by more than %d MiB", maxExpanded>>20)
		}
	}
	switch node.Kind {
	case yaml.ScalarNode:
		return r.scalar(node)
	case yaml.SequenceNode:
		if tag := node.ShortTag(); tag != "!!seq" {
			return nil, at(node, "the tag %s is not supported: remove it", tag)
		}
		list := make([]any, 0, len(node.Content))
		for _, element := range node.Content {
			value, err := r.value(element, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.MappingNode:
		return r.mapping(node, depth)
	case yaml.AliasNode:
		return r.alias(node, func(target *yaml.Node) (any, error) { return r.value(target, depth+1) })
	}
	return nil, at(node, "is not a value")
}

// alias calls use with what node stands for, once it is sure that this does not contain the node itself.
func (r *resolver) alias(node *yaml.Node, use func(*yaml.Node) (any, error)) (any, error) {
	if node.Alias == nil || r.within[node.Alias] || r.aliases > maxDepth {
		return nil, at(node, "the alias *%s stands for something that contains it", node.Value)
	}
	r.within[node.Alias] = true
	r.aliases++
	value, err := use(node.Alias)
	r.aliases--
	delete(r.within, node.Alias)
	return value, err
}

func (r *resolver) mapping(node *yaml.Node, depth int) (any, error) {
	if tag := node.ShortTag(); tag != "!!map" {
		return nil, at(node, "the tag %s is not supported: remove it", tag)
	}
	fields := make(map[string]any, len(node.Content)/2)
	own := map[string]int{} // key -> line, of keys that are not merged
	for i := 0; i+1 < len(node.Content); i += 2 {
		keyNode, valueNode := node.Content[i], node.Content[i+1]
		if isMerge(keyNode) {
			merged, err := r.merge(valueNode, depth)
			if err != nil {
				return nil, err
			}
			for key, value := range merged {
				if line, is := own[key]; is {
					return nil, at(keyNode, "the merge key brings %q, which is set in line %d already: put the merge key first", key, r.before+line)
				}
				fields[key] = value
			}
			continue
		}
		key, err := r.key(keyNode, depth)
		if err != nil {
			return nil, err
		}
		value, err := r.value(valueNode, depth+1)
		if err != nil {
			return nil, err
		}
		if line, twice := own[key]; twice {
			if !reflect.DeepEqual(fields[key], value) {
				return nil, at(keyNode, "the key %q is set in line %d already, to another value: remove one", key, r.before+line)
			}
			r.repeated = append(r.repeated, r.before+keyNode.Line)
		}
		own[key], fields[key] = keyNode.Line, value
	}
	return fields, nil
}

func (r *resolver) key(node *yaml.Node, depth int) (string, error) {
	value, err := r.value(node, depth+1)
	if err != nil {
		return "", err
	}
	if _, isNumber := value.(int64); isNumber {
		// A float as a key is another text to each program, also if its value is whole.
		if _, err := strconv.ParseInt(strings.ReplaceAll(node.Value, "_", ""), 0, 64); err != nil {
			value = nil
		}
	}
	key, err := keyText(value)
	if err != nil {
		return "", at(node, "%w", err)
	}
	return key, nil
}

func isMerge(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Value == "<<" && node.ShortTag() == "!!merge"
}

// merge gives the fields that a merge key brings: those of a mapping, or of several, of which earlier ones win.
func (r *resolver) merge(node *yaml.Node, depth int) (map[string]any, error) {
	switch node.Kind {
	case yaml.AliasNode:
		value, err := r.alias(node, func(target *yaml.Node) (any, error) { return r.merge(target, depth+1) })
		fields, _ := value.(map[string]any)
		return fields, err
	case yaml.MappingNode:
		value, err := r.value(node, depth+1)
		fields, _ := value.(map[string]any)
		return fields, err
	case yaml.SequenceNode:
		all := map[string]any{}
		for i := len(node.Content) - 1; i >= 0; i-- {
			if node.Content[i].Kind == yaml.SequenceNode {
				break
			}
			fields, err := r.merge(node.Content[i], depth+1)
			if err != nil {
				return nil, err
			}
			for key, value := range fields {
				all[key] = value
			}
		}
		return all, nil
	}
	return nil, at(node, "a merge key needs a mapping, or a list of mappings")
}

func (r *resolver) scalar(node *yaml.Node) (any, error) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tagged := node.Style&yaml.TaggedStyle != 0
	if !tagged && (node.Style&quoted != 0 || r.hasLoneTag(node)) {
		return node.Value, nil
	}
	if !tagged {
		value, err := plainScalar(node.Value)
		if err != nil {
			return nil, at(node, "%w", err)
		}
		return value, nil
	}
	tag := node.ShortTag()
	if tag == "!!str" || tag == "!" || tag == "!!timestamp" {
		return node.Value, nil
	}
	value, err := plainScalar(node.Value)
	if err != nil {
		return nil, at(node, "%w", err)
	}
	if !fits(value, tag) {
		return nil, at(node, "%q with the tag %s is not supported: remove the tag, or quote the text", node.Value, tag)
	}
	return value, nil
}

// fits tells whether a value is of the type that the tag in front of it says.
func fits(value any, tag string) bool {
	switch value.(type) {
	case nil:
		return tag == "!!null"
	case bool:
		return tag == "!!bool"
	case int64:
		return tag == "!!int" || tag == "!!float"
	case float64:
		return tag == "!!float"
	}
	return false
}

// itemLines are the lines of the elements of a field items of the top mapping.
func (r *resolver) itemLines(top *yaml.Node) []int {
	for i := 0; i+1 < len(top.Content); i += 2 {
		list := top.Content[i+1]
		if top.Content[i].Value != "items" || list.Kind != yaml.SequenceNode {
			continue
		}
		lines := make([]int, 0, len(list.Content))
		for _, element := range list.Content {
			lines = append(lines, r.before+element.Line)
		}
		return lines
	}
	return nil
}
