package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func TestResults(t *testing.T) {
	srv := newServer(t)
	id := completeOrder(t, srv, srv.LabTests.WalkIn)
	noError(t, srv.SetMissing(id, 902, "quantity_not_sufficient_failure"))
	noError(t, srv.SetInterpretation(id, "abnormal"))
	transaction := getOrder(t, srv, id).Transaction.ID.String()
	metadata := replaceOnce(t, `{
		"age":"35","dob":"1990-01-31","clia_#":"99D0000000","patient":"Ada Example","provider":null,
		"laboratory":"Example Laboratories","date_reported":"2025-03-04T12:00:00+00:00",
		"date_collected":"2025-03-04T12:00:00+00:00","date_received":"2025-03-04T12:00:00+00:00",
		"specimen_number":"SPECIMEN","status":"final","interpretation":"abnormal","patient_id":null,"account_id":null}`,
		"SPECIMEN", id.String()[:8])
	want := strings.NewReplacer("METADATA", metadata, "TRANSACTION", transaction, "ORDER", id.String(), "SPECIMEN", id.String()[:8]).Replace(`{
		"metadata":METADATA,
		"results":[{"name":"Total Cholesterol","slug":"total-cholesterol","result":"412","result_type":"numeric","type":"numeric",
			"unit":"mg/dL","timestamp":"2025-03-04T12:00:00+00:00","notes":null,"reference_range":"0-200","min_range_value":0,
			"max_range_value":200,"is_above_max_range":true,"is_below_min_range":false,"interpretation":"abnormal",
			"loinc":"2093-3","loinc_slug":"total-cholesterol","provider_id":"P-901",
			"source_markers":[{"marker_id":901,"name":"Total Cholesterol","slug":"total-cholesterol","provider_id":"P-901"}],
			"performing_laboratory":"Example Laboratories","source_sample_id":"SPECIMEN"}],
		"missing_results":[{"name":"HDL Cholesterol","slug":"hdl-cholesterol","inferred_failure_type":"quantity_not_sufficient_failure",
			"note":null,"loinc":"2085-9","loinc_slug":"hdl-cholesterol","provider_id":"P-902",
			"source_markers":[{"marker_id":902,"name":"HDL Cholesterol","slug":"hdl-cholesterol","provider_id":"P-902"}]}],
		"sample_information":{"SPECIMEN":{"sample_id":"SPECIMEN","control_number":null,
			"date_collected":{"timestamp":"2025-03-04T12:00:00+00:00","timezone_offset":0},
			"date_received":{"timestamp":"2025-03-04T12:00:00+00:00","timezone_offset":0},"date_reported":"2025-03-04",
			"performing_laboratories":{"quest":{"name":"Example Laboratories","phone_number":null,"medical_director":null,
				"address":{"first_line":"1 Lab Way","second_line":null,"country":"US","zip":"89501","city":"Reno","state":"NV","access_notes":null}}},
			"clinical_information":{"fasting":false,"notes":null,"information":null,"total_volume":null}}},
		"order_transaction":{"id":"TRANSACTION","status":"completed","orders":[{"id":"ORDER",
			"created_at":"2025-03-04T12:00:00.000000Z","updated_at":"2025-03-04T12:00:00.000000Z","low_level_status":"completed",
			"low_level_status_created_at":"2025-03-04T12:00:00.000000Z","origin":"initial","parent_id":null}]}}`)
	path := "/v3/order/" + id.String() + "/result"
	check(t, do(t, srv, "GET", path, ""), 200, want)
	check(t, do(t, srv, "GET", path+"/metadata", ""), 200, metadata)

	noError(t, srv.SetResults(id, `{"metadata":`))
	if got := do(t, srv, "GET", path, ""); got.body != `{"metadata":` || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%q as %s", got.body, got.header.Get("Content-Type"))
	}
	noError(t, srv.SetResults(id, ""))
	check(t, do(t, srv, "GET", path, ""), 200, want)

	// The sample and the physician of an imported order.
	imported := decode[placed](t, do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, srv.AddUser("ada")))).Order.ID
	for status := ""; !strings.HasPrefix(status, "completed"); {
		var err error
		status, err = srv.Advance(imported)
		noError(t, err)
	}
	metadata = do(t, srv, "GET", "/v3/order/"+imported.String()+"/result/metadata", "").body
	if !strings.Contains(metadata, `"provider":"Jane Doctor"`) || !strings.Contains(metadata, `"specimen_number":"SAMPLE-1"`) {
		t.Error(metadata)
	}
}

