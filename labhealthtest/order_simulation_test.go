package labhealthtest_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func simulate(t testing.TB, srv *labhealthtest.Server, id uuid.UUID, query string) response {
	t.Helper()
	return do(t, srv, "POST", "/v3/order/"+id.String()+"/test"+query, "")
}

// checkStatuses compares the low-level statuses of the events of an order.
func checkStatuses(t testing.TB, srv *labhealthtest.Server, id uuid.UUID, want string) {
	t.Helper()
	var low []string
	for _, status := range getOrder(t, srv, id).statuses() {
		low = append(low, status[strings.LastIndexByte(status, '.')+1:])
	}
	if got := strings.Join(low, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The first simulation of an order creates its requisition, whatever was asked for.
func TestSimulateNewOrder(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	for method, labTest := range map[string]uuid.UUID{
		"testkit": srv.LabTests.Testkit, "walk_in_test": srv.LabTests.WalkIn,
		"at_home_phlebotomy": srv.LabTests.AtHome, "on_site_collection": srv.LabTests.OnSite,
	} {
		for _, final := range []string{
			"", "?final_status=completed." + method + ".completed", "?final_status=cancelled." + method + ".cancelled",
			"?final_status=failed." + method + ".sample_error", "?final_status=received." + method + ".requisition_bypassed",
			"?final_status=received." + method + ".ordered", "?final_status=sample_with_lab.on_site_collection.draw_completed",
			"?final_status=completed.testkit.corrected&delay=0",
		} {
			id, err := srv.AddOrder(ada, labTest)
			noError(t, err)
			check(t, simulate(t, srv, id, final), 200, `"Success"`)
			want := "received." + method + ".ordered received." + method + ".requisition_created"
			if got := strings.Join(getOrder(t, srv, id).statuses(), " "); got != want {
				t.Errorf("%s: %s, want %s", final, got, want)
			}
		}
	}
	// An imported order is not new.
	imported := decode[placed](t, do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, ada))).Order.ID
	check(t, simulate(t, srv, imported, "?final_status=collecting_sample.testkit.transit_customer"), 200, `"Success"`)
	checkStatuses(t, srv, imported, "ordered requisition_bypassed transit_customer")
}

// Later simulations lead to the final status, and not back.
func TestSimulateOrder(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	for _, test := range []struct{ query, want string }{
		{"", "ordered requisition_created draw_completed completed"},
		{"?final_status=sample_with_lab.on_site_collection.draw_completed", "ordered requisition_created draw_completed"},
		{"?final_status=failed.on_site_collection.sample_error", "ordered requisition_created sample_error"},
	} {
		id, err := srv.AddOrder(ada, srv.LabTests.OnSite)
		noError(t, err)
		simulate(t, srv, id, "")
		check(t, simulate(t, srv, id, test.query), 200, `"Success"`)
		checkStatuses(t, srv, id, test.want)
	}

	kit, err := srv.AddOrder(ada, srv.LabTests.Testkit)
	noError(t, err)
	for _, test := range []struct{ query, want string }{
		{"", ""},
		{"?final_status=collecting_sample.testkit.with_customer", ""},
		{"?final_status=collecting_sample.testkit.with_customer", "Order has already passed final_status"},
		{"?final_status=collecting_sample.testkit.transit_customer", "Order has already passed final_status"},
		{"?final_status=received.testkit.requisition_bypassed", "Order has already passed final_status"},
		{"?final_status=completed.walk_in_test.completed", "final_status does not belong to the collection method of the order"},
		{"", ""},
		{"", "Order can not be simulated in its current status"},
		{"?final_status=completed.testkit.completed", "Order can not be simulated in its current status"},
		{"?final_status=completed.testkit.completed&delay=5", "Order can not be simulated in its current status"},
	} {
		if test.want == "" {
			check(t, simulate(t, srv, kit, test.query), 200, `"Success"`)
		} else {
			check(t, simulate(t, srv, kit, test.query), 400, `{"detail":"`+test.want+`"}`)
		}
	}
	checkStatuses(t, srv, kit, "ordered requisition_created transit_customer out_for_delivery with_customer transit_lab delivered_to_lab completed")
	check(t, do(t, srv, "POST", "/v3/order/"+unknownID+"/test", ""), 404, `{"detail":"This order doesn't exist"}`)
	if got := do(t, srv, "POST", "/v3/order/x/test?delay=soon", ""); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
}

