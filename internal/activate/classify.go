// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"rukpak.io/rukpak/internal/ownership"
)

// classify makes an Error of what a request for an object answered.
func classify(id ownership.ID, err error) *Error {
	err = withoutValues(id, err)
	out := &Error{ID: id, Reason: Rejected, Err: err, Fields: fieldsOf(err)}
	switch {
	case isTransient(err):
		out.Reason = TransientError
	case notServed(err):
		out.Reason = UnknownKind
		out.Err = errors.New("the API server does not serve this kind in this version")
		out.Advice = "install its CustomResourceDefinition or API service, or bring it in the same bundle"
	case lacksRights(err):
		out.Reason = PermissionsMissing
		out.Advice = "grant it to the service account of the instance"
	case apierrors.IsNotFound(err) && notFoundKind(err) == "namespaces":
		out.Advice = "create the namespace, or bring it in the same bundle"
	}
	return out
}

// withoutValues takes out of a refusal what server-side apply quotes of a Secret: a value of the wrong type. Where that
// ends cannot be told, so all goes that comes after it.
func withoutValues(id ownership.ID, err error) error {
	before, _, found := strings.Cut(err.Error(), ", got ")
	if id.GroupKind() != (schema.GroupKind{Kind: "Secret"}) || !found {
		return err
	}
	return &redacted{text: before + ", got a value that is not shown", err: err}
}

// redacted is an error with another text. What it wraps must not be printed.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

// isTransient reports whether a request may go well a little later, unchanged.
func isTransient(err error) bool {
	return unreachable(err) || interrupted(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsConflict(err) ||
		apierrors.IsInternalError(err) && !refusesApply(err) ||
		// What the API server says while it is starting, and its caches are empty.
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "not yet ready to handle request")
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// unreachable reports whether the API server did not answer at all.
func unreachable(err error) bool {
	if err == nil {
		return false
	}
	var network net.Error
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.As(err, &network) ||
		// What client-go says, without wrapping the cause, when an answer breaks off.
		strings.HasPrefix(err.Error(), "unexpected error when reading response body")
}

// notServed reports whether a kind is not known, or was and is no more.
func notServed(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	status, ok := statusOf(err)
	return ok && status.Reason == metav1.StatusReasonNotFound && (status.Details == nil ||
		slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
			return c.Type == metav1.CauseTypeUnexpectedServerResponse
		}))
}

func notFoundKind(err error) string {
	if status, ok := statusOf(err); ok && status.Details != nil {
		return status.Details.Kind
	}
	return ""
}

// lacksRights tells a refusal of the authorizer from one of admission, such as of a quota. The status has no field for
// that, so the words decide; if they ever change, the message still says what is wrong.
func lacksRights(err error) bool {
	if !apierrors.IsForbidden(err) {
		return apierrors.IsUnauthorized(err)
	}
	text := err.Error()
	return strings.Contains(text, `User "`) && strings.Contains(text, "cannot ") ||
		strings.Contains(text, "attempting to grant RBAC permissions not currently held")
}

// refusesApply reports whether server-side apply could not read the object: a field that the schema does not have, or
// two items with one key. It has a status of its own in no version of Kubernetes.
func refusesApply(err error) bool {
	text := err.Error()
	return strings.Contains(text, "failed to create typed patch object") || strings.Contains(text, "duplicate entries for key") ||
		strings.Contains(text, "field not declared in schema") || strings.Contains(text, "failed to create manager for existing fields")
}

// namespaceGoes reports whether an object cannot be made since its namespace is being deleted.
func namespaceGoes(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// stale reports whether what was looked at has changed, or was replaced by another object of the same name.
func stale(err error) bool {
	return apierrors.IsConflict(err) && !interrupted(err) || invalidField(err, "metadata.uid")
}

func invalidField(err error, field string) bool {
	return apierrors.IsInvalid(err) && slices.Contains(fieldsOf(err), field)
}

// fieldsOf returns the paths that the API server complains of, sorted.
func fieldsOf(err error) []string {
	status, ok := statusOf(err)
	if !ok || status.Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		if cause.Field != "" && cause.Field != "<nil>" {
			fields = append(fields, cause.Field)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func statusOf(err error) (metav1.Status, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return metav1.Status{}, false
	}
	return status.Status(), true
}
