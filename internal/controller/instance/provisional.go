// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/dependency"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/provisioner"
)

// What an instance depends on may bring APIs that its own content asks for. A revision is rendered and planned before
// that, so that it can be decided about early; what it renders to is looked at again once all it depends on is ready.

// provisionalFor is the digest of the facts if something that the instance depends on is not ready, else "".
func (c *Controller) provisionalFor(ctx context.Context, w *work, facts provisioner.Cluster) (v1alpha1.Digest, error) {
	if len(w.instance.Spec.DependsOn) == 0 {
		return "", nil
	}
	missing, err := dependency.Unready(ctx, c.Client, w.instance)
	if err != nil || len(missing) == 0 {
		return "", err
	}
	return digestOf(facts)
}

func digestOf(facts provisioner.Cluster) (v1alpha1.Digest, error) {
	encoded, err := json.Marshal(facts)
	if err != nil {
		return "", fmt.Errorf("encode what the cluster serves: %w", err)
	}
	return v1alpha1.Digest(digest.FromBytes(encoded)), nil
}

// settled reports whether the newest revision need not be rendered again for what it depends on. One that was rendered
// when the cluster served the same is settled as it is.
func (c *Controller) settled(ctx context.Context, w *work) (bool, error) {
	before := w.current.DeepCopy()
	rendered := before.Status.ProvisionalFor
	if rendered == "" || w.current.Status.ActivatedAt != nil {
		return true, nil
	}
	facts, err := c.Facts.Cluster(ctx)
	if err != nil {
		return false, err
	}
	now, err := c.provisionalFor(ctx, w, facts)
	if err != nil || now != "" {
		return true, err // still not ready
	}
	if now, err = digestOf(facts); err != nil || now != rendered {
		return false, err
	}
	w.current.Status.ProvisionalFor = ""
	return true, status.Patch(ctx, c.Client, w.current, before)
}
