// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"
)

// output is the flag -o of one verb.
type output struct {
	format  string
	allowed []string // besides "", for people
}

// Formats of -o. jsonpath and go-template take their text after "=".
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatName = "name"
	formatWide = "wide"
)

// addTo adds the flag; allowed formats besides json and yaml follow.
func (o *output) addTo(cmd *cobra.Command, also ...string) {
	o.allowed = append([]string{formatJSON, formatYAML}, also...)
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "Output format: "+strings.Join(o.allowed, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// withTemplates are the formats of objects, as kubectl has them.
func withTemplates(also ...string) []string {
	return append(also, formatName, "jsonpath=...", "go-template=...")
}

func (o *output) check(cmd *cobra.Command) error {
	kind, _, isTemplate := strings.Cut(o.format, "=")
	for _, allowed := range o.allowed {
		name, _, _ := strings.Cut(allowed, "=")
		if o.format == "" || kind == name && isTemplate == strings.Contains(allowed, "=") {
			return nil
		}
	}
	return usagef(cmd, "-o %s is not a format of this command; it has %s", o.format, strings.Join(o.allowed, ", "))
}

// forPeople says that no format was asked for that a program reads.
func (o *output) forPeople() bool { return o.format == "" || o.format == formatWide }

// object prints an object or a list of the API; without a format that is its
// name and what was done with it, such as "created".
func (s *session) object(object runtime.Object, format, done string) error {
	flags := genericclioptions.NewPrintFlags(done)
	flags.OutputFormat = &format
	known, err := scheme()
	if err != nil {
		return err
	}
	printer, err := flags.WithTypeSetter(known).ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, s.Out)
}

// value prints a value that is no object of the API.
func (s *session) value(value any, format string) error {
	var text []byte
	var err error
	if format == formatYAML {
		text, err = yaml.Marshal(value)
	} else {
		text, err = json.MarshalIndent(value, "", "  ")
	}
	if err != nil {
		return fmt.Errorf("print as %s: %w", format, err)
	}
	s.print("%s", strings.TrimRight(string(text), "\n"))
	return nil
}

// oneOf checks a flag that takes one of some words.
func oneOf(cmd *cobra.Command, flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return usagef(cmd, "--%s is %q; it may be %s", flag, value, strings.Join(words, ", "))
}
