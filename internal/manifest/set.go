// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// MaxBytes is the largest encoded set, in bytes. Ten thousand objects of ordinary size take a tenth of it.
const MaxBytes = 128 << 20

// format is the version of the encoding. Bytes of another version are refused, never guessed at.
const format = "rukpak.io/manifest/v1"

// Set is the objects of one revision, in the phases of their activation.
type Set struct {
	Phases []provisioner.Phase
	// Content is the digest of the content, of a set that has no objects on purpose: so that there is something to approve.
	Content digest.Digest
}

// document is a Set as it is encoded.
type document struct {
	Format  string        `json:"format"`
	Content digest.Digest `json:"content,omitempty"`
	Phases  []phase       `json:"phases"`
}

type phase struct {
	Name    string               `json:"name"`
	On      []provisioner.Moment `json:"on,omitempty"`
	Objects []json.RawMessage    `json:"objects"`
}

// Objects lists the objects of all phases, in order. They are those of the set, not copies.
func (s Set) Objects() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, phase := range s.Phases {
		all = append(all, phase.Objects...)
	}
	return all
}

// Encode gives the canonical bytes: JSON with sorted keys, a line for each object, phases in order, the objects of a
// phase sorted by identity. The same objects in the same phases give the same bytes, in whatever order the provisioner
// put them into a phase. It fails on a set without objects, an object without kind or name, two objects with one
// identity that are not both tasks (a *provisioner.InputError), and more than MaxBytes. A set with Content has no objects.
func (s Set) Encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(`{"format":"` + format + `",`)
	if s.Content != "" {
		out.WriteString(`"content":"` + s.Content.String() + `",`)
	}
	out.WriteString(`"phases":[`)
	for i, phase := range s.Phases {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := encodePhase(&out, phase); err != nil {
			return nil, err
		}
	}
	out.WriteString("\n]}\n")
	if out.Len() > MaxBytes {
		return nil, tooLarge(out.Len())
	}
	return out.Bytes(), nil
}

func encodePhase(out *bytes.Buffer, p provisioner.Phase) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	name, err := json.Marshal(p.Name)
	if err != nil {
		return err
	}
	out.WriteString("\n{\"name\":" + string(name))
	if len(p.On) > 0 {
		moments, err := json.Marshal(p.On)
		if err != nil {
			return err
		}
		out.WriteString(",\"on\":" + string(moments))
	}
	out.WriteString(",\"objects\":[\n")
	objects := slices.Clone(p.Objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return ownership.IDOf(a).Compare(ownership.IDOf(b))
	})
	for i, object := range objects {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := encoder.Encode(object.Object); err != nil { // ends the line
			return &provisioner.InputError{Object: ownership.IDOf(object).String(), Reason: "cannot be written as JSON: " + err.Error()}
		}
		if out.Len() > MaxBytes {
			return tooLarge(out.Len())
		}
	}
	out.WriteString("]}")
	return nil
}

func tooLarge(size int) error {
	return &provisioner.InputError{Reason: fmt.Sprintf("the objects take more than %d MiB as JSON (%d bytes so far): split the bundle", MaxBytes>>20, size)}
}

// check finds what makes a set ambiguous or dangerous to activate.
func (s Set) check() error {
	seen, faults := s.identities()
	if s.Content != "" {
		if err := s.Content.Validate(); err != nil || seen+len(faults) > 0 {
			return &provisioner.InputError{Reason: fmt.Sprintf("it stands for the content %q alone, and has objects all the same", s.Content)}
		}
		return nil
	}
	if seen == 0 && len(faults) == 0 {
		return &provisioner.InputError{Reason: "there is no object in it; activating nothing would remove all that is there"}
	}
	return provisioner.Join(append(faults, s.tasksFault()))
}

// MaxTasks is how many tasks one revision may run: those of its activation and those of its teardown. The status of a revision
// has room for them.
const MaxTasks = 256

// tasksFault says that there are too many tasks, which nobody could run to their end: what is half torn down would stay so.
func (s Set) tasksFault() *provisioner.InputError {
	at := map[provisioner.Moment]int{}
	for _, phase := range s.Phases {
		for _, moment := range phase.On {
			at[moment] += len(phase.Objects)
		}
	}
	activation := max(at[provisioner.OnInstall], at[provisioner.OnUpgrade], at[provisioner.OnRollback])
	count := max(activation+at[provisioner.OnTeardown]+at[provisioner.OnTeardownFinish], at[provisioner.OnTest])
	if count <= MaxTasks {
		return nil
	}
	return &provisioner.InputError{Reason: fmt.Sprintf("it has %d tasks, such as hooks, and a revision can run %d: split the bundle", count, MaxTasks)}
}

// identities counts the objects by identity, and finds those that have none or another's.
func (s Set) identities() (count int, faults []*provisioner.InputError) {
	seen := map[ownership.ID]string{}
	task := map[ownership.ID]bool{}
	for _, phase := range s.Phases {
		for _, object := range phase.Objects {
			id := ownership.IDOf(object)
			first, twice := seen[id]
			if task[id] && len(phase.On) > 0 && first != phase.Name {
				twice = false // one task at several moments has a phase for each
			}
			switch {
			case object.GetAPIVersion() == "" || id.Kind == "" || id.Name == "":
				faults = append(faults, &provisioner.InputError{Object: id.String(), Reason: "an object needs apiVersion, kind and metadata.name"})
			case twice:
				faults = append(faults, &provisioner.InputError{
					Object: id.String(),
					Reason: fmt.Sprintf("is there twice, in the phases %q and %q: remove one", first, phase.Name),
				})
			default:
				seen[id], task[id] = phase.Name, len(phase.On) > 0
			}
		}
	}
	return len(seen), faults
}

// ErrFormat is wrapped by Decode when the bytes are not of the format that it reads.
var ErrFormat = errors.New("not manifests of format " + format)

// Decode reads what Encode wrote.
func Decode(encoded []byte) (Set, error) {
	if len(encoded) > MaxBytes {
		return Set{}, tooLarge(len(encoded))
	}
	var doc document
	if err := json.Unmarshal(encoded, &doc); err != nil {
		return Set{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if doc.Format != format {
		return Set{}, fmt.Errorf("%w: they say %q", ErrFormat, doc.Format)
	}
	set := Set{Content: doc.Content}
	for _, p := range doc.Phases {
		decoded := provisioner.Phase{Name: p.Name, On: p.On, Objects: make([]*unstructured.Unstructured, 0, len(p.Objects))}
		for _, raw := range p.Objects {
			object := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(raw, &object.Object); err != nil {
				return Set{}, fmt.Errorf("%w: an object of phase %q: %w", ErrFormat, p.Name, err)
			}
			decoded.Objects = append(decoded.Objects, object)
		}
		set.Phases = append(set.Phases, decoded)
	}
	return set, nil
}

// DigestOf is the sha256 digest of encoded manifests, which is what approvals name.
func DigestOf(encoded []byte) digest.Digest {
	return digest.SHA256.FromBytes(encoded)
}
