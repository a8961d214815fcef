// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is the one environment of a test package, started by the first test that needs it:
//
//	var cluster = testenv.Shared{Options: testenv.Options{Controllers: true}, CRDs: true}
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		env := cluster.Env(t)
//		namespace := env.NewNamespace(t)
//
// Tests share it and run in parallel, so each works in a namespace of its own, and a test that stops the API server
// belongs in a package of its own or must not be parallel.
type Shared struct {
	Options Options
	CRDs    bool                                      // install RukPak's CRDs
	Setup   func(ctx context.Context, env *Env) error // further preparation, once

	once sync.Once
	env  *Env
	err  error
}

// Main runs the tests, stops the environment if any test started it, and returns the exit code.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.env != nil {
		if err := s.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "testenv:", err)
			return max(code, 1)
		}
	}
	return code
}

// Env returns the environment. It skips the test in short mode, and fails it where the environment does not start
// or this machine has no control plane yet (`make controlplane` brings it).
func (s *Shared) Env(t testing.TB) *Env {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short does without")
	}
	s.once.Do(s.start)
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.env
}

func (s *Shared) start() {
	ctx := context.Background()
	options := s.Options
	options.NoBuild = true // a build would take longer than most tests may
	if s.env, s.err = Start(ctx, options); s.err != nil {
		return
	}
	if s.CRDs {
		if s.err = s.env.InstallCRDs(ctx); s.err != nil {
			return
		}
	}
	if s.Setup != nil {
		s.err = s.Setup(ctx, s.env)
	}
}
