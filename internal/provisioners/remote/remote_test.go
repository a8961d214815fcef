// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/types"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/provisioner"
)

const id = "jsonnet.example.com"

// stage is a broker with a clock that the test moves.
type stage struct {
	*testing.T
	*Broker
	clock     time.Time
	instances map[types.NamespacedName]int // how often each was woken
	changes   map[string]int
}

func newStage(t *testing.T) *stage {
	s := &stage{T: t, Broker: New(Options{Own: []string{"plain.rukpak.io"}, Log: logr.Discard()}), clock: time.Unix(1_000_000, 0)}
	s.now = func() time.Time { return s.clock }
	s.instances, s.changes = map[types.NamespacedName]int{}, map[string]int{}
	s.OnInstance(func(name types.NamespacedName) { s.instances[name]++ })
	s.OnChange(func(id string) { s.changes[id]++ })
	s.started = s.clock
	return s
}

// pass lets time go by, as Start would see it.
func (s *stage) pass(time time.Duration) {
	s.clock = s.clock.Add(time)
	s.tick()
}

// passServed lets time go by while somebody else serves.
func (s *stage) passServed(time time.Duration) {
	s.clock = s.clock.Add(time)
	s.mu.Lock()
	s.alive(s.crewOf(id))
	s.unlock()
	s.tick()
}

// begun is past the time in which it is not known who serves what.
func (s *stage) begun() *stage {
	s.pass(grace)
	return s
}

type tree struct {
	fs.FS
	digest digest.Digest
}

func (t tree) Digest() digest.Digest { return t.digest }

func request(namespace, name, config string) provisioner.Request {
	return provisioner.Request{
		Instance: types.NamespacedName{Namespace: namespace, Name: name},
		Content:  tree{fstest.MapFS{"a": {}}, digest.FromString("a")}, Config: json.RawMessage(config), Revision: 1,
	}
}

func (s *stage) render(req provisioner.Request) (provisioner.Result, error) {
	return s.Provisioner(id).Render(context.Background(), req)
}

var ann = Worker{ID: id, User: "ann"}

// poll asks for a job and does not wait.
func (s *stage) poll(w Worker) *contentv1.Job {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		time.Sleep(20 * time.Millisecond)
		cancel()
	}()
	job, err := s.Take(ctx, w)
	if err != nil {
		s.Fatal(err)
	}
	return job
}

// mustTake takes a job that has to be there.
func (s *stage) mustTake(w Worker) *contentv1.Job {
	s.Helper()
	job := s.poll(w)
	if job == nil {
		s.Fatal("there is no job")
	}
	return job
}

func isPending(err error) bool { _, is := errors.AsType[*PendingError](err); return is }

func isNobody(err error) bool { _, is := errors.AsType[*NobodyError](err); return is }

func isGone(err error) bool { _, is := errors.AsType[*GoneError](err); return is }

const configMap = `{"phases": [{"name": "a", "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "1"}, "data": {"n": "1"}}]}]}`

func TestAJobIsAskedTakenAndAnswered(t *testing.T) {
	s := newStage(t).begun()
	req := request("team", "web", `{"a":1}`)
	if _, err := s.render(req); !isNobody(err) || !strings.Contains(err.Error(), `nobody serves the provisioner "jsonnet.example.com"`) {
		t.Fatalf("nobody serves: got %v", err)
	}
	if job := s.poll(ann); job != nil {
		t.Fatalf("there is a job of one who was told that nobody serves: %+v", job)
	}
	if s.instances[req.Instance] != 1 || s.changes[id] != 1 {
		t.Errorf("who waited is told %d times, classes %d, want once", s.instances[req.Instance], s.changes[id])
	}
	for range 2 { // to ask again makes no second job
		if _, err := s.render(req); !isPending(err) {
			t.Fatalf("got %v, want that there is no answer yet", err)
		}
	}
	job := s.mustTake(ann)
	if job.Kind != contentv1.JobRender || job.Instance.Name != "web" || string(job.Config) != `{"a":1}` || job.Content != digest.FromString("a").String() || len(job.ID) < 20 {
		t.Errorf("the job is %+v", job)
	}
	if again := s.poll(ann); again != nil {
		t.Errorf("it is given twice: %+v", again)
	}
	if content, err := s.Content(ann, job.ID); err != nil || content == nil {
		t.Errorf("its content: %v, %v", content, err)
	}
	if err := s.Finish(ann, job.ID, []byte(configMap)); err != nil {
		t.Fatal(err)
	}
	if s.instances[req.Instance] != 2 {
		t.Errorf("the instance is not told that there is an answer")
	}
	for range 2 { // who lost a race asks again
		result, err := s.render(req)
		if err != nil || len(result.Phases) != 1 || result.Phases[0].Objects[0].GetName() != "a" {
			t.Fatalf("got %+v, %v", result, err)
		}
		if result.Phases[0].Objects[0].GetUID() != "" {
			t.Error("what only an API server sets is kept")
		}
		result.Phases[0].Objects[0].SetName("changed by who got it")
	}
	if err := s.Finish(ann, job.ID, []byte(configMap)); !isGone(err) {
		t.Errorf("a second result: got %v", err)
	}
	s.pass(keepTaken + time.Second)
	if len(s.errands) != 0 || s.held != 0 {
		t.Errorf("%d errands and %d bytes are kept of what was used", len(s.errands), s.held)
	}
}

