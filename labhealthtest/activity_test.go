package labhealthtest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// describeActivity returns what an activity is about. names are the names of users and orders.
func describeActivity(a labhealthtest.Activity, names map[uuid.UUID]string) string {
	switch {
	case a.Request != nil:
		return fmt.Sprint(a.Request.Method, " ", a.Request.Path, " ", a.Request.StatusCode)
	case a.Delivery != nil:
		return fmt.Sprint("delivery ", a.Delivery.StatusCode)
	case a.OrderID != uuid.Nil:
		return "order of " + names[a.UserID]
	default:
		return "user " + names[a.UserID]
	}
}

// activitiesOf closes a server and returns what its watcher has reported.
func activitiesOf(srv *labhealthtest.Server, activities iter.Seq[labhealthtest.Activity], names map[uuid.UUID]string) (list []string) {
	srv.Close()
	for a := range activities {
		list = append(list, describeActivity(a, names))
	}
	return list
}

// Every change of an order or a user is reported once, before the request that made it.
func TestActivities(t *testing.T) {
	request := func(method, path, body string, want ...string) func(*testing.T, *labhealthtest.Server, uuid.UUID, uuid.UUID) []string {
		return func(t *testing.T, srv *labhealthtest.Server, user, order uuid.UUID) []string {
			replacer := strings.NewReplacer("USER", user.String(), "ORDER", order.String())
			path := replacer.Replace(path)
			got := do(t, srv, method, path, replacer.Replace(body))
			return append(want, fmt.Sprint(method, " ", path, " ", got.status))
		}
	}
	action := func(f func(srv *labhealthtest.Server, user, order uuid.UUID) error, want ...string) func(*testing.T, *labhealthtest.Server, uuid.UUID, uuid.UUID) []string {
		return func(t *testing.T, srv *labhealthtest.Server, user, order uuid.UUID) []string {
			noError(t, f(srv, user, order))
			return want
		}
	}
	failing := func(f func(srv *labhealthtest.Server, user, order uuid.UUID) error) func(*testing.T, *labhealthtest.Server, uuid.UUID, uuid.UUID) []string {
		return func(t *testing.T, srv *labhealthtest.Server, user, order uuid.UUID) []string {
			if f(srv, user, order) == nil {
				t.Error("no error")
			}
			return nil
		}
	}
	type server = labhealthtest.Server
	const ofAda, ada = "order of ada", "user ada"
	for name, test := range map[string]func(*testing.T, *server, uuid.UUID, uuid.UUID) []string{
		"import":        request("POST", "/v3/order/import", importBody, ofAda, ofAda),
		"creation":      request("POST", "/v3/order", createBody, ofAda),
		"rejection":     request("POST", "/v3/order", "{}"),
		"unknown path":  request("POST", "/nowhere", "{}"),
		"read":          request("GET", "/v3/order/ORDER", ""),
		"cancellation":  request("POST", "/v3/order/ORDER/cancel", "", ofAda),
		"simulation":    request("POST", "/v3/order/ORDER/test?final_status=received.testkit.requisition_created", "", ofAda),
		"communication": request("PATCH", "/v3/order/ORDER/communication_settings", `{"sms_enabled": false}`, ofAda),
		"resending":     request("POST", "/v3/order/resend_events", `{"order_ids": ["ORDER"]}`),
		"user":          request("POST", "/v2/user", `{"client_user_id": "grace"}`, "user "),
		"update":        request("PATCH", "/v2/user/USER", `{"fallback_time_zone": null}`, ada),
		"deletion":      request("DELETE", "/v2/user/USER", "", ada),
		"demo":          request("POST", "/v2/link/connect/demo", `{"user_id": "USER", "provider": "fitbit"}`, ada),
		"disconnection": request("DELETE", "/v2/user/USER/oura", "", ada),
		"refresh":       request("POST", "/v2/user/refresh/USER", "", ada),
		"user info": request("PATCH", "/v2/user/USER/info", `{"first_name": "Ada", "last_name": "Example", "email": "ada@example.com",
			"phone_number": "+14155550123", "gender": "female", "dob": "1990-01-31",
			"address": {"first_line": "1 Main Street", "country": "US", "zip": "94105", "city": "San Francisco", "state": "CA"}}`, ada),

		"advance": action(func(s *server, _, order uuid.UUID) error { _, err := s.Advance(order); return err }, ofAda),
		"status":  action(func(s *server, _, order uuid.UUID) error { return s.SetStatus(order, "x.y.z") }, ofAda),
		"failure": action(func(s *server, _, order uuid.UUID) error { return s.Fail(order, "") }, ofAda),
		"cancel":  action(func(s *server, _, order uuid.UUID) error { return s.Cancel(order) }, ofAda),
		"redraw":  action(func(s *server, _, order uuid.UUID) error { _, err := s.Redraw(order); return err }, ofAda),
		"results": action(func(s *server, _, order uuid.UUID) error { return s.SetResults(order, "{}") }, ofAda),
		"correction": action(func(s *server, _, order uuid.UUID) error {
			return errors.Join(s.SetStatus(order, "completed.testkit.completed"), s.CorrectResult(order, 901, "183"))
		}, ofAda, ofAda),
		"missing":        action(func(s *server, _, order uuid.UUID) error { return s.SetMissing(order, 901, "lost") }, ofAda),
		"interpretation": action(func(s *server, _, order uuid.UUID) error { return s.SetInterpretation(order, "abnormal") }, ofAda),
		"ABN":            action(func(s *server, _, order uuid.UUID) error { return s.SetABN(order, true) }, ofAda),
		"delete order":   action(func(s *server, _, order uuid.UUID) error { return s.DeleteOrder(order) }, ofAda),
		"next statuses":  action(func(s *server, _, order uuid.UUID) error { _, err := s.NextStatuses(order); return err }),
		"add orders":     action(func(s *server, _, _ uuid.UUID) error { s.AddOrders(2); return nil }, ofAda, ofAda),
		"add users":      action(func(s *server, _, _ uuid.UUID) error { s.AddUsers(2); return nil }, "user ", "user "),
		"known user":     action(func(s *server, _, _ uuid.UUID) error { s.AddUser("ada"); return nil }),
		"connect":        action(func(s *server, user, _ uuid.UUID) error { return s.Connect(user, "fitbit") }, ada),
		"error":          action(func(s *server, user, _ uuid.UUID) error { return s.SetConnectionError(user, "oura", "x") }, ada),
		"device":         action(func(s *server, user, _ uuid.UUID) error { _, err := s.AddDevice(user, "oura", "x"); return err }, ada),
		"pull": action(func(s *server, user, _ uuid.UUID) error {
			return s.SetHistoricalPull(user, "oura", "sleep", "failure", "")
		}, ada),
		"samples": action(func(s *server, user, _ uuid.UUID) error { return s.AddSamples(user, "glucose", 3) }, ada),
		"workout": action(func(s *server, user, _ uuid.UUID) error { _, err := s.AddWorkout(user, 1); return err }, ada),
		"undelivered summary": action(func(s *server, user, _ uuid.UUID) error {
			_, err := s.AddSummary(user, "sleep", labhealthtest.Undelivered())
			return err
		}, ada),

		"unknown resource": failing(func(s *server, user, _ uuid.UUID) error { return s.AddSamples(user, "x", 3) }),
		"unknown marker":   failing(func(s *server, _, order uuid.UUID) error { return s.CorrectResult(order, 1, "x") }),
		"no results":       failing(func(s *server, _, order uuid.UUID) error { return s.CorrectResult(order, 901, "x") }),
		"no such order":    failing(func(s *server, user, _ uuid.UUID) error { return s.DeleteOrder(user) }),
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			user := srv.AddUser("ada")
			order, err := srv.AddOrder(user, srv.LabTests.Testkit)
			noError(t, err)
			noError(t, srv.Connect(user, "oura"))
			activities := srv.Watch(t.Context())
			want := test(t, srv, user, order)
			if diff := cmp.Diff(want, activitiesOf(srv, activities, map[uuid.UUID]string{user: "ada"})); diff != "" {
				t.Errorf("activities (-want +got):\n%s", diff)
			}
		})
	}
}