func TestResultsByStatus(t *testing.T) {
	srv := newServer(t)
	type results struct {
		Metadata struct{ Status string }
		Results  []struct{ Slug, Result, Type string }
	}
	id, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.WalkIn)
	noError(t, err)
	path := "/v3/order/" + id.String() + "/result"
	for _, p := range []string{path, path + "/metadata"} {
		check(t, do(t, srv, "GET", p, ""), 404, `{"detail":"Results are not available yet"}`)
	}
	noError(t, srv.PartialResults(id))
	got := decode[results](t, do(t, srv, "GET", path, ""))
	if s := fmt.Sprint(got); s != "{{partial} [{total-cholesterol 182 numeric}]}" {
		t.Error(s)
	}
	_, err = srv.Advance(id)
	noError(t, err)
	got = decode[results](t, do(t, srv, "GET", path, ""))
	if s := fmt.Sprint(got); s != "{{final} [{total-cholesterol 182 numeric} {hdl-cholesterol 58.5 numeric}]}" {
		t.Error(s)
	}
	lead := completeOrder(t, srv, srv.LabTests.WithQuestions)
	got = decode[results](t, do(t, srv, "GET", "/v3/order/"+lead.String()+"/result", ""))
	if s := fmt.Sprint(got); s != "{{final} [{lead-blood <1.0 range}]}" {
		t.Error(s)
	}
	unknown := uuid.MustParse(unknownID)
	check(t, do(t, srv, "GET", "/v3/order/"+unknown.String()+"/result", ""), 404, `{"detail":"This order doesn't exist"}`)
	if got := do(t, srv, "GET", "/v3/order/x/result", ""); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
	for _, err := range []error{srv.SetResults(unknown, ""), srv.SetMissing(unknown, 901, "unknown_failure"), srv.SetMissing(id, 904, "unknown_failure")} {
		if err == nil {
			t.Error("no error for an unknown order or marker")
		}
	}
}

// A corrected value changes the results and nothing else.
func TestCorrectResult(t *testing.T) {
	srv := newServer(t)
	noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithTransport(always(200))))
	id := srv.AddOrders(2)[1]
	if err := srv.CorrectResult(id, 901, "183"); err == nil {
		t.Error("CorrectResult succeeds without results")
	}
	noError(t, srv.PartialResults(id))
	order, results := "/v3/order/"+id.String(), "/v3/order/"+id.String()+"/result"
	orderBefore, resultsBefore := do(t, srv, "GET", order, ""), do(t, srv, "GET", results, "")
	noError(t, srv.CorrectResult(id, 901, "183"))
	check(t, do(t, srv, "GET", order, ""), 200, orderBefore.body)
	check(t, do(t, srv, "GET", results, ""), 200, replaceOnce(t, resultsBefore.body, `"result":"182"`, `"result":"183"`))
	if err := srv.CorrectResult(id, 904, "183"); err == nil {
		t.Error("CorrectResult succeeds for a marker of another lab test")
	}
	noError(t, srv.Flush(t.Context()))
	if n := len(srv.Deliveries()); n != 0 {
		t.Errorf("%d deliveries", n)
	}
}

func TestRequisition(t *testing.T) {
	srv := newServer(t)
	id, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.WalkIn)
	noError(t, err)
	path := "/v3/order/" + id.String() + "/requisition/pdf"
	check(t, do(t, srv, "GET", path, ""), 404, `{"detail":"Requisition is not available"}`)
	_, err = srv.Advance(id)
	noError(t, err)
	got := do(t, srv, "GET", path, "")
	if got.status != 200 || got.header.Get("Content-Type") != "application/pdf" || !strings.HasPrefix(got.body, "%PDF-1.4\n") ||
		!strings.HasSuffix(got.body, "%%EOF\n") || !strings.Contains(got.body, "(Requisition for order "+id.String()+") Tj") {
		t.Fatalf("%d %s %q", got.status, got.header.Get("Content-Type"), got.body)
	}
	// The cross-reference table has the offset of each object, and startxref the offset of the
	// table.
	var start int
	if _, err := fmt.Sscanf(got.body[strings.Index(got.body, "startxref\n")+10:], "%d", &start); err != nil || !strings.HasPrefix(got.body[start:], "xref\n0 6\n") {
		t.Fatalf("no cross-reference table at %d", start)
	}
	for i, row := range strings.Split(got.body[start:], "\n")[3:8] {
		var at int
		if _, err := fmt.Sscanf(row, "%d", &at); err != nil || !strings.HasPrefix(got.body[at:], fmt.Sprintf("%d 0 obj\n", i+1)) {
			t.Errorf("object %d is not at %q", i+1, row)
		}
	}
	imported := decode[placed](t, do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, srv.AddUser("ada")))).Order.ID
	for err == nil {
		_, err = srv.Advance(imported)
	}
	check(t, do(t, srv, "GET", "/v3/order/"+imported.String()+"/requisition/pdf", ""), 404, `{"detail":"Requisition is not available"}`)
	check(t, do(t, srv, "GET", "/v3/order/"+unknownID+"/requisition/pdf", ""), 404, `{"detail":"This order doesn't exist"}`)
}
