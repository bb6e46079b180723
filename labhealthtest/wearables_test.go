package labhealthtest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// referenceFields and referenceEnums are the components and enumerations of the team API.
var (
	referenceFields = sync.OnceValue(func() map[string][]reference.Field {
		fields := map[string][]reference.Field{}
		for _, f := range reference.Fields() {
			if f.API == "team" {
				fields[f.Component] = append(fields[f.Component], f)
			}
		}
		return fields
	})
	referenceEnums = sync.OnceValue(func() map[string][]string {
		values := map[string][]string{}
		for _, e := range reference.Enums() {
			if e.API == "team" {
				values[e.Name] = e.Values
			}
		}
		return values
	})
)

// checkComponent reports how a JSON object differs from a component: missing and unknown fields,
// and values of another type.
func checkComponent(t *testing.T, path, component string, value any) {
	t.Helper()
	all := referenceFields()
	object, ok := value.(map[string]any)
	if !ok {
		t.Errorf("%s is not an object", path)
		return
	}
	known := map[string]bool{}
	for _, f := range all[component] {
		known[f.Name] = true
		v, present := object[f.Name]
		switch {
		case !present && f.Required:
			t.Errorf("%s.%s is missing", path, f.Name)
		case !present:
		case v == nil:
			if !f.Nullable {
				t.Errorf("%s.%s is null", path, f.Name)
			}
		default:
			checkType(t, path+"."+f.Name, f.Type, v)
		}
	}
	for name := range object {
		if !known[name] {
			t.Errorf("%s.%s is not in the reference", path, name)
		}
	}
}

func checkType(t *testing.T, path, typ string, v any) {
	t.Helper()
	text, isText := v.(string)
	number, isNumber := v.(float64)
	ok := true
	switch element, isArray := strings.CutPrefix(typ, "array of "); {
	case isArray:
		list, isList := v.([]any)
		ok = isList
		for i, e := range list {
			checkType(t, fmt.Sprint(path, ".", i), element, e)
		}
	case strings.HasPrefix(typ, "map of "):
		object, isObject := v.(map[string]any)
		ok = isObject
		for name, e := range object {
			checkType(t, path+"."+name, strings.TrimPrefix(typ, "map of "), e)
		}
	case strings.HasPrefix(typ, "enum("):
		ok = slices.Contains(strings.Split(strings.Trim(typ[4:], "()"), ","), text)
	case typ == "any", typ == "object", typ != "Providers|Labs" && strings.Contains(typ, "|"):
	case typ == "const true":
		ok = v == true
	case typ == "const 1":
		ok = number == 1
	case strings.HasPrefix(typ, "const "):
		ok = decodeJSON(t, strings.TrimPrefix(typ, "const ")) == v
	case typ == "string":
		ok = isText
	case typ == "number":
		ok = isNumber
	case typ == "integer", typ == "int64":
		ok = isNumber && number == float64(int64(number))
	case typ == "boolean":
		_, ok = v.(bool)
	case strings.HasPrefix(typ, "uuid"):
		_, err := uuid.Parse(text)
		ok = err == nil
	case typ == "date":
		_, err := time.Parse(time.DateOnly, text)
		ok = err == nil
	case typ == "date-time":
		_, err := time.Parse(time.RFC3339, text)
		ok = err == nil
	case typ == "Providers|Labs":
		ok = slices.Contains(referenceEnums()["Providers"], text)
	case referenceFields()[typ] != nil && referenceFields()[typ][0].Name != "(itself)":
		checkComponent(t, path, typ, v)
	case referenceEnums()[typ] != nil:
		ok = slices.Contains(referenceEnums()[typ], text) || isNumber && slices.Contains(referenceEnums()[typ], fmt.Sprint(number))
	default:
		t.Errorf("%s has the type %s, which the test does not know", path, typ)
	}
	if !ok {
		t.Errorf("%s is %v, not of type %s", path, v, typ)
	}
}

