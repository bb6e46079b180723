// Prints the fields of values without patient data.

package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"time"
)

// maxElements limits how many elements of a list or a map are printed.
const maxElements = 3

// PrintFields prints the fields of a struct, as [LogFields] logs them, ignoring the verb and the
// flags.
//
//go:noinline // as Print
func PrintFields(s fmt.State, v any) { Print(s, fields(v)) }

// LogFields returns the type and the exported fields of a struct, with pointers dereferenced.
// Absent fields are left out, the received JSON and other bytes are shown as their number, and
// values that format themselves, such as redacted ones, do so.
//
//go:noinline // as Print
func LogFields(v any) slog.Value { return slog.StringValue(fields(v)) }

func fields(v any) string {
	var b bytes.Buffer // the compiler copies the methods of a strings.Builder into each call
	writeStruct(&b, reflect.ValueOf(v))
	return b.String()
}

func writeStruct(b *bytes.Buffer, v reflect.Value) {
	b.WriteString(v.Type().String() + "{")
	separator := ""
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Tag.Get("json") == "-" || !field.IsExported() || isAbsent(v.Field(i)) {
			continue
		}
		b.WriteString(separator + field.Name + ": ")
		writeValue(b, v.Field(i))
		separator = ", "
	}
	b.WriteString("}")
}

// isAbsent reports whether a field has no value. Zero numbers and false are values.
func isAbsent(v reflect.Value) bool {
	return v.IsZero() && v.Kind() != reflect.Bool && !v.CanInt() && !v.CanFloat()
}

func writeValue(b *bytes.Buffer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		writeValue(b, v.Elem())
		return
	}
	switch x := v.Interface().(type) {
	case fmt.Formatter:
		fmt.Fprint(b, x)
		return
	case json.RawMessage: // a Stringer since Go 1.27
		writeList(b, v)
		return
	case time.Time:
		b.WriteString(x.Format(time.RFC3339Nano))
		return
	case fmt.Stringer:
		b.WriteString(x.String())
		return
	}
	switch v.Kind() {
	case reflect.String:
		b.WriteString(strconv.Quote(v.String()))
	case reflect.Slice:
		writeList(b, v)
	case reflect.Map:
		writeMap(b, v)
	case reflect.Struct:
		writeStruct(b, v)
	default:
		fmt.Fprint(b, v.Interface())
	}
}

func writeList(b *bytes.Buffer, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b.WriteString("<" + strconv.Itoa(v.Len()) + " bytes>")
		return
	}
	b.WriteString("[")
	for i := range min(v.Len(), maxElements) {
		if i > 0 {
			b.WriteString(", ")
		}
		writeValue(b, v.Index(i))
	}
	writeMore(b, v.Len())
	b.WriteString("]")
}

func writeMap(b *bytes.Buffer, v reflect.Value) {
	keys := v.MapKeys()
	b.WriteString("map[")
	for i := range min(len(keys), maxElements) {
		if i > 0 {
			b.WriteString(", ")
		}
		for j := range keys[i:] { // the least comes next
			if keys[i+j].String() < keys[i].String() {
				keys[i], keys[i+j] = keys[i+j], keys[i]
			}
		}
		writeValue(b, keys[i])
		b.WriteString(": ")
		writeValue(b, v.MapIndex(keys[i]))
	}
	writeMore(b, len(keys))
	b.WriteString("]")
}

func writeMore(b *bytes.Buffer, n int) {
	if n > maxElements {
		b.WriteString(", … " + strconv.Itoa(n-maxElements) + " more")
	}
}
