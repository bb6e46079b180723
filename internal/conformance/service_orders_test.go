package conformance

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

// The documented response of a simulation is a JSON string.
func TestSimulateResponses(t *testing.T) {
	for body, ok := range map[string]bool{`"Success"`: true, `{"status":"ok"}`: true, "null": true, "": true, "Success": false, "<html>": false} {
		client, _ := respondingWith(t, 200, body)
		if err := client.Orders.Simulate(t.Context(), orderID, labhealth.SimulateParams{}); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// What results and orders answer.
func TestQuestions(t *testing.T) {
	for _, test := range []struct {
		json               string
		abnormal, critical bool
	}{
		{`{}`, false, false},
		{`{"interpretation":null}`, false, false},
		{`{"interpretation":"normal"}`, false, false},
		{`{"interpretation":"unknown"}`, false, false},
		{`{"interpretation":"borderline"}`, false, false},
		{`{"interpretation":"abnormal"}`, true, false},
		{`{"interpretation":"critical"}`, true, true},
		{`{"is_above_max_range":true}`, true, false},
		{`{"is_below_min_range":true,"interpretation":"normal"}`, true, false},
		{`{"is_above_max_range":false,"is_below_min_range":null}`, false, false},
		{`{"result":"412","min_range_value":0,"max_range_value":200}`, false, false}, // the lab did not mark it
		{`{"is_above_max_range":true,"interpretation":"critical"}`, true, true},
	} {
		var r labhealth.Result
		var all, metadata labhealth.OrderResults
		for document, v := range map[string]any{test.json: &r, `{"results":[{},` + test.json + `]}`: &all, `{"metadata":` + test.json + `}`: &metadata} {
			if err := json.Unmarshal([]byte(document), v); err != nil {
				t.Fatal(err)
			}
		}
		want := []bool{test.abnormal, test.critical}
		equal(t, want, []bool{r.Abnormal(), r.Critical()})
		equal(t, want, []bool{all.Abnormal(), all.Critical()})
		if !strings.Contains(test.json, "range") {
			equal(t, want, []bool{metadata.Abnormal(), metadata.Critical()})
		}
	}

	status := func(list ...string) string {
		return `{"events":[{"id":1,"status":"` + strings.Join(list, `"},{"id":2,"status":"`) + `"}]}`
	}
	for _, test := range []struct {
		json                 string
		hasResults, canceled bool
	}{
		{`{}`, false, false},
		{`{"status":"completed"}`, true, false},
		{`{"status":"cancelled"}`, false, true},
		{`{"status":"completed","last_event":{"status":"received.testkit.ordered"}}`, false, false},
		{`{"last_event":{"status":"completed.testkit.completed"}}`, true, false},
		{`{"last_event":{"status":"completed.testkit.corrected"}}`, true, false},
		{`{"last_event":{"status":"completed.walk_in_test.partial_results"}}`, true, false},
		{`{"last_event":{"status":"cancelled.testkit.do_not_process"}}`, false, true},
		{`{"last_event":{"status":"completed"}}`, false, false},
		{status("received.walk_in_test.ordered"), false, false},
		{status("sample_with_lab.walk_in_test.partial_results"), true, false},
		{status("sample_with_lab.walk_in_test.partial_results", "collecting_sample.walk_in_test.redraw_available"), true, false},
		{status("completed.testkit.completed", "failed.testkit.sample_error"), true, false},
		{status("failed.testkit.sample_error"), false, false},
		{status("sample_with_lab.walk_in_test.partial_results", "cancelled.walk_in_test.cancelled"), false, true},
		{status("collecting_sample.walk_in_test.appointment_cancelled"), false, false},
	} {
		var o labhealth.Order
		if err := json.Unmarshal([]byte(test.json), &o); err != nil {
			t.Fatal(err)
		}
		if got := []bool{o.HasResults(), o.Canceled()}; !slices.Equal(got, []bool{test.hasResults, test.canceled}) {
			t.Errorf("%s: %v", test.json, got)
		}
	}
}

// Times of samples come as objects and as strings, and are encoded as they came.
func TestSampleTimes(t *testing.T) {
	noon := time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		json      string
		want      *labhealth.SampleTime
		malformed bool
	}{
		{`{"timestamp": "2025-03-04T12:00:00Z", "timezone_offset": -18000}`, &labhealth.SampleTime{Timestamp: noon, TimezoneOffset: -18000}, false},
		{`{"timestamp": "2025-03-04T12:00:00", "timezone_offset": null, "zone": "UTC"}`, &labhealth.SampleTime{Timestamp: noon}, false},
		{`"2025-03-04T12:00:00+00:00"`, &labhealth.SampleTime{Timestamp: noon, Text: "2025-03-04T12:00:00+00:00"}, false},
		{`"04/03/2025 \u0031pm"`, &labhealth.SampleTime{Text: "04/03/2025 1pm"}, false},
		{`""`, &labhealth.SampleTime{}, false},
		{`null`, nil, false},
		{`{}`, nil, true},
		{`{"timestamp": "noon"}`, nil, true},
		{`[1]`, nil, true},
		{`5`, nil, true},
	} {
		document := `{"date_collected": ` + test.json + `}`
		var data labhealth.SampleData
		if err := json.Unmarshal([]byte(document), &data); err != nil {
			t.Fatal(err)
		}
		var malformed []labhealth.Malformed
		if test.malformed {
			malformed = []labhealth.Malformed{{Path: "date_collected", Want: "date-time"}}
			if data.DateCollected != nil {
				equal(t, labhealth.SampleTime{}, *data.DateCollected)
			}
		} else {
			equal(t, test.want, data.DateCollected)
		}
		equal(t, malformed, data.Malformed())
		equal(t, jsonData(t, document), jsonData(t, mustEncode(t, data)))
		data.SampleID = new("S-1") // a change keeps the rest
		equal(t, jsonData(t, strings.Replace(document, "{", `{"sample_id":"S-1",`, 1)), jsonData(t, mustEncode(t, data)))
	}
}
