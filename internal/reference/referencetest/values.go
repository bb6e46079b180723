package referencetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WithoutReceived returns a copy of a value in which every RawObject is zero, so that its JSON has
// what its fields hold.
func WithoutReceived(value any) any { return copyOf(reflect.ValueOf(value)).Interface() }

func copyOf(v reflect.Value) reflect.Value {
	switch {
	case v.Type().Name() == "RawObject":
		return reflect.Zero(v.Type())
	case v.Kind() == reflect.Struct && !strings.Contains(v.Type().PkgPath(), "labhealth"):
		return v
	}
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(copyOf(v.Elem()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(copyOf(v.Elem()))
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(copyOf(v.Field(i)))
			}
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return v
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copyOf(v.Index(i)))
		}
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out.Set(reflect.MakeMap(v.Type()))
		for key, elem := range v.Seq2() {
			out.SetMapIndex(key, copyOf(elem))
		}
	default:
		return v
	}
	return out
}

// LostFields returns the paths of the values of want that got lacks or has with another value. Both
// are JSON, decoded with UseNumber. Instants are compared as such and numbers by their values; a
// field that is null may be absent.
func LostFields(want, got any) []string { return lostFields("$", want, got, nil) }

func lostFields(path string, want, got any, lost []string) []string {
	differs := func() []string { return append(lost, fmt.Sprintf("%s: %v, want %v", path, got, want)) }
	switch want := want.(type) {
	case map[string]any:
		fields, ok := got.(map[string]any)
		if !ok {
			return differs()
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := fields[name]; ok || want[name] != nil {
				lost = lostFields(path+"."+name, want[name], fields[name], lost)
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return differs()
		}
		for i := range want {
			lost = lostFields(path+"."+strconv.Itoa(i), want[i], list[i], lost)
		}
	case json.Number:
		number, _ := got.(json.Number)
		a, _ := want.Float64()
		if b, err := number.Float64(); err != nil || a != b {
			return differs()
		}
	case string:
		if text, _ := got.(string); text != want && !sameInstant(want, text) {
			return differs()
		}
	default:
		if want != got {
			return differs()
		}
	}
	return lost
}

// sameInstant compares two instants. The first may lack an offset or a time, and the second a time.
func sameInstant(a, b string) bool {
	var times []time.Time
	for _, text := range []string{a, b} {
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
			if at, err := time.Parse(layout, text); err == nil {
				times = append(times, at)
				break
			}
		}
	}
	return len(times) == 2 && (times[0].Equal(times[1]) || len(b) == len(time.DateOnly) && strings.HasPrefix(a, b))
}
