// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Machine is where the figures were measured. What the kernel does not tell is left empty.
type Machine struct {
	OS         string `json:"os"` // with the architecture
	Kernel     string `json:"kernel,omitempty"`
	CPU        string `json:"cpu,omitempty"`
	Cores      int    `json:"cores"`
	MemoryMiB  int    `json:"memoryMiB,omitempty"`
	Go         string `json:"go"`
	LoadBefore string `json:"loadBefore,omitempty"` // load averages: others that use the machine disturb the figures
	LoadAfter  string `json:"loadAfter,omitempty"`
}

func thisMachine() Machine {
	memory, _, _ := strings.Cut(strings.TrimSpace(field("/proc/meminfo", "MemTotal")), " ")
	kib, _ := strconv.Atoi(memory) // 0 says that it is not known
	return Machine{
		OS: runtime.GOOS + "/" + runtime.GOARCH, Kernel: read("/proc/sys/kernel/osrelease"),
		CPU: strings.TrimSpace(field("/proc/cpuinfo", "model name")), Cores: runtime.NumCPU(), MemoryMiB: kib / 1024,
		Go: runtime.Version(), LoadBefore: load(),
	}
}

func load() string {
	fields := strings.Fields(read("/proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// field is what follows "name:" in a file of /proc.
func field(path, name string) string {
	for _, line := range strings.Split(read(path), "\n") {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return value
		}
	}
	return ""
}

func read(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// Git is the revision that was measured.
type Git struct {
	Revision string `json:"revision"`
	Dirty    bool   `json:"dirty"` // files differ from the revision
}

func (g Git) String() string {
	short := g.Revision[:min(10, len(g.Revision))]
	if g.Dirty {
		return short + " with changes"
	}
	return short
}

func gitHere() Git {
	revision, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return Git{Revision: "unknown"}
	}
	status, err := exec.Command("git", "status", "--porcelain").Output()
	return Git{Revision: strings.TrimSpace(string(revision)), Dirty: err != nil || len(status) > 0}
}
