// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what RukPak does, for Prometheus. It is called by the controllers at each step of the flow
// (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) and knows none of
// them. docs/metrics.md lists the metrics; a test keeps it true.
package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a fetch, a plan or a notification.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Refused   = "refused" // of a notification: the receiver answered, and has not taken it
)

// Metrics is what the controllers report to. A nil *Metrics takes everything and keeps nothing, so tests need none. It is
// safe for concurrent use. Create it with New.
type Metrics struct {
	fetches     *prometheus.CounterVec
	fetchBytes  *prometheus.CounterVec
	plans       *prometheus.CounterVec
	planSeconds prometheus.Histogram
	waiting     *prometheus.GaugeVec
	decisions   *prometheus.CounterVec
	activation  prometheus.Histogram
	objects     *prometheus.CounterVec
	drift       prometheus.Counter
	tasks       *prometheus.CounterVec
	notices     *prometheus.CounterVec
	served      *prometheus.CounterVec
	serveTime   prometheus.Histogram

	mu      sync.Mutex
	waiters map[string]string // revision ("namespace/name") to class
}

// New makes the metrics and registers them. An error means that reg has them already.
func New(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		fetches: counter("rukpak_fetches_total",
			"Attempts to fetch the content of a bundle, by kind of source (oci, ...) and result (succeeded, failed).", "source", "result"),
		fetchBytes: counter("rukpak_fetch_bytes_total",
			"Bytes of content read from sources, as they were transferred.", "source"),
		plans: counter("rukpak_plans_total",
			"Plans computed for revisions, by result (succeeded, failed).", "result"),
		planSeconds: histogram("rukpak_plan_seconds",
			"Time that computing the plan of a revision took."),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rukpak_approvals_waiting",
			Help: "Revisions that wait for an approval, by class.",
		}, []string{"class"}),
		decisions: counter("rukpak_decisions_total",
			"Decisions on revisions that count, by decision (approve, deny) and by whom (user, class, rollback).", "decision", "by"),
		activation: histogram("rukpak_activation_seconds",
			"Time from the approval of a revision until all its objects were applied."),
		objects: counter("rukpak_objects_total",
			"Writes to the objects of instances, by action (created, applied, adopted, recreated, deleted).", "action"),
		drift: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rukpak_drift_undone_total",
			Help: "Changes to active objects, made by others, that were undone.",
		}),
		tasks: counter("rukpak_tasks_total",
			"Tasks that ended, by moment (Install, Upgrade, ...) and result (succeeded, failed).", "moment", "result"),
		notices: counter("rukpak_notifications_total",
			"Attempts to tell a receiver of a class about a revision, by outcome (succeeded, refused by its answer, failed otherwise).", "outcome"),
		served: counter("rukpak_content_requests_total",
			"Requests to the content API, by resource (bundles/files, uploads, ...) and HTTP status.", "resource", "status"),
		serveTime: histogram("rukpak_content_request_seconds",
			"Time that answering a request to the content API took, until its last byte was sent."),
		waiters: map[string]string{},
	}
	for _, collector := range []prometheus.Collector{
		m.fetches, m.fetchBytes, m.plans, m.planSeconds, m.waiting, m.decisions, m.activation, m.objects, m.drift, m.tasks, m.notices,
		m.served, m.serveTime,
	} {
		if err := reg.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Fetched counts an attempt to fetch content: the kind of source ("oci"), what it transferred, and how it ended.
func (m *Metrics) Fetched(source string, bytes int64, err error) {
	if m == nil {
		return
	}
	m.fetches.WithLabelValues(source, result(err)).Inc()
	m.fetchBytes.WithLabelValues(source).Add(float64(max(bytes, 0)))
}

// Planned counts a computed plan.
func (m *Metrics) Planned(took time.Duration, err error) {
	if m == nil {
		return
	}
	m.plans.WithLabelValues(result(err)).Inc()
	m.planSeconds.Observe(took.Seconds())
}

// Waiting notes that a revision ("namespace/name") of a class waits for an approval. It may be called again.
func (m *Metrics) Waiting(revision, class string) { m.wait(revision, class) }

// NotWaiting notes that a revision does not wait: it was decided on, superseded or deleted. It may be called
// for revisions that never waited.
func (m *Metrics) NotWaiting(revision string) { m.wait(revision, "") }

func (m *Metrics) wait(revision, class string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.waiters[revision]
	if before == class {
		return
	}
	if known {
		m.waiting.WithLabelValues(before).Dec()
		delete(m.waiters, revision)
	}
	if class != "" {
		m.waiting.WithLabelValues(class).Inc()
		m.waiters[revision] = class
	}
}

// Decided counts a decision that counts: an approval or a denial, by a "user", by the "class" itself or by a "rollback".
func (m *Metrics) Decided(approve bool, by string) {
	if m == nil {
		return
	}
	decision := "deny"
	if approve {
		decision = "approve"
	}
	m.decisions.WithLabelValues(decision, by).Inc()
}

// Task counts a task that ended at a moment ("Install").
func (m *Metrics) Task(moment string, succeeded bool) {
	if m == nil {
		return
	}
	how := Failed
	if succeeded {
		how = Succeeded
	}
	m.tasks.WithLabelValues(moment, how).Inc()
}

// Notified counts an attempt to tell a receiver, by outcome: Succeeded, Refused or Failed.
func (m *Metrics) Notified(outcome string) {
	if m == nil {
		return
	}
	m.notices.WithLabelValues(outcome).Inc()
}

// Activated notes that all objects of a revision are applied, for the first time.
func (m *Metrics) Activated(sinceApproval time.Duration) {
	if m == nil {
		return
	}
	m.activation.Observe(max(sinceApproval, 0).Seconds())
}

// Objects counts writes to objects, all of the same action ("created", ...).
func (m *Metrics) Objects(action string, count int) {
	if m == nil || count <= 0 {
		return
	}
	m.objects.WithLabelValues(action).Add(float64(count))
}

// DriftUndone counts changes by others that were undone.
func (m *Metrics) DriftUndone(count int) {
	if m == nil || count <= 0 {
		return
	}
	m.drift.Add(float64(count))
}

// Served counts a request to the content API: what was asked for and the HTTP status of the answer.
func (m *Metrics) Served(resource string, status int, took time.Duration) {
	if m == nil {
		return
	}
	m.served.WithLabelValues(resource, strconv.Itoa(status)).Inc()
	m.serveTime.Observe(took.Seconds())
}

func result(err error) string {
	if err != nil {
		return Failed
	}
	return Succeeded
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// histogram covers what takes from some hundredths of a second to some ten minutes.
func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180, 600},
	})
}
