package jsonread

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// Whatever is changed in whatever document, what is written is decoded as the changed value.
func TestRandomChanges(t *testing.T) {
	types := []reflect.Type{reflect.TypeFor[Thing](), reflect.TypeFor[Boxed](), reflect.TypeFor[Page]()}
	for seed := range uint64(300) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 3)), odd: seed%2 == 0}
		typ := types[g.IntN(len(types))]
		g.value(typ, false)
		text := []byte(g.String())
		for range 5 {
			v, again := reflect.New(typ), reflect.New(typ)
			if err := Unmarshal(text, v.Interface()); err != nil {
				t.Fatal(err)
			}
			for range 1 + g.IntN(2) {
				values := valuesIn(v.Elem(), nil)
				g.change(values[g.IntN(len(values))], values[g.IntN(len(values))])
			}
			want, err := MarshalPlain(v.Interface())
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			b, err := Marshal(v.Interface())
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if err := Unmarshal(b, again.Interface()); err != nil {
				t.Fatalf("%s\nwritten as %s: %v", text, b, err)
			}
			if got, err := MarshalPlain(again.Interface()); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s\nwritten as %s\n got %s, %v\nwant %s", text, b, got, err, want)
			}
		}
	}
}

// valuesIn appends v and the values within it, apart from those of maps and unions.
func valuesIn(v reflect.Value, list []reflect.Value) []reflect.Value {
	list = append(list, v)
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		list = valuesIn(v.Elem(), list)
	case v.Kind() == reflect.Slice && v.Type() != rawType:
		for i := range v.Len() {
			list = valuesIn(v.Index(i), list)
		}
	case isObject(v.Type()) && v.Type() != reflect.TypeFor[Payload]():
		for i := range v.NumField() {
			if !isRef(v.Type().Field(i)) {
				list = valuesIn(v.Field(i), list)
			}
		}
	}
	return list
}

// change sets v to a value of its type.
func (g *generator) change(v, other reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[Day](), v.Type() == reflect.TypeFor[*Day](): // the zero Day is not decoded
	case v.Type() == other.Type():
		v.Set(reflect.ValueOf(other.Interface()))
	case g.one(3) || v.Kind() == reflect.Map:
		v.SetZero()
	case v.Kind() == reflect.String && v.Type() != numberType:
		v.SetString(v.String() + "<\u00e9")
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.Int64:
		v.SetInt(v.Int() ^ 1)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case v.Kind() == reflect.Slice && v.Len() > 1 && v.Type() != rawType:
		reflect.Swapper(v.Interface())(0, g.IntN(v.Len()))
		v.Set(v.Slice(0, g.IntN(v.Len()+1)))
	}
}
