// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// recorded is a conversation whose answers are known.
type recorded struct{ answers []string }

func (r *recorded) begin(context.Context) (io.Reader, error) { return r.next(), nil }

func (r *recorded) ask(context.Context, []byte) (io.Reader, error) { return r.next(), nil }

func (r *recorded) next() io.Reader {
	if len(r.answers) == 0 {
		return strings.NewReader("")
	}
	first := r.answers[0]
	r.answers = r.answers[1:]
	return strings.NewReader(first)
}

func (r *recorded) public() bool { return false }
func (r *recorded) close()       {}

// FuzzServer looks for answers that panic or hang, and for names of objects that are none.
func FuzzServer(f *testing.F) {
	hash := strings.Repeat("a", 40)
	v0 := "001e# service=git-upload-pack\n0000" + "0045" + hash + " HEAD\x00symref=HEAD:refs/heads/main \n"
	f.Add("000eversion 2\n000cfetch=x\n0000", "003d"+hash+" refs/heads/main\n0000", "0000")
	f.Add("000eversion 2\n0013fetch=shallow filter\n0000", "0000", banded(packOf(entry{kind: plumbing.BlobObject, data: []byte("x")})))
	f.Add(v0+"0000", "", "0008NAK\n0006\x01P0000")
	f.Add("0009ERR x", "", "")
	f.Add("", "0001", "fff0")
	f.Fuzz(func(t *testing.T, greeting, list, answer string) {
		ctx := t.Context()
		remote, err := open(ctx, &recorded{[]string{greeting, list, answer}})
		if err != nil {
			return
		}
		refs, err := remote.list(ctx, tagsRef)
		if err == nil {
			for _, ref := range refs {
				if ref.commit == plumbing.ZeroHash && !strings.Contains(greeting+list, strings.Repeat("0", 40)) {
					t.Errorf("%+v", ref)
				}
			}
			_, _, _ = highest(refs, "*", "") // whatever tags there are
		}
		pack, err := remote.fetch(ctx, wanted{objects: []plumbing.Hash{plumbing.NewHash(hash)}})
		if err != nil {
			return
		}
		if n, _ := io.Copy(io.Discard, pack); n > int64(len(answer)+len(greeting)) {
			t.Errorf("%d bytes from %d", n, len(answer))
		}
	})
}

func FuzzTree(f *testing.F) {
	f.Add(treeData("100644 a", plumbing.ZeroHash, "40000 b", plumbing.ZeroHash))
	f.Add([]byte("100644 a\x00short"))
	f.Add([]byte(" \x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err != nil || checkNames("", entries) != nil {
			return
		}
		seen := map[string]bool{}
		for _, e := range entries {
			if e.name == "" || e.name == ".." || strings.ContainsAny(e.name, "/\x00") || seen[e.name] {
				t.Errorf("name %q", e.name)
			}
			seen[e.name] = true
		}
	})
}

func FuzzModules(f *testing.F) {
	f.Add([]byte(modulesOf("lib", "../lib.git")))
	f.Add([]byte("[submodule \"x\"]\n\tpath = \"a\\\"b\"\nurl=;\n"))
	f.Add([]byte("[submodule"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = parseModules(data) // it must not panic
	})
}

func FuzzKnownHosts(f *testing.F) {
	f.Add([]byte("example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA\n"), "example.com:22")
	f.Add([]byte("@revoked * x y"), "h:1")
	f.Fuzz(func(t *testing.T, data []byte, host string) {
		c := &overSSH{at: address{scheme: schemeSSH, host: host}, credentials: Credentials{KnownHosts: data}, scratch: t.TempDir()}
		_, _ = c.config() // it must not panic
	})
}

func TestTheHighestVersion(t *testing.T) {
	tags := func(names ...string) (refs []reference) {
		for _, name := range names {
			refs = append(refs, reference{name: tagsRef + name})
		}
		return refs
	}
	for _, tc := range []struct {
		text string
		refs []reference
		want string
		with string // prefix
	}{
		{"*", tags("1.0.0", "1.10.0", "1.9.0"), "1.10.0", ""},
		{">=1 <2", tags("v1.0.0", "v2.0.0"), "v1.0.0", ""},
		{"*", tags("1.0.0", "v1.0.0"), "1.0.0", ""},
		{"*", tags("v1.0.0", "1.0.0"), "1.0.0", ""},
		{"*", tags("1.0.0", "v2", "2.0", "02.0.0", "2.0.0-alpha"), "1.0.0", ""},
		{">=2.0.0-0", tags("1.0.0", "2.0.0-alpha.2", "2.0.0-alpha.10"), "2.0.0-alpha.10", ""},
		{"*", append(tags("1.0.0"), reference{name: "refs/heads/9.0.0"}), "1.0.0", ""},
		{"*", tags("9.0.0", "app/v1.0.0", "app/v1.2.0", "apps/v8.0.0", "app/x/v7.0.0"), "app/v1.2.0", "app/"},
		{">=1.1 <2", tags("lib-1.1.0", "lib-1.9.0", "lib-2.0.0"), "lib-1.9.0", "lib-"},
	} {
		_, got, err := highest(tc.refs, tc.text, tc.with)
		if err != nil || got != tc.want {
			t.Errorf("%s of %v: %q, %v; want %q", tc.text, tc.refs, got, err, tc.want)
		}
	}
}

func TestPackets(t *testing.T) {
	for text, want := range map[string]string{
		"":           "EOF",
		"00":         "unexpected EOF",
		"0005":       "unexpected EOF",
		"0009abc":    "unexpected EOF",
		"xyz!":       "begins with",
		"-001":       "begins with",
		"0003":       "length 3",
		"ffff":       "length 65535",
		"000bERR no": "unexpected EOF",
		"000aERR no": "the server says: no",
	} {
		p := &packets{r: bytes.NewReader([]byte(text))}
		if _, _, err := p.next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