// A simulation to a status beside the usual path follows the diagrams of the reference as far as
// they have it, and nothing follows a failure.
func TestSimulateBranches(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	const shipped = "ordered requisition_created transit_customer out_for_delivery "
	for _, test := range []struct {
		labTest     uuid.UUID
		final, want string
	}{
		{srv.LabTests.Testkit, "failed.testkit.failure_to_deliver_to_customer", shipped + "failure_to_deliver_to_customer"},
		{srv.LabTests.Testkit, "failed.testkit.failure_to_deliver_to_lab", shipped + "with_customer transit_lab failure_to_deliver_to_lab"},
		{srv.LabTests.Testkit, "failed.testkit.sample_error", shipped + "with_customer transit_lab delivered_to_lab sample_error"},
		{srv.LabTests.Testkit, "failed.testkit.lost", "ordered requisition_created lost"},
		{srv.LabTests.Testkit, "cancelled.testkit.cancelled", "ordered requisition_created cancelled"},
		{srv.LabTests.OnSite, "sample_with_lab.on_site_collection.partial_results", "ordered requisition_created draw_completed partial_results"},
		{srv.LabTests.OnSite, "failed.on_site_collection.sample_error", "ordered requisition_created sample_error"},
		{srv.LabTests.WalkIn, "collecting_sample.walk_in_test.appointment_cancelled", "ordered requisition_created appointment_pending appointment_scheduled appointment_cancelled"},
		{srv.LabTests.WalkIn, "failed.walk_in_test.sample_error", "ordered requisition_created sample_error"},
	} {
		id, err := srv.AddOrder(ada, test.labTest)
		noError(t, err)
		simulate(t, srv, id, "")
		check(t, simulate(t, srv, id, "?final_status="+test.final), 200, `"Success"`)
		checkStatuses(t, srv, id, test.want)
		if !strings.HasPrefix(test.final, "failed.") {
			continue
		}
		for _, query := range []string{"", "?final_status=" + test.final, "?final_status=completed." + strings.Split(test.final, ".")[1] + ".completed"} {
			check(t, simulate(t, srv, id, query), 400, `{"detail":"Order can not be simulated in its current status"}`)
		}
	}

	home := uuid.MustParse(addOrder(t, srv, srv.LabTests.AtHome))
	decode[appointment](t, book(t, srv, home.String(), "phlebotomy", *homeSlots(t, srv)[0].BookingKey))
	check(t, simulate(t, srv, home, "?final_status=sample_with_lab.at_home_phlebotomy.partial_results"), 200, `"Success"`)
	check(t, simulate(t, srv, home, "?final_status=collecting_sample.at_home_phlebotomy.draw_completed"), 400, `{"detail":"Order has already passed final_status"}`)
	check(t, simulate(t, srv, home, ""), 200, `"Success"`)
	checkStatuses(t, srv, home, "ordered appointment_scheduled draw_completed partial_results completed")

	// A testkit that is not registered is not delivered to the lab.
	for final, want := range map[string]string{
		"":                                      "out_for_delivery with_customer",
		"collecting_sample.testkit.transit_lab": "out_for_delivery with_customer",
		"sample_with_lab.testkit.delivered_to_lab":      "out_for_delivery with_customer",
		"completed.testkit.corrected":                   "out_for_delivery with_customer",
		"failed.testkit.failure_to_deliver_to_lab":      "out_for_delivery with_customer",
		"failed.testkit.sample_error":                   "out_for_delivery with_customer",
		"received.testkit.requisition_created":          "out_for_delivery with_customer",
		"failed.testkit.failure_to_deliver_to_customer": "out_for_delivery failure_to_deliver_to_customer",
		"failed.testkit.lost":                           "lost",
		"cancelled.testkit.do_not_process":              "do_not_process",
	} {
		kit := createTestkit(t, srv, ada).ID
		noError(t, srv.SetStatus(kit, "collecting_sample.testkit.transit_customer"))
		query := "?final_status=" + final
		if final == "" {
			query = ""
		}
		check(t, simulate(t, srv, kit, query), 200, `"Success"`)
		checkStatuses(t, srv, kit, "ordered awaiting_registration transit_customer "+want)
	}
}

