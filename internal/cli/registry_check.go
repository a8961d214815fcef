// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
)

// checked is `registry check -o json`.
type checked struct {
	Reference string            `json:"reference"`
	Endpoints []checkedEndpoint `json:"endpoints"`
}

type checkedEndpoint struct {
	URL    string `json:"url"`
	Mirror bool   `json:"mirror"`
	Digest string `json:"digest,omitempty"`
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
	Millis int64  `json:"milliseconds"`
}

type registryCheckVerb struct {
	*session
	output   output
	config   configFlag
	insecure bool
}

func (s *session) registryCheckCommand() *cobra.Command {
	v := &registryCheckVerb{session: s}
	cmd := &cobra.Command{
		Use:   "check REF",
		Short: "Ask every endpoint of a reference, and tell what each answers",
		Long: `Asks every endpoint of a reference in turn, from this machine, and tells what each answers. Nothing is fetched.

The configuration is that of the cluster's RegistryConfig objects, or with --config that of files. Secrets are read
as you; those that you may not read are gone without, and that is said. Besides, the credentials of docker and
podman on this machine are used.

It exits with 0 if an endpoint has the reference, else with 1.`,
		Example: `  rukpak registry check docker.io/library/nginx:1.29`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			if _, err := parseReference(cmd, args[0]); err != nil {
				return err
			}
			return v.run(cmd.Context(), args[0])
		},
	}
	v.output.addTo(cmd)
	v.config.addTo(cmd)
	cmd.Flags().BoolVar(&v.insecure, "insecure", false, "Speak plain HTTP to the registry that the reference names")
	return cmd
}

func (v *registryCheckVerb) run(ctx context.Context, ref string) error {
	set, notes, err := v.registryRules(ctx, v.config, true)
	if err != nil {
		return err
	}
	v.tell(notes)
	fetcher := oci.New(nil, oci.Options{Registries: reach.Fixed(set, nil), StallTimeout: 10 * time.Second})
	all, err := fetcher.Check(ctx, oci.Source{Ref: ref, Insecure: v.insecure, Credentials: dockerCredentials{}})
	if err != nil {
		return err
	}
	said, found := checked{Reference: ref}, false
	for _, tried := range all {
		asked := *tried.Endpoint
		asked.PlainHTTP = asked.PlainHTTP || v.insecure && !asked.Mirror
		one := checkedEndpoint{URL: endpointURL(&asked), Mirror: tried.Endpoint.Mirror, Digest: string(tried.Digest), Millis: tried.Took.Milliseconds()}
		if tried.Err != nil {
			one.Reason, one.Error = source.ReasonOf(tried.Err), strings.Replace(tried.Err.Error(), "set insecure to allow that", "--insecure allows that", 1)
		} else {
			found = true
		}
		said.Endpoints = append(said.Endpoints, one)
	}
	if err := v.show(said); err != nil {
		return err
	}
	if !found {
		return failf(ExitError, "no endpoint has %s", ref)
	}
	return nil
}

func (v *registryCheckVerb) show(said checked) error {
	if !v.output.forPeople() {
		return v.value(said, v.output.format)
	}
	shown := table.Table{Titles: []string{"", "ENDPOINT", "KIND", "ANSWER", "TIME"}}
	for i, e := range said.Endpoints {
		kind, answer := "primary", e.Digest
		if e.Mirror {
			kind = "mirror"
		}
		if e.Error != "" {
			answer = e.Reason + ": " + e.Error
		}
		shown.Add(strconv.Itoa(i+1), e.URL, kind, answer, strconv.FormatInt(e.Millis, 10)+"ms")
	}
	return shown.Write(v.Out)
}
