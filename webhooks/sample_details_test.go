package webhooks

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	labhealth "github.com/labhealth/labhealth-go"
)

// Details are decoded from the received JSON, whatever reads the sample.
func TestSampleDetails(t *testing.T) {
	const element = `{"timestamp":"2025-03-01T12:00:00Z","unit":"unit","value":4,"type":"long_acting","id":7,"sensor_location":"ear","intensity":"high",` +
		`"delivery_mode":"bolus","delivery_form":"extended","bolus_purpose":"brand_new","tags":["food",null,"else"],"grouping":["unknown",null,1.0],"new":1}`
	want := SampleDetails{
		ID: new(int64(7)), SensorLocation: new(SensorEar), Intensity: new(WorkoutIntensityHigh), DeliveryMode: new(InsulinDeliveryBolus),
		DeliveryForm: new(InsulinDeliveryExtended), BolusPurpose: new(InsulinBolusPurpose("brand_new")), Tags: []NoteTag{NoteTagFood, "", "else"},
		Grouping: []json.RawMessage{json.RawMessage(`"unknown"`), nil, json.RawMessage("1.0")},
	}
	e := mustParse(t, wrap(0, DailyInsulinInjectionCreated, `{"source":`+providerSource+`,"data":[`+element+`]}`))
	var alone Sample
	if err := json.Unmarshal([]byte(element), &alone); err != nil {
		t.Fatal(err)
	}
	var latest Latest
	if _, err := latest.Apply(Delivery{Event: e}); err != nil {
		t.Fatal(err)
	}
	samples := map[string]Sample{"of an event": e.Data.(*Samples).Data[0], "alone": alone}
	for _, s := range latest.Samples() {
		samples["stored"] = s
	}
	if len(samples) != 3 {
		t.Fatal("the sample was not stored")
	}
	for name, s := range samples {
		got := s.Details()
		if diff := cmp.Diff(want, got); diff != "" || string(got.RawJSON()) != element || got.Malformed() != nil {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := (Sample{Value: 1}).Details(); got.RawJSON() != nil || !cmp.Equal(got, SampleDetails{}) {
		t.Error("a sample that was not received has details")
	}
	e = mustParse(t, wrap(0, DailyNoteCreated, `{"data":[{"tags":"food","id":"seven","grouping":null}, 7, null]}`))
	for i, bad := range [][]labhealth.Malformed{{{Path: "tags", Want: "array"}, {Path: "id", Want: "integer"}}, {{Want: "object"}}, nil} {
		details := e.Data.(*Samples).Data[i].Details()
		if diff := cmp.Diff(bad, details.Malformed()); diff != "" && i != 2 || details.ID != nil || details.Tags != nil {
			t.Errorf("%d: %s", i, diff)
		}
	}
}
