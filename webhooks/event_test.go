package webhooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

var (
	adaID     = uuid.MustParse("0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4")
	teamID    = uuid.MustParse("5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3")
	summaryID = uuid.MustParse("3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11")
	workoutID = uuid.MustParse("77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5")
	orderID   = uuid.MustParse("c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5")
)

const clientUserID = "3Zru4O8cBEiwGTsXgUQGaQ=="

// A source has two shapes.
const (
	namedSource    = `{"name":"Example Ring","slug":"example_ring","logo":"https://example.com/ring.png"}`
	providerSource = `{"provider":"example_ring","type":"ring","app_id":null,"device_id":"d1b2c3d4-0a1b-4c2d-8e3f-405162738495","sport":null,"workout_id":null}`
)

var sources = []struct {
	name, text string
	want       Source
}{
	{"named", namedSource, Source{Name: "Example Ring", Slug: "example_ring", Logo: "https://example.com/ring.png"}},
	{"provider", providerSource, Source{Provider: "example_ring", Type: SourceTypeRing, DeviceID: new(uuid.MustParse("d1b2c3d4-0a1b-4c2d-8e3f-405162738495"))}},
}

// envelopes are the ways in which data is wrapped.
var envelopes = []struct {
	name, before, after string
	team, user          uuid.UUID
	client              string
}{
	{"with ids", `{"event_type":"%s","data":`, `,"team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",` +
		`"client_user_id":"3Zru4O8cBEiwGTsXgUQGaQ=="}`, teamID, adaID, clientUserID},
	{"without ids", `{"event_type":"%s","data":`, `}`, uuid.Nil, adaID, ""},
	{"data first", `{ "data":`, ` , "event_type" : "%s", "client_user_id":null, "new":[1,{"a":null}]}` + "\n", uuid.Nil, adaID, ""},
}

func wrap(n int, kind EventType, data string) []byte {
	e := envelopes[n]
	if strings.Contains(e.before, "%s") {
		return []byte(fmt.Sprintf(e.before, kind) + data + e.after)
	}
	return []byte(e.before + data + fmt.Sprintf(e.after, kind))
}

func mustParse(t testing.TB, body []byte) *Event {
	t.Helper()
	e, err := Parse(body)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return e
}

// checkLossless checks that the event and its data marshal to their raw bytes, alone and from a
// program's own struct.
func checkLossless(t *testing.T, e *Event, body, data string) {
	t.Helper()
	body = strings.Trim(body, " \n\t\r")
	if got := string(e.RawJSON()); got != body {
		t.Errorf("RawJSON: %s", got)
	}
	if got, err := e.MarshalJSON(); err != nil || string(got) != body {
		t.Errorf("MarshalJSON: %v\n got %s\nwant %s", err, got, body)
	}
	if got := string(e.Data.RawJSON()); got != data {
		t.Errorf("Data.RawJSON: %s", got)
	}
	if got, err := e.Data.MarshalJSON(); err != nil || string(got) != data {
		t.Errorf("Data.MarshalJSON: %v\n got %s\nwant %s", err, got, data)
	}
}

// eachEnvelope parses data in every envelope and both shapes of a source: the text SOURCE in data
// stands for it.
func eachEnvelope(t *testing.T, kind EventType, data string, check func(t *testing.T, e *Event, source Source)) {
	t.Helper()
	for _, source := range sources {
		if source.name != "named" && !strings.Contains(data, "SOURCE") {
			continue
		}
		for n, env := range envelopes {
			t.Run(source.name+" "+env.name, func(t *testing.T) {
				text := strings.ReplaceAll(data, "SOURCE", source.text)
				body := wrap(n, kind, text)
				before := time.Now()
				e := mustParse(t, body)
				if e.ReceivedAt.Before(before) || time.Since(e.ReceivedAt) > time.Minute {
					t.Errorf("ReceivedAt %v", e.ReceivedAt)
				}
				want := Event{Type: kind, TeamID: env.team, UserID: env.user, ClientUserID: env.client, ReceivedAt: e.ReceivedAt, Data: e.Data}
				if !strings.Contains(text, `"user_id":"`+adaID.String()) && env.team == uuid.Nil {
					want.UserID = uuid.Nil
				}
				if diff := cmp.Diff(&want, e); diff != "" {
					t.Error(diff)
				}
				if bad := e.Malformed(); bad != nil {
					t.Errorf("malformed: %v", bad)
				}
				checkLossless(t, e, string(body), text)
				check(t, e, source.want)
				for i := range body {
					body[i] = 'x' // Parse must have copied what it keeps
				}
				check(t, e, source.want)

				envelope, err := ParseEnvelope(wrap(n, kind, text))
				if diff := cmp.Diff(Envelope{e.Type, e.TeamID, e.UserID, e.ClientUserID}, envelope); err != nil || diff != "" {
					t.Errorf("ParseEnvelope: %v %s", err, diff)
				}
			})
		}
	}
}

var (
	noon      = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	halfPast  = time.Date(2025, 3, 1, 12, 30, 0, 0, time.UTC)
	pointText = `"timezone_offset":null,"type":null,"unit":"%s","timestamp":"2025-03-01T12:00:00+00:00"`
	spanText  = pointText + `,"start":"2025-03-01T12:00:00+00:00","end":"2025-03-01T12:30:00+00:00"`
)

// timeseries are all resources whose events carry samples, with their units, and what some have
// beyond the others.
var timeseries = []struct {
	resource, unit, form string
	extra                string
	want                 Sample
}{
	{"blood_oxygen", "%", pointText, `,"value":97`, Sample{Value: 97, HasValue: true}},
	{"weight", "kg", pointText, `,"value":71.25`, Sample{Value: 71.25, HasValue: true}},
	{"fat", "%", pointText, `,"value":18.4`, Sample{Value: 18.4, HasValue: true}},
	{"floors_climbed", "count", pointText, `,"value":3`, Sample{Value: 3, HasValue: true}},
	{"calories_basal", "kcal", pointText, `,"value":1612.5`, Sample{Value: 1612.5, HasValue: true}},
	{"glucose", "mmol/L", pointText, `,"value":5.4`, Sample{Value: 5.4, HasValue: true}},
	{"heartrate", "bpm", pointText, `,"value":63`, Sample{Value: 63, HasValue: true}},
	{"hrv", "rmssd", pointText, `,"value":39.518054167148996`, Sample{Value: 39.518054167148996, HasValue: true}},
	{"respiratory_rate", "bpm", pointText, `,"value":14.5`, Sample{Value: 14.5, HasValue: true}},
	{"stress_level", "%", pointText, `,"value":0`, Sample{Value: 0, HasValue: true}},
	{"water", "ml", pointText, `,"value":250`, Sample{Value: 250, HasValue: true}},
	{"cholesterol", "mmol/L", pointText, `,"value":4.9`, Sample{Value: 4.9, HasValue: true}},
	{"ige", "mmol/L", pointText, `,"value":1e-3`, Sample{Value: 0.001, HasValue: true}},
	{"igg", "mmol/L", pointText, `,"value":12.0`, Sample{Value: 12, HasValue: true}},
	{"electrocardiogram_voltage", "mV", pointText, `,"value":-0.25`, Sample{Value: -0.25, HasValue: true}},
	{"blood_pressure", "mmHg", pointText, `,"systolic":121,"diastolic":79`, Sample{Systolic: 121, Diastolic: 79}},
	{"calories_active", "kcal", spanText, `,"value":12.75`, Sample{Value: 12.75, HasValue: true}},
	{"steps", "count", spanText, `,"value":237`, Sample{Value: 237, HasValue: true}},
	{"distance", "m", spanText, `,"value":180.6`, Sample{Value: 180.6, HasValue: true}},
	{"caffeine", "g", spanText, `,"value":0.08`, Sample{Value: 0.08, HasValue: true}},
	{"carbohydrates", "g", spanText, `,"value":45`, Sample{Value: 45, HasValue: true}},
	{"mindfulness_minutes", "min", spanText, `,"value":30`, Sample{Value: 30, HasValue: true}},
	{"vo2_max", "mL/kg/min", spanText, `,"value":48.2`, Sample{Value: 48.2, HasValue: true}},
	{"afib_burden", "%", spanText, `,"value":2`, Sample{Value: 2, HasValue: true}},
	{"stand_duration", "min", spanText, `,"value":12`, Sample{Value: 12, HasValue: true}},
	{"sleep_apnea_alert", "count", spanText, `,"value":1`, Sample{Value: 1, HasValue: true}},
	{"wheelchair_push", "count", spanText, `,"value":310`, Sample{Value: 310, HasValue: true}},
	{"forced_expiratory_volume_1", "L", spanText, `,"value":3.1`, Sample{Value: 3.1, HasValue: true}},
	{"forced_vital_capacity", "L", spanText, `,"value":4.2`, Sample{Value: 4.2, HasValue: true}},
	{"peak_expiratory_flow_rate", "L/min", spanText, `,"value":480`, Sample{Value: 480, HasValue: true}},
	{"inhaler_usage", "count", spanText, `,"value":2`, Sample{Value: 2, HasValue: true}},
	{"fall", "count", spanText, `,"value":1`, Sample{Value: 1, HasValue: true}},
	{"uv_exposure", "index", spanText, `,"value":6`, Sample{Value: 6, HasValue: true}},
	{"daylight_exposure", "min", spanText, `,"value":25`, Sample{Value: 25, HasValue: true}},
	{"handwashing", "count", spanText, `,"value":1`, Sample{Value: 1, HasValue: true}},
	{"basal_body_temperature", "°C", spanText, `,"value":36.41`, Sample{Value: 36.41, HasValue: true}},
	{"body_mass_index", "index", spanText, `,"value":22.3`, Sample{Value: 22.3, HasValue: true}},
	{"lean_body_mass", "kg", spanText, `,"value":55.5`, Sample{Value: 55.5, HasValue: true}},
	{"waist_circumference", "cm", spanText, `,"value":81`, Sample{Value: 81, HasValue: true}},
	{"heart_rate_recovery_one_minute", "count", spanText, `,"value":28`, Sample{Value: 28, HasValue: true}},
	{"workout_distance", "m", spanText, `,"value":5012.3`, Sample{Value: 5012.3, HasValue: true}},
	{"workout_swimming_stroke", "count", spanText, `,"value":640`, Sample{Value: 640, HasValue: true}},
	{"body_temperature", "\\u00b0C", spanText, `,"value":36.8,"sensor_location":"wrist"`, Sample{Value: 36.8, HasValue: true, Extra: true}},
	{"body_temperature_delta", "°C", spanText, `,"value":-0.3,"sensor_location":null`, Sample{Value: -0.3, HasValue: true}},
	{"workout_duration", "min", spanText, `,"value":30,"intensity":"high"`, Sample{Value: 30, HasValue: true, Extra: true}},
	{"insulin_injection", "unit", spanText, `,"value":4,"delivery_mode":"bolus","delivery_form":"standard","bolus_purpose":"correction"`, Sample{Value: 4, HasValue: true, Extra: true}},
	{"heart_rate_alert", "count", spanText, `,"value":1`, Sample{Value: 1, HasValue: true}},
	{"stand_hour", "count", spanText, `,"value":1`, Sample{Value: 1, HasValue: true}},
	{"sleep_breathing_disturbance", "count", spanText, `,"value":1`, Sample{Value: 1, HasValue: true}},
	{"note", "", spanText, `,"value":"after \"lunch\" \u2615","tags":["food","exercise"]`, Sample{Text: "after \"lunch\" ☕", Extra: true}},
}

