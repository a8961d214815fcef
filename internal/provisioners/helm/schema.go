// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"rukpak.io/rukpak/provisioner"
)

const (
	schemaFile = "values.schema.json"
	schemaURL  = "file:///" + schemaFile // as Helm has it, so that references mean the same
)

// checkValues checks the values, with all defaults in them, against the schemas of the chart and of those in it.
func (c *loaded) checkValues(top common.Values) error {
	values, err := top.Table("Values")
	if err != nil {
		return nil //nolint:nilerror // there are no values at all
	}
	faults := c.checkSchema(c.Chart, values, nil, nil)
	if len(faults) == 0 {
		return nil
	}
	return provisioner.Join(faults[:min(len(faults), maxFaults)])
}

// checkSchema adds what one chart finds wrong with its values, and what those in it find wrong. place is where its values are
// among those of the chart at the top.
func (c *loaded) checkSchema(one *chart.Chart, values map[string]any, place []string, faults []*provisioner.InputError) []*provisioner.InputError {
	if one.Schema != nil {
		faults = append(faults, c.checkOne(one, values, place)...)
	}
	for _, inner := range one.Dependencies() {
		at := append(place[:len(place):len(place)], inner.Name())
		switch own := values[inner.Name()].(type) {
		case nil:
		case map[string]any:
			faults = c.checkSchema(inner, own, at, faults)
		case common.Values:
			faults = c.checkSchema(inner, own, at, faults)
		default:
			faults = append(faults, refuse("config", "%s: chart %s: is %s, but these are the values of a chart, which are a mapping",
				strings.Join(at, "."), inner.Name(), provisioner.TypeName(own)))
		}
	}
	return faults
}

func (c *loaded) checkOne(one *chart.Chart, values map[string]any, place []string) (faults []*provisioner.InputError) {
	shown := path.Join(c.root, schemaFile)
	if !one.IsRoot() {
		shown = path.Join(c.root, strings.TrimPrefix(one.ChartFullPath(), one.Root().Name()+"/"), schemaFile)
	}
	defer func() {
		if cause := recover(); cause != nil {
			faults = append(faults, refuse(shown, "cannot be used: %s", oneLine(fmt.Sprint(cause))))
		}
	}()
	schema, err := compile(one.Schema)
	if err != nil {
		return []*provisioner.InputError{refuse(shown, "%s", oneLine(err.Error()))}
	}
	var invalid *jsonschema.ValidationError
	switch err := schema.Validate(values); {
	case err == nil:
	case errors.As(err, &invalid):
		printer := message.NewPrinter(language.English)
		for _, fault := range leaves(invalid, nil) {
			said := oneLine(fault.ErrorKind.LocalizedString(printer))
			faults = append(faults, refuse("config", "%s: chart %s: %s", dotted(place, fault.InstanceLocation), one.Name(), said))
		}
	default:
		faults = append(faults, refuse("config", "chart %s: %s", one.Name(), oneLine(err.Error())))
	}
	return faults
}

func leaves(fault *jsonschema.ValidationError, found []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(fault.Causes) == 0 {
		return append(found, fault)
	}
	for _, cause := range fault.Causes {
		found = leaves(cause, found)
	}
	return found
}

// dotted is a place among the values as people write it: "web.ports[0].name".
func dotted(places ...[]string) string {
	var text strings.Builder
	for _, place := range places {
		for _, step := range place {
			switch _, err := strconv.Atoi(step); {
			case err == nil:
				text.WriteString("[" + step + "]")
			case text.Len() > 0:
				text.WriteString("." + step)
			default:
				text.WriteString(step)
			}
		}
	}
	if text.Len() == 0 {
		return "the values"
	}
	return text.String()
}

func compile(text []byte) (*jsonschema.Schema, error) {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("is no JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothing{})
	if err := compiler.AddResource(schemaURL, schema); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(schemaURL)
	var unread *jsonschema.LoadURLError
	if errors.As(err, &unread) {
		return nil, fmt.Errorf("$ref %q is fetched from elsewhere, which is not allowed: put that schema into this file, under $defs", strings.TrimPrefix(unread.URL, "file:///"))
	}
	return compiled, err
}

// nothing loads no schema, neither from the network nor from files of this machine. Names that lead nowhere (urn:) allow
// everything, as in Helm.
type nothing struct{}

var errFetched = errors.New("nothing is fetched")

// Load is called for schemas that are not in the file itself.
func (nothing) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, errFetched
}
