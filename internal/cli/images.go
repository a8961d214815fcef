// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/images"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source/oci"
)

// usedImage is one image of `images -o json`.
type usedImage struct {
	Reference  string      `json:"reference"`            // as it is written
	Registry   string      `json:"registry,omitempty"`   // "docker.io" where none is written; absent if it is no reference
	Repository string      `json:"repository,omitempty"` // "library/nginx"
	Tag        string      `json:"tag,omitempty"`        // "latest" where neither tag nor digest is written
	Digest     string      `json:"digest,omitempty"`     // as it is written
	Resolved   string      `json:"resolved,omitempty"`   // the digest that the registry gives, with --resolve
	Problem    string      `json:"problem,omitempty"`    // why there is none
	Uses       []usedWhere `json:"uses"`
}

type usedWhere struct {
	Object string       `json:"object"` // "Deployment.apps team/web"
	Place  images.Place `json:"place"`
}

type imagesVerb struct {
	*session
	renderFlags
	output  output
	resolve bool
	config  configFlag
	live    bool // the objects are those of the cluster
}

func (s *session) imagesCommand() *cobra.Command {
	v := &imagesVerb{session: s}
	cmd := &cobra.Command{
		Use:   "images (DIR|REF|INSTANCE|REVISION)",
		Short: "List the images that content runs, for who copies, scans or signs them",
		Long: `Lists the images that objects name: of containers, init and ephemeral containers and volumes, in all kinds that have a
template of Pods, tasks too; and what variables RELATED_IMAGE_... tell operators to run in turn.

A folder, or a reference to a registry, is rendered on this machine as "render" does it, with the same flags. An
instance stands for its pending revision, or else for its active one; "instance/NAME" where there is a folder NAME.

--resolve asks as the manager does: by the RegistryConfig objects of the cluster, if one is configured, or by the files
of --registry-config. Secrets are read as you; those that you may not read are gone without, and that is said. Besides,
the credentials of docker and podman on this machine are used.`,
		Example: `  rukpak images ./manifests
  rukpak images web --resolve -o json

  # Copy all that a release needs
  rukpak images registry.example.com/team/web:v2 -o name | xargs -I{} skopeo copy docker://{} docker://mirror.example.com/{}`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeFoldersAnd("instance", "revision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			if len(v.config.places) > 0 && !v.resolve {
				return usagef(cmd, "--registry-config is for --resolve: nothing else asks a registry for images")
			}
			objects, err := v.objects(cmd, args[0])
			if err != nil {
				return err
			}
			return v.run(cmd.Context(), objects)
		},
	}
	v.addTo(cmd, s)
	v.output.addTo(cmd, formatName)
	v.config.addAs("registry-config", cmd)
	cmd.Flags().BoolVar(&v.resolve, "resolve", false, "Ask the registries, from this machine, for the digests that the references have now")
	return cmd
}

// objects finds out what the argument is, and reads or renders its objects.
func (v *imagesVerb) objects(cmd *cobra.Command, what string) ([]*unstructured.Unstructured, error) {
	ctx := cmd.Context()
	if _, _, prefixed := splitName(what); !isFolder(what) && (!strings.ContainsAny(what, "/:@") || prefixed && isKindPrefix(what)) {
		if given := slices.IndexFunc(renderFlagNames, cmd.Flags().Changed); given >= 0 {
			return nil, usagef(cmd, "--%s is for a folder or a reference that is rendered here, and %s is neither", renderFlagNames[given], what)
		}
		v.live = true
		return v.ofCluster(ctx, what)
	}
	if err := v.check(cmd, what); err != nil {
		return nil, err
	}
	done, err := v.render(ctx, v.session, what)
	if err != nil {
		return nil, err
	}
	return done.set.Objects(), nil
}

// isKindPrefix tells "instance/web" from "registry/repository".
func isKindPrefix(word string) bool {
	known, _, _ := splitName(word)
	return known.name == "instance" || known.name == "revision"
}

func (v *imagesVerb) ofCluster(ctx context.Context, word string) ([]*unstructured.Unstructured, error) {
	found, err := v.target(ctx, word)
	if err != nil {
		return nil, err
	}
	if found.revision == nil {
		return nil, failf(ExitError, "%s has no revision yet: %s", word, sentence(state.OfInstance(found.instance)))
	}
	return v.objectsIn(ctx, found.revision)
}

