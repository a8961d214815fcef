// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// imageFlags name content in a registry.
type imageFlags struct {
	image    string
	insecure bool
	secrets  []string
	class    string
	uploaded string // digest of what was uploaded, in place of an image
}

func (f *imageFlags) addTo(cmd *cobra.Command, s *session) {
	flags := cmd.Flags()
	flags.StringVar(&f.image, "image", "", "Content: an artifact or image in an OCI registry, REGISTRY/REPOSITORY:TAG or @sha256:...")
	flags.BoolVar(&f.insecure, "insecure", false, "Speak plain HTTP to the registry")
	flags.StringSliceVar(&f.secrets, "pull-secret", nil, "Secret with credentials for the registry; can be given several times")
	flags.StringVar(&f.class, "class", "", "Class of the content; the default class if not set")
	_ = cmd.RegisterFlagCompletionFunc("class", func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		return s.namesOf(cmd.Context(), []string{"class"}, start), cobra.ShellCompDirectiveNoFileComp
	})
}

// source is what the flags say about where the content is.
func (f *imageFlags) source() v1alpha1.BundleSource {
	if f.uploaded != "" {
		return v1alpha1.BundleSource{Upload: &v1alpha1.UploadSource{Digest: v1alpha1.Digest(f.uploaded)}}
	}
	oci := &v1alpha1.OCISource{Ref: f.image, Insecure: f.insecure}
	for _, secret := range f.secrets {
		oci.PullSecrets = append(oci.PullSecrets, v1alpha1.LocalReference{Name: secret})
	}
	return v1alpha1.BundleSource{OCI: oci}
}

func (f *imageFlags) spec() v1alpha1.BundleSpec {
	return v1alpha1.BundleSpec{ProvisionerClassName: f.class, Sources: []v1alpha1.BundleSource{f.source()}}
}

type createBundleVerb struct {
	creation
	imageFlags
	account string
}

func (s *session) createBundleCommand() *cobra.Command {
	v := &createBundleVerb{creation: creation{session: s}}
	cmd := &cobra.Command{
		Use:   "bundle NAME --image REF",
		Short: "Create a bundle: content that can be inspected and shared before anything is active",
		Long: `Creates a Bundle. Its content is fetched, pinned to a digest and can be shared by several instances.
It makes nothing active: an instance does ("create instance --bundle NAME").`,
		Example: `  rukpak create bundle app-v1 --image registry.example.com/team/app:v1 --class plain`,
		Args:    onlyName("bundle"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.image == "" {
				return usagef(cmd, "--image is missing: where is the content?")
			}
			if err := v.checkImage(); err != nil {
				return err
			}
			if err := v.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.creation.addTo(cmd)
	v.imageFlags.addTo(cmd, s)
	cmd.Flags().StringVar(&v.account, "service-account", "", "Service account whose imagePullSecrets are used too; \"default\" if not set")
	return cmd
}

func (v *createBundleVerb) run(ctx context.Context, name string) error {
	namespace, err := v.namespace()
	if err != nil {
		return err
	}
	bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: v.spec()}
	bundle.Spec.ServiceAccountName = v.account
	if err := v.create(ctx, bundle); err != nil {
		return err
	}
	if v.dryRun != dryRunClient {
		v.warnMissing(ctx, "class", v.class)
	}
	v.next("create instance %s --bundle %s --service-account NAME", name, name)
	return nil
}