func TestParseSamples(t *testing.T) {
	if len(timeseries) != 50 {
		t.Fatalf("%d resources", len(timeseries))
	}
	for _, r := range timeseries {
		for _, action := range []string{"created", "updated"} {
			kind := EventType("daily.data." + r.resource + "." + action)
			t.Run(string(kind), func(t *testing.T) {
				sample := `{"id":null,` + fmt.Sprintf(r.form, r.unit) + r.extra + `}`
				want := r.want
				want.Timestamp, want.Unit = noon, strings.ReplaceAll(r.unit, `\u00b0`, "°")
				if r.form == spanText {
					want.Start, want.End = noon, halfPast
				}
				check := func(t *testing.T, e *Event, source Source) {
					t.Helper()
					want := &Samples{UserID: adaID, SourceID: 7, Source: source, Data: []Sample{want, want}}
					if diff := cmp.Diff(want, e.Data); diff != "" {
						t.Fatal(diff)
					}
					s := e.Data.(*Samples).Data[1]
					if string(s.RawJSON()) != sample || s.Malformed() != nil {
						t.Errorf("sample: %s %v", s.RawJSON(), s.Malformed())
					}
				}
				eachEnvelope(t, kind, `{"data":[`+sample+`,`+sample+`],"source":SOURCE,"source_id":7,"user_id":"`+adaID.String()+`"}`, check)
			})
		}
	}
}

func TestSampleTypes(t *testing.T) {
	const data = `{"source":` + namedSource + `,"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":[` +
		`{"timestamp":"2025-03-01T12:00:00Z","type":null,"unit":"count","value":1,"timezone_offset":3600},` +
		`{"timestamp":"2025-03-01T12:00:00Z","type":"","unit":"count","value":1.0,"timezone_offset":-3600},` +
		`{"timestamp":"2025-03-01T12:00:00Z","unit":"count","value":10,"timezone_offset":0},` +
		`{"timestamp":"2025-03-01T12:00:00Z","type":"stood","unit":"count","value":1e2,"timezone_offset":3600.0}]}`
	e := mustParse(t, wrap(0, DailyStandHourCreated, data))
	want := []Sample{
		{Timestamp: noon, Unit: "count", Value: 1, HasValue: true, TimezoneOffset: 3600, HasTimezoneOffset: true},
		{Timestamp: noon, Unit: "count", Value: 1, HasValue: true, TimezoneOffset: -3600, HasTimezoneOffset: true},
		{Timestamp: noon, Unit: "count", Value: 10, HasValue: true, HasTimezoneOffset: true},
		{Timestamp: noon, Type: "stood", Unit: "count", Value: 100, HasValue: true, TimezoneOffset: 3600, HasTimezoneOffset: true},
	}
	if diff := cmp.Diff(want, e.Data.(*Samples).Data); diff != "" {
		t.Error(diff)
	}
	checkLossless(t, e, string(wrap(0, DailyStandHourCreated, data)), data)
}

// A sample that a program made is written with its value, whether or not it says that it has one.
func TestOwnSample(t *testing.T) {
	for want, s := range map[string]Sample{
		`{"unit":"mmol/L","value":5.5}`: {Unit: "mmol/L", Value: 5.5},
		`{"unit":"mmol/L","value":0}`:   {Unit: "mmol/L", HasValue: true},
		`{"unit":"mmol/L"}`:             {Unit: "mmol/L"},
	} {
		if got, err := json.Marshal(s); err != nil || string(got) != want {
			t.Errorf("%s, %v, not %s", got, err, want)
		}
	}
}

func TestSampleDecode(t *testing.T) {
	const data = `{"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"unit","value":4,"type":"rapid_acting","delivery_mode":"bolus"}]}`
	e := mustParse(t, wrap(0, DailyInsulinInjectionCreated, data))
	var more struct {
		DeliveryMode string `json:"delivery_mode"`
	}
	if err := e.Data.(*Samples).Data[0].Decode(&more); err != nil || more.DeliveryMode != "bolus" {
		t.Errorf("%v %+v", err, more)
	}
	if err := (Sample{}).Decode(&more); err == nil {
		t.Error("a sample that did not come was decoded")
	}
}

// Every way in which the service writes an instant.
func TestSampleTimes(t *testing.T) {
	east := time.FixedZone("", 2*3600)
	for text, want := range map[string]time.Time{
		`"2025-03-01T12:00:00Z"`:                noon,
		`"2025-03-01T12:00:00+00:00"`:           noon,
		`"2025-03-01T12:00:00"`:                 noon,
		`"2025-03-01 12:00:00"`:                 noon,
		`"2025-03-01"`:                          noon.Add(-12 * time.Hour),
		`"2025-03-01T14:00:00+02:00"`:           noon.In(east),
		`"2025-03-01T14:00:00+0200"`:            noon.In(east),
		`"2025-03-01T12:00:00.5Z"`:              noon.Add(500 * time.Millisecond),
		`"2025-03-01T12:00:00.123Z"`:            noon.Add(123 * time.Millisecond),
		`"2025-03-01T12:00:00.123456+00:00"`:    noon.Add(123456 * time.Microsecond),
		`"2025-03-01T12:00:00.123456789Z"`:      noon.Add(123456789),
		`"2025-03-01T12:00:00.1234567891+0000"`: noon.Add(123456789),
		`"2025-03-01T14:00:00.000001+02:00"`:    noon.Add(time.Microsecond).In(east),
		`"\u00320\u00325-03-01T12:00:00Z"`:      noon,
		`null`:                                  {},
	} {
		data := `{"data":[{"timestamp":` + text + `,"unit":"count","value":1},{"timestamp":` + text + `,"unit":"count","value":1}]}`
		e := mustParse(t, wrap(0, DailyStepsCreated, data))
		for i, s := range e.Data.(*Samples).Data {
			if !sameTime(s.Timestamp, want) || e.Malformed() != nil {
				t.Errorf("%s (%d): %v, want %v; %v", text, i, s.Timestamp, want, e.Malformed())
			}
		}
		checkLossless(t, e, string(wrap(0, DailyStepsCreated, data)), data)
	}
}

