// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/provisioner"
)

// counting is a client that counts by name what is really made, and dies with m, if there is one.
func (s *stage) counting(made map[string]int, m *mortal) client.Client {
	inner, err := client.NewWithWatch(s.env.Config(), client.Options{})
	if err != nil {
		s.Fatal(err)
	}
	alive := func(do func() error) error {
		if m == nil {
			return do()
		}
		return m.write(do)
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if m != nil && m.left <= 0 {
				return errKilled
			}
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return alive(func() error {
				err := c.Create(ctx, object, options...)
				if err == nil {
					made[object.GetName()]++
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return alive(func() error { return c.Delete(ctx, object, options...) })
		},
	})
}

// mortal is a manager that is killed after so many writes, to the API server or the diary. What it wrote last was done or
// not, but it never hears of it.
type mortal struct {
	mu        sync.Mutex
	left      int
	doneAtEnd bool
}

var errKilled = context.Canceled

func (m *mortal) write(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left > 0 {
		return do()
	}
	if m.left == 0 && m.doneAtEnd {
		_ = do() // nobody hears of it
	}
	return errKilled
}

func TestTasksRunOnceThoughTheManagerIsKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	for _, doneAtEnd := range []bool{false, true} {
		for left := 1; ; left++ {
			name := fmt.Sprintf("%d writes, the last done %v", left, doneAtEnd)
			s := newStage(t)
			s.account()
			survived := s.killedAfter(name, &mortal{left: left, doneAtEnd: doneAtEnd})
			if survived {
				t.Logf("%s: it was over before", name)
				break
			}
		}
	}
}

// killedAfter runs tasks by a manager that is killed and by one after it, and checks that each was made once.
func (s *stage) killedAfter(name string, m *mortal) (survived bool) {
	s.Helper()
	one, two := pod(s, "one", "Succeeded"), pod(s, "two", "Succeeded")
	phases := []provisioner.Phase{
		tasks("a", configMap(s, "helper", "{}"), one), tasks("b", two),
		state("configuration", configMap(s, "config", "{a: b}")), tasks("c", configMap(s, "last", "{}")),
	}
	d := s.begin(provisioner.OnInstall, "run-1")
	made := map[string]int{}
	c := s.counting(made, m)
	steps := func() activate.Result {
		var result activate.Result
		for range 12 {
			result = s.engine.Apply(s.Context(), c, s.owner, phases, s.options)
			for _, task := range objects(one, two) { // as fast as a kubelet
				if !s.gone(task) && s.live(task).GetDeletionTimestamp() == nil && field(s.live(task), "status.phase") == "Pending" {
					s.end(task, corev1.PodSucceeded, "")
				}
			}
			if result.Complete || m != nil && m.left <= 0 {
				break
			}
		}
		return result
	}
	note := s.options.Tasks.Note
	s.options.Tasks.Note = func(ctx context.Context, reports []activate.TaskReport) error {
		return m.write(func() error { return note(ctx, reports) })
	}
	steps()
	survived = m.left > 0
	m = nil
	s.begin(provisioner.OnInstall, "run-1")
	s.options.Tasks = d.tasks(provisioner.OnInstall, "run-1")
	c = s.counting(made, nil)
	if result := steps(); !result.Complete {
		s.Errorf("%s: the manager after it: %s", name, result)
	}
	for _, task := range []string{"helper", "one", "two", "last", "config"} {
		if made[task] != 1 {
			s.Errorf("%s: %s was made %d times", name, task, made[task])
		}
	}
	if !s.gone(one) || !s.gone(two) {
		s.Errorf("%s: objects of tasks that succeeded are still there", name)
	}
	return survived
}
