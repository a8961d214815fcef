// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// exercised returns a registry whose metrics have all been used once.
func exercised(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.Fetched("oci", 1000, nil)
	m.Fetched("oci", -1, errors.New("truncated"))
	m.Planned(time.Second, nil)
	m.Waiting("ns/a-1", "plain")
	m.Waiting("ns/a-1", "plain") // said twice, counted once
	m.Waiting("ns/b-1", "plain")
	m.NotWaiting("ns/b-1")
	m.NotWaiting("ns/b-1")
	m.NotWaiting("ns/never")
	m.Decided(true, "class")
	m.Decided(false, "user")
	m.Activated(3 * time.Second)
	m.Activated(-time.Second) // clocks of two machines
	m.Objects("created", 5)
	m.Objects("deleted", 0)
	m.DriftUndone(2)
	m.Notified(Refused)
	m.Served("bundles/files", 200, time.Second)
	return reg
}

func TestValues(t *testing.T) {
	families, err := exercised(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			got[family.GetName()+labels(metric, true)] = value(metric)
		}
	}
	want := map[string]float64{
		"rukpak_fetches_total{result=succeeded,source=oci}":                1,
		"rukpak_fetches_total{result=failed,source=oci}":                   1,
		"rukpak_fetch_bytes_total{source=oci}":                             1000,
		"rukpak_plans_total{result=succeeded}":                             1,
		"rukpak_plan_seconds":                                              1,
		"rukpak_approvals_waiting{class=plain}":                            1,
		"rukpak_decisions_total{by=class,decision=approve}":                1,
		"rukpak_decisions_total{by=user,decision=deny}":                    1,
		"rukpak_activation_seconds":                                        2,
		"rukpak_objects_total{action=created}":                             5,
		"rukpak_drift_undone_total":                                        2,
		"rukpak_notifications_total{outcome=refused}":                      1,
		"rukpak_content_requests_total{resource=bundles/files,status=200}": 1,
		"rukpak_content_request_seconds":                                   1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARevisionThatChangesItsClassWaitsOnce(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.Waiting("ns/a-1", "plain")
	m.Waiting("ns/a-1", "helm")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			if family.GetName() == "rukpak_approvals_waiting" {
				got[labels(metric, true)] = value(metric)
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"{class=plain}": 0, "{class=helm}": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNilTakesEverything(*testing.T) {
	var m *Metrics
	m.Fetched("oci", 1, nil)
	m.Planned(time.Second, nil)
	m.Waiting("a", "b")
	m.NotWaiting("a")
	m.Decided(true, "user")
	m.Activated(time.Second)
	m.Objects("created", 1)
	m.DriftUndone(1)
}

func TestRegisteringTwiceIsAnError(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := New(reg); err != nil {
		t.Fatal(err)
	}
	if _, err := New(reg); err == nil {
		t.Error("no error")
	}
}

func TestNamesFollowPrometheus(t *testing.T) {
	families, err := exercised(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^rukpak_[a-z_]+$`)
	for _, family := range families {
		name := family.GetName()
		if !form.MatchString(name) {
			t.Errorf("%s: not of the form %s", name, form)
		}
		if counter := family.GetType() == dto.MetricType_COUNTER; counter != strings.HasSuffix(name, "_total") {
			t.Errorf("%s: counters, and only they, end in _total", name)
		}
		if histogram := family.GetType() == dto.MetricType_HISTOGRAM; histogram != strings.HasSuffix(name, "_seconds") {
			t.Errorf("%s: histograms here are of seconds", name)
		}
		if !strings.HasSuffix(family.GetHelp(), ".") {
			t.Errorf("%s: the help is no sentence: %q", name, family.GetHelp())
		}
	}
}

// TestDocumentation compares docs/metrics.md with what is registered; -update writes it.
func TestDocumentation(t *testing.T) {
	families, err := exercised(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`# Metrics

The manager serves these on its metrics address, beside those of Go and of controller-runtime (work queues,
reconciliations, requests to the API server). This page is checked against the code by a test of
` + "`internal/metrics`; `go test ./internal/metrics -update`" + ` writes it.

| metric | type | labels | what it says |
|---|---|---|---|
`)
	for _, family := range families {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", family.GetName(), strings.ToLower(family.GetType().String()),
			labels(family.Metric[0], false), family.GetHelp())
	}
	b.WriteString("\nHistograms are in seconds, with buckets from 50 ms to 10 min.\n")
	const file = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(page)); diff != "" {
		t.Errorf("docs/metrics.md is not up to date; run with -update (-want +got):\n%s", diff)
	}
}

func labels(metric *dto.Metric, values bool) string {
	var out []string
	for _, label := range metric.Label {
		if values {
			out = append(out, label.GetName()+"="+label.GetValue())
		} else {
			out = append(out, "`"+label.GetName()+"`")
		}
	}
	switch {
	case !values:
		return strings.Join(out, ", ")
	case len(out) == 0:
		return ""
	}
	return "{" + strings.Join(out, ",") + "}"
}

// value is what a counter or gauge says, and of a histogram the number of observations.
func value(metric *dto.Metric) float64 {
	switch {
	case metric.Counter != nil:
		return metric.Counter.GetValue()
	case metric.Gauge != nil:
		return metric.Gauge.GetValue()
	}
	return float64(metric.Histogram.GetSampleCount())
}