func TestAJobBelongsToWhoTookIt(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	_, _ = s.render(request("team", "web", ""))
	job := s.mustTake(ann)
	for name, w := range map[string]Worker{"another user": {id, "eve"}, "another provisioner": {"other.example.com", "ann"}} {
		if err := s.Renew(w, job.ID); !isGone(err) {
			t.Errorf("%s renews: got %v", name, err)
		}
		if _, err := s.Content(w, job.ID); !isGone(err) {
			t.Errorf("%s gets the content: got %v", name, err)
		}
		if _, err := s.Reader(w, job.ID); !isGone(err) {
			t.Errorf("%s reads: got %v", name, err)
		}
		if err := s.Finish(w, job.ID, []byte(configMap)); !isGone(err) {
			t.Errorf("%s finishes: got %v", name, err)
		}
		if err := s.Fail(w, job.ID, errors.New("x")); !isGone(err) {
			t.Errorf("%s fails it: got %v", name, err)
		}
	}
	if job := s.poll(Worker{"other.example.com", "ann"}); job != nil {
		t.Errorf("another provisioner gets a job of this one: %+v", job)
	}
	if err := s.Renew(ann, job.ID); err != nil {
		t.Errorf("the job is lost to who has it: %v", err)
	}
	_, err := s.Take(t.Context(), Worker{"plain.rukpak.io", "eve"})
	if _, is := errors.AsType[*OwnError](err); !is {
		t.Errorf("a provisioner of the manager is taken over: %v", err)
	}
}

func TestTheJobOfWhoDiesIsGivenToAnother(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	req := request("team", "web", "")
	_, _ = s.render(req)
	for death := 1; death <= maxLost; death++ {
		job := s.mustTake(ann)
		s.pass(lease - time.Second)
		if err := s.Renew(ann, job.ID); err != nil {
			t.Fatalf("a sign of life in time: %v", err)
		}
		s.passServed(lease + time.Second)
		if err := s.Renew(ann, job.ID); !isGone(err) {
			t.Fatalf("death %d: got %v", death, err)
		}
		if err := s.Finish(ann, job.ID, []byte(configMap)); !isGone(err) {
			t.Fatalf("a result that comes too late: got %v", err)
		}
	}
	if _, err := s.render(req); err == nil || !strings.Contains(err.Error(), "3 processes") {
		t.Errorf("got %v, want that it kills who takes it", err)
	}
	if job := s.poll(ann); job != nil {
		t.Error("it is given to a fourth")
	}
}

func TestAJobThatIsHandedBackIsGivenToAnotherAtOnce(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	_, _ = s.render(request("team", "web", ""))
	first := s.mustTake(ann)
	if err := s.Finish(ann, first.ID, []byte(`{"handedBack": true}`)); err != nil {
		t.Fatal(err)
	}
	if second := s.mustTake(Worker{id, "bob"}); second.ID == first.ID {
		t.Error("it has the same ID")
	}
}

