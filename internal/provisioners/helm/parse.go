// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"

	parser "rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// parse reads YAML as Kubernetes does: by this very library, and then as if it had been JSON. To do without the JSON in between
// halves the time; a test holds it to the same values.
func parse(text string) (any, error) {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return numbers(true).asJSON(value)
}

// parseValues reads YAML as Helm does, whose numbers are all alike.
func parseValues(text []byte) (map[string]any, error) {
	if err := parser.Deep(text); err != nil {
		return nil, err
	}
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	value, err := numbers(false).asJSON(value)
	if err != nil {
		return nil, err
	}
	switch values := value.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return values, nil
	}
	return nil, fmt.Errorf("the values are %s, not a mapping", provisioner.TypeName(value))
}

// numbers says whether whole numbers are told from others.
type numbers bool

func (n numbers) asJSON(value any) (any, error) {
	switch value := value.(type) {
	case nil, bool:
		return value, nil
	case string:
		return asText(value), nil
	case int:
		return n.whole(int64(value)), nil
	case int64:
		return n.whole(value), nil
	case uint64:
		if value > math.MaxInt64 {
			return float64(value), nil
		}
		return n.whole(int64(value)), nil
	case float64:
		return n.asNumber(value)
	case []any:
		for i, item := range value {
			var err error
			if value[i], err = n.asJSON(item); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[any]any:
		return n.asObject(value)
	}
	return nil, fmt.Errorf("a value of type %T is none of JSON", value)
}

func (n numbers) whole(value int64) any {
	if n {
		return value
	}
	return float64(value)
}

// asNumber makes whole numbers of those that JSON writes as such, in as few digits as tell them apart.
func (n numbers) asNumber(value float64) (any, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, fmt.Errorf("%v is no number of JSON", value)
	}
	if bool(n) && value == math.Trunc(value) {
		if whole, err := strconv.ParseInt(strconv.FormatFloat(value, 'f', -1, 64), 10, 64); err == nil {
			return whole, nil
		}
	}
	return value, nil
}

func (n numbers) asObject(fields map[any]any) (map[string]any, error) {
	object := make(map[string]any, len(fields))
	for key, value := range fields {
		name, err := asName(key)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the key %q is there twice, as text and as number", name)
		}
		if object[name], err = n.asJSON(value); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// specialNumbers are how YAML writes what is no number.
var specialNumbers = map[string]string{"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}

// asName makes the text of a key that is none.
func asName(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return asText(key), nil
	case int:
		return strconv.Itoa(key), nil
	case int64:
		return strconv.FormatInt(key, 10), nil
	case float64:
		text := strconv.FormatFloat(key, 'g', -1, 32) // as the library of Kubernetes has it
		if special, found := specialNumbers[text]; found {
			text = special
		}
		return text, nil
	case bool:
		return strconv.FormatBool(key), nil
	}
	return "", fmt.Errorf("the key %v is no text: quote it", key)
}

// asText has what a text of JSON cannot hold replaced, byte by byte, as encoding/json does.
func asText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
