// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Version is set when a release is built: -ldflags "-X rukpak.io/rukpak/internal/cli.Version=v0.1.0".
var Version string

// serverPatience is short: version is also asked where there is no cluster.
const serverPatience = 5 * time.Second

// versions is `version -o json`.
type versions struct {
	Client     string `json:"client"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes,omitempty"`
	RukPak     string `json:"rukpak,omitempty"`  // API versions served, or why there are none
	Manager    string `json:"manager,omitempty"` // image of the manager
	Problem    string `json:"problem,omitempty"` // why nothing is known of the cluster
}

type versionVerb struct {
	*session
	output     output
	clientOnly bool
}

func (s *session) versionCommand() *cobra.Command {
	v := &versionVerb{session: s}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell the versions of this program, the cluster and RukPak in it",
		Long:  "Tells the version of this program and, if a cluster answers, of Kubernetes and of RukPak there. It works without a cluster.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context())
		},
	}
	v.output.addTo(cmd)
	cmd.Flags().BoolVar(&v.clientOnly, "client", false, "Only of this program")
	return cmd
}

func (v *versionVerb) run(ctx context.Context) error {
	found := versions{Client: clientVersion(), Go: runtime.Version()}
	if !v.clientOnly {
		if err := v.server(ctx, &found); err != nil {
			found.Problem = v.explain(err).Error()
		}
	}
	if !v.output.forPeople() {
		return v.value(found, v.output.format)
	}
	v.print("rukpak:      %s (%s)", found.Client, found.Go)
	for _, line := range []struct{ title, text string }{
		{"Kubernetes: ", found.Kubernetes}, {"RukPak:     ", found.RukPak}, {"Manager:    ", found.Manager}, {"Cluster:    ", found.Problem},
	} {
		if line.text != "" {
			v.print("%s %s", line.title, line.text)
		}
	}
	return nil
}

func (v *versionVerb) server(ctx context.Context, found *versions) error {
	config, err := v.config()
	if err != nil {
		return err
	}
	config.Timeout = cmp.Or(config.Timeout, serverPatience)
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	info, err := served.ServerVersion()
	if err != nil {
		return err
	}
	found.Kubernetes = info.GitVersion
	_, err = served.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		found.RukPak = "not installed"
		return nil
	case err != nil:
		return err
	}
	found.RukPak = v1alpha1.GroupVersion.String() + " is served"
	found.Manager = v.manager(ctx)
	return nil
}

// manager is the image of the manager where it was installed from config/; one
// that runs elsewhere cannot be seen from here.
func (v *versionVerb) manager(ctx context.Context) string {
	cluster, err := v.client()
	if err != nil {
		return ""
	}
	deployment := &appsv1.Deployment{}
	err = cluster.Get(ctx, client.ObjectKey{Namespace: "rukpak-system", Name: "rukpak-manager"}, deployment)
	switch {
	case apierrors.IsNotFound(err):
		return "no Deployment rukpak-system/rukpak-manager: it may run elsewhere"
	case err != nil || len(deployment.Spec.Template.Spec.Containers) == 0:
		return ""
	}
	image := deployment.Spec.Template.Spec.Containers[0].Image
	if deployment.Status.ReadyReplicas == 0 {
		image += ", not ready"
	}
	return image
}

// clientVersion is the version of this program: that of the release, or of the
// commit that it was built from.
func clientVersion() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
