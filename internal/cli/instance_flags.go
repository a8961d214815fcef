// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// instanceFlags say what an instance is like; create, update and run have them.
type instanceFlags struct {
	imageFlags
	bundle   string
	account  string
	config   string
	parts    []string // --config-from
	adoption string
	deadline time.Duration
	history  int32
	prune    bool
	recreate bool
}

func (f *instanceFlags) addTo(cmd *cobra.Command, s *session) {
	f.imageFlags.addTo(cmd, s)
	flags := cmd.Flags()
	flags.StringVar(&f.bundle, "bundle", "", "Bundle in the same namespace, instead of --image")
	flags.StringVar(&f.account, "service-account", "", "Service account as which everything is done; the class's default if not set")
	flags.StringVar(&f.config, "config", "", "YAML or JSON file with configuration for the provisioner; - for standard input")
	flags.StringArrayVar(&f.parts, "config-from", nil, "Part of the configuration: configmap/NAME[:KEY][=TARGETPATH] or secret/...; can be given several times: fields of later ones, and last those of --config, replace those of earlier ones; \"\" for none")
	flags.StringVar(&f.adoption, "adoption", string(v1alpha1.AdoptNever), "Objects that exist already: Never take them, take Unowned ones, or take them by Force")
	flags.DurationVar(&f.deadline, "progress-deadline", defaultTimeout, "Time to become active and healthy before a revision counts as failed")
	flags.Int32Var(&f.history, "history", 10, "Number of past revisions that are kept")
	flags.BoolVar(&f.prune, "prune", true, "Remove objects that a new revision no longer has")
	flags.BoolVar(&f.recreate, "recreate-immutable", false, "Delete and create an object when a field that cannot be changed has changed")
	f.completions(cmd, s)
}

func (f *instanceFlags) completions(cmd *cobra.Command, s *session) {
	_ = cmd.RegisterFlagCompletionFunc("bundle", func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		return s.namesOf(cmd.Context(), []string{"bundle"}, start), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("service-account", s.completeAccounts)
	_ = cmd.RegisterFlagCompletionFunc("adoption", cobra.FixedCompletions(adoptions(), cobra.ShellCompDirectiveNoFileComp))
}

func adoptions() []string {
	return []string{string(v1alpha1.AdoptNever), string(v1alpha1.AdoptUnowned), string(v1alpha1.AdoptForce)}
}

func (f *instanceFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if f.image != "" && f.bundle != "" {
		return usagef(cmd, "--image and --bundle cannot be given together: either the instance brings its own bundle or it uses one that exists")
	}
	if f.bundle != "" && (given("class") || given("insecure") || given("pull-secret")) {
		return usagef(cmd, "--class, --insecure and --pull-secret belong to --image: a bundle has its own")
	}
	if _, err := configFrom(f.parts); err != nil {
		return err
	}
	return oneOf(cmd, "adoption", f.adoption, adoptions()...)
}

// apply changes the spec as the flags that were given say, and only those.
func (f *instanceFlags) apply(s *session, flags *pflag.FlagSet, spec *v1alpha1.BundleInstanceSpec) error {
	if err := f.applyBundle(flags, spec); err != nil {
		return err
	}
	given := flags.Changed
	if given("service-account") {
		spec.ServiceAccountName = f.account
	}
	if given("adoption") {
		spec.Strategy.Adoption = v1alpha1.Adoption(f.adoption)
	}
	if given("progress-deadline") {
		spec.Strategy.ProgressDeadline = &metav1.Duration{Duration: f.deadline}
	}
	if given("prune") {
		spec.Strategy.Prune = &f.prune
	}
	if given("recreate-immutable") {
		spec.Strategy.RecreateImmutable = f.recreate
	}
	if given("history") {
		spec.RevisionHistoryLimit = &f.history
	}
	if given("config-from") {
		parts, err := configFrom(f.parts)
		if err != nil {
			return err
		}
		spec.ConfigFrom = parts
	}
	if !given("config") {
		return nil
	}
	config, err := s.rawObject("config", f.config)
	spec.Config = config
	return err
}

func (f *instanceFlags) applyBundle(flags *pflag.FlagSet, spec *v1alpha1.BundleInstanceSpec) error {
	if f.bundle != "" {
		spec.Bundle, spec.BundleRef = nil, &v1alpha1.LocalReference{Name: f.bundle}
		return nil
	}
	if f.image == "" && f.uploaded == "" && spec.Bundle == nil {
		return nil
	}
	spec.BundleRef = nil
	if spec.Bundle == nil {
		made := f.spec()
		spec.Bundle = &made
		return nil
	}
	return f.changeTemplate(flags, spec.Bundle)
}

// changeTemplate keeps what the flags do not speak of: class and credentials stay when only the image changes, and the
// sources when none is given.
func (f *instanceFlags) changeTemplate(flags *pflag.FlagSet, template *v1alpha1.BundleSpec) error {
	if flags.Changed("class") {
		template.ProvisionerClassName = f.class
	}
	var image *v1alpha1.OCISource
	if len(template.Sources) == 1 {
		image = template.Sources[0].OCI
	}
	about := flags.Changed("insecure") || flags.Changed("pull-secret")
	switch {
	case f.uploaded != "" || f.image != "" && image == nil:
		template.Sources = []v1alpha1.BundleSource{f.source()}
		return nil
	case f.image == "" && about && image == nil:
		return failf(ExitUsage, "--insecure and --pull-secret are about an image, and the content comes from elsewhere: give --image, or change spec.bundle.sources")
	case image == nil:
		return nil
	}
	if f.image != "" {
		image.Ref = f.image
	}
	if flags.Changed("insecure") {
		image.Insecure = f.insecure
	}
	if flags.Changed("pull-secret") {
		image.PullSecrets = f.source().OCI.PullSecrets
	}
	return nil
}
