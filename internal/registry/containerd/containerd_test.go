// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/registry/rules"
)

const pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"

// says writes a rule as a short line.
func says(r rules.Rule) string {
	line := r.Prefix + accessText(r.Primary)
	if r.MirrorOnly {
		line += " only"
	}
	for _, m := range r.Mirrors {
		line += " | " + m.Location + m.APIPath + accessText(m.Access)
		if m.For != rules.All {
			line += " " + string(m.For)
		}
	}
	return line
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
	if a.DialTimeout != 0 {
		text += " " + a.DialTimeout.String()
	}
	for _, key := range slices.Sorted(maps.Keys(a.Headers)) {
		text += fmt.Sprintf(" %s=%s", key, strings.Join(a.Headers[key], "+"))
	}
	return text
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

// TestQuirks are what the format means where one might think otherwise.
func TestQuirks(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"Empty":                    {"", "docker.io"},
		"ServerIsTheRegistry":      {`server = "https://registry-1.docker.io"`, "docker.io"},
		"ServerElsewhere":          {`server = "https://mirror.example.com"`, "docker.io only | mirror.example.com"},
		"ServerIsAMirror":          {"server = \"https://m.example.com\"\n[host.\"https://m.example.com\"]\n[host.\"https://n.example.com\"]", "docker.io only | m.example.com | n.example.com"},
		"SchemeIsOptional":         {`server = "mirror.example.com:5000"`, "docker.io only | mirror.example.com:5000"},
		"FileOrder":                {"[host.\"https://z.example.com\"]\n[host.\"https://a.example.com\"]\n[host.\"https://m.example.com\"]", "docker.io | z.example.com | a.example.com | m.example.com"},
		"PullIsByDigest":           {"[host.\"https://m.example.com\"]\ncapabilities = [\"Pull\"]", "docker.io | m.example.com digest"},
		"ResolveIsByTag":           {"[host.\"https://m.example.com\"]\ncapabilities = [\"resolve\"]", "docker.io | m.example.com tag"},
		"Both":                     {"[host.\"https://m.example.com\"]\ncapabilities = [\"pull\", \"resolve\", \"push\", \"referrers\"]", "docker.io | m.example.com"},
		"EmptyIsAll":               {"[host.\"https://m.example.com\"]\ncapabilities = []", "docker.io | m.example.com"},
		"PushIsNothing":            {"[host.\"https://m.example.com\"]\ncapabilities = [\"push\"]", "docker.io"},
		"PathGetsV2":               {`[host."https://m.example.com/api"]`, "docker.io | m.example.com/api/v2"},
		"PathWithV2":               {`[host."https://m.example.com/v2/"]`, "docker.io | m.example.com"},
		"OverridePathBelowV2":      {"[host.\"https://m.example.com/v2/project\"]\noverride_path = true", "docker.io | m.example.com/project"},
		"OverridePathElsewhere":    {"[host.\"https://m.example.com/api/docker\"]\noverride_path = true", "docker.io | m.example.com/api/docker"},
		"V2BelowWithoutOverride":   {`[host."https://m.example.com/v2/project"]`, "docker.io | m.example.com/project/v2"}, // the double v2 of migrations, as containerd does it
		"PlainHTTP":                {`[host."http://m.example.com:5000"]`, "docker.io | m.example.com:5000 http"},
		"HTTPWithTLSIsEither":      {"[host.\"http://m.example.com:5000\"]\nskip_verify = true", "docker.io | m.example.com:5000 http skip"},
		"HTTPWithCAIsEither":       {"[host.\"http://m.example.com:5000\"]\nca = \"ca.pem\"", "docker.io | m.example.com:5000 http skip ca"},
		"HTTPAtPort80IsHTTP":       {"[host.\"http://m.example.com\"]\nskip_verify = true", "docker.io | m.example.com http"},
		"SkipVerify":               {"[host.\"https://m.example.com\"]\nskip_verify = true", "docker.io | m.example.com skip"},
		"CAs":                      {"[host.\"https://m.example.com\"]\nca = [\"ca.pem\", \"ca.pem\"]", "docker.io | m.example.com ca"},
		"ClientInOneFile":          {"[host.\"https://m.example.com\"]\nclient = \"both.pem\"", "docker.io | m.example.com cert"},
		"ClientsInFiles":           {"[host.\"https://m.example.com\"]\nclient = [\"both.pem\", \"both.pem\"]", "docker.io | m.example.com cert"},
		"ClientPairs":              {"[host.\"https://m.example.com\"]\nclient = [[\"ca.pem\", \"key.pem\"], [\"both.pem\", \"\"]]", "docker.io | m.example.com cert"},
		"HeadersAsWritten":         {"[host.\"https://m.example.com\".header]\nx-key = \"v\"\nX-List = [\"a\", \"b\"]", "docker.io | m.example.com X-List=a+b x-key=v"},
		"DialTimeout":              {"[host.\"https://m.example.com\"]\ndial_timeout = \"3s\"", "docker.io | m.example.com 3s"},
		"RootFieldsAreOfTheServer": {"skip_verify = true\nca = \"ca.pem\"", "docker.io skip ca"},
		"RootCapabilitiesWithout":  {`capabilities = ["pull"]`, "docker.io"},
		"RootCapabilitiesWith":     {"server = \"https://m.example.com\"\ncapabilities = [\"pull\"]", "docker.io only | m.example.com digest"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"ca.pem": pem, "both.pem": pem + "key", "key.pem": "key"} {
				put(t, dir, file, text)
			}
			rule, err := ParseHosts(&rules.Document{}, "docker.io", filepath.Join(dir, hostsFile), []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, says(rule)); diff != "" {
				t.Errorf("rule (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"Syntax":         {"server = \"https://a\"\n[host.\"https://b\"\n", "hosts.toml:2: it is not TOML"},
		"Capability":     {"[host.\"https://m.example.com\"]\ncapabilities = [\"pull\", \"pul\"]", `hosts.toml:2: unknown capability "pul"`},
		"URL":            {"\n[host.\"ftp://m.example.com\"]", `hosts.toml:2: "ftp://m.example.com" is not a URL`},
		"Server":         {"server = \"https://a.example.com/?x\"", "hosts.toml:1: "},
		"CAIsAbsent":     {"[host.\"https://m.example.com\"]\nca = \"none.pem\"", "hosts.toml:2: ca: open "},
		"CAIsNone":       {"[host.\"https://m.example.com\"]\nca = \"key.pem\"", `hosts.toml:2: ca "key.pem" holds no certificate in PEM`},
		"Client":         {"[host.\"https://m.example.com\"]\nclient = [[\"a\", \"b\", \"c\"]]", "hosts.toml:2: client has 3 names"},
		"KeyIsAbsent":    {"[host.\"https://m.example.com\"]\nclient = [[\"key.pem\", \"none\"]]", "hosts.toml:2: client: "},
		"DialTimeout":    {"dial_timeout = \"soon\"", `hosts.toml:1: dial_timeout is "soon"`},
		"Type":           {"skip_verify = \"yes\"", "hosts.toml:1: skip_verify is of the kind string"},
		"HostIsNoTable":  {"[host]\na = 1", `hosts.toml:2: host "a" is no table`},
		"HeaderIsNumber": {"[header]\na = 1", "hosts.toml:2: header a is of the kind other"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "key.pem", "key")
			_, err := ParseHosts(&rules.Document{}, "docker.io", filepath.Join(dir, hostsFile), []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), dir+"/"+tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTree(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "certs.d/_default/hosts.toml", `[host."https://cache.example.com"]`)
	put(t, dir, "certs.d/a.example.com_5000_/hosts.toml", `[host."https://one.example.com"]`)
	put(t, dir, "certs.d/a.example.com:5000/hosts.toml", `[host."https://two.example.com"]`)
	put(t, dir, "certs.d/certs.example.com/ca.crt", pem)
	put(t, dir, "certs.d/..data/hosts.toml", "not TOML")
	put(t, dir, "certs.d/file", "x")
	if err := os.Mkdir(filepath.Join(dir, "certs.d", "hides.example.com"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "config.json", `{"auths": {"a.example.com:5000": {"auth": "dTpw"}}, "credsStore": "desktop"}`)
	d, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, r := range d.Rules {
		got = append(got, says(r))
	}
	want := []string{
		"* | cache.example.com",
		"a.example.com:5000 | one.example.com", // containerd looks for the spelling with "_" first
		"certs.example.com ca",
		"hides.example.com", // an empty folder hides _default
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if len(d.Logins) != 1 || len(d.Helpers) != 1 || len(d.Notes) != 2 {
		t.Errorf("logins %v, helpers %v, notes %v", d.Logins, d.Helpers, d.Notes)
	}
	if rule := d.Set().Match("hides.example.com/x:1"); rule == nil || rule.Prefix != "hides.example.com" {
		t.Errorf("got %v", rule)
	}
	put(t, dir, "certs.d/bad.example.com/hosts.toml", "=")
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "bad.example.com/hosts.toml:1: ") {
		t.Errorf("mirrors vanish: %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("an empty folder is taken for a configuration")
	}
}

func FuzzParseHosts(f *testing.F) {
	f.Add([]byte("server = \"https://a.example.com\"\n[host.\"https://m.example.com/v2/x\"]\ncapabilities = [\"pull\"]\noverride_path = true\n[host.\"https://m.example.com/v2/x\".header]\na = [\"b\"]"))
	f.Add([]byte("skip_verify = true\ndial_timeout = \"1s\"\n[host.\"http://m:5000\"]\nskip_verify = true"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rule, err := ParseHosts(&rules.Document{}, "docker.io", "/nonexistent/hosts.toml", data)
		if err != nil {
			return
		}
		files, _, err := Write(&rules.Document{Rules: []rules.Rule{rule}})
		if err != nil {
			t.Fatal(err)
		}
		text := files["certs.d/docker.io/hosts.toml"]
		again, err := ParseHosts(&rules.Document{}, "docker.io", "/nonexistent/hosts.toml", text)
		if err != nil {
			t.Fatalf("what was written does not parse: %v\n%s", err, text)
		}
		if diff := cmp.Diff(says(rule), says(again)); diff != "" {
			t.Errorf("read again (-before +after):\n%s\n%s", diff, text)
		}
	})
}

// TestOneFile reads what a user names first: the one file that matters.
func TestOneFile(t *testing.T) {
	dir := t.TempDir()
	hosts := "[host.\"https://m.example.com\"]\n"
	put(t, dir, "certs.d/docker.io/hosts.toml", hosts)
	put(t, dir, "certs.d/a.example.com_5000_/hosts.toml", hosts)
	put(t, dir, "certs.d/_default/hosts.toml", hosts)
	put(t, dir, "loose/hosts.toml", hosts)
	put(t, dir, "certs.d/docker.io/other.toml", hosts)
	put(t, dir, "config.json", `{"auths": {"a.example.com": {"auth": "dTpw"}}}`)
	for file, want := range map[string]string{
		"certs.d/docker.io/hosts.toml":           "docker.io | m.example.com",
		"certs.d/docker.io":                      "docker.io | m.example.com",
		"certs.d/a.example.com_5000_/hosts.toml": "a.example.com:5000 | m.example.com",
		"certs.d/_default/hosts.toml":            "* | m.example.com",
		"config.json":                            "credentials for a.example.com",
		"loose/hosts.toml":                       `"loose" is none: it must be such as docker.io/hosts.toml`,
		"certs.d/docker.io/other.toml":           "other.toml is neither a hosts.toml nor a config.json",
		"none":                                   "no such file",
	} {
		t.Run(file, func(t *testing.T) {
			d, err := Read(filepath.Join(dir, file))
			got := ""
			switch {
			case err != nil:
				got = err.Error()
			case len(d.Logins) > 0:
				got = "credentials for " + d.Logins[0].For
			default:
				got = says(d.Rules[0])
			}
			if !strings.Contains(got, want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
