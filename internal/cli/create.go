// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (s *session) createCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a class, a bundle, an instance or a service account",
		Long: `Creates one of RukPak's objects, or a service account that an instance can act as.

Every one of these is an ordinary object: --dry-run=client -o yaml prints it instead, to keep in a file.`,
		Args: cobra.ArbitraryArgs,
		RunE: showHelp,
	}
	cmd.AddCommand(s.createClassCommand(), s.createBundleCommand(), s.createInstanceCommand(), s.createAccountCommand())
	return cmd
}

// creation is what all create verbs have in common.
type creation struct {
	*session
	output output
	dryRun string
}

// Values of --dry-run, as kubectl has them.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

func (c *creation) addTo(cmd *cobra.Command) {
	c.output.addTo(cmd, withTemplates()...)
	cmd.Flags().StringVar(&c.dryRun, "dry-run", dryRunNone, "client: only print the object; server: let the API server check it, but not keep it")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
}

func (c *creation) check(cmd *cobra.Command) error {
	if err := oneOf(cmd, "dry-run", c.dryRun, dryRunNone, dryRunClient, dryRunServer); err != nil {
		return err
	}
	return c.output.check(cmd)
}

// create creates objects in order and prints each, as -o and --dry-run say.
func (c *creation) create(ctx context.Context, objects ...client.Object) error {
	for i, object := range objects {
		if err := c.createOne(ctx, object); err != nil {
			return err
		}
		if c.output.format == formatYAML && i > 0 {
			c.print("---")
		}
		if err := c.printCreated(object); err != nil {
			return err
		}
	}
	return nil
}

func (c *creation) createOne(ctx context.Context, object client.Object) error {
	if c.dryRun == dryRunClient {
		return nil
	}
	cluster, err := c.client()
	if err != nil {
		return err
	}
	var options []client.CreateOption
	if c.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	err = cluster.Create(ctx, object, options...)
	if apierrors.IsAlreadyExists(err) {
		return failf(ExitError, "%w", err).hintf("\"describe\" shows it; \"update\" changes an instance")
	}
	return err
}

func (c *creation) printCreated(object client.Object) error {
	done := "created"
	if c.dryRun != dryRunNone {
		done += " (dry run)"
	}
	return c.object(object, c.output.format, done)
}

// next tells a person, not a script, what usually comes next.
func (c *creation) next(format string, args ...any) {
	if c.dryRun == dryRunNone && c.output.forPeople() && isTerminal(c.ErrOut) {
		c.say("next: "+c.program+" "+format, args...)
	}
}

// onlyName checks for exactly one argument, the name of what is to be created.
func onlyName(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return failf(ExitUsage, "the name of the %s is missing", what)
		case len(args) > 1:
			return failf(ExitUsage, "one name is expected, not %s", strings.Join(args, " "))
		}
		return nil
	}
}
