// SPDX-License-Identifier: Apache-2.0

package instance

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"rukpak.io/rukpak/internal/controller/pace"
)

// Hold is why an instance cannot go on. Without Retry it waits until an object
// that is watched changes; with Retry it is tried again with growing pauses.
type Hold struct {
	Reason  string // of the Ready condition
	Message string
	Retry   bool
	Busy    bool // something is under way without anybody's help
}

// Error gives the message.
func (h *Hold) Error() string { return h.Message }

// lostRace tells errors that only say that the cache is behind.
func lostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

func retryConflict(err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: pace.Conflict}, nil
	}
	return ctrl.Result{}, err
}
