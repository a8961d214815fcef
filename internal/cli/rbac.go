// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/certificate"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/permission"
	"rukpak.io/rukpak/provisioner"
)

type rbacVerb struct {
	*session
	renderFlags
	account   string
	older     []provisioner.Phase // what may have to be removed
	installer bool                // the rights of who activates a revision, instead of those of its service account
	stands    string              // namespace of the account; "" is that of -n
	live      bool                // the cluster is asked what it serves and which namespaces there are
}

func (s *session) rbacCommand() *cobra.Command {
	v := &rbacVerb{session: s}
	cmd := &cobra.Command{
		Use:   "rbac (DIR|REF|INSTANCE|REVISION)",
		Short: "Print the least rights that let a service account install content",
		Long: `Prints a service account with the roles and bindings that let it activate content, heal it and remove it, and no
more, for "kubectl apply". A name is given wherever RBAC can do with one; creation cannot.

A folder, or a reference to a registry, is rendered on this machine as "render" does it, with the same flags. An
instance stands for its pending revision, or else for its active one, and for deleting what only older ones have; "instance/NAME" where there is a folder NAME.
The account is that of --account, of the instance, or else "installer"; it stands in the namespace of -n. Where another
account activates what is approved, --installer prints the rights of that one, and what is printed without is what the
instance's own needs to heal and remove everything: grant as much of it as is to be healed.

What is needed in a namespace that the content itself brings is granted in the whole cluster, unless the namespace
exists and the cluster is asked, as for instances and with --live.`,
		Example: `  rukpak rbac ./manifests -n team --account installer | kubectl apply -f -
  rukpak rbac web`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeFoldersAnd("instance", "revision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			phases, err := v.phases(cmd, args[0])
			if err != nil {
				return err
			}
			return v.run(cmd.Context(), phases)
		},
	}
	v.addTo(cmd, s)
	cmd.Flags().StringVar(&v.account, "account", "", "Name of the service account")
	cmd.Flags().BoolVar(&v.installer, "installer", false, "Print the rights of the installer that activates the instance's revision")
	return cmd
}

// phases finds out what the argument is, and reads or renders its objects.
func (v *rbacVerb) phases(cmd *cobra.Command, what string) ([]provisioner.Phase, error) {
	if _, _, prefixed := splitName(what); !isFolder(what) && (!strings.ContainsAny(what, "/:@") || prefixed && isKindPrefix(what)) {
		if given := slices.IndexFunc(renderFlagNames, cmd.Flags().Changed); given >= 0 {
			return nil, usagef(cmd, "--%s is for a folder or a reference that is rendered here, and %s is neither", renderFlagNames[given], what)
		}
		return v.ofCluster(cmd.Context(), what)
	}
	if v.installer {
		return nil, usagef(cmd, "--installer is for an instance or a revision, and %s is neither; name the account with --account", what)
	}
	if err := v.check(cmd, what); err != nil {
		return nil, err
	}
	v.live = v.renderFlags.live
	done, err := v.render(cmd.Context(), v.session, what)
	if err != nil {
		return nil, err
	}
	return done.set.Phases, nil
}

func (v *rbacVerb) ofCluster(ctx context.Context, word string) ([]provisioner.Phase, error) {
	found, err := v.target(ctx, word)
	if err != nil {
		return nil, err
	}
	if found.revision == nil {
		return nil, failf(ExitError, "%s has no revision yet: %s", word, sentence(state.OfInstance(found.instance)))
	}
	v.live = true
	if err := v.ofInstaller(found.revision); err != nil {
		return nil, err
	}
	if v.account == "" && found.instance != nil {
		v.account = found.instance.Spec.ServiceAccountName
	}
	if found.byInstance && found.revision.Spec.Prune {
		if err := v.ofOlder(ctx, found); err != nil {
			return nil, err
		}
	}
	return v.phasesOf(ctx, found.revision)
}

func (v *rbacVerb) phasesOf(ctx context.Context, revision *v1alpha1.InstanceRevision) ([]provisioner.Phase, error) {
	if set, err := v.manifestsOf(ctx, revision); err == nil {
		return set.Phases, nil // with tasks told apart
	}
	objects, err := v.objectsIn(ctx, revision)
	return []provisioner.Phase{{Name: "objects", Objects: objects}}, err
}

// ofOlder notes what older revisions may have in the cluster: who activates the newest one deletes what that has not.
func (v *rbacVerb) ofOlder(ctx context.Context, found target) error {
	all, err := v.revisionsOf(ctx, found.instance)
	if err != nil {
		return err
	}
	for i := range all {
		older := &all[i]
		gone := meta.IsStatusConditionTrue(older.Status.Conditions, v1alpha1.ConditionSuperseded)
		if older.Name == found.revision.Name || older.Status.ActivatedAt == nil || gone {
			continue
		}
		phases, err := v.phasesOf(ctx, older)
		if err != nil {
			v.say("note: the rights to remove what only %s had are not among these: %v", older.Name, err)
			continue
		}
		v.older = append(v.older, phases...)
	}
	return nil
}

// ofInstaller has the rights of the installer printed, if that is asked for.
func (v *rbacVerb) ofInstaller(revision *v1alpha1.InstanceRevision) error {
	by := revision.Spec.Installer
	switch {
	case v.installer && by == nil:
		return failf(ExitError, "%s has no installer: its service account %s activates it", revision.Name, revision.Spec.ServiceAccountName)
	case v.installer:
		v.account, v.stands = by.Name, by.Namespace
	case by != nil:
		v.say("note: it is %s, so these rights are for healing and removing it; --installer prints those of the installer", actorText(revision))
	}
	return nil
}

func (v *rbacVerb) run(ctx context.Context, phases []provisioner.Phase) error {
	namespace, err := v.namespace()
	if err != nil {
		return err
	}
	if v.account == "" {
		v.account = "installer"
	}
	namespace = cmp.Or(v.stands, namespace)
	var mapper meta.RESTMapper = guessing{}
	var exists func(string) bool
	if v.live {
		cluster, err := v.client()
		if err != nil {
			return err
		}
		mapper = cluster.RESTMapper()
		exists = func(name string) bool {
			return cluster.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}) == nil
		}
	}
	needs, err := permission.Needed(append(slices.Clone(phases), certificate.Secrets(phases)...), mapper, nil)
	if err != nil {
		return err
	}
	removal, err := permission.NeededToRemove(activate.State(v.older), mapper)
	if err != nil {
		return err
	}
	return v.printObjects(needs.And(removal).LeastRBAC(namespace, v.account, exists))
}

func (v *rbacVerb) printObjects(objects []runtime.Object) error {
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			v.print("---")
		}
		v.print("%s", strings.TrimSpace(string(text)))
	}
	return nil
}

// guessing names resources by their kinds, as all that come with Kubernetes are named. Of others a definition among the
// objects tells, or the cluster.
type guessing struct{ meta.RESTMapper }

// RESTMapping knows nothing but the resource.
func (guessing) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	version := "v1"
	if len(versions) > 0 {
		version = versions[0]
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(version))
	return &meta.RESTMapping{Resource: plural, GroupVersionKind: kind.WithVersion(version), Scope: meta.RESTScopeNamespace}, nil
}
