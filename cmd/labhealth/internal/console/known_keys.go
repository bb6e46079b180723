package console

import (
	"reflect"
	"strings"
	"sync"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
	"github.com/labhealth/labhealth-go/webhooks"
)

// knownKeys returns the JSON names, in lower case, of the fields that the library has in
// parameters, results and events, and those of the errors of the service. The value of any other
// field may be about a patient, and is hidden.
var knownKeys = sync.OnceValue(func() map[string]bool {
	keys := knownNames{names: set("event_type", "team_id", "user_id", "client_user_id", "data", "detail", "loc", "msg", "type", "message"), seen: map[reflect.Type]bool{}}
	for _, client := range []reflect.Type{reflect.TypeFor[labhealth.Client](), reflect.TypeFor[management.Client]()} {
		for i := range client.NumField() {
			service := client.Field(i).Type
			for j := range service.NumMethod() {
				keys.add(service.Method(j).Type)
			}
		}
	}
	for _, t := range webhooks.EventTypes() {
		// Data that is empty has no type.
		if event, err := webhooks.Parse([]byte(`{"event_type":"` + string(t) + `","data":{"other":1}}`)); err == nil {
			keys.add(reflect.TypeOf(event.Data))
		}
	}
	return keys.names
})

type knownNames struct {
	names map[string]bool
	seen  map[reflect.Type]bool
}

func (k *knownNames) add(t reflect.Type) {
	if k.seen[t] {
		return
	}
	k.seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		k.add(t.Elem())
	case reflect.Func: // also the yield of an iterator
		for i := range t.NumIn() {
			k.add(t.In(i))
		}
		for i := range t.NumOut() {
			k.add(t.Out(i))
		}
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" {
				k.names[strings.ToLower(name)] = true
			}
			k.add(t.Field(i).Type)
		}
	}
}

// IsKnownField reports whether the library has a field with this name. Any other name may be data,
// such as that of a person, and is hidden.
func IsKnownField(name string) bool {
	name = strings.ToLower(name)
	return knownKeys()[name] || PatientFields[name]
}

// HideNames returns the path of a field with a mask in place of the names that the library does not
// have. Indexes and their placeholder * remain.
func HideNames(path, mask string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		isIndex := name == "*" || len(name) <= 6 && strings.Trim(name, "0123456789") == ""
		if !isIndex && !IsKnownField(name) {
			names[i] = mask
		}
	}
	return strings.Join(names, ".")
}

// hidesKey reports whether the values of a field are hidden, whatever they are.
func hidesKey(name string) bool {
	name = strings.ToLower(name)
	return PatientFields[name] || !knownKeys()[name]
}

// hidesName reports whether a field of an object has the name of a person or of what is theirs,
// such as a phone. The names of tests, laboratories and markers are shown.
func hidesName(parent, name string) bool {
	if !strings.EqualFold(name, "name") {
		return false
	}
	switch strings.ToLower(parent) {
	case "", "data", "source", "user", "users":
		return true
	}
	return false
}

// hidesText reports whether a string is hidden that is in the place of a number or a time.
func hidesText(name, raw string) bool {
	name = strings.ToLower(name)
	switch {
	case !strings.HasPrefix(raw, `"`):
		return false
	case name == "value":
		return true
	case name == "timestamp", name == "date", strings.HasSuffix(name, "_at"), strings.HasSuffix(name, "_date"):
		return strings.Trim(raw, `"0123456789-:+.TZ `) != ""
	case strings.HasPrefix(name, "has_"), strings.HasPrefix(name, "is_"):
		return true
	}
	return false
}
