// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// shape is a struct of Facts as a type of CEL. It is made once for each type.
type shape struct {
	cel    *types.Type
	fields []*field
	byName map[string]*field
}

// field of a shape.
type field struct {
	name, doc string
	index     int
	cel       *types.Type
	words     string // the type for people
	max, len  uint64 // items and bytes
	inner     *shape // of a struct, or of the items of a list of structs
	pointer   bool   // nil is not known
	omits     bool   // the zero value is absent, for has()
	read      func(reflect.Value) ref.Val
}

const defaultLen = 1024

// shapes has all types by their names in CEL. The first call makes them.
var root, shapes = shapesOf(reflect.TypeFor[Facts]())

func shapesOf(of reflect.Type) (*shape, map[string]*shape) {
	all := map[string]*shape{}
	return shapeOf(of, all), all
}

func shapeOf(of reflect.Type, all map[string]*shape) *shape {
	name := "rukpak." + of.Name()
	if known := all[name]; known != nil {
		return known
	}
	made := &shape{cel: types.NewObjectType(name, traits.IndexerType|traits.FieldTesterType), byName: map[string]*field{}}
	all[name] = made
	for i := range of.NumField() {
		one := fieldOf(of.Field(i), all)
		one.index = i
		made.fields = append(made.fields, one)
		made.byName[one.name] = one
	}
	return made
}

func fieldOf(from reflect.StructField, all map[string]*shape) *field {
	name, options, _ := strings.Cut(from.Tag.Get("json"), ",")
	f := &field{name: name, doc: from.Tag.Get("doc"), omits: options != "", max: number(from.Tag.Get("max")), len: number(from.Tag.Get("len"))}
	of := from.Type
	if f.pointer = of.Kind() == reflect.Pointer; f.pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[time.Time]():
		f.scalar(types.TimestampType, "timestamp", func(v reflect.Value) ref.Val {
			at, _ := reflect.TypeAssert[time.Time](v)
			return types.Timestamp{Time: at}
		})
	case of.Kind() == reflect.String:
		f.scalar(types.StringType, "string", func(v reflect.Value) ref.Val { return types.String(v.String()) })
	case of.Kind() == reflect.Bool:
		f.scalar(types.BoolType, "bool", func(v reflect.Value) ref.Val { return types.Bool(v.Bool()) })
	case of.Kind() == reflect.Int64:
		f.scalar(types.IntType, "int", func(v reflect.Value) ref.Val { return types.Int(v.Int()) })
	case of == reflect.TypeFor[[]string]():
		f.scalar(types.NewListType(types.StringType), "list of string", func(v reflect.Value) ref.Val {
			items, _ := reflect.TypeAssert[[]string](v)
			return types.NewStringList(types.DefaultTypeAdapter, items)
		})
	case of == reflect.TypeFor[map[string]string]():
		f.scalar(types.NewMapType(types.StringType, types.StringType), "map of string", func(v reflect.Value) ref.Val {
			items, _ := reflect.TypeAssert[map[string]string](v)
			return types.NewStringStringMap(types.DefaultTypeAdapter, items)
		})
	case of.Kind() == reflect.Struct:
		f.inner = shapeOf(of, all)
		inner := f.inner
		f.scalar(inner.cel, "object", func(v reflect.Value) ref.Val { return &record{shape: inner, value: v} })
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		f.inner = shapeOf(of.Elem(), all)
		inner := f.inner
		f.scalar(types.NewListType(inner.cel), "list of objects", func(v reflect.Value) ref.Val { return records(inner, v) })
	default:
		panic(fmt.Sprintf("rules cannot see a %s: %s", of, from.Name)) // a type in this package is wrong
	}
	return f
}

func (f *field) scalar(cel *types.Type, words string, read func(reflect.Value) ref.Val) {
	f.cel, f.words, f.read = cel, words, read
	if f.len == 0 {
		f.len = defaultLen
	}
}

func number(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 32)
	return n
}

// get reads a field of a record. What is not known is an error.
func (f *field) get(of reflect.Value) ref.Val {
	value := of.Field(f.index)
	if f.pointer {
		if value.IsNil() {
			return types.NewErr("%s is not known", f.name)
		}
		value = value.Elem()
	}
	return f.read(value)
}

// isSet is what has() says.
func (f *field) isSet(of reflect.Value) bool {
	value := of.Field(f.index)
	return !f.omits || f.cel.Kind() == types.ListKind || f.cel.Kind() == types.MapKind || !value.IsZero()
}

// records makes a list of structs a list of CEL.
func records(of *shape, list reflect.Value) ref.Val {
	backing, values := make([]record, list.Len()), make([]ref.Val, list.Len())
	for i := range backing {
		backing[i] = record{shape: of, value: list.Index(i)}
		values[i] = &backing[i]
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}
