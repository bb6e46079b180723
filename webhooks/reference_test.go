package webhooks

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// payloadReference connects the events of the public API reference with the types of this package.
var payloadReference = referencetest.Area{
	Reduced: true,
	Components: map[string]any{
		"ClientFacingActivity":              Activity{},
		"ClientFacingHeartRate":             ActivityHeartRate{},
		"ClientFacingSleep":                 Sleep{},
		"ClientFacingSleepCycle":            SleepCycle{},
		"ClientFacingWorkout":               Workout{},
		"ClientFacingWorkoutMap":            WorkoutMap{},
		"ClientFacingSport":                 Sport{},
		"ClientFacingBody":                  Body{},
		"ClientFacingProfile":               Profile{},
		"MealInDBBase_ClientFacingSource_":  Meal{},
		"ClientFacingFood":                  Food{},
		"Energy":                            Energy{},
		"Macros":                            Macros{},
		"Fats":                              Fats{},
		"Micros":                            Micros{},
		"ClientFacingMenstrualCycle":        MenstrualCycle{},
		"MenstrualFlowEntry":                MenstrualFlowEntry{},
		"CervicalMucusEntry":                CervicalMucusEntry{},
		"IntermenstrualBleedingEntry":       IntermenstrualBleedingEntry{},
		"ContraceptiveEntry":                ContraceptiveEntry{},
		"DetectedDeviationEntry":            DetectedDeviationEntry{},
		"OvulationTestEntry":                OvulationTestEntry{},
		"HomePregnancyTestEntry":            HomePregnancyTestEntry{},
		"HomeProgesteroneTestEntry":         HomeProgesteroneTestEntry{},
		"SexualActivityEntry":               SexualActivityEntry{},
		"BasalBodyTemperatureEntry":         BasalBodyTemperatureEntry{},
		"ClientFacingElectrocardiogram":     Electrocardiogram{},
		"ClientFacingShallowWorkoutStream":  WorkoutStreamNotice{},
		"ClientFacingSource":                Source{},
		"ClientFacingProvider":              Source{}, // the other shape
		"HistoricalPullCompleted":           HistoricalPull{},
		"ProviderConnectionCreated":         ProviderConnection{},
		"ProviderConnectionError":           ConnectionError{},
		"ClientFacingCriticalResult":        CriticalResult{},
		"MatchReviewWebhookPayload":         MatchReview{},
		"ContinuousQueryResultTableChanges": ContinuousQueryResultTableChanges{},
	},
	Enums: map[string]any{
		"SleepType":                   SleepType(""),
		"SleepSummaryState":           SleepState(""),
		"Sex":                         Sex(""),
		"MatchReviewStatus":           labhealth.MatchReviewStatus(""),
		"MatchDecisionCode":           labhealth.MatchDecisionCode(""),
		"MatchSubReasonCode":          labhealth.MatchSubReasonCode(""),
		"MatchReviewResolutionAction": labhealth.MatchReviewResolutionAction(""),
		"ClientFacingElectrocardiogram.classification":     ElectrocardiogramClassification(""),
		"ClientFacingElectrocardiogram.inconclusive_cause": ElectrocardiogramInconclusiveCause(""),
		"ClientFacingElectrocardiogram.source_type":        SourceType(""),
		"MenstrualFlowEntry.flow":                          MenstrualFlow(""),
		"CervicalMucusEntry.quality":                       CervicalMucusQuality(""),
		"ContraceptiveEntry.type":                          ContraceptiveType(""),
		"DetectedDeviationEntry.deviation":                 MenstrualDeviation(""),
		"OvulationTestEntry.test_result":                   HormoneTestResult(""),
		"HomePregnancyTestEntry.test_result":               HormoneTestResult(""),
		"HomeProgesteroneTestEntry.test_result":            HormoneTestResult(""),
		"ProviderConnectionError.error_type":               labhealth.ConnectionErrorType(""),
	},
	Exceptions: map[string]string{
		"ClientFacingActivity.steps":               "a number in the interface specification",
		"ClientFacingActivity.floors_climbed":      "a number in the interface specification",
		"ClientFacingShallowWorkoutStream.message": "what is sent is kept; the default is not needed",
		"ClientFacingSource.type":                  "empty if missing, because the shape of the interface specification has no type",
		"HistoricalPullCompleted.is_final":         "its removal is announced, and the table does not say so",
	},
}

