// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/registry/rules"
)

func TestFaultsNameFileAndLineAndShowNoSecret(t *testing.T) {
	for name, tc := range map[string]struct{ file, text, want string }{
		"Syntax":      {"config.json", "{\n\"auths\": hunter2}", "config.json:2: it is not valid JSON"},
		"Base64":      {"config.json", `{"auths": {"a.example.com": {"auth": "hunter2!"}}}`, `config.json: the credentials for "a.example.com" cannot be read`},
		"Type":        {"config.json", "{\n\n\"credHelpers\": \"hunter2\"}", "config.json:3: credHelpers has another type"},
		"Daemon":      {"daemon.json", "{\n\"registry-mirrors\": \"x\"}", "daemon.json:2: registry-mirrors has another type"},
		"Mirror":      {"daemon.json", `{"registry-mirrors": ["mirror.example.com"]}`, "daemon.json: registry-mirrors[0]: it is not an URL"},
		"MirrorPath":  {"daemon.json", `{"registry-mirrors": ["https://a.example.com", "https://b.example.com/x"]}`, "daemon.json: registry-mirrors[1]: a mirror of Docker has neither path"},
		"Certificate": {"certs.d/a.example.com/ca.crt", "x", "ca.crt: it holds no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, tc.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(dir)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("an empty folder is taken for a configuration")
	}
}

// TestOneFile tells by its name what a file is: a daemon.json that is taken for a
// config.json would say nothing.
func TestOneFile(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"daemon.json": `{"registry-mirrors": ["https://m.example.com"]}`,
		"config.json": `{"auths": {"a.example.com": {"auth": "dTpw"}}}`,
	} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if (len(d.Rules) == 1) != (file == "daemon.json") || (len(d.Logins) == 1) != (file == "config.json") {
			t.Errorf("%s gives %d rules and %d credentials", file, len(d.Rules), len(d.Logins))
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"auths": {"https://index.docker.io/v1/": {"auth": "dTpw"}, "a.example.com/x": {"identitytoken": "t"}}, "credHelpers": {"b": "c"}, "credsStore": "d"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &rules.Document{}
		if ParseConfig(d, "auth.json", data, Containers) != nil {
			return
		}
		var notes []rules.Note
		text, err := WriteConfig(d, Containers, &notes)
		if err != nil || text == nil || len(notes) > 0 {
			return
		}
		again := &rules.Document{}
		if err := ParseConfig(again, "auth.json", text, Containers); err != nil {
			t.Fatalf("what was written does not parse: %v\n%s", err, text)
		}
		if len(again.Logins) != len(d.Logins) {
			t.Errorf("%d logins became %d", len(d.Logins), len(again.Logins))
		}
	})
}

func FuzzParseDaemon(f *testing.F) {
	f.Add([]byte(`{"registry-mirrors": ["https://a.example.com"], "insecure-registries": ["b:5000", "10.0.0.0/8"]}`))
	f.Fuzz(func(_ *testing.T, data []byte) { _ = ParseDaemon(&rules.Document{}, "daemon.json", data) })
}
