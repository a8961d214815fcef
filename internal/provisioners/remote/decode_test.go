// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/provisioner"
)

// Whatever a worker sends, the instance gets an answer that says whose fault it is, and is none of its input.
func TestResultsThatCannotBeUsedAreRefused(t *testing.T) {
	object := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
	}
	for name, test := range map[string]struct{ body, want string }{
		"no JSON":                  {`hello`, "no result in JSON"},
		"nothing":                  {``, "no result in JSON"},
		"cut off":                  {configMap[:40], "no result in JSON"},
		"an unknown field":         {`{"nothing": true, "weights": {}}`, `unknown field "weights"`},
		"something behind it":      {configMap + `{}`, "something behind it"},
		"no object":                {`{}`, "there are 0 objects"},
		"an empty list":            {`{"phases": []}`, "there are 0 objects"},
		"a null object":            {`{"phases": [{"name": "a", "objects": [null]}]}`, "is nil"},
		"an object without kind":   {`{"phases": [{"name": "a", "objects": [{"metadata": {"name": "a"}}]}]}`, "Kind"},
		"an object without name":   {`{"phases": [{"name": "a", "objects": [{"apiVersion":"v1","kind":"ConfigMap"}]}]}`, "there is no metadata.name"},
		"an object twice":          {`{"phases": [{"name": "a", "objects": [` + object("a") + `,` + object("a") + `]}]}`, "is there twice"},
		"a name that is a path":    {`{"phases": [{"name": "a", "objects": [` + object("../a") + `]}]}`, `"../a"`},
		"owners":                   {`{"phases": [{"name": "a", "objects": [{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"uid":"1"}]}}]}]}`, "ownerReferences"},
		"no moment":                {`{"phases": [{"name": "a", "on": ["Never"], "objects": [` + object("a") + `]}]}`, `"Never" is no moment`},
		"objects and faults":       {`{"faults": [{"reason": "no"}], "phases": [{"name": "a", "objects": [` + object("a") + `]}]}`, "several of"},
		"an error and handed back": {`{"error": "a", "handedBack": true}`, "several of"},
		"a fault without reason":   {`{"faults": [{"file": "a"}]}`, "gives no reason"},
		"long notes":               {`{"nothing": true, "notes": "` + strings.Repeat("a", maxText+1) + `"}`, "notes have more than"},
		"many values":              {`{"phases": [{"name": "a", "objects": [{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":[` + strings.Repeat("[],", maxValues/2) + `1]}]}]}`, "more than 3145728 values"},
		"many objects":             {`{"phases": [{"name": "a", "objects": [` + strings.Repeat(object("a")+",", maxObjects) + object("a") + `]}]}`, "50001 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t).begun()
			s.poll(ann)
			req := request("team", "web", "")
			_, _ = s.render(req)
			err := s.Finish(ann, s.mustTake(ann).ID, []byte(test.body))
			if !errors.As(err, new(*ContractError)) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the worker is told %v, want %q", err, test.want)
			}
			_, err = s.render(req)
			if provisioner.IsInputError(err) || !errors.As(err, new(*ContractError)) || !strings.Contains(err.Error(), id) {
				t.Errorf("the instance is told %v", err)
			}
		})
	}
	t.Run("objects for a job to validate", func(t *testing.T) {
		s := newStage(t).begun()
		s.poll(ann)
		_ = s.Provisioner(id).Validate(t.Context(), nil, nil)
		if err := s.Finish(ann, s.mustTake(ann).ID, []byte(configMap)); !errors.As(err, new(*ContractError)) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one that was too large to read", func(t *testing.T) {
		s := newStage(t).begun()
		s.poll(ann)
		req := request("team", "web", "")
		_, _ = s.render(req)
		if err := s.Fail(ann, s.mustTake(ann).ID, errors.New("it is larger than 32 MiB")); !errors.As(err, new(*ContractError)) {
			t.Errorf("got %v", err)
		}
		if _, err := s.render(req); err == nil || !strings.Contains(err.Error(), "32 MiB") {
			t.Errorf("got %v", err)
		}
	})
}

func TestManyFaultsAreCut(t *testing.T) {
	var said contentv1.Result
	for i := range 3 * maxFaults {
		said.Faults = append(said.Faults, contentv1.Fault{File: fmt.Sprintf("%04d", i), Reason: "no"})
	}
	body, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(body)
	if err != nil || len(provisioner.InputErrors(got.err)) != maxFaults+1 || !strings.Contains(got.err.Error(), "200 more") {
		t.Errorf("got %d faults, %v", len(provisioner.InputErrors(got.err)), err)
	}
}

func TestResultsThatNobodyComesForAreBounded(t *testing.T) {
	s := newStage(t).begun()
	s.options.Log = logr.Discard()
	s.poll(ann)
	s.held = maxHeld
	_, _ = s.render(request("team", "web", ""))
	job := s.mustTake(ann)
	if err := s.Finish(ann, job.ID, []byte(configMap)); !errors.As(err, new(*BusyError)) {
		t.Fatalf("got %v", err)
	}
	s.held = 0
	if err := s.Finish(ann, job.ID, []byte(configMap)); err != nil {
		t.Errorf("sent again: %v", err)
	}
	s.pass(keepResult + 1)
	if len(s.errands) != 0 || s.held != 0 {
		t.Errorf("%d errands and %d bytes are kept", len(s.errands), s.held)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(configMap))
	f.Add([]byte(`{"faults": [{"file": "a", "line": 1, "reason": "no"}]}`))
	f.Add([]byte(`{"phases": [{"name": "a", "on": ["Install"], "objects": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": null, "namespace": null}, "status": 1, "x": [1, 2.5, null]}]}], "varies": ["a"], "configSchema": {}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(body)
		if err != nil {
			return
		}
		if len(got.result.Phases) > 0 {
			if err := got.result.Check(); err != nil {
				t.Errorf("what was taken breaks the contract: %v", err)
			}
			for _, phase := range got.result.Phases {
				for _, object := range phase.Objects {
					object.DeepCopy() // panics on what is no plain JSON
				}
			}
		}
	})
}
