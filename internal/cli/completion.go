// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/spf13/cobra"

// addCompletion adds to cobra's command for shells one for kubectl, which asks
// a program of its own for what a plugin proposes.
func (s *session) addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.Name() != "completion" {
			continue
		}
		command.Args, command.RunE = cobra.ArbitraryArgs, showHelp
		command.Short = "Print the script by which a shell or kubectl completes commands and names"
		command.AddCommand(&cobra.Command{
			Use:   "kubectl",
			Short: "Print the program by which kubectl completes \"kubectl rukpak\"",
			Long: `Prints the program by which kubectl completes what follows "kubectl rukpak". It belongs, under the name
kubectl_complete-rukpak, into a folder of the PATH, beside kubectl-rukpak.`,
			Example: `  rukpak completion kubectl > /usr/local/bin/kubectl_complete-rukpak
  chmod +x /usr/local/bin/kubectl_complete-rukpak`,
			Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				s.print("#!/bin/sh\nexec kubectl-rukpak __complete \"$@\"")
				return nil
			},
		})
	}
}
