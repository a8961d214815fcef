// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/gitserver"
	"rukpak.io/rukpak/internal/unpack"
)

var (
	adverts = regexp.MustCompile("/info/refs$")
	packs   = regexp.MustCompile("/git-upload-pack$")
)

// answer gives a body as git's server would.
func answer(mediaType, body string) fault.Action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-"+mediaType)
		_, _ = w.Write([]byte(body))
	}
}

func TestFaultsOfServersAreClassifiedAndHeal(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	src := insecure(server, "app.git")
	src.Commit = repo.Commit(t, "main", map[string]string{"a": noise(200_000)})
	const transient, waiting, terminal = source.Transient, source.Waiting, source.Terminal
	for name, tc := range map[string]struct {
		rule   fault.Rule
		kind   source.Kind
		reason string
		want   string
	}{
		"ServerError":      {fault.Rule{Action: fault.Status(500)}, transient, source.ReasonSourceUnreachable, "500 Internal Server Error"},
		"Overload":         {fault.Rule{Action: fault.Status(429)}, transient, source.ReasonSourceUnreachable, "429"},
		"Unauthorized":     {fault.Rule{Action: fault.Status(401)}, waiting, source.ReasonAuthenticationFailed, "secretRef"},
		"Forbidden":        {fault.Rule{Path: packs, Action: fault.Status(403)}, waiting, source.ReasonAuthenticationFailed, "403"},
		"Absent":           {fault.Rule{Action: fault.Status(404)}, waiting, source.ReasonNotFound, "404"},
		"Teapot":           {fault.Rule{Action: fault.Status(418)}, waiting, source.ReasonSourceError, "418"},
		"Reset":            {fault.Rule{Action: fault.Reset()}, transient, source.ReasonSourceUnreachable, "EOF"},
		"LoginPage":        {fault.Rule{Path: adverts, Action: fault.Replace([]byte("<html>"))}, transient, source.ReasonSourceError, "is the url right?"},
		"NotTheProtocol":   {fault.Rule{Path: adverts, Action: answer("advertisement", "<html>")}, transient, source.ReasonSourceError, "not in git's protocol"},
		"AdvertCut":        {fault.Rule{Path: adverts, Action: fault.Truncate(10)}, transient, source.ReasonSourceUnreachable, "EOF"},
		"AdvertEmpty":      {fault.Rule{Path: adverts, Action: answer("advertisement", "")}, transient, source.ReasonSourceUnreachable, "ends too early"},
		"AdvertStalls":     {fault.Rule{Path: adverts, Action: server.Faults.Stall(10)}, transient, source.ReasonSourceUnreachable, "not a byte came for 300ms"},
		"AdvertHuge":       {fault.Rule{Path: adverts, Action: answer("advertisement", "000eversion 2\n"+strings.Repeat("fff0"+strings.Repeat("x", 0xffec), 1100))}, terminal, source.ReasonLimitExceeded, "more than 67108864"},
		"SHA256":           {fault.Rule{Path: adverts, Action: answer("advertisement", "000eversion 2\n0019object-format=sha256\n0000")}, terminal, source.ReasonInvalidReference, "only SHA-1"},
		"ServerRefuses":    {fault.Rule{Path: packs, Action: answer("result", "0020ERR upload-pack: go away\x1b[2J\n")}, transient, source.ReasonSourceError, "the server says: upload-pack: go away"},
		"PackCut":          {fault.Rule{Path: packs, Action: fault.Truncate(100_000)}, transient, source.ReasonSourceUnreachable, "EOF"},
		"PackEndsEarly":    {fault.Rule{Path: packs, Action: answer("result", "000dpackfile\n000a\x01PACK\x00")}, transient, source.ReasonSourceUnreachable, "ends too early"},
		"PackStalls":       {fault.Rule{Path: packs, Action: server.Faults.Stall(100_000)}, transient, source.ReasonSourceUnreachable, "not a byte came for 300ms"},
		"PackCorrupt":      {fault.Rule{Path: packs, Action: fault.Corrupt(150_000)}, transient, source.ReasonContentMismatch, "damaged"},
		"PackCorruptEarly": {fault.Rule{Path: packs, Action: fault.Corrupt(200)}, transient, source.ReasonContentMismatch, "damaged"},
		"NoPack":           {fault.Rule{Path: packs, Action: answer("result", "0000")}, transient, source.ReasonSourceError, "no pack"},
		"EmptyAnswer":      {fault.Rule{Path: packs, Action: answer("result", "")}, transient, source.ReasonSourceUnreachable, "ends too early"},
		"EmptyPack":        {fault.Rule{Path: packs, Action: answer("result", "000dpackfile\n0025\x01PACK\x00\x00\x00\x02\x00\x00\x00\x00"+"\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e"+"0000")}, transient, source.ReasonContentMismatch, "the commit"},
		"ErrorOnTheBand":   {fault.Rule{Path: packs, Action: answer("result", "000dpackfile\n0013\x03out of memory0000")}, transient, source.ReasonSourceError, "out of memory"},
		"UnknownBand":      {fault.Rule{Path: packs, Action: answer("result", "000dpackfile\n0006\x09x0000")}, transient, source.ReasonSourceError, "no band 9"},
		"PostRedirected": {fault.Rule{Path: packs, Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}}, waiting, source.ReasonSourceError, "307"},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			fetcher := New(Options{})
			if strings.Contains(name, "Stalls") {
				fetcher = New(Options{StallTimeout: 300 * time.Millisecond})
			}
			server.Faults.Add(tc.rule)
			_, err := try(t, store, fetcher, src)
			server.Faults.Clear()
			wantError(t, err, tc.kind, tc.reason, tc.want, "app.git")
			if _, err := try(t, store, New(Options{}), src); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func TestAServerMayAskToBeLeftAlone(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	for header, want := range map[string]time.Duration{"120": 2 * time.Minute, "999999": time.Hour, "-5": 0, "soon": 0, "": 0} {
		server.Faults.Add(fault.Rule{Times: 1, Action: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		}})
		_, err := try(t, newStore(t), New(Options{}), insecure(server, "app.git"))
		if failed, ok := errors.AsType[*source.Error](err); !ok || failed.After != want {
			t.Errorf("Retry-After %q: %+v, want %s", header, failed, want)
		}
	}
}

