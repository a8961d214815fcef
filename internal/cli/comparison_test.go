// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

var inCode = regexp.MustCompile("`(rukpak [^`]*)`")

// Who comes from another tool types what the pages say.
func TestCommandsOfTheComparisonsExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/comparison/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no pages: %v", err)
	}
	checked := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inCode.FindAllStringSubmatch(string(text), -1) {
			checked++
			checkCommand(t, page, found[1])
		}
	}
	if checked < 30 {
		t.Errorf("only %d commands were found", checked)
	}
}

func checkCommand(t *testing.T, page, line string) {
	t.Helper()
	s := &session{program: "rukpak", flags: genericclioptions.NewConfigFlags(true)}
	command, rest, err := s.root().Find(strings.Fields(line)[1:])
	if err != nil || !command.HasParent() {
		t.Errorf("%s: %q is no command: %v", page, line, err)
		return
	}
	known := func(name string) *pflag.Flag {
		if flag := command.Flag(name); flag != nil {
			return flag
		}
		if len(name) == 1 {
			return command.Flags().ShorthandLookup(name)
		}
		return nil
	}
	for _, word := range rest {
		if name := strings.TrimLeft(word, "-"); name != word {
			name, _, _ = strings.Cut(name, "=")
			if command.InitDefaultHelpFlag(); known(name) == nil {
				t.Errorf("%s: %q: there is no flag %s", page, line, word)
			}
		}
	}
}
