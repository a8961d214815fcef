// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/certificate"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// maxHeld bounds the manifests that are held in memory, in bytes as encoded;
// decoded they take about five times as much. What is not held is read again.
const maxHeld = 16 << 20

// Manifests reads the stored manifests of revisions, checks that they have the
// digest that was approved, and holds those last used.
type Manifests struct {
	reader client.Reader
	mu     sync.Mutex
	held   map[types.UID]*Loaded
	order  []types.UID // least recently used first
	size   int
}

// Loaded is the manifests of one revision. It must not be changed.
type Loaded struct {
	Phases []provisioner.Phase
	IDs    map[ownership.ID]*unstructured.Unstructured // of what holds state
	Tasks  map[ownership.ID]*unstructured.Unstructured // one for each identity
	Kinds  []schema.GroupVersionKind                   // one for each kind of object
	Total  int                                         // of what holds state
	// Passing are Jobs that the cluster itself deletes some time after they
	// finished. Once they did, their absence is no drift: to make them again
	// would run them for ever.
	Passing map[ownership.ID]*unstructured.Unstructured
	// Issued are the Secrets that are made beside the objects, for their
	// serving certificates. They are removed with them.
	Issued []provisioner.Phase
	issued map[ownership.ID]*unstructured.Unstructured
	size   int
}

// NewManifests gives an empty cache over an uncached reader.
func NewManifests(reader client.Reader) *Manifests {
	return &Manifests{reader: reader, held: map[types.UID]*Loaded{}}
}

// Load gives the manifests of a revision. Any difference to the digest in its
// spec is an error: other bytes than the approved ones are never used.
func (m *Manifests) Load(ctx context.Context, revision *v1alpha1.InstanceRevision) (*Loaded, error) {
	if found := m.find(revision.UID); found != nil {
		return found, nil
	}
	encoded, err := manifest.LoadVerified(ctx, m.reader, revision.Namespace, revision.Name, digest.Digest(revision.Spec.ManifestDigest))
	if err != nil {
		return nil, err
	}
	set, err := manifest.Decode(encoded)
	if err != nil {
		return nil, err
	}
	loaded := index(set, len(encoded))
	m.hold(revision.UID, loaded)
	return loaded, nil
}

// lost reports whether an error of Load says that what is stored is gone or was changed, and not only that it could not
// be read.
func lost(err error) bool {
	var stored *manifest.StoredError
	var other *manifest.MismatchError
	return errors.As(err, &stored) || errors.As(err, &other)
}

func index(set manifest.Set, size int) *Loaded {
	loaded := &Loaded{
		Phases: set.Phases, size: size,
		IDs:     map[ownership.ID]*unstructured.Unstructured{},
		Tasks:   map[ownership.ID]*unstructured.Unstructured{},
		Passing: map[ownership.ID]*unstructured.Unstructured{},
		Issued:  certificate.Secrets(set.Phases),
		issued:  map[ownership.ID]*unstructured.Unstructured{},
	}
	seen := map[schema.GroupVersionKind]bool{}
	for _, phase := range set.Phases {
		for _, object := range phase.Objects {
			loaded.add(object, activate.IsTask(phase))
			if kind := object.GroupVersionKind(); !seen[kind] {
				seen[kind] = true
				loaded.Kinds = append(loaded.Kinds, kind)
			}
		}
	}
	for _, phase := range loaded.Issued {
		for _, object := range phase.Objects {
			loaded.issued[ownership.IDOf(object)] = object
			if kind := object.GroupVersionKind(); !seen[kind] {
				seen[kind] = true
				loaded.Kinds = append(loaded.Kinds, kind)
			}
		}
	}
	return loaded
}

func (l *Loaded) add(object *unstructured.Unstructured, task bool) {
	id := ownership.IDOf(object)
	if task {
		l.Tasks[id] = object
		return
	}
	l.Total++
	l.IDs[id] = object
	if passes(object) {
		l.Passing[id] = object
	}
}

// removable gives all that is removed with the objects, and these.
func (l *Loaded) removable() []provisioner.Phase { return slices.Concat(l.Issued, l.Phases) }

// find gives the object of an identity, whether it is state, a task or issued.
func (l *Loaded) find(id ownership.ID) *unstructured.Unstructured {
	if object := l.IDs[id]; object != nil {
		return object
	}
	if object := l.issued[id]; object != nil {
		return object
	}
	return l.Tasks[id]
}

func passes(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	_, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return found && err == nil
}

// lasting gives the objects that stand as long as the revision is active. A
// revision that was once active and healthy has done what only passes.
func (l *Loaded) lasting(revision *v1alpha1.InstanceRevision) []provisioner.Phase {
	if len(l.Passing) == 0 || conditionsOf(revision).Reason(v1alpha1.ConditionActive) != v1alpha1.ReasonCompleted {
		return l.Phases
	}
	return without(l.Phases, in(l.Passing))
}

// same gives the objects that are those of current. Where they were found in a cluster, objects that are the same under
// other kinds, as some API services show them, are among them: these share the UID.
func (l *Loaded) same(current *Loaded) func(ownership.ID) *unstructured.Unstructured {
	uids := map[types.UID]bool{}
	for id, object := range l.IDs {
		if uid := object.GetUID(); current.find(id) != nil && uid != "" {
			uids[uid] = true
		}
	}
	same := map[ownership.ID]*unstructured.Unstructured{}
	for id, object := range l.IDs {
		if current.find(id) != nil || uids[object.GetUID()] {
			same[id] = object
		}
	}
	return in(same)
}

func (m *Manifests) find(uid types.UID) *Loaded {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.held[uid]
	if found != nil {
		m.touch(uid)
	}
	return found
}

func (m *Manifests) hold(uid types.UID, loaded *Loaded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[uid] != nil || loaded.size > maxHeld {
		return
	}
	m.held[uid] = loaded
	m.order = append(m.order, uid)
	for m.size += loaded.size; m.size > maxHeld; {
		oldest := m.order[0]
		m.order = m.order[1:]
		m.size -= m.held[oldest].size
		delete(m.held, oldest)
	}
}

func (m *Manifests) touch(uid types.UID) {
	for i, other := range m.order {
		if other == uid {
			m.order = append(append(m.order[:i:i], m.order[i+1:]...), uid)
			return
		}
	}
}

func in(objects map[ownership.ID]*unstructured.Unstructured) func(ownership.ID) *unstructured.Unstructured {
	return func(id ownership.ID) *unstructured.Unstructured { return objects[id] }
}

// without gives the phases less the objects of state that skip knows.
func without(phases []provisioner.Phase, skip func(ownership.ID) *unstructured.Unstructured) []provisioner.Phase {
	var rest []provisioner.Phase
	for _, phase := range phases {
		if activate.IsTask(phase) {
			rest = append(rest, phase)
			continue
		}
		kept := provisioner.Phase{Name: phase.Name}
		for _, object := range phase.Objects {
			if skip(ownership.IDOf(object)) == nil {
				kept.Objects = append(kept.Objects, object)
			}
		}
		if len(kept.Objects) > 0 {
			rest = append(rest, kept)
		}
	}
	return rest
}
