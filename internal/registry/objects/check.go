// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"regexp"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
)

// The patterns of the API; a test holds them to the schema.
const (
	domainPattern   = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	hostPattern     = `(` + domainPattern + `(\.` + domainPattern + `)*|\[[0-9a-f:]+\])`
	portPattern     = `(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?`
	pathPattern     = `(/[A-Za-z0-9_][A-Za-z0-9._~-]*)*`
	prefixPattern   = `^(\*|\*(\.` + domainPattern + `)+|` + hostPattern + portPattern + pathPattern + `)$`
	locationPattern = `^` + hostPattern + portPattern + pathPattern + `$`
)

var (
	prefixRegexp   = regexp.MustCompile(prefixPattern)
	locationRegexp = regexp.MustCompile(locationPattern)
	apiPathRegexp  = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)
)

func addressable(host string) bool {
	return strings.ContainsAny(host, ".:") || host == "localhost"
}

func goodPrefix(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	return len(text) <= 512 && prefixRegexp.MatchString(text) && (strings.HasPrefix(text, "*") || addressable(host))
}

func goodLocation(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	return len(text) <= 512 && locationRegexp.MatchString(text) && addressable(host)
}

// check finds what the API server would refuse and what would be misread: the
// places that an object names.
func check(config *v1alpha1.RegistryConfig) error {
	for _, rule := range config.Spec.Rules {
		if !goodPrefix(rule.Prefix) {
			return fmt.Errorf("spec.rules: prefix %q is not a host with or without a path, *.domain or *", rule.Prefix)
		}
		if rule.Rewrite != "" && !goodLocation(string(rule.Rewrite)) {
			return fmt.Errorf("spec.rules[%s].rewrite: %q is not a host with or without a path", rule.Prefix, rule.Rewrite)
		}
		if rule.MirrorOnly && len(rule.Mirrors) == 0 {
			return fmt.Errorf("spec.rules[%s]: mirrorOnly needs mirrors", rule.Prefix)
		}
		for i, m := range rule.Mirrors {
			if !goodLocation(string(m.Location)) {
				return fmt.Errorf("spec.rules[%s].mirrors[%d].location: %q is not a host with or without a path", rule.Prefix, i, m.Location)
			}
		}
	}
	return nil
}
