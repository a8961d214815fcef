// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"

	"rukpak.io/rukpak/internal/registry/rules"
)

// says writes rules as short lines.
func says(d *rules.Document) []string {
	lines := []string{}
	for _, r := range d.Rules {
		line := r.Prefix
		if r.Rewrite != "" {
			line += " -> " + r.Rewrite
		}
		if r.Blocked {
			line += " blocked"
		}
		line += accessText(r.Primary)
		for _, m := range r.Mirrors {
			line += " | " + m.Location + accessText(m.Access)
			if m.For != rules.All {
				line += " " + string(m.For)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func accessText(a rules.Access) string {
	text := ""
	for _, one := range []struct {
		word string
		set  bool
	}{{" http", a.PlainHTTP}, {" skip", a.SkipVerify}, {" ca", a.CA != nil}, {" cert", a.Certificate != nil}} {
		if one.set {
			text += one.word
		}
	}
	return text
}

// TestQuirks are what the format means where one might think otherwise.
func TestQuirks(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"PrefixIsLocation":         {"[[registry]]\nlocation = \"a.example.com/x\"", []string{"a.example.com/x"}},
		"PrefixAndLocation":        {"[[registry]]\nprefix = \"a.example.com\"\nlocation = \"b.example.com/y\"", []string{"a.example.com -> b.example.com/y"}},
		"SlashAtTheEnd":            {"[[registry]]\nprefix = \"a.example.com/\"\nlocation = \"a.example.com//\"", []string{"a.example.com"}},
		"WildcardWithout":          {"[[registry]]\nprefix = \"*.example.com\"\nblocked = true", []string{"*.example.com blocked"}},
		"WildcardWithLocation":     {"[[registry]]\nprefix = \"*.example.com\"\nlocation = \"c.example.org\"", []string{"*.example.com -> c.example.org"}},
		"InsecureIsBoth":           {"[[registry]]\nlocation = \"a.example.com\"\ninsecure = true", []string{"a.example.com http skip"}},
		"MirrorHasItsOwnInsecure":  {"[[registry]]\nlocation = \"a.example.com\"\ninsecure = true\n[[registry.mirror]]\nlocation = \"m.example.com\"", []string{"a.example.com http skip | m.example.com"}},
		"MirrorsInOrder":           {"[[registry]]\nlocation = \"a.example.com\"\nmirror = [{location = \"z.example.com\"}, {location = \"b.example.com\", insecure = true}]", []string{"a.example.com | z.example.com | b.example.com http skip"}},
		"DigestOnly":               {"[[registry]]\nlocation = \"a.example.com\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"m.example.com\"", []string{"a.example.com | m.example.com digest"}},
		"PullFromMirror":           {"[[registry]]\nlocation = \"a.example.com\"\n[[registry.mirror]]\nlocation = \"m.example.com\"\npull-from-mirror = \"tag-only\"\n[[registry.mirror]]\nlocation = \"n.example.com\"\npull-from-mirror = \"all\"\n[[registry.mirror]]\nlocation = \"o.example.com\"\npull-from-mirror = \"digest-only\"", []string{"a.example.com | m.example.com tag | n.example.com | o.example.com digest"}},
		"FirstOfTwoInAFile":        {"[[registry]]\nprefix = \"a.example.com\"\nlocation = \"one.example.com\"\n[[registry]]\nprefix = \"a.example.com\"\nlocation = \"two.example.com\"", []string{"a.example.com -> one.example.com"}},
		"Version1":                 {"[registries.search]\nregistries = [\"docker.io\"]\n[registries.insecure]\nregistries = [\"a.example.com\", \"b.example.com\"]\n[registries.block]\nregistries = [\"b.example.com\"]", []string{"a.example.com http skip", "b.example.com blocked http skip"}},
		"TagAndDigestInThePrefix":  {"[[registry]]\nprefix = \"a.example.com/x:v1\"\nlocation = \"a.example.com/x:v2\"", []string{"a.example.com/x:v1 -> a.example.com/x:v2"}},
		"EmptyPullFromMirrorIsAll": {"[[registry]]\nlocation = \"a.example.com\"\n[[registry.mirror]]\nlocation = \"m.example.com\"\npull-from-mirror = \"\"", []string{"a.example.com | m.example.com"}},
		"Nothing":                  {"# nothing\n", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &rules.Document{}
			if err := ParseConf(d, "registries.conf", []byte(tc.text), false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, says(d)); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"Syntax":              {"[[registry]]\nlocation = \"a.example.com\n", "conf:2: it is not TOML"},
		"KeyTwice":            {"[[registry]]\nlocation = \"a.example.com\"\nlocation = \"b\"\n", "conf:3: it is not TOML"},
		"Neither":             {"\n[[registry]]\nblocked = true", "conf:2: a [[registry]] needs a prefix or a location"},
		"PrefixAlone":         {"[[registry]]\nprefix = \"a.example.com\"", `conf:1: the prefix "a.example.com" needs a location`},
		"Scheme":              {"[[registry]]\nlocation = \"https://a.example.com\"", `conf:2: location "https://a.example.com" has a scheme`},
		"SchemeOfPrefix":      {"[[registry]]\nprefix = \"http://a.example.com\"\nlocation = \"b.example.com\"", `conf:2: prefix "http://a.example.com" has a scheme`},
		"SchemeOfMirror":      {"[[registry]]\nlocation = \"a.example.com\"\n[[registry.mirror]]\nlocation = \"https://m.example.com\"", "conf:4: location"},
		"MirrorWithout":       {"[[registry]]\nlocation = \"a.example.com\"\n[[registry.mirror]]\ninsecure = true", "conf:3: a mirror needs a location"},
		"WildcardAndPath":     {"[[registry]]\nprefix = \"*.example.com/x\"\nblocked = true", "conf:2: the prefix"},
		"WildcardInside":      {"[[registry]]\nprefix = \"a.*.com\"\nlocation = \"a.example.com\"", "conf:2: prefix"},
		"BadScope":            {"[[registry]]\nlocation = \"a.example.com\"\n[[registry.mirror]]\nlocation = \"m.example.com\"\npull-from-mirror = \"never\"", `conf:5: pull-from-mirror is "never"`},
		"ScopeOfThePrimary":   {"[[registry]]\nlocation = \"a.example.com\"\npull-from-mirror = \"all\"", "conf:3: pull-from-mirror belongs into"},
		"TwoWaysOfScope":      {"[[registry]]\nlocation = \"a.example.com\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"m.example.com\"\npull-from-mirror = \"all\"", "conf:6: pull-from-mirror and mirror-by-digest-only"},
		"WrongType":           {"[[registry]]\nlocation = \"a.example.com\"\nblocked = \"yes\"", "conf:3: blocked is of the kind string"},
		"BothVersions":        {"[registries.block]\nregistries = [\"a\"]\n[[registry]]\nlocation = \"a.example.com\"", "conf:1: the file mixes version 1"},
		"SearchIsNoHost":      {"\nunqualified-search-registries = [\"a/b\"]", "conf:2: unqualified-search-registries"},
		"BadShortNameMode":    {"short-name-mode = \"maybe\"", "conf:1: short-name-mode"},
		"RegistryIsNoArray":   {"[registry]\nlocation = \"a.example.com\"", "conf:1: registry is of the kind table"},
		"AllFaultsOfTheFile":  {"[[registry]]\nlocation = \"http://a\"\n[[registry]]\nlocation = \"b.example.com\"\nblocked = 1", "conf:5: blocked is of the kind other"},
		"AllFaultsOfTheFile2": {"[[registry]]\nlocation = \"http://a\"\n[[registry]]\nblocked = 1", "conf:2: location"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ParseConf(&rules.Document{}, "conf", []byte(tc.text), false)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if err := ParseConf(&rules.Document{}, "conf", []byte("[registries.block]\nregistries = []"), true); err == nil || !strings.Contains(err.Error(), "conf:1: a drop-in file must be of version 2") {
		t.Errorf("got %v", err)
	}
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDropInsAndCertificates(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "registries.conf", "[[registry]]\nlocation = \"a.example.com\"\nblocked = true\n[[registry]]\nlocation = \"b.example.com\"\n[[registry.mirror]]\nlocation = \"m.example.com:5000/x\"\n[[registry]]\nprefix = \"*.wild.example.com\"\n[[registry.mirror]]\nlocation = \"m.example.com:5000\"")
	put(t, dir, "registries.conf.d/20-b.conf", "[[registry]]\nlocation = \"c.example.com\"\nblocked = true")
	put(t, dir, "registries.conf.d/10-a.conf", "[[registry]]\nprefix = \"a.example.com\"\nlocation = \"elsewhere.example.com\"\n[[registry]]\nlocation = \"c.example.com\"")
	put(t, dir, "registries.conf.d/ignored.txt", "not TOML")
	pem := "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
	put(t, dir, "certs.d/m.example.com:5000/ca.crt", pem)
	put(t, dir, "certs.d/x.wild.example.com/client.cert", pem)
	put(t, dir, "certs.d/x.wild.example.com/client.key", "key")
	put(t, dir, "auth.json", `{"auths": {"a.example.com/team": {"auth": "dTpw"}}, "credsStore": "x", "credHelpers": {"h.example.com": "pass"}}`)
	d, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a.example.com -> elsewhere.example.com", // that of the later file
		"b.example.com | m.example.com:5000/x ca",
		"*.wild.example.com | m.example.com:5000 ca",
		"c.example.com blocked",
		"m.example.com:5000 ca",
		"x.wild.example.com cert | m.example.com:5000 ca", // as the wildcard says, and with the certificate
	}
	if diff := cmp.Diff(want, says(d)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if len(d.Logins) != 1 || d.Logins[0].For != "a.example.com/team" || len(d.Helpers) != 1 {
		t.Errorf("logins %v, helpers %v", d.Logins, d.Helpers)
	}
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0].What, "credsStore has no effect") {
		t.Errorf("notes %v", d.Notes)
	}
}

func TestContradictingTables(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "registries.conf", "[[registry]]\nlocation = \"a.example.com\"\n[[registry]]\nprefix = \"b.example.com\"\nlocation = \"a.example.com\"\nblocked = true\n")
	_, err := Read(dir)
	if err == nil || !strings.Contains(err.Error(), `registries.conf:3: the location "a.example.com" stands in line 1, too`) {
		t.Errorf("got %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("an empty folder is taken for a configuration")
	}
}

func TestBadCertificatesAndCredentials(t *testing.T) {
	for file, tc := range map[string]struct{ text, want string }{
		"certs.d/a.example.com/ca.crt":      {"hunter2", "holds no certificate in PEM"},
		"certs.d/a.example.com/client.cert": {"x", "has no key"},
		"certs.d/a.example.com/client.key":  {"x", "a key without a certificate"},
		"auth.json":                         {"{\n\n\"auths\": hunter2}", "auth.json:3: it is not valid JSON"},
	} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, file, tc.text)
			_, err := Read(dir)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), filepath.Base(file)) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestTheLongestPrefixWins holds the whole way from file to endpoint to the
// format's documentation.
func TestTheLongestPrefixWins(t *testing.T) {
	d := &rules.Document{}
	text := ""
	for i, prefix := range []string{"example.com/foo/bar", "example.com/foo", "example.com", "*.example.com"} {
		text += fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = \"m%d.example.org\"\n", prefix, i)
	}
	if err := ParseConf(d, "conf", []byte(text), false); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"example.com/foo/bar/image:1": "m0.example.org/image:1",
		"example.com/foo/barista:1":   "m1.example.org/barista:1",
		"example.com/other:1":         "m2.example.org/other:1",
		"a.b.example.com/x:1":         "m3.example.org/x:1",
	} {
		parsed, err := name.ParseReference(ref)
		if err != nil {
			t.Fatal(err)
		}
		found, err := d.Set().Resolve(parsed)
		if err != nil || found.Endpoints[0].Reference.Name() != want {
			t.Errorf("%s: got %v, %v; want %s", ref, found.Endpoints, err, want)
		}
	}
}

