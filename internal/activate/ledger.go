// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/ownership"
)

// Observed is the cache of the watch: metadata of objects that carry an owner's mark.
type Observed interface {
	// Get returns an object's metadata, such that ownership.OwnFieldsHash is that of the live object. False means that
	// it is not known: it may exist all the same.
	Get(ownership.ID) (*metav1.PartialObjectMetadata, bool)
}

// Ledger remembers, in memory, which objects were as they should be when the engine last looked. With the cache of the
// watch it answers whether they still are, without a request: a change of a value that we set takes the field from our
// field manager, so as long as that manages the same fields since the same time, nothing of ours has changed.
// A Ledger that forgot everything costs reads, never a wrong answer. It takes some 300 bytes an object.
type Ledger struct {
	mu     sync.Mutex
	owners map[types.UID]map[ownership.ID]record
}

// record is an object as it was after it was written or compared.
type record struct {
	uid     types.UID
	version uint64 // the resource version as a number, 0 if it is none
	fields  string // ownership.OwnFieldsHash
	desired [16]byte
	source  weak.Pointer[unstructured.Unstructured] // what desired is the digest of, while it is still in memory
	serves  bool                                    // what others wait for was seen, such as a CRD's Established
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{owners: map[types.UID]map[ownership.ID]record{}} }

// Forget drops all that is known of an owner's objects.
func (l *Ledger) Forget(owner types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners, owner)
}

// Len returns how many objects are known.
func (l *Ledger) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, objects := range l.owners {
		n += len(objects)
	}
	return n
}

func (l *Ledger) find(owner types.UID, id ownership.ID) (record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.owners[owner][id]
	return found, ok
}

func (l *Ledger) keep(owner types.UID, id ownership.ID, r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := l.owners[owner]
	if objects == nil {
		objects = map[ownership.ID]record{}
		l.owners[owner] = objects
	}
	objects[id] = r
}

func (l *Ledger) drop(owner types.UID, id ownership.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners[owner], id)
	if len(l.owners[owner]) == 0 {
		delete(l.owners, owner)
	}
}

// vouches reports whether seen, from the cache of the watch, is still as it was when r was made.
func (r record) vouches(seen *metav1.PartialObjectMetadata) bool {
	if seen.UID != r.uid || seen.DeletionTimestamp != nil {
		return false
	}
	if ownership.OwnFieldsHash(seen) == r.fields {
		return true
	}
	// The cache has not heard of our own write yet. What it hears later makes an event, and that another call.
	version := versionOf(seen)
	return version != 0 && version < r.version
}

func versionOf(object metav1.Object) uint64 {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// isOf reports whether the record was made for this desired state.
func (r record) isOf(source *unstructured.Unstructured) bool {
	return r.source == weak.Make(source) || r.desired == digestOf(source)
}

// digestOf is the same for equal objects. encoding/json sorts the keys.
func digestOf(object *unstructured.Unstructured) [16]byte {
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return [16]byte{} // not JSON, so the API server will not take it either, and nothing is ever recorded
	}
	sum := sha256.Sum256(encoded)
	return [16]byte(sum[:16])
}