// Members that do not fit are left zero and named; the rest of the batch is read.
func TestMalformedSamples(t *testing.T) {
	const data = `{"user_id":"not-a-uuid","source":{"name":1,"slug":"example_ring"},"source_id":"seven","data":[` +
		`{"timestamp":"2025-03-50T12:00:00Z","unit":"count","value":1},` +
		`{"timestamp":"2025-03-01T12:00:00Z","unit":5,"value":true,"timezone_offset":1.5},` +
		`17,null,` +
		`{"timestamp":"2025-03-01T12:00:00Z","unit":"mmHg","systolic":"121","diastolic":79,"value":1e999},` +
		`{"timestamp":"2025-03-01T12:00:00Z","unit":"count","unit":"steps","value":2}]}`
	body := string(wrap(0, DailyStepsCreated, data))
	e := mustParse(t, []byte(body))
	want := &Samples{Source: Source{Slug: "example_ring"}, Data: []Sample{
		{Unit: "count", Value: 1, HasValue: true, Extra: true},
		{Timestamp: noon, Extra: true},
		{Extra: true},
		{},
		{Timestamp: noon, Unit: "mmHg", Diastolic: 79, Extra: true},
		{Timestamp: noon, Unit: "steps", Value: 2, HasValue: true, Extra: true},
	}}
	if diff := cmp.Diff(want, e.Data); diff != "" {
		t.Error(diff)
	}
	wantBad := []labhealth.Malformed{
		{Path: "data.user_id", Want: "uuid"}, {Path: "data.source.name", Want: "string"}, {Path: "data.source_id", Want: "integer"},
		{Path: "data.data.0.timestamp", Want: "date-time"}, {Path: "data.data.1.unit", Want: "string"},
		{Path: "data.data.1.value", Want: "number"}, {Path: "data.data.1.timezone_offset", Want: "integer"},
		{Path: "data.data.2", Want: "object"}, {Path: "data.data.4.value", Want: "number"}, {Path: "data.data.4.systolic", Want: "number"},
	}
	if diff := cmp.Diff(wantBad, e.Malformed()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]labhealth.Malformed{{Path: "timestamp", Want: "date-time"}}, e.Data.(*Samples).Data[0].Malformed()); diff != "" {
		t.Error(diff)
	}
	wantBad = []labhealth.Malformed{{Path: "value", Want: "number"}, {Path: "systolic", Want: "number"}}
	if diff := cmp.Diff(wantBad, e.Data.(*Samples).Data[4].Malformed()); diff != "" {
		t.Error(diff)
	}
	if e.UserID != adaID {
		t.Errorf("user %v", e.UserID)
	}
	checkLossless(t, e, body, data)
}

// The summaries other than activity, with what each has beyond the others.
// march returns a time on 1 March 2025 in UTC.
func march(day, hour, minute int) time.Time {
	return time.Date(2025, 3, day, hour, minute, 0, 0, time.UTC)
}

var (
	firstOfMarch = labhealth.Date{Year: 2025, Month: 3, Day: 1}
	sleepID      = uuid.MustParse("3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c99")
)

var summaries = []struct {
	resource, members string
	want              func(source Source) Payload
}{
	{"sleep", `"date":"2025-03-01T00:00:00+00:00","calendar_date":"2025-03-01","bedtime_start":"2025-02-28T22:40:00+00:00","bedtime_stop":"2025-03-01T06:30:00+00:00",` +
		`"type":"long_sleep","duration":28200,"total":26100,"awake":2100,"light":14000,"rem":6100,"deep":6000,"score":null,"hr_lowest":47,"sleep_stream":null`,
		func(source Source) Payload {
			return &Sleep{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, CalendarDate: firstOfMarch, Date: march(1, 0, 0),
				BedtimeStart: march(0, 22, 40), BedtimeStop: march(1, 6, 30), Type: SleepTypeLongSleep, Duration: 28200, Total: 26100, Awake: 2100,
				Light: 14000, REM: 6100, Deep: 6000, HRLowest: new(int64(47))}
		}},
	{"sleep_cycle", `"calendar_date":"2025-03-01","sleep_id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c99","session_start":"2025-02-28T22:40:00","session_end":"2025-03-01T06:30:00",` +
		`"stage_start_offset_second":[0,300],"stage_end_offset_second":[300,900],"stage_type":[-1,5],"source_provider":"example_ring","source_type":"ring"`,
		func(source Source) Payload {
			return &SleepCycle{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, SleepID: sleepID,
				SessionStart: march(0, 22, 40), SessionEnd: march(1, 6, 30), StageStartOffsetSecond: []int64{0, 300}, StageEndOffsetSecond: []int64{300, 900},
				StageType: []int64{-1, 5}, SourceProvider: "example_ring", SourceType: SourceTypeRing}
		}},
	{"workouts", `"calendar_date":"2025-03-01","time_start":"2025-03-01T12:00:00+00:00","time_end":"2025-03-01T12:30:00+00:00","provider_id":"w-1","title":"Lunch run",` +
		`"sport":{"id":1,"name":"Running","slug":"running"},"hr_zones":[1,2,3,4,5,6],"map":{"polyline":null,"summary_polyline":"abc"}`,
		func(source Source) Payload {
			return &Workout{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, CalendarDate: firstOfMarch,
				TimeStart: noon, TimeEnd: halfPast, ProviderID: "w-1", Title: new("Lunch run"), Sport: Sport{ID: 1, Name: "Running", Slug: "running"},
				HRZones: []int64{1, 2, 3, 4, 5, 6}, Map: &WorkoutMap{SummaryPolyline: new("abc")}}
		}},
	{"workouts", `"sport":"","title":null`, func(source Source) Payload {
		return &Workout{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast}
	}},
	{"body", `"date":"2025-03-01T00:00:00+00:00","calendar_date":"2025-03-01","weight":71.2,"fat":18.4,"visceral_fat_index":null`, func(source Source) Payload {
		return &Body{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, CalendarDate: firstOfMarch, Date: march(1, 0, 0),
			Weight: new(71.2), Fat: new(18.4)}
	}},
	{"profile", `"calendar_date":"2025-03-01","height":172,"birth_date":"1990-01-02","gender":"female","sex":"other","wheelchair_use":true`, func(source Source) Payload {
		return &Profile{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, Height: new(int64(172)),
			BirthDate: &labhealth.Date{Year: 1990, Month: 1, Day: 2}, Gender: new(labhealth.GenderFemale), Sex: new(SexOther), WheelchairUse: new(true)}
	}},
	{"meal", `"calendar_date":"2025-03-01","priority_id":1,"source_id":2,"provider_id":"m-3","timestamp":"2025-03-01T12:00:00+00:00","name":"lunch","energy":null,` +
		`"macros":{"carbs":12.5,"fats":{"total":1}},"data":{"bread":{"energy":{"unit":"kcal","value":80},"micros":{"vitamins":{"c":0.5},"minerals":null}}}`,
		func(source Source) Payload {
			return &Meal{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, CalendarDate: firstOfMarch, PriorityID: 1, SourceID: 2,
				ProviderID: "m-3", Timestamp: noon, Name: "lunch", Macros: &Macros{Carbs: new(12.5), Fats: &Fats{Total: new(1.0)}},
				Data: map[string]Food{"bread": {Energy: &Energy{Unit: "kcal", Value: 80}, Micros: &Micros{Vitamins: map[string]float64{"c": 0.5}}}}}
		}},
	{"menstrual_cycle", `"calendar_date":"2025-03-01","period_start":"2025-03-01","period_end":null,"source_provider":"example_app","source_type":"app",` +
		`"menstrual_flow":[],"ovulation_test":[{"date":"2025-03-01","test_result":"estrogen_surge"}],"sexual_activity":[{"date":"2025-03-01","protection_used":null}]`,
		func(source Source) Payload {
			return &MenstrualCycle{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, PeriodStart: firstOfMarch,
				SourceProvider: "example_app", SourceType: SourceTypeApp, MenstrualFlow: []MenstrualFlowEntry{},
				OvulationTest: []OvulationTestEntry{{Date: firstOfMarch, TestResult: TestResultEstrogenSurge}}, SexualActivity: []SexualActivityEntry{{Date: firstOfMarch}}}
		}},
	{"electrocardiogram", `"calendar_date":"2025-03-01","session_start":"2025-03-01T12:00:00","session_end":"2025-03-01T12:30:00","voltage_sample_count":15360,` +
		`"source_provider":"example_watch","source_type":"watch","classification":"sinus_rhythm","inconclusive_cause":null`,
		func(source Source) Payload {
			return &Electrocardiogram{ID: summaryID, UserID: adaID, Source: source, CreatedAt: noon, UpdatedAt: halfPast, SessionStart: noon, SessionEnd: halfPast,
				VoltageSampleCount: 15360, SourceProvider: "example_watch", SourceType: SourceTypeWatch, Classification: new(ElectrocardiogramSinusRhythm)}
		}},
	{"hypnogram", `"calendar_date":"2025-03-01","stream":null`, untypedSummary},
	{"something_new", `"calendar_date":"2025-03-01","members":["nobody","knows"]`, untypedSummary},
}

