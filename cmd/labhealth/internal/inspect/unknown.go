package inspect

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Limits of the search for unknown fields.
const (
	maxUnknown         = 1000 // fields that are found
	maxUnknownDepth    = 20
	maxUnknownElements = 1000 // of a list that are looked at
)

// envelopeFields are the fields of an event.
var envelopeFields = []string{"event_type", "team_id", "user_id", "client_user_id", "data"}

// UnknownFields returns the paths of the fields of an event that its types do not have, such as
// data.events.1.extra, first those beside the data. It returns at most 1,000.
func UnknownFields(e *webhooks.Event) (paths []string) {
	if order, ok := e.Data.(*webhooks.LabOrder); ok && e.Type == "" { // it has no envelope
		return UnknownFieldsOf(order.Order, e.RawJSON())
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.RawJSON(), &fields) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(envelopeFields, name) && len(paths) < maxUnknown {
			paths = append(paths, name)
		}
	}
	return appendUnknown(paths, reflect.ValueOf(typedData(e.Data)), fields["data"], "data", 0)
}

// UnknownFieldsOf returns the paths of the fields of a document that v, which was decoded from it,
// does not have, like UnknownFields.
func UnknownFieldsOf(v any, document []byte) []string {
	return appendUnknown(nil, reflect.ValueOf(v), document, "", 0)
}

// batch has the fields of *webhooks.Samples, which has no tags.
type batch struct {
	UserID   any              `json:"user_id"`
	Source   webhooks.Source  `json:"source"`
	SourceID any              `json:"source_id"`
	Provider *webhooks.Source `json:"provider"`
	Data     []sample         `json:"data"`
}

// sample has the fields of webhooks.Sample, which has no tags, and those of the kinds of samples.
type sample struct {
	webhooks.SampleDetails

	Timestamp      any `json:"timestamp"`
	Start          any `json:"start"`
	End            any `json:"end"`
	Value          any `json:"value"`
	Systolic       any `json:"systolic"`
	Diastolic      any `json:"diastolic"`
	TimezoneOffset any `json:"timezone_offset"`
	Type           any `json:"type"`
	Unit           any `json:"unit"`
}

// typedData returns a value that has the fields of the data, or nil if every field is allowed.
func typedData(p webhooks.Payload) any {
	switch v := p.(type) {
	case nil, *webhooks.Unknown, *webhooks.Summary, *webhooks.ContinuousQueryChanges:
		return nil
	case *webhooks.Samples:
		return batch{Source: v.Source, Provider: v.Provider, Data: make([]sample, min(len(v.Data), maxUnknownElements))}
	case *webhooks.LabOrder:
		return v.Order
	case *webhooks.LabAppointment:
		return v.Appointment
	case *webhooks.ProviderDevice:
		return v.Device
	default:
		return v
	}
}

// appendUnknown appends the paths of the fields of a JSON value, at any depth, that the value that
// was decoded from it does not have.
func appendUnknown(paths []string, v reflect.Value, document json.RawMessage, path string, depth int) []string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	document = bytes.TrimSpace(document)
	if !v.IsValid() || len(document) == 0 || depth > maxUnknownDepth || len(paths) >= maxUnknown {
		return paths
	}
	switch {
	case v.Kind() == reflect.Slice && document[0] == '[':
		var elements []json.RawMessage
		if json.Unmarshal(document, &elements) != nil {
			return paths
		}
		for i := range min(len(elements), v.Len(), maxUnknownElements) {
			paths = appendUnknown(paths, v.Index(i), elements[i], join(path, strconv.Itoa(i)), depth+1)
		}
	case v.Kind() == reflect.Struct && document[0] == '{':
		paths = appendUnknownFields(paths, v, document, path, depth)
	}
	return paths
}

// appendUnknownFields appends the fields of an object that are not known, and those within known
// ones.
func appendUnknownFields(paths []string, v reflect.Value, object json.RawMessage, path string, depth int) []string {
	known := fieldsOf(v.Type())
	var fields map[string]json.RawMessage
	if known == nil || json.Unmarshal(object, &fields) != nil {
		return paths
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		index, ok := known[name]
		if !ok {
			if len(paths) < maxUnknown {
				paths = append(paths, join(path, name))
			}
			continue
		}
		if field, err := v.FieldByIndexErr(index); err == nil { // not within an embedded nil pointer
			paths = appendUnknown(paths, field, fields[name], join(path, name), depth+1)
		}
	}
	return paths
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var fieldCache sync.Map // of maps, by reflect.Type

// fieldsOf returns the indexes of the fields by their JSON names, or nil if the type decodes
// itself.
func fieldsOf(t reflect.Type) map[string][]int {
	if known, ok := fieldCache.Load(t); ok {
		return known.(map[string][]int)
	}
	fields, tagged := map[string][]int{}, false
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			fields[name], tagged = f.Index, true
		}
	}
	if !tagged {
		fields = nil
	}
	fieldCache.Store(t, fields)
	return fields
}

// FieldOf returns an exported field of the struct that p points to.
func FieldOf[T any](p webhooks.Payload, name string) (value T, ok bool) {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return value, false
	}
	f := v.Elem().FieldByName(name)
	if !f.IsValid() {
		return value, false
	}
	value, ok = f.Interface().(T)
	return value, ok
}
