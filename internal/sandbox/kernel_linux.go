// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// attributes give a process that is alone a network of its own, with nobody in it; kernels and container runtimes may
// forbid that.
func attributes(alone bool) *syscall.SysProcAttr {
	if !alone {
		return nil
	}
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET}
}

// confineByKernel bounds the memory, and forbids files, connections, and signals to others, as far as the kernel's Landlock has
// it (source: Linux, Documentation/userspace-api/landlock.rst). The data of time zones may be read, for templates that tell the time.
func confineByKernel(limit int64) error {
	bound := &unix.Rlimit{Cur: uint64(limit), Max: uint64(limit)}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, bound); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	return landlock.V11.BestEffort().Restrict(landlock.RODirs("/usr/share/zoneinfo").IgnoreIfMissing())
}

// boundCPU ends the process when it has used that much of a processor since now, unless it is stopped. The limit of the
// kernel is for a runtime that does not get to look itself.
func boundCPU(most time.Duration) (stop func()) {
	begun := used()
	var before unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CPU, &before) == nil {
		_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: uint64((begun + most).Seconds()) + 5, Max: before.Max})
	}
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if used()-begun > most {
					os.Exit(exitCPU)
				}
			}
		}
	}()
	return func() { close(done) }
}

// used is the time of processors that this process has used.
func used() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func isBrokenPipe(err error) bool {
	return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}
