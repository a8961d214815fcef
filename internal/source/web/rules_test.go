// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/webserver"
	"rukpak.io/rukpak/internal/unpack"
)

// ruled makes a fetcher with rules of the registry configuration.
func ruled(list ...rules.Rule) *Fetcher {
	config := reach.Fixed(rules.NewSet(list, nil), nil)
	return New(NewClient(Options{Transports: &outbound.Transports{Registries: config}}))
}

func TestRulesOfTheRegistryConfiguration(t *testing.T) {
	secure := webserver.New(t, webserver.Options{TLS: true})
	url := secure.Put("/a.yaml", []byte("kind: A\n"))
	elsewhere := strings.Replace(url, secure.Host(), "charts.example.com", 1)
	door := webserver.New(t, webserver.Options{TLS: true})
	door.Put("/door", nil)
	door.Faults.Add(fault.Rule{Action: webserver.Redirect(url)})
	trusted := rules.Rule{Prefix: secure.Host(), From: "the rule", Primary: rules.Access{CA: secure.CA()}}
	doorRule := rules.Rule{Prefix: door.Host(), From: "the door", Primary: rules.Access{CA: door.CA()}}
	for name, tc := range map[string]struct {
		url    string
		rules  []rules.Rule
		reason string // "" for success
		part   string
	}{
		"None":             {url, nil, source.ReasonUntrustedServer, ""},
		"Authority":        {url, []rules.Rule{trusted}, "", ""},
		"Blocked":          {url, []rules.Rule{{Prefix: secure.Host() + "/a.yaml", From: "the rule", Blocked: true}}, source.ReasonBlocked, "is blocked by the rule"},
		"Rewrite":          {elsewhere, []rules.Rule{trusted, {Prefix: "charts.example.com", From: "moved", Rewrite: secure.Host()}}, "", ""},
		"MirrorsOnly":      {url, []rules.Rule{{Prefix: secure.Host(), From: "the rule", MirrorOnly: true, Mirrors: []rules.Mirror{{Location: "m.example.com"}}}}, source.ReasonInvalidRegistryConfig, "allows only mirrors"},
		"Redirect":         {door.URL("/door"), []rules.Rule{trusted, doorRule}, "", ""},
		"RedirectBlocked":  {door.URL("/door"), []rules.Rule{doorRule, {Prefix: secure.Host(), From: "the rule", Blocked: true}}, source.ReasonBlocked, "is blocked by the rule"},
		"RedirectUnlisted": {door.URL("/door"), []rules.Rule{doorRule}, source.ReasonUntrustedServer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := get(t, ruled(tc.rules...), Source{URL: tc.url}, newStore(t), unpack.Limits{})
			if tc.reason != "" {
				if source.ReasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.part) || source.KindOf(err) != source.Waiting {
					t.Errorf("got %s: %v", source.ReasonOf(err), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range found.files {
				if diff := cmp.Diff("kind: A\n", text); diff != "" {
					t.Errorf("file (-want +got):\n%s", diff)
				}
			}
		})
	}
}
