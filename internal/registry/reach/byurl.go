// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"net/http"
	"net/url"

	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/registry/rules"
)

// ByURL sends each request as the rule about its URL says: blocked ones are
// refused, a rewrite changes where it goes, and authorities, client
// certificate, proxy, headers, credentials, rate and retries are those of the
// rule. Each hop of a redirect is judged anew, by its own URL.
//
// Mirrors are not asked: they speak the protocol of registries. Where a rule
// says to ask only mirrors, a request is refused rather than sent to the
// primary.
//
// The scheme of the URL stays: a rule with plain HTTP does not turn https://
// into http://. Credentials of a rule are added only to requests that have
// none, and over plain HTTP only if the rule says so. A rewrite to another host
// takes the credentials of the request away, as a redirect does.
func (c *Config) ByURL() http.RoundTripper { return byURL{config: c} }

// Over is ByURL for a caller with a transport of its own: how it dials, whom it
// trusts and which client certificate it shows stay, and rules add to that.
func (c *Config) Over(base *http.Transport) http.RoundTripper {
	if c == nil {
		return base
	}
	return byURL{config: c, base: base}
}

type byURL struct {
	config *Config
	base   *http.Transport
}

func (b byURL) transport(access *rules.Access) (http.RoundTripper, error) {
	if b.base == nil {
		return b.config.Transport(access)
	}
	return b.config.poolOver(b.base).transport(access)
}

func (b byURL) RoundTrip(request *http.Request) (*http.Response, error) {
	set, err := b.config.Rules(request.Context())
	if err == nil {
		var response *http.Response
		if response, err = b.send(set, request); err == nil {
			return response, nil
		}
	}
	if request.Body != nil {
		_ = request.Body.Close() // the contract of RoundTripper asks for it
	}
	return nil, err
}

func (b byURL) send(set *rules.Set, request *http.Request) (*http.Response, error) {
	target, access, from, err := route(set, request.URL)
	if err != nil {
		return nil, err
	}
	transport, err := b.transport(access)
	if err != nil {
		return nil, &rules.ProblemError{Rule: from, Err: err}
	}
	if from == "" {
		return transport.RoundTrip(request)
	}
	sent := request.Clone(request.Context())
	if target != request.URL {
		sent.URL, sent.Host = target, ""
		if target.Host != request.URL.Host {
			for _, secret := range []string{"Authorization", "Cookie", "X-Amz-Security-Token"} {
				sent.Header.Del(secret) // they are for the host that the request names
			}
		}
	}
	for key, values := range access.Headers {
		sent.Header[key] = values
	}
	authorize(sent, access)
	return b.config.Paced(transport, from, access).RoundTrip(sent)
}

// route gives where a URL is reached, and how.
func route(set *rules.Set, u *url.URL) (target *url.URL, access *rules.Access, from string, err error) {
	rule := set.MatchURL(u)
	if rule == nil {
		return u, &rules.Access{}, "", nil
	}
	if err := rule.Usable(u.Host + u.Path); err != nil {
		return nil, nil, "", err
	}
	if rule.MirrorOnly && rule.Rewrite == "" {
		return nil, nil, "", &rules.ProblemError{Rule: rule.From, Err: errors.New("it allows only mirrors, and they serve registries alone, not " + u.Host + u.Path)}
	}
	primary := rule.Primary
	target, moved := set.RewriteURL(u)
	if moved {
		about := set.MatchURL(target)
		if about != nil && about.Blocked {
			return nil, nil, "", about.Usable(target.Host + target.Path)
		}
		primary = primary.Completed(about)
	}
	if primary.Problem != nil {
		return nil, nil, "", &rules.ProblemError{Rule: rule.From, Err: primary.Problem}
	}
	return target, &primary, rule.From, nil
}

// authorize adds the credentials of a rule.
func authorize(request *http.Request, access *rules.Access) {
	if request.Header.Get("Authorization") != "" || request.URL.User != nil || len(access.Logins) == 0 {
		return
	}
	if request.URL.Scheme != "https" && !access.PlainHTTP {
		return
	}
	for _, candidate := range registry.NewKeychain(access.Logins).Candidates(resource{request.URL}) {
		config, err := candidate.Authorization()
		switch {
		case err != nil:
		case config.RegistryToken != "":
			request.Header.Set("Authorization", "Bearer "+config.RegistryToken)
			return
		case config.Username != "":
			request.SetBasicAuth(config.Username, config.Password)
			return
		}
	}
}

// resource is a URL as the subject of credentials.
type resource struct{ url *url.URL }

func (r resource) String() string      { return r.url.Host + r.url.Path }
func (r resource) RegistryStr() string { return r.url.Host }
