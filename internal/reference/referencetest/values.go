// What a value holds beside the received JSON.

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
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Map:
		if v.IsNil() || v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return v
		}
	case reflect.Struct:
	default:
		return v
	}
	out := reflect.New(v.Type()).Elem()
	copyParts(out, v)
	return out
}

// copyParts sets out to a copy of v, which has parts.
func copyParts(out, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		out.Set(copyOf(v.Elem()))
	case reflect.Pointer:
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(copyOf(v.Elem()))
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(copyOf(v.Field(i)))
			}
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copyOf(v.Index(i)))
		}
	default: // a map
		out.Set(reflect.MakeMap(v.Type()))
		for key, elem := range v.Seq2() {
			out.SetMapIndex(key, copyOf(elem))
		}
	}
}

// LostFields returns the paths of the values of want that got lacks or has with another value. Both
// are JSON, decoded with UseNumber. Instants are compared as such and numbers by their values; a
// field that is null may be absent.
func LostFields(want, got any) []string { return lostFields("$", want, got, nil) }

func lostFields(path string, want, got any, lost []string) []string {
	switch want := want.(type) {
	case map[string]any:
		if fields, ok := got.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if _, ok := fields[name]; ok || want[name] != nil {
					lost = lostFields(path+"."+name, want[name], fields[name], lost)
				}
			}
			return lost
		}
	case []any:
		if list, ok := got.([]any); ok && len(list) == len(want) {
			for i := range want {
				lost = lostFields(path+"."+strconv.Itoa(i), want[i], list[i], lost)
			}
			return lost
		}
	default:
		if sameScalar(want, got) {
			return lost
		}
	}
	return append(lost, fmt.Sprintf("%s: %v, want %v", path, got, want))
}

func sameScalar(want, got any) bool {
	switch want := want.(type) {
	case json.Number:
		number, _ := got.(json.Number)
		a, _ := want.Float64()
		b, err := number.Float64()
		return err == nil && a == b
	case string:
		text, ok := got.(string)
		return ok && (text == want || len(want) == 36 && strings.EqualFold(text, want) || sameInstant(want, text))
	}
	return want == got
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
