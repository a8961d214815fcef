// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	agent = "agent=rukpak"

	// maxWords bounds what a server says of itself and its references.
	maxWords = 64 << 20
)

var (
	errWords        = fmt.Errorf("the server tells of its references in more than %d bytes", maxWords)
	errObjectFormat = errors.New("the repository names its objects by SHA-256; only SHA-1 repositories can be fetched")
)

// conversation carries requests to a server.
type conversation interface {
	// begin connects and gives what the server says first.
	begin(ctx context.Context) (io.Reader, error)
	// ask sends a request and gives the answer. What was given before is no
	// longer read.
	ask(ctx context.Context, request []byte) (io.Reader, error)
	// public tells, after begin, whether the server has a public address.
	public() bool
	close()
}

// reference is a branch, a tag, or HEAD.
type reference struct {
	name   string
	commit plumbing.Hash // of an annotated tag: what it is about
	target string        // of HEAD: the branch that it is
}

// remote is a repository on a server that has said which protocol it speaks.
type remote struct {
	talk      conversation
	packets   packets
	version   int
	abilities map[string]string
	refs      []reference // version 0 tells them all unasked
}

// open begins to speak with a server.
func open(ctx context.Context, talk conversation) (*remote, error) {
	r := &remote{talk: talk, abilities: map[string]string{}}
	first, err := talk.begin(ctx)
	if err != nil {
		return nil, err
	}
	r.packets.r = &boundedReader{first, maxWords}
	if err := r.greeting(); err != nil {
		return nil, err
	}
	if format := r.abilities["object-format"]; format != "" && format != "sha1" {
		return nil, errObjectFormat
	}
	return r, nil
}

func (r *remote) greeting() error {
	line, ok, err := r.packets.line()
	if err == nil && strings.HasPrefix(line, "# service=") {
		if _, more, err := r.packets.line(); err != nil || more {
			return errors.Join(err, badAnswer("its answer is not in git's protocol: no flush after the service"))
		}
		line, ok, err = r.packets.line()
	}
	if err == nil && line == "version 1" {
		line, ok, err = r.packets.line()
	}
	switch {
	case err != nil:
		return err
	case !ok:
		return nil // an empty repository, as some servers put it
	case line == "version 2":
		r.version = 2
		return r.lines(func(line string) error {
			name, value, _ := strings.Cut(line, "=")
			r.abilities[name] = value
			return nil
		})
	}
	line, abilities, _ := strings.Cut(line, "\x00")
	for ability := range strings.FieldsSeq(abilities) {
		name, value, _ := strings.Cut(ability, "=")
		if name == "symref" && !strings.HasPrefix(value, "HEAD:") {
			continue
		}
		r.abilities[name] = value
	}
	if err := r.advertised(line); err != nil {
		return err
	}
	return r.lines(r.advertised)
}

// lines calls do with each line up to a flush.
func (r *remote) lines(do func(line string) error) error {
	for {
		line, ok, err := r.packets.line()
		if err != nil || !ok {
			return err
		}
		if err := do(line); err != nil {
			return err
		}
	}
}

// advertised takes a reference as version 0 puts it.
func (r *remote) advertised(line string) error {
	hex, name, _ := strings.Cut(line, " ")
	if hex == "shallow" || name == "capabilities^{}" {
		return nil
	}
	hash, err := parseHash(hex)
	if err != nil {
		return err
	}
	if of, ok := strings.CutSuffix(name, "^{}"); ok {
		if last := len(r.refs) - 1; last >= 0 && r.refs[last].name == of {
			r.refs[last].commit = hash
		}
		return nil
	}
	ref := reference{name: name, commit: hash}
	if name == headRef {
		ref.target = strings.TrimPrefix(r.abilities["symref"], "HEAD:")
	}
	r.refs = append(r.refs, ref)
	return nil
}

func parseHash(hex string) (plumbing.Hash, error) {
	if !commitForm.MatchString(hex) {
		return plumbing.Hash{}, badAnswer("its answer is not in git's protocol: %.60q is not the name of an object", hex)
	}
	return plumbing.NewHash(hex), nil
}

// list gives the references whose names begin so, and maybe others.
func (r *remote) list(ctx context.Context, prefix string) ([]reference, error) {
	if r.version != 2 {
		return r.refs, nil
	}
	var ask request
	ask.line("command=ls-refs")
	ask.line(agent)
	ask.WriteString(delimPacket)
	ask.line("peel")
	ask.line("symrefs")
	ask.line("ref-prefix %s", prefix)
	ask.WriteString(flushPacket)
	answer, err := r.talk.ask(ctx, ask.Bytes())
	if err != nil {
		return nil, err
	}
	r.packets.r = &boundedReader{answer, maxWords}
	var found []reference
	err = r.lines(func(line string) error {
		ref, err := parseReference(line)
		found = append(found, ref)
		return err
	})
	return found, err
}

// parseReference takes a reference as version 2 puts it.
func parseReference(line string) (reference, error) {
	hex, rest, _ := strings.Cut(line, " ")
	name, attributes, _ := strings.Cut(rest, " ")
	hash, err := parseHash(hex)
	if err != nil {
		return reference{}, err
	}
	ref := reference{name: name, commit: hash}
	for attribute := range strings.FieldsSeq(attributes) {
		if target, ok := strings.CutPrefix(attribute, "symref-target:"); ok {
			ref.target = target
		}
		if peeled, ok := strings.CutPrefix(attribute, "peeled:"); ok {
			if ref.commit, err = parseHash(peeled); err != nil {
				return reference{}, err
			}
		}
	}
	return ref, nil
}

// boundedReader gives an error after so many bytes.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errWords
	}
	return n, err
}
