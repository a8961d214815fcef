// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/internal/sandbox"
	"rukpak.io/rukpak/provisioner"
	"rukpak.io/rukpak/provisioner/provisionertest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Argument {
		os.Exit(sandbox.Serve(plain.New(), wild{}))
	}
	os.Exit(m.Run())
}

func newPool(t *testing.T, options sandbox.Options) *sandbox.Pool {
	pool := sandbox.New(options)
	t.Cleanup(pool.Close)
	return pool
}

func TestProvisionerInASandboxKeepsTheContract(t *testing.T) {
	content := fstest.MapFS{
		"a.yaml":     {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {n: '1'}\n")},
		"sub/b.yaml": {Data: []byte("apiVersion: example.org/v1\nkind: Number\nmetadata: {name: b}\nspec: {one: 1, half: 0.5, large: 9007199254740993}\n")},
	}
	bad := fstest.MapFS{"a.yaml": {Data: []byte("kind: ConfigMap\n")}}
	provisionertest.Run(t, provisionertest.Subject{
		Provisioner: newPool(t, sandbox.Options{}).Wrap(plain.New()),
		Good:        []provisionertest.Case{{Name: "two", Content: content}},
		Bad:         []provisionertest.Case{{Name: "no version", Content: bad, File: "a.yaml"}},
	})
}

func TestSandboxRendersWhatIsRenderedWithoutIt(t *testing.T) {
	content := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: example.org/v1\nkind: Number\nmetadata: {name: b}\nspec: {one: 1, half: 0.5, large: 9007199254740993, list: [{a: null}]}\n")}}
	req := provisioner.Request{Instance: types.NamespacedName{Namespace: "n", Name: "i"}, Content: content}
	want, err := plain.New().Render(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := newPool(t, sandbox.Options{}).Wrap(plain.New()).Render(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
}

// wild does what the configuration names.
type wild struct{}

func (wild) ID() string { return "wild.rukpak.io" }

func (wild) Validate(_ context.Context, content fs.FS, parameters json.RawMessage) error {
	if string(parameters) == `"refused"` && content != nil {
		return &provisioner.InputError{File: "a", Reason: "is of another kind"}
	}
	return nil
}

var kept [][]byte

func (wild) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	var do string
	if err := json.Unmarshal(req.Config, &do); err != nil {
		return provisioner.Result{}, err
	}
	text := ""
	switch do {
	case "loop":
		for i := 0; ; i++ {
			if i%1_000_000_000 == 999_999_999 {
				text += "x"
			}
		}
	case "allocate":
		for {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 1
			}
			kept = append(kept, block)
		}
	case "recurse":
		text = recurse(0)
	case "exit":
		os.Exit(3)
	case "panic":
		panic("not today")
	case "sleep":
		time.Sleep(time.Hour)
	case "print":
		fmt.Println("this is not a message")
	case "http":
		_, err := http.Get("http://127.0.0.1:1/") //nolint:noctx,bodyclose // it fails
		text = fmt.Sprint(err)
	case "dial":
		var config string
		_ = json.Unmarshal(req.Parameters, &config)
		connection, err := net.Dial("tcp", config) //nolint:noctx // it is to fail
		if err == nil {
			_ = connection.Close()
		}
		text = fmt.Sprint(err)
	case "env":
		text = strings.Join(os.Environ(), " ")
	case "say":
		fmt.Fprintln(os.Stderr, "fatal: stack exceeds all, out of memory")
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "kill parent":
		text = fmt.Sprint(syscall.Kill(os.Getppid(), 0))
	case "read parent":
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
		text = fmt.Sprint(err)
	case "request":
		encoded, _ := json.Marshal(req)
		text = string(encoded)
	case "get":
		object, err := req.Reader.Get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, types.NamespacedName{Namespace: "n", Name: "there"})
		if err != nil {
			return provisioner.Result{}, err
		}
		_, err = req.Reader.Get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, types.NamespacedName{Namespace: "n", Name: "absent"})
		text = object.GetName() + " " + fmt.Sprint(apierrors.IsNotFound(err))
	}
	return provisioner.Result{Nothing: true, Notes: text}, nil
}

func recurse(n int) string {
	if n < 0 { // not before memory has ended
		return ""
	}
	return fmt.Sprint(n) + recurse(n+1)
}

func do(t *testing.T, pool *sandbox.Pool, what string, parameters string, reader provisioner.Reader) (string, error) {
	t.Helper()
	result, err := pool.Wrap(wild{}).Render(t.Context(), provisioner.Request{
		Content: fstest.MapFS{}, Config: json.RawMessage(`"` + what + `"`), Parameters: json.RawMessage(parameters), Reader: reader,
	})
	return result.Notes, err
}

