// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"rukpak.io/rukpak/internal/cli"
)

// TestContentCannotSpeakToTheTerminal renders a chart of a stranger, whose notes and errors bring codes for terminals.
func TestContentCannotSpeakToTheTerminal(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"notes": {"NOTES.txt", "first\n\x1b[2Ksecond", "first\n\ufffd[2Ksecond"},
		"error": {"a.yaml", `{{ fail "\x1b[2Kall is well" }}`, "\ufffd[2Kall is well"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
			"templates/" + c.file: c.text,
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		cli.Run(t.Context(), streams, []string{"rukpak", "render", dir, "--notes", "--provisioner", "helm.rukpak.io"}, func(string) string { return "" })
		if said := out.String() + errOut.String(); strings.Contains(said, "\x1b") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %q", name, said)
		}
	}
}
