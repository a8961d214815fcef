// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/helmrelease"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/provisioners/helm"
)

// annotationAdopted on an instance names the release of Helm that it was made of.
const annotationAdopted = "rukpak.io/adopted-helm-release"

func (s *session) adoptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Take over what another tool has installed, without downtime",
		Long:  "Takes over what another tool has installed, without downtime.",
		Args:  cobra.ArbitraryArgs,
		RunE:  showHelp,
	}
	cmd.AddCommand(s.adoptHelmCommand())
	return cmd
}

type adoptHelmVerb struct {
	*session
	approving
	class, account, chart string
	finish                bool
}

func (s *session) adoptHelmCommand() *cobra.Command {
	v := &adoptHelmVerb{session: s}
	cmd := &cobra.Command{
		Use:   "helm RELEASE (--class NAME | --finish)",
		Short: "Take over a release of Helm: its objects stay as they are",
		Long: `Makes an instance of a release of Helm, with its chart, its values and its name, and shows the plan: what is not
changed is not touched, and nothing is deleted. Look at the plan, which says what would change; then approve it.

Once the instance is active and healthy, --finish removes what Helm keeps of the release, so that Helm no longer takes
it for its own. Until then "rukpak delete instance" and Helm can both remove the objects.

A release that Helm keeps in Secrets is read, with your own rights. Of a chart with dependencies Helm does not keep
these: give the chart as a folder with --chart. Hooks of the installation are run again; the plan names them.`,
		Example: `  rukpak adopt helm web --class helm --service-account installer
  rukpak approve web --wait
  rukpak adopt helm web --finish`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.checkFlags(cmd); err != nil {
				return err
			}
			if v.finish {
				return v.end(cmd.Context(), args[0])
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&v.class, "class", "", "Class of the instance; its provisioner has to be "+helm.ID)
	flags.StringVar(&v.account, "service-account", "", "Service account as which everything is done; the class's default if not set")
	flags.StringVar(&v.chart, "chart", "", "Folder of the chart, instead of what Helm keeps of it")
	flags.BoolVar(&v.finish, "finish", false, "Remove what Helm keeps of the release, once the instance is active and healthy")
	_ = cmd.RegisterFlagCompletionFunc("service-account", s.completeAccounts)
	_ = cmd.RegisterFlagCompletionFunc("class", func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		return s.namesOf(cmd.Context(), []string{"class"}, start), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (v *adoptHelmVerb) checkFlags(cmd *cobra.Command) error {
	switch {
	case v.finish && (v.class != "" || v.account != "" || v.chart != ""):
		return usagef(cmd, "--finish changes nothing about the instance: leave --class, --service-account and --chart out")
	case !v.finish && v.class == "":
		return usagef(cmd, "--class is missing: a class with the provisioner %s", helm.ID)
	case v.chart != "":
		return checkIsFolder(cmd, v.chart)
	}
	return nil
}

// secrets are those in which Helm keeps releases.
func (v *adoptHelmVerb) secrets() (typedv1.SecretInterface, error) {
	namespace, err := v.namespace()
	if err != nil {
		return nil, err
	}
	config, err := v.config()
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return api.CoreV1().Secrets(namespace), nil
}

func (v *adoptHelmVerb) run(ctx context.Context, name string) error {
	class, err := v.classNamed(ctx, v.class)
	if err != nil {
		return err
	}
	if class.Spec.Provisioner != helm.ID {
		return failf(ExitUsage, "class %s has the provisioner %s, not %s", v.class, class.Spec.Provisioner, helm.ID)
	}
	found, err := v.read(name)
	if err != nil {
		return err
	}
	if v.account == "" && (class.Spec.Identity == nil || class.Spec.Identity.DefaultServiceAccount == "") {
		return failf(ExitUsage, "no service account is named, and class %s has no default one: as whom should it be done?", v.class).
			hintf("--service-account names one that may write the objects of the release")
	}
	instance, err := v.instance(ctx, name, found)
	if err != nil {
		return err
	}
	cluster, err := v.client()
	if err != nil {
		return err
	}
	if err := cluster.Create(ctx, instance); apierrors.IsAlreadyExists(err) {
		return failf(ExitError, "there is an instance %q already", name).
			hintf("%s says how far it is, %s changes it", v.command("describe %s", name), v.command("update %s", name))
	} else if err != nil {
		return err
	}
	v.say("created instance %s of version %d of the release, chart %s %s", name, found.Version, found.Chart.Metadata.Name, found.Chart.Metadata.Version)
	if hooks := helmrelease.Hooks(found); len(hooks) > 0 {
		v.say("warning: hooks of the installation are run again once it is approved: %s", strings.Join(hooks, ", "))
	}
	if len(found.Config) > 0 {
		v.say("note: the values of the release are in spec.config now; what of them is secret belongs into a Secret, see --config-from of \"update\"")
	}
	if err := v.carry(ctx, v.session, name); err != nil {
		return err
	}
	v.say("hint: %s removes what Helm keeps of the release", v.command("adopt helm %s --finish", name))
	return nil
}

func (v *adoptHelmVerb) read(name string) (*release.Release, error) {
	secrets, err := v.secrets()
	if err != nil {
		return nil, err
	}
	found, err := helmrelease.Read(secrets, name)
	switch {
	case errors.Is(err, helmrelease.ErrNotFound):
		return nil, failf(ExitNotFound, "release %q: %w", name, err).hintf("\"helm list -A\" lists those of all namespaces; -n names another one")
	case err != nil:
		return nil, failf(codeOf(err), "release %q: %w", name, err)
	}
	if lost := helmrelease.Incomplete(found); lost != "" && v.chart == "" {
		return nil, failf(ExitError, "release %q: %s", name, lost).hintf("give the chart, version %s, as a folder with --chart", found.Chart.Metadata.Version)
	}
	return found, nil
}

// instance brings the chart to the cluster and makes an instance of it.
func (v *adoptHelmVerb) instance(ctx context.Context, name string, found *release.Release) (made *v1alpha1.BundleInstance, err error) {
	dir := v.chart
	if dir == "" {
		if dir, err = os.MkdirTemp("", "rukpak-adopt-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if err := helmrelease.WriteChart(found, dir); err != nil {
			return nil, failf(ExitError, "write the chart of the release: %w", err)
		}
	}
	uploaded, err := v.upload(ctx, dir)
	if err != nil {
		return nil, err
	}
	made = &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: found.Namespace, Name: name, Annotations: map[string]string{annotationAdopted: name},
	}}
	flags := imageFlags{class: v.class, uploaded: uploaded.Digest}
	bundle := flags.spec()
	made.Spec.Bundle, made.Spec.ServiceAccountName = &bundle, v.account
	made.Spec.Strategy.Adoption = v1alpha1.AdoptUnowned
	if len(found.Config) > 0 {
		values, err := json.Marshal(found.Config)
		if err != nil {
			return nil, err
		}
		made.Spec.Config = &runtime.RawExtension{Raw: values}
	}
	return made, nil
}

// end removes what Helm keeps, if the instance stands in its place.
func (v *adoptHelmVerb) end(ctx context.Context, name string) error {
	instance, err := v.instanceNamed(ctx, name)
	if err != nil {
		return err
	}
	if instance.Annotations[annotationAdopted] != name {
		return failf(ExitError, "instance %s was not made of a release of Helm", name)
	}
	revision, err := v.newest(ctx, instance)
	if err != nil {
		return err
	}
	if told := judge(goalReady, instance, revision); !told.done {
		return failf(ExitFailed, "what Helm keeps stays, since the instance is not active and healthy: %s", told).
			hintf("%s waits for it", v.command("wait %s", name))
	}
	secrets, err := v.secrets()
	if err != nil {
		return err
	}
	removed, err := helmrelease.Remove(ctx, secrets, name)
	if err != nil {
		return err
	}
	v.print("removed %s of release %s; its objects belong to instance %s alone", plural.Of(removed, "version"), name, name)
	return nil
}
