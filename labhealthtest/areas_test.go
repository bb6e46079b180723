package labhealthtest_test

import (
	"testing"
)

func TestAreaInfo(t *testing.T) {
	srv := newServer(t)
	check(t, do(t, srv, "GET", "/v3/order/area/info?zip_code=94105", ""), 200, `{
		"zip_code": "94105",
		"phlebotomy": {"is_served": true, "providers": [
			{"name": "getlabs", "service_types": ["appointment-ready"]}, {"name": "phlebfinders", "service_types": ["appointment-request"]}]},
		"central_labs": {
			"quest": {
				"patient_service_centers": {"within_radius": 2, "radius": "25", "capabilities": ["stat", "appointment_scheduling_with_lab"]},
				"supported_bill_types": ["client_bill", "patient_bill"], "lab_id": 27},
			"sonora_quest": {
				"patient_service_centers": {"within_radius": 2, "radius": "25", "capabilities": ["stat", "appointment_scheduling_with_lab"]},
				"supported_bill_types": ["client_bill", "patient_bill"], "lab_id": 31}
		}}`)
	check(t, do(t, srv, "GET", "/v3/order/area/info?zip_code=94105&radius=10&labs=quest&labs=labcorp", ""), 200, `{
		"zip_code": "94105",
		"phlebotomy": {"is_served": true, "providers": [
			{"name": "getlabs", "service_types": ["appointment-ready"]}, {"name": "phlebfinders", "service_types": ["appointment-request"]}]},
		"central_labs": {"quest": {
			"patient_service_centers": {"within_radius": 1, "radius": "10", "capabilities": ["stat", "appointment_scheduling_with_lab"]},
			"supported_bill_types": ["client_bill", "patient_bill"], "lab_id": 27}}}`)
	check(t, do(t, srv, "GET", "/v3/order/area/info?zip_code=10001&lab=quest", ""), 200, `{
		"zip_code": "10001", "phlebotomy": {"is_served": false, "providers": []},
		"central_labs": {"quest": {
			"patient_service_centers": {"within_radius": 0, "radius": "25", "capabilities": []},
			"supported_bill_types": ["client_bill", "patient_bill"], "lab_id": 27}}}`)
	for path, want := range map[string]string{
		"/v3/order/area/info":                         "missing zip_code",
		"/v3/order/area/info?zip_code=94105-1234":     "string_pattern_mismatch zip_code",
		"/v3/order/area/info?zip_code=94105&radius=7": "enum radius",
		"/v3/order/area/info?zip_code=94105&lab=x":    "enum lab",
		"/v3/order/psc/info?zip_code=94105":           "missing lab_id",
		"/v3/order/psc/info?zip_code=94105&lab_id=x":  "int_parsing lab_id",
	} {
		got := do(t, srv, "GET", path, "")
		body := decodeJSON(t, got.body).(map[string]any)["detail"].([]any)[0].(map[string]any)
		if text := body["type"].(string) + " " + body["loc"].([]any)[1].(string); got.status != 422 || text != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestSites(t *testing.T) {
	srv := newServer(t)
	const near = `{"metadata": {"name": "San Francisco Center", "state": "CA", "city": "San Francisco", "zip_code": "94105",
			"first_line": "10 Market Street", "second_line": null, "phone_number": "+14155550160", "fax_number": null,
			"hours": {"monday": "07:00-16:00", "saturday": "08:00-12:00"}, "website": null},
		"distance": 1, "site_code": "Q-941-1", "supported_bill_types": ["client_bill", "patient_bill"],
		"location": {"lng": -122.39, "lat": 37.79}, "capabilities": ["stat", "appointment_scheduling_with_lab"]}`
	const far = `{"metadata": {"name": "San Francisco North", "state": "CA", "city": "San Francisco", "zip_code": "94133",
			"first_line": "20 Hill Street", "second_line": null, "phone_number": "+14155550160", "fax_number": null,
			"hours": {"monday": "07:00-16:00", "saturday": "08:00-12:00"}, "website": null},
		"distance": 12, "site_code": "Q-941-2", "supported_bill_types": ["client_bill", "patient_bill"],
		"location": {"lng": -122.39, "lat": 37.79}, "capabilities": []}`
	one, both := `{"lab_id":27,"slug":"quest","patient_service_centers":[`+near+`]}`, `{"lab_id":27,"slug":"quest","patient_service_centers":[`+near+`,`+far+`]}`
	check(t, do(t, srv, "GET", "/v3/order/psc/info?zip_code=94105&lab_id=27", ""), 200, both)
	check(t, do(t, srv, "GET", "/v3/order/psc/info?zip_code=94105&lab_id=27&radius=10", ""), 200, one)
	check(t, do(t, srv, "GET", "/v3/order/psc/info?zip_code=94105&lab_id=27&capabilities=stat", ""), 200, one)
	check(t, do(t, srv, "GET", "/v3/order/psc/info?zip_code=10001&lab_id=31", ""), 200, `{"lab_id":31,"slug":"sonora_quest","patient_service_centers":[]}`)
	check(t, do(t, srv, "GET", "/v3/order/psc/info?zip_code=94105&lab_id=5", ""), 400, `{"detail":"Lab has no patient service centers"}`)

	order := addOrder(t, srv, srv.LabTests.WalkIn) // its patient lives at 94105
	check(t, do(t, srv, "GET", "/v3/order/"+order+"/psc/info", ""), 200, both)
	check(t, do(t, srv, "GET", "/v3/order/"+order+"/psc/info?radius=10", ""), 200, one)
	check(t, do(t, srv, "GET", "/v3/order/"+unknownID+"/psc/info", ""), 404, `{"detail":"This order doesn't exist"}`)

	kit := createTestkit(t, srv, srv.AddUser("without-address")).ID.String()
	check(t, do(t, srv, "GET", "/v3/order/"+kit+"/psc/info", ""), 400, `{"detail":"Order has no patient address"}`)

	a := decode[availability](t, do(t, srv, "POST", "/v3/order/psc/appointment/availability?lab=quest&site_codes=Q-787-1&start_date=2025-03-06", ""))
	if len(a.Slots) != 7 || a.Slots[0].Location.Code != "Q-787-1" || a.Slots[0].Date != "2025-03-06" {
		t.Errorf("%+v", a)
	}
}
