// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/plural"
)

type runVerb struct {
	*session
	instanceFlags
	approving
	name          string
	registry      string
	createAccount string
}

// Values of --create-account.
const (
	accountClusterAdmin   = "cluster-admin"
	accountNamespaceAdmin = "namespace-admin"
)

// accountName is that of a service account which run makes.
const accountName = "rukpak-installer"

func (s *session) runCommand() *cobra.Command {
	v := &runVerb{session: s}
	cmd := &cobra.Command{
		Use:   "run (DIR|REF)",
		Short: "All in one: bring a folder, create what is missing, show the plan, get it approved, wait until it is healthy",
		Long: `Brings content to where it is active and healthy, and shows each step:

  1. a folder is uploaded to the cluster, or pushed to --registry; a reference to a registry is used as it is
  2. the class, the service account (only with --create-account) and the instance are created if they are
     missing; an instance that exists gets the new content and what the flags say, and keeps the rest
  3. the plan is shown, and you are asked to approve it; with --approve it is approved without asking
  4. it is waited for until everything is active and healthy

Where nobody can be asked, it ends after the plan with exit code 3 and prints the next command.`,
		Example: `  # A folder of manifests, for a first try
  rukpak run ./manifests --create-account=cluster-admin

  # By way of a registry, which keeps every version
  rukpak run ./manifests --registry registry.example.com/team

  # A new version, approved without asking
  rukpak run registry.example.com/team/web:v2 --name web --approve -m "release 2"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.checkFlags(cmd, args[0]); err != nil {
				return err
			}
			return v.run(cmd, args[0])
		},
	}
	v.instanceFlags.addTo(cmd, s)
	v.approving.addTo(cmd)
	for _, hidden := range []string{"image", "bundle"} { // the argument says it
		_ = cmd.Flags().MarkHidden(hidden)
	}
	flags := cmd.Flags()
	flags.StringVar(&v.name, "name", "", "Name of the instance; that of the folder (of the one above it, if that is called by a version) or repository if not set")
	flags.StringVar(&v.registry, "registry", "", "Where a folder is pushed to: REGISTRY[:PORT][/PREFIX]; the cluster must reach it by the same name. Not set means that it is uploaded to the cluster")
	flags.StringVar(&v.createAccount, "create-account", "", "Create a service account if there is none: cluster-admin (may do anything) or namespace-admin (anything in this namespace)")
	_ = cmd.RegisterFlagCompletionFunc("create-account", cobra.FixedCompletions([]string{accountClusterAdmin, accountNamespaceAdmin}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (v *runVerb) checkFlags(cmd *cobra.Command, what string) error {
	if v.image != "" || v.bundle != "" {
		return usagef(cmd, "the content is the argument, not --image or --bundle")
	}
	if cmd.Flags().Changed("create-account") {
		if err := oneOf(cmd, "create-account", v.createAccount, accountClusterAdmin, accountNamespaceAdmin); err != nil {
			return err
		}
	}
	if v.name == "" {
		v.name = nameFrom(what)
	}
	switch {
	case v.name == "":
		return usagef(cmd, "no name for the instance follows from %q; give one with --name", what)
	case !isFolder(what) && (looksLikePath(what) || exists(what)):
		return checkIsFolder(cmd, what)
	case !isFolder(what) && v.registry != "":
		return usagef(cmd, "--registry is for a folder, and %s is none", what)
	}
	return v.check(cmd)
}

func checkIsFolder(cmd *cobra.Command, path string) error {
	switch info, err := os.Stat(path); {
	case err != nil:
		return usagef(cmd, "there is no folder %s", path)
	case !info.IsDir():
		return usagef(cmd, "%s is a file, not a folder: unpack it, or put it into a folder of its own if it is an archive of a chart", path)
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func looksLikePath(what string) bool {
	return strings.HasPrefix(what, ".") || strings.HasPrefix(what, "/") || strings.HasPrefix(what, "~")
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// versionName are names of folders that say which version is in it, and not of what.
var versionName = regexp.MustCompile(`^v?\d+([.-].*)?$`)

// nameFrom makes the name of an instance from a folder or a reference.
func nameFrom(what string) string {
	if absolute, err := filepath.Abs(what); err == nil && isFolder(what) {
		what = absolute
	} else {
		what, _, _ = strings.Cut(what, "@")
		if slash, colon := strings.LastIndex(what, "/"), strings.LastIndex(what, ":"); colon > slash {
			what = what[:colon]
		}
	}
	if versionName.MatchString(filepath.Base(what)) && isFolder(what) && filepath.Dir(what) != what {
		what = filepath.Dir(what)
	}
	name := notInNames.ReplaceAllString(strings.ToLower(filepath.Base(what)), "-")
	return strings.Trim(name[:min(len(name), v1alpha1.MaxInstanceNameLength)], "-")
}

func (v *runVerb) run(cmd *cobra.Command, what string) error {
	ctx := cmd.Context()
	if err := v.ensureClass(ctx); err != nil { // also finds out whether there is a cluster, before anything is pushed
		return err
	}
	if err := v.ensureAccount(ctx, cmd); err != nil {
		return err
	}
	if err := v.content(ctx, what); err != nil {
		return err
	}
	if err := v.ensureInstance(cmd); err != nil {
		return err
	}
	return v.carry(ctx, v.session, v.name)
}

// content finds what is to be run. A folder is pushed first, or uploaded where
// there is no registry.
func (v *runVerb) content(ctx context.Context, what string) error {
	if !isFolder(what) {
		v.image = what
		return nil
	}
	if v.registry == "" {
		done, err := v.session.upload(ctx, what)
		if err != nil {
			return err
		}
		v.uploaded = done.Digest
		v.say("uploaded %s: %s, %s", what, plural.Of(done.Files, "file"), bytesText(done.Bytes))
		return nil
	}
	ref := strings.TrimSuffix(v.registry, "/") + "/" + v.name + ":latest"
	pushed, err := v.push(ctx, what, ref, v.insecure)
	if err != nil {
		return err
	}
	v.image = pushed.Ref
	v.say("pushed %s", pushed.Ref)
	return nil
}

// ensureInstance creates the instance, or changes one that exists.
func (v *runVerb) ensureInstance(cmd *cobra.Command) error {
	ctx := cmd.Context()
	cluster, namespace, err := v.place()
	if err != nil {
		return err
	}
	instance := &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.name}}
	err = cluster.Get(ctx, client.ObjectKeyFromObject(instance), &v1alpha1.BundleInstance{})
	if apierrors.IsNotFound(err) {
		return v.createInstance(cmd, instance)
	}
	if err != nil {
		return err
	}
	changed, wasChanged, err := v.change(ctx, v.name, func(instance *v1alpha1.BundleInstance) error {
		return v.apply(v.session, cmd.Flags(), &instance.Spec)
	})
	if err != nil {
		return err
	}
	if number := changed.Spec.RollbackTo; number != nil {
		return failf(ExitError, "instance %s is rolled back to revision %d, so new content has no effect", v.name, *number).
			hintf("%s lets it follow its bundle again", v.command("rollback %s --clear", v.name))
	}
	if wasChanged {
		v.say("changed instance %s", v.name)
	} else {
		v.say("instance %s has this content already", v.name)
	}
	return nil
}

func (v *runVerb) createInstance(cmd *cobra.Command, instance *v1alpha1.BundleInstance) error {
	cluster, err := v.client()
	if err != nil {
		return err
	}
	if err := v.apply(v.session, cmd.Flags(), &instance.Spec); err != nil {
		return err
	}
	instance.Spec.ServiceAccountName = v.account
	if err := cluster.Create(cmd.Context(), instance); err != nil {
		return err
	}
	v.say("created instance %s", v.name)
	return nil
}

// ensureAccount finds the service account; it makes one only when told to.
func (v *runVerb) ensureAccount(ctx context.Context, cmd *cobra.Command) error {
	cluster, namespace, err := v.place()
	if err != nil {
		return err
	}
	if v.createAccount == "" {
		return v.needAccount(ctx, cluster, namespace)
	}
	if v.account == "" {
		v.account = accountName
		_ = cmd.Flags().Set("service-account", accountName) // as if the user had said so
	}
	err = cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v.account}, &corev1.ServiceAccount{})
	if err == nil {
		v.say("service account %s exists already: --create-account changes nothing about what it may do", v.account)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	objects := account(namespace, v.account, "cluster-admin", "", "")
	may := "anything in the whole cluster"
	if v.createAccount == accountNamespaceAdmin {
		objects, may = account(namespace, v.account, "", "admin", ""), "what the cluster role admin allows in namespace "+namespace
	}
	for _, object := range objects {
		if err := cluster.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	v.say("created service account %s, which may do %s", v.account, may)
	return nil
}
