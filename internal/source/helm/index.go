// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"go.yaml.in/yaml/v3"
)

// maxIndex bounds an index: the largest public ones have some 30 MiB.
const maxIndex = 64 << 20

// maxNamed is how many charts an error names.
const maxNamed = 10

// chart is one version of a chart as an index has it.
type chart struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// sizeError says that an index is too large.
type sizeError struct{ most int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("index.yaml is larger than %d bytes", e.most)
}

// indexError says that an index is none.
type indexError struct{ problem string }

func (e *indexError) Error() string { return "index.yaml: " + e.problem }

// absentError says that an index lacks what is asked for.
type absentError struct{ problem string }

func (e *absentError) Error() string { return e.problem }

// readIndex reads the versions of one chart from an index, of at most so many
// bytes.
func readIndex(r io.Reader, name string, most int64) ([]chart, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, &sizeError{most}
	}
	return parseIndex(data, name)
}

func parseIndex(data []byte, name string) (charts []chart, err error) {
	var index struct {
		Entries map[string]yaml.Node `yaml:"entries"`
	}
	if err := decode(data, &index); err != nil {
		return nil, err
	}
	if index.Entries == nil {
		return nil, &indexError{"it has no entries; is this the address of a Helm repository?"}
	}
	node, ok := index.Entries[name]
	if !ok {
		return nil, &absentError{fmt.Sprintf("the repository has no chart %q; it has %s", name, some(slices.Sorted(maps.Keys(index.Entries))))}
	}
	if err := node.Decode(&charts); err != nil {
		return nil, &indexError{oneLine(err)}
	}
	return charts, nil
}

// decode reads YAML. Its errors name lines.
func decode(data []byte, into any) (err error) {
	defer func() {
		if broken := recover(); broken != nil { // the parser has done so for broken input before
			err = &indexError{fmt.Sprintf("the parser gives up: %v", broken)}
		}
	}()
	if err := yaml.Unmarshal(data, into); err != nil {
		return &indexError{oneLine(err)}
	}
	return nil
}

// oneLine gives the first fault of several.
func oneLine(err error) string {
	if all, ok := errors.AsType[*yaml.TypeError](err); ok && len(all.Errors) > 0 {
		return cut(all.Errors[0])
	}
	return cut(strings.TrimPrefix(err.Error(), "yaml: "))
}

const maxText = 200

func cut(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

func some(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return cut(text)
}

// sum gives the digest that an index has for a chart, or "".
func (c *chart) sum() (digest.Digest, error) {
	text := strings.ToLower(strings.TrimPrefix(c.Digest, "sha256:"))
	if text == "" {
		return "", nil
	}
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != 32 {
		return "", &indexError{fmt.Sprintf("the digest of version %s is not a SHA-256", cut(c.Version))}
	}
	return digest.NewDigestFromEncoded(digest.SHA256, text), nil
}