// An at-home order ignores simulations until an appointment is booked, and again after it was
// canceled.
func TestSimulateAtHome(t *testing.T) {
	srv := newServer(t)
	id := uuid.MustParse(addOrder(t, srv, srv.LabTests.AtHome))
	simulateAll := func(want string) {
		t.Helper()
		for _, query := range []string{
			"", "?final_status=completed.at_home_phlebotomy.completed", "?final_status=cancelled.at_home_phlebotomy.cancelled",
			"?final_status=received.at_home_phlebotomy.requisition_created", "?final_status=failed.at_home_phlebotomy.sample_error",
			"?final_status=collecting_sample.at_home_phlebotomy.appointment_scheduled", "?final_status=completed.testkit.completed",
		} {
			check(t, simulate(t, srv, id, query), 200, `"Success"`)
			checkStatuses(t, srv, id, want)
		}
	}
	simulateAll("ordered requisition_created")
	path := "/v3/order/" + id.String() + "/phlebotomy/appointment"
	requested := do(t, srv, "POST", path+"/request", `{"address":`+homeAddress+`,"provider":"phlebfinders"}`)
	decode[appointment](t, requested)
	simulateAll("ordered requisition_created appointment_pending") // it has no time yet
	decode[appointment](t, do(t, srv, "PATCH", path+"/cancel", `{"cancellation_reason_id":"`+homeReason+`"}`))
	simulateAll("ordered requisition_created appointment_pending appointment_cancelled")

	decode[appointment](t, book(t, srv, id.String(), "phlebotomy", *homeSlots(t, srv)[0].BookingKey))
	check(t, simulate(t, srv, id, "?final_status=collecting_sample.at_home_phlebotomy.draw_completed"), 200, `"Success"`)
	check(t, simulate(t, srv, id, ""), 200, `"Success"`)
	checkStatuses(t, srv, id, "ordered requisition_created appointment_pending appointment_cancelled appointment_scheduled draw_completed completed")
	if got := decode[appointment](t, do(t, srv, "GET", path, "")); got.Status != "completed" {
		t.Errorf("the appointment is %s", got.Status)
	}

	// A booking that waits for its confirmation is a booking.
	id = uuid.MustParse(addOrder(t, srv, srv.LabTests.AtHome))
	simulate(t, srv, id, "")
	booked := do(t, srv, "POST", "/v3/order/"+id.String()+"/phlebotomy/appointment/book",
		`{"booking_key":"`+*homeSlots(t, srv)[1].BookingKey+`","async_confirmation":true}`)
	decode[appointment](t, booked)
	check(t, simulate(t, srv, id, ""), 200, `"Success"`)
	checkStatuses(t, srv, id, "ordered requisition_created appointment_pending appointment_scheduled draw_completed completed")
}

