// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/notify"
	"rukpak.io/rukpak/internal/testenv"
)

var cluster = testenv.Shared{CRDs: true}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// receiver is a web server that keeps what is posted.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	events  []event.Event
	tokens  []string
	answers []int // of the next requests; 200 after that
}

func newReceiver(t *testing.T, secure bool) *receiver {
	t.Helper()
	r := &receiver{}
	if secure {
		r.Server = httptest.NewTLSServer(r)
	} else {
		r.Server = httptest.NewServer(r)
	}
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	var got event.Event
	if err := json.Unmarshal(body, &got); err != nil || request.Method != http.MethodPost || request.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" {
		got.SetType(fmt.Sprintf("no event: %v %v %s", err, request.Header, body))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.tokens = append(r.events, got), append(r.tokens, request.Header.Get("Authorization"))
	if len(r.answers) > 0 {
		answer := r.answers[0]
		r.answers = r.answers[1:]
		w.Header().Set("Location", "https://hunter2.example.com/")
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, "hunter2")
	}
}

// told is what came about a revision, as types end.
func (r *receiver) told(about string) (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.events {
		if one.Subject() == about {
			out = append(out, one.Type()[len("io.rukpak.revision."):])
		}
	}
	return out
}

func (r *receiver) ids() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.events {
		out = append(out, one.ID())
	}
	return out
}

// stage is a class, a namespace and a running manager with nothing but this controller.
type stage struct {
	*testing.T
	client.Client // that knows no cache
	name          string
	timeout       time.Duration
	stop          func()
}

func newStage(t *testing.T, all ...v1alpha1.ApprovalNotice) *stage {
	t.Helper()
	env := cluster.Env(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := env.NewClient(scheme)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, Client: c, name: env.NewNamespace(t), timeout: time.Minute, stop: func() {}}
	s.must(c.Create(t.Context(), &v1alpha1.ProvisionerClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io", Approval: v1alpha1.ApprovalPolicy{Notify: all}},
	}))
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// start runs a manager that remembers nothing.
func (s *stage) start() *stage {
	s.Helper()
	s.stop()
	mgr, err := ctrl.NewManager(cluster.Env(s.T).Config(), ctrl.Options{
		Scheme: s.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // one after another, in one process
	})
	s.must(err)
	c := &Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Sender: &notify.Sender{Timeout: s.timeout}, Namespace: s.name,
		First: 20 * time.Millisecond, Longest: 200 * time.Millisecond,
	}
	s.must(c.Register(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
	})
	return s
}

const digest = "sha256:4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce"

// waiting makes a revision that waits for approval.
func (s *stage) waiting(name string) *v1alpha1.InstanceRevision {
	s.Helper()
	of := &v1alpha1.InstanceRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name},
		Spec: v1alpha1.InstanceRevisionSpec{
			Instance: v1alpha1.InstanceReference{Name: "app", UID: "u"}, Number: 1, BundleName: "b", ProvisionerClassName: s.name,
			ContentDigest: digest, ConfigDigest: digest, ManifestDigest: digest, ServiceAccountName: "a", Adoption: v1alpha1.AdoptNever,
		},
	}
	s.must(s.Create(s.Context(), of))
	s.set(name, v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned)
	s.set(name, v1alpha1.ConditionApproved, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	return of
}

func (s *stage) get(name string) *v1alpha1.InstanceRevision {
	s.Helper()
	of := &v1alpha1.InstanceRevision{}
	s.must(s.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: name}, of))
	return of
}

// set writes a condition, as the revision controller does.
func (s *stage) set(name, condition string, value metav1.ConditionStatus, reason string) {
	s.Helper()
	s.change(name, func(of *v1alpha1.InstanceRevision) {
		meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{Type: condition, Status: value, Reason: reason, Message: "because " + reason})
	})
}

func (s *stage) change(name string, change func(*v1alpha1.InstanceRevision)) {
	s.Helper()
	s.eventually("change of the revision", func() error {
		of := s.get(name)
		change(of)
		return s.Status().Update(s.Context(), of)
	})
}

func (s *stage) receivers(all ...v1alpha1.ApprovalNotice) {
	s.Helper()
	s.eventually("change of the class", func() error {
		class := &v1alpha1.ProvisionerClass{}
		s.must(s.Get(s.Context(), client.ObjectKey{Name: s.name}, class))
		class.Spec.Approval.Notify = all
		return s.Update(s.Context(), class)
	})
}

func (s *stage) eventually(what string, look func() error) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = look()
		return last == nil, nil
	})
	if err != nil {
		s.Fatalf("%s: %v", what, last)
	}
}

// tells waits until a receiver has exactly these events of a revision.
func (s *stage) tells(r *receiver, about string, want ...string) {
	s.Helper()
	s.eventually("events of "+about, func() error {
		if got := r.told(about); !slices.Equal(got, want) {
			return fmt.Errorf("told %q, want %q", got, want)
		}
		return nil
	})
}

// notified waits until the condition says so, and gives its message.
func (s *stage) notified(name string, want metav1.ConditionStatus, message string) *v1alpha1.InstanceRevision {
	s.Helper()
	var of *v1alpha1.InstanceRevision
	s.eventually("Notified of "+name, func() error {
		of = s.get(name)
		found := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionNotified)
		if found == nil || found.Status != want || found.Message != message {
			return fmt.Errorf("it is %+v, want %q", found, message)
		}
		return nil
	})
	return of
}

func (s *stage) secret(name string, data map[string]string) {
	s.Helper()
	s.must(s.Create(s.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}, StringData: data}))
}
