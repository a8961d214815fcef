// SPDX-License-Identifier: Apache-2.0

package devenv

import (
	"context"
	"fmt"
	"time"
)

// What an API server with RukPak's admission policies refuses, and what it lets through once it also knows the kind of
// their parameters. Both are only asked for, never made.
const (
	refused = `{"apiVersion": "rukpak.io/v1alpha1", "kind": "Approval",
		"metadata": {"namespace": "default", "name": "in-force"},
		"spec": {"revision": "none-1", "provisionerClassName": "none", "decision": "Approve", "approver": "nobody",
		"manifestDigest": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}`
	allowed = `{"apiVersion": "rukpak.io/v1alpha1", "kind": "Bundle",
		"metadata": {"namespace": "default", "name": "in-force"},
		"spec": {"sources": [{"oci": {"ref": "registry.example/none:v1"}}]}}`
)

const policyTime = time.Minute

// awaitPolicies waits until the admission policies are in force, which takes the API server some two seconds. Before,
// it would let through what they forbid.
func (e *Env) awaitPolicies(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, policyTime)
	defer cancel()
	for {
		_, refusal := e.Cluster.KubectlInput(ctx, refused, "create", "--dry-run=server", "-f", "-")
		_, failure := e.Cluster.KubectlInput(ctx, allowed, "create", "--dry-run=server", "-f", "-")
		if refusal != nil && failure == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the admission policies are not in force after %s: an approval in another's name gave %v, a bundle %v", policyTime, refusal, failure) //nolint:errorlint // either may be nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}
