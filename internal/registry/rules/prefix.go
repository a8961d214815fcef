// SPDX-License-Identifier: Apache-2.0

package rules

import "strings"

// Covers tells how many bytes of a repository's name a prefix is about, as for
// rules of registries; 0 if it is not about it. "prefix/*" is "prefix", and the
// port of HTTPS may be named or not.
func Covers(prefix, repository string) int {
	if prefix != "*" {
		prefix = strings.TrimSuffix(prefix, "/*")
	}
	return covers(withoutPort(Normal(prefix)), withoutPort(Normal(repository)))
}

func withoutPort(text string) string {
	host := hostOf(text)
	return strings.TrimSuffix(host, httpsPort) + text[len(host):]
}
