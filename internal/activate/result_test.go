// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"rukpak.io/rukpak/internal/ownership"
)

func TestRefusalsAreOfKinds(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	refused := &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	tests := map[string]struct {
		err  error
		want Reason
	}{
		"ConnectionRefused": {refused, TransientError},
		"ConnectionCut":     {&url.Error{Op: "Post", Err: io.EOF}, TransientError},
		"AnswerCut":         {errors.New("unexpected error when reading response body. Please retry. Original error: unexpected EOF"), TransientError},
		"Wrapped":           {fmt.Errorf("discovery: %w", refused), TransientError},
		"Cancelled":         {context.Canceled, TransientError},
		"OutOfTime":         {fmt.Errorf("rate: %w", context.DeadlineExceeded), TransientError},
		"TooMany":           {apierrors.NewTooManyRequests("slow down", 1), TransientError},
		"Timeout":           {apierrors.NewTimeoutError("slow", 1), TransientError},
		"Unavailable":       {apierrors.NewServiceUnavailable("starting"), TransientError},
		"Conflict":          {apierrors.NewConflict(configMaps, "x", errors.New("changed")), TransientError},
		"WebhookDown":       {apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)), TransientError},
		"Starting":          {apierrors.NewForbidden(configMaps, "x", errors.New("not yet ready to handle request")), TransientError},
		"Duplicate":         {apierrors.NewInternalError(errors.New(`failed to create typed patch object: duplicate entries for key`)), Rejected},
		"WebhookDenies":     {apierrors.NewForbidden(configMaps, "x", errors.New(`admission webhook "x" denied the request: no`)), Rejected},
		"Quota":             {apierrors.NewForbidden(configMaps, "x", errors.New(`exceeded quota: none`)), Rejected},
		"RBAC":              {apierrors.NewForbidden(configMaps, "x", errors.New(`User "a" cannot get resource "configmaps"`)), PermissionsMissing},
		"Escalation":        {apierrors.NewForbidden(configMaps, "x", errors.New(`user "a" is attempting to grant RBAC permissions not currently held`)), PermissionsMissing},
		"NoMatch":           {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "X"}}, UnknownKind},
		"PathGone":          {apierrors.NewGenericServerResponse(404, "post", configMaps, "x", "404 page not found", 0, true), UnknownKind},
		"NamespaceAbsent":   {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n"), Rejected},
		"Invalid":           {apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", field.ErrorList{field.Required(field.NewPath("spec", "a"), "")}), Rejected},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := classify(ownership.ID{Kind: "X", Name: "x"}, test.err); got.Reason != test.want {
				t.Errorf("got %s, want %s", got.Reason, test.want)
			}
		})
	}
}

func TestNamespaceThatGoesIsNoFault(t *testing.T) {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	if !namespaceGoes(err) {
		t.Error("not seen")
	}
}

func TestResultInOneStableLine(t *testing.T) {
	id := func(name string) ownership.ID { return ownership.ID{Kind: "ConfigMap", Namespace: "n", Name: name} }
	result := Result{
		Skipped: 2,
		Objects: []ObjectResult{
			{ID: id("d"), Action: Failed, Err: &Error{ID: id("d"), Reason: TransientError, Err: errors.New("slow\n  down")}},
			{ID: id("a"), Action: Created},
			{ID: id("c"), Action: Failed, Err: &Error{ID: id("c"), Reason: ImmutableField, Fields: []string{"data"}, Err: errors.New("may not change"), Advice: "undo it"}},
			{ID: id("b"), Action: Applied, Wait: "not Established yet"},
		},
	}
	want := "1 created, 1 applied, 2 failed, 2 not reached; ConfigMap n/c: data: may not change: undo it; ConfigMap n/d: slow down; ConfigMap n/b: not Established yet"
	if got := result.String(); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
	if result.Transient() || result.Reason() != ImmutableField || len(result.Waiting()) != 1 {
		t.Errorf("transient %v, reason %s", result.Transient(), result.Reason())
	}
	if got := (Result{Complete: true}).String(); got != "nothing to do" {
		t.Errorf("got %q", got)
	}
	if err := (Result{}).Err(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestPhaseTriesAllButAfterTheAPIServerIsGone(t *testing.T) {
	// With one worker the order is known.
	p := &phases{parallel: 1}
	refusal := func(reason Reason, cause error) *Error { return &Error{Reason: reason, Err: cause} }
	for name, test := range map[string]struct {
		err  *Error
		want int
	}{
		"Rejected":    {refusal(Rejected, errors.New("no")), 3},
		"Unreachable": {refusal(TransientError, io.EOF), 1},
		"Cancelled":   {refusal(TransientError, context.Canceled), 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.each(t.Context(), nil, "x", three(), fails(test.err))
			if len(got) != test.want {
				t.Errorf("got %d results, want %d", len(got), test.want)
			}
		})
	}
}