func TestCredentialsAlone(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "auth.json", `{"auths": {"a.example.com/x": {"auth": "dTpw"}}}`)
	d, err := Read(filepath.Join(dir, "auth.json"))
	if err != nil || len(d.Logins) != 1 || d.Logins[0].For != "a.example.com/x" {
		t.Errorf("got %+v, %v", d, err)
	}
}

// TestNotesSayWhichRuleTheyAreAbout lets those be told who ask about that rule.
func TestNotesSayWhichRuleTheyAreAbout(t *testing.T) {
	text := "short-name-mode = \"enforcing\"\n[[registry]]\nlocation = \"a.example.com\"\nbloked = true\n" +
		"[[registry]]\nlocation = \"b.example.com\"\n[[registry.mirror]]\nlocation = \"m.example.com\"\nca = \"x\"\n" +
		"[[registry]]\nlocation = \"a.example.com\"\n"
	d := &rules.Document{}
	if err := ParseConf(d, "f", []byte(text), false); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, note := range d.Notes {
		got[note.Where] = note.Rule
		if note.Where == "f:4" && !strings.Contains(note.What, `the key "bloked" is not known and has no effect (did you mean blocked?); known are prefix, `) {
			t.Errorf("got %q", note.What)
		}
	}
	want := map[string]string{"f:1": "", "f:4": "f:2", "f:9": "f:5", "f:10": "f:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules of notes (-want +got):\n%s", diff)
	}
}

