// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/provisioner"
)

// formatStored are the bytes that are approved, as the content API has them.
const formatStored = "stored"

// renderedValue is `render -o json`.
type renderedValue struct {
	Provisioner    string          `json:"provisioner"`
	ContentDigest  string          `json:"contentDigest"`
	ManifestDigest string          `json:"manifestDigest,omitempty"` // absent if kinds were assumed
	Notes          string          `json:"notes,omitempty"`
	Varies         []string        `json:"varies,omitempty"`  // what comes out differently each time, and the digest with it
	Assumed        []string        `json:"assumed,omitempty"` // kinds that were taken for namespaced
	Phases         []renderedPhase `json:"phases"`
}

type renderedPhase struct {
	Name    string               `json:"name"`
	On      []provisioner.Moment `json:"on,omitempty"` // of tasks: when they run
	Objects []map[string]any     `json:"objects"`
}

type renderVerb struct {
	*session
	renderFlags
	output                output
	digest, schema, notes bool
}

func (s *session) renderCommand() *cobra.Command {
	v := &renderVerb{session: s}
	cmd := &cobra.Command{
		Use:   "render (DIR|REF)",
		Short: "Render content on this machine, to the same bytes as in a cluster",
		Long: `Renders a folder, or what a reference to a registry names, as RukPak's manager does, and prints the objects in the
order of their activation. No cluster is asked, unless --class names one of a cluster or --live says so.

The bytes are those that the manager makes of the same content, parameters, configuration, name and namespace, so
--digest is what an approval of the revision names. Without a cluster one of Kubernetes as it comes is assumed, see
--kube-version and --api-versions; of kinds that it does not have, --crds says whether they have a namespace.`,
		Example: `  rukpak render ./manifests -n team
  rukpak render ./overlays --provisioner kustomize.rukpak.io --config production.yaml -o json

  # Is what waits for approval what we built? In a pipeline, without trusting the cluster
  rukpak approve web-2 -y --digest $(rukpak render ./manifests --name web -n team --digest)`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.checkFlags(cmd, args[0]); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.addTo(cmd, s)
	v.output.addTo(cmd, formatStored)
	flags := cmd.Flags()
	flags.BoolVar(&v.digest, "digest", false, "Print only the digest of the manifests")
	flags.BoolVar(&v.schema, "schema", false, "Print only the JSON Schema of the configurations that the content takes")
	flags.BoolVar(&v.notes, "notes", false, "Print only what the provisioner has to say about the content")
	return cmd
}

func (v *renderVerb) checkFlags(cmd *cobra.Command, what string) error {
	only := 0
	for _, given := range []bool{v.digest, v.schema, v.notes, v.output.format != ""} {
		if given {
			only++
		}
	}
	if only > 1 {
		return usagef(cmd, "--digest, --schema, --notes and -o exclude one another")
	}
	if err := v.output.check(cmd); err != nil {
		return err
	}
	return v.check(cmd, what)
}

func (v *renderVerb) run(ctx context.Context, what string) error {
	done, err := v.render(ctx, v.session, what)
	if err != nil {
		return err
	}
	switch {
	case v.schema:
		return v.printSchema(done)
	case v.notes:
		if done.result.Notes != "" {
			v.print("%s", paint.CleanLines(strings.TrimRight(done.result.Notes, "\n")))
		}
		return nil
	case v.digest:
		return v.printDigest(done)
	}
	v.warn(done)
	switch v.output.format {
	case formatJSON:
		return v.value(done.value(), formatJSON)
	case formatStored:
		_, err = v.Out.Write(done.bytes)
		return err
	}
	return done.writeYAML(v.Out)
}

func (v *renderVerb) printSchema(done *rendered) error {
	if done.result.ConfigSchema == nil {
		return failf(ExitNotFound, "this content has no schema for its configuration")
	}
	var out bytes.Buffer
	if err := json.Indent(&out, done.result.ConfigSchema, "", "  "); err != nil {
		return err
	}
	v.print("%s", strings.TrimSpace(out.String()))
	return nil
}

// printDigest prints the digest if it says something: one that may be another in the cluster compares with nothing.
func (v *renderVerb) printDigest(done *rendered) error {
	switch {
	case len(done.guessed) > 0:
		return failf(ExitFailed, "the digest is not known: whether %s has a namespace only a definition tells", paint.Clean(strings.Join(done.guessed, ", "))).
			hintf("give the definitions with --crds, or let a cluster tell with --live")
	case len(done.result.Varies) > 0:
		return failf(ExitFailed, "there is no digest to compare, since it is another one each time: %s", strings.Join(done.result.Varies, "; "))
	}
	v.print("%s", done.digest)
	return nil
}

// warn tells on standard error what a reader of the objects should know.
func (v *renderVerb) warn(done *rendered) {
	if done.result.Nothing {
		v.say("note: there are no objects: what would be approved is the content %s, which is there to be read", done.content)
	}
	if len(done.guessed) > 0 {
		v.say("note: %s: it is not known whether it has a namespace, and taken for namespaced; --crds or --live tells", strings.Join(done.guessed, ", "))
	}
	if len(done.unserved) > 0 {
		v.say("note: %s %s is not served, and without it nothing becomes active", v.where(), paint.Clean(strings.Join(done.unserved, ", ")))
	}
	for _, line := range done.result.Varies {
		v.say("note: it comes out differently each time: %s", paint.Clean(line))
	}
}

// where is what kind of cluster the facts are of.
func (f *renderFlags) where() string {
	if f.live {
		return "in this cluster"
	}
	return "in a cluster as it is assumed here"
}

func (r *rendered) value() renderedValue {
	value := renderedValue{
		Provisioner: r.provisioner, ContentDigest: r.content.String(),
		Notes: r.result.Notes, Varies: r.result.Varies, Assumed: r.guessed, Phases: []renderedPhase{},
	}
	if len(r.guessed) == 0 {
		value.ManifestDigest = r.digest.String()
	}
	for _, phase := range r.set.Phases {
		shown := renderedPhase{Name: phase.Name, On: phase.On}
		for _, object := range phase.Objects {
			shown.Objects = append(shown.Objects, object.Object)
		}
		value.Phases = append(value.Phases, shown)
	}
	return value
}

// writeYAML writes a document for each object, under the title of its phase.
func (r *rendered) writeYAML(w io.Writer) error {
	var out bytes.Buffer
	if len(r.guessed) == 0 { // else it may be another one
		fmt.Fprintf(&out, "# manifests: %s\n", r.digest)
	}
	fmt.Fprintf(&out, "# content:   %s\n", r.content)
	for _, phase := range r.set.Phases {
		fmt.Fprintf(&out, "---\n# phase: %s\n", phaseTitle(phase))
		for i, object := range phase.Objects {
			text, err := yaml.Marshal(object.Object)
			if err != nil {
				return err
			}
			if i > 0 {
				out.WriteString("---\n")
			}
			out.Write(text)
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// phaseTitle is the name of a phase and, of tasks, when they run.
func phaseTitle(phase provisioner.Phase) string {
	name := paint.Clean(phase.Name)
	if len(phase.On) == 0 {
		return name
	}
	var moments []string
	for _, moment := range phase.On {
		moments = append(moments, string(moment))
	}
	return fmt.Sprintf("%s (on %s)", name, strings.Join(moments, ", "))
}
