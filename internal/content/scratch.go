// SPDX-License-Identifier: Apache-2.0

package content

import "os"

// Scratch makes a folder for what a source has to keep on the way to content.
// It lies beside the store, and Close removes it if its user did not.
func (s *Session) Scratch() (string, error) {
	dir, err := os.MkdirTemp(s.dir, "scratch-")
	if err != nil {
		return "", s.disk.failed("make a folder", err)
	}
	return dir, nil
}
