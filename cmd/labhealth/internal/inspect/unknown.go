package inspect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

// countUnknown counts the fields of an event that its types do not have.
func countUnknown(e *webhooks.Event, body []byte) int {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return 0
	}
	unknown := 0
	for name, value := range fields {
		switch name {
		case "event_type", "team_id", "user_id", "client_user_id":
		case "data":
			unknown += unknownIn(dataType(e.Data), value, 0)
		default:
			unknown++
		}
	}
	return unknown
}

// batch has the fields of *webhooks.Samples, which has no tags. Samples have fields of their own
// kind: see webhooks.SampleDetails.
type batch struct {
	UserID   any               `json:"user_id"`
	Source   webhooks.Source   `json:"source"`
	SourceID any               `json:"source_id"`
	Provider *webhooks.Source  `json:"provider"`
	Data     []json.RawMessage `json:"data"`
}

// dataType returns the type of the data, or nil if every field is allowed.
func dataType(p webhooks.Payload) reflect.Type {
	switch v := p.(type) {
	case *webhooks.Unknown, *webhooks.Summary, *webhooks.ContinuousQueryChanges:
		return nil
	case *webhooks.Samples:
		return reflect.TypeFor[batch]()
	case *webhooks.LabOrder:
		return reflect.TypeFor[labhealth.Order]()
	case *webhooks.LabAppointment:
		return reflect.TypeFor[labhealth.Appointment]()
	case *webhooks.ProviderDevice:
		return reflect.TypeFor[labhealth.Device]()
	default:
		return reflect.TypeOf(v).Elem()
	}
}

// unknownIn counts the fields in a value, at any depth, that its type does not have.
func unknownIn(t reflect.Type, value json.RawMessage, depth int) (unknown int) {
	if t != nil && t.Kind() == reflect.Pointer {
		return unknownIn(t.Elem(), value, depth)
	}
	value = bytes.TrimSpace(value)
	if t == nil || len(value) == 0 || depth > 20 {
		return 0
	}
	switch {
	case t.Kind() == reflect.Slice && value[0] == '[':
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) != nil {
			return 0
		}
		for _, element := range elements {
			unknown += unknownIn(t.Elem(), element, depth+1)
		}
	case t.Kind() == reflect.Struct && value[0] == '{':
		unknown = unknownFields(fieldsOf(t), value, depth)
	}
	return unknown
}

// unknownFields counts the fields of an object that are not known, and those within known ones.
func unknownFields(known map[string]reflect.Type, object json.RawMessage, depth int) (unknown int) {
	var fields map[string]json.RawMessage
	if known == nil || json.Unmarshal(object, &fields) != nil {
		return 0
	}
	for name, field := range fields {
		if of, ok := known[name]; ok {
			unknown += unknownIn(of, field, depth+1)
		} else {
			unknown++
		}
	}
	return unknown
}

var fieldCache sync.Map // of maps, by reflect.Type

// fieldsOf returns the types of the fields by their JSON names, or nil if the type decodes itself.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldCache.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields, tagged := map[string]reflect.Type{}, false
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			fields[name], tagged = f.Type, true
		}
	}
	if !tagged {
		fields = nil
	}
	fieldCache.Store(t, fields)
	return fields
}

// fieldOf returns an exported field of the struct that p points to.
func fieldOf[T any](p webhooks.Payload, name string) (value T, ok bool) {
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
