// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/provisioner"
)

// decoded is what a worker said of a job.
type decoded struct {
	result     provisioner.Result
	err        error // of the content, or a passing one
	handedBack bool
}

// decode reads a contentv1.Result and holds it to the contract. Fields that are not known are refused: to leave them out
// could mean to activate something else.
func decode(body []byte) (decoded, error) {
	if values := valuesIn(body); values > maxValues {
		return decoded{}, fmt.Errorf("it has more than %d values", maxValues)
	}
	var said contentv1.Result
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		return decoded{}, fmt.Errorf("it is no result in JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return decoded{}, errors.New("there is something behind it")
	}
	outcomes := 0
	for _, is := range []bool{said.HandedBack, said.Error != "", len(said.Faults) > 0, len(said.Phases) > 0 || said.Nothing} {
		if is {
			outcomes++
		}
	}
	if outcomes > 1 {
		return decoded{}, errors.New("it says several of handedBack, error, faults, and phases or nothing")
	}
	switch {
	case said.HandedBack:
		return decoded{handedBack: true}, nil
	case said.Error != "":
		return decoded{err: errors.New(cut(said.Error, maxText))}, nil
	case len(said.Faults) > 0:
		err, wrong := faults(said.Faults)
		return decoded{err: err}, wrong
	}
	result, err := resultOf(&said)
	return decoded{result: result}, err
}

// valuesIn is no less than the number of values in JSON. Each takes far more memory than the few bytes that it may have.
func valuesIn(body []byte) int {
	count := 0
	for _, c := range body {
		if c == ',' || c == '[' || c == '{' {
			count++
		}
	}
	return count
}

func faults(said []contentv1.Fault) (err, wrong error) {
	var all []*provisioner.InputError
	for i, fault := range said {
		switch {
		case i == maxFaults:
			all = append(all, &provisioner.InputError{Reason: fmt.Sprintf("... and %d more", len(said)-i)})
			return provisioner.Join(all), nil
		case fault.Reason == "":
			return nil, fmt.Errorf("fault %d gives no reason", i)
		case fault.Line < 0 || len(fault.File)+len(fault.Object)+len(fault.Reason) > maxText:
			return nil, fmt.Errorf("fault %d has a line below 0, or more than %d bytes", i, maxText)
		}
		all = append(all, &provisioner.InputError{File: fault.File, Line: fault.Line, Object: fault.Object, Reason: fault.Reason})
	}
	return provisioner.Join(all), nil
}

// resultOf gives what was rendered. That of a job to validate is empty.
func resultOf(said *contentv1.Result) (provisioner.Result, error) {
	result := provisioner.Result{Nothing: said.Nothing, Notes: said.Notes, ConfigSchema: said.ConfigSchema, Varies: said.Varies}
	objects := 0
	for _, phase := range said.Phases {
		made := provisioner.Phase{Name: phase.Name, Objects: phase.Objects}
		for _, moment := range phase.On {
			made.On = append(made.On, provisioner.Moment(moment))
		}
		result.Phases = append(result.Phases, made)
		objects += len(phase.Objects)
	}
	switch {
	case objects > maxObjects:
		return result, fmt.Errorf("it has %d objects, more than %d", objects, maxObjects)
	case len(result.Notes) > maxText:
		return result, fmt.Errorf("its notes have more than %d bytes", maxText)
	case len(result.ConfigSchema) > maxSchema:
		return result, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	case len(result.Varies) > maxVaries:
		return result, fmt.Errorf("it says of more than %d things that they vary", maxVaries)
	case len(result.Phases) == 0 && !result.Nothing:
		return result, nil // whether it may be so depends on the job
	}
	if err := result.Check(); err != nil {
		return result, err
	}
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			provisioner.Tidy(object)
		}
	}
	return result, nil
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + " ..."
}
