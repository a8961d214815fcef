// SPDX-License-Identifier: Apache-2.0

package content

import "github.com/opencontainers/go-digest"

// TreeEntries gives all entries of a tree, sorted by path, if the store has the
// whole of it. Their files are safe from Collect until the session is closed.
func (s *Session) TreeEntries(tree digest.Digest) ([]Entry, bool) {
	s.pinRecord(s.disk.treePath(tree))
	b, err := s.disk.readTree(tree)
	if err != nil {
		return nil, false
	}
	s.pinNodes(b.root)
	if _, err := s.disk.Stat(tree); err != nil {
		return nil, false
	}
	var entries []Entry
	appendNodes(&entries, b.root)
	Sort(entries)
	return entries, true
}

func appendNodes(entries *[]Entry, n *node) {
	for _, child := range n.children {
		*entries = append(*entries, child.entry)
		appendNodes(entries, child)
	}
}
