// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
)

// listRevisions reads the revisions of this instance, lowest number first.
func (c *Controller) listRevisions(ctx context.Context, w *work) error {
	var list v1alpha1.InstanceRevisionList
	err := c.Client.List(ctx, &list, client.InNamespace(w.instance.Namespace),
		client.MatchingLabels{v1alpha1.LabelInstance: w.instance.Name})
	if err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	w.revisions = slices.DeleteFunc(list.Items, func(r v1alpha1.InstanceRevision) bool {
		return r.Spec.Instance.UID != w.instance.UID
	})
	slices.SortFunc(w.revisions, func(a, b v1alpha1.InstanceRevision) int {
		return int(a.Spec.Number - b.Spec.Number)
	})
	w.current = newest(w.revisions)
	if last := len(w.revisions); last > 0 {
		// Also after a crash between the making of a revision and this status.
		w.instance.Status.LastRevision = max(w.instance.Status.LastRevision, w.revisions[last-1].Spec.Number)
	}
	return nil
}

// ensureRevision makes a revision unless the newest one is what is wanted.
func (c *Controller) ensureRevision(ctx context.Context, w *work) error {
	if number := w.instance.Spec.RollbackTo; number != nil {
		return c.ensureRollback(ctx, w, *number)
	}
	if err := awaitContent(w.bundle); err != nil {
		return err
	}
	w.places = c.placesOf(w)
	config, err := matching(w, nil)
	if err != nil {
		return err
	}
	content := w.bundle.Status.Content.Digest
	wanted := func(r *v1alpha1.InstanceRevision) bool {
		return r != nil && r.Spec.ContentDigest == content && config.same(r)
	}
	if done, err := c.atRest(ctx, w, wanted); err != nil || done {
		return err
	}
	if active := activeOf(w.revisions); wanted(active) && w.current.Status.ActivatedAt == nil {
		return c.withdraw(ctx, w, active)
	}
	number := w.instance.Status.LastRevision + 1
	if wanted(w.current) {
		number = w.current.Spec.Number
	}
	rendered, err := c.render(ctx, w, number)
	if err != nil {
		return err
	}
	if wanted(w.current) && w.current.Spec.ManifestDigest == rendered.digest {
		return c.store(ctx, w.current, rendered)
	}
	spec := c.newSpec(w, rendered.digest, config.digest)
	spec.ContentDigest, spec.BundleName, spec.OnFailure = content, w.bundle.Name, onFailure(w.instance)
	return c.createRevision(ctx, w, spec, rendered)
}

// atRest reports whether no revision is to be made: the newest is the wanted one, or there in place of that.
func (c *Controller) atRest(ctx context.Context, w *work, wanted func(*v1alpha1.InstanceRevision) bool) (bool, error) {
	if done, err := c.comeBack(ctx, w, wanted); err != nil || done || !wanted(w.current) {
		return done, err
	}
	return c.rendered(ctx, w)
}

// rendered reports whether the newest revision, which is the wanted one, has its manifests. What has them is not rendered
// again: not all content renders to the same twice.
func (c *Controller) rendered(ctx context.Context, w *work) (bool, error) {
	if lostManifests(w.current) {
		return false, nil
	}
	if !isTrue(w.current, v1alpha1.ConditionPlanned) {
		if _, err := c.manifestsOf(ctx, w.current); err != nil {
			return false, ctx.Err()
		}
	}
	return c.settled(ctx, w)
}

// ensureRollback makes a revision with the manifests of an earlier one.
func (c *Controller) ensureRollback(ctx context.Context, w *work, number int64) error {
	from, err := rollbackSource(w, number)
	if err != nil {
		return err
	}
	config, err := matching(w, &number)
	if err != nil {
		return err
	}
	done := w.current.Spec.Number == number ||
		config.same(w.current) && w.current.Spec.ManifestDigest == from.Spec.ManifestDigest
	if done && isTrue(w.current, v1alpha1.ConditionPlanned) {
		return nil
	}
	rendered, err := c.manifestsOf(ctx, from)
	if err != nil {
		return err
	}
	if done {
		return c.store(ctx, w.current, rendered)
	}
	spec := c.newSpec(w, from.Spec.ManifestDigest, config.digest)
	spec.ContentDigest, spec.BundleName, spec.RollbackOf = from.Spec.ContentDigest, from.Spec.BundleName, &number
	return c.createRevision(ctx, w, spec, rendered)
}

// lostManifests reports whether the revision controller found the manifests of a revision gone or changed. The content
// can be rendered again, and if that gives the same bytes they are kept again.
func lostManifests(r *v1alpha1.InstanceRevision) bool {
	conditions := status.Conditions{List: &r.Status.Conditions}
	return conditions.Reason(v1alpha1.ConditionActive) == v1alpha1.ReasonManifestCorrupt ||
		conditions.Reason(v1alpha1.ConditionDrifted) == v1alpha1.ReasonManifestCorrupt
}

