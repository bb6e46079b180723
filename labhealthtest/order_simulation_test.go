package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestSimulateOrder(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	for _, test := range []struct{ query, want string }{
		{"", "received.on_site_collection.ordered received.on_site_collection.requisition_created sample_with_lab.on_site_collection.draw_completed completed.on_site_collection.completed"},
		{"?final_status=sample_with_lab.on_site_collection.draw_completed&delay=5", "received.on_site_collection.ordered received.on_site_collection.requisition_created sample_with_lab.on_site_collection.draw_completed"},
		{"?final_status=failed.on_site_collection.sample_error", "received.on_site_collection.ordered failed.on_site_collection.sample_error"},
	} {
		id, err := srv.AddOrder(ada, srv.LabTests.OnSite)
		noError(t, err)
		check(t, do(t, srv, "POST", "/v3/order/"+id.String()+"/test"+test.query, ""), 200, `"Success"`)
		if got := strings.Join(getOrder(t, srv, id).statuses(), " "); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	// An order is not simulated back, nor after its end.
	id, err := srv.AddOrder(ada, srv.LabTests.AtHome)
	noError(t, err)
	path := "/v3/order/" + id.String() + "/test"
	for _, test := range []struct{ query, want string }{
		{"?final_status=collecting_sample.at_home_phlebotomy.appointment_scheduled", ""},
		{"?final_status=collecting_sample.at_home_phlebotomy.appointment_scheduled", "Order has already passed final_status"},
		{"?final_status=collecting_sample.at_home_phlebotomy.appointment_pending", "Order has already passed final_status"},
		{"?final_status=received.at_home_phlebotomy.requisition_bypassed", "Order has already passed final_status"},
		{"?final_status=collecting_sample.at_home_phlebotomy.appointment_cancelled", ""},
		{"?final_status=collecting_sample.at_home_phlebotomy.appointment_scheduled", ""},
		{"", ""},
		{"", "Order can not be simulated in its current status"},
		{"?final_status=completed.at_home_phlebotomy.completed", "Order can not be simulated in its current status"},
	} {
		if test.want == "" {
			check(t, do(t, srv, "POST", path+test.query, ""), 200, `"Success"`)
		} else {
			check(t, do(t, srv, "POST", path+test.query, ""), 400, `{"detail":"`+test.want+`"}`)
		}
	}
	check(t, do(t, srv, "POST", "/v3/order/"+unknownID+"/test", ""), 404, `{"detail":"This order doesn't exist"}`)
	if got := do(t, srv, "POST", "/v3/order/x/test?delay=soon", ""); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
}

// The flags of a simulation decide what its results are.
func TestSimulateOrderFlags(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	type results struct {
		Metadata struct{ Interpretation string }
		Results  []struct {
			Result, Type, Interpretation string
			IsAbove                      bool `json:"is_above_max_range"`
		}
		Missing []struct{ Slug string } `json:"missing_results"`
	}
	for _, test := range []struct{ flags, want, hasMissing string }{
		{``, "{{normal} [{182 numeric normal false} {58.5 numeric normal false}] []}", "null"},
		{`{}`, "{{normal} [{182 numeric normal false} {58.5 numeric normal false}] []}", "null"},
		{`{"interpretation":"critical"}`, "{{critical} [{412 numeric critical true} {58.5 numeric normal false}] []}", "null"},
		{`{"interpretation":"abnormal","result_types":["coded_value","range"],"has_missing_results":false}`,
			"{{abnormal} [{Negative coded_value abnormal false} {<1.0 range normal false}] []}", "false"},
		{`{"result_types":["comment"],"has_missing_results":true}`,
			"{{normal} [{See the report of the lab. comment normal false}] [{hdl-cholesterol}]}", "true"},
	} {
		id, err := srv.AddOrder(ada, srv.LabTests.OnSite)
		noError(t, err)
		path := "/v3/order/" + id.String()
		check(t, do(t, srv, "POST", path+"/test", test.flags), 200, `"Success"`)
		if got := fmt.Sprint(decode[results](t, do(t, srv, "GET", path+"/result", ""))); got != test.want {
			t.Errorf("%s: %s, want %s", test.flags, got, test.want)
		}
		if got := do(t, srv, "GET", path, ""); !strings.Contains(got.body, `"has_missing_results":`+test.hasMissing) {
			t.Errorf("%s: %s", test.flags, got.body)
		}
	}
	id, err := srv.AddOrder(ada, srv.LabTests.OnSite)
	noError(t, err)
	path := "/v3/order/" + id.String() + "/test"
	for _, test := range []struct {
		query, flags string
		status       int
	}{
		{"?final_status=completed", "", 422},
		{"?delay=1.5", "", 422},
		{"", `{"interpretation":null}`, 422},
		{"", `{"result_types":["image"]}`, 422},
		{"", `{"has_missing_results":"yes"}`, 422},
		{"?final_status=completed.testkit.completed", "", 400},
	} {
		if got := do(t, srv, "POST", path+test.query, test.flags); got.status != test.status {
			t.Errorf("%s %s: %d %s", test.query, test.flags, got.status, got.body)
		}
	}
	if got := getOrder(t, srv, id).statuses(); len(got) != 1 {
		t.Errorf("rejected simulations changed the order: %s", got)
	}
}