func FuzzParseConf(f *testing.F) {
	f.Add([]byte("[[registry]]\nprefix = \"*.example.com\"\nlocation = \"a.example.com\"\n[[registry.mirror]]\nlocation = \"m\"\npull-from-mirror = \"digest-only\"\n"))
	f.Add([]byte("[registries.search]\nregistries = [\"a\"]\n[registries.block]\nregistries = [\"b\"]"))
	f.Add([]byte("registry = [{location = \"a\", mirror = [{location = \"b/c\"}]}]\n[aliases]\na = \"b\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &rules.Document{}
		if ParseConf(d, "conf", data, false) != nil {
			return
		}
		// What was read and can be written says the same when it is read again.
		files, lost, err := Write(d)
		if err != nil || len(lost) > 0 {
			return
		}
		again := &rules.Document{}
		if err := ParseConf(again, "conf", files["registries.conf"], false); err != nil {
			t.Fatalf("what was written does not parse: %v\n%s", err, files["registries.conf"])
		}
		before := &rules.Document{}
		for _, r := range d.Rules { // one that says nothing is not written
			if r.Blocked || r.Rewrite != "" || len(r.Mirrors) > 0 || r.Primary.PlainHTTP {
				before.Rules = append(before.Rules, r)
			}
		}
		if diff := cmp.Diff(says(before), says(again)); diff != "" {
			t.Errorf("read again (-before +after):\n%s", diff)
		}
	})
}
