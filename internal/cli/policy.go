// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/plural"
)

func (s *session) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check and try the rules by which a class approves, on this machine",
		Long: `Works with the rules of classes whose approval.mode is Policy, from files. No cluster is asked.

A file of rules is a ProvisionerClass, or a list of rules with name, when and then. docs/policies.md explains what
rules can ask for.`,
		Args: cobra.ArbitraryArgs,
		RunE: showHelp,
	}
	cmd.AddCommand(s.policyCheckCommand(), s.policyTestCommand())
	return cmd
}

func (s *session) policyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check POLICY",
		Short: "Say what is wrong with rules",
		Long: `Compiles rules as the manager does when a class is written, and says what is wrong with them: the rule, and the line
and column in its expression.

It exits with 0 if nothing is wrong, else with 5.`,
		Example: `  rukpak policy check class.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, count, err := readPolicy(args[0])
			if err != nil {
				return err
			}
			s.print("%s: %s, nothing is wrong", filepath.Base(args[0]), plural.Of(count, "rule"))
			return nil
		},
	}
}

// readPolicy compiles the rules of a file.
func readPolicy(path string) (*policy.Policy, int, error) {
	text, err := readText(path)
	if err != nil {
		return nil, 0, err
	}
	rules, err := policy.ReadRules(text)
	if err != nil {
		return nil, 0, failf(ExitFailed, "%s: %w", path, err)
	}
	compiled, err := policy.Compile(rules)
	if err != nil {
		return nil, 0, failf(ExitFailed, "%s:\n%w", path, err)
	}
	return compiled, len(rules), nil
}

func readText(path string) ([]byte, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the user names it
	if os.IsNotExist(err) {
		return nil, failf(ExitNotFound, "%s does not exist", path)
	}
	return text, err
}
