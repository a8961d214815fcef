// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxClients bounds the clients that are held; the least recently used goes
// first. A client is small: all share the connections of the manager.
const maxClients = 1024

// Clients gives clients that act as service accounts. It is safe for
// concurrent use.
type Clients struct {
	config *rest.Config
	base   http.RoundTripper // as the manager itself; the connections are its
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	held   *lru.Cache
}

// NewClients makes clients from the manager's own configuration, without its
// limits on requests: the API server has limits of its own.
func NewClients(config *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper) (*Clients, error) {
	if config.Impersonate.UserName != "" {
		return nil, errors.New("the manager's own configuration impersonates a user already")
	}
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil
	own.WarningHandler, own.WarningHandlerWithContext = rest.NoWarnings{}, nil // they are about content, not about us
	base, err := rest.TransportFor(own)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &Clients{config: own, base: base, scheme: scheme, mapper: mapper, held: lru.New(maxClients)}, nil
}

// Client gives an uncached client that acts as the service account, whether
// that exists or not: what it may do is up to the API server.
func (c *Clients) Client(namespace, account string) (client.Client, error) {
	if namespace == "" || account == "" {
		return nil, fmt.Errorf("no service account to act as: namespace %q, name %q", namespace, account)
	}
	key := types.NamespacedName{Namespace: namespace, Name: account}
	if found, ok := c.held.Get(key); ok {
		if known, ok := found.(client.Client); ok {
			return known, nil
		}
	}
	actor := transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: User(namespace, account)}, c.base)
	made, err := client.New(c.config, client.Options{
		HTTPClient: &http.Client{Transport: actor, Timeout: c.config.Timeout}, Scheme: c.scheme, Mapper: c.mapper,
	})
	if err != nil {
		return nil, fmt.Errorf("client of ServiceAccount %s/%s: %w", namespace, account, err)
	}
	c.held.Add(key, made)
	return made, nil
}

// User is the name by which the API server knows a service account.
func User(namespace, account string) string {
	return serviceaccount.MakeUsername(namespace, account)
}
