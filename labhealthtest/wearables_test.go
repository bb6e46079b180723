package labhealthtest_test

import (
	"encoding/base64"
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
	referenceEnums = reference.Enumerations
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

// A phone and a watch of one provider have summaries of their own, whatever the resource is.
func TestSummariesOfSources(t *testing.T) {
	srv := newServer(t)
	for _, resource := range []string{"activity", "body", "electrocardiogram", "meal", "menstrual_cycle", "profile", "sleep", "sleep_cycle", "workouts"} {
		user := srv.AddUser(resource)
		add := func(provider, sourceType string) uuid.UUID {
			id, err := srv.AddSummary(user, resource, labhealthtest.FromSource(provider, sourceType))
			noError(t, err)
			return id
		}
		phone, watch, other := add("apple_health_kit", "phone"), add("apple_health_kit", "watch"), add("fitbit", "watch")
		if phone == watch || watch == other || phone == other {
			t.Errorf("%s: the summaries of three sources are %s, %s and %s", resource, phone, watch, other)
		}
		if again := add("apple_health_kit", "phone"); again != phone {
			t.Errorf("%s: another version has the ID %s, want %s", resource, again, phone)
		}
		path := "/v2/summary/" + resource + "/" + user.String() + "?start_date=2025-03-01&provider=apple_health_kit"
		got := do(t, srv, "GET", path, "").body
		if want := resource != "profile"; !strings.Contains(got, phone.String()) || strings.Contains(got, watch.String()) != want {
			t.Errorf("%s: %s", path, got)
		}
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
		former := []reference.Event{
			{Type: "historical.data.hypnogram.created", Data: "HistoricalPullCompleted"},
			{Type: "historical.data.device.created", Data: "HistoricalPullCompleted"},
			{Type: "labtest.appointment.update", Data: "ClientFacingAppointment"},
		}
		for _, e := range append(reference.Events(), former...) {
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
			if e.Type == "labtest.result.critical" && data["interpretation"] != "critical" {
				t.Errorf("the interpretation of a critical result is %v", data["interpretation"])
			}
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
	for _, err := range []error{srv.SendEvent(ada, "daily.data.moon.created"), srv.SendEvent(ada, "daily.data.hypnogram.created"), srv.SendEvent(uuid.MustParse(unknownID), "labtest.order.created")} {
		if err == nil {
			t.Error("SendEvent succeeds")
		}
	}
}

func TestListSummaries(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	add := func(resource, day string, opts ...labhealthtest.DataOption) string {
		t.Helper()
		at, err := time.Parse(time.DateOnly, day)
		noError(t, err)
		id, err := srv.AddSummary(ada, resource, append(opts, labhealthtest.StartingAt(at))...)
		noError(t, err)
		return id.String()
	}
	second, first := add("sleep", "2025-03-02"), add("sleep", "2025-03-01")
	fitbit := add("sleep", "2025-03-02", labhealthtest.FromSource("fitbit", "watch"))
	meal := add("meal", "2025-03-02")
	if again := add("sleep", "2025-03-01"); again != first {
		t.Errorf("another version has the ID %s", again)
	}
	ids := func(list, path string) string {
		t.Helper()
		got := do(t, srv, "GET", "/v2/summary/"+strings.Replace(path, "USER", ada.String(), 1), "")
		if got.status != 200 {
			t.Errorf("%s: status %d", path, got.status)
		}
		var ids []string
		for _, summary := range decode[map[string][]struct{ ID string }](t, got)[list] {
			ids = append(ids, summary.ID)
		}
		return strings.Join(ids, " ")
	}
	for path, want := range map[string]string{
		"sleep/USER?start_date=2025-03-01":                                  first + " " + second + " " + fitbit,
		"sleep/USER?start_date=2025-03-01&provider=oura":                    first + " " + second,
		"sleep/USER?start_date=2025-03-01&provider=":                        first + " " + second + " " + fitbit,
		"sleep/USER?start_date=2025-02-01&end_date=2025-03-01":              first,
		"sleep/USER?start_date=2025-03-02T00:00:00Z&end_date=2025-03-02":    second + " " + fitbit,
		"sleep/USER?start_date=2025-03-03":                                  "",
		"sleep/USER?start_date=2025-03-01&provider=garmin":                  "",
		"sleep_cycle/USER?start_date=2025-03-01":                            "",
		"sleep/" + srv.AddUser("grace").String() + "?start_date=2025-03-01": "",
	} {
		if got := ids(strings.Split(path, "/")[0], path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := ids("meals", "meal/USER?start_date=2025-03-01"); got != meal {
		t.Errorf("meals: %s", got)
	}

	check(t, do(t, srv, "GET", "/v2/summary/profile/"+ada.String(), ""), 404, `{"detail":"Profile not found"}`)
	profile := add("profile", "2025-03-01")
	if again := add("profile", "2025-03-04"); again != profile {
		t.Error("there are two profiles")
	}
	got := decode[struct{ ID, Gender string }](t, do(t, srv, "GET", "/v2/summary/profile/"+ada.String(), ""))
	if got.ID != profile || got.Gender != "female" {
		t.Errorf("profile %v", got)
	}

	// A sleep has a stream, and its cycle refers to it.
	stream := do(t, srv, "GET", "/v2/timeseries/sleep/"+first+"/stream", "")
	checkComponent(t, "stream", "ClientFacingSleepStream", decodeJSON(t, stream.body))
	check(t, do(t, srv, "GET", "/v2/timeseries/sleep/"+unknownID+"/stream", ""), 404, `{"detail":"Sleep not found"}`)
	add("sleep_cycle", "2025-03-01")
	cycle := do(t, srv, "GET", "/v2/summary/sleep_cycle/"+ada.String()+"?start_date=2025-03-01", "").body
	if !strings.Contains(cycle, `"sleep_id":"`+first+`"`) {
		t.Errorf("sleep cycle %s", cycle)
	}
}

func TestListSamples(t *testing.T) {
	srv := newServer(t, labhealthtest.WithSamplesPerPage(3))
	ada := srv.AddUser("ada")
	path := "/v2/timeseries/" + ada.String() + "/body_weight/grouped?start_date="
	noError(t, srv.AddSamples(ada, "weight", 4, labhealthtest.StartingAt(noon)))
	noError(t, srv.AddSamples(ada, "body_weight", 1, labhealthtest.StartingAt(noon), labhealthtest.FromSource("withings", "scale")))
	noError(t, srv.AddSamples(ada, "body_weight", 1, labhealthtest.StartingAt(noon), labhealthtest.FromSource("withings", "")))
	read := func(query string) (text string, next *string) {
		t.Helper()
		got := do(t, srv, "GET", path+query, "")
		if got.status != 200 {
			t.Fatalf("%s: status %d: %s", query, got.status, got.body)
		}
		page := decode[struct {
			Groups map[string][]struct {
				Source struct{ Type string }
				Data   []struct{ Timestamp time.Time }
			}
			NextCursor *string `json:"next_cursor"`
		}](t, got)
		var lines []string
		for provider, groups := range page.Groups {
			for _, group := range groups {
				for _, sample := range group.Data {
					lines = append(lines, sample.Timestamp.Format("15:04")+" "+provider+" "+group.Source.Type)
				}
			}
		}
		slices.Sort(lines)
		return strings.Join(lines, ", "), page.NextCursor
	}
	for query, want := range map[string]string{
		"2025-03-04&provider=withings":                                           "12:00 withings , 12:00 withings scale",
		"2025-03-04T12:05:00Z":                                                   "12:05 oura ring, 12:10 oura ring, 12:15 oura ring",
		"2025-03-01&end_date=2025-03-03":                                         "",
		"2025-03-04T12:05:00Z&end_date=2025-03-04T14:10:00%2B02:00":              "12:05 oura ring, 12:10 oura ring",
		"2025-03-04T12:06:00Z&end_date=2025-03-04":                               "12:10 oura ring, 12:15 oura ring",
		"0001-01-01&end_date=9999-12-31&provider=withings":                       "12:00 withings , 12:00 withings scale",
		"2025-03-04&next_cursor=" + encodeCursor(`[0,"",""]`) + "&provider=oura": "12:00 oura ring, 12:05 oura ring, 12:10 oura ring",
	} {
		if got, _ := read(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	first, next := read("2025-03-04")
	second, last := read("2025-03-04&next_cursor=" + *next)
	if first != "12:00 oura ring, 12:00 withings , 12:00 withings scale" || second != "12:05 oura ring, 12:10 oura ring, 12:15 oura ring" || last != nil {
		t.Errorf("pages %s and %s", first, second)
	}

	// A sample of the same source and time is replaced.
	before := do(t, srv, "GET", path+"2025-03-04", "").body
	noError(t, srv.AddSamples(ada, "weight", 4, labhealthtest.StartingAt(noon)))
	if after := do(t, srv, "GET", path+"2025-03-04", "").body; len(after) != len(before) || after == before {
		t.Errorf("%s\nwas replaced by\n%s", before, after)
	}
}

func encodeCursor(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestWearableRejections(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada").String()
	missing := `{"detail":[{"type":"missing","loc":["query","start_date"],"msg":"Field required","input":null}]}`
	for path, want := range map[string]response{
		"/v2/summary/sleep/" + ada:                                                       {status: 422, body: missing},
		"/v2/timeseries/" + ada + "/hrv/grouped":                                         {status: 422, body: missing},
		"/v2/summary/moon/" + ada + "?start_date=2025-03-01":                             {status: 404, body: `{"detail":"Not Found"}`},
		"/v2/timeseries/" + ada + "/weight/grouped?start_date=2025-03-01":                {status: 404, body: `{"detail":"Not Found"}`},
		"/v2/summary/sleep/" + unknownID + "?start_date=2025-03-01":                      {status: 404, body: `{"detail":"User not found"}`},
		"/v2/timeseries/" + unknownID + "/hrv/grouped?start_date=2025-03-01":             {status: 404, body: `{"detail":"User not found"}`},
		"/v2/timeseries/" + ada + "/hrv/grouped?start_date=2025-03-01&next_cursor=x":     {status: 400, body: `{"detail":"Invalid cursor"}`},
		"/v2/timeseries/" + ada + "/hrv/grouped?start_date=2025-03-01&cursor=eyJhIjoxfQ": {status: 400, body: `{"detail":"Invalid cursor"}`},
	} {
		check(t, do(t, srv, "GET", path, ""), want.status, want.body)
	}
	for _, path := range []string{"/v2/summary/sleep/x?start_date=2025-03-01", "/v2/timeseries/" + ada + "/hrv/grouped?start_date=soon", "/v2/timeseries/sleep/x/stream"} {
		if got := do(t, srv, "GET", path, ""); got.status != 422 {
			t.Errorf("%s: status %d", path, got.status)
		}
	}
	if _, err := srv.AddSummary(uuid.MustParse(ada), "moon"); err == nil {
		t.Error("a summary of an unknown resource is added")
	}
	if err := srv.AddSamples(uuid.MustParse(ada), "moon", 1); err == nil {
		t.Error("samples of an unknown resource are added")
	}
	if err := srv.AddSamples(uuid.MustParse(unknownID), "hrv", 1); err == nil {
		t.Error("samples of an unknown user are added")
	}
}

// Each version of the samples differs from the one before in every value, whoever the user is.
func TestVersionsOfSamplesDiffer(t *testing.T) {
	for seed := range uint64(20) {
		srv := newServer(t, labhealthtest.WithSeed(seed))
		user := srv.AddUser("user")
		for _, resource := range []string{"glucose", "heartrate", "steps", "distance", "calories_active"} {
			var before []float64
			for range 4 {
				if err := srv.AddSamples(user, resource, 288, labhealthtest.StartingAt(noon)); err != nil {
					t.Fatal(err)
				}
				page := decode[struct {
					Groups map[string][]struct{ Data []struct{ Value float64 } }
				}](t, do(t, srv, "GET", "/v2/timeseries/"+user.String()+"/"+resource+"/grouped?start_date=2020-01-01&end_date=2030-01-01", ""))
				var now []float64
				for _, sample := range page.Groups["oura"][0].Data {
					now = append(now, sample.Value)
				}
				for i := range before {
					if before[i] == now[i] {
						t.Fatalf("%s of seed %d: two versions have %v", resource, seed, now[i])
					}
				}
				if len(now) != 288 {
					t.Fatalf("%d samples", len(now))
				}
				before = now
			}
		}
	}
}
