// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry/convert"
	"rukpak.io/rukpak/internal/registry/objects"
	"rukpak.io/rukpak/internal/registry/rules"
)

func (s *session) registryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Look at and convert registry configuration: mirrors, certificates, proxies, credentials",
		Long: `Works with the configuration that says how registries are reached: RegistryConfig objects, and the files of
containers' tools, containerd and Docker.`,
		Args: cobra.ArbitraryArgs,
		RunE: showHelp,
	}
	cmd.AddCommand(s.registryExplainCommand(), s.registryCheckCommand(), s.registryConvertCommand())
	return cmd
}

// configFlag is where explain and check take the configuration from.
type configFlag struct {
	name   string
	places []string
}

func (c *configFlag) addTo(cmd *cobra.Command) { c.addAs("config", cmd) }

// addAs is for commands of which "config" is something else.
func (c *configFlag) addAs(name string, cmd *cobra.Command) {
	c.name = name
	cmd.Flags().StringArrayVar(&c.places, name, nil, "FORMAT=PATH of files to use instead of the cluster's objects, such as containers=/etc/containers; given again, earlier ones go first")
}

// rules gives the configuration, and notes on what is left out of it.
func (s *session) registryRules(ctx context.Context, c configFlag, readSecrets bool) (*rules.Set, []rules.Note, error) {
	if len(c.places) > 0 {
		return rulesOfFiles(ctx, c)
	}
	cluster, err := s.client()
	if err != nil {
		return nil, nil, err
	}
	list := &v1alpha1.RegistryConfigList{}
	if err := cluster.List(ctx, list); err != nil {
		return nil, nil, err
	}
	reader := &clusterReader{client: cluster, secrets: readSecrets}
	compiled, err := objects.Compile(ctx, list.Items, reader)
	if err != nil {
		return nil, nil, err
	}
	notes := reader.notes
	for _, config := range list.Items {
		if verdict := compiled.Verdicts[config.Name]; verdict != nil {
			for _, problem := range verdict.Problems {
				notes = append(notes, rules.Note{Where: "RegistryConfig " + config.Name, What: problem.Text})
			}
		}
	}
	return rules.NewSet(compiled.Rules, nil), notes, nil
}

func rulesOfFiles(ctx context.Context, c configFlag) (*rules.Set, []rules.Note, error) {
	all := &rules.Document{}
	for _, place := range c.places {
		format, path, err := convert.ParsePlace(place)
		if err != nil {
			return nil, nil, failf(ExitUsage, "--%s: %w", c.name, err)
		}
		document, err := convert.Read(ctx, format, path)
		if err != nil {
			return nil, nil, err
		}
		all.Rules = append(all.Rules, document.Rules...)
		all.Logins = append(all.Logins, document.Logins...)
		all.Notes = append(all.Notes, document.Notes...)
		for _, helper := range document.Helpers {
			all.Note(helper.From, fmt.Sprintf("the credential helper %q is not asked", helper.Name))
		}
	}
	return all.Set(), all.Notes, nil
}

// clusterReader reads as the user what RegistryConfigs name. What the user may
// not read is left alone: the manager can.
type clusterReader struct {
	client  client.Client
	secrets bool
	notes   []rules.Note
}

var _ objects.Reader = &clusterReader{}

func (r *clusterReader) Namespace() string { return objects.DefaultNamespace }

func (r *clusterReader) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	if !r.secrets {
		return nil, objects.ErrNotRead
	}
	found := &corev1.Secret{}
	return found, r.read(ctx, "Secret", name, found)
}

func (r *clusterReader) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	if !r.secrets {
		return nil, objects.ErrNotRead
	}
	found := &corev1.ConfigMap{}
	return found, r.read(ctx, "ConfigMap", name, found)
}

func (r *clusterReader) read(ctx context.Context, kind, name string, into client.Object) error {
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace(), Name: name}, into)
	if apierrors.IsForbidden(err) {
		r.notes = append(r.notes, rules.Note{Where: kind + " " + r.Namespace() + "/" + name, What: "you may not read it, so it is gone without; the manager reads it"})
		return objects.ErrNotRead
	}
	return err
}

// parseReference parses what a registry verb is about.
func parseReference(cmd *cobra.Command, text string) (name.Reference, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, usagef(cmd, "%q is not a reference such as registry.example.com/team/app:v1", text)
	}
	return ref, nil
}

// tell says on standard error what was left out.
func (s *session) tell(notes []rules.Note) {
	for _, note := range notes {
		s.say("note: %s: %s", note.Where, note.What)
	}
}

// refused tells whether an error says that no endpoint may be asked.
func refused(err error) bool {
	_, blocked := errors.AsType[*rules.BlockedError](err)
	_, problem := errors.AsType[*rules.ProblemError](err)
	return blocked || problem
}