func TestFaultsWhileResolving(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	gitserver.NewRepository(t, server.Root, "empty.git")
	repo.Commit(t, "main", map[string]string{"a": "x"})
	repo.Git(t, "tag", "v1.0.0", "main")
	repo.Git(t, "tag", "nonsense", "main")
	repo.Git(t, "tag", "tree", "main^{tree}")
	detached := gitserver.NewRepository(t, server.Root, "nohead.git")
	detached.Commit(t, "trunk", map[string]string{"a": "x"})
	for name, tc := range map[string]struct {
		src    Source
		kind   source.Kind
		reason string
		want   string
	}{
		"NoRepository":   {insecure(server, "none.git"), source.Waiting, source.ReasonNotFound, "404"},
		"EmptyHead":      {insecure(server, "empty.git"), source.Waiting, source.ReasonNotFound, "the repository is empty"},
		"NoHead":         {insecure(server, "nohead.git"), source.Waiting, source.ReasonNotFound, "set branch"},
		"NoBranch":       {Source{URL: server.URL("app.git"), Insecure: true, Branch: "mai"}, source.Waiting, source.ReasonNotFound, `no branch "mai"`},
		"NoTag":          {Source{URL: server.URL("app.git"), Insecure: true, Tag: "v1"}, source.Waiting, source.ReasonNotFound, `no tag "v1"`},
		"NoVersion":      {Source{URL: server.URL("app.git"), Insecure: true, Semver: ">1"}, source.Waiting, source.ReasonNotFound, "none of 1 versions is in the range \">1\"; the highest is v1.0.0"},
		"NoVersionAtAll": {Source{URL: server.URL("nohead.git"), Insecure: true, Semver: ">1"}, source.Waiting, source.ReasonNotFound, "there are no versions at all"},
		"BadRange":       {Source{URL: server.URL("app.git"), Insecure: true, Semver: "one"}, source.Terminal, source.ReasonInvalidReference, `semver: "one" is not a range`},
		"TagOfATree":     {Source{URL: server.URL("app.git"), Insecure: true, Tag: "tree"}, source.Terminal, source.ReasonInvalidReference, "is a tree, not a commit"},
		"NoServer":       {Source{URL: "http://127.0.0.1:1/app.git", Insecure: true}, source.Transient, source.ReasonSourceUnreachable, "refused"},
		"NoHost":         {Source{URL: "https://no-such-host.invalid/app.git"}, source.Transient, source.ReasonSourceUnreachable, "no-such-host.invalid"},
		"Metadata":       {Source{URL: "http://169.254.169.254/latest", Insecure: true}, source.Waiting, source.ReasonSourceError, "metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := try(t, newStore(t), New(Options{}), tc.src)
			wantError(t, err, tc.kind, tc.reason, tc.want)
		})
	}
}

