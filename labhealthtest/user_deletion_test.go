package labhealthtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func users(t testing.TB, srv *labhealthtest.Server) string {
	t.Helper()
	var names []string
	page := decode[userPage](t, do(t, srv, "GET", "/v2/user/", ""))
	for _, u := range page.Users {
		names = append(names, u.ClientUserID)
	}
	if page.Total != len(names) {
		t.Errorf("total %d of %d users", page.Total, len(names))
	}
	return strings.Join(names, " ")
}

func TestDeleteAndUndo(t *testing.T) {
	const (
		done  = `{"success":true}`
		none  = `{"detail":"User not found"}`
		going = `{"detail":"User is scheduled for deletion"}`
		taken = `{"detail":"Client user id already exists."}`
		grace = 7 * 24 * time.Hour
	)
	now := noon
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return now }))
	ada, grete, alan := srv.AddUser("ada"), srv.AddUser("grete"), srv.AddUser("alan")
	order, err := srv.AddOrder(grete, srv.LabTests.OnSite)
	noError(t, err)
	noError(t, srv.Connect(grete, "oura"))
	undo := func(query string) response { return do(t, srv, "POST", "/v2/user/undo_delete?"+query, "") }
	path := "/v2/user/" + grete.String()

	check(t, undo("user_id="+grete.String()), 404, none) // not deleted
	check(t, do(t, srv, "DELETE", path, ""), 200, done)
	check(t, do(t, srv, "DELETE", path, ""), 404, going)
	check(t, do(t, srv, "GET", path, ""), 404, going)
	check(t, do(t, srv, "PATCH", path, `{"client_user_id":"x"}`), 404, going)
	check(t, do(t, srv, "GET", "/v2/user/resolve/grete", ""), 404, none)
	check(t, do(t, srv, "POST", "/v3/order", bodyFor(t, createBody, grete)), 404, none)
	if got := users(t, srv); got != "ada alan" {
		t.Errorf("users %s", got)
	}
	if srv.Connect(grete, "oura") == nil {
		t.Error("Connect succeeds for a deleted user")
	}
	// The order remains and can be advanced.
	noError(t, srv.DeliverTo(srv.URL))
	if _, err := srv.Advance(order); err != nil {
		t.Error(err)
	}
	noError(t, srv.Flush(t.Context())) // Deliveries call the clock.

	now = noon.Add(grace)
	check(t, undo("user_id="+grete.String()), 200, done)
	if got := users(t, srv); got != "ada grete alan" {
		t.Errorf("users %s", got)
	}
	check(t, do(t, srv, "GET", path, ""), 200, replaceOnce(t, replaceOnce(t, `{"user_id":"ID","team_id":"TEAM","client_user_id":"grete",
		"created_on":"2025-03-04T12:00:00+00:00","connected_sources":[]}`,
		`"ID"`, `"`+grete.String()+`"`), "TEAM", srv.TeamID.String()))

	check(t, do(t, srv, "DELETE", path, ""), 200, done)
	now = now.Add(grace + time.Microsecond)
	check(t, undo("client_user_id=grete"), 404, none)
	check(t, do(t, srv, "GET", path, ""), 404, none)

	// The client user ID can be used again. Then the deletion cannot be undone.
	check(t, do(t, srv, "DELETE", "/v2/user/"+alan.String(), ""), 200, done)
	second := srv.AddUser("alan")
	if second == alan {
		t.Error("AddUser restored a deleted user")
	}
	check(t, undo("client_user_id=alan"), 400, taken)
	check(t, do(t, srv, "DELETE", "/v2/user/"+second.String(), ""), 200, done)
	check(t, undo("client_user_id=alan"), 200, done) // the latest user with this client user ID
	if got := decode[struct {
		UserID uuid.UUID `json:"user_id"`
	}](t, do(t, srv, "GET", "/v2/user/resolve/alan", "")).UserID; got != second {
		t.Errorf("%s, want %s", got, second)
	}

	const both = `{"detail":[{"type":"value_error","loc":["query"],"msg":"Value error, exactly one of user_id and client_user_id is required","input":null,"ctx":{"error":{}}}]}`
	check(t, undo(""), 422, both)
	check(t, undo("user_id="+ada.String()+"&client_user_id=ada"), 422, both)
	check(t, undo("user_id=x"), 422, `{"detail":[{"type":"uuid_parsing","loc":["query","user_id"],
		"msg":"Input should be a valid UUID, invalid length: expected length 32 for simple format, found 1","input":"x",
		"ctx":{"error":"invalid length: expected length 32 for simple format, found 1"}}]}`)
	check(t, do(t, srv, "DELETE", "/v2/user/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", ""), 404, none)
}

func TestPatchUser(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	srv.AddUser("grete")
	path := "/v2/user/" + ada.String()
	check(t, do(t, srv, "PATCH", path, `{}`), 400, `{"detail":"Nothing to patch"}`)
	check(t, do(t, srv, "PATCH", path, `{"unknown":1}`), 400, `{"detail":"Nothing to patch"}`)
	check(t, do(t, srv, "PATCH", path, `{"client_user_id":"grete"}`), 409, `{"detail":"Client user id already exists."}`)
	for _, body := range []string{
		`{"client_user_id":"ada 2","ingestion_start":"2025-01-01","ingestion_end":"2025-12-31"}`,
		`{"client_user_id":"ada 2","fallback_time_zone":"Europe/London","fallback_birth_date":"1990-01-31"}`,
		`{"ingestion_end":null}`,
	} {
		if got := do(t, srv, "PATCH", path, body); got.status != 204 || got.body != "" {
			t.Errorf("%d %q", got.status, got.body)
		}
	}
	want := replaceOnce(t, replaceOnce(t, `{"user_id":"ID","team_id":"TEAM","client_user_id":"ada 2","created_on":"2025-03-04T12:00:00+00:00",
		"connected_sources":[],"ingestion_start":"2025-01-01",
		"fallback_birth_date":{"value":"1990-01-31","source_slug":"manual","updated_at":"2025-03-04T12:00:00+00:00"},
		"fallback_time_zone":{"id":"Europe/London","source_slug":"manual","updated_at":"2025-03-04T12:00:00+00:00"}}`,
		`"ID"`, `"`+ada.String()+`"`), "TEAM", srv.TeamID.String())
	check(t, do(t, srv, "GET", "/v2/user/resolve/ada%202", ""), 200, want)
	check(t, do(t, srv, "GET", "/v2/user/resolve/ada", ""), 404, `{"detail":"User not found"}`)
	check(t, do(t, srv, "PATCH", path, `{"client_user_id":7}`), 422,
		`{"detail":[{"type":"string_type","loc":["body","client_user_id"],"msg":"Input should be a valid string","input":7}]}`)
	if got := do(t, srv, "PATCH", path, `{"client_user_id":null}`); got.status != 204 {
		t.Error(got.body)
	}
	check(t, do(t, srv, "GET", "/v2/user/resolve/ada%202", ""), 200, want)
}
