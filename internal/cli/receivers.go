// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/table"
)

// parseReceivers reads NAME=URL of those that a class tells.
func parseReceivers(given []string) (all []v1alpha1.ApprovalNotice, err error) {
	for _, one := range given {
		name, to, both := strings.Cut(one, "=")
		parsed, err := url.Parse(to)
		if !both || name == "" || err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return nil, fmt.Errorf("%s: it is NAME=URL, such as chat=https://chat.example.com/hook", one)
		}
		all = append(all, v1alpha1.ApprovalNotice{Name: name, URL: to})
	}
	return all, nil
}

// receivers lists who is told of revisions of a class.
func (d *sheet) receivers(of []v1alpha1.ApprovalNotice) {
	shown := table.Table{}
	for _, one := range of {
		secret := ""
		if one.SecretName != "" {
			secret = "with Secret " + one.SecretName
		}
		shown.Add(one.Name, paint.Clean(one.URL), secret)
	}
	d.section("Tells", shown)
}
