// SPDX-License-Identifier: Apache-2.0

package provisionertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
)

var errNetwork = errors.New("a provisioner that does not declare it reaches no network")

// forbidNetwork fails the test when anything goes out by the standard library's HTTP transport or looks up a host. It
// changes globals, so subjects are not run in parallel with tests that need the network.
func forbidNetwork(t *testing.T) {
	t.Helper()
	transport, resolver := http.DefaultTransport, net.DefaultResolver
	t.Cleanup(func() { http.DefaultTransport, net.DefaultResolver = transport, resolver })
	http.DefaultTransport = refusing{t}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(_ context.Context, network, address string) (net.Conn, error) {
		t.Errorf("the provisioner looks up a host, at the name server %s (%s)", address, network)
		return nil, errNetwork
	}}
}

// refusing is a transport that sends nothing.
type refusing struct{ t *testing.T }

// RoundTrip fails.
func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	r.t.Errorf("the provisioner sends a request: %s %s", request.Method, request.URL)
	return nil, fmt.Errorf("%s: %w", request.URL.Host, errNetwork)
}