func untypedSummary(source Source) Payload {
	return &Summary{ID: summaryID, UserID: adaID, Source: source, CalendarDate: firstOfMarch, CreatedAt: noon, UpdatedAt: halfPast}
}

func TestParseSummary(t *testing.T) {
	for _, r := range summaries {
		for _, action := range []string{"created", "updated"} {
			kind := EventType("daily.data." + r.resource + "." + action)
			t.Run(string(kind), func(t *testing.T) {
				data := `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","source":SOURCE,` +
					r.members + `,"created_at":"2025-03-01T12:00:00Z","updated_at":"2025-03-01T12:30:00.000Z"}`
				eachEnvelope(t, kind, data, func(t *testing.T, e *Event, source Source) {
					if diff := cmp.Diff(r.want(source), e.Data); diff != "" {
						t.Error(diff)
					}
					checkStored(t, e)
					if s, ok := e.Data.(*Summary); ok {
						checkSummaryFields(t, s)
					}
				})
			})
		}
	}
}

// checkStored checks that a summary has a key, and that Latest returns it as it was received.
func checkStored(t *testing.T, e *Event) {
	t.Helper()
	if e.UserID == uuid.Nil {
		t.Fatal("no user")
	}
	var latest Latest
	if _, err := latest.Apply(Delivery{Event: e}); err != nil {
		t.Fatal(err)
	}
	stored, ok := latest.Summary(SummaryKey{e.UserID, e.Type.Resource(), summaryID})
	if diff := cmp.Diff(e.Data, stored); !ok || diff != "" || string(stored.RawJSON()) != string(e.Data.RawJSON()) {
		t.Errorf("%v %s", ok, diff)
	}
}

