package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"
)

type markerPage struct {
	Markers []struct {
		ID              int64
		AoE             *struct{ Questions []struct{ Code string } } `json:"aoe"`
		ExpectedResults []struct {
			LOINC struct{ Code string } `json:"loinc"`
		} `json:"expected_results"`
	}
	Total, Page, Size, Pages int
}

// ids formats the IDs of the markers and the numbers of the page.
func (p markerPage) ids() string {
	var ids []string
	for _, m := range p.Markers {
		ids = append(ids, fmt.Sprint(m.ID))
	}
	return fmt.Sprintf("%s; %d, page %d/%d of %d", strings.Join(ids, " "), p.Total, p.Page, p.Pages, p.Size)
}

func TestListMarkers(t *testing.T) {
	srv := newServer(t)
	const (
		test      = "/v3/lab_tests/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01/markers"
		orderSet  = "/v3/lab_tests/list_order_set_markers"
		walkIn    = `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"`
		otherTest = `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f06"`
	)
	for _, request := range []struct{ path, body, want string }{
		{"/v3/lab_tests/markers", "", "901 902 903 904 905 906; 6, page 1/1 of 50"},
		{"/v3/lab_tests/markers?page=2&size=4", "", "905 906; 6, page 2/2 of 4"},
		{"/v3/lab_tests/markers?page=9&size=4", "", "; 6, page 9/2 of 4"},
		{"/v3/lab_tests/markers?lab_id=31&lab_id=27", "", "901 902 903 904 905 906; 6, page 1/1 of 50"},
		{"/v3/lab_tests/markers?lab_id=31", "", "903; 1, page 1/1 of 50"},
		{"/v3/lab_tests/markers?lab_slug=sonora_quest", "", "903; 1, page 1/1 of 50"},
		{"/v3/lab_tests/markers?name=CHOLESTEROL", "", "901 902; 2, page 1/1 of 50"},
		{"/v3/lab_tests/markers?a_la_carte_enabled=false", "", "906; 1, page 1/1 of 50"},
		{"/v3/lab_tests/markers?lab_account_id=4e0a9d7c-1f2b-4c3d-8e5f-6a7b8c9d0e02", "", "903; 1, page 1/1 of 50"},
		{test, "", "901 902; 2, page 1/1 of 50"},
		{test + "?size=1&page=2", "", "902; 2, page 2/2 of 1"},
		{orderSet, `{}`, "; 0, page 1/0 of 50"},
		{orderSet, `{"lab_test_ids":[` + walkIn + `]}`, "901 902; 2, page 1/1 of 50"},
		{orderSet + "?size=2", `{"lab_test_ids":[` + walkIn + `,` + otherTest + `],"add_on":{"provider_ids":["P-901","P-905"]}}`, "901 902; 4, page 1/2 of 2"},
		{orderSet + "?size=2&page=2", `{"lab_test_ids":[` + walkIn + `,` + otherTest + `],"add_on":{"marker_ids":[901,905]}}`, "904 905; 4, page 2/2 of 2"},
	} {
		method := "GET"
		if request.body != "" {
			method = "POST"
		}
		if got := decode[markerPage](t, do(t, srv, method, request.path, request.body)).ids(); got != request.want {
			t.Errorf("%s %s: %s; want %s", request.path, request.body, got, request.want)
		}
	}
	for _, query := range []string{"", "?lab_account_id=" + srv.LabAccounts.Active.String()} {
		marker := do(t, srv, "GET", "/v3/lab_tests/27/markers/P-902"+query, "")
		if id := decode[struct{ ID int }](t, marker).ID; id != 902 {
			t.Errorf("%q: %s", query, marker.body)
		}
	}
	page := decode[markerPage](t, do(t, srv, "GET", "/v3/lab_tests/markers", ""))
	for _, m := range page.Markers {
		if len(m.ExpectedResults) != 1 || m.ExpectedResults[0].LOINC.Code == "" {
			t.Errorf("marker %d has the expected results %v", m.ID, m.ExpectedResults)
		}
	}
	if questions := page.Markers[4].AoE.Questions; len(questions) != 3 {
		t.Errorf("questions %v", questions)
	}
}

