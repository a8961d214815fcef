// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what has to happen before trying again makes sense.
type Kind int

// The kinds of errors.
const (
	// Transient errors may go away by themselves: try again soon, with backoff.
	Transient Kind = iota
	// Waiting errors go away when somebody does something elsewhere, such as
	// pushing an artifact or mending a pull secret: try again now and then.
	Waiting
	// Terminal errors stay until the spec changes: do not try again.
	Terminal
)

// String gives the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Transient:
		return "transient"
	case Waiting:
		return "waiting"
	case Terminal:
		return "terminal"
	default:
		return fmt.Sprintf("kind %d", int(k))
	}
}

// Reasons that sources give. Each becomes the reason of a condition.
const (
	ReasonInvalidReference     = "InvalidReference"     // the reference does not parse, or names something that cannot be used
	ReasonNotFound             = "NotFound"             // the registry has no such repository, tag, manifest or blob
	ReasonAuthenticationFailed = "AuthenticationFailed" // the registry refuses the credentials, or wants some
	ReasonRegistryUnreachable  = "RegistryUnreachable"  // no answer, a stalled one, or one that says to come back later
	ReasonSourceUnreachable    = "SourceUnreachable"    // as RegistryUnreachable, of any other server
	ReasonRegistryError        = "RegistryError"        // an answer that breaks the protocol
	ReasonSourceError          = "SourceError"          // as RegistryError, of any other server
	ReasonUntrustedServer      = "UntrustedServer"      // a server that does not prove to be the one that is meant
	ReasonUnsupportedContent   = "UnsupportedContent"   // content that stands for other content, such as a pointer of Git LFS
	ReasonContentMismatch      = "ContentMismatch"      // bytes that do not have the digest or size asked for
	ReasonNoPlatform           = "NoPlatform"           // an index without exactly one usable entry for this platform
	ReasonUnsupportedMediaType = "UnsupportedMediaType" // a manifest that is neither an OCI nor a Docker manifest or index
	ReasonLimitExceeded        = "LimitExceeded"        // more than a limit allows
	ReasonUnsafeContent        = "UnsafeContent"        // an entry that would leave the tree, a device, a malformed archive
	ReasonEmptyContent         = "EmptyContent"         // no file at all: never taken for a valid bundle
	ReasonStoreFailed          = "StoreFailed"          // the content store cannot read or write
	ReasonCanceled             = "Canceled"             // the caller gave up

	ReasonBlocked               = "Blocked"               // a rule of the registry configuration refuses the reference
	ReasonInvalidRegistryConfig = "InvalidRegistryConfig" // the rule that is about the reference cannot be used
)

// Error is what went wrong with a source, classified. Its text is that of Err:
// one line that names the reference and never holds credentials.
type Error struct {
	Reason string // one of the Reason constants
	Kind   Kind
	Err    error
	After  time.Duration // the server asks not to be asked again before that
}

// Error gives the text of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// KindOf gives the kind of a classified error. Others are Transient: trying
// again is the safe answer to a fault that nobody has judged.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Transient
}

// ReasonOf gives the reason of a classified error, else "".
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
