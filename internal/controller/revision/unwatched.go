// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
)

// Pauses in which objects are looked at that nobody tells the manager of: when all is well, while they become healthy,
// and until it is known whether a watch comes about.
const (
	unwatchedPause = time.Minute
	unhealthyPause = 10 * time.Second
	pendingPause   = 5 * time.Second
)

// lookUnwatched looks again at objects of kinds that the manager may not watch, and says which these are.
func (c *Controller) lookUnwatched(_ context.Context, w *work) error {
	if w.target == nil || w.target.Status.ActivatedAt == nil {
		return nil
	}
	var kinds []string
	for _, pending := range c.Watcher.Pending(w.instance.UID) {
		switch {
		case pending.Err == nil:
			w.lookAgain(time.Now().Add(pendingPause))
			return nil // it is not known yet
		case apierrors.IsForbidden(pending.Err):
			kinds = append(kinds, pending.Kind.String())
		}
	}
	conditions := conditionsOf(w.target)
	if len(kinds) == 0 {
		conditions.Remove(v1alpha1.ConditionUnwatched)
		return nil
	}
	conditions.True(v1alpha1.ConditionUnwatched, v1alpha1.ReasonMayNotWatch, status.OneLine("the manager may not list and watch "+strings.Join(kinds, ", ")+
		": what others change is found within a minute; grant it by a ClusterRole with the label rbac.rukpak.io/aggregate-to-manager-watch: \"true\""))
	pause := unwatchedPause
	if !is(w.target, v1alpha1.ConditionHealthy) {
		pause = unhealthyPause
	}
	w.lookAgain(time.Now().Add(pause))
	return nil
}

// maxKinds bounds the kinds that a status names.
const maxKinds = 512

// kindNames are the kinds of a revision's objects, for its status; none if they are too many.
func kindNames(loaded *Loaded) []string {
	var names []string
	for _, kind := range loaded.Kinds {
		names = append(names, kind.GroupKind().String())
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxKinds {
		return nil
	}
	return names
}

// noteKinds adds the kinds of a revision to those that are noted on its instance, and reports whether there are new ones.
func noteKinds(instance *v1alpha1.BundleInstance, loaded *Loaded) bool {
	noted := instance.Annotations[v1alpha1.AnnotationKinds]
	if noted == anyKind {
		return false
	}
	these := kindNames(loaded)
	all := append(knownKinds(instance), these...)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > maxKinds || len(these) == 0 && len(loaded.Kinds) > 0 {
		all = []string{anyKind}
	}
	if strings.Join(all, ",") == noted {
		return false
	}
	metav1.SetMetaDataAnnotation(&instance.ObjectMeta, v1alpha1.AnnotationKinds, strings.Join(all, ","))
	return true
}

// anyKind is noted where there are too many kinds to note.
const anyKind = "*"

// knownKinds are those that are noted on an instance; none if they are not known.
func knownKinds(instance *v1alpha1.BundleInstance) []string {
	if instance.Annotations[v1alpha1.AnnotationKinds] == anyKind {
		return nil
	}
	return strings.FieldsFunc(instance.Annotations[v1alpha1.AnnotationKinds], func(r rune) bool { return r == ',' })
}
