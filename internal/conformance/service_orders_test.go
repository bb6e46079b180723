package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// A kit is sent to an address, registered by its patient, and comes back with results.
func TestServiceTestkit(t *testing.T) {
	srv, client := serve(t)
	ctx := t.Context()
	body := testkitBody()
	body.UserID, body.LabTestID, body.LabAccountID = srv.AddUser("ada"), srv.LabTests.Testkit, nil
	placed := must[*labhealth.PostOrderResponse](t)(client.Orders.CreateTestkit(ctx, body))
	id := placed.Order.ID
	equal(t, labhealth.OrderStatusReceivedTestkitAwaitingRegistration, placed.Order.CurrentStatus())
	equal(t, (*labhealth.OrderPatientDetails)(nil), placed.Order.PatientDetails)
	equal(t, &body.ShippingDetails, placed.Order.ShippingDetails)
	equal(t, "ours", *placed.Order.Passthrough)
	equal(t, 0, len(placed.Malformed()))

	settings := must[*labhealth.CommunicationSettings](t)(client.Orders.UpdateCommunicationSettings(ctx, id, labhealth.UpdateCommunicationSettingsBody{}))
	equal(t, &labhealth.CommunicationSettings{OrderID: id}, settings)
	settings = must[*labhealth.CommunicationSettings](t)(client.Orders.CommunicationSettings(ctx, id))
	equal(t, false, settings.SMSEnabled)

	var pdf bytes.Buffer
	must[int64](t)(client.Orders.CollectionInstructionsPDF(ctx, id, &pdf))
	must[int64](t)(client.Orders.LabelsPDF(ctx, id, labhealth.LabelsPDFParams{CollectionDate: time.Now()}, &pdf))
	equal(t, 2, strings.Count(pdf.String(), "%PDF-"))
	_, err := client.Orders.ABNPDF(ctx, id, io.Discard)
	checkRejected(t, err, "GET /v3/order/{order_id}/abn_pdf", 404, "ABN is not available")
	if err := srv.SetABN(id, true); err != nil {
		t.Fatal(err)
	}
	must[int64](t)(client.Orders.ABNPDF(ctx, id, &pdf))

	registration := registrationBody()
	registration.UserID, registration.SampleID = nil, *placed.Order.SampleID
	registered := must[*labhealth.PostOrderResponse](t)(client.Orders.RegisterTestkit(ctx, registration))
	equal(t, id, registered.Order.ID)
	equal(t, "Ada", *registered.Order.PatientDetails.FirstName)
	equal(t, "Jane", registered.Order.Physician.FirstName)
	equal(t, (*labhealth.ShippingAddress)(nil), registered.Order.ShippingDetails)
	equal(t, true, registered.Order.HealthInsuranceID != nil)
	_, err = client.Orders.RegisterTestkit(ctx, registration)
	checkRejected(t, err, "POST /v3/order/testkit/register", 400, "Testkit is already registered")
	_, err = client.Orders.Cancel(ctx, id)
	equal(t, 400, apiError(t, err).StatusCode)
	equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))

	equal(t, false, registered.Order.HasResults())
	_, err = client.Orders.ResultsPDF(ctx, id, io.Discard)
	checkRejected(t, err, "GET /v3/order/{order_id}/result/pdf", 404, "Results are not available yet")
	err = client.Orders.Simulate(ctx, id, labhealth.SimulateParams{Flags: labhealth.SimulationFlags{
		Interpretation: labhealth.InterpretationCritical, HasMissingResults: new(true),
	}})
	if err != nil {
		t.Fatal(err)
	}
	order := must[*labhealth.Order](t)(client.Orders.Get(ctx, id))
	equal(t, []any{true, false, true}, []any{order.HasResults(), order.Canceled(), *order.HasMissingResults})
	must[int64](t)(client.Orders.ResultsPDF(ctx, id, &pdf))
	results := must[*labhealth.OrderResults](t)(client.Orders.Results(ctx, id))
	equal(t, []any{true, true, 1, 0}, []any{results.Abnormal(), results.Critical(), len(results.MissingResults), len(results.Malformed())})
	sample := results.SampleInformation[*order.SampleID]
	equal(t, order.CreatedAt, sample.DateCollected.Timestamp)
	equal(t, "Example Laboratories", sample.PerformingLaboratories["quest"].Name)
	metadata := must[*labhealth.ResultsMetadata](t)(client.Orders.ResultsMetadata(ctx, id))
	equal(t, &results.Metadata, metadata)
}

// The documented response of a simulation is a JSON string.
func TestSimulateResponses(t *testing.T) {
	for body, ok := range map[string]bool{`"Success"`: true, `{"status":"ok"}`: true, "null": true, "": true, "Success": false, "<html>": false} {
		client, _ := respondingWith(t, 200, body)
		if err := client.Orders.Simulate(t.Context(), orderID, labhealth.SimulateParams{}); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A service that cancels or registers and loses the response was asked once, and the program finds
// out what happened.
func TestCommittedAndLost(t *testing.T) {
	tests := []struct {
		name  string
		op    string
		write func(context.Context, *labhealth.Client, *labhealth.Order) error
		done  func(*labhealth.Order) bool
	}{
		{"Cancel", "POST /v3/order/{order_id}/cancel", func(ctx context.Context, c *labhealth.Client, o *labhealth.Order) error {
			_, err := c.Orders.Cancel(ctx, o.ID)
			return err
		}, (*labhealth.Order).Canceled},
		{"RegisterTestkit", "POST /v3/order/testkit/register", func(ctx context.Context, c *labhealth.Client, o *labhealth.Order) error {
			body := registrationBody()
			body.UserID, body.SampleID = nil, *o.SampleID
			_, err := c.Orders.RegisterTestkit(ctx, body)
			return err
		}, func(o *labhealth.Order) bool { return o.PatientDetails != nil }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			srv, client := serve(t)
			body := testkitBody()
			body.UserID, body.LabTestID, body.LabAccountID = srv.AddUser("ada"), srv.LabTests.Testkit, nil
			kit := must[*labhealth.PostOrderResponse](t)(client.Orders.CreateTestkit(t.Context(), body)).Order
			before := len(srv.Requests())
			if err := srv.FailAfter(test.op, 1, labhealthtest.FaultClosed); err != nil {
				t.Fatal(err)
			}
			err := test.write(t.Context(), client, &kit)
			equal(t, labhealth.OutcomeUnknown, labhealth.OutcomeOf(err))
			equal(t, 1, len(srv.Requests())-before)
			got := must[*labhealth.Order](t)(client.Orders.Get(t.Context(), kit.ID))
			equal(t, true, test.done(got))
			equal(t, 400, apiError(t, test.write(t.Context(), client, &kit)).StatusCode)
		})
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
