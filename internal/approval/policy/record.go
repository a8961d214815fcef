// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// record is a struct of Facts as a value of CEL. It copies nothing: a rule that looks at a few fields of ten thousand
// objects pays for these only.
type record struct {
	shape *shape
	value reflect.Value
}

// ConvertToNative is not needed: nothing leaves a rule but true and false.
func (r *record) ConvertToNative(want reflect.Type) (any, error) {
	if reflect.TypeOf(r).AssignableTo(want) {
		return r, nil
	}
	return nil, fmt.Errorf("%s cannot be made a %s", r.shape.cel.TypeName(), want)
}

// ConvertToType knows only the type itself.
func (r *record) ConvertToType(want ref.Type) ref.Val {
	switch {
	case want.TypeName() == r.shape.cel.TypeName():
		return r
	case want == types.TypeType:
		return r.shape.cel
	}
	return types.NewErr("%s cannot be made a %s", r.shape.cel.TypeName(), want.TypeName())
}

// Equal compares all fields.
func (r *record) Equal(other ref.Val) ref.Val {
	o, ok := other.(*record)
	return types.Bool(ok && o.shape == r.shape && reflect.DeepEqual(r.value.Interface(), o.value.Interface()))
}

// Type is that of the struct.
func (r *record) Type() ref.Type { return r.shape.cel }

// Value is the record itself: the functions of provider take it.
func (r *record) Value() any { return r }

// Get reads a field where the type is not known when the rule is compiled.
func (r *record) Get(index ref.Val) ref.Val {
	f, fault := r.field(index)
	if fault != nil {
		return fault
	}
	return f.get(r.value)
}

// IsSet answers has() there.
func (r *record) IsSet(index ref.Val) ref.Val {
	f, fault := r.field(index)
	if fault != nil {
		return fault
	}
	return types.Bool(f.isSet(r.value))
}

func (r *record) field(index ref.Val) (*field, ref.Val) {
	name, _ := index.Value().(string)
	if f := r.shape.byName[name]; f != nil {
		return f, nil
	}
	return nil, types.NewErr("no such key: %s", name)
}

// provider tells CEL of the shapes, besides what there is anyway.
type provider struct{ types.Provider }

// FindStructType gives a type by its name.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if known := shapes[name]; known != nil {
		return types.NewTypeTypeWithParam(known.cel), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames gives the names of its fields.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	known := shapes[name]
	if known == nil {
		return p.Provider.FindStructFieldNames(name)
	}
	var names []string
	for _, f := range known.fields {
		names = append(names, f.name)
	}
	return names, true
}

// FindStructFieldType gives a field, and how to read it.
func (p provider) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	known := shapes[name]
	if known == nil {
		return p.Provider.FindStructFieldType(name, fieldName)
	}
	f := known.byName[fieldName]
	if f == nil {
		return nil, false
	}
	return &types.FieldType{
		Type: f.cel,
		IsSet: func(target any) bool {
			r, ok := target.(*record)
			return ok && f.isSet(r.value)
		},
		GetFrom: func(target any) (any, error) {
			r, ok := target.(*record)
			if !ok {
				return nil, fmt.Errorf("%s has no field %q: it is a %T", name, f.name, target)
			}
			got := f.get(r.value)
			if fault, ok := got.(*types.Err); ok {
				return nil, fault
			}
			return got, nil
		},
	}, true
}

// reflectOf makes facts readable by fields; nil has none set.
func reflectOf(f *Facts) reflect.Value {
	if f == nil {
		f = &Facts{}
	}
	return reflect.ValueOf(f).Elem()
}
