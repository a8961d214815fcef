// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"

	"rukpak.io/rukpak/internal/registry/rules"
)

// Config is the registry configuration in force. A nil *Config has no rules:
// everything is reached where it says, with the defaults of the system. It may
// be used by several goroutines.
type Config struct {
	pool *pool

	mu     sync.Mutex
	over   map[*http.Transport]*pool // of callers with transports of their own
	set    *rules.Set
	loaded chan struct{} // closed by the first Replace
}

// New makes a Config that waits for the first Replace: until then nothing is
// fetched, so that no rule is missed at the start. base is what requests are
// sent with where no rule says otherwise; nil means the default.
func New(base *http.Transport) *Config {
	return &Config{pool: newPool(base), loaded: make(chan struct{})}
}

// Fixed makes a Config that has these rules for good.
func Fixed(set *rules.Set, base *http.Transport) *Config {
	c := New(base)
	c.Replace(set)
	return c
}

// Replace puts other rules in force.
func (c *Config) Replace(set *rules.Set) {
	c.mu.Lock()
	first := c.set == nil
	if set == nil {
		set = &rules.Set{}
	}
	c.set = set
	pools := slices.Collect(maps.Values(c.over))
	c.mu.Unlock()
	if first {
		close(c.loaded)
	}
	for _, p := range append(pools, c.pool) {
		p.keep(set)
	}
}

// Rules gives the rules in force, and waits for the first ones.
func (c *Config) Rules(ctx context.Context) (*rules.Set, error) {
	if c == nil {
		return nil, nil
	}
	select {
	case <-c.loaded:
	default:
		select {
		case <-c.loaded:
		case <-ctx.Done():
			return nil, fmt.Errorf("the registry configuration is not loaded yet: %w", context.Cause(ctx))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set, nil
}

// Resolve finds the endpoints of a reference; see rules.Set.Resolve.
func (c *Config) Resolve(ctx context.Context, ref name.Reference) (*rules.Set, rules.Resolution, error) {
	set, err := c.Rules(ctx)
	if err != nil {
		return nil, rules.Resolution{}, err
	}
	found, err := set.Resolve(ref)
	return set, found, err
}

// Transport gives what requests to one endpoint are sent with: connections as
// its Access says, without retries and limits, which Paced adds.
func (c *Config) Transport(access *rules.Access) (http.RoundTripper, error) {
	if c == nil {
		return defaults.transport(access)
	}
	return c.pool.transport(access)
}

// TransportOver is Transport for a caller with a transport of its own, whose
// dialer stays.
func (c *Config) TransportOver(base *http.Transport, access *rules.Access) (http.RoundTripper, error) {
	return c.poolOver(base).transport(access)
}

// maxPools bounds how many transports of callers are remembered.
const maxPools = 128

func (c *Config) poolOver(base *http.Transport) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.over[base]; found != nil {
		return found
	}
	if c.over == nil || len(c.over) >= maxPools { // those in use are made anew
		for _, old := range c.over {
			old.keep(nil)
		}
		c.over = map[*http.Transport]*pool{}
	}
	c.over[base] = newPool(base)
	return c.over[base]
}

// Client is an HTTP client for all that is fetched by URL; see ByURL.
func (c *Config) Client() *http.Client { return &http.Client{Transport: c.ByURL()} }

var defaults = newPool(nil)
