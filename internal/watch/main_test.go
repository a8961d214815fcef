// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/testenv"
)

// cluster is one API server. One test stops it, so none of those that use it runs in parallel.
var cluster testenv.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	namespaces = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
)

// bench is a watcher on the API server, with what it told.
type bench struct {
	*Watcher
	env    *testenv.Env
	client client.Client

	mu     sync.Mutex
	events []string
	next   int // of the events, the first that no expect has passed
	logs   []string
}

func newBench(t testing.TB, linger time.Duration) *bench {
	t.Helper()
	env := cluster.Env(t)
	b := &bench{env: env}
	config := env.Config()
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient(t, config))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b.client, err = client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.Watcher = New(Config{Client: reader, Mapper: mapper, Linger: linger, Log: funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.logs = append(b.logs, args)
	}, funcr.Options{})})
	b.Listen(func(event Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, text(event))
	})
	t.Cleanup(b.Stop)
	return b
}

func httpClient(t testing.TB, config *rest.Config) *http.Client {
	t.Helper()
	out, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// use lets an owner use kinds and waits until they are known.
func (b *bench) use(t testing.TB, owner ownership.Owner, kinds ...schema.GroupVersionKind) {
	t.Helper()
	if err := b.Use(owner, kinds); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Wait(ctx, owner.UID); err != nil {
		t.Fatal(err)
	}
}

// expect waits until an event has been told after the one that was expected before.
func (b *bench) expect(t *testing.T, want string) {
	t.Helper()
	eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		i := slices.Index(b.events[b.next:], want)
		if i < 0 {
			return false
		}
		b.next += i + 1
		return true
	}, func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return "no event " + want + " in:\n" + strings.Join(b.events[b.next:], "\n")
	})
}

// count tells how many events there were so far.
func (b *bench) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events)
}

// told returns the events, but for so many first ones, that contain a text.
func (b *bench) told(from int, text string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, event := range b.events[from:] {
		if strings.Contains(event, text) {
			out = append(out, event)
		}
	}
	return out
}

func (b *bench) create(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := b.client.Create(t.Context(), obj, client.FieldOwner(ownership.FieldManager)); err != nil {
		t.Fatal(err)
	}
	return obj
}

// patch merges JSON into an object as somebody else.
func (b *bench) patch(t *testing.T, obj *unstructured.Unstructured, text string) {
	t.Helper()
	if err := b.client.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(text)), client.FieldOwner("stranger")); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) delete(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	if err := b.client.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func object(gvk schema.GroupVersionKind, namespace, name string, owner *ownership.Owner) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	if gvk == configMaps {
		obj.Object["data"] = map[string]any{"a": "1"}
	}
	if owner != nil {
		obj = ownership.Mark(obj, *owner)
	}
	return obj
}

func eventually(t *testing.T, done func() bool, otherwise func() string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal(otherwise())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// watching counts the goroutines that run code of this package, but for tests.
func watching() int {
	buffer := make([]byte, 1<<22)
	count := 0
	for _, stack := range strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(stack, "internal/watch.(*kind)") || strings.Contains(stack, "cache.(*Reflector)") {
			count++
		}
	}
	return count
}
