// SPDX-License-Identifier: Apache-2.0

package content

import (
	"github.com/opencontainers/go-digest"
)

// pins counts what open sessions use. Collect leaves pinned things alone. While
// a collection runs, pins of sessions that end stay until it is over: it may
// have looked for what is reachable before they wrote their records.
type pins struct {
	blobs      map[Sum]int
	records    map[string]int // by path of the record
	collecting bool
	late       []*pinned // to be released when the collection is over
}

// pinned is what one session has pinned, each as often as it is counted.
type pinned struct {
	blobs   []Sum
	records []string
}

func (p *pins) blob(by *pinned, sum Sum) {
	if p.blobs == nil {
		p.blobs = map[Sum]int{}
	}
	p.blobs[sum]++
	by.blobs = append(by.blobs, sum)
}

func (p *pins) record(by *pinned, path string) {
	if p.records == nil {
		p.records = map[string]int{}
	}
	p.records[path]++
	by.records = append(by.records, path)
}

func (p *pins) release(by *pinned) {
	if p.collecting {
		p.late = append(p.late, by)
		return
	}
	for _, sum := range by.blobs {
		if p.blobs[sum]--; p.blobs[sum] == 0 {
			delete(p.blobs, sum)
		}
	}
	for _, path := range by.records {
		if p.records[path]--; p.records[path] == 0 {
			delete(p.records, path)
		}
	}
}

func (p *pins) beginCollect() { p.collecting = true }

func (p *pins) endCollect() {
	p.collecting = false
	late := p.late
	p.late = nil
	for _, by := range late {
		p.release(by)
	}
}

// pinRecord pins a record before its existence is looked at.
func (s *Session) pinRecord(path string) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.pins.record(&s.pinned, path)
}

// pinBlobs pins files before their existence is looked at.
func (s *Session) pinBlobs(entries []Entry) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	for i := range entries {
		if entries[i].Kind == File {
			s.disk.pins.blob(&s.pinned, entries[i].Sum)
		}
	}
}

func (s *Session) pinBlob(sum Sum) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.pins.blob(&s.pinned, sum)
}

// treeOf gives the digest that a listing's file name stands for.
func treeOf(name string) (digest.Digest, bool) {
	d := digest.NewDigestFromEncoded(digest.SHA256, name)
	return d, d.Validate() == nil
}
