// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// wanted is what to ask a server for.
type wanted struct {
	objects  []plumbing.Hash
	blobless bool // commits without the files in them; only if canFilter
	blobs    bool // these files
}

// goneError says that a server does not give a commit.
type goneError struct {
	hash plumbing.Hash
	why  string
}

func (e *goneError) Error() string {
	return fmt.Sprintf("the server does not give the commit %s: %s", e.hash, e.why)
}

// canFilter tells whether a server can leave files out, and gives them later.
func (r *remote) canFilter() bool {
	return r.version == 2 && slices.Contains(strings.Fields(r.abilities["fetch"]), "filter")
}

// fetch asks for objects without history and gives the pack that has them.
func (r *remote) fetch(ctx context.Context, want wanted) (io.Reader, error) {
	ask, err := r.question(want)
	if err != nil {
		return nil, err
	}
	answer, err := r.talk.ask(ctx, ask)
	if err != nil {
		return nil, err
	}
	r.packets.r = answer
	if r.version == 2 {
		err = r.sections()
	} else {
		err = r.acknowledged()
	}
	if err != nil {
		return nil, err
	}
	return &band{packets: &r.packets}, nil
}

func (r *remote) question(want wanted) ([]byte, error) {
	if r.version != 2 {
		return r.oldQuestion(want)
	}
	var ask request
	ask.line("command=fetch")
	ask.line(agent)
	ask.WriteString(delimPacket)
	ask.line("no-progress")
	ask.line("ofs-delta")
	if !want.blobs {
		ask.line("deepen 1")
	}
	if want.blobless {
		ask.line("filter blob:none")
	}
	for _, hash := range want.objects {
		ask.line("want %s", hash)
	}
	ask.line("done")
	ask.WriteString(flushPacket)
	return ask.Bytes(), nil
}

// sections reads up to the pack.
func (r *remote) sections() error {
	for {
		kind, body, err := r.packets.next()
		switch {
		case err != nil:
			return orCut(err)
		case kind == flush:
			return badAnswer("its answer has no pack")
		case kind == dataPacket && strings.TrimSpace(string(body)) == "packfile":
			return nil
		}
	}
}

// oldQuestion is in version 0 of the protocol, in which a server says what may
// be asked for.
func (r *remote) oldQuestion(want wanted) ([]byte, error) {
	if !r.able("side-band-64k") {
		return nil, badAnswer("it speaks a form of git's protocol that is too old (no side-band-64k)")
	}
	for _, hash := range want.objects {
		if !r.gives(hash) {
			return nil, &goneError{hash, "no branch or tag points at it, and this server, which speaks version 0 of git's protocol, gives no other " +
				"commits (its setting uploadpack.allowReachableSHA1InWant would allow it)"}
		}
	}
	abilities := "side-band-64k ofs-delta no-progress " + agent
	var ask request
	for i, hash := range want.objects {
		if i == 0 {
			ask.line("want %s %s", hash, abilities)
			continue
		}
		ask.line("want %s", hash)
	}
	if r.able("shallow") {
		ask.line("deepen 1")
	}
	ask.WriteString(flushPacket)
	ask.line("done")
	return ask.Bytes(), nil
}

func (r *remote) able(ability string) bool {
	_, ok := r.abilities[ability]
	return ok
}

// gives tells whether a server of version 0 lets one ask for a commit.
func (r *remote) gives(hash plumbing.Hash) bool {
	return r.able("allow-tip-sha1-in-want") || r.able("allow-reachable-sha1-in-want") || r.able("allow-any-sha1-in-want") ||
		slices.ContainsFunc(r.refs, func(ref reference) bool { return ref.commit == hash })
}

// acknowledged reads up to the pack of version 0: where the history is cut off,
// and that nothing is in common.
func (r *remote) acknowledged() error {
	if r.able("shallow") {
		if err := r.lines(func(string) error { return nil }); err != nil {
			return err
		}
	}
	line, ok, err := r.packets.line()
	if err == nil && (!ok || line != "NAK") {
		err = badAnswer("its answer is not in git's protocol: %.60q in place of NAK", line)
	}
	return err
}

// orCut is for where an answer must not end.
func orCut(err error) error {
	if err == io.EOF { //nolint:errorlint // what io.ReadFull gives
		return io.ErrUnexpectedEOF
	}
	return err
}