// inRoot has the components and enumerations of events whose Go types package labhealth declares
// and compares.
var inRoot = map[string]string{
	"ClientFacingOrder":       "labhealth.Order",
	"ClientFacingAppointment": "labhealth.Appointment",
	"ClientFacingDevice":      "labhealth.Device",
	"ClientFacingSleepStream": "labhealth.SleepStream",
	"ResourceAvailability":    "labhealth.ResourceAvailability",
	"Gender":                  "labhealth.Gender",
	"ParsingJob":              "labhealth.ParsingJob",
	"Interpretation":          "labhealth.Interpretation",
	"Providers":               "slugs are strings",
	"Labs":                    "slugs are strings",
	"ServiceSleepStage":       "integers, of which the reference does not document the meaning",
}

// legacyTypes are the constants of types that the reference no longer has.
var legacyTypes = []EventType{DailyHypnogramCreated, DailyHypnogramUpdated, DailyWorkoutStreamUnavailable, HistoricalHypnogramCreated, HistoricalDeviceCreated, LabTestAppointmentUpdate}

// embeddedPayloads are the payloads that embed a type of package labhealth.
var embeddedPayloads = map[string]Payload{
	"ClientFacingOrder": &LabOrder{}, "ClientFacingAppointment": &LabAppointment{}, "ClientFacingDevice": &ProviderDevice{},
	"ParsingJob": &ParsingJob{},
}

func TestReferenceTypes(t *testing.T) {
	s := referencetest.Check(t, payloadReference)
	t.Logf("%d components, %d fields, %d enumerations, %d values", s.Components, s.Fields, s.Enums, s.Values)
	var types []reference.Type
	for _, e := range reference.Events() {
		if !strings.HasPrefix(e.Data, "Grouped") {
			types = append(types, reference.ParseType("team", e.Data))
		}
	}
	for _, name := range referencetest.Missing(types, payloadReference, referencetest.Area{Exceptions: inRoot}) {
		t.Errorf("%s has no Go type", name)
	}
}

// The data of every event type of the reference, with a value in every field, is decoded into the
// payload of its component, without a malformed field and without a zero one, and encoded again.
func TestReferenceEvents(t *testing.T) {
	left := map[EventType]bool{}
	for _, c := range constants {
		left[c] = true
	}
	for _, event := range reference.Events() {
		kind := EventType(event.Type)
		t.Run(event.Type, func(t *testing.T) {
			if !left[kind] {
				t.Error("the type has no constant")
			}
			delete(left, kind)
			checkEnvelope(t, event)
			data := exampleOf(reference.ParseType("team", event.Data), nil)
			body := wrap(0, kind, data)
			e := mustParse(t, body)
			if err := e.Err(); err != nil {
				t.Fatalf("%v %v\n%s", err, e.Malformed(), data)
			}
			checkLossless(t, e, string(body), data)
			want := reflect.TypeOf(payloadOf(event.Data))
			if got := reflect.TypeOf(e.Data); got != want {
				t.Fatalf("the payload is %s, want %s", got, want)
			}
			if s, ok := e.Data.(*Samples); ok {
				checkSampleFields(t, s, event)
				return
			}
			value := any(e.Data)
			if o, ok := e.Data.(apiObject); ok {
				value, _ = o.apiObject()
			}
			if c, ok := e.Data.(*ContinuousQueryChanges); ok {
				value = c.Tables
			}
			checkDecoded(t, reflect.ValueOf(value), []byte(data), "data")
		})
	}
	for _, kind := range legacyTypes {
		delete(left, kind)
	}
	for kind := range left {
		t.Errorf("the reference has no %s", kind)
	}
}

