// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/spelling"
)

// finish gives every command what all have in common: texts that call the
// program by its name, usage errors with their exit code, short help.
func (s *session) finish(cmd *cobra.Command) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  rukpak ", "  "+s.program+" ")
	cmd.Example = strings.ReplaceAll(cmd.Example, "$(rukpak ", "$("+s.program+" ")
	cmd.DisableFlagsInUseLine = true
	cmd.Flags().SortFlags = true
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usagef(cmd, "%w", inOurWords(cmd, args, err))
			}
			return nil
		}
	}
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetUsageTemplate(usageTemplate)
	for _, child := range cmd.Commands() {
		s.finish(child)
	}
}

// inOurWords says of a wrong number of arguments which ones there should be.
func inOurWords(cmd *cobra.Command, args []string, err error) error {
	if !strings.Contains(err.Error(), "arg(s)") {
		return err
	}
	return fmt.Errorf("%s given; it is: %s", plural.Of(len(args), "argument"), cmd.UseLine())
}

// flagError names the flag that may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	var number *strconv.NumError
	var invalid *pflag.InvalidValueError
	if errors.As(err, &number) && errors.As(err, &invalid) {
		return usagef(cmd, "--%s is %q; it must be a number", invalid.GetFlag().Name, invalid.GetValue())
	}
	word, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return usagef(cmd, "%w", err)
	}
	var names []string
	add := func(flag *pflag.Flag) { names = append(names, flag.Name) }
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if meant := spelling.Nearest(word, names); meant != "" {
		return failf(ExitUsage, "%w", err).hintf("did you mean --%s?", meant)
	}
	return usagef(cmd, "%w", err)
}

// usageTemplate leaves out the thirty flags that all verbs share, but says
// where they are listed.
const usageTemplate = `Usage:{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{else}}
  {{.UseLine}}{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasHelpSubCommands}}

Topics:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad (printf "help %s" .Name) .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}

{{if .HasAvailableSubCommands}}"{{.CommandPath}} COMMAND --help" tells more about a command. {{end}}"{{.Root.CommandPath}} options" lists the flags that all commands share.
`

// showHelp is what a command does that only holds others. A word that is none
// of them is an error, with what may have been meant.
func showHelp(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	problem := failf(ExitUsage, "%s has no command %q", cmd.CommandPath(), args[0])
	if instead := elsewhere[args[0]]; instead != "" && cmd == cmd.Root() {
		return problem.hintf("%q does that", cmd.CommandPath()+" "+instead)
	}
	if meant := suggestions(cmd, args[0]); len(meant) > 0 {
		return problem.hintf("did you mean %s?", strings.Join(meant, " or "))
	}
	return problem.hintf("%q lists the commands", cmd.CommandPath()+" --help")
}

// elsewhere are words that people try, and what does it here.
var elsewhere = map[string]string{
	"suspend": "update INSTANCE --suspend", "resume": "update INSTANCE --suspend=false", "list": "get", "status": "describe INSTANCE",
	"apply": "run DIR", "install": "run DIR", "upgrade": "update INSTANCE --image REF", "uninstall": "delete instance INSTANCE",
	"undo": "rollback INSTANCE", "revisions": "history INSTANCE", "reject": "deny INSTANCE", "events": "describe INSTANCE",
	"bundles": "get bundles", "instances": "get instances", "classes": "get classes", "approvals": "get approvals",
}

func suggestions(cmd *cobra.Command, word string) []string {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	return cmd.SuggestionsFor(word)
}

// optionsCommand lists the flags that all commands share, as kubectl does.
func (s *session) optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands share",
		Long:  "Lists the flags that all commands share. They mean what they mean to kubectl.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.print("These flags may be given to every command:\n\n%s", strings.TrimRight(cmd.Root().PersistentFlags().FlagUsages(), "\n"))
			return nil
		},
	}
}

// exitCodesTopic is `rukpak help exit-codes`.
func (s *session) exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "Exit codes for scripts",
		Long: `Exit codes, which scripts may rely on:

    0  done
    1  an error that has no code of its own
    2  plan --exit-code: there are changes (without that flag a plan exits with 0)
    3  a revision waits for approval: from run and rollback where nobody can be asked, from these and
       from approve and deny where the answer was no, and from wait when its time ran out on that
    4  a revision was denied
    5  a revision failed, or its content or configuration was refused
    6  the time was up, or the API server did not answer in time
    7  an object that was named does not exist
   64  wrong flags or arguments; also approve and deny without -y where nobody can be asked
  130  interrupted by Ctrl-C

An example, for a pipeline in which people approve:

    rukpak run registry.example.com/team/app:v2 --name app || code=$?
    case ${code:-0} in
      0) echo "active and healthy" ;;
      3) echo "waits for approval"; rukpak wait app --timeout 1h ;;
      *) exit "$code" ;;
    esac`,
	}
}

// addHelp makes an unknown topic an error, which it is not to cobra.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, command := range root.Commands() {
		if command.Name() != "help" {
			continue
		}
		help := command.Run
		command.Run = nil
		command.RunE = func(cmd *cobra.Command, args []string) error {
			if found, rest, err := root.Find(args); err != nil || len(rest) > 0 && !found.HasParent() {
				return showHelp(root, args)
			}
			help(cmd, args)
			return nil
		}
	}
}