func TestNobodyServesWhenAllAreGone(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	taken, waits := request("team", "taken", ""), request("team", "waits", "")
	_, _ = s.render(taken)
	job := s.mustTake(ann)
	_, _ = s.render(waits)
	s.pass(grace + time.Second) // a job is at hand: somebody may be there
	if _, err := s.render(waits); !isPending(err) {
		t.Fatalf("got %v", err)
	}
	s.pass(lease)
	woken := maps.Clone(s.instances)
	for _, req := range []provisioner.Request{taken, waits} {
		if woken[req.Instance] == 0 {
			t.Errorf("%s is not told", req.Instance)
		}
		if _, err := s.render(req); !isNobody(err) {
			t.Errorf("%s: got %v", req.Instance, err)
		}
	}
	if s.changes[id] != 2 {
		t.Errorf("classes are told %d times, want when somebody came and when all were gone", s.changes[id])
	}
	s.pass(time.Hour)
	if diff := s.instances[waits.Instance] - woken[waits.Instance]; diff != 0 {
		t.Errorf("who waits is told %d times while nothing changes", diff)
	}
	if err := s.Renew(ann, job.ID); !isGone(err) {
		t.Errorf("got %v", err)
	}
	s.poll(ann)
	for _, req := range []provisioner.Request{taken, waits} {
		if s.instances[req.Instance] == woken[req.Instance] {
			t.Errorf("%s is not told that somebody serves again", req.Instance)
		}
	}
}

// A manager that begins does not know yet who serves what.
func TestWhoServesIsNotJudgedAtTheStart(t *testing.T) {
	s := newStage(t)
	req := request("team", "web", "")
	if _, err := s.render(req); !isPending(err) {
		t.Errorf("got %v", err)
	}
	if err := s.Provisioner(id).Validate(t.Context(), nil, nil); !isPending(err) {
		t.Errorf("got %v", err)
	}
	s.pass(grace + time.Second)
	if s.instances[req.Instance] != 1 || s.changes[id] != 1 {
		t.Fatalf("told %v, %v; want once each", s.instances, s.changes)
	}
	if _, err := s.render(req); !isNobody(err) {
		t.Errorf("got %v", err)
	}
	s.pass(time.Hour)
	if s.instances[req.Instance] != 1 || s.changes[id] != 1 {
		t.Errorf("told %v, %v; want no more", s.instances, s.changes)
	}
}

func TestAnotherRequestOfAnInstanceTakesThePlaceOfTheFirst(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	_, _ = s.render(request("team", "web", `{"a":1}`))
	old := s.mustTake(ann)
	if _, err := s.render(request("team", "web", `{"a":2}`)); !isPending(err) {
		t.Fatal(err)
	}
	if err := s.Renew(ann, old.ID); !isGone(err) {
		t.Errorf("the first is not withdrawn: %v", err)
	}
	if job := s.mustTake(ann); string(job.Config) != `{"a":2}` {
		t.Errorf("the config is %s", job.Config)
	}
	if len(s.errands) != 1 {
		t.Errorf("there are %d errands", len(s.errands))
	}
}

