// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

var yamlBlock = regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```$")

// Each block marked as YAML holds whole objects, which a reader may apply as they are.
func TestEveryObjectOfTheDocsIsAccepted(t *testing.T) {
	env := cluster.Env(t)
	strict := client.WithFieldValidation(adminClient(t, env), "Strict")
	mustCreate(t, env, "{apiVersion: v1, kind: Namespace, metadata: {name: team-docs}}")
	blocks := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page) //nolint:gosec // a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			for document := range strings.SplitSeq(block[1], "\n---\n") {
				blocks++
				made := object(document)
				if made.GetKind() == "Kustomization" {
					continue // for kubectl, not for the API server
				}
				if made.GetNamespace() != "" {
					made.SetNamespace("team-docs")
				}
				if err := strict.Create(t.Context(), made, client.DryRunAll); err != nil {
					t.Errorf("%s: %v\n%s", page, err, document)
				}
			}
		}
	}
	if blocks < 5 {
		t.Errorf("only %d objects were found in the docs: has their form changed?", blocks)
	}
}

func pages(t *testing.T) (found []string) {
	t.Helper()
	root := filepath.Dir(mustDir(t))
	for _, part := range []string{"docs", "examples", "config", "README.md"} {
		_ = filepath.WalkDir(filepath.Join(root, part), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
				found = append(found, path)
			}
			return nil // a part that is not there yet has no pages
		})
	}
	return found
}