// A simulated walk-in order has no partial results, even if they are asked for. A program gets them
// from the methods of the server.
func TestSimulateWalkIn(t *testing.T) {
	srv := newServer(t)
	for _, final := range []string{"", "?final_status=completed.walk_in_test.completed", "?final_status=sample_with_lab.walk_in_test.partial_results"} {
		id := uuid.MustParse(addOrder(t, srv, srv.LabTests.WalkIn))
		simulate(t, srv, id, final)
		check(t, simulate(t, srv, id, final), 200, `"Success"`)
		checkStatuses(t, srv, id, "ordered requisition_created appointment_pending appointment_scheduled completed")
	}
	for i, final := range []string{"", "?final_status=completed.walk_in_test.completed", "?final_status=sample_with_lab.walk_in_test.partial_results"} {
		id := uuid.MustParse(addOrder(t, srv, srv.LabTests.WalkIn))
		decode[appointment](t, book(t, srv, id.String(), "psc", *siteSlots(t, srv)[i].BookingKey))
		check(t, simulate(t, srv, id, final), 200, `"Success"`)
		checkStatuses(t, srv, id, "ordered appointment_scheduled completed")
	}
	id := uuid.MustParse(addOrder(t, srv, srv.LabTests.WalkIn))
	noError(t, srv.PartialResults(id))
	check(t, simulate(t, srv, id, ""), 200, `"Success"`)
	checkStatuses(t, srv, id, "ordered partial_results completed")
}

// A delay, in seconds, has no timer: the statuses follow when orders are read after it.
func TestSimulateDelay(t *testing.T) {
	var seconds atomic.Int64
	var transactionID string
	completed := func(text string) bool { return strings.Contains(text, `"status":"completed"`) }
	for name, read := range map[string]func(*testing.T, *labhealthtest.Server, uuid.UUID) bool{
		"get": func(t *testing.T, srv *labhealthtest.Server, id uuid.UUID) bool {
			return completed(do(t, srv, "GET", "/v3/order/"+id.String(), "").body)
		},
		"list": func(t *testing.T, srv *labhealthtest.Server, _ uuid.UUID) bool {
			return strings.Contains(do(t, srv, "GET", "/orders?status=completed", "").body, `"total":1`)
		},
		"list of IDs": func(t *testing.T, srv *labhealthtest.Server, id uuid.UUID) bool {
			return completed(do(t, srv, "GET", "/v3/orders?order_ids="+id.String(), "").body)
		},
		"results": func(t *testing.T, srv *labhealthtest.Server, id uuid.UUID) bool {
			return do(t, srv, "GET", "/v3/order/"+id.String()+"/result", "").status == 200
		},
		"PDF": func(t *testing.T, srv *labhealthtest.Server, id uuid.UUID) bool {
			return do(t, srv, "GET", "/v3/order/"+id.String()+"/result/pdf", "").status == 200
		},
		"transaction": func(t *testing.T, srv *labhealthtest.Server, _ uuid.UUID) bool {
			return completed(do(t, srv, "GET", "/v3/order_transaction/"+transactionID, "").body)
		},
		"resent event": func(t *testing.T, srv *labhealthtest.Server, id uuid.UUID) bool {
			body := `{"start_at":"` + noon.Add(time.Minute).Format(time.RFC3339) + `"}`
			return strings.Contains(do(t, srv, "POST", "/v3/order/resend_events", body).body, id.String())
		},
		"state": func(_ *testing.T, srv *labhealthtest.Server, id uuid.UUID) bool {
			state, _ := srv.OrderState(id)
			return strings.HasPrefix(state.Status, "completed.")
		},
		"states": func(_ *testing.T, srv *labhealthtest.Server, _ uuid.UUID) bool {
			return strings.HasPrefix(srv.OrderStates()[0].Status, "completed.")
		},
		"next statuses": func(t *testing.T, srv *labhealthtest.Server, id uuid.UUID) bool {
			next, err := srv.NextStatuses(id)
			noError(t, err)
			return len(next) == 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			seconds.Store(0)
			srv := newServer(t, labhealthtest.WithClock(func() time.Time { return noon.Add(time.Duration(seconds.Load()) * time.Second) }))
			id, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.OnSite)
			noError(t, err)
			transactionID = getOrder(t, srv, id).Transaction.ID.String()
			noError(t, srv.SetStatus(id, "received.on_site_collection.requisition_created"))
			// The first one is due last.
			check(t, simulate(t, srv, id, "?delay=60"), 200, `"Success"`)
			check(t, simulate(t, srv, id, "?delay=2&final_status=sample_with_lab.on_site_collection.draw_completed"), 200, `"Success"`)
			for _, test := range []struct {
				at        int64
				completed bool
			}{{0, false}, {59, false}, {60, true}} {
				seconds.Store(test.at)
				if got := read(t, srv, id); got != test.completed {
					t.Errorf("completed after %d s: %t", test.at, got)
				}
			}
			checkStatuses(t, srv, id, "ordered requisition_created draw_completed completed")
		})
	}
}

