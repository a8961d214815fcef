// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/registry/reach"
	"rukpak.io/rukpak/internal/registry/rules"
)

// explained is `registry explain -o json`. It holds no secrets.
type explained struct {
	Reference string              `json:"reference"`
	Rule      string              `json:"rule,omitempty"`
	Refused   string              `json:"refused,omitempty"`
	Endpoints []explainedEndpoint `json:"endpoints"`
	Skipped   []explainedEndpoint `json:"skipped,omitempty"`
	Notes     []rules.Note        `json:"notes,omitempty"`
}

type explainedEndpoint struct {
	URL        string        `json:"url"` // of the manifest
	Mirror     bool          `json:"mirror"`
	Rule       string        `json:"rule,omitempty"`
	AccessRule string        `json:"accessRule,omitempty"`
	PlainHTTP  bool          `json:"plainHTTP,omitempty"`
	SkipVerify bool          `json:"skipVerify,omitempty"`
	Origins    rules.Origins `json:"origins"`
	Proxy      string        `json:"proxyURL,omitempty"`
	NoProxy    []string      `json:"noProxy,omitempty"`
	Direct     bool          `json:"direct,omitempty"` // there is a proxy, and it is not gone through
	Skipped    string        `json:"skipped,omitempty"`
	Problem    string        `json:"problem,omitempty"`
}

type registryExplainVerb struct {
	*session
	output output
	config configFlag
}

func (s *session) registryExplainCommand() *cobra.Command {
	v := &registryExplainVerb{session: s}
	cmd := &cobra.Command{
		Use:   "explain REF",
		Short: "Tell which rule is about a reference, and which endpoints are asked in which order",
		Long: `Tells which rule is about a reference, which endpoints are asked in which order, and which certificates,
proxy and credentials would be used at each. It asks no registry, reads no Secret and shows no secret.

The configuration is that of the cluster's RegistryConfig objects, or with --config that of files. Files of the
node that the manager uses (--registry-config) are not known here: name them with --config, too.`,
		Example: `  rukpak registry explain docker.io/library/nginx:1.29

  # What would podman's configuration on this machine do?
  rukpak registry explain quay.io/team/app:v1 --config containers=/etc/containers`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.output.check(cmd); err != nil {
				return err
			}
			ref, err := parseReference(cmd, args[0])
			if err != nil {
				return err
			}
			return v.run(cmd.Context(), ref)
		},
	}
	v.output.addTo(cmd)
	v.config.addTo(cmd)
	return cmd
}

func (v *registryExplainVerb) run(ctx context.Context, ref name.Reference) error {
	set, notes, err := v.registryRules(ctx, v.config, false)
	if err != nil {
		return err
	}
	found, err := set.Resolve(ref)
	if err != nil && !refused(err) {
		return err
	}
	said := explained{Reference: rules.Text(ref), Notes: notes, Endpoints: []explainedEndpoint{}}
	if found.Rule != nil {
		said.Rule = found.Rule.From
	}
	if err != nil {
		said.Refused = err.Error()
	}
	for i := range found.Endpoints {
		said.Endpoints = append(said.Endpoints, explainEndpoint(set, &found.Endpoints[i]))
	}
	for i := range found.Skipped {
		said.Skipped = append(said.Skipped, explainEndpoint(set, &found.Skipped[i]))
	}
	if !v.output.forPeople() {
		return v.value(said, v.output.format)
	}
	return v.show(said)
}

func explainEndpoint(set *rules.Set, e *rules.Endpoint) explainedEndpoint {
	said := explainedEndpoint{
		URL: endpointURL(e), Mirror: e.Mirror, Rule: e.Rule, AccessRule: e.AccessRule,
		PlainHTTP: e.PlainHTTP, SkipVerify: e.SkipVerify,
		Origins: e.Origins, Skipped: e.Skipped,
	}
	if server, err := url.Parse(said.URL); err == nil && e.Proxy != nil {
		if said.Direct = !reach.Proxied(e.Proxy, server); !said.Direct {
			said.Proxy, said.NoProxy = e.Proxy.URL, e.Proxy.NoProxy
		}
	}
	if e.Problem != nil {
		said.Problem = e.Problem.Error()
	}
	if said.Origins.Credentials == "" && len(set.Credentials(e).Candidates(e.Reference.Context())) > 0 {
		said.Origins.Credentials = "the files' credentials for " + e.Host()
	}
	return said
}

// endpointURL is what is asked for first.
func endpointURL(e *rules.Endpoint) string {
	scheme, path := "https://", e.APIPath
	if e.PlainHTTP && !e.SkipVerify {
		scheme = "http://"
	}
	if path == "" {
		path = "/v2"
	}
	url := scheme + e.Host() + strings.TrimSuffix(path, "/") + "/" + e.Reference.Context().RepositoryStr() + "/manifests/" + e.Reference.Identifier()
	if e.Namespace != "" {
		url += "?ns=" + e.Namespace
	}
	return url
}

func (v *registryExplainVerb) show(said explained) error {
	v.tell(said.Notes)
	v.print("Reference  %s", said.Reference)
	switch {
	case said.Rule == "":
		v.print("Rule       none: it is asked for where it says, with the defaults of the system")
	default:
		v.print("Rule       %s", said.Rule)
	}
	if said.Refused != "" {
		v.print("Refused    %s", said.Refused)
	}
	shown := table.Table{Titles: []string{"", "ENDPOINT", "KIND", "TRUST", "CREDENTIALS", "PROXY"}}
	add := func(number string, e explainedEndpoint) {
		shown.Add(number, e.URL, endpointKind(e), trustText(e), e.Origins.Credentials, proxyText(e))
	}
	for i, e := range said.Endpoints {
		add(strconv.Itoa(i+1), e)
	}
	for _, e := range said.Skipped {
		add("skipped", e)
	}
	if len(shown.Rows) == 0 {
		return nil
	}
	v.print("")
	if err := shown.Write(v.Out); err != nil {
		return err
	}
	return nil
}

func endpointKind(e explainedEndpoint) string {
	kind := "primary"
	if e.Mirror {
		kind = "mirror"
	}
	switch {
	case e.Skipped != "":
		return kind + ": " + e.Skipped
	case e.Problem != "":
		return kind + ": " + e.Problem
	}
	return kind
}

func trustText(e explainedEndpoint) string {
	var parts []string
	switch {
	case strings.HasPrefix(e.URL, "http://"):
		parts = append(parts, "none (plain HTTP)")
	case e.SkipVerify && e.PlainHTTP:
		parts = append(parts, "any certificate, or plain HTTP")
	case e.SkipVerify:
		parts = append(parts, "any certificate")
	case e.Origins.CA != "":
		parts = append(parts, "system and "+e.Origins.CA)
	default:
		parts = append(parts, "system")
	}
	if e.Origins.Certificate != "" {
		parts = append(parts, "shows "+e.Origins.Certificate)
	}
	return strings.Join(parts, "; ")
}

func proxyText(e explainedEndpoint) string {
	if e.Direct {
		return "none (noProxy or loopback)"
	}
	if e.Proxy == "" {
		return "environment"
	}
	if len(e.NoProxy) > 0 {
		return e.Proxy + " except " + strings.Join(e.NoProxy, ",")
	}
	return e.Proxy
}