// payloadOf returns the payload of the data of an event.
func payloadOf(data string) any {
	switch {
	case strings.HasPrefix(data, "Grouped"):
		return &Samples{}
	case data == "array of ContinuousQueryResultTableChanges":
		return &ContinuousQueryChanges{}
	case embeddedPayloads[data] != nil:
		return embeddedPayloads[data]
	}
	if typ := payloadReference.Components[data]; typ != nil {
		return reflect.New(reflect.TypeOf(typ)).Interface()
	}
	return nil
}

// checkEnvelope checks that the envelope of an event has the fields of Event.
func checkEnvelope(t *testing.T, event reference.Event) {
	t.Helper()
	fields := map[string]bool{"event_type": true, "data": true, "team_id": true, "user_id": true, "client_user_id": true}
	for _, f := range reference.Components()[event.Envelope] {
		if !fields[f.Name] {
			t.Errorf("Event has no field %s of %s", f.Name, event.Envelope)
		}
		typ := f.ParsedType()
		switch f.Name {
		case "event_type": // a list of types or one of them
			if !slices.Contains(slices.Concat(typ.Values, []string{event.Type, `"` + event.Type + `"`}), event.Type) {
				t.Errorf("%s is not the envelope of %s", event.Envelope, event.Type)
			}
		case "data":
			if f.Type != event.Data {
				t.Errorf("the data of %s is %s", event.Envelope, f.Type)
			}
		case "client_user_id": // a string in the interface specification, a UUID in the reference
		default:
			if typ.Name != "uuid" {
				t.Errorf("the type of %s.%s is %s", event.Envelope, f.Name, f.Type)
			}
		}
	}
}

// exampleOf returns a JSON value of a type with a value in every field. Of an array, there is one
// element.
func exampleOf(typ reference.Type, f *reference.Field) string {
	switch typ.Kind {
	case reference.Component:
		var fields []string
		for _, f := range reference.Components()[typ.Key()] {
			fields = append(fields, fmt.Sprintf("%q:%s", f.Name, exampleOf(f.ParsedType(), &f)))
		}
		return "{" + strings.Join(fields, ",") + "}"
	case reference.Enumeration, reference.Inline:
		if value := typ.Values[len(typ.Values)-1]; typ.Name != "ServiceSleepStage" {
			return `"` + value + `"`
		}
		return "-1"
	case reference.Const:
		return typ.Values[0]
	case reference.Array:
		return "[" + exampleOf(*typ.Elem, f) + "]"
	case reference.Map:
		return `{"name":` + exampleOf(*typ.Elem, f) + "}"
	case reference.Union:
		return exampleOf(typ.Variants[0], f)
	}
	examples := map[string]string{
		"uuid": `"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"`, "uuid4": `"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"`, "date": `"2025-03-01"`,
		"date-time": `"2025-03-01T12:00:00+00:00"`, "integer": "7", "int64": "7", "number": "7.5", "boolean": "true", "any": `"any"`, "object": `{"a":1}`,
	}
	if example := examples[typ.Name]; example != "" {
		return example
	}
	return `"text"`
}

// checkDecoded checks that a value has a field for everything in its JSON, at any depth, and that
// no such field is zero.
func checkDecoded(t *testing.T, v reflect.Value, raw []byte, path string) {
	t.Helper()
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.IsZero() {
		t.Errorf("%s was not decoded", path)
		return
	}
	switch {
	case v.Kind() == reflect.Slice && raw[0] == '[':
		i := 0
		for element := range jsonread.Elements(raw) {
			checkDecoded(t, v.Index(i), element, path)
			i++
		}
	case v.Kind() == reflect.Map:
		for name, value := range jsonread.Fields(raw) {
			checkDecoded(t, v.MapIndex(reflect.ValueOf(string(name))), value, path+"."+string(name))
		}
	case v.Kind() == reflect.Struct && raw[0] == '{':
		fields := map[string]reflect.Value{}
		for f, value := range v.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields[name] = value
		}
		for name, value := range jsonread.Fields(raw) {
			checkDecoded(t, fields[string(name)], value, path+"."+string(name))
		}
	}
}

