// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cluster/offline"
	"rukpak.io/rukpak/internal/configuration"
	"rukpak.io/rukpak/internal/provisioners"
	"rukpak.io/rukpak/internal/provisioners/plain"
)

// renderFlags say how content is rendered on this machine.
type renderFlags struct {
	class, provisioner, parameters string
	configs                        []string
	name                           string
	kubeVersion                    string
	apiVersions, definitions       []string
	live, insecure, upgrade        bool
	revision                       int64
}

func (f *renderFlags) addTo(cmd *cobra.Command, s *session) {
	flags := cmd.Flags()
	flags.StringVar(&f.class, "class", "", "Class: a file that holds a ProvisionerClass, or the name of one, which is read from the cluster")
	flags.StringVar(&f.provisioner, "provisioner", "", "ID of the provisioner, instead of --class; "+plain.ID+" if neither is given")
	flags.StringVar(&f.parameters, "parameters", "", "YAML or JSON file with parameters for the provisioner; those of the class if not set")
	flags.StringSliceVar(&f.configs, "config", nil, "YAML or JSON file with configuration; can be given several times: fields of later ones replace those of earlier ones")
	flags.StringVar(&f.name, "name", "", "Name of the instance; that of the folder or repository if not set, as \"run\" does it")
	flags.StringVar(&f.kubeVersion, "kube-version", "", "Version of Kubernetes that content is told of; "+offline.Version+" if not set, or with --live that of the cluster")
	flags.StringSliceVar(&f.apiVersions, "api-versions", nil, "API that content is told of besides those of Kubernetes, such as monitoring.coreos.com/v1; can be given several times")
	flags.StringSliceVar(&f.definitions, "crds", nil, "YAML or JSON file with CustomResourceDefinitions that are installed from elsewhere; can be given several times")
	flags.BoolVar(&f.live, "live", false, "Ask the cluster for its version and what it serves, and let content read in it with your own rights")
	flags.BoolVar(&f.insecure, "insecure", false, "Speak plain HTTP to the registry")
	flags.Int64Var(&f.revision, "revision", 1, "Number of the revision that content is told of")
	flags.BoolVar(&f.upgrade, "upgrade", false, "Tell content that a revision has been active before")
	_ = cmd.RegisterFlagCompletionFunc("provisioner", cobra.FixedCompletions(provisioners.IDs(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("class", func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		return s.namesOf(cmd.Context(), []string{"class"}, start), cobra.ShellCompDirectiveDefault
	})
}

// names of the flags, for commands whose argument may be no content.
var renderFlagNames = []string{
	"class", "provisioner", "parameters", "config", "name", "kube-version", "api-versions", "crds", "live", "revision", "upgrade",
}

// check completes what follows from the content, which is a folder or a reference.
func (f *renderFlags) check(cmd *cobra.Command, what string) error {
	switch {
	case f.class != "" && f.provisioner != "":
		return usagef(cmd, "--class and --provisioner exclude one another: a class names its provisioner")
	case f.live && (len(f.definitions) > 0 || len(f.apiVersions) > 0):
		return usagef(cmd, "--crds and --api-versions are for where no cluster is asked; with --live the cluster says what it serves")
	case f.revision < 1:
		return usagef(cmd, "--revision is %d; revisions are counted from 1", f.revision)
	case !isFolder(what) && (looksLikePath(what) || exists(what)):
		return checkIsFolder(cmd, what)
	}
	if f.name == "" {
		f.name = nameFrom(what)
	}
	if f.name == "" {
		return usagef(cmd, "no name for the instance follows from %q; give one with --name", what)
	}
	return f.checkCluster(cmd)
}

// apiName is "group/version" or "group/version/Kind", and "v1" or "v1/Kind" for what has no group.
var apiName = regexp.MustCompile(`^([a-z0-9.-]+/)?v[0-9a-z]+(/[A-Z][A-Za-z0-9]*)?$`)

func (f *renderFlags) checkCluster(cmd *cobra.Command) error {
	for _, name := range f.apiVersions {
		if !apiName.MatchString(name) {
			return usagef(cmd, "--api-versions %q is neither GROUP/VERSION nor GROUP/VERSION/KIND", name)
		}
	}
	if f.kubeVersion == "" {
		return nil
	}
	parsed, err := version.ParseGeneric(f.kubeVersion)
	if err != nil {
		return usagef(cmd, "--kube-version %q is no version such as 1.34 or v1.34.2", f.kubeVersion)
	}
	if rest := strings.TrimPrefix(f.kubeVersion, "v"); strings.Count(rest, ".") > 1 {
		f.kubeVersion = "v" + rest // with what stands behind the numbers
		return nil
	}
	f.kubeVersion = "v" + parsed.String() + ".0"
	return nil
}

// classOf gives the provisioner and its parameters.
func (f *renderFlags) classOf(ctx context.Context, s *session) (id string, parameters json.RawMessage, err error) {
	id = f.provisioner
	if f.class != "" {
		class, err := f.readClass(ctx, s)
		if err != nil {
			return "", nil, err
		}
		id = class.Spec.Provisioner
		if class.Spec.Parameters != nil {
			parameters = class.Spec.Parameters.Raw
		}
	}
	if id == "" {
		id = plain.ID
	}
	if f.parameters != "" {
		given, err := s.rawObject("parameters", f.parameters)
		if err != nil {
			return "", nil, err
		}
		parameters = given.Raw
	}
	return id, parameters, nil
}

// readClass reads a class from a file, or from the cluster by its name.
func (f *renderFlags) readClass(ctx context.Context, s *session) (*v1alpha1.ProvisionerClass, error) {
	class := &v1alpha1.ProvisionerClass{}
	if !isFile(f.class) {
		cluster, err := s.client()
		if err != nil {
			return nil, err
		}
		err = cluster.Get(ctx, client.ObjectKey{Name: f.class}, class)
		return class, s.missing(err, "class", f.class, "")
	}
	text, err := s.readFile(f.class)
	if err != nil {
		return nil, failf(ExitUsage, "--class: %w", err)
	}
	err = yaml.Unmarshal(text, &class.TypeMeta)
	if ours := class.Kind == "ProvisionerClass"; ours || err != nil {
		if err := yaml.UnmarshalStrict(text, class); err != nil {
			return nil, failf(ExitUsage, "--class: %s: %w", f.class, err)
		}
	}
	if class.Spec.Provisioner == "" {
		return nil, failf(ExitUsage, "--class: %s holds no ProvisionerClass with a spec.provisioner", f.class)
	}
	return class, nil
}

// isFile tells a file from the name of an object, which has neither slashes nor one of these endings.
func isFile(word string) bool {
	return strings.ContainsRune(word, os.PathSeparator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(word))
}

// configOf merges the configuration, as the manager merges that of an instance.
func (f *renderFlags) configOf(s *session) (json.RawMessage, error) {
	if len(f.configs) == 0 {
		return nil, nil
	}
	merged := map[string]any{}
	for _, file := range f.configs {
		raw, err := s.rawObject("config", file)
		if err != nil {
			return nil, err
		}
		part := map[string]any{}
		if err := utiljson.Unmarshal(raw.Raw, &part); err != nil {
			return nil, failf(ExitUsage, "--config: %s: %w", file, err)
		}
		configuration.Merge(merged, part)
	}
	return json.Marshal(merged)
}