func checkSummaryFields(t *testing.T, s *Summary) {
	t.Helper()
	var all map[string]json.RawMessage
	if err := s.Decode(&all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, value := range s.Fields() {
		if n++; string(all[name]) != string(value) {
			t.Errorf("%s: %s", name, value)
		}
	}
	if n != len(all) || n < 7 {
		t.Errorf("%d members, Decode says %d", n, len(all))
	}
}

func TestParseWorkoutStreamNotice(t *testing.T) {
	const data = `{"message":"The stream is at /timeseries/workouts/stream","provider_id":"w-1","sport":{"id":7,"name":"Running","slug":"running"},` +
		`"workout_id":"77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5","source":SOURCE,"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`
	for _, kind := range []EventType{DailyWorkoutStreamCreated, DailyWorkoutStreamUpdated, DailyWorkoutStreamUnavailable} {
		eachEnvelope(t, kind, data, func(t *testing.T, e *Event, source Source) {
			want := &WorkoutStreamNotice{WorkoutID: workoutID, UserID: adaID, Source: source, ProviderID: "w-1",
				Sport: Sport{ID: 7, Name: "Running", Slug: "running"}, Message: "The stream is at /timeseries/workouts/stream"}
			if diff := cmp.Diff(want, e.Data); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseProviderConnection(t *testing.T) {
	eachEnvelope(t, ProviderConnectionCreated, `{"source":SOURCE,"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`,
		func(t *testing.T, e *Event, source Source) {
			if diff := cmp.Diff(&ProviderConnection{UserID: adaID, Source: &source}, e.Data); diff != "" {
				t.Error(diff)
			}
		})
	eachEnvelope(t, ProviderConnectionCreated, `{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","provider":SOURCE,"external_user_id":"ext-1",`+
		`"resource_availability":{"sleep":{"status":"available","scope_requirements":{"user_granted":{"required":["daily"]}}},"body":{"status":"unavailable"}}}`,
		func(t *testing.T, e *Event, source Source) {
			want := &ProviderConnection{UserID: adaID, Provider: &source, ExternalUserID: new("ext-1"),
				ResourceAvailability: map[string]labhealth.ResourceAvailability{
					"sleep": {Status: "available", ScopeRequirements: &labhealth.ScopeRequirementsGrants{UserGranted: labhealth.ScopeRequirements{Required: []string{"daily"}}}},
					"body":  {Status: "unavailable"},
				}}
			if diff := cmp.Diff(want, e.Data); diff != "" {
				t.Error(diff)
			}
		})
}

func TestParseLabOrder(t *testing.T) {
	const data = `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3",` +
		`"patient_details":{"first_name":"Ada","last_name":"Example","dob":"1990-01-02","gender":"female"},"sample_id":"S-1","details":{"type":"testkit","data":null},` +
		`"events":[{"id":1,"created_at":"2025-03-01T12:00:00Z","status":"received.testkit.ordered"}],"status":"received","new":{"a":1}}`
	for _, kind := range []EventType{LabTestOrderCreated, LabTestOrderUpdated} {
		eachEnvelope(t, kind, data, func(t *testing.T, e *Event, _ Source) {
			o, ok := e.Data.(*LabOrder)
			if !ok {
				t.Fatalf("%T", e.Data)
			}
			if o.ID != orderID || o.UserID != adaID || o.CurrentStatus() != labhealth.OrderStatusReceivedTestkitOrdered ||
				o.PatientDetails.DOB != (labhealth.Date{Year: 1990, Month: 1, Day: 2}) {
				t.Errorf("%s", o.RawJSON())
			}
		})
	}
}

func TestParseHistoricalPull(t *testing.T) {
	const data = `{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","start_date":"2024-12-01T00:00:00+00:00","end_date":"2025-03-01","is_final":true,"provider":"example_ring"}`
	n := 0
	for _, kind := range constants {
		if !strings.HasPrefix(string(kind), "historical.data.") {
			continue
		}
		n++
		eachEnvelope(t, kind, data, func(t *testing.T, e *Event, _ Source) {
			want := &HistoricalPull{UserID: adaID, StartDate: time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC),
				EndDate: time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), Provider: "example_ring", IsFinal: true}
			if diff := cmp.Diff(want, e.Data); diff != "" {
				t.Error(diff)
			}
		})
	}
	if n != 62 {
		t.Errorf("%d types", n)
	}
}

// Unknown types keep their data.
func TestParseUnknown(t *testing.T) {
	for kind, data := range map[EventType]string{
		"raw.example_ring.sleep":  `{"anything":[1.0,"two"]}`,
		"something.new":           `"text"`,
		"provider.connection.new": `{"source":SOURCE}`,
		"labtest.order":           `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5"}`,
		"historical.data":         `{}`,
	} {
		t.Run(string(kind), func(t *testing.T) {
			eachEnvelope(t, kind, data, func(t *testing.T, e *Event, _ Source) {
				if diff := cmp.Diff(&Unknown{Raw: e.Data.RawJSON()}, e.Data); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The events of lab tests, providers and continuous queries have typed data.
func TestParseOtherPayloads(t *testing.T) {
	const device = `{"id":"77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","provider":"example_ring","source_type":"ring","app_id":null,"new":1}`
	const appointment = `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","start_at":"2025-03-01T12:00:00","end_at":null,` +
		`"iana_timezone":"America/New_York","type":"phlebotomy","events":[],"address":{"first_line":"1 Example Street","new":2}}`
	const review = `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","status":"resolved","decision_code":"no_match","sub_reason_codes":["lab_account_mismatch"],` +
		`"resolution_action":"accept","resolved_user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","resolved_order_id":null}`
	const job = `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","status":"completed","failure_reason":null,"needs_human_review":true,"is_reviewed":false,"data":{"metadata":` +
		`{"patient_first_name":"Ada","dob":"02/01/1990"},"results":[{"test_name":"Glucose","value":"90","units":"mg/dL","max_reference_range":99,"loinc_matches":` +
		`[{"loinc_code":"2345-7","loinc_name":"Glucose","aliases":[],"confidence_score":0.9}],"is_above_max_range":false}]}}`
	wantDevice := &ProviderDevice{Device: labhealth.Device{ID: workoutID, UserID: adaID, Provider: "example_ring", SourceType: "ring"}}
	wantAppointment := &LabAppointment{Appointment: labhealth.Appointment{ID: orderID, UserID: adaID, StartAt: &noon, IANATimezone: new("America/New_York"),
		Type: "phlebotomy", Events: []labhealth.AppointmentEvent{}, Address: labhealth.USAddress{FirstLine: "1 Example Street"}}}
	wantReview := &MatchReview{ID: orderID, Status: labhealth.MatchReviewResolved, DecisionCode: labhealth.MatchDecisionNoMatch,
		SubReasonCodes: []labhealth.MatchSubReasonCode{labhealth.MatchSubReasonLabAccountMismatch}, ResolutionAction: new(labhealth.MatchResolutionAccept), ResolvedUserID: &adaID}
	wantJob := &ParsingJob{ParsingJob: labhealth.ParsingJob{ID: orderID, Status: labhealth.ParsingJobCompleted, NeedsHumanReview: true, Data: &labhealth.ParsedLabReportData{
		Metadata: labhealth.ResultMetadata{PatientFirstName: new("Ada"), DOB: new("02/01/1990"), Gender: labhealth.GenderOther},
		Results: []labhealth.LabReportResult{{TestName: "Glucose", Value: "90", Units: new("mg/dL"), MaxReferenceRange: new(99.0), IsAboveMaxRange: new(false),
			SampleType: labhealth.LabReportSampleUnknown, MeasurementKind: labhealth.LabReportMeasurementUnknown, Sensitivity: labhealth.LabReportSensitivityUnknown,
			LOINCMatches: []labhealth.LOINCMatch{{LOINCCode: "2345-7", LOINCName: "Glucose", Aliases: []string{}, ConfidenceScore: 0.9}}}},
	}}}
	for _, c := range []struct {
		kind EventType
		data string
		want Payload
	}{
		{ProviderConnectionError, `{"provider":"example_ring","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","message":"reconnect","error_type":"token_refresh_failed","error_details":"expired"}`,
			&ConnectionError{UserID: adaID, Provider: "example_ring", Message: "reconnect", ErrorType: labhealth.ConnectionErrorTokenRefreshFailed, ErrorDetails: "expired"}},
		{ProviderDeviceCreated, device, wantDevice},
		{ProviderDeviceUpdated, device, wantDevice},
		{LabTestAppointmentCreated, appointment, wantAppointment},
		{LabTestAppointmentUpdated, appointment, wantAppointment},
		{LabTestAppointmentUpdate, appointment, wantAppointment},
		{LabTestResultCritical, `{"order_id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","sample_id":"S-1","status":"partial",` +
			`"interpretation":"critical","created_at":"2025-03-01T12:00:00Z","updated_at":"2025-03-01T12:30:00Z"}`,
			&CriticalResult{OrderID: orderID, UserID: adaID, SampleID: "S-1", Status: CriticalResultPartial, Interpretation: labhealth.InterpretationCritical,
				CreatedAt: noon, UpdatedAt: halfPast}},
		{LabTestMatchReviewCreated, review, wantReview},
		{LabTestMatchReviewUpdated, review, wantReview},
		{LabReportParsingJobCreated, job, wantJob},
		{LabReportParsingJobUpdated, job, wantJob},
		{ContinuousQueryResultTableChanged, `[{"query_id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5", "query_slug":"steps","data":{"value":[1.50,null,"x"],"none":[]},"new":1}, {}]`,
			&ContinuousQueryChanges{Tables: []ContinuousQueryResultTableChanges{
				{QueryID: orderID, QuerySlug: "steps", Data: map[string][]json.RawMessage{
					"value": {json.RawMessage("1.50"), nil, json.RawMessage(`"x"`)}, "none": {}}}, {}}}},
		{ContinuousQueryResultTableChanged, `[]`, &ContinuousQueryChanges{Tables: []ContinuousQueryResultTableChanges{}}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			eachEnvelope(t, c.kind, c.data, func(t *testing.T, e *Event, _ Source) {
				if diff := cmp.Diff(c.want, e.Data); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The payload whose data is an array writes the program's changes, alone and within its event.
func TestContinuousQueryChanges(t *testing.T) {
	const data = `[ {"query_id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","data":{"a":[1.0]},"new":{"b":2}},{"query_slug":"gone"} ]`
	e := mustParse(t, wrap(0, ContinuousQueryResultTableChanged, data))
	changes := e.Data.(*ContinuousQueryChanges)
	changes.Tables = append(changes.Tables[:1], ContinuousQueryResultTableChanges{QueryID: orderID, QuerySlug: "added"})
	changes.Tables[0].QuerySlug = "changed"
	const want = `[{"query_id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","data":{"a":[1.0]},"new":{"b":2},"query_slug":"changed"},` +
		`{"query_id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","query_slug":"added","data":null}]`
	got, err := json.Marshal(changes)
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	again := &ContinuousQueryChanges{}
	if err := json.Unmarshal(got, again); err != nil || !cmp.Equal(changes, again) {
		t.Errorf("%v %s", err, cmp.Diff(changes, again))
	}
	if whole, err := json.Marshal(e); err != nil || !strings.Contains(string(whole), want) {
		t.Errorf("%s, %v", whole, err)
	}
	for _, other := range []string{`{"a": 1}`, `"text"`, `null`} {
		if err := json.Unmarshal([]byte(other), again); err != nil && other != "null" || again.Tables != nil && other != "null" {
			t.Errorf("%s: %v, %v", other, err, again.Tables)
		}
	}
	e = mustParse(t, wrap(0, ContinuousQueryResultTableChanged, `[{"query_id":"nobody"},7]`))
	bad := []labhealth.Malformed{{Path: "0.query_id", Want: "uuid"}, {Path: "1", Want: "object"}}
	if diff := cmp.Diff(bad, e.Data.Malformed()); diff != "" || e.Err() == nil {
		t.Error(diff)
	}
}

// Data that is not what its type promises is kept, and Err says so.
func TestParseUnexpectedShape(t *testing.T) {
	for _, c := range []struct {
		kind EventType
		data string
		want error
	}{
		{DailyGlucoseCreated, `[{}]`, errNoObject},
		{DailyGlucoseCreated, `""`, errNoObject},
		{LabTestOrderUpdated, `null`, errNoObject},
		{LabTestOrderUpdated, `[]`, errNoObject},
		{HistoricalGlucoseCreated, `null`, errNoObject},
		{DailySleepCreated, `"see the API"`, errNoObject},
		{DailyWorkoutStreamCreated, `17`, errNoObject},
		{ProviderConnectionCreated, `true`, errNoObject},
		{HistoricalGlucoseCreated, `[{}]`, errNoObject},
		{LabTestOrderUpdated, `{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`, errNoObjectID},
		{LabTestOrderUpdated, `{"id":"482gh249-0000-4000-8000-000000000000"}`, errNoObjectID},
		{LabTestAppointmentUpdated, `{"a":1}`, errNoObjectID},
		{ProviderDeviceUpdated, `{}`, errNoObjectID},
		{ContinuousQueryResultTableChanged, `{"query":"q"}`, errNoArray},
		{ContinuousQueryResultTableChanged, `null`, errNoArray},
	} {
		body := string(wrap(0, c.kind, c.data))
		e := mustParse(t, []byte(body))
		u, ok := e.Data.(*Unknown)
		if !ok || !errors.Is(u.Err, c.want) || string(u.Raw) != c.data {
			t.Errorf("%s %s: %T %v", c.kind, c.data, e.Data, u)
			continue
		}
		checkLossless(t, e, body, c.data)
	}
	// An array in data makes samples of an event whose resource is not a documented summary, and is
	// a new field of one that is.
	if s, ok := mustParse(t, wrap(0, "daily.data.new.created", `{"data":[{"value":1}]}`)).Data.(*Samples); !ok || len(s.Data) != 1 {
		t.Error("a new resource with an array is no batch")
	}
	id := uuid.MustParse("7d1c2b3a-4f5e-4a69-8b7c-9d0e1f2a3b4c")
	sleep := wrap(0, DailySleepCreated, `{"id":"7d1c2b3a-4f5e-4a69-8b7c-9d0e1f2a3b4c","data":[{"value":1}]}`)
	if s, ok := mustParse(t, sleep).Data.(*Sleep); !ok || s.ID != id || !strings.Contains(string(s.RawJSON()), `"data":[{"value":1}]`) {
		t.Error("a sleep with an array is no sleep")
	}
	if s, ok := mustParse(t, wrap(0, DailyGlucoseCreated, `{"data":[]}`)).Data.(*Samples); !ok || s.Data == nil || len(s.Data) != 0 {
		t.Error("an empty batch")
	}
}

// An event of wearable data without any data is no error, and stores nothing.
func TestParseNothing(t *testing.T) {
	const source = `"source":{"provider":"example_ring","type":"ring"}`
	for _, c := range []struct {
		kind EventType
		data string
		want Payload
	}{
		{DailyHeartrateCreated, `{` + source + `,"data":null}`, &Samples{}},
		{DailyHeartrateCreated, `{` + source + `,"data":{}}`, &Samples{}},
		{DailyHeartrateCreated, `{"data": { } , ` + source + `}`, &Samples{}},
		{DailyHeartrateUpdated, `{` + source + `,"data":[]}`, &Samples{}},
		{DailyHeartrateUpdated, `{` + source + `}`, &Samples{}},
		{DailyNoteCreated, `{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","source_id":7,"provider":{"slug":"example_ring"},"data":null,"new":[]}`, &Samples{}},
		{DailyNoteCreated, `{}`, &Samples{}},
		{DailyHypnogramCreated, `null`, &Samples{}},
		{DailyGlucoseCreated, `null`, &Samples{}},
		{DailyGlucoseCreated, `[]`, &Samples{}},
		{DailyGlucoseCreated, `[ ]`, &Samples{}},
		{DailyGlucoseCreated, ``, &Unknown{}},
		{"daily.data.new.created", `{` + source + `,"data":null}`, &Samples{}},
		{"daily.data.new.created", `null`, &Samples{}},
		{DailySleepCreated, `null`, &Unknown{}},
		{DailySleepCreated, `[]`, &Unknown{}},
		{DailyActivityUpdated, `{}`, &Unknown{}},
		{DailyActivityUpdated, `{` + source + `,"data":null}`, &Unknown{}},
		{DailyMealCreated, `{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{}}`, &Unknown{}},
		{DailyWorkoutStreamCreated, `null`, &Unknown{}},
		{DailySleepCreated, ``, &Unknown{}},
	} {
		body := string(wrap(0, c.kind, c.data))
		if c.data == "" {
			body = `{"event_type":"` + string(c.kind) + `","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`
		}
		checkPaths(t, []byte(body))
		e := mustParse(t, []byte(body))
		changes, err := new(Latest).Apply(received(e, 1))
		if fmt.Sprintf("%T", e.Data) != fmt.Sprintf("%T", c.want) || e.Err() != nil || err != nil || !cmp.Equal(changes, Changes{}) {
			t.Errorf("%s %s: %T %v, %v, %+v", c.kind, c.data, e.Data, e.Err(), err, changes)
		}
		if s, ok := e.Data.(*Samples); ok && (len(s.Data) > 0 || strings.Contains(c.data, "example_ring") && e.ProviderSlug() != "example_ring") {
			t.Errorf("%s %s: %d samples of %q", c.kind, c.data, len(s.Data), e.ProviderSlug())
		}
		if c.data != "" {
			checkLossless(t, e, body, c.data)
		} else if got, err := e.MarshalJSON(); err != nil || string(got) != body {
			t.Errorf("%s: %s %v", body, got, err)
		}
	}
}

// What an event holds in an unexpected place is not treated as nothing.
func TestParseSomething(t *testing.T) {
	const sample = `{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":63}`
	for _, body := range []string{
		string(wrap(0, DailyHeartrateCreated, `{"data":{"values":[`+sample+`]}}`)),
		string(wrap(0, DailyHeartrateCreated, `{"data":`+sample+`}`)),
		string(wrap(0, DailyHeartrateCreated, `{"data":"packed"}`)),
		string(wrap(0, DailyHeartrateCreated, `{"data":0}`)),
		string(wrap(0, DailyHeartrateCreated, `{"data":false}`)),
		string(wrap(0, DailyHeartrateCreated, `{"samples":[`+sample+`]}`)),
		string(wrap(0, DailyHeartrateCreated, `{"data":null,"samples":[`+sample+`]}`)),
		string(wrap(0, DailyHeartrateCreated, `{"data":[`+sample+`],"data":null}`)),
		string(wrap(0, DailyHeartrateCreated, `{"data":null,"data_url":"https://files.example.com/1"}`)),
		string(wrap(0, DailyHeartrateCreated, sample)),
		string(wrap(0, DailyHeartrateCreated, `{"source":7,"data":null}`)),
		string(wrap(0, DailyHeartrateCreated, `[`+sample+`]`)),
		string(wrap(0, DailySleepCreated, `{"calendar_date":"2025-03-01"}`)),
		string(wrap(0, DailySleepCreated, `{"id":"482gh249-0000-4000-8000-000000000000"}`)),
		string(wrap(0, DailySleepCreated, `{"source":7}`)),
		`{"event_type":"daily.data.sleep.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","payload":{"id":1}}`,
		`{"event_type":"daily.data.sleep.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":null,"payload":{"id":1}}`,
		`{"event_type":"daily.data.heartrate.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":null,"data_url":"https://files.example.com/1"}`,
		`{"event_type":"daily.data.heartrate.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{"data":[` + sample + `]},"data":null}`,
	} {
		checkPaths(t, []byte(body))
		if _, err := new(Latest).Apply(received(mustParse(t, []byte(body)), 1)); !errors.Is(err, ErrPermanent) {
			t.Errorf("%s: %v", body, err)
		}
	}
	// A summary of a resource that has samples too is still stored.
	e := mustParse(t, wrap(0, DailyGlucoseCreated, `{"id":"7d1c2b3a-4f5e-4a69-8b7c-9d0e1f2a3b4c","data":null}`))
	if changes, err := new(Latest).Apply(received(e, 1)); err != nil || changes.Added != 1 {
		t.Errorf("%+v %v", changes, err)
	}
}

// The public pages of three kinds of collection show an order without its envelope.
func TestParseBareOrder(t *testing.T) {
	const ids = `"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3"`
	const event = `{"id":1,"created_at":"2025-03-01T12:00:00Z","status":"received.testkit.ordered"}`
	for _, rest := range []string{
		`"last_event":` + event, `"events":[` + event + `],"status":"received"`, `"events":[]`, `"details":{"type":"testkit","data":null}`,
		`"patient_details":{"first_name":"Ada"},"sample_id":"S-1","new":{"a":1}`,
	} {
		body := `{` + ids + `, ` + rest + `}`
		checkPaths(t, []byte(body))
		e := mustParse(t, []byte(body))
		o, ok := e.Data.(*LabOrder)
		if !ok || o.ID != orderID || o.UserID != adaID || o.TeamID != teamID || e.Type != "" || e.UserID != adaID || e.TeamID != teamID || e.Err() != nil {
			t.Errorf("%s: %T, %s %s %s, %v", body, e.Data, e.Type, e.UserID, e.TeamID, e.Err())
			continue
		}
		checkLossless(t, e, body, body)
		if changes, err := new(Latest).Apply(received(e, 1)); err != nil || !cmp.Equal(changes, Changes{}) {
			t.Errorf("%s: %+v, %v", body, changes, err)
		}
	}
	e := mustParse(t, []byte(`{`+ids+`,"last_event":`+event+`,"created_at":7}`))
	if diff := cmp.Diff([]labhealth.Malformed{{Path: "created_at", Want: "date-time"}}, e.Data.Malformed()); diff != "" || e.Err() != ErrUnreadable {
		t.Errorf("%v %s", e.Err(), diff)
	}
}

// Changes of an order without an envelope are written, and an envelope if the program sets one.
func TestMarshalBareOrder(t *testing.T) {
	const order = `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3","events":[],"sample_id":"S-1"}`
	e := mustParse(t, []byte(order))
	e.Data.(*LabOrder).SampleID = new("S-2")
	changed := strings.Replace(order, "S-1", "S-2", 1)
	if got, err := e.MarshalJSON(); err != nil || string(got) != changed {
		t.Errorf("%s %v", got, err)
	}
	e.Type = LabTestOrderUpdated
	want := `{"event_type":"labtest.order.updated","data":` + changed + `,"team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`
	if got, err := e.MarshalJSON(); err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
}

// Other objects without an envelope stay unknown, and are reported.
func TestParseBareOthers(t *testing.T) {
	const id, user, team = `"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5",`, `"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",`, `"team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3",`
	for _, body := range []string{
		`{` + id + user + team + `"status":"completed"}`,
		`{` + id + user + team + `"details":"text"}`,
		`{` + id + user + team + `"events":{"a":1}}`,
		`{` + id + user + `"events":[]}`,
		`{` + id + team + `"events":[]}`,
		`{` + user + team + `"events":[]}`,
		`{` + id + user + team + `"order_id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","events":[],"status":"confirmed"}`,
		`{` + id + user + team + `"event_type":null,"events":[]}`,
		`{` + id + user + team + `"event_type":"","events":[]}`,
		`{` + id + user + team + `"event_type":7,"events":[]}`,
		`{` + id + user + team + `"data":{},"events":[]}`,
		`{` + id + user + team + `"data":null,"events":[]}`,
		`{"id":"482gh249-0000-4000-8000-000000000000",` + user + team + `"events":[]}`,
		`{"id":"00000000-0000-0000-0000-000000000000",` + user + team + `"events":[]}`,
		`{"id":7,` + user + team + `"events":[]}`,
		`{` + id + team + `"status":"active","orders":[{` + id + user + team + `"events":[]}]}`,
		`{"order":{` + id + user + team + `"events":[]},"status":"success","message":"order updated"}`,
		`[{` + id + user + team + `"events":[]}]`,
	} {
		e, err := Parse([]byte(body))
		if body[0] == '[' {
			if err == nil {
				t.Errorf("%s: no error", body)
			}
			continue
		}
		checkPaths(t, []byte(body))
		if u, ok := e.Data.(*Unknown); !ok || e.Err() != ErrUnreadable {
			t.Errorf("%s: %T %v", body, e.Data, u)
		}
	}
}

func TestParseEnvelopeFields(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       Envelope
		bad        []labhealth.Malformed
	}{
		{"nothing", ` {} `, Envelope{}, nil},
		{"nulls", `{"event_type":null,"data":null,"team_id":null,"user_id":null,"client_user_id":null}`, Envelope{}, nil},
		{"operational", `{"type":"message.attempt.exhausted","data":{"appId":"app_1","msgId":"msg_1"}}`, Envelope{}, nil},
		{"bad ids", `{"event_type":7,"team_id":"{5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3}","user_id":"","client_user_id":[],"data":{}}`, Envelope{},
			[]labhealth.Malformed{{Path: "event_type", Want: "string"}, {Path: "team_id", Want: "uuid"}, {Path: "user_id", Want: "uuid"}, {Path: "client_user_id", Want: "string"}}},
		{"bad user, good one in the data", `{"user_id":"e66321dd-4e0g-4000-8000-000000000000","data":{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}}`,
			Envelope{UserID: adaID}, []labhealth.Malformed{{Path: "user_id", Want: "uuid"}}},
		{"escapes", `{"event\u005ftype":"labtest\u002eresult.critical","client_user_id":"a\/\u00e9\ud83d\ude00\n"}`,
			Envelope{Type: LabTestResultCritical, ClientUserID: "a/é😀\n"}, nil},
		{"names that come twice", `{"event_type":"a.b","event_type":"c.d","user_id":"x","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`,
			Envelope{Type: "c.d", UserID: adaID}, nil},
		{"other case", `{"Event_Type":"a.b","USER_ID":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`, Envelope{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := mustParse(t, []byte(c.body))
			if diff := cmp.Diff(c.want, Envelope{e.Type, e.TeamID, e.UserID, e.ClientUserID}); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.bad, e.Malformed()); diff != "" {
				t.Error(diff)
			}
			got, err := ParseEnvelope([]byte(c.body))
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("ParseEnvelope: %v %s", err, diff)
			}
			if got, err := e.MarshalJSON(); err != nil || string(got) != strings.TrimSpace(c.body) {
				t.Errorf("%v %s", err, got)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for body, want := range map[string]ParseError{
		"":                          {0, "it is empty: was the body read before?"},
		"\x1f\x8b\b":                {0, "it is compressed with gzip: decompress it first"},
		"  ":                        {2, "unexpected end of JSON"},
		"null":                      {0, "it is not an object"},
		" [1]":                      {1, "it is not an object"},
		`"text"`:                    {0, "it is not an object"},
		`{"event_type":"a.b"`:       {19, "unexpected end of JSON"},
		`{"a":1}{}`:                 {7, "data after the JSON value"},
		`{"a":01}`:                  {6, "unexpected character"},
		`{"a":"` + "\xff" + `"}`:    {6, "invalid UTF-8"},
		`<html>no</html>`:           {0, "it is not JSON"},
		"event_type=a.b":            {0, "it is not JSON"},
		`{"data":{"data":[{]}}`:     {18, "unexpected character"},
		`{"a":"\x"}`:                {6, "invalid string"},
		`{"a":1,}`:                  {7, "unexpected character"},
		"\ufeff":                    {3, "it is empty: was the body read before?"},
		"\ufeff ":                   {4, "unexpected end of JSON"},
		"\ufeff[]":                  {3, "it is not an object"},
		"\ufeff{\"a\":01}":          {9, "unexpected character"},
		"\ufeff\ufeff{}":            {3, "it is not JSON"},
		" \ufeff{}":                 {1, "unexpected character"},
		"{}\ufeff":                  {2, "data after the JSON value"},
		"\xef\xbb{}":                {0, "it is not JSON"},
		"\xff\xfe{\x00}\x00":        {0, "it is UTF-16, not UTF-8"},
		"\xfe\xff\x00{\x00}":        {0, "it is UTF-16, not UTF-8"},
		"{\"a\":\"\n\"}":            {6, "invalid string"},
		`{"event_type":"a.b",data}`: {20, "unexpected character"},
	} {
		_, err := Parse([]byte(body))
		var e *ParseError
		if !errors.As(err, &e) || *e != want {
			t.Errorf("%q: %v", body, err)
		}
		if _, err2 := ParseEnvelope([]byte(body)); err2 == nil || err2.Error() != err.Error() {
			t.Errorf("%q: ParseEnvelope: %v", body, err2)
		}
	}
}

// A byte order mark before an event is skipped, and is not part of it. Offsets count it.
func TestByteOrderMark(t *testing.T) {
	for _, data := range []string{
		`{"source":` + providerSource + `,"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":63}]}`,
		`{"source":` + providerSource + `,"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":"63"},{"value":true}]}`,
		`null`,
	} {
		plain := wrap(0, DailyHeartrateCreated, data)
		for _, body := range []string{"\ufeff" + string(plain), "\ufeff \n" + string(plain) + "\n"} {
			checkPaths(t, []byte(body))
			received := []byte(body)
			e, err := Parse(received)
			if err != nil {
				t.Fatal(err)
			}
			d, err := RawDelivery{ID: "msg_1", Body: received, ReceivedAt: noon}.Parse()
			if err != nil || string(received) != body {
				t.Fatalf("%v, or the body was changed", err)
			}
			want := mustParse(t, plain)
			want.ReceivedAt, e.ReceivedAt = noon, noon
			for _, got := range []*Event{e, d.Event} {
				if diff := cmp.Diff(want, got); diff != "" || string(got.RawJSON()) != string(plain) {
					t.Errorf("%s %s", diff, got.RawJSON())
				}
			}
		}
	}
}

// What a program changes is written; everything else stays as it was received.
func TestMarshalChanges(t *testing.T) {
	const before = `{"event_type":"daily.data.glucose.created", "new":1, "data":{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4", "more":{"b":2}, ` +
		`"source":{"slug":"example_ring","x":1}, "data":[{"id":5,"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":5.40,"tags":["a"]}, ` +
		`{"timestamp":"2025-03-01T12:30:00Z","unit":"mmol/L","value":6}]}}`
	e := mustParse(t, []byte(before))
	s := e.Data.(*Samples)
	s.Data[0].Value = 7.5
	s.Data[0].Type = "automatic"
	s.Source.Slug = "example_watch"
	e.ClientUserID = "user-42"
	const after = `{"event_type":"daily.data.glucose.created","new":1,"data":{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","more":{"b":2},` +
		`"source":{"slug":"example_watch","x":1},"data":[{"id":5,"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":7.5,"tags":["a"],"type":"automatic"},` +
		`{"timestamp":"2025-03-01T12:30:00Z","unit":"mmol/L","value":6}]},"client_user_id":"user-42"}`
	if got, err := json.Marshal(e); err != nil || string(got) != after {
		t.Errorf("%v\n got %s\nwant %s", err, got, after)
	}

	s.Data = append(s.Data[1:], Sample{Timestamp: halfPast, Start: noon, End: halfPast, Text: "x<y", TimezoneOffset: -3600, HasTimezoneOffset: true})
	const list = `[{"timestamp":"2025-03-01T12:30:00Z","unit":"mmol/L","value":6},` +
		`{"timestamp":"2025-03-01T12:30:00Z","timezone_offset":-3600,"unit":"","value":"x\u003cy","start":"2025-03-01T12:00:00Z","end":"2025-03-01T12:30:00Z"}]`
	if got, err := json.Marshal(s); err != nil || !strings.Contains(string(got), `"data":`+list) {
		t.Errorf("%v %s", err, got)
	}

	e.Data = nil
	if got, err := json.Marshal(e); err != nil || !strings.Contains(string(got), `"new":1,"data":null,"client_user_id":"user-42"`) {
		t.Errorf("%v %s", err, got)
	}

	e = mustParse(t, wrap(0, DailyActivityCreated, `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","steps":1,"new":2}`))
	e.Data.(*Activity).Steps = new(3.0)
	if got, err := json.Marshal(e.Data); err != nil || string(got) != `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","steps":3,"new":2}` {
		t.Errorf("%v %s", err, got)
	}
}

// Values that a program made itself are written with what they know.
func TestMarshalOwn(t *testing.T) {
	for want, v := range map[string]any{
		`null`: &Unknown{},
		`{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":63}`:                     Sample{Timestamp: noon, Unit: "bpm", Value: 63, HasValue: true},
		`{"timestamp":"2025-03-01T12:00:00Z","unit":"mmHg","systolic":121,"diastolic":79}`: Sample{Timestamp: noon, Unit: "mmHg", Systolic: 121, Diastolic: 79},
		`{"event_type":"daily.data.heartrate.created","data":{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","source":{"slug":"example_ring"},"data":[]}}`: Event{
			Type: DailyHeartrateCreated, Data: &Samples{UserID: adaID, Source: Source{Slug: "example_ring"}, Data: []Sample{}}},
		`{"event_type":"a.b"}`: Event{Type: "a.b", Data: (*Samples)(nil)},
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

// Every type reads itself from a program's own struct.
func TestUnmarshal(t *testing.T) {
	body := wrap(0, DailyGlucoseCreated, `{"source":`+namedSource+`,"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":"high"}]}`)
	var own struct{ Event Event }
	if err := json.Unmarshal([]byte(`{"Event":`+string(body)+`}`), &own); err != nil {
		t.Fatal(err)
	}
	e := mustParse(t, body)
	e.ReceivedAt = own.Event.ReceivedAt
	if diff := cmp.Diff(e, &own.Event); diff != "" {
		t.Error(diff)
	}
	var s Samples
	if err := json.Unmarshal(e.Data.RawJSON(), &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.Data, Payload(&s)); diff != "" {
		t.Error(diff)
	}
	if got, err := json.Marshal(s); err != nil || string(got) != string(e.Data.RawJSON()) {
		t.Errorf("%v %s", err, got)
	}
	var one Sample
	if err := json.Unmarshal(s.Data[0].RawJSON(), &one); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Data[0], one); diff != "" || string(one.RawJSON()) != string(s.Data[0].RawJSON()) {
		t.Errorf("%s %s", diff, one.RawJSON())
	}
	for _, v := range []json.Unmarshaler{&Event{}, &Samples{}, &Sample{}, &Activity{}, &Summary{}, &LabOrder{}, &ProviderConnection{}, &HistoricalPull{}, &Sport{}} {
		if v.UnmarshalJSON([]byte(`{"a":}`)) == nil || v.UnmarshalJSON([]byte(`{},{}`)) == nil {
			t.Errorf("%T reads what is not JSON", v)
		}
	}
}

func TestEventType(t *testing.T) {
	seen := map[EventType]bool{}
	for _, k := range constants {
		if seen[k] || known[string(k)].EventType != k || k.Resource() == "" || k.Action() == "" || !strings.HasSuffix(string(k), "."+k.Resource()+"."+k.Action()) {
			t.Errorf("%s", k)
		}
		seen[k] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d types", len(seen))
	}
	for _, r := range timeseries {
		for _, kind := range []string{"daily.data." + r.resource + ".created", "daily.data." + r.resource + ".updated", "historical.data." + r.resource + ".created"} {
			if !seen[EventType(kind)] {
				t.Errorf("no constant for %s", kind)
			}
		}
	}
	for kind, want := range map[EventType][2]string{
		"": {}, "one": {}, ".": {}, "a.": {"a", ""}, "a.b": {"a", "b"}, "a.b.c": {"b", "c"},
		"daily.data.glucose.created": {"glucose", "created"}, "labtest.order.updated": {"order", "updated"},
		"historical.data.sleep_cycle.created": {"sleep_cycle", "created"}, "provider.connection.error": {"connection", "error"},
	} {
		if got := [2]string{kind.Resource(), kind.Action()}; got != want {
			t.Errorf("%q: %q", kind, got)
		}
	}
}

// The time of the last change, and the provider, are read from whatever data has them.
func TestEventHead(t *testing.T) {
	const at = `"updated_at":"2025-03-01T12:30:00Z"`
	named, other := `"source":`+namedSource, `"source":`+providerSource
	for _, c := range []struct {
		kind      EventType
		data      string
		provider  string
		isSummary bool
	}{
		{DailyActivityCreated, `{` + at + `,` + named + `}`, "example_ring", true},
		{DailySleepUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{DailySleepCycleUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{DailyWorkoutsUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{DailyBodyUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{DailyProfileUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{DailyMealUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{DailyMenstrualCycleUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{DailyElectrocardiogramUpdated, `{` + at + `,` + other + `}`, "example_ring", true},
		{"daily.data.new.created", `{` + at + `,` + named + `}`, "example_ring", true},
		{DailySleepCreated, `{` + at + `}`, "", true},
		{DailyGlucoseCreated, `{` + at + `,` + other + `,"data":[]}`, "example_ring", false},
		{DailyWorkoutStreamCreated, `{` + at + `,` + named + `}`, "example_ring", false},
		{HistoricalSleepCreated, `{"provider":"example_ring"}`, "example_ring", false},
		{ProviderConnectionCreated, `{` + named + `}`, "example_ring", false},
		{ProviderConnectionError, `{"provider":"example_ring"}`, "example_ring", false},
		{ProviderDeviceCreated, `{"id":"77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5","provider":"example_ring"}`, "example_ring", false},
		{LabTestOrderCreated, `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5",` + at + `}`, "", false},
		{"a.b", `{"provider":"example_ring"}`, "", false},
	} {
		e := mustParse(t, wrap(0, c.kind, c.data))
		if e.ProviderSlug() != c.provider || e.UpdatedAt().Equal(halfPast) != c.isSummary || e.UpdatedAt().IsZero() == c.isSummary {
			t.Errorf("%s: %q %v", c.kind, e.ProviderSlug(), e.UpdatedAt())
		}
	}
}

// A summary of any resource can be stored as JSON and decoded again.
func TestDecodeSummary(t *testing.T) {
	for resource, want := range map[string]Payload{"sleep": &Sleep{}, "workouts": &Workout{}, "workout_stream": &Summary{}, "new": &Summary{}, "": &Summary{}, "a.b": &Summary{}} {
		got, err := DecodeSummary(resource, []byte(`{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","new":1}`))
		if err != nil || fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) || !strings.Contains(string(got.RawJSON()), "new") {
			t.Errorf("%q: %T, %v", resource, got, err)
		}
		if got, err := DecodeSummary(resource, []byte("{")); err == nil || got != nil {
			t.Errorf("%q: %v, %v", resource, got, err)
		}
	}
}

// go-cmp compares events whose data does not match their type.
func TestCompareUnknown(t *testing.T) {
	for _, body := range []string{
		`{"event_type":"daily.data.activity.created","data":5}`,
		`{"event_type":"labtest.order.created","data":{}}`,
		`{"event_type":"labtest.order.created","data":[]}`,
	} {
		a, b := mustParse(t, []byte(body)), mustParse(t, []byte(body))
		b.ReceivedAt = a.ReceivedAt
		if u, ok := a.Data.(*Unknown); !ok || u.Err == nil {
			t.Errorf("%s: %v", body, a.Data)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}
