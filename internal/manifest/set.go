// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"rukpak.io/rukpak/provisioner"
)

// Set is the objects of one revision, in phases.
type Set struct {
	Phases []provisioner.Phase
}

// format is the first line of the encoding, so that a later one can be told from this.
const format = `{"format":"rukpak.io/manifest.v1"}`

// header opens a phase: its name and how many objects follow, a line each.
type header struct {
	Phase   string `json:"phase"`
	Objects int    `json:"objects"`
}

// Encode gives the canonical bytes: the same objects in the same phases give
// the same bytes. They are lines of JSON with sorted keys: the format, then for
// each phase its header and its objects.
func (s Set) Encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(format + "\n")
	for _, phase := range s.Phases {
		if err := writeLine(&out, header{Phase: phase.Name, Objects: len(phase.Objects)}); err != nil {
			return nil, err
		}
		for _, object := range phase.Objects {
			if err := writeLine(&out, object.Object); err != nil {
				return nil, fmt.Errorf("encode %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
			}
		}
	}
	return out.Bytes(), nil
}

func writeLine(out *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(out) // sorts the keys of maps and ends with a newline
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// ErrFormat is wrapped by Decode when the bytes are not of this format.
var ErrFormat = errors.New("not manifests of format rukpak.io/manifest.v1")

// Decode is the inverse of Encode.
func Decode(encoded []byte) (Set, error) {
	first, rest, _ := bytes.Cut(encoded, []byte("\n"))
	if string(first) != format {
		return Set{}, ErrFormat
	}
	var set Set
	for len(rest) > 0 {
		phase, after, err := decodePhase(rest)
		if err != nil {
			return Set{}, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		set.Phases, rest = append(set.Phases, phase), after
	}
	return set, nil
}

func decodePhase(encoded []byte) (phase provisioner.Phase, rest []byte, err error) {
	line, rest, _ := bytes.Cut(encoded, []byte("\n"))
	var head header
	if err := json.Unmarshal(line, &head); err != nil {
		return phase, nil, err
	}
	phase.Name = head.Phase
	for range head.Objects {
		if line, rest, _ = bytes.Cut(rest, []byte("\n")); len(line) == 0 {
			return phase, nil, fmt.Errorf("phase %q ends early", head.Phase)
		}
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(line, &object.Object); err != nil {
			return phase, nil, fmt.Errorf("phase %q: %w", head.Phase, err)
		}
		phase.Objects = append(phase.Objects, object)
	}
	return phase, rest, nil
}

// DigestOf is the digest of encoded bytes: what an approval names.
func DigestOf(encoded []byte) digest.Digest { return digest.FromBytes(encoded) }
