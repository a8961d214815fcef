// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// many are objects of several phases.
func many(t testing.TB, n int) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for i := range n {
		all = append(all, configMap(t, fmt.Sprintf("config-%d", i), "{a: b}"), service(t, fmt.Sprintf("service-%d", i)))
	}
	return append(all, deployment(t, "web"))
}

// Not parallel, as the API server is gone for everybody.
func TestAPIServerThatRestartsIsATransientFailure(t *testing.T) {
	s := newStage(t)
	s.engine = activate.New(activate.Config{Observed: fresh{s.admin}, Parallelism: 4})
	all := many(t, 300)
	done := make(chan activate.Result)
	go func() { done <- s.engine.Apply(t.Context(), s.admin, s.owner, provisioner.ByKind(all), s.options) }()
	time.Sleep(300 * time.Millisecond)
	s.env.KillAPIServer()
	result := <-done
	if result.Complete || !result.Transient() || result.Reason() != activate.TransientError || result.Skipped == 0 {
		t.Errorf("while it is gone: got %s", result)
	}
	t.Logf("while it is gone: %.300s", result)
	if err := s.env.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mustApply(all...)
	for _, object := range all {
		s.live(object)
	}
	if again := s.mustApply(all...); again.Writes != 0 {
		t.Errorf("again: got %s with %d writes", again, again.Writes)
	}
}

func TestCallCutOffAnywhereCanBeMadeAgain(t *testing.T) {
	t.Parallel()
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			old := many(t, 10)
			now := objects()
			for i, object := range old[:len(old)-4] { // the last four are dropped, the rest changed
				switch object.GetKind() {
				case "ConfigMap":
					now = append(now, set(object, map[string]any{"c": fmt.Sprint(i)}, "data"))
				default:
					now = append(now, object)
				}
			}
			s.cutOff(func(ctx context.Context) activate.Result {
				return s.engine.Apply(ctx, s.admin, s.owner, provisioner.ByKind(old), s.options)
			})
			s.earlier(old...)
			s.cutOff(func(ctx context.Context) activate.Result {
				return s.engine.Apply(ctx, s.admin, s.owner, provisioner.ByKind(now), s.options)
			})
			s.options.Keep = func(id ownership.ID) bool {
				for _, object := range now {
					if object.GetKind() == id.Kind && object.GetName() == id.Name {
						return true
					}
				}
				return false
			}
			s.cutOff(func(ctx context.Context) activate.Result {
				return s.engine.Prune(ctx, s.admin, s.owner, provisioner.ByKind(old), s.options)
			})
			for _, object := range now {
				live := s.live(object)
				if want := field(object, "data.c"); object.GetKind() == "ConfigMap" && (field(live, "data.c") != want || field(live, "data.a") != nil) {
					t.Errorf("%s: got %v", object.GetName(), live.Object["data"])
				}
			}
			for _, object := range old[len(old)-4:] {
				if !s.gone(object) {
					t.Errorf("%s %s is still there", object.GetKind(), object.GetName())
				}
			}
		})
	}
}

// cutOff makes calls that end after a moment, each a little later than the one before, and forgets all between them,
// until one is complete.
func (s *stage) cutOff(call func(context.Context) activate.Result) {
	s.Helper()
	for after := 2 * time.Millisecond; ; after = after*3/2 + rand.N(2*time.Millisecond) {
		s.engine = activate.New(activate.Config{})
		ctx, cancel := context.WithTimeout(s.Context(), after)
		result := call(ctx)
		cancel()
		if result.Complete {
			return
		}
		if !result.Transient() && len(result.Failed()) > 0 || after > time.Minute {
			s.Fatalf("got %s", result)
		}
	}
}

func TestTwoEnginesForOneOwnerEndInOneState(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	all := many(t, 15)
	for round := range 3 {
		for _, object := range all {
			if object.GetKind() == "ConfigMap" {
				object.Object["data"] = map[string]any{"round": fmt.Sprint(round)}
			}
		}
		var engines sync.WaitGroup
		var created atomic.Int64
		for range 3 {
			engines.Go(func() {
				engine := activate.New(activate.Config{})
				result := engine.Apply(t.Context(), s.admin, s.owner, provisioner.ByKind(all), s.options)
				if !result.Complete {
					t.Errorf("got %s", result)
				}
				created.Add(int64(result.Count(activate.Created)))
			})
		}
		engines.Wait()
		if want := []int{len(all), 0, 0}[round]; created.Load() != int64(want) {
			t.Errorf("round %d: %d objects were created, want %d", round, created.Load(), want)
		}
	}
	s.earlier()
	if result := s.mustApply(all...); result.Count(activate.Intact) != len(all) {
		t.Errorf("got %s", result)
	}
}

func TestBusyObjectIsChangedAllTheSame(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	v1, v2 := configMap(t, "x", "{a: b, c: d}"), configMap(t, "x", "{a: b}")
	s.mustApply(v1)
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"beat":"%d"}}}`, i)
			_ = s.admin.Patch(ctx, s.inNamespace(v1), client.RawPatch(mergePatch, patch), client.FieldOwner("somebody"))
			time.Sleep(20 * time.Millisecond)
		}
	})
	s.earlier(v1)
	result := s.apply(v2) // needs the object to stay the same between two requests
	stop()
	others.Wait()
	if !result.Complete || field(s.live(v2), "data.c") != nil {
		t.Errorf("got %s", result)
	}
}

func TestObjectThatGoesAfterItWasReadIsCreated(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	v1, v2 := configMap(t, "x", "{a: b}"), configMap(t, "x", "{a: c}")
	s.mustApply(v1)
	s.earlier(v1)
	for _, replace := range []bool{false, true} { // in this order: a stranger's object would stay
		name := map[bool]string{false: "Deleted", true: "Replaced"}[replace]
		watching, err := client.NewWithWatch(s.env.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		once := true
		between := interceptor.NewClient(watching, interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if once {
					once = false
					s.delete(v1)
					if replace {
						s.stranger(v1)
					}
				}
				return c.Apply(ctx, object, options...)
			},
		})
		got := only(t, s.engine.Apply(t.Context(), between, s.owner, provisioner.ByKind(objects(v2)), s.options))
		if want := map[bool]activate.Action{false: activate.Created, true: activate.Collision}[replace]; got.Action != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		v2 = set(v2, name, "data", "a")
	}
}