func TestBadInputIsFinalAndOtherErrorsAreTriedAgain(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	bad, passing := request("team", "bad", ""), request("team", "passing", "")
	_, _ = s.render(bad)
	if err := s.Finish(ann, s.mustTake(ann).ID, []byte(`{"faults": [{"file": "b", "reason": "no"}, {"file": "a", "line": 3, "object": "X y", "reason": "bad"}]}`)); err != nil {
		t.Fatal(err)
	}
	s.passServed(maxPause)
	_, err := s.render(bad)
	if want := "a:3: X y: bad\nb: no"; err == nil || err.Error() != want || !provisioner.IsInputError(err) {
		t.Errorf("got %v, want bad input %q", err, want)
	}
	if job := s.poll(ann); job != nil {
		t.Error("bad input is tried again")
	}

	_, _ = s.render(passing)
	for try := range 3 {
		if err := s.Finish(ann, s.mustTake(ann).ID, fmt.Appendf(nil, `{"error": "try %d"}`, try)); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("try %d", try)
		if _, err := s.render(passing); err == nil || err.Error() != want {
			t.Fatalf("got %v, want %q", err, want)
		}
		if job := s.poll(ann); job != nil {
			t.Fatal("it is tried again at once")
		}
		s.passServed(firstPause << try)
		// The condition keeps what it said until there is another answer.
		if _, err := s.render(passing); err == nil || err.Error() != want {
			t.Fatalf("while it is tried again: got %v, want %q", err, want)
		}
	}
	if err := s.Finish(ann, s.mustTake(ann).ID, []byte(configMap)); err != nil {
		t.Fatal(err)
	}
	if result, err := s.render(passing); err != nil || len(result.Phases) != 1 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestParametersAreJudgedOnceForAllClasses(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	validate := func(parameters string) error {
		return s.Provisioner(id).Validate(t.Context(), nil, json.RawMessage(parameters))
	}
	for range 2 {
		if err := validate(`{"a":1}`); !isPending(err) {
			t.Fatal(err)
		}
	}
	job := s.mustTake(ann)
	if job.Kind != contentv1.JobValidate || job.Instance != nil || string(job.Parameters) != `{"a":1}` {
		t.Errorf("the job is %+v", job)
	}
	if content, err := s.Content(ann, job.ID); err != nil || content != nil {
		t.Errorf("content %v, %v", content, err)
	}
	told := s.changes[id]
	if err := s.Finish(ann, job.ID, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if s.changes[id] != told+1 {
		t.Error("classes are not told")
	}
	for range 2 {
		if err := validate(`{"a":1}`); err != nil {
			t.Error(err)
		}
	}
	if job := s.poll(ann); job != nil {
		t.Errorf("it is judged again: %+v", job)
	}
	if err := validate(`{"b":1}`); !isPending(err) {
		t.Fatal(err)
	}
	if err := s.Finish(ann, s.mustTake(ann).ID, []byte(`{"faults": [{"file": "parameters", "reason": "unknown field"}]}`)); err != nil {
		t.Fatal(err)
	}
	if err := validate(`{"b":1}`); !provisioner.IsInputError(err) {
		t.Errorf("got %v", err)
	}
	// Another process may judge otherwise.
	s.pass(grace + time.Second)
	if err := validate(`{"b":1}`); !isNobody(err) {
		t.Errorf("got %v", err)
	}
	s.poll(ann)
	if err := validate(`{"b":1}`); !isPending(err) {
		t.Errorf("got %v", err)
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	for i := range 5 {
		_, _ = s.render(request("many", fmt.Sprint("app-", i), ""))
	}
	_, _ = s.render(request("few", "app", ""))
	if first, second := s.mustTake(ann), s.mustTake(ann); first.Instance.Namespace != "many" || second.Instance.Namespace != "few" {
		t.Errorf("jobs of %s and %s are given first", first.Instance.Namespace, second.Instance.Namespace)
	}
}

func TestARenderingThatTakesTooLongIsEnded(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	req := request("team", "web", "")
	_, _ = s.render(req)
	job := s.mustTake(ann)
	for range longest/lease + 1 {
		s.pass(lease - time.Second)
		_ = s.Renew(ann, job.ID)
	}
	s.passServed(lease)
	if _, err := s.render(req); err == nil || !strings.Contains(err.Error(), "did not finish within 5m0s") {
		t.Errorf("got %v", err)
	}
	if err := s.Renew(ann, job.ID); !isGone(err) {
		t.Errorf("got %v", err)
	}
}

func TestTheEndSendsPollersAway(t *testing.T) {
	b := New(Options{Log: logr.Discard()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		_ = b.Start(ctx)
		close(ended)
	}()
	answered := make(chan error)
	go func() {
		_, err := b.Take(t.Context(), ann)
		answered <- err
	}()
	cancel()
	if err := <-answered; !errors.As(err, new(*StoppingError)) {
		t.Errorf("got %v", err)
	}
	<-ended
	if _, err := b.Take(t.Context(), ann); !errors.As(err, new(*StoppingError)) {
		t.Errorf("got %v", err)
	}
}

// What was moved has the same content, and may render otherwise.
func TestOtherOriginsAreAnotherQuestion(t *testing.T) {
	s := newStage(t).begun()
	s.poll(ann)
	req := request("team", "web", "")
	req.Origins = []provisioner.Origin{{Path: "app", Kind: "oci", Ref: "a.example/app@sha256:0"}}
	_, _ = s.render(req)
	first := s.mustTake(ann)
	if len(first.Origins) != 1 || first.Origins[0] != (contentv1.Origin{Path: "app", Kind: "oci", Ref: "a.example/app@sha256:0"}) {
		t.Errorf("the job has the origins %+v", first.Origins)
	}
	if err := s.Finish(ann, first.ID, []byte(configMap)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.render(req); err != nil {
		t.Fatal(err)
	}
	req.Origins = []provisioner.Origin{{Path: "app", Kind: "oci", Ref: "b.example/app@sha256:0"}}
	if _, err := s.render(req); !isPending(err) {
		t.Errorf("after a move: got %v, want that it is asked anew", err)
	}
	if again := s.mustTake(ann); again.Origins[0].Ref != "b.example/app@sha256:0" {
		t.Errorf("the job has the origins %+v", again.Origins)
	}
}
