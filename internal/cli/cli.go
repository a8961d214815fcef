// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line `rukpak`, also `kubectl rukpak`: it pushes
// content to where a source finds it, makes the objects that set RukPak's flow
// going, and shows what each step did, from source to watch. It talks to the API
// server as the user and has no rights or knowledge of its own. One file a verb.
package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rukpak.io/rukpak/internal/cli/paint"
)

// Run runs the command line and returns its exit code, one of the constants
// Exit...; args[0] is the name that it was called by.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string, env func(string) string) int {
	quietLibraries()
	s := &session{
		IOStreams: streams,
		program:   programName(args[0]),
		flags:     genericclioptions.NewConfigFlags(true),
		colour:    paint.Auto,
		now:       time.Now,
		env:       env,
	}
	root := s.root()
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if ctx.Err() != nil {
		err = context.Canceled // whatever the verb made of it
	}
	return s.report(err)
}

// report prints an error and what to do about it.
func (s *session) report(err error) int {
	found := s.explain(err)
	if found.err != nil {
		painter := paint.New(s.colour, isTerminal(s.ErrOut), s.env)
		s.say("%s %s", painter.Bad("error:"), paint.CleanLines(found.Error()))
	}
	if found.hint != "" {
		s.say("hint: %s", found.hint)
	}
	return found.code
}

// programName is how help texts call this program.
func programName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if strings.HasPrefix(name, "kubectl-") {
		return "kubectl rukpak"
	}
	return "rukpak"
}

// quietLibraries keeps libraries from writing log lines between ours; what they
// return as errors is reported.
func quietLibraries() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	log.SetLogger(logr.Discard())
}

// Groups of verbs in the help text.
const (
	groupContent = "content"
	groupDecide  = "decide"
	groupLook    = "look"
	groupOther   = "other"
)

func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rukpak",
		Short: "Get content onto Kubernetes clusters; nothing becomes active before it is approved",
		Long: `RukPak gets content onto Kubernetes clusters: it fetches a bundle, renders it, shows
exactly what it would change, and makes it active once that is approved.`,
		Example: `  # All in one: bring a folder of manifests, look at the plan, approve, wait until it is healthy
  rukpak run ./manifests --create-account=cluster-admin

  # Or step by step
  rukpak push ./manifests registry.example.com/team/app:v1
  rukpak create instance app --image registry.example.com/team/app:v1 --service-account installer
  rukpak plan app
  rukpak approve app
  rukpak wait app`,
		Args:          cobra.ArbitraryArgs,
		RunE:          showHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: s.program},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := paint.Check(s.colour); err != nil {
				return usagef(cmd, "%w", err)
			}
			return nil
		},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&s.colour, "color", s.colour, "When to use colour: auto, always or never. NO_COLOR in the environment turns auto off.")
	_ = root.RegisterFlagCompletionFunc("namespace", s.completeNamespaces)
	s.addVerbs(root)
	addHelp(root)
	s.finish(root)
	return root
}

func (s *session) addVerbs(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupContent, Title: "Bring content:"},
		&cobra.Group{ID: groupDecide, Title: "Decide:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupOther, Title: "Else:"},
	)
	add := func(group string, verbs ...*cobra.Command) {
		for _, verb := range verbs {
			verb.GroupID = group
			root.AddCommand(verb)
		}
	}
	add(groupContent, s.runCommand(), s.pushCommand(), s.pullCommand(), s.uploadCommand(), s.createCommand(), s.updateCommand(), s.adoptCommand(), s.deleteCommand())
	add(groupDecide, s.planCommand(), s.approvalsCommand(), s.approveCommand(), s.denyCommand(), s.rollbackCommand(), s.policyCommand())
	add(groupLook, s.renderCommand(), s.imagesCommand(), s.rbacCommand(), s.getCommand(), s.describeCommand(), s.treeCommand(), s.historyCommand(), s.waitCommand(), s.testCommand(),
		s.lsCommand(), s.catCommand(), s.exportCommand(), s.diffCommand())
	add(groupOther, s.registryCommand(), s.versionCommand(), s.optionsCommand())
	root.AddCommand(s.exitCodesTopic())
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	s.addCompletion(root)
}
