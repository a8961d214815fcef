// SPDX-License-Identifier: Apache-2.0

package provisionertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

// simple makes a ConfigMap of every file, and breaks the contract in one way.
type simple struct {
	breaks string
	calls  *atomic.Int64
	kept   *atomic.Pointer[provisioner.Result]
}

func (s simple) ID() string {
	if s.breaks == "ID" {
		return "Simple!"
	}
	return "simple.example.com"
}

func (s simple) Validate(context.Context, fs.FS, json.RawMessage) error { return nil }

func (s simple) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	if err := ctx.Err(); err != nil && s.breaks != "Cancelled" {
		return provisioner.Result{}, err
	}
	if kept := s.kept.Load(); kept != nil && s.breaks == "Keeps" {
		return *kept, nil
	}
	names, err := fs.Glob(req.Content, "*")
	if err != nil {
		return provisioner.Result{}, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		data, err := fs.ReadFile(req.Content, name)
		switch {
		case err != nil && s.breaks == "Blames":
			return provisioner.Result{}, &provisioner.InputError{File: name, Reason: err.Error()}
		case err != nil:
			return provisioner.Result{}, err
		case strings.HasPrefix(string(data), "bad"):
			return provisioner.Result{}, s.refusal(name)
		case strings.Contains(string(data), "good") == false && s.breaks == "Panics":
			panic("I had not thought of that")
		}
		objects = append(objects, s.object(name))
	}
	if len(objects) == 0 && s.breaks != "Empty" {
		return provisioner.Result{}, &provisioner.InputError{Reason: "there is no file"}
	}
	if s.breaks == "Twice" {
		objects = append(objects, objects...)
	}
	if s.breaks == "Network" {
		response, err := http.Get("http://example.invalid/")
		if err == nil {
			_ = response.Body.Close()
		}
	}
	result := provisioner.Result{Phases: provisioner.ByKind(objects)}
	s.kept.Store(&result)
	return result, nil
}

func (s simple) refusal(name string) error {
	switch s.breaks {
	case "Plain":
		return fmt.Errorf("%s is bad", name)
	case "NoFile":
		return &provisioner.InputError{Reason: "something is bad"}
	}
	return &provisioner.InputError{File: name, Reason: "is bad"}
}

func (s simple) object(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	switch s.breaks {
	case "Impure":
		object.Object["call"] = s.calls.Add(1)
	case "Int":
		object.Object["number"] = 5
	case "NoName":
		object.SetName("")
	}
	return object
}

const breaksEnv = "PROVISIONERTEST_BREAKS"

func TestSubject(t *testing.T) {
	breaks := os.Getenv(breaksEnv)
	Run(t, Subject{
		Provisioner: simple{breaks, &atomic.Int64{}, &atomic.Pointer[provisioner.Result]{}},
		Good:        []Case{{Name: "Two", Content: fstest.MapFS{"a": {Data: []byte("good")}, "b": {Data: []byte("good")}}}},
		Bad:         []Case{{Name: "One", Content: fstest.MapFS{"a": {Data: []byte("good")}, "b": {Data: []byte("bad")}}, File: "b"}},
	})
}

// TestBreachesAreFound runs the suite on provisioners that break the contract, each in a process of its own.
func TestBreachesAreFound(t *testing.T) {
	if os.Getenv(breaksEnv) != "" {
		t.Skip("this is such a process")
	}
	for breaks, want := range map[string]string{
		"ID": "is no DNS name", "Impure": "renders to other bytes", "Keeps": "renders to other bytes", "Cancelled": "wraps the context's",
		"Blames": "no bad input", "Panics": "I had not thought of that", "Empty": "renders to", "Twice": "is there twice", "Plain": "which is no bad input",
		"NoFile": "names file", "Int": "no value of JSON", "Network": "sends a request", "NoName": "there is no metadata.name",
	} {
		t.Run(breaks, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSubject$") //nolint:gosec // this very program
			command.Env = append(os.Environ(), breaksEnv+"="+breaks)
			out, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("got %v, want a failure with %q:\n%s", err, want, out)
			}
		})
	}
}
