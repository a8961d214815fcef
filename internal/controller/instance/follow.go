// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/source"
)

// Follower finds what the sources of a template mean now.
type Follower interface {
	// Look resolves every source. The error names the source.
	Look(ctx context.Context, namespace string, spec v1alpha1.BundleSpec) (pins []v1alpha1.ResolvedSource, reason string, err error)
}

const (
	// jitter is how much earlier or later than its interval a look may come.
	jitter = 0.1
	// longestPause is the most that a pause grows to after failures, unless the
	// interval is longer.
	longestPause = time.Hour
	// lookTime bounds one look: it keeps a worker busy.
	lookTime = time.Minute
)

// round is when an instance's sources are looked at next. It is held in memory:
// written down it would cost a write at each look. A manager that starts anew
// looks at each instance at some time within its interval.
type round struct {
	interval time.Duration
	next     time.Time
	failures int
}

// follow looks at the sources when it is time to, and says which digests the
// bundle is to have. Without a newer answer they are those that are in use.
func (c *Controller) follow(ctx context.Context, w *work) error {
	conditions := status.Conditions{List: &w.instance.Status.Conditions, Generation: w.instance.Generation}
	track := w.instance.Spec.Track
	if track == nil {
		c.followed.Delete(w.instance.UID)
		conditions.Remove(v1alpha1.ConditionTracking)
		return nil
	}
	if w.instance.Spec.RollbackTo != nil {
		return nil
	}
	spec := template(w.instance)
	inUse, err := c.bundleInUse(ctx, w.instance, spec)
	if err != nil {
		return err
	}
	if inUse == nil {
		conditions.Remove(v1alpha1.ConditionTracking) // what it says is about other sources
		return nil                                    // the bundle that is made now resolves the sources itself
	}
	w.pins = inUse.Spec.Pins
	r := c.roundOf(w.instance)
	if wait := time.Until(r.next); wait > 0 {
		w.again(wait)
		return nil
	}
	if found := c.look(ctx, w, spec, r, conditions); found != nil && changed(inUse, found) {
		w.pins = found
		c.event(w.instance, inUse, "SourceMoved", "Follow", "found "+pinsText(found))
	}
	w.again(time.Until(r.next))
	return nil
}

// look asks the sources once. nil means that they could not be asked.
func (c *Controller) look(ctx context.Context, w *work, spec v1alpha1.BundleSpec, r *round, conditions status.Conditions) []v1alpha1.ResolvedSource {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, reason, err := c.lookAt(ctx, w.instance, spec)
	r.done(err == nil)
	if err != nil {
		if conditions.False(v1alpha1.ConditionTracking, reason, err.Error()) {
			c.Recorder.Eventf(w.instance, nil, corev1.EventTypeWarning, reason, "Follow", "%s", status.Note(err.Error()))
		}
		return nil
	}
	conditions.True(v1alpha1.ConditionTracking, v1alpha1.ReasonFollowing, "in use is what the sources mean: "+pinsText(found))
	return found
}

func (c *Controller) lookAt(ctx context.Context, instance *v1alpha1.BundleInstance, spec v1alpha1.BundleSpec) ([]v1alpha1.ResolvedSource, string, error) {
	if semver := instance.Spec.Track.Semver; semver != "" {
		var any bool
		if spec, any = within(spec, semver); !any {
			return nil, source.ReasonInvalidReference, errors.New("spec.track.semver: none of spec.bundle.sources has a tag or version that the range could stand for; leave it out")
		}
	}
	return c.Follower.Look(ctx, instance.Namespace, spec)
}

// within gives the sources with a range in place of their tags and versions, and
// whether there is any such source.
func within(spec v1alpha1.BundleSpec, semver string) (v1alpha1.BundleSpec, bool) {
	ranged, any := *spec.DeepCopy(), false
	for i := range ranged.Sources {
		switch one := &ranged.Sources[i]; {
		case one.OCI != nil && one.OCI.Semver == "" && !strings.Contains(one.OCI.Ref, "@"):
			one.OCI.Ref, one.OCI.Semver, any = untagged(one.OCI.Ref), semver, true
		case one.Helm != nil:
			one.Helm.Version, any = semver, true
		case one.Git != nil && one.Git.Tag != "":
			one.Git.Tag, one.Git.Semver, any = "", semver, true
		}
	}
	return ranged, any
}

// untagged cuts the tag off a reference; a port is none.
func untagged(ref string) string {
	if colon := strings.LastIndex(ref, ":"); colon > strings.LastIndex(ref, "/") {
		return ref[:colon]
	}
	return ref
}

// bundleInUse is the bundle that was made last from this template, or nil.
func (c *Controller) bundleInUse(ctx context.Context, instance *v1alpha1.BundleInstance, spec v1alpha1.BundleSpec) (*v1alpha1.Bundle, error) {
	if instance.Status.BundleName == "" {
		return nil, nil
	}
	bundle := &v1alpha1.Bundle{}
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: instance.Namespace, Name: instance.Status.BundleName}, bundle)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	unpinned := *bundle.Spec.DeepCopy()
	unpinned.Pins = spec.Pins
	if !metav1.IsControlledBy(bundle, instance) || !equality.Semantic.DeepEqual(unpinned, spec) {
		return nil, nil
	}
	return bundle, nil
}

// changed tells whether sources mean something else than what a bundle has. A
// bundle that has not resolved them yet finds the same by itself.
func changed(inUse *v1alpha1.Bundle, found []v1alpha1.ResolvedSource) bool {
	has := inUse.Spec.Pins
	if len(has) == 0 {
		has = inUse.Status.Sources
	}
	return len(has) > 0 && !slices.EqualFunc(has, found, func(a, b v1alpha1.ResolvedSource) bool { return a.Digest == b.Digest && a.Version == b.Version })
}

func (c *Controller) roundOf(instance *v1alpha1.BundleInstance) *round {
	interval := instance.Spec.Track.Interval.Duration
	if known, ok := c.followed.Load(instance.UID); ok {
		if r := known.(*round); r.interval == interval {
			return r
		}
	}
	r := &round{interval: interval, next: time.Now().Add(time.Duration(rand.Float64() * float64(interval)))} //nolint:gosec // to spread load
	c.followed.Store(instance.UID, r)
	return r
}

// done plans the next look.
func (r *round) done(success bool) {
	pause := r.interval
	if r.failures++; success {
		r.failures = 0
	}
	for range r.failures {
		pause = min(2*pause, max(r.interval, longestPause))
	}
	spread := 1 + jitter*(2*rand.Float64()-1) //nolint:gosec // to spread load
	r.next = time.Now().Add(time.Duration(float64(pause) * spread))
}

func pinsText(pins []v1alpha1.ResolvedSource) string {
	all := make([]string, len(pins))
	for i, pin := range pins {
		all[i] = pin.Ref
		if pin.Version != "" {
			all[i] = fmt.Sprintf("%s (%s)", pin.Ref, pin.Version)
		}
	}
	return strings.Join(all, ", ")
}
