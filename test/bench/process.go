// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on every Linux.
const tick = 10 * time.Millisecond

// processTime is the time that a process has had on any core, in user mode and in the kernel.
func processTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name in parentheses, and may hold anything.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, userErr := strconv.Atoi(fields[11])
	system, systemErr := strconv.Atoi(fields[12])
	if userErr != nil || systemErr != nil {
		return 0, fmt.Errorf("/proc/%d/stat says %s %s", pid, fields[11], fields[12])
	}
	return time.Duration(user+system) * tick, nil
}

// processMemory is a field of /proc/PID/status, such as VmRSS, in MiB.
func processMemory(pid int, name string) (float64, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	value := strings.Fields(field(path, name))
	if len(value) != 2 || value[1] != "kB" {
		return 0, fmt.Errorf("%s says nothing of %s", path, name)
	}
	kib, err := strconv.ParseFloat(value[0], 64)
	return kib / 1024, err
}