// An invalid request for orders comes after what was due before it.
func TestSimulateDelayBeforeInvalidRequest(t *testing.T) {
	var seconds atomic.Int64
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return noon.Add(time.Duration(seconds.Load()) * time.Second) }))
	id, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.OnSite)
	noError(t, err)
	check(t, simulate(t, srv, id, "?delay=10"), 200, `"Success"`)
	seconds.Store(11)
	if got := do(t, srv, "GET", "/v3/order/area/info?zip_code=x", ""); got.status != 422 {
		t.Fatal(got.status, got.body)
	}
	seconds.Store(20)
	if state, _ := srv.OrderState(id); !state.Since.Equal(noon.Add(11 * time.Second)) {
		t.Errorf("%s since %s", state.Status, state.Since)
	}
}

// What changes an order during the delay of a simulation comes first.
func TestSimulateDelayedChanges(t *testing.T) {
	var seconds atomic.Int64
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return noon.Add(time.Duration(seconds.Load()) * time.Second) }))
	ada := srv.AddUser("ada")
	var ids []uuid.UUID
	for _, labTest := range []uuid.UUID{srv.LabTests.OnSite, srv.LabTests.OnSite, srv.LabTests.OnSite, srv.LabTests.AtHome, srv.LabTests.WalkIn} {
		id, err := srv.AddOrder(ada, labTest)
		noError(t, err)
		check(t, simulate(t, srv, id, "?delay=9223372036854775807"), 200, `"Success"`)
		check(t, simulate(t, srv, id, "?delay=10"), 200, `"Success"`)
		check(t, simulate(t, srv, id, "?delay=20"), 200, `"Success"`)
		ids = append(ids, id)
	}
	seconds.Store(9)
	if got := do(t, srv, "POST", "/v3/order/"+ids[0].String()+"/cancel", ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	noError(t, srv.DeleteOrder(ids[1]))
	seconds.Store(10)
	if got := do(t, srv, "PATCH", "/v3/order/"+ids[2].String()+"/draw_completed", ""); got.status != 200 { // it was due first
		t.Errorf("%d %s", got.status, got.body)
	}
	decode[appointment](t, book(t, srv, ids[3].String(), "phlebotomy", *homeSlots(t, srv)[0].BookingKey))
	seconds.Store(3600)
	for i, want := range map[int]string{
		0: "ordered cancelled",
		2: "ordered requisition_created draw_completed completed",
		3: "ordered requisition_created appointment_scheduled draw_completed completed",
		4: "ordered requisition_created appointment_pending appointment_scheduled completed",
	} {
		checkStatuses(t, srv, ids[i], want)
	}
	if got := do(t, srv, "GET", "/v3/order/"+ids[1].String(), ""); got.status != 404 {
		t.Errorf("the deleted order: %d", got.status)
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
		simulate(t, srv, id, "")
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
	simulate(t, srv, id, "")
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
	if got := getOrder(t, srv, id).statuses(); len(got) != 2 {
		t.Errorf("rejected simulations changed the order: %s", got)
	}
}
