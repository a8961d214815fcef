// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when its parent ends, however it ends; and keeps a Ctrl-C on the
// terminal from reaching the child before the parent has decided what to do.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
