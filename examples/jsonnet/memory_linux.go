// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// limitMemory has the process end rather than take more. What Go reserves and does not use counts too, hence the room.
func limitMemory(bytes uint64) {
	limit := syscall.Rlimit{Cur: bytes, Max: bytes}
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &limit) // without it the limit of the container holds
}