func rollbackSource(w *work, number int64) (*v1alpha1.InstanceRevision, error) {
	for i := range w.revisions {
		if w.revisions[i].Spec.Number == number {
			return &w.revisions[i], nil
		}
	}
	return nil, &Hold{
		Reason:  v1alpha1.ReasonRevisionNotFound,
		Message: fmt.Sprintf("spec.rollbackTo: revision %d is not kept; see the revisions with rukpak history", number),
	}
}

// withdraw gives up a pending revision that wrote nothing, because the spec
// went back to what is active.
func (c *Controller) withdraw(ctx context.Context, w *work, active *v1alpha1.InstanceRevision) error {
	pending := w.current
	before := pending.DeepCopy()
	conditions := status.Conditions{List: &pending.Status.Conditions, Generation: pending.Generation}
	message := fmt.Sprintf("the instance went back to revision %d before this one was activated", active.Spec.Number)
	conditions.True(v1alpha1.ConditionSuperseded, v1alpha1.ReasonSuperseded, message)
	if err := status.Patch(ctx, c.Client, pending, before); err != nil {
		return err
	}
	w.current = active
	return nil
}

func (c *Controller) newSpec(w *work, manifest, config v1alpha1.Digest) v1alpha1.InstanceRevisionSpec {
	return v1alpha1.InstanceRevisionSpec{
		Instance:             v1alpha1.InstanceReference{Name: w.instance.Name, UID: w.instance.UID},
		Number:               w.instance.Status.LastRevision + 1,
		ProvisionerClassName: w.class.Name,
		ConfigDigest:         config,
		ManifestDigest:       manifest,
		ServiceAccountName:   w.account,
		Installer:            installerOf(w.class).DeepCopy(),
		Adoption:             adoption(w.instance),
		Prune:                prunes(w.instance),
		RecreateImmutable:    w.instance.Spec.Strategy.RecreateImmutable,
		CRDUpgrade:           w.instance.Spec.Strategy.CRDUpgrade,
		InstanceGeneration:   w.instance.Generation,
		ChangedBy:            changedBy(w.instance, activeOf(w.revisions)),
	}
}

// createRevision makes the object first and its Secrets after it, so that they
// always have an owner; a crash between is found by the missing plan.
func (c *Controller) createRevision(ctx context.Context, w *work, spec v1alpha1.InstanceRevisionSpec, rendered *rendering) error {
	revision := &v1alpha1.InstanceRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       w.instance.Namespace,
			Name:            fmt.Sprintf("%s-%d", w.instance.Name, spec.Number),
			Labels:          map[string]string{v1alpha1.LabelInstance: w.instance.Name},
			OwnerReferences: []metav1.OwnerReference{ownerReference(w.instance)},
		},
		Spec: spec,
	}
	if err := c.caughtUp(ctx, w); err != nil {
		return err
	}
	if err := c.Client.Create(ctx, revision); err != nil {
		return fmt.Errorf("create InstanceRevision %q: %w", revision.Name, err)
	}
	w.instance.Status.LastRevision = spec.Number
	c.event(w.instance, revision, "RevisionCreated", "Create",
		fmt.Sprintf("made revision %d with manifests %s", spec.Number, spec.ManifestDigest))
	w.revisions = append(w.revisions, *revision)
	w.current = &w.revisions[len(w.revisions)-1]
	return c.store(ctx, w.current, rendered)
}

// caughtUp fails as a lost race does when the cache does not have the newest revision yet: it would be made twice, under
// two numbers, and whoever approved the first had approved nothing.
func (c *Controller) caughtUp(ctx context.Context, w *work) error {
	last := w.instance.Status.LastRevision
	if len(w.revisions) > 0 && w.revisions[len(w.revisions)-1].Spec.Number == last || last == 0 {
		return nil
	}
	found := &v1alpha1.InstanceRevision{}
	name := types.NamespacedName{Namespace: w.instance.Namespace, Name: fmt.Sprintf("%s-%d", w.instance.Name, last)}
	err := c.Live.Get(ctx, name, found)
	if err == nil && found.Spec.Instance.UID == w.instance.UID && found.DeletionTimestamp.IsZero() {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("instancerevisions").GroupResource(), name.Name, errors.New("the cache does not have it yet"))
	}
	return client.IgnoreNotFound(err)
}

// newest is the revision with the highest number that was not withdrawn.
func newest(revisions []v1alpha1.InstanceRevision) *v1alpha1.InstanceRevision {
	for i := len(revisions) - 1; i >= 0; i-- {
		if !isTrue(&revisions[i], v1alpha1.ConditionSuperseded) {
			return &revisions[i]
		}
	}
	return nil
}

func wasActive(revision v1alpha1.InstanceRevision) bool { return revision.Status.ActivatedAt != nil }

// activeOf is the revision that is applied and healed, or nil.
func activeOf(revisions []v1alpha1.InstanceRevision) *v1alpha1.InstanceRevision {
	for i := len(revisions) - 1; i >= 0; i-- {
		if isTrue(&revisions[i], v1alpha1.ConditionActive) {
			return &revisions[i]
		}
	}
	return nil
}

func isTrue(revision *v1alpha1.InstanceRevision, conditionType string) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, conditionType)
}
