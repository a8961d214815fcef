// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package folder

import "golang.org/x/sys/unix"

// markName is an extended attribute of a folder that Write made: the digest of
// what it holds. It adds no file to the content.
const markName = "user.rukpak.content"

func setMark(dir, value string) {
	_ = unix.Setxattr(dir, markName, []byte(value), 0) // not every file system has attributes
}

func getMark(dir string) string {
	buffer := make([]byte, 128)
	n, err := unix.Getxattr(dir, markName, buffer)
	if err != nil || n > len(buffer) {
		return ""
	}
	return string(buffer[:n])
}
