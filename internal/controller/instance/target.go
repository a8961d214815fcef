// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/class"
)

// findClass finds the class of the bundle, or of the revision that is rolled
// back to, and checks that it can be used here.
func (c *Controller) findClass(ctx context.Context, w *work) error {
	name, err := className(w)
	if err != nil {
		return err
	}
	found, err := class.Resolve(ctx, c.Client, name, w.instance.Namespace)
	var unusable *class.UnusableError
	if errors.As(err, &unusable) {
		// The labels of namespaces are not watched here.
		return &Hold{Reason: unusable.Reason, Message: unusable.Message, Retry: unusable.Reason == v1alpha1.ReasonClassNotAllowed}
	}
	if err != nil {
		return err
	}
	w.class = found
	ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
	// That nobody serves the provisioner matters to who needs something rendered, and is said there.
	if ready == nil || ready.Status != metav1.ConditionTrue && ready.Reason != v1alpha1.ReasonProvisionerNotFound {
		message := "not judged yet"
		if ready != nil {
			message = ready.Message
		}
		return &Hold{Reason: v1alpha1.ReasonClassNotReady, Message: fmt.Sprintf("ProvisionerClass %q is not ready: %s", found.Name, message)}
	}
	return nil
}

func className(w *work) (string, error) {
	if number := w.instance.Spec.RollbackTo; number != nil {
		from, err := rollbackSource(w, *number)
		if err != nil {
			return "", err
		}
		return from.Spec.ProvisionerClassName, nil
	}
	if resolved := w.bundle.Status.ProvisionerClassName; resolved != "" {
		return resolved, nil
	}
	return w.bundle.Spec.ProvisionerClassName, nil
}

// findAccount finds the service account as which all is done. There is no
// fall-back: the manager's own rights are never used.
func (c *Controller) findAccount(ctx context.Context, w *work) error {
	w.account = w.instance.Spec.ServiceAccountName
	if identity := w.class.Spec.Identity; w.account == "" && identity != nil {
		w.account = identity.DefaultServiceAccount
	}
	if w.account == "" {
		return &Hold{
			Reason: v1alpha1.ReasonMissingServiceAccount,
			Message: fmt.Sprintf("spec.serviceAccountName is not set and ProvisionerClass %q has no identity.defaultServiceAccount; name a service account",
				w.class.Name),
		}
	}
	if installer := installerOf(w.class); installer != nil && *installer == (v1alpha1.AccountReference{Namespace: w.instance.Namespace, Name: w.account}) {
		return &Hold{
			Reason: v1alpha1.ReasonInstallerIsAccount,
			Message: fmt.Sprintf("ServiceAccount %q is the installer of ProvisionerClass %q, which heals nothing; name a weaker one in spec.serviceAccountName",
				w.account, w.class.Name),
		}
	}
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: w.instance.Namespace, Name: w.account}, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		return &Hold{
			Reason: v1alpha1.ReasonMissingServiceAccount, Retry: true,
			Message: fmt.Sprintf("ServiceAccount %q does not exist in namespace %q; create it or name another", w.account, w.instance.Namespace),
		}
	}
	return err
}

// configDigest covers all but the content that decides what a revision does.
func configDigest(w *work, rollbackOf *int64, installer *v1alpha1.AccountReference) (v1alpha1.Digest, error) {
	all := map[string]any{
		"class":             w.class.Name,
		"provisioner":       w.class.Spec.Provisioner,
		"parameters":        w.class.Spec.Parameters,
		"config":            w.instance.Spec.Config,
		"serviceAccount":    w.account,
		"adoption":          adoption(w.instance),
		"prune":             prunes(w.instance),
		"recreateImmutable": w.instance.Spec.Strategy.RecreateImmutable,
		"rollbackOf":        rollbackOf,
	}
	if len(w.instance.Spec.ConfigFrom) > 0 && rollbackOf == nil {
		all["config"] = w.config
	}
	if onFailure(w.instance) != "" && rollbackOf == nil {
		all["onFailure"] = onFailure(w.instance)
	}
	if len(w.places) > 0 && rollbackOf == nil {
		all["origins"] = w.places
	}
	if override := w.instance.Spec.Strategy.CRDUpgrade; override != nil {
		all["crdUpgrade"] = override
	}
	if installer != nil {
		all["installer"] = installer
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode the configuration: %w", err)
	}
	return v1alpha1.Digest(digest.FromBytes(encoded)), nil
}

// installerOf a class; nil if the instance's own account activates.
func installerOf(class *v1alpha1.ProvisionerClass) *v1alpha1.AccountReference {
	if class.Spec.Identity == nil {
		return nil
	}
	return class.Spec.Identity.Installer
}

// installed reports whether the installer of a revision has nothing left to do: the revision was active, and what older
// ones had is pruned. Then it is of no matter whom the class names by now, and no revision is made for that alone.
func installed(of *v1alpha1.InstanceRevision, all []v1alpha1.InstanceRevision) bool {
	if of.Status.ActiveAt == nil && of.Status.HealthyAt == nil && !isTrue(of, v1alpha1.ConditionActive) {
		return false
	}
	return !slices.ContainsFunc(all, func(other v1alpha1.InstanceRevision) bool {
		return other.Spec.Number < of.Spec.Number && wasActive(other) && !isTrue(&other, v1alpha1.ConditionSuperseded)
	})
}

// matcher compares the configuration of revisions with the one that is wanted.
type matcher struct {
	digest v1alpha1.Digest // of a revision that is made now
	same   func(*v1alpha1.InstanceRevision) bool
}

// matching tells which revisions have the configuration that is wanted.
func matching(w *work, rollbackOf *int64) (matcher, error) {
	config, err := configDigest(w, rollbackOf, installerOf(w.class))
	if err != nil {
		return matcher{}, err
	}
	return matcher{config, func(r *v1alpha1.InstanceRevision) bool {
		if r.Spec.ConfigDigest == config || !installed(r, w.revisions) {
			return r.Spec.ConfigDigest == config
		}
		own, err := configDigest(w, rollbackOf, r.Spec.Installer)
		return err == nil && r.Spec.ConfigDigest == own
	}}, nil
}

func adoption(instance *v1alpha1.BundleInstance) v1alpha1.Adoption {
	if mode := instance.Spec.Strategy.Adoption; mode != "" {
		return mode
	}
	return v1alpha1.AdoptNever
}

// onFailure is that of new revisions; Hold, the default, is not told.
func onFailure(instance *v1alpha1.BundleInstance) v1alpha1.OnFailure {
	if instance.Spec.Strategy.OnFailure == v1alpha1.OnFailureHold {
		return ""
	}
	return instance.Spec.Strategy.OnFailure
}

func prunes(instance *v1alpha1.BundleInstance) bool {
	prune := instance.Spec.Strategy.Prune
	return prune == nil || *prune
}
