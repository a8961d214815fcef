// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes. Scripts rely on them: a code keeps its meaning for ever, and
// `rukpak help exit-codes` says the same in prose.
const (
	ExitOK          = 0
	ExitError       = 1   // anything that has no code of its own
	ExitChanges     = 2   // plan --exit-code: there are changes
	ExitWaiting     = 3   // a revision waits for approval
	ExitDenied      = 4   // a revision was denied
	ExitFailed      = 5   // a revision or its content failed
	ExitTimeout     = 6   // the time was up
	ExitNotFound    = 7   // a named object does not exist
	ExitUsage       = 64  // wrong flags or arguments
	ExitInterrupted = 130 // interrupted by Ctrl-C
)

// problem is an error with an exit code and, where there is one, the thing to
// do about it. Every error that leaves a verb becomes one (see explain).
type problem struct {
	code int
	err  error  // nil: nothing is printed, the exit code says all
	hint string // "" or what to do, one line
}

func (p *problem) Error() string {
	if p.err == nil {
		return fmt.Sprintf("exit code %d", p.code)
	}
	return p.err.Error()
}

func (p *problem) Unwrap() error { return p.err }

// failf makes a problem with an exit code.
func failf(code int, format string, args ...any) *problem {
	return &problem{code: code, err: fmt.Errorf(format, args...)}
}

// hintf adds what to do.
func (p *problem) hintf(format string, args ...any) *problem {
	p.hint = fmt.Sprintf(format, args...)
	return p
}

// exitWith ends the program with a code and without a message.
func exitWith(code int) error { return &problem{code: code} }

// usagef is wrong usage of a verb; the hint names its help.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return failf(ExitUsage, format, args...).hintf("%q explains and shows examples", cmd.CommandPath()+" --help")
}

// codeOf gives the exit code of an error.
func codeOf(err error) int {
	if err == nil {
		return ExitOK
	}
	if found := (*problem)(nil); errors.As(err, &found) {
		return found.code
	}
	return ExitError
}
