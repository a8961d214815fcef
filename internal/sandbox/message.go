// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"rukpak.io/rukpak/provisioner"
)

// What is said between the manager and a process, by encoding/gob: a job, then any number of questions and answers, then
// what came of it.

// maxMessage bounds one message, in bytes. The largest is a result; manifests are at most 128 MiB.
const maxMessage = 256 << 20

// job is what a process has to do.
type job struct {
	ID      string // of the provisioner
	Request request
	CPU     time.Duration
}

// request is a provisioner.Request without what cannot be sent.
type request struct {
	Instance           types.NamespacedName
	Parameters, Config []byte
	Revision           int64
	Upgrade            bool
	Origins            []provisioner.Origin
	Cluster            provisioner.Cluster
	Reads              bool
}

// toProcess is what the manager says: one of both.
type toProcess struct {
	Job    *job
	Answer *answer
}

// fromProcess is what a process says: one of both.
type fromProcess struct {
	Ask  *question
	Done *outcome
}

// operation is what a question asks for.
type operation string

const (
	opStat     operation = "stat"
	opReadDir  operation = "readdir"
	opReadFile operation = "readfile"
	opReadLink operation = "readlink"
	opGet      operation = "get"
	opList     operation = "list"
)

// question is about a file, or about objects.
type question struct {
	Do                   operation
	Path                 string
	Group, Version, Kind string
	Name                 types.NamespacedName
}

type answer struct {
	Data    []byte // of a file, or objects as JSON
	Entries []entry
	Failed  *failure
}

// entry is what fs.FileInfo tells.
type entry struct {
	Name string
	Size int64
	Mode fs.FileMode
}

// failure is an error that came from the other side. It keeps what provisioners tell apart.
type failure struct {
	Text     string
	NotExist bool
	Status   []byte // of the API server, as JSON
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error(), NotExist: errors.Is(err, fs.ErrNotExist)}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		f.Status, _ = json.Marshal(status.Status()) // without it the text remains
	}
	return f
}

// Error is the text of the other side.
func (f *failure) Error() string { return f.Text }

// Is tells that a file does not exist.
func (f *failure) Is(target error) bool { return f.NotExist && target == fs.ErrNotExist }

// asError is nil, the API server's error, or the failure itself.
func (f *failure) asError() error {
	if f == nil {
		return nil
	}
	var status metav1.Status
	if len(f.Status) > 0 && json.Unmarshal(f.Status, &status) == nil {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return f
}

// outcome is what came of a job.
type outcome struct {
	Phases       []phase
	Nothing      bool
	Notes        string
	ConfigSchema []byte
	Varies       []string

	Faults []provisioner.InputError
	Other  string // of an error that is no bad input; "" if there is none
	Spent  bool   // the process has grown and is not to be used again
}

type phase struct {
	Name    string
	On      []provisioner.Moment
	Objects [][]byte // each as JSON
}

func outcomeOf(result provisioner.Result, err error) (*outcome, error) {
	if err != nil {
		faults := provisioner.InputErrors(err)
		if len(faults) == 0 {
			return &outcome{Other: nonEmpty(err.Error())}, nil
		}
		done := &outcome{}
		for _, fault := range faults {
			done.Faults = append(done.Faults, *fault)
		}
		return done, nil
	}
	done := &outcome{Nothing: result.Nothing, Notes: result.Notes, ConfigSchema: result.ConfigSchema, Varies: result.Varies}
	for _, from := range result.Phases {
		to := phase{Name: from.Name, On: from.On}
		for _, object := range from.Objects {
			encoded, err := json.Marshal(object.Object)
			if err != nil {
				return nil, fmt.Errorf("%s cannot be written as JSON: %w", provisioner.Describe(object.Object), err)
			}
			to.Objects = append(to.Objects, encoded)
		}
		done.Phases = append(done.Phases, to)
	}
	return done, nil
}

func nonEmpty(text string) string {
	if text == "" {
		return "an error without a text"
	}
	return text
}

// result is the other direction of outcomeOf.
func (o *outcome) result() (provisioner.Result, error) {
	if len(o.Faults) > 0 {
		var faults []*provisioner.InputError
		for i := range o.Faults {
			faults = append(faults, &o.Faults[i])
		}
		return provisioner.Result{}, provisioner.Join(faults)
	}
	if o.Other != "" {
		return provisioner.Result{}, errors.New(o.Other)
	}
	result := provisioner.Result{Nothing: o.Nothing, Notes: o.Notes, ConfigSchema: o.ConfigSchema, Varies: o.Varies}
	for _, from := range o.Phases {
		to := provisioner.Phase{Name: from.Name, On: from.On}
		for _, encoded := range from.Objects {
			object := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(encoded, &object.Object); err != nil {
				return provisioner.Result{}, fmt.Errorf("an object of phase %q came back spoilt: %w", from.Name, err)
			}
			to.Objects = append(to.Objects, object)
		}
		result.Phases = append(result.Phases, to)
	}
	return result, nil
}
