// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"fmt"
	"strings"
)

// inChart makes sure that an entry of a Helm chart is inside its one top
// folder. Helm drops the first part of each name, whatever it is, so that an
// archive without that folder, or with two, is read in as many ways as there
// are readers.
func (u *unpacking) inChart(name string, folder bool) error {
	top, _, inside := strings.Cut(name, "/")
	if !inside && !folder {
		return fmt.Errorf(`it is outside the folder of the chart; pack a Helm chart as one top folder that holds all, as "helm package" does`)
	}
	if u.chart == "" {
		u.chart = top
	}
	if top != u.chart {
		return fmt.Errorf("it is outside the folder of the chart, which is %q; a Helm chart is one top folder that holds all", u.chart)
	}
	return nil
}
