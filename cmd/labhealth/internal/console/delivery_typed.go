package console

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Limits of the typed view.
const (
	maxTypedFields   = 300
	maxTypedElements = 20 // of one list
	maxTypedDepth    = 6
)

// eventView is the data of the partial "typed-event": what webhooks.Parse makes of a body.
type eventView struct {
	Err    string // why the body is no event
	Type   string // Go type of the data
	Fields []eventField
	More   int
	Keys   []string
	Kept   []keptField
	Hidden bool
}

// eventField is a field of a Go value, with the path that a program uses.
type eventField struct {
	Path, Text string
	Hidden     bool
}

// keptField is a malformed or unknown field, which the library keeps as it was received.
type keptField struct{ Path, Text string }

// newEventView returns what a program reads. Fields that are zero are left out.
func newEventView(body []byte, event *webhooks.Event, reveal bool) eventView {
	if event == nil {
		_, err := webhooks.Parse(body)
		return eventView{Err: fmt.Sprint(err)}
	}
	v := eventView{Type: fmt.Sprintf("%T", event.Data)}
	w := &eventWriter{view: &v, reveal: reveal}
	w.add("Type", string(event.Type))
	for _, id := range []struct {
		name string
		id   uuid.UUID
	}{{"TeamID", event.TeamID}, {"UserID", event.UserID}} {
		if id.id != uuid.Nil {
			w.add(id.name, id.id.String())
		}
	}
	if event.ClientUserID != "" {
		w.add("ClientUserID", strconv.Quote(event.ClientUserID))
	}
	if unknown, ok := event.Data.(*webhooks.Unknown); ok {
		w.add("Data.Raw", sizeOf(len(unknown.Raw)))
		if unknown.Err != nil {
			w.add("Data.Err", unknown.Err.Error())
		}
	} else {
		w.value("Data", reflect.ValueOf(event.Data), 0, false)
	}
	v.Keys = keysText(event)
	v.Kept = keptFields(event, reveal)
	return v
}

func keysText(event *webhooks.Event) []string {
	keys, err := event.Keys()
	var text []string
	if err != nil {
		text = append(text, err.Error())
	}
	if keys.Summary != (webhooks.SummaryKey{}) {
		text = append(text, fmt.Sprintf("Summary: %s %s of user %s", keys.Summary.Resource, keys.Summary.ID, keys.Summary.UserID))
	}
	if n := len(keys.Samples); n > 0 {
		k := keys.Samples[0]
		text = append(text, fmt.Sprintf("Samples: %s, the first is %s of %s at %s", countOf(n, "key"), visible(k.Resource), visible(firstChars(k.Provider+" "+k.SourceType, 80)),
			time.Unix(0, k.UnixNano).UTC().Format(time.RFC3339)))
	}
	return text
}

// keptFields lists what Malformed and the comparison with the types find.
func keptFields(event *webhooks.Event, reveal bool) []keptField {
	var kept []keptField
	add := func(path, text string) {
		if !reveal {
			path = HideNames(path, mask)
		}
		if len(kept) < maxTypedFields {
			kept = append(kept, keptField{visible(firstChars(path, 200)), text})
		}
	}
	for _, m := range event.Malformed() {
		add(m.Path, "malformed: no "+m.Want)
	}
	for _, path := range inspect.UnknownFields(event) {
		add(path, "unknown field")
	}
	return kept
}

// keptPaths returns the paths that are marked in the body.
func keptPaths(event *webhooks.Event) map[string]bool {
	kept := map[string]bool{}
	if event == nil {
		return kept
	}
	if _, ok := event.Data.(*webhooks.Unknown); ok {
		kept["data"] = true
	}
	for _, m := range event.Malformed() {
		kept[m.Path] = true
	}
	for _, path := range inspect.UnknownFields(event) {
		kept[path] = true
	}
	return kept
}

// eventWriter lists the exported fields of a value.
type eventWriter struct {
	view   *eventView
	reveal bool
}

func (w *eventWriter) add(path, text string) { w.field(eventField{Path: path, Text: text}) }

func (w *eventWriter) field(f eventField) {
	if len(w.view.Fields) == maxTypedFields {
		w.view.More++
		return
	}
	f.Path, f.Text = visible(firstChars(f.Path, 120)), firstChars(visible(f.Text), 300)
	w.view.Fields = append(w.view.Fields, f)
}

// leaf adds a value without fields. Hidden ones are replaced.
func (w *eventWriter) leaf(path, text string, hidden bool) {
	if hidden && !w.reveal {
		w.view.Hidden = true
		w.field(eventField{path, mask, true})
		return
	}
	w.add(path, text)
}

func (w *eventWriter) value(path string, v reflect.Value, depth int, hidden bool) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if text, ok := leafText(v); ok {
		w.leaf(path, text, hidden)
		return
	}
	if sample, ok := v.Interface().(webhooks.Sample); ok {
		w.add(path, sampleFields(sample))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		w.structure(path, v, depth, hidden)
	case reflect.Slice, reflect.Array:
		for i := range min(v.Len(), maxTypedElements) {
			w.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i), depth+1, hidden)
		}
		if more := v.Len() - maxTypedElements; more > 0 {
			w.add(path+"[…]", countOf(more, "more element"))
		}
	case reflect.Map:
		w.leaf(path, countOf(v.Len(), "entry"), hidden)
	default:
		w.leaf(path, fmt.Sprintf("%#v", v.Interface()), hidden)
	}
}

// sampleFields lists the fields of a sample that are not zero.
func sampleFields(s webhooks.Sample) string {
	var fields []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous || v.Field(i).IsZero() || strings.HasPrefix(field.Name, "Has") {
			continue
		}
		text, ok := leafText(v.Field(i))
		if !ok {
			text = fmt.Sprint(v.Field(i).Interface())
		}
		if field.Name == "Text" {
			text = mask
		}
		fields = append(fields, field.Name+": "+text)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// leafText returns the text of a value that has no fields to show.
func leafText(v reflect.Value) (string, bool) {
	switch x := v.Interface().(type) {
	case time.Time:
		return x.Format(time.RFC3339Nano), true
	case uuid.UUID:
		return x.String(), true
	case json.Number:
		return x.String(), true
	case json.RawMessage:
		return sizeOf(len(x)) + " of JSON", true
	case fmt.Stringer:
		if v.Kind() != reflect.Struct || v.Type().PkgPath() != "github.com/labhealth/labhealth-go" || v.NumField() == 0 || !v.Type().Field(0).IsExported() {
			return x.String(), true
		}
	}
	if v.Kind() == reflect.String {
		return strconv.Quote(v.String()), true
	}
	return "", false
}

func (w *eventWriter) structure(path string, v reflect.Value, depth int, hidden bool) {
	if depth == maxTypedDepth {
		w.add(path, "…")
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || v.Field(i).IsZero() || isPlumbing(field) {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := path + "." + field.Name
		if field.Anonymous {
			inner = path
		}
		w.value(inner, v.Field(i), depth+1, hidden || name != "" && hidesKey(name) || hidesName(lastName(path), name))
	}
}

// lastName returns the name of the field of a path, as hidesName knows it.
func lastName(path string) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	name, _, _ = strings.Cut(name, "[")
	return name
}

// isPlumbing reports whether a field is how the library keeps what was received.
func isPlumbing(f reflect.StructField) bool {
	switch f.Name {
	case "RawObject", "Redacted", "RawSample":
		return f.Anonymous
	}
	return false
}