func (v *imagesVerb) run(ctx context.Context, objects []*unstructured.Unstructured) error {
	all := collectImages(images.In(objects))
	failed := 0
	if v.resolve {
		registries, err := v.registries(ctx)
		if err != nil {
			return err
		}
		failed = v.lookUp(ctx, all, registries)
	}
	if err := v.show(all); err != nil {
		return err
	}
	if failed > 0 {
		return failf(ExitError, "%d of %d images could not be looked up", failed, len(all))
	}
	return nil
}

// collectImages puts uses together by their references, in the order of these.
func collectImages(uses []images.Use) []*usedImage {
	byReference := map[string]*usedImage{}
	all := []*usedImage{}
	for _, use := range uses {
		one, ok := byReference[use.Reference]
		if !ok {
			one = describeImage(use.Reference)
			byReference[use.Reference] = one
			all = append(all, one)
		}
		where := usedWhere{Object: use.Object.String(), Place: use.Place}
		if !slices.Contains(one.Uses, where) {
			one.Uses = append(one.Uses, where)
		}
	}
	slices.SortFunc(all, func(a, b *usedImage) int { return cmp.Compare(a.Reference, b.Reference) })
	return all
}

// describeImage takes a reference apart.
func describeImage(reference string) *usedImage {
	one := &usedImage{Reference: reference}
	named, digest, byDigest := strings.Cut(reference, "@")
	parsed, err := name.ParseReference(reference)
	if err != nil {
		one.Problem = "it is no reference"
		return one
	}
	one.Registry, one.Repository = rules.Normal(parsed.Context().RegistryStr()), parsed.Context().RepositoryStr()
	one.Digest = digest
	if tag, err := name.NewTag(named); err == nil && (!byDigest || strings.HasSuffix(named, ":"+tag.TagStr())) {
		one.Tag = tag.TagStr()
	}
	return one
}

// registries are the rules by which registries are asked: of the files that are named, or else of the cluster. What is
// rendered here needs no cluster, and one that cannot be asked is gone without.
func (v *imagesVerb) registries(ctx context.Context) (*reach.Config, error) {
	if len(v.config.places) == 0 && !v.configured() {
		return nil, nil //nolint:nilnil // no cluster, no rules
	}
	set, notes, err := v.registryRules(ctx, v.config, true)
	switch {
	case err == nil:
	case len(v.config.places) > 0 || v.live && !apierrors.IsForbidden(err) || ctx.Err() != nil:
		return nil, err
	default:
		v.say("note: the RegistryConfigs of the cluster cannot be read, and are not used: %v", err)
		return nil, nil //nolint:nilnil // no rules
	}
	v.tell(notes)
	return reach.Fixed(set, nil), nil
}

// lookUp asks the registries, and gives the number of images about which they did not answer.
func (v *imagesVerb) lookUp(ctx context.Context, all []*usedImage, registries *reach.Config) int {
	line := v.progress()
	defer line.Close()
	fetcher := oci.New(nil, oci.Options{Registries: registries})
	failed := 0
	for _, one := range all {
		if one.Problem == "" {
			line.Show("resolving %s", one.Reference)
			pinned, err := fetcher.Resolve(ctx, oci.Source{Ref: one.Reference, Insecure: v.insecure, Credentials: dockerCredentials{}})
			if err != nil {
				one.Problem = err.Error()
			} else {
				one.Resolved = string(pinned.Digest)
			}
		}
		if one.Problem != "" {
			failed++
		}
	}
	return failed
}

func (v *imagesVerb) show(all []*usedImage) error {
	switch {
	case v.output.format == formatName:
		for _, one := range all {
			v.print("%s", paint.Clean(one.Reference))
		}
		return nil
	case !v.output.forPeople():
		return v.value(map[string]any{"images": all}, v.output.format)
	case len(all) == 0:
		v.say("no images")
		return nil
	}
	shown := table.Table{Titles: []string{"IMAGE", "PLACE", "USED BY"}}
	if v.resolve {
		shown.Titles = append(shown.Titles, "DIGEST NOW")
	}
	for _, one := range all {
		for i, use := range one.Uses {
			row := []string{"", string(use.Place), paint.Clean(use.Object)}
			if i == 0 {
				row[0] = paint.Clean(one.Reference)
			}
			if v.resolve && i == 0 {
				row = append(row, cmp.Or(one.Resolved, paint.Clean(one.Problem)))
			}
			shown.Add(row...)
		}
	}
	return shown.Write(v.Out)
}
