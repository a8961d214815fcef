// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"fmt"
	"strings"
)

// zipNames remembers the names of a zip archive, by what a file system makes of
// them that takes small and capital letters for the same. Zip archives are at
// home there, and tools there would take the one file for the other. A name has
// an entry of its own once at most.
type zipNames map[string]zipName

type zipName struct {
	name string
	own  bool // it has an entry, rather than only others below it
}

func (z zipNames) add(name string) error {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if err := z.one(name[:i], false); err != nil {
			return err
		}
	}
	return z.one(name, true)
}

func (z zipNames) one(name string, own bool) error {
	key := strings.ToLower(strings.ToUpper(name))
	seen, ok := z[key]
	switch {
	case ok && seen.name != name:
		return fmt.Errorf("its name differs from %q only in capital letters, and is the same name on some machines", seen.name)
	case own && seen.own:
		return errors.New("its name is there twice, and readers may take either")
	}
	if !ok || own {
		z[key] = zipName{name, own}
	}
	return nil
}
