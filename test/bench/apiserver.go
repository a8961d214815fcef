// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// apiServer reads the API server's own metrics.
type apiServer struct{ client *rest.RESTClient }

func newAPIServer(config *rest.Config) (*apiServer, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs
	made, err := rest.UnversionedRESTClientFor(config)
	return &apiServer{client: made}, err
}

// metrics that are looked at.
const (
	requestsTotal   = "apiserver_request_total"
	dispatchedTotal = "apiserver_flowcontrol_dispatched_requests_total"
)

// counters are what the API server has counted since it started.
type counters struct {
	requests   map[request]float64
	dispatched map[string]float64 // by flow schema
}

// request is one kind of requests.
type request struct {
	verb, group, resource, subresource string
	dryRun                             bool
}

func (r request) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	if r.dryRun {
		text += " (dry run)"
	}
	return text
}

// reading are the verbs that write nothing. All others count as writes, so that no new one is missed.
var reading = []string{"GET", "LIST", "WATCH", "WATCHLIST", "CONNECT"}

func (r request) writes() bool { return !slices.Contains(reading, r.verb) && !r.dryRun }

func (a *apiServer) counters(ctx context.Context) (counters, error) {
	body, err := a.client.Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return counters{}, fmt.Errorf("metrics of the API server: %w", err)
	}
	defer func() { _ = body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return counters{}, fmt.Errorf("metrics of the API server: %w", err)
	}
	now := counters{requests: map[request]float64{}, dispatched: map[string]float64{}}
	for _, metric := range families[requestsTotal].GetMetric() {
		l := labels(metric)
		r := request{l["verb"], l["group"], l["resource"], l["subresource"], l["dry_run"] != ""}
		now.requests[r] += metric.GetCounter().GetValue()
	}
	for _, metric := range families[dispatchedTotal].GetMetric() {
		now.dispatched[labels(metric)["flow_schema"]] += metric.GetCounter().GetValue()
	}
	return now, nil
}

func labels(metric *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, label := range metric.GetLabel() {
		all[label.GetName()] = label.GetValue()
	}
	return all
}

// since is what was counted between before and c.
func (c counters) since(before counters) counters {
	return counters{minus(c.requests, before.requests), minus(c.dispatched, before.dispatched)}
}

func minus[K comparable](now, before map[K]float64) map[K]float64 {
	out := map[K]float64{}
	for key, value := range now {
		if change := value - before[key]; change != 0 {
			out[key] = change
		}
	}
	return out
}

// count adds up the requests that fit.
func (c counters) count(fits func(request) bool) (total float64) {
	for r, n := range c.requests {
		if fits(r) {
			total += n
		}
	}
	return total
}

// list names the requests that fit with their numbers, sorted.
func (c counters) list(fits func(request) bool) []string {
	byName := map[string]float64{}
	for r, n := range c.requests {
		if fits(r) {
			byName[r.String()] += n
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, fmt.Sprintf("%g %s", byName[name], name))
	}
	return out
}

func (c counters) String() string {
	return strings.Join(c.list(func(request) bool { return true }), "; ")
}
