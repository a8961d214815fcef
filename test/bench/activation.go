// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/identity"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

// parallelism of both sides; it is the engine's default.
const parallelism = 16

// activation compares the engine, which acts as a service account, with a loop that sends the same creates as the
// administrator, whom the API server need not ask about. No controllers run, so nothing else takes the cores.
func activation(ctx context.Context, b *bench) (rows []Row, err error) {
	env, err := testenv.Start(ctx, testenv.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = env.Stop() }()
	a, err := newActivator(ctx, env)
	if err != nil {
		return nil, err
	}
	objects := mixOf(b.scaled(1000))
	if err := a.warmUp(ctx); err != nil {
		return nil, err
	}
	rounds, err := sides(b.rounds,
		func(round int) (float64, error) { return a.engine(ctx, fmt.Sprintf("engine-%d", round), objects) },
		func(round int) (float64, error) { return a.loop(ctx, fmt.Sprintf("loop-%d", round), objects, a.bare) },
		func(round int, r Round) {
			b.say("   round %d of %d: engine %.2f s, bare loop %.2f s, ratio %.3f", round+1, b.rounds, r.Measured, r.Baseline, r.Measured/r.Baseline)
		})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("the engine creates %d objects", b.scaled(1000))
	row := compared(what, "s", "bare client-go loop", atMost(1.25), rounds)
	row.Details = map[string]any{"parallelism": parallelism, "readsOfLastRound": a.reads, "writesOfLastRound": a.writes}
	return []Row{row}, nil
}

// activator has a client for each side.
type activator struct {
	admin         client.Client
	accounts      *identity.Clients
	bare          dynamic.Interface
	mapper        meta.RESTMapper
	reads, writes int
}

func newActivator(ctx context.Context, env *testenv.Env) (*activator, error) {
	config := env.Config()
	config.WarningHandler = rest.NoWarnings{}
	admin, err := client.New(config, client.Options{Scheme: kinds()})
	if err != nil {
		return nil, err
	}
	accounts, err := identity.NewClients(config, kinds(), admin.RESTMapper())
	if err != nil {
		return nil, err
	}
	bare, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := &activator{admin: admin, accounts: accounts, bare: bare, mapper: admin.RESTMapper()}
	return a, admin.Create(ctx, everything("bench-installers", "system:serviceaccounts"))
}

// warmUp opens connections and looks kinds up.
func (a *activator) warmUp(ctx context.Context) error {
	if _, err := a.engine(ctx, "warm-engine", mixOf(50)); err != nil {
		return err
	}
	_, err := a.loop(ctx, "warm-loop", mixOf(50), a.bare)
	return err
}

func (a *activator) namespace(ctx context.Context, name string) error {
	runtime.GC() // each side begins with what it makes itself
	return a.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func owner(namespace string) ownership.Owner {
	return ownership.Owner{UID: types.UID("uid-" + namespace), Namespace: namespace, Name: "bench"}
}

// engine activates objects in a new namespace and returns the seconds that it took.
func (a *activator) engine(ctx context.Context, namespace string, objects mix) (float64, error) {
	if err := a.namespace(ctx, namespace); err != nil {
		return 0, err
	}
	actor, err := a.accounts.Client(namespace, "default")
	if err != nil {
		return 0, err
	}
	phases := provisioner.ByKind(objects.objects("app", 0, 0))
	engine := activate.New(activate.Config{Observed: nothing{}, Parallelism: parallelism})
	begun := time.Now()
	result := engine.Apply(ctx, actor, owner(namespace), phases, activate.Options{DefaultNamespace: namespace})
	took := time.Since(begun).Seconds()
	if !result.Complete || result.Count(activate.Created) != len(result.Objects) {
		return 0, fmt.Errorf("the engine did not create all objects: %s", result)
	}
	a.reads, a.writes = result.Reads, result.Writes
	return took, nil
}

// nothing is the cache of a watch that has not seen anything yet.
type nothing struct{}

func (nothing) Get(ownership.ID) (*metav1.PartialObjectMetadata, bool) { return nil, false }

// loop sends the same creates, byte for byte, and returns the seconds that it took.
func (a *activator) loop(ctx context.Context, namespace string, objects mix, bare dynamic.Interface) (float64, error) {
	if err := a.namespace(ctx, namespace); err != nil {
		return 0, err
	}
	creates := make([]func(context.Context) error, 0, 1000)
	for _, object := range objects.objects("app", 0, 0) {
		mapping, err := a.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			return 0, err
		}
		desired := activate.Desired(object, owner(namespace), mapping.Scope.Name(), namespace)
		creates = append(creates, create(bare.Resource(mapping.Resource).Namespace(namespace), desired))
	}
	begun := time.Now()
	err := inParallel(ctx, parallelism, creates)
	return time.Since(begun).Seconds(), err
}

// sameOptions are those of the engine.
var sameOptions = metav1.CreateOptions{FieldManager: ownership.FieldManager, FieldValidation: metav1.FieldValidationStrict}

func create(resource dynamic.ResourceInterface, object *unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := resource.Create(ctx, object, sameOptions)
		return err
	}
}

// inParallel does all, so many at a time, and returns the first error; what has not begun by then is left out.
func inParallel(ctx context.Context, workers int, all []func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(all)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				if err := all[i](ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
