// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rukpak.io/rukpak/internal/registry/convert"
	"rukpak.io/rukpak/internal/registry/rules"
)

// converted is `registry convert -o json`.
type converted struct {
	Files []convertedFile `json:"files"`
	Lost  []rules.Note    `json:"lost"`
}

type convertedFile struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Secret  bool   `json:"secret"`            // holds credentials or keys
	Content string `json:"content,omitempty"` // unless it is secret, or was written to a folder
}

type registryConvertVerb struct {
	*session
	output   output
	from, to string
	in, out  string
	name     string
	strict   bool
	force    bool
}

func (s *session) registryConvertCommand() *cobra.Command {
	v := &registryConvertVerb{session: s}
	cmd := &cobra.Command{
		Use:   "convert --from FORMAT --to FORMAT --in PATH [--out DIR]",
		Short: "Convert registry configuration from one format to another",
		Long: `Reads the registry configuration of one tool and writes it as that of another. What the other cannot express is
listed on standard error; with --strict that is an error, and nothing is written.

  containers   podman, skopeo, CRI-O: registries.conf, registries.conf.d, certs.d, auth.json
  containerd   certs.d with a hosts.toml for each host, and Docker's config.json
  docker       config.json, daemon.json, certs.d
  rukpak       RegistryConfig objects, and the Secrets and ConfigMaps that they name

--in is a folder with those files, such as /etc/containers, or one file. Without --out the files are printed, but
for those that hold credentials or keys: they are only ever written to a folder, readable for you alone.`,
		Example: `  # The mirrors of a node as an object of the cluster
  rukpak registry convert --from containers --in /etc/containers --to rukpak --out ./config
  kubectl apply -f ./config

  # The cluster's objects for containerd's nodes
  kubectl get registryconfigs -o yaml > all.yaml
  rukpak registry convert --from rukpak --in all.yaml --to containerd --out ./etc-containerd`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.check(cmd); err != nil {
				return err
			}
			return v.run(cmd.Context())
		},
	}
	v.output.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&v.from, "from", "", "Format to read: containers, containerd, docker or rukpak")
	flags.StringVar(&v.to, "to", "", "Format to write: containers, containerd, docker or rukpak")
	flags.StringVar(&v.in, "in", "", "Folder or file to read")
	flags.StringVar(&v.out, "out", "", "Folder to write to; it must be empty, or not exist yet")
	flags.StringVar(&v.name, "name", "converted", "With --to rukpak: name of the objects")
	flags.BoolVar(&v.strict, "strict", false, "Fail if anything cannot be expressed")
	flags.BoolVar(&v.force, "force", false, "Write to --out also if it is not empty")
	formats := cobra.FixedCompletions([]string{"containers", "containerd", "docker", "rukpak"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("from", formats)
	_ = cmd.RegisterFlagCompletionFunc("to", formats)
	return cmd
}

func (v *registryConvertVerb) check(cmd *cobra.Command) error {
	if err := v.output.check(cmd); err != nil {
		return err
	}
	for _, format := range []struct{ flag, value string }{{"from", v.from}, {"to", v.to}} {
		if _, err := convert.ParseFormat(format.value); err != nil {
			return usagef(cmd, "--%s: %w", format.flag, err)
		}
	}
	if v.in == "" {
		return usagef(cmd, "--in is missing: the folder or file to read")
	}
	return nil
}

func (v *registryConvertVerb) run(ctx context.Context) error {
	document, err := convert.Read(ctx, convert.Format(v.from), v.in)
	if err != nil {
		return err
	}
	files, lost, err := convert.Write(convert.Format(v.to), document, v.name)
	if err != nil {
		return err
	}
	lost = append(document.Notes, lost...)
	if v.strict && len(lost) > 0 {
		v.tell(lost)
		return failf(ExitError, "%d things cannot be expressed", len(lost))
	}
	if v.out != "" {
		if err := writeFiles(v.out, files, v.force); err != nil {
			return err
		}
	}
	return v.show(files, lost)
}

func (v *registryConvertVerb) show(files rules.Files, lost []rules.Note) error {
	said := converted{Files: []convertedFile{}, Lost: append([]rules.Note{}, lost...)}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		file := convertedFile{Path: path, Bytes: len(files[path]), Secret: isSecret(path)}
		if !file.Secret && v.out == "" {
			file.Content = string(files[path])
		}
		said.Files = append(said.Files, file)
	}
	if !v.output.forPeople() {
		return v.value(said, v.output.format)
	}
	for _, file := range said.Files {
		switch {
		case v.out != "":
			v.print("%s", filepath.Join(v.out, file.Path))
		case file.Secret:
			v.print("# %s\n# %d bytes that hold credentials or keys: give --out to have them written\n", file.Path, file.Bytes)
		default:
			v.print("# %s\n%s", file.Path, file.Content)
		}
	}
	v.tell(lost)
	return nil
}

// isSecret tells whether a file holds credentials or keys.
func isSecret(path string) bool {
	switch base := filepath.Base(path); base {
	case "auth.json", "config.json", "secrets.yaml":
		return true
	default:
		return strings.HasSuffix(base, ".key")
	}
}

// writeFiles writes files below a folder. Their names come from what was read,
// so one that leads out of the folder is refused.
func writeFiles(dir string, files rules.Files, force bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 && !force {
		return failf(ExitError, "the folder %s is not empty", dir).hintf("--force writes to it all the same")
	}
	for path := range files {
		if !filepath.IsLocal(path) {
			return fmt.Errorf("%q leads out of the folder: a host in the configuration is not one", path)
		}
	}
	for path, content := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { //nolint:gosec // tools of other users read it
			return err
		}
		mode := fs.FileMode(0o644)
		if isSecret(path) {
			mode = 0o600
		}
		if err := os.WriteFile(full, content, mode); err != nil {
			return err
		}
		if err := os.Chmod(full, mode); err != nil { // a file that was there keeps its mode else
			return err
		}
	}
	return nil
}
