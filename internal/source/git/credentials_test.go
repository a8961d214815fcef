// SPDX-License-Identifier: Apache-2.0

package git

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/gitserver"
)

func redirect(to string) fault.Action {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, to+r.URL.Path[strings.Index(r.URL.Path, "/info/refs"):]+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
	}
}

func TestHTTPSWithCredentialsAndAPrivateAuthority(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{TLS: true, User: "robot", Password: "right-password", Token: "right-token"})
	repo := gitserver.NewRepository(t, server.Root, "app.git")
	repo.Commit(t, "main", map[string]string{"a": "x"})
	for name, tc := range map[string]struct {
		credentials Credentials
		reason      string
		want        string
	}{
		"Password":      {Credentials{Username: "robot", Password: "right-password", CA: server.CA()}, "", ""},
		"Token":         {Credentials{BearerToken: "right-token", CA: server.CA()}, "", ""},
		"WrongPassword": {Credentials{Username: "robot", Password: "wrong-password", CA: server.CA()}, source.ReasonAuthenticationFailed, "do not open this repository"},
		"WrongToken":    {Credentials{BearerToken: "wrong-token", CA: server.CA()}, source.ReasonAuthenticationFailed, "do not open this repository"},
		"Nothing":       {Credentials{CA: server.CA()}, source.ReasonAuthenticationFailed, "secretRef"},
		"NoAuthority":   {Credentials{Username: "robot", Password: "right-password"}, source.ReasonUntrustedServer, "ca.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := try(t, newStore(t), New(Options{}), Source{URL: server.URL("app.git"), Credentials: tc.credentials})
			if tc.want == "" && err == nil {
				wantFiles(t, found, map[string]string{"a": "x"})
				return
			}
			wantError(t, err, source.Waiting, tc.reason, tc.want)
			if err != nil && (strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), "token")) {
				t.Errorf("the error shows credentials: %v", err)
			}
		})
	}
}

func TestARedirectIsFollowedWithoutCredentials(t *testing.T) {
	old := gitserver.New(t, gitserver.Options{})
	moved := gitserver.New(t, gitserver.Options{})
	repo := gitserver.NewRepository(t, moved.Root, "new/place.git")
	repo.Commit(t, "main", map[string]string{"a": "x"})
	old.Faults.Add(fault.Rule{Action: redirect(moved.URL("new/place.git"))})
	src := insecure(old, "app.git")
	src.Credentials = Credentials{Username: "u", Password: "secret-password"}
	found, err := try(t, newStore(t), New(Options{}), src)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, found, map[string]string{"a": "x"})
	if !strings.HasPrefix(found.pinned.Ref, old.URL("app.git")) {
		t.Errorf("pinned as %q", found.pinned.Ref)
	}
	if len(moved.Requests()) < 3 {
		t.Fatal("the redirect was not followed")
	}
	for _, request := range moved.Requests() {
		if request.Authorization != "" {
			t.Errorf("the other server was sent credentials: %+v", request)
		}
	}
	for _, request := range old.Requests() {
		if request.Authorization == "" {
			t.Errorf("the server was sent no credentials: %+v", request)
		}
	}
}

func TestARedirectWithinAServerKeepsCredentials(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{User: "u", Password: "secret-password"})
	repo := gitserver.NewRepository(t, server.Root, "new.git")
	repo.Commit(t, "main", map[string]string{"a": "x"})
	server.Faults.Add(fault.Rule{Path: oldName, Action: redirect(server.URL("new.git"))})
	src := insecure(server, "old.git")
	src.Credentials = Credentials{Username: "u", Password: "secret-password"}
	if _, err := try(t, newStore(t), New(Options{}), src); err != nil {
		t.Fatal(err)
	}
}

