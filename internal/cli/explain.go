// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"rukpak.io/rukpak/internal/source"
)

// explain turns any error into a problem that names what happened and what to
// do, without words that only a programmer of RukPak knows.
func (s *session) explain(err error) *problem {
	if found := (*problem)(nil); errors.As(err, &found) {
		return found
	}
	for _, judge := range []func(error) *problem{s.explainConfig, s.explainSource, s.explainNetwork, s.explainAPI} {
		if found := judge(err); found != nil {
			return found
		}
	}
	return failf(ExitError, "%w", err)
}

func (s *session) explainConfig(err error) *problem {
	switch {
	case errors.Is(err, context.Canceled):
		return failf(ExitInterrupted, "interrupted")
	case clientcmd.IsEmptyConfig(err):
		return s.noCluster()
	case clientcmd.IsContextNotFound(err) || clientcmd.IsConfigurationInvalid(err):
		return s.badConfig(err)
	}
	return nil
}

func (s *session) badConfig(err error) *problem {
	raw, rawErr := s.flags.ToRawKubeConfigLoader().RawConfig()
	if rawErr == nil && set(s.flags.Context) && raw.Contexts[*s.flags.Context] == nil {
		return failf(ExitError, "the kubeconfig has no context %q", *s.flags.Context).
			hintf("it has %s", strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	return failf(ExitError, "kubeconfig: %w", err).hintf("--kubeconfig and --context, or the variable KUBECONFIG, name the cluster")
}

func (s *session) noCluster() *problem {
	return failf(ExitError, "no cluster is configured: no kubeconfig names one (%s)", strings.Join(s.configFiles(), ", ")).
		hintf("set KUBECONFIG or --kubeconfig, or start a cluster of your own with \"make dev\"")
}

// explainSource explains what went wrong with a registry.
func (s *session) explainSource(err error) *problem {
	switch source.ReasonOf(err) {
	case "":
		return nil
	case source.ReasonCanceled:
		return failf(ExitInterrupted, "interrupted")
	case source.ReasonNotFound:
		return failf(ExitNotFound, "%w", err)
	case source.ReasonInvalidReference:
		return failf(ExitUsage, "%w", err).hintf("a reference is REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:...")
	case source.ReasonAuthenticationFailed:
		return failf(ExitError, "%w", err).hintf("\"docker login\" keeps credentials where this program finds them")
	case source.ReasonRegistryUnreachable:
		var lookup *net.DNSError
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return failf(ExitError, "%w", err).hintf("nothing listens there: is the registry running, and is this its port?")
		case errors.As(err, &lookup):
			return failf(ExitError, "%w", err).hintf("is the name of the registry right?")
		}
		return failf(ExitError, "%w", err).hintf("a registry that speaks plain HTTP needs --insecure, and one that speaks HTTPS must not have it")
	}
	return failf(ExitError, "%w", err)
}

func (s *session) explainNetwork(err error) *problem {
	var lookup *net.DNSError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		if !s.configured() {
			return s.noCluster()
		}
		return failf(ExitError, "nothing answers at %s: connection refused", s.server()).
			hintf("is the cluster running? %s", s.whichConfig())
	case errors.As(err, &lookup):
		return failf(ExitError, "%s: the host %q is not known", s.server(), lookup.Name).hintf("%s", s.whichConfig())
	case errors.As(err, &authority):
		return failf(ExitError, "%s: its certificate is signed by an authority that is not trusted", s.server()).
			hintf("is the kubeconfig that of this cluster? %s", s.whichConfig())
	case os.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		return failf(ExitTimeout, "%s does not answer in time", s.server()).
			hintf("--request-timeout sets how long one request may take; %s", s.whichConfig())
	}
	return nil
}

func (s *session) explainAPI(err error) *problem {
	switch {
	case meta.IsNoMatchError(err) && strings.Contains(err.Error(), "rukpak.io"):
		return failf(ExitError, "RukPak is not installed in the cluster at %s: it does not serve rukpak.io/v1alpha1", s.server()).
			hintf("install it with \"kubectl apply -k config/default\", or choose another cluster with --context")
	case meta.IsNoMatchError(err), discovery.IsGroupDiscoveryFailedError(err):
		return failf(ExitError, "the cluster at %s does not serve what is needed: %w", s.server(), err)
	case apierrors.IsNotFound(err):
		return failf(ExitNotFound, "%w", err)
	case apierrors.IsUnauthorized(err):
		return failf(ExitError, "%s does not know you: the credentials are missing, wrong or have ended", s.server()).
			hintf("%s", s.whichConfig())
	case apierrors.IsForbidden(err) && policyDenied(err) != "":
		return failf(ExitError, "%s", policyDenied(err))
	case apierrors.IsForbidden(err):
		return failf(ExitError, "%w", err).hintf("ask who administers the cluster for this permission, or act as another user with --as or --context")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return failf(ExitError, "%w", err)
	case apierrors.IsConflict(err):
		return failf(ExitError, "%w", err).hintf("somebody else changed it at the same moment: try again")
	}
	return nil
}

// deniedBy is what the API server puts before the message of a policy.
var deniedBy = regexp.MustCompile(`ValidatingAdmissionPolicy '[^']*\.rukpak\.io' with binding '[^']*' denied request: (.*)`)

// policyDenied is the message of one of RukPak's own admission policies, or "".
// It says what is missing and what to do better than the words around it.
func policyDenied(err error) string {
	found := deniedBy.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	return found[1]
}

// server is the address of the API server, for messages.
func (s *session) server() string {
	config, err := s.flags.ToRESTConfig()
	if err != nil || config.Host == "" {
		return "the API server"
	}
	return config.Host
}

// configured says whether any kubeconfig names a cluster. Without one the
// client falls back on localhost:8080, about which nobody should be told.
func (s *session) configured() bool {
	raw, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	return err != nil || len(raw.Clusters) > 0 || set(s.flags.APIServer)
}

func (s *session) whichConfig() string {
	loader := s.flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return "--kubeconfig and --context name the cluster"
	}
	current := raw.CurrentContext
	if set(s.flags.Context) {
		current = *s.flags.Context
	}
	return "the context is " + quoteOr(current, "not set") + " of " + strings.Join(s.configFiles(), ", ")
}

// configFiles are the kubeconfig files that were looked for.
func (s *session) configFiles() []string {
	if set(s.flags.KubeConfig) {
		return []string{*s.flags.KubeConfig}
	}
	return s.flags.ToRawKubeConfigLoader().ConfigAccess().GetLoadingPrecedence()
}

func set(flag *string) bool { return flag != nil && *flag != "" }

func quoteOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return `"` + text + `"`
}
