// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"path/filepath"
)

// sharedData is a path of the real input, which is not part of this repository, and what a row says if it is not there.
func sharedData(name string) (path, missing string) {
	path = filepath.Join(cmp.Or(os.Getenv("RUKPAK_SHARED_DATA"), filepath.Join("..", "shared", "data")), filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		return path, "no " + path + ", which is not part of the repository (RUKPAK_SHARED_DATA names its folder)"
	}
	return path, ""
}
