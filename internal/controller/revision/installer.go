// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/identity"
)

// account is a service account in a namespace, and how messages name it.
type account struct{ namespace, name string }

// in is the name alone where the namespace is that of the revision.
func (a account) in(namespace string) string {
	if a.namespace == namespace {
		return a.name
	}
	return a.namespace + "/" + a.name
}

// accountOf is the service account that heals a revision and removes its objects.
func accountOf(revision *v1alpha1.InstanceRevision) account {
	return account{revision.Namespace, revision.Spec.ServiceAccountName}
}

// wasActive reports whether a revision has ever been active: then all that it may install is installed, and what is
// written from then on is healing. Older managers did not note it.
func wasActive(revision *v1alpha1.InstanceRevision) bool {
	return revision.Status.ActiveAt != nil || revision.Status.HealthyAt != nil || is(revision, v1alpha1.ConditionActive)
}

// healsOnly reports whether a revision is healed by a weaker account than the one that installed it. What that account may
// not write, or even read, is no reason to leave the rest as others changed it.
func healsOnly(of *v1alpha1.InstanceRevision) bool { return of.Spec.Installer != nil && wasActive(of) }

// withheld says why an installer may not be used, though its revision was approved. Nothing is written then.
type withheld struct{ reason, message string }

func (w *withheld) Error() string { return w.message }

// installing gives the account that applies the objects of a revision which was never active, and prunes what older ones
// left: the installer that the revision pinned when it was made and that its approvers saw, if the class still names it.
// The class as it is now is asked each time, so that an installer is out of use as soon as it is taken from the class.
func installing(ctx context.Context, live client.Reader, of *v1alpha1.InstanceRevision) (account, error) {
	pinned := of.Spec.Installer
	if pinned == nil {
		return accountOf(of), nil
	}
	class := &v1alpha1.ProvisionerClass{}
	err := live.Get(ctx, types.NamespacedName{Name: of.Spec.ProvisionerClassName}, class) // a cache may lag behind who takes it away
	if client.IgnoreNotFound(err) != nil {
		return account{}, err
	}
	use := account{pinned.Namespace, pinned.Name}
	if now := class.Spec.Identity; now == nil || now.Installer == nil || *now.Installer != *pinned {
		return account{}, &withheld{v1alpha1.ReasonInstallerChanged, fmt.Sprintf(
			"nothing is written: it was to be activated as ServiceAccount %s/%s, and ProvisionerClass %q %s; a new revision is made, which needs an approval of its own",
			use.namespace, use.name, of.Spec.ProvisionerClassName, namesNow(err, class))}
	}
	if use == accountOf(of) {
		return account{}, &withheld{v1alpha1.ReasonInstallerIsAccount, fmt.Sprintf(
			"nothing is written: ServiceAccount %s/%s is the installer of ProvisionerClass %q and may not be an instance's own account too", use.namespace, use.name, class.Name)}
	}
	err = identity.Exists(ctx, live, use.namespace, use.name)
	var missing *identity.MissingServiceAccountError
	if errors.As(err, &missing) {
		return account{}, &withheld{v1alpha1.ReasonMissingServiceAccount, fmt.Sprintf(
			"nothing is written: ServiceAccount %q, the installer of ProvisionerClass %q, does not exist in namespace %q; create it, or name another in identity.installer of the class",
			use.name, class.Name, use.namespace)}
	}
	return use, err
}

func namesNow(err error, class *v1alpha1.ProvisionerClass) string {
	if err != nil {
		return "is gone"
	}
	if class.Spec.Identity == nil || class.Spec.Identity.Installer == nil {
		return "names no installer any more"
	}
	return fmt.Sprintf("names %s/%s by now", class.Spec.Identity.Installer.Namespace, class.Spec.Identity.Installer.Name)
}

// applying gives the account that applies the objects of the target: the installer until it is active, and never again.
func applying(ctx context.Context, live client.Reader, of *v1alpha1.InstanceRevision) (account, error) {
	if wasActive(of) {
		return accountOf(of), nil
	}
	return installing(ctx, live, of)
}

// mayWrite finds the account that applies the target. If there is none now, it says so on the target, and what is active
// is still healed.
func (c *Controller) mayWrite(ctx context.Context, w *work, loaded *Loaded) (client.Client, account, error) {
	use, err := applying(ctx, c.Live, w.target)
	var why *withheld
	if errors.As(err, &why) {
		conditionsOf(w.target).False(v1alpha1.ConditionActive, why.reason, why.message)
		w.requeue = permissionsPause // nothing tells of service accounts
		c.healActive(ctx, w, loaded)
		return nil, use, nil
	}
	if err != nil {
		return nil, use, err
	}
	actor, err := c.Accounts.Client(use.namespace, use.name)
	return actor, use, err
}

// pruning gives the client that deletes what an older revision left. Where the manifests of that are lost, what it left is
// known by its mark alone, which whoever may label objects can give to any: such are deleted with no more than the
// account's own rights.
func (c *Controller) pruning(ctx context.Context, of *v1alpha1.InstanceRevision, known *Loaded) (client.Client, error) {
	use := accountOf(of)
	if known != nil {
		var err error
		if use, err = installing(ctx, c.Live, of); err != nil {
			return nil, err
		}
	}
	return c.Accounts.Client(use.namespace, use.name)
}

// Installer is who would activate a revision now, if that is not its service account: nil then. An error says why an
// installer may not be used: then a plan has no business to act as it either.
func Installer(ctx context.Context, live client.Reader, of *v1alpha1.InstanceRevision) (*v1alpha1.AccountReference, error) {
	use, err := applying(ctx, live, of)
	if err != nil || use == accountOf(of) {
		return nil, err
	}
	return &v1alpha1.AccountReference{Namespace: use.namespace, Name: use.name}, nil
}
