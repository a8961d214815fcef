// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/unpack"
)

// Classify judges errors that mean the same for every kind of source: those of
// limits, of unsafe content, of the content store, of the registry configuration,
// and of a caller who gave up.
// what names the source. An *Error stays as it is, nil is nil, and others become
// Transient with the reason SourceUnreachable, so judge those first.
func Classify(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	kind, reason := judge(err)
	return &Error{Kind: kind, Reason: reason, Err: fmt.Errorf("%s: %w", what, err)}
}

func judge(err error) (Kind, string) {
	if _, ok := errors.AsType[*unpack.LimitError](err); ok {
		return Terminal, ReasonLimitExceeded
	}
	if _, ok := errors.AsType[*content.UnsafeError](err); ok {
		return Terminal, ReasonUnsafeContent
	}
	if _, ok := errors.AsType[*content.StoreError](err); ok {
		return Transient, ReasonStoreFailed
	}
	if _, ok := errors.AsType[*content.CorruptError](err); ok {
		return Transient, ReasonStoreFailed
	}
	if _, ok := errors.AsType[*rules.BlockedError](err); ok {
		return Waiting, ReasonBlocked
	}
	if _, ok := errors.AsType[*rules.ProblemError](err); ok {
		return Waiting, ReasonInvalidRegistryConfig
	}
	if errors.Is(err, context.Canceled) {
		return Transient, ReasonCanceled
	}
	return Transient, ReasonSourceUnreachable
}