func TestContentThatTakesTooMuchIsRefusedAndTheNextIsRendered(t *testing.T) {
	for what, c := range map[string]struct {
		input bool
		want  string
	}{
		"loop":     {true, "more than 1s of a processor"},
		"allocate": {true, "more than 256 MiB of memory"},
		"recurse":  {true, "a template that calls itself"},
		"exit":     {false, "exit status 3"},
		"panic":    {false, "not today"},
		"sleep":    {false, "longer than 4s"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, sandbox.Options{Processes: 1, Memory: 256 << 20, CPU: time.Second, Patience: 4 * time.Second})
			if what != "sleep" {
				pool = newPool(t, sandbox.Options{Processes: 1, Memory: 256 << 20, CPU: time.Second, Patience: 5 * time.Minute})
			}
			_, err := do(t, pool, what, "", nil)
			if err == nil || provisioner.IsInputError(err) != c.input || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want bad input: %t, %q", err, c.input, c.want)
			}
			if _, err := do(t, pool, "nothing", "", nil); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	}
}

func TestWhoWaitsNoLongerEndsTheProcess(t *testing.T) {
	pool := newPool(t, sandbox.Options{Processes: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := pool.Wrap(wild{}).Render(ctx, provisioner.Request{Content: fstest.MapFS{}, Config: json.RawMessage(`"sleep"`)})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := do(t, pool, "nothing", "", nil); err != nil {
		t.Error(err)
	}
}

func TestNothingCanBeReachedFromASandbox(t *testing.T) {
	pool := newPool(t, sandbox.Options{})
	if got, err := do(t, pool, "http", "", nil); err != nil || !strings.Contains(got, "may use the network") {
		t.Errorf("http: %q, %v", got, err)
	}
	if got, err := do(t, pool, "env", "", nil); err != nil || strings.Contains(got, "PATH=") || strings.Contains(got, "KUBERNETES") {
		t.Errorf("environment: %q, %v", got, err)
	}
	if got, err := do(t, pool, "print", "", nil); err != nil || got != "" {
		t.Errorf("print: %q, %v", got, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // for this test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	got, err := do(t, pool, "dial", `"`+listener.Addr().String()+`"`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got == "<nil>" {
		t.Skip("this kernel lets nobody have a network of his own, and has no Landlock: a connection by address is possible here")
	}
}

// TestWhatContentSaidDoesNotExplainTheEndOfAnother has one process that is ended from outside while it renders innocent content.
func TestWhatContentSaidDoesNotExplainTheEndOfAnother(t *testing.T) {
	pool := newPool(t, sandbox.Options{Processes: 1})
	if _, err := do(t, pool, "say", "", nil); err != nil {
		t.Fatal(err)
	}
	_, err := do(t, pool, "kill", "", nil)
	if err == nil || provisioner.IsInputError(err) || strings.Contains(err.Error(), "stack exceeds") {
		t.Errorf("got %v, want an error that is tried again and tells nothing of other content", err)
	}
}

// TestAllOfARequestArrives fails when a field of provisioner.Request is forgotten.
func TestAllOfARequestArrives(t *testing.T) {
	req := provisioner.Request{
		Instance: types.NamespacedName{Namespace: "n", Name: "i"}, Parameters: json.RawMessage(`{"p":1}`), Config: json.RawMessage(`"request"`),
		Revision: 7, Upgrade: true, Origins: []provisioner.Origin{{Path: "a", Kind: "oci", Ref: "b"}},
		Cluster: provisioner.Cluster{Version: "v1", APIs: []string{"v1"}},
	}
	want, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	for value, i := reflect.ValueOf(req), 0; i < value.NumField(); i++ {
		if name := value.Type().Field(i).Name; value.Field(i).IsZero() && name != "Content" && name != "Reader" {
			t.Errorf("this test does not set %s", name)
		}
	}
	req.Content = fstest.MapFS{}
	result, err := newPool(t, sandbox.Options{}).Wrap(wild{}).Render(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.Replace(result.Notes, `"Content":{}`, `"Content":null`, 1)); diff != "" {
		t.Error(diff)
	}
}

type known struct{}

func (known) Get(_ context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	if name.Name != "there" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind.Kind}, name.Name)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"kind": kind.Kind}}
	object.SetName(name.Name)
	return object, nil
}

func (known) List(context.Context, schema.GroupVersionKind, string) ([]*unstructured.Unstructured, error) {
	return nil, errors.New("not here")
}

func TestClusterIsReadByTheManager(t *testing.T) {
	if got, err := do(t, newPool(t, sandbox.Options{}), "get", "", known{}); err != nil || got != "there true" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	pool := newPool(t, sandbox.Options{Processes: 2})
	content := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			if i%10 == 9 {
				_, _ = do(t, pool, "exit", "", nil)
				return
			}
			if _, err := pool.Wrap(plain.New()).Render(t.Context(), provisioner.Request{Content: content}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

func TestContentIsCheckedByTheJobThatRendersIt(t *testing.T) {
	one := newPool(t, sandbox.Options{}).Wrap(wild{})
	req := provisioner.Request{Content: fstest.MapFS{"a": {}}, Config: []byte(`"request"`), Parameters: []byte(`"refused"`)}
	if err := one.Validate(t.Context(), req.Content, req.Parameters); err != nil {
		t.Errorf("before that: %v", err)
	}
	if _, err := one.Render(t.Context(), req); !provisioner.IsInputError(err) || err.Error() != "a: is of another kind" {
		t.Errorf("got %v", err)
	}
}
