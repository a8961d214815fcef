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

	"rukpak.io/rukpak/internal/provisioners/kustomize"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/internal/provisioners/raw"
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

// provisioners are the IDs that the manager of this version serves. Others may be served by managers that were built
// from its parts.
var provisioners = []string{kustomize.ID, plain.ID, raw.ID}

// warnProvisioner says early that nobody may serve a provisioner.
func (s *session) warnProvisioner(id string) {
	if slices.Contains(provisioners, id) {
		return
	}
	if meant := nearest(id, provisioners); meant != "" {
		s.say("warning: RukPak's own manager does not serve the provisioner %q; did you mean %s?", id, meant)
		return
	}
	s.say("warning: RukPak's own manager does not serve the provisioner %q; it serves %s", id, strings.Join(provisioners, ", "))
}

// nearest is the word that differs least, "" if none is near: two letters, or a third of a short word.
func nearest(word string, among []string) string {
	best, found := min(2, len(word)/3)+1, ""
	for _, other := range among {
		if d := distance(word, other); d < best {
			best, found = d, other
		}
	}
	return found
}

// distance is how many letters have to be put in, taken out, changed, or swapped with the next.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