// A deletion that is undone, and attempts to deliver an event, also one that never arrives.
func TestActivitiesOfSeveralRequests(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	noError(t, srv.DeliverTo("http://receiver.example", labhealthtest.WithTransport(always(500)), labhealthtest.WithRetries(0)))
	noError(t, srv.DeliverTo("http://receiver.example", labhealthtest.WithTransport(always(204)),
		labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Lose: 1})))
	activities := srv.Watch(t.Context())
	do(t, srv, "DELETE", "/v2/user/"+user.String(), "")
	do(t, srv, "POST", "/v2/user/undo_delete?client_user_id=ada", "")
	noError(t, srv.Send([]byte("{}")))
	noError(t, srv.Flush(t.Context()))
	noError(t, srv.FailBefore("", 1, labhealthtest.FaultResponse(503, "")))
	do(t, srv, "GET", "/v2/user", "")
	want := []string{
		"user ada", "DELETE /v2/user/" + user.String() + " 200", "user ada", "POST /v2/user/undo_delete?client_user_id=ada 200",
		"delivery 0", "delivery 500", "delivery 500", "GET /v2/user 0",
	}
	if diff := cmp.Diff(want, activitiesOf(srv, activities, map[uuid.UUID]string{user: "ada"})); diff != "" {
		t.Errorf("activities (-want +got):\n%s", diff)
	}
}

