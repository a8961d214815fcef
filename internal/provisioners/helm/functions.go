// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// original are the functions of sprig, most of which the engine has as they are.
var original = sprig.TxtFuncMap()

// random functions give something else each time.
var random = []string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4"}

// costly functions do as well, and take long.
var costly = []string{
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
	"genSignedCertWithKey", "bcrypt", "htpasswd", "encryptAES",
}

// formatting functions write what they are given as text, whatever it is, if only into an error.
var formatting = []string{
	"cat", "quote", "squote", "toString", "toStrings", "join", "sortAlpha", "deepCopy", "mustDeepCopy",
	"toPrettyJson", "toRawJson", "mustToPrettyJson", "mustToRawJson",
	"int64", "int", "float64", "toDecimal", "add1", "add", "sub", "div", "mod", "mul", "add1f", "addf", "subf", "divf", "mulf",
	"biggest", "max", "min", "maxf", "minf", "ceil", "floor", "round",
}

// functions replace those of the engine that must not be as they are. All others are the engine's own.
func (w *watch) functions() template.FuncMap {
	replaced := w.calls()
	for _, name := range random {
		replaced[name] = w.before(original[name], func([]reflect.Value) error { w.differs(name); return w.step(1) })
	}
	for _, name := range costly {
		replaced[name] = w.before(original[name], func([]reflect.Value) error { w.differs(name); return w.step(dear) })
	}
	replaced["derivePassword"] = w.before(original["derivePassword"], func([]reflect.Value) error { return w.step(dear) })
	for _, name := range formatting {
		replaced[name] = w.before(original[name], func(arguments []reflect.Value) error { _, err := w.weigh(arguments...); return err })
	}
	maps.Copy(replaced, w.sized())
	maps.Copy(replaced, w.writers())
	maps.Copy(replaced, w.dates())
	maps.Copy(replaced, sorted())
	maps.Copy(replaced, w.frequent())
	return replaced
}

// before makes a function of the same type that asks first. A panic becomes the error of the template.
func (w *watch) before(function any, ask func([]reflect.Value) error) any {
	inner := reflect.ValueOf(function)
	return reflect.MakeFunc(inner.Type(), func(arguments []reflect.Value) []reflect.Value {
		if err := ask(arguments); err != nil {
			panic(err)
		}
		if inner.Type().IsVariadic() {
			return inner.CallSlice(arguments)
		}
		return inner.Call(arguments)
	}).Interface()
}

// must is for functions that cannot give an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// sized are functions whose result may be far larger than what they are given.
func (w *watch) sized() template.FuncMap {
	indent := original["indent"].(func(int, string) string)
	until := original["until"].(func(int) []int)
	untilStep := original["untilStep"].(func(int, int, int) []int)
	seq := original["seq"].(func(...int) string)
	text := func(count, length int) error {
		if count > 0 && length > 0 && count > maxText/length {
			return w.tooMuch("a text of more than %d MiB is made", maxText>>20)
		}
		return nil
	}
	list := func(from, to, step int) error {
		const most = 1 << 60 // sprig adds up to it, and must not come out below zero
		if max(from, to, step, -from, -to, -step) > most || step != 0 && (to-from)/step > maxList {
			return w.tooMuch("a list of more than %d numbers is made", maxList)
		}
		return w.step(max(0, (to-from)/max(1, step, -step)/100))
	}
	pad := func(spaces int, of string) error { return text(strings.Count(of, "\n")+1, max(0, spaces)) }
	return template.FuncMap{
		"repeat": func(count int, of string) (string, error) {
			if err := text(count, len(of)); err != nil {
				return "", err
			}
			return strings.Repeat(of, count), nil
		},
		"indent": func(spaces int, of string) (string, error) {
			return w.count(fallible(pad(spaces, of), func() string { return indent(spaces, of) }))
		},
		"nindent": func(spaces int, of string) (string, error) {
			return w.count(fallible(pad(spaces, of), func() string { return "\n" + indent(spaces, of) }))
		},
		"replace": func(old, with, of string) (string, error) {
			return fallible(text(strings.Count(of, old), len(with)), func() string { return strings.ReplaceAll(of, old, with) })
		},
		"until": func(to int) ([]int, error) { return fallible(list(0, to, sign(to)), func() []int { return until(to) }) },
		"untilStep": func(from, to, step int) ([]int, error) {
			return fallible(list(from, to, step), func() []int { return untilStep(from, to, step) })
		},
		"seq": func(numbers ...int) (string, error) {
			from, to, step := bounds(numbers)
			return fallible(list(from, to, step), func() string { return seq(numbers...) })
		},
	}
}

func fallible[T any](err error, make func() T) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return make(), nil
}