// checkSampleFields checks that every field of the component of a sample is in Sample or in
// SampleDetails.
func checkSampleFields(t *testing.T, s *Samples, event reference.Event) {
	t.Helper()
	group := reference.Components()[event.Data]
	if len(group) != 2 || group[0].Name != "source" || group[1].Name != "data" || len(s.Data) != 1 {
		t.Fatalf("%s has other fields than a batch: %v", event.Data, group)
	}
	checkDecoded(t, reflect.ValueOf(&s.Source), s.Source.RawJSON(), "source")
	sample, details := &s.Data[0], s.Data[0].Details()
	if details.Malformed() != nil {
		t.Errorf("malformed: %v", details.Malformed())
	}
	detailFields := map[string]reflect.Value{}
	for f, value := range reflect.ValueOf(details).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		detailFields[name] = value
	}
	ofSample := map[string]any{
		"timestamp": sample.Timestamp, "start": sample.Start, "end": sample.End, "timezone_offset": sample.TimezoneOffset, "type": sample.Type,
		"unit": sample.Unit, "value": sample.value(), "systolic": sample.Systolic, "diastolic": sample.Diastolic,
	}
	for _, f := range reference.Components()[group[1].ParsedType().Elem.Key()] {
		value, ok := ofSample[f.Name]
		if !ok {
			if detailFields[f.Name].IsValid() {
				value, ok = detailFields[f.Name].Interface(), true
			}
		}
		if !ok || reflect.ValueOf(value).IsZero() {
			t.Errorf("%s has no Go field, or it is not decoded", f.Key())
		}
		delete(ofSample, f.Name)
		delete(detailFields, f.Name)
	}
}

// The fields of SampleDetails and the values of Sample.Type are those of the reference.
func TestReferenceSamples(t *testing.T) {
	details := referencetest.Area{Components: map[string]any{}, Exceptions: map[string]string{}, Enums: map[string]any{
		"ClientFacingBodyTemperatureSample.sensor_location": SensorLocation(""),
		"ClientFacingWorkoutDurationSample.intensity":       WorkoutIntensity(""),
		"ClientFacingInsulinInjectionSample.delivery_mode":  InsulinDeliveryMode(""),
		"ClientFacingInsulinInjectionSample.delivery_form":  InsulinDeliveryForm(""),
		"ClientFacingInsulinInjectionSample.bolus_purpose":  InsulinBolusPurpose(""),
		"ClientFacingNoteSample.tags":                       NoteTag(""),
	}, Reduced: true}
	for _, event := range reference.Events() {
		if strings.HasPrefix(event.Data, "Grouped") {
			element := reference.Components()[event.Data][1].ParsedType().Elem
			details.Components[element.Key()] = SampleDetails{}
		}
	}
	first := slices.Sorted(maps.Keys(details.Components))[0]
	for _, name := range []string{"timestamp", "start", "end", "timezone_offset", "type", "unit", "value", "systolic", "diastolic"} {
		details.Exceptions[first+"."+name] = "a field of Sample"
	}
	referencetest.Check(t, details)
}

// ReadAll reads every resource that the paths of the reference have, and knows which of the others
// have no list.
func TestReadAllKnowsEveryResource(t *testing.T) {
	want := map[string]bool{}
	for _, o := range reference.Operations() {
		parts := strings.Split(o.Path, "/")
		switch {
		case strings.HasPrefix(o.Path, "/v2/summary/"):
			want[parts[3]] = true
		case strings.HasSuffix(o.Path, "/grouped"):
			_, event := namesOf(labhealth.SampleResource(parts[4]))
			want[event.Resource()] = false
		}
	}
	if got := maps.Collect(dailyResources()); !maps.Equal(got, want) {
		t.Errorf("resources %v, want %v", got, want)
	}
	var resources, listed []string
	for _, resource := range reference.Enumerations()["Resource"] {
		if _, ok := want[resource]; !ok && !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	for _, resource := range withoutList {
		listed = append(listed, string(resource))
	}
	slices.Sort(resources)
	if !slices.Equal(resources, listed) {
		t.Errorf("the resources without a list are %v, want %v", listed, resources)
	}
}