// Requests of all teams are activities of the server, other activities belong to a team.
func TestActivitiesOfTeams(t *testing.T) {
	srv := newServer(t)
	id := createTeam(t, srv, `{"name": "Other", "region": "us"}`)
	token := decode[struct {
		Token string `json:"access_token"`
	}](t, manageOrg(t, srv, "POST", "ORG/team/"+id.String()+"/create_access_token", `{"env": "sandbox", "region": "us"}`))
	team := srv.Team(id)
	ofServer, ofTeam := srv.Watch(t.Context()), team.Watch(t.Context())
	got := do(t, srv, "POST", "/v2/user", `{"client_user_id": "grace"}`, "x-service-api-key", "", "Authorization", "Bearer "+token.Token)
	grace := decode[struct {
		UserID uuid.UUID `json:"user_id"`
	}](t, got).UserID

	// The transport is the same for all teams.
	for _, transport := range []http.RoundTripper{srv.Direct(), team.Direct()} {
		req, err := http.NewRequest("GET", srv.URL+"/v2/user/"+grace.String(), nil)
		noError(t, err)
		req.Header.Set("Authorization", "Bearer "+token.Token)
		resp, err := transport.RoundTrip(req)
		noError(t, err)
		if resp.StatusCode != 200 {
			t.Error(resp.Status)
		}
	}
	names := map[uuid.UUID]string{grace: "grace"}
	if got := activitiesOf(srv, ofServer, names); !slices.Equal(got, []string{"POST /v2/user 200"}) {
		t.Errorf("server: %q", got)
	}
	if got := activitiesOf(srv, ofTeam, names); !slices.Equal(got, []string{"user grace"}) {
		t.Errorf("team: %q", got)
	}
}

// A sequence can be ranged over once, and ends when its context is done, when the loop breaks, and
// after the last activity of a server that was closed.
func TestWatch(t *testing.T) {
	srv := newServer(t)
	count := func(activities iter.Seq[labhealthtest.Activity]) (n int) {
		for range activities {
			n++
		}
		return n
	}
	ctx, cancel := context.WithCancel(t.Context())
	var none context.Context
	canceled, broken, open := srv.Watch(ctx), srv.Watch(t.Context()), srv.Watch(none)
	srv.AddUsers(3)
	for a := range broken {
		srv.AddUsers(1) // a loop may use the server
		if a.UserID == uuid.Nil {
			t.Error("no user")
		}
		break
	}
	cancel()
	if n := count(canceled); n != 0 {
		t.Errorf("%d activities after the context is done", n)
	}
	if n := count(broken); n != 0 {
		t.Errorf("%d activities in the second loop", n)
	}
	srv.Close()
	srv.AddUsers(1) // is not reported
	if n := count(open); n != 4 {
		t.Errorf("%d activities, want 4", n)
	}
	if n := count(srv.Watch(t.Context())); n != 0 {
		t.Errorf("%d activities of a closed server", n)
	}
}

// Watch wakes up in a synctest bubble, and stops when its context is canceled within the loop.
func TestWatchInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(newMemoryListener()))
		ctx, cancel := context.WithCancel(t.Context())
		var times []time.Time
		done := make(chan bool)
		go func() {
			defer close(done)
			for range srv.Watch(ctx) {
				times = append(times, time.Now())
				if len(times) == 2 {
					cancel()
				}
			}
		}()
		synctest.Wait()
		start := time.Now()
		srv.AddUsers(1)
		synctest.Wait()
		time.Sleep(time.Hour)
		srv.AddUsers(3)
		<-done
		if want := []time.Time{start, start.Add(time.Hour)}; !slices.Equal(times, want) {
			t.Errorf("%v, want %v", times, want)
		}
	})
}

// Watchers that are not read store nothing after their context is done.
func TestWatchReleasesActivities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(newMemoryListener()))
		noError(t, srv.DeliverTo("http://receiver.example", labhealthtest.WithTransport(always(204))))
		ctx, cancel := context.WithCancel(t.Context())
		unread := srv.Watch(ctx)
		read := srv.Watch(t.Context())
		noError(t, srv.Send([]byte("{}")))
		noError(t, srv.Flush(t.Context()))
		delivery := func() (p weak.Pointer[labhealthtest.Delivery]) {
			for a := range read {
				return weak.Make(a.Delivery)
			}
			return p
		}()
		runtime.GC()
		if delivery.Value() == nil {
			t.Error("an activity is lost")
		}
		cancel()
		synctest.Wait()
		runtime.GC()
		if delivery.Value() != nil {
			t.Error("an activity is stored after the context is done")
		}
		runtime.KeepAlive(unread)
	})
}

// A request in progress is reported although the server is closed meanwhile.
func TestWatchUntilClosed(t *testing.T) {
	srv := newServer(t)
	activities := srv.Watch(t.Context())
	processed := make(chan bool)
	noError(t, srv.FailAfter("", 1, func(_ http.ResponseWriter, r *http.Request, _ []byte) {
		close(processed)
		<-r.Context().Done()
		srv.AddUser("ada")
	}))
	go func() {
		if resp, err := httpClient.Get(srv.URL); err == nil {
			resp.Body.Close()
		}
	}()
	<-processed
	if got := activitiesOf(srv, activities, nil); !slices.Equal(got, []string{"GET / 401", "user "}) {
		t.Errorf("%q", got)
	}
}