// count is write for what functions make, which is not counted again when it is printed (see isCounted).
func (w *watch) count(text string, err error) (string, error) {
	if err == nil {
		err = w.write(len(text))
	}
	return text, err
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// bounds are what seq counts between: to; from, to; or from, step, to.
func bounds(numbers []int) (from, to, step int) {
	switch len(numbers) {
	case 1:
		return 1, numbers[0], sign(numbers[0] - 1)
	case 2:
		return numbers[0], numbers[1], sign(numbers[1] - numbers[0])
	case 3:
		return numbers[0], numbers[2], numbers[1]
	}
	return 0, 0, 1
}

// writers write any value as text.
func (w *watch) writers() template.FuncMap {
	weighed := func(write func(...any) string) func(...any) (string, error) {
		return func(values ...any) (string, error) {
			_, err := w.weighAny(values...)
			return w.count(fallible(err, func() string { return write(values...) }))
		}
	}
	of := func(write func(any) (string, error), hide bool) func(any) (string, error) {
		return func(value any) (string, error) {
			if _, err := w.weighAny(value); err != nil {
				return "", err
			}
			text, err := write(value)
			if err != nil && hide {
				return "", nil // as Helm has it
			}
			if err == nil {
				err = w.write(3 * len(text)) // to encode takes longer than to copy
			}
			return w.count(text, err)
		}
	}
	return template.FuncMap{
		"print": weighed(fmt.Sprint), "println": weighed(fmt.Sprintln),
		"printf": func(form string, values ...any) (string, error) {
			_, err := w.weighAny(values...)
			return w.count(fallible(err, func() string { return fmt.Sprintf(form, values...) }))
		},
		"html": weighed(template.HTMLEscaper), "js": weighed(template.JSEscaper), "urlquery": weighed(template.URLQueryEscaper),
		"toYaml": of(toYAML, true), "mustToYaml": of(toYAML, false), "toYamlPretty": of(toPrettyYAML, true),
		"toJson": of(toJSON, true), "mustToJson": of(toJSON, false),
		"toToml": func(value any) (string, error) {
			if _, err := w.weighAny(value); err != nil {
				return "", err
			}
			text, err := toTOML(value)
			if err != nil {
				return err.Error(), nil // as Helm has it
			}
			return text, nil
		},
		"mustToToml": of(toTOML, false),
	}
}

func toYAML(value any) (string, error) {
	encoded, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(encoded), "\n"), err
}

func toPrettyYAML(value any) (string, error) {
	var text bytes.Buffer
	encoder := yamlv3.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func toJSON(value any) (string, error) {
	encoded, err := json.Marshal(value)
	return string(encoded), err
}

func toTOML(value any) (string, error) {
	var text bytes.Buffer
	err := toml.NewEncoder(&text).Encode(value)
	return text.String(), err
}

// dates take UTC for the time zone of the machine, so that another machine gives the same.
func (w *watch) dates() template.FuncMap {
	inZone := original["dateInZone"].(func(string, any, string) string)
	ago := original["ago"].(func(any) string)
	rounded := original["durationRound"].(func(any) string)
	zoned := func(name string) func(string, any, string) string {
		return func(form string, date any, zone string) string {
			if zone == "Local" {
				zone = "UTC"
			}
			switch date.(type) {
			case time.Time, *time.Time, int64, int, int32:
			default: // sprig takes the present for it
				w.differs(name)
			}
			return inZone(form, date, zone)
		}
	}
	const day = "2006-01-02"
	return template.FuncMap{
		"now":            func() time.Time { w.differs("now"); return time.Now().UTC() },
		"ago":            func(date any) string { w.differs("ago"); return ago(date) },
		"date":           func(form string, date any) string { return zoned("date")(form, date, "UTC") },
		"htmlDate":       func(date any) string { return zoned("htmlDate")(day, date, "UTC") },
		"htmlDateInZone": func(date any, zone string) string { return zoned("htmlDateInZone")(day, date, zone) },
		"dateInZone":     zoned("dateInZone"), "date_in_zone": zoned("date_in_zone"),
		"toDate":     func(form, text string) time.Time { date, _ := time.Parse(form, text); return date },
		"mustToDate": time.Parse,
		"durationRound": func(duration any) string {
			if _, since := duration.(time.Time); since {
				w.differs("durationRound")
			}
			return rounded(duration)
		},
	}
}

// sorted functions give in the order of keys what sprig gives in any order.
func sorted() template.FuncMap {
	return template.FuncMap{
		"keys": func(dicts ...map[string]any) []string {
			all := []string{}
			for _, dict := range dicts {
				all = append(all, slices.Sorted(maps.Keys(dict))...)
			}
			return all
		},
		"values": func(dict map[string]any) []any {
			all := []any{}
			for _, key := range slices.Sorted(maps.Keys(dict)) {
				all = append(all, dict[key])
			}
			return all
		},
	}
}

// frequent are formatting functions that are called so often that they are written out.
func (w *watch) frequent() template.FuncMap {
	quote := original["quote"].(func(...any) string)
	squote := original["squote"].(func(...any) string)
	text := original["toString"].(func(any) string)
	dict := original["dict"].(func(...any) map[string]any)
	return template.FuncMap{
		"quote":    func(values ...any) string { must(w.weighAny(values...)); return must(w.count(quote(values...), nil)) },
		"squote":   func(values ...any) string { must(w.weighAny(values...)); return must(w.count(squote(values...), nil)) },
		"toString": func(value any) string { must(w.weighAny(value)); return text(value) },
		"dict": func(pairs ...any) map[string]any {
			for i := 0; i < len(pairs); i += 2 {
				must(w.weighAny(pairs[i]))
			}
			return dict(pairs...)
		},
	}
}
