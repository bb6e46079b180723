package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go/webhooks"
)

// maxUnknown is how many unknown fields are listed.
const maxUnknown = 100

// unknownFinder finds fields of a document that the types of the library do not have.
type unknownFinder struct {
	found []string
	seen  map[string]bool
}

func (f *unknownFinder) add(path string) {
	if !f.seen[path] && len(f.found) < maxUnknown {
		f.seen[path] = true
		f.found = append(f.found, path)
	}
}

var envelopeFields = set("event_type", "team_id", "user_id", "client_user_id", "data")

func (f *unknownFinder) envelope(fields map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !envelopeFields[name] {
			f.add(name)
		}
	}
}

// sampleFields are the fields of a sample that webhooks.Sample has without tags.
var sampleFields = set("timestamp", "start", "end", "value", "systolic", "diastolic", "timezone_offset", "type", "unit")

// value compares the JSON of a payload with its type.
func (f *unknownFinder) value(document json.RawMessage, payload webhooks.Payload, path string) {
	samples, ok := payload.(*webhooks.Samples)
	if !ok {
		f.walk(document, reflect.ValueOf(payload), path)
		return
	}
	known := maps.Clone(sampleFields)
	for name := range jsonFields(reflect.ValueOf(webhooks.SampleDetails{})) {
		known[name] = true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(document, &fields) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch name {
		case "user_id", "source_id":
		case "source":
			f.walk(fields[name], reflect.ValueOf(samples.Source), path+"."+name)
		case "provider":
			f.walk(fields[name], reflect.ValueOf(samples.Provider), path+"."+name)
		case "data":
			f.samples(fields[name], known, path+".data.*.")
		default:
			f.add(path + "." + name)
		}
	}
}

func (f *unknownFinder) samples(document json.RawMessage, known map[string]bool, path string) {
	var elements []map[string]json.RawMessage
	if json.Unmarshal(document, &elements) != nil {
		return
	}
	for _, element := range elements {
		for _, name := range slices.Sorted(maps.Keys(element)) {
			if !known[name] {
				f.add(path + name)
			}
		}
	}
}

// walk compares the JSON of a value with the value that was decoded from it.
func (f *unknownFinder) walk(document json.RawMessage, v reflect.Value, path string) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		f.object(document, jsonFields(v), path)
	case reflect.Slice:
		var elements []json.RawMessage
		if json.Unmarshal(document, &elements) != nil || len(elements) != v.Len() {
			return
		}
		for i, element := range elements {
			f.walk(element, v.Index(i), path+".*")
		}
	case reflect.Map:
		var elements map[string]json.RawMessage
		if v.Type().Key().Kind() != reflect.String || json.Unmarshal(document, &elements) != nil {
			return
		}
		for name, element := range elements {
			value := v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
			if value.IsValid() {
				f.walk(element, value, path+".*")
			}
		}
	}
}

// object compares the JSON of a struct with its fields. Types without tags, such as times, have
// none.
func (f *unknownFinder) object(document json.RawMessage, known map[string]reflect.Value, path string) {
	var fields map[string]json.RawMessage
	if len(known) == 0 || json.Unmarshal(document, &fields) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if field, ok := known[name]; ok {
			f.walk(fields[name], field, path+"."+name)
		} else {
			f.add(path + "." + name)
		}
	}
}

// jsonFields returns the fields of a struct by their names in JSON.
func jsonFields(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Anonymous && name == "" && v.Field(i).Kind() == reflect.Struct:
			maps.Copy(fields, jsonFields(v.Field(i)))
		case name != "":
			fields[name] = v.Field(i)
		}
	}
	return fields
}
