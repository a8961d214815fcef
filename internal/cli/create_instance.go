// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

type createInstanceVerb struct {
	creation
	instanceFlags
	suspend bool
}

func (s *session) createInstanceCommand() *cobra.Command {
	v := &createInstanceVerb{creation: creation{session: s}}
	cmd := &cobra.Command{
		Use:   "instance NAME (--image REF | --bundle NAME) --service-account NAME",
		Short: "Create an instance: content that is to be active",
		Long: `Creates a BundleInstance. Its content is rendered and planned; it becomes active once the plan is approved.

Everything is done as the service account, which must exist in the same namespace and may do what the content
needs ("create account" makes one); to name it you need the right to impersonate it.`,
		Example: `  rukpak create instance web --image registry.example.com/team/web:v1 --service-account installer

  # From a bundle that exists, taking over objects that were applied by hand
  rukpak create instance web --bundle web-v1 --service-account installer --adoption Unowned

  # Only print it
  rukpak create instance web --bundle web-v1 --service-account installer --dry-run=client -o yaml`,
		Args: onlyName("instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.image == "" && v.bundle == "" {
				return usagef(cmd, "--image or --bundle is missing: where is the content?")
			}
			if err := v.instanceFlags.check(cmd); err != nil {
				return err
			}
			if err := v.checkImage(); err != nil {
				return err
			}
			if err := v.creation.check(cmd); err != nil {
				return err
			}
			return v.run(cmd, args[0])
		},
	}
	v.creation.addTo(cmd)
	v.instanceFlags.addTo(cmd, s)
	cmd.Flags().BoolVar(&v.suspend, "suspend", false, "Do nothing with it before it is resumed")
	return cmd
}

func (v *createInstanceVerb) run(cmd *cobra.Command, name string) error {
	namespace, err := v.namespace()
	if err != nil {
		return err
	}
	instance := &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	instance.Spec.Suspend = v.suspend
	if err := v.apply(v.session, cmd.Flags(), &instance.Spec); err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := v.create(ctx, instance); err != nil {
		return err
	}
	if v.dryRun != dryRunClient {
		v.warnAccount(ctx, namespace, v.account)
		v.warnMissing(ctx, "class", v.class)
		v.warnMissing(ctx, "bundle", v.bundle)
	}
	v.next("wait %s --for planned && %s plan %s", name, v.program, name)
	return nil
}

// warnAccount says early that a service account does not exist; the instance
// waits for it. Who may not look at service accounts is not told.
func (s *session) warnAccount(ctx context.Context, namespace, name string) {
	cluster, err := s.client()
	if err != nil || name == "" {
		return
	}
	err = cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		s.say("warning: there is no service account %q in namespace %q yet; %s tells how to make one with rights", name, namespace, s.command("create account %s --help", name))
	}
}