func TestRedirectsThatAreNotFollowed(t *testing.T) {
	server := gitserver.New(t, gitserver.Options{})
	secure := gitserver.New(t, gitserver.Options{TLS: true})
	locked := gitserver.New(t, gitserver.Options{User: "u", Password: "p"})
	gitserver.NewRepository(t, locked.Root, "app.git")
	for name, tc := range map[string]struct {
		from   *gitserver.Server
		to     string
		kind   source.Kind
		reason string
		want   string
	}{
		"Loop":      {server, server.URL("app.git"), source.Waiting, source.ReasonSourceError, "more than 5 times"},
		"PlainHTTP": {secure, server.URL("app.git"), source.Waiting, source.ReasonSourceError, "plain HTTP"},
		"Metadata":  {server, "http://169.254.169.254/app", source.Waiting, source.ReasonSourceError, "metadata"},
		"Locked":    {server, locked.URL("app.git"), source.Waiting, source.ReasonAuthenticationFailed, "it was sent no credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.from.Faults.Add(fault.Rule{Action: redirect(tc.to)})
			defer tc.from.Faults.Clear()
			src := Source{URL: tc.from.URL("app.git"), Insecure: tc.from == server, Credentials: Credentials{Username: "u", Password: "p", CA: secure.CA()}}
			_, err := try(t, newStore(t), New(Options{}), src)
			wantError(t, err, tc.kind, tc.reason, tc.want)
		})
	}
	server.Faults.Add(fault.Rule{Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, "/login?token=secret", http.StatusFound)
	}})
	_, err := try(t, newStore(t), New(Options{}), insecure(server, "app.git"))
	wantError(t, err, source.Waiting, source.ReasonSourceError, "to what is no repository")
	if err != nil && strings.Contains(err.Error(), "token") {
		t.Errorf("the error shows a query: %v", err)
	}
}

func TestErrorsShowNoSecrets(t *testing.T) {
	const password = "basic-secret-password"
	encoded := base64.StdEncoding.EncodeToString([]byte("u:" + password))
	server := gitserver.New(t, gitserver.Options{})
	server.Faults.Add(fault.Rule{Action: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		said := "ERR you sent\n" + r.Header.Get("Authorization") + " which is u:" + password
		answer("advertisement", hexLength(said)+said)(w, r, nil)
	}})
	src := insecure(server, "app.git")
	src.Credentials = Credentials{Username: "u", Password: password}
	_, err := try(t, newStore(t), New(Options{}), src)
	wantError(t, err, source.Transient, source.ReasonSourceError, "you sent Basic ***")
	for _, secret := range []string{password, encoded} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q: %v", secret, err)
		}
	}
}

func hexLength(text string) string {
	const digits = "0123456789abcdef"
	n := len(text) + 4
	return string([]byte{digits[n>>12&15], digits[n>>8&15], digits[n>>4&15], digits[n&15]})
}

func TestCredentialsOfASecret(t *testing.T) {
	key, locked := gitserver.NewIdentity(t), gitserver.NewLockedIdentity(t, "open sesame")
	for name, tc := range map[string]struct {
		data map[string]string
		want string // of the error
	}{
		"Password":     {map[string]string{"username": "u", "password": "p\n"}, ""},
		"Token":        {map[string]string{"bearerToken": "t\n"}, ""},
		"Identity":     {map[string]string{"identity": string(key), "known_hosts": "x"}, ""},
		"SSHAuth":      {map[string]string{"ssh-privatekey": string(key)}, ""},
		"OnlyCA":       {map[string]string{"ca.crt": "x"}, "ca.crt holds no certificate"},
		"Empty":        {map[string]string{}, ""},
		"OtherKeys":    {map[string]string{".dockerconfigjson": "hunter22"}, "means nothing; known are"},
		"NoUser":       {map[string]string{"password": "hunter22"}, `"username" is missing`},
		"WrongPhrase":  {map[string]string{"identity": string(locked), "password": "hunter22"}, "does not open the private key"},
		"NoPhrase":     {map[string]string{"identity": string(locked)}, "needs a passphrase"},
		"Both":         {map[string]string{"username": "u", "password": "hunter22", "bearerToken": "t"}, "one server wants one of them"},
		"BadIdentity":  {map[string]string{"identity": "hunter22"}, "no private key"},
		"HeaderInside": {map[string]string{"bearerToken": "hunter22\r\nX-Evil: 1"}, "holds line breaks"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range tc.data {
				data[k] = []byte(v)
			}
			found, err := CredentialsFrom(data)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the error shows a secret: %v", err)
			}
			if strings.ContainsAny(found.Password+found.BearerToken, "\r\n") {
				t.Error("a line break is part of the credentials")
			}
		})
	}
}
