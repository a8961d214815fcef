// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/provisioners"
	"rukpak.io/rukpak/internal/spelling"
)

// checkImage refuses what is no reference, as push does: no registry would ever understand it.
func (f *imageFlags) checkImage() error {
	if f.image == "" {
		return nil
	}
	if _, err := name.ParseReference(f.image); err != nil {
		return failf(ExitUsage, "--image %q is no reference: %w", f.image, err).
			hintf("a reference is REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:...")
	}
	return nil
}

// warnMissing says early that an object which something names does not exist: it may come later, and what names it waits
// for it. Who may not look is not told.
func (s *session) warnMissing(ctx context.Context, kindName, name string) {
	cluster, namespace, err := s.place()
	known, _ := kindOf(kindName)
	if err != nil || name == "" {
		return
	}
	key, where := client.ObjectKey{Namespace: namespace, Name: name}, " in namespace \""+namespace+"\""
	if known.cluster {
		key.Namespace, where = "", ""
	}
	if err := cluster.Get(ctx, key, known.object()); apierrors.IsNotFound(err) {
		s.say("warning: there is no %s %q%s yet; %s lists those that there are", kindName, name, where, s.command("get %s", known.plural))
	}
}

// warnRole says early that a role which a binding names does not exist.
func (s *session) warnRole(ctx context.Context, namespace, kind, name string) {
	cluster, err := s.client()
	if err != nil || name == "" {
		return
	}
	var object client.Object = &rbacv1.ClusterRole{}
	if kind == "Role" {
		object = &rbacv1.Role{}
	}
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); apierrors.IsNotFound(err) {
		s.say("warning: there is no %s %q yet: until there is, the account may do nothing by it", kind, name)
	}
}

// warnProvisioner says early that nobody may serve a provisioner. Others than those that come with RukPak may be served
// by programs of their own.
func (s *session) warnProvisioner(id string) {
	own := provisioners.IDs()
	if slices.Contains(own, id) {
		return
	}
	if meant := spelling.Nearest(id, own); meant != "" {
		s.say("warning: RukPak's own manager does not serve the provisioner %q; did you mean %s?", id, meant)
		return
	}
	s.say("warning: RukPak's own manager does not serve the provisioner %q; it serves %s", id, strings.Join(own, ", "))
}
