package labhealthtest_test

import (
	"fmt"
	"math"
	"net/http"
	"testing"

	"github.com/google/uuid"
)

func TestListUsersPages(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddUsers(1200)
	for _, test := range []struct {
		query                           string
		offset, limit, first, last, len int
	}{
		{"", 0, 100, 0, 99, 100},
		{"?limit=500", 0, 500, 0, 499, 500},
		{"?offset=1100", 1100, 100, 1100, 1199, 100},
		{"?offset=1199&limit=1", 1199, 1, 1199, 1199, 1},
		{"?offset=1150", 1150, 100, 1150, 1199, 50},
		{"?offset=1200", 1200, 100, 0, 0, 0},
		{fmt.Sprint("?offset=", math.MaxInt), math.MaxInt, 100, 0, 0, 0},
	} {
		for _, path := range []string{"/v2/user", "/v2/user/"} {
			t.Run(path+test.query, func(t *testing.T) {
				page := decode[userPage](t, do(t, srv, "GET", path+test.query, ""))
				if page.Total != 1200 || page.Offset != test.offset || page.Limit != test.limit || len(page.Users) != test.len {
					t.Fatalf("total %d, offset %d, limit %d, %d users", page.Total, page.Offset, page.Limit, len(page.Users))
				}
				if test.len == 0 {
					return
				}
				if page.Users[0].UserID != ids[test.first] || page.Users[test.len-1].UserID != ids[test.last] {
					t.Error("wrong users")
				}
			})
		}
	}
}

func TestListUsersInvalid(t *testing.T) {
	srv := newServer(t)
	for _, query := range []string{"offset=-1", "limit=0", "limit=501", "limit=-5"} {
		t.Run(query, func(t *testing.T) {
			got := do(t, srv, "GET", "/v2/user/?"+query, "")
			if got.status != 500 || got.body != "Internal Server Error" ||
				got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%d %s %q", got.status, got.header.Get("Content-Type"), got.body)
			}
		})
	}
	check(t, do(t, srv, "GET", "/v2/user/?limit=ten&offset=", ""), 422, `{"detail":[
		{"type":"int_parsing","loc":["query","offset"],"msg":"Input should be a valid integer, unable to parse string as an integer","input":""},
		{"type":"int_parsing","loc":["query","limit"],"msg":"Input should be a valid integer, unable to parse string as an integer","input":"ten"}]}`)
}

func TestCreateUser(t *testing.T) {
	srv := newServer(t)
	got := do(t, srv, "POST", "/v2/user", `{"client_user_id":"a/b c","fallback_time_zone":"Europe/London","fallback_birth_date":"1990-01-31"}`)
	const created = `{
		"user_id":"ID","team_id":"TEAM","client_user_id":"a/b c",
		"created_on":"2025-03-04T12:00:00+00:00","connected_sources":[],
		"fallback_birth_date":{"value":"1990-01-31","source_slug":"manual","updated_at":"2025-03-04T12:00:00+00:00"},
		"fallback_time_zone":{"id":"Europe/London","source_slug":"manual","updated_at":"2025-03-04T12:00:00+00:00"}}`
	id := decode[struct {
		UserID uuid.UUID `json:"user_id"`
	}](t, got).UserID
	want := replaceOnce(t, replaceOnce(t, created, "TEAM", srv.TeamID.String()), `"ID"`, `"`+id.String()+`"`)
	check(t, got, 200, want)
	check(t, do(t, srv, "GET", "/v2/user/"+id.String(), ""), 200, want)
	check(t, do(t, srv, "GET", "/v2/user/resolve/a%2Fb%20c", ""), 200, want)
	check(t, do(t, srv, "GET", "/v2/user", ""), 200, `{"users":[`+want+`],"total":1,"offset":0,"limit":100}`)

	check(t, do(t, srv, "POST", "/v2/user/", `{"client_user_id":"a/b c"}`), 400, fmt.Sprintf(`{"detail":{
		"error_type":"INVALID_REQUEST","error_message":"Client user id already exists.",
		"user_id":%q,"created_on":"2025-03-04T12:00:00+00:00"}}`, id))
	if srv.AddUser("a/b c") != id {
		t.Error("AddUser added a second user with the same client user ID")
	}

	check(t, do(t, srv, "POST", "/v2/user", `{"fallback_birth_date":"1990-02-30"}`), 422, `{"detail":[
		{"type":"missing","loc":["body","client_user_id"],"msg":"Field required","input":{"fallback_birth_date":"1990-02-30"}},
		{"type":"date_from_datetime_parsing","loc":["body","fallback_birth_date"],
			"msg":"Input should be a valid date or datetime, input is not a date or datetime","input":"1990-02-30",
			"ctx":{"error":"input is not a date or datetime"}}]}`)
}

func TestGetUser(t *testing.T) {
	srv := newServer(t)
	check(t, do(t, srv, "GET", "/v2/user/00000000-0000-4000-8000-000000000000", ""), 404, `{"detail":"User not found"}`)
	check(t, do(t, srv, "GET", "/v2/user/resolve/nobody", ""), 404, `{"detail":"User not found"}`)
	check(t, do(t, srv, "GET", "/v2/user/seven", ""), 422, `{"detail":[{"type":"uuid_parsing","loc":["path","user_id"],
		"msg":"Input should be a valid UUID, invalid length: expected length 32 for simple format, found 5","input":"seven",
		"ctx":{"error":"invalid length: expected length 32 for simple format, found 5"}}]}`)
	for _, clientUserID := range []string{"..", ".", "ÿ", "100%", "a?b#c", "3Zru4O8cBEiwGTsXgUQGaQ=="} {
		id := srv.AddUser(clientUserID)
		path := map[string]string{"..": "..", ".": "%2E", "ÿ": "%C3%BF", "100%": "100%25", "a?b#c": "a%3Fb%23c"}[clientUserID]
		if path == "" {
			path = clientUserID
		}
		got := decode[struct {
			UserID uuid.UUID `json:"user_id"`
		}](t, do(t, srv, "GET", "/v2/user/resolve/"+path, ""))
		if got.UserID != id {
			t.Errorf("%s resolves to another user", clientUserID)
		}
	}
}

func TestConnect(t *testing.T) {
	srv := newServer(t)
	id := srv.AddUser("ada")
	noError(t, srv.Connect(id, "apple_health_kit"))
	noError(t, srv.Connect(id, "apple_health_kit"))
	if err := srv.Connect(uuid.Nil, "oura"); err == nil {
		t.Error("Connect succeeds for an unknown user")
	}
	check(t, do(t, srv, "GET", "/v2/user/"+id.String(), ""), http.StatusOK, fmt.Sprintf(`{
		"user_id":%q,"team_id":%q,"client_user_id":"ada","created_on":"2025-03-04T12:00:00+00:00",
		"connected_sources":[{"created_on":"2025-03-04T12:00:00+00:00","provider":%[3]s,"source":%[3]s}]}`, id, srv.TeamID,
		`{"name":"Apple Health Kit","slug":"apple_health_kit","logo":"https://example.com/logos/apple_health_kit.png"}`))
}

func TestManyUsers(t *testing.T) {
	srv := newServer(t)
	if n := len(srv.AddUsers(100_000)); n != 100_000 {
		t.Fatalf("%d users", n)
	}
	page := decode[userPage](t, do(t, srv, "GET", "/v2/user/?offset=99999", ""))
	if page.Total != 100_000 || len(page.Users) != 1 || page.Users[0].ClientUserID != "user-100000" {
		t.Errorf("%+v", page)
	}
}