func TestMarkersRejected(t *testing.T) {
	srv := newServer(t)
	const orderSet = "/v3/lab_tests/list_order_set_markers"
	for _, request := range []struct {
		path, body string
		status     int
		detail     string
	}{
		{"/v3/lab_tests/" + unknownID + "/markers", "", 404, "Test does not exist"},
		{"/v3/lab_tests/27/markers/P-999", "", 404, "Marker does not exist"},
		{"/v3/lab_tests/31/markers/P-901", "", 404, "Marker does not exist"},
		{"/v3/lab_tests/27/markers/P-901?lab_account_id=" + unknownID, "", 404, "Lab account not found"},
		{"/v3/lab_tests/markers?lab_account_id=" + unknownID, "", 404, "Lab account not found"},
		{orderSet, `{"lab_test_ids":["` + unknownID + `"]}`, 400, "Test does not exist"},
		{orderSet, `{"lab_test_ids":["5b41f610-ebc5-4803-8f0c-a61c3bdc7f07"]}`, 400, "Test is not active"},
		{orderSet, `{"add_on":{"marker_ids":[1]}}`, 400, "Marker does not exist"},
		{orderSet, `{"add_on":{"provider_ids":["P-1"]}}`, 400, "Marker does not exist"},
		{orderSet, `{"add_on":{}}`, 400, "add_on must contain marker_ids or provider_ids"},
		{orderSet, `{"add_on":{"marker_ids":[901],"provider_ids":["P-901"]}}`, 400, "add_on must not contain both marker_ids and provider_ids"},
		{orderSet, `{"add_on":{"marker_ids":[901]},"lab_account_id":"` + unknownID + `"}`, 400, "Lab account does not exist"},
	} {
		method := "GET"
		if request.body != "" {
			method = "POST"
		}
		check(t, do(t, srv, method, request.path, request.body), request.status, fmt.Sprintf(`{"detail":%q}`, request.detail))
	}
	check(t, do(t, srv, "GET", "/v3/lab_tests/x/markers/P-901", ""), 422, `{"detail":[{"type":"int_parsing","loc":["path","lab_id"],
		"msg":"Input should be a valid integer, unable to parse string as an integer","input":"x"}]}`)
	for _, query := range []string{"page=0", "size=101", "size=0", "lab_id=x", "lab_account_id=1", "a_la_carte_enabled=2"} {
		if got := do(t, srv, "GET", "/v3/lab_tests/markers?"+query, ""); got.status != 422 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

func TestPricing(t *testing.T) {
	srv := newServer(t)
	type price struct {
		BaseAmountMinor int64 `json:"base_amount_minor"`
		Modifiers       []struct{}
		Unspecified     string
	}
	markers := decode[struct {
		Pricing *struct {
			Currency string
			Data     map[string]price
		}
	}](t, do(t, srv, "GET", "/v3/lab_tests/markers?include_pricing=true", ""))
	data := markers.Pricing.Data
	if len(data) != 6 || data["901"].BaseAmountMinor != 1000 || data["902"].Unspecified != "refer_to_contract" || len(data["904"].Modifiers) != 2 {
		t.Errorf("markers: %+v", data)
	}
	tests := decode[struct {
		Pricing *struct {
			Data map[string]struct {
				Pricing         price
				MarkerBreakdown map[string]price `json:"marker_breakdown"`
			}
		}
	}](t, do(t, srv, "GET", "/v3/lab_test?include_pricing=true&name=lead", ""))
	lead := tests.Pricing.Data["5b41f610-ebc5-4803-8f0c-a61c3bdc7f06"]
	if lead.Pricing.BaseAmountMinor != 4500 || lead.MarkerBreakdown["904"].BaseAmountMinor != 2100 {
		t.Errorf("lab tests: %+v", tests.Pricing.Data)
	}
	for _, path := range []string{"/v3/lab_tests/markers", "/v3/lab_test?include_pricing=0"} {
		if got := do(t, srv, "GET", path, ""); !strings.Contains(got.body, `"pricing":null`) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}
