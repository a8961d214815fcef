// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/gitserver"
)

func TestSSH(t *testing.T) {
	server := gitserver.NewSSH(t, gitserver.SSHOptions{})
	root := t.TempDir()
	repo := gitserver.NewRepository(t, root, "it's an app.git")
	first := repo.Commit(t, "main", map[string]string{"dir/a": "first", "b": noise(50_000)})
	repo.Git(t, "config", "uploadpack.allowFilter", "true")
	repo.Commit(t, "main", map[string]string{"dir/a": "second", "b": noise(50_000)})
	repo.Git(t, "tag", "v1.0.0", "main")
	url := strings.ReplaceAll(server.URL(repo), " ", "%20")
	good := Credentials{Identity: server.Identity, KnownHosts: server.KnownHosts}
	for name, tc := range map[string]struct {
		src  Source
		want map[string]string
	}{
		"Branch":          {Source{Branch: "main", Credentials: good}, map[string]string{"dir/a": "second", "b": noise(50_000)}},
		"Version":         {Source{Semver: "1.x", SubPath: "dir", Credentials: good}, map[string]string{"a": "second"}},
		"CommitBelowATip": {Source{Commit: first, SubPath: "dir", Credentials: good}, map[string]string{"a": "first"}},
		"LockedKey": {Source{Branch: "main", SubPath: "dir", Credentials: Credentials{Identity: server.Locked(t, "open sesame"), Password: "open sesame", KnownHosts: server.KnownHosts}},
			map[string]string{"a": "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.src.URL = url
			found, err := try(t, newStore(t), New(Options{}), tc.src)
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, found, tc.want)
		})
	}
}

func TestSSHSpeaksTheOldProtocolToo(t *testing.T) {
	server := gitserver.NewSSH(t, gitserver.SSHOptions{OldProtocol: true})
	repo := gitserver.NewRepository(t, t.TempDir(), "app.git")
	first := repo.Commit(t, "main", map[string]string{"a": "first"})
	repo.Commit(t, "main", map[string]string{"a": "second"})
	repo.Git(t, "tag", "v1.0.0", "main")
	src := Source{URL: server.URL(repo), Semver: "*", Credentials: Credentials{Identity: server.Identity, KnownHosts: server.KnownHosts}}
	found, err := try(t, newStore(t), New(Options{}), src)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, found, map[string]string{"a": "second"})
	src.Semver, src.Commit = "", first
	_, err = try(t, newStore(t), New(Options{}), src)
	wantError(t, err, source.Waiting, source.ReasonNotFound, "no branch or tag points at it")
}

func TestSSHRefusesWhoItDoesNotKnow(t *testing.T) {
	server := gitserver.NewSSH(t, gitserver.SSHOptions{})
	repo := gitserver.NewRepository(t, t.TempDir(), "app.git")
	repo.Commit(t, "main", map[string]string{"a": "x"})
	user, _, _ := strings.Cut(strings.TrimPrefix(server.URL(repo), "ssh://"), "@")
	for name, tc := range map[string]struct {
		url         string
		credentials Credentials
		reason      string
		want        string
	}{
		"NoKnownHosts":     {server.URL(repo), Credentials{Identity: server.Identity}, source.ReasonUntrustedServer, "ssh-keyscan"},
		"OtherHostKnown":   {server.URL(repo), Credentials{Identity: server.Identity, KnownHosts: gitserver.NewKnownHosts(t, "example.com:22")}, source.ReasonUntrustedServer, "no host key of " + server.Address + " is known"},
		"WrongHostKey":     {server.URL(repo), Credentials{Identity: server.Identity, KnownHosts: gitserver.NewKnownHosts(t, server.Address)}, source.ReasonUntrustedServer, "it may be another server"},
		"RevokedHostKey":   {server.URL(repo), Credentials{Identity: server.Identity, KnownHosts: append([]byte("@revoked "), server.KnownHosts...)}, source.ReasonUntrustedServer, "it may be another server"},
		"BrokenKnownHosts": {server.URL(repo), Credentials{Identity: server.Identity, KnownHosts: []byte("a b c\n")}, source.ReasonUntrustedServer, "known_hosts:1"},
		"UnknownKey":       {server.URL(repo), Credentials{Identity: gitserver.NewIdentity(t), KnownHosts: server.KnownHosts}, source.ReasonAuthenticationFailed, `does not let the user "` + user + `" in; shown was the private key`},
		"NoKey":            {server.URL(repo), Credentials{KnownHosts: server.KnownHosts}, source.ReasonAuthenticationFailed, "shown was nothing"},
		"PasswordOnly":     {server.URL(repo), Credentials{Password: "secret-password", KnownHosts: server.KnownHosts}, source.ReasonAuthenticationFailed, "shown was the password"},
		"NoRepository":     {server.URL(repo) + "x", Credentials{Identity: server.Identity, KnownHosts: server.KnownHosts}, source.ReasonNotFound, "does not appear to be a git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := try(t, newStore(t), New(Options{}), Source{URL: tc.url, Credentials: tc.credentials})
			wantError(t, err, source.Waiting, tc.reason, tc.want)
			if err != nil && strings.Contains(err.Error(), "secret-password") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestFaultsOfSSHServers(t *testing.T) {
	server := gitserver.NewSSH(t, gitserver.SSHOptions{})
	repo := gitserver.NewRepository(t, t.TempDir(), "app.git")
	commit := repo.Commit(t, "main", map[string]string{"a": noise(300_000)})
	relay := gitserver.NewRelay(t, server.Address)
	known := []byte(strings.ReplaceAll(string(server.KnownHosts), portOf(server.Address), portOf(relay.Address)))
	src := Source{URL: strings.Replace(server.URL(repo), server.Address, relay.Address, 1), Commit: commit, Credentials: Credentials{Identity: server.Identity, KnownHosts: known}}
	for name, tc := range map[string]struct {
		spoil func()
		want  string
	}{
		"SilentAtOnce":      {func() { relay.Stall(0) }, "not a byte came for 500ms"},
		"SilentInHandshake": {func() { relay.Stall(300) }, "not a byte came for 500ms"},
		"SilentInThePack":   {func() { relay.Stall(150_000) }, "not a byte came for 500ms"},
		"CutAtOnce":         {func() { relay.Cut(0) }, "handshake failed"},
		"CutInThePack":      {func() { relay.Cut(150_000) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.spoil()
			store := newStore(t)
			_, err := try(t, store, New(Options{StallTimeout: 500 * time.Millisecond}), src)
			wantError(t, err, source.Transient, source.ReasonSourceUnreachable, tc.want)
			relay.Heal()
			if _, err := try(t, store, New(Options{}), src); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
	src.URL = "ssh://git@127.0.0.1:1/app.git"
	src.Credentials.KnownHosts = gitserver.NewKnownHosts(t, "127.0.0.1:1")
	_, err := try(t, newStore(t), New(Options{}), src)
	wantError(t, err, source.Transient, source.ReasonSourceUnreachable, "refused")
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':'):] }