func TestAServerThatDripsIsLeft(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	src := insecure(server, "app.git")
	src.Commit = repo.Commit(t, "main", map[string]string{"a": "x"})
	server.Faults.Add(fault.Rule{Path: packs, Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		answer("result", "000dpackfile\n")(w, r, nil)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("0005\x02")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}})
	begun := time.Now()
	_, err := try(t, newStore(t), New(Options{Timeout: 300 * time.Millisecond}), src)
	wantError(t, err, source.Transient, source.ReasonSourceUnreachable, "not done within 300ms")
	if time.Since(begun) > 10*time.Second {
		t.Errorf("it took %v", time.Since(begun))
	}
}

func TestGivingUpIsNotTheServersFault(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	src := insecure(server, "app.git")
	src.Commit = repo.Commit(t, "main", map[string]string{"a": "x"})
	server.Faults.Add(fault.Rule{Path: packs, Action: server.Faults.Stall(0)})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	at := New(Options{}).At(src)
	to := destination(t, newStore(t), unpack.Limits{})
	pinned, err := at.Resolve(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = at.Fetch(ctx, pinned, to)
	wantError(t, err, source.Transient, source.ReasonCanceled)
}

func TestBadSourcesAreTerminal(t *testing.T) {
	const host = "https://example.com/app.git"
	for name, tc := range map[string]struct {
		src  Source
		want string
	}{
		"TwoChoices":     {Source{URL: host, Branch: "a", Tag: "b"}, "at most one"},
		"PlainHTTP":      {Source{URL: "http://example.com/app.git"}, "set insecure"},
		"Password":       {Source{URL: "https://user:hunter22@example.com/app.git"}, "no credentials"},
		"UserOnly":       {Source{URL: "https://hunter22@example.com/app.git"}, "no credentials"},
		"SSHPassword":    {Source{URL: "ssh://git:hunter22@example.com/app.git"}, "no credentials"},
		"SCP":            {Source{URL: "git@example.com:team/app.git"}, "write ssh://"},
		"NoScheme":       {Source{URL: "example.com/app.git"}, "must begin with"},
		"File":           {Source{URL: "file:///etc/app.git"}, "must begin with"},
		"NoPath":         {Source{URL: "https://example.com/"}, "must have a path"},
		"Query":          {Source{URL: host + "?token=hunter22"}, "without a query"},
		"BadHost":        {Source{URL: "https://exa mple/app.git"}, "no valid host"},
		"LineBreak":      {Source{URL: "https://example.com/app%0a.git"}, "not well-formed"},
		"ShortCommit":    {Source{URL: host, Commit: "abcdef"}, "40 hexadecimal digits"},
		"BadBranch":      {Source{URL: host, Branch: "a..b"}, "branch is not a name"},
		"PrefixWithLine": {Source{URL: host, Semver: "*", TagPrefix: "a\n"}, "tagPrefix is not a name"},
		"TagWithALine":   {Source{URL: host, Tag: "a\n0000"}, "tag is not a name"},
		"BadDirectory":   {Source{URL: host, SubPath: "../up"}, "subPath: "},
		"DirectorySlash": {Source{URL: host, SubPath: "/abs"}, "subPath: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{}).At(tc.src).Resolve(t.Context(), source.Destination{})
			wantError(t, err, source.Terminal, source.ReasonInvalidReference, tc.want)
			if strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestAPinOfAnotherRepositoryIsNotFetched(t *testing.T) {
	commit := strings.Repeat("a", 40)
	for _, pinned := range []source.Pinned{
		{Ref: "https://example.com/other.git@sha1:" + commit, Digest: "sha1:" + "a"},
		{Ref: "https://example.com/other.git@sha1:" + commit, Digest: "sha1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		{Ref: "https://example.com/app.git@sha256:" + commit, Digest: "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	} {
		_, _, err := New(Options{}).At(Source{URL: "https://example.com/app.git"}).Fetch(t.Context(), pinned, source.Destination{})
		wantError(t, err, source.Terminal, source.ReasonInvalidReference, "pinned as")
	}
}

var oldName = regexp.MustCompile("^/old.git/")
