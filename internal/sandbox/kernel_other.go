// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Elsewhere than on Linux, where managers run, a process is bounded by the clock alone.

func attributes(bool) *syscall.SysProcAttr { return nil }

func confineByKernel(int64) error { return nil }

func boundCPU(most time.Duration) (stop func()) {
	timer := time.AfterFunc(most, func() { os.Exit(exitCPU) })
	return func() { timer.Stop() }
}

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
