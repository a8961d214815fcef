// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// words are the scalars that kubectl, whose YAML is 1.1 here, does not read as text.
var words = func() map[string]any {
	all := map[string]any{"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil}
	for value, texts := range map[bool]string{true: "y yes true on", false: "n no false off"} {
		for text := range strings.FieldsSeq(texts) {
			title := strings.ToUpper(text[:1]) + text[1:]
			all[text], all[title], all[strings.ToUpper(text)] = value, value, value
		}
	}
	for _, text := range []string{".nan", ".NaN", ".NAN"} {
		all[text] = math.NaN()
	}
	for _, text := range []string{".inf", ".Inf", ".INF"} {
		all[text], all["+"+text], all["-"+text] = math.Inf(1), math.Inf(1), math.Inf(-1)
	}
	return all
}()

var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// plainScalar is the value of a scalar without quotes and tag: nil, bool, int64, float64 or string.
func plainScalar(text string) (any, error) {
	if word, ok := words[text]; ok {
		return finite(word)
	}
	if text[0] == '.' {
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			return finite(number)
		}
		return text, nil
	}
	if !strings.ContainsRune("+-0123456789", rune(text[0])) {
		return text, nil
	}
	digits := strings.ReplaceAll(text, "_", "")
	if number, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return number, nil // base 0: 0400 and 0o400 are octal
	}
	if number, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return nil, tooLong(strconv.FormatUint(number, 10))
	}
	if !decimal.MatchString(digits) {
		return text, nil
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return text, nil // too large even for that: kubectl reads text
	}
	if !strings.ContainsAny(digits, ".eE") && math.Abs(number) >= math.MaxInt64 { // a smaller one is as 08
		return nil, tooLong(text)
	}
	return finite(number)
}

func tooLong(number string) error {
	return fmt.Errorf("the number %s has more digits than can be kept: quote it if it is text", number)
}

// finite makes of a float what it is after a way through JSON, which knows neither NaN nor a difference of 1 and 1.0.
func finite(value any) (any, error) {
	number, ok := value.(float64)
	if !ok {
		return value, nil
	}
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return nil, fmt.Errorf("objects cannot have the number %v: quote it if it is text", number)
	}
	encoded, err := json.Marshal(number)
	if err != nil {
		return nil, err
	}
	if whole, err := strconv.ParseInt(string(encoded), 10, 64); err == nil {
		return whole, nil
	}
	return number, nil
}

// jsonNumber is the value of a number in JSON.
func jsonNumber(number json.Number) (any, error) {
	if whole, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return whole, nil
	}
	if !strings.ContainsAny(string(number), ".eE") {
		return nil, tooLong(string(number))
	}
	value, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", number)
	}
	return value, nil
}

// keyText is a key of a mapping as text, as JSON needs it.
func keyText(value any) (string, error) {
	switch key := value.(type) {
	case string:
		return key, nil
	case bool:
		return strconv.FormatBool(key), nil
	case int64:
		return strconv.FormatInt(key, 10), nil
	}
	return "", fmt.Errorf("a key must be text: quote it")
}