// The server has data of every resource of the reference, in both shapes of a source, which is what
// the reference says it is, and sends it as events.
func TestWearableDataFollowsTheReference(t *testing.T) {
	srv := newServer(t)
	rec := newReceiver(t)
	noError(t, srv.DeliverTo(rec.URL))
	ada := srv.AddUser("ada")
	operations := 0
	for _, o := range reference.Operations() {
		parts := strings.Split(o.Path, "/")
		summary := strings.HasPrefix(o.Path, "/v2/summary/")
		if !summary && !strings.HasSuffix(o.Path, "/grouped") {
			continue
		}
		operations++
		resource := parts[3]
		opts := []labhealthtest.DataOption{labhealthtest.WithSourceShape(labhealthtest.SourceTyped)}
		query := "?start_date=2025-03-01"
		if summary {
			id, err := srv.AddSummary(ada, resource, opts...)
			noError(t, err)
			again, err := srv.AddSummary(ada, resource, opts...)
			noError(t, err)
			if again != id {
				t.Errorf("%s: another version has another ID", resource)
			}
		} else {
			resource = parts[4]
			noError(t, srv.AddSamples(ada, resource, 8, opts...))
			noError(t, srv.AddSamples(ada, resource, 8, opts...))
		}
		path := strings.Replace(o.Path, "{user_id}", ada.String(), 1)
		got := do(t, srv, "GET", path+query, "")
		if got.status != 200 {
			t.Errorf("%s: status %d", path, got.status)
		}
		checkComponent(t, resource, o.Response, decodeJSON(t, got.body))
	}
	if operations != 59 {
		t.Errorf("%d operations", operations)
	}

	noError(t, srv.Flush(t.Context()))
	data := map[string]string{}
	for _, e := range reference.Events() {
		data[e.Type] = e.Data
	}
	types := map[string]bool{}
	for _, e := range rec.take() {
		var event struct {
			EventType string    `json:"event_type"`
			UserID    uuid.UUID `json:"user_id"`
			Data      map[string]any
		}
		noError(t, json.Unmarshal([]byte(e.body), &event))
		if strings.HasPrefix(data[event.EventType], "Grouped") {
			delete(event.Data, "user_id") // of the interface specification
			delete(event.Data, "source_id")
		}
		checkComponent(t, event.EventType, data[event.EventType], event.Data)
		types[event.EventType] = true
	}
	if len(types) != 2*operations {
		t.Errorf("%d types of events for %d resources", len(types), operations)
	}
}

// Invented events of every type have the data of the reference, in each shape of a source.
func TestSendEventFollowsTheReference(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	if err := srv.SendEvent(ada, "labtest.order.created"); err == nil {
		t.Error("an event is sent to nobody")
	}
	rec := newReceiver(t)
	noError(t, srv.DeliverTo(rec.URL))
	for shape, fields := range map[labhealthtest.SourceShape][]string{
		labhealthtest.SourceComplete: {"slug", "name", "provider", "type"},
		labhealthtest.SourceNamed:    {"slug", "name"},
		labhealthtest.SourceTyped:    {"provider", "type"},
	} {
		for _, e := range reference.Events() {
			noError(t, srv.SendEvent(ada, e.Type, labhealthtest.WithSourceShape(shape), labhealthtest.FromSource("withings", "scale")))
			noError(t, srv.Flush(t.Context()))
			events := rec.take()
			if len(events) != 1 {
				t.Fatalf("%s: %d events", e.Type, len(events))
			}
			event := decodeJSON(t, events[0].body).(map[string]any)
			if event["event_type"] != e.Type || event["user_id"] != ada.String() || event["team_id"] != srv.TeamID.String() {
				t.Errorf("%s: %v", e.Type, event)
			}
			data, _ := event["data"].(map[string]any)
			if source, ok := data["source"].(map[string]any); ok && strings.HasPrefix(e.Type, "daily.data.") {
				for _, name := range []string{"slug", "name", "provider", "type"} {
					if _, ok := source[name]; ok != slices.Contains(fields, name) {
						t.Errorf("%s: the source has %s: %v", e.Type, name, ok)
					}
				}
			}
			if shape == labhealthtest.SourceNamed {
				continue
			}
			if strings.HasPrefix(e.Data, "Grouped") {
				delete(data, "user_id")
				delete(data, "source_id")
			}
			checkType(t, e.Type, e.Data, event["data"])
		}
	}
	for _, err := range []error{srv.SendEvent(ada, "daily.data.moon.created"), srv.SendEvent(uuid.MustParse(unknownID), "labtest.order.created")} {
		if err == nil {
			t.Error("SendEvent succeeds")
		}
	}
}
