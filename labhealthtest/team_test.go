package labhealthtest_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestOwnTeam(t *testing.T) {
	srv := newServer(t)
	path := "/v2/team/" + srv.TeamID.String()
	type team struct {
		ID            uuid.UUID
		OrgID         uuid.UUID `json:"org_id"`
		Name          string
		APIKeys       []struct{ Value string } `json:"api_keys"`
		SMS           bool                     `json:"lab_tests_patient_sms_communication_enabled"`
		Configuration struct {
			Minors bool `json:"minor_ordering_enabled"`
		}
	}
	got := decode[team](t, do(t, srv, "GET", path, ""))
	if got.ID != srv.TeamID || got.OrgID != srv.OrgID || got.Name != "Example Team" || len(got.APIKeys) != 1 || got.APIKeys[0].Value != srv.APIKey {
		t.Errorf("%+v", got)
	}
	if !got.SMS || got.Configuration.Minors {
		t.Errorf("%+v", got)
	}
	// The management API changes the same team.
	manageOrg(t, srv, "PATCH", "ORG/team/TEAM",
		`{"name":"Other","sandbox":{"minor_ordering_enabled":true,"lab_tests_patient_sms_communication_enabled":false}}`)
	got = decode[team](t, do(t, srv, "GET", path, ""))
	if got.Name != "Other" || got.SMS || !got.Configuration.Minors {
		t.Errorf("%+v", got)
	}
	check(t, do(t, srv, "GET", path+"/physicians", ""), 200, `[{"first_name":"Alan","last_name":"Example","npi":"1234567893"}]`)

	// A key gives access to its own team only.
	second := decode[struct{ ID uuid.UUID }](t, manageOrg(t, srv, "POST", "ORG/team", `{"name":"Second","region":"us"}`)).ID
	key := decode[struct{ Value string }](t, manageOrg(t, srv, "POST", "ORG/team_api_keys/sandbox/us", `{"label":"x","team_id":"`+second.String()+`"}`)).Value
	got = decode[team](t, do(t, srv, "GET", "/v2/team/"+second.String(), "", "x-service-api-key", key))
	if got.ID != second || got.Name != "Second" || len(got.APIKeys) != 1 || got.APIKeys[0].Value != key {
		t.Errorf("%+v", got)
	}
	for _, suffix := range []string{"", "/physicians"} {
		check(t, do(t, srv, "GET", path+suffix, "", "x-service-api-key", key), 404, `{"detail":"Team not found"}`)
		check(t, do(t, srv, "GET", "/v2/team/"+unknownID+suffix, ""), 404, `{"detail":"Team not found"}`)
	}
}

func TestSearchUsers(t *testing.T) {
	srv := newServer(t)
	ids := []uuid.UUID{srv.AddUser("Ada-1"), srv.AddUser("grete"), srv.AddUser("ada-2")}
	search := func(query string) (found []uuid.UUID) {
		for _, u := range decode[[]struct {
			UserID uuid.UUID `json:"user_id"`
		}](t, do(t, srv, "GET", "/v2/team/users/search"+query, "")) {
			found = append(found, u.UserID)
		}
		return found
	}
	for query, want := range map[string][]uuid.UUID{
		"": ids, "?query_id=ADA-": {ids[0], ids[2]}, "?query_id=" + ids[1].String()[:13]: {ids[1]}, "?query_id=nobody": nil,
	} {
		if got := search(query); len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if got := do(t, srv, "GET", "/v2/team/users/search?query_id=a", ""); got.status != 422 || !strings.Contains(got.body, "string_too_short") {
		t.Errorf("%d %s", got.status, got.body)
	}
	srv.AddUsers(200)
	if n := len(search("?query_id=user-")); n != 100 {
		t.Errorf("%d users", n)
	}
}

func TestSourcePriorities(t *testing.T) {
	srv := newServer(t)
	const path = "/v2/team/source/priorities"
	const sleep, body = `{"data_type":"sleep","sources":["oura","fitbit"]}`, `{"data_type":"body","sources":["withings"]}`
	check(t, do(t, srv, "GET", path, ""), 200, `[]`)
	check(t, do(t, srv, "PATCH", path, `[`+sleep+`,`+body+`]`), 200, `[`+sleep+`,`+body+`]`)
	const changed = `{"data_type":"sleep","sources":["fitbit"]}`
	check(t, do(t, srv, "PATCH", path, `[`+changed+`]`), 200, `[`+body+`,`+changed+`]`)
	check(t, do(t, srv, "GET", path+"?data_type=sleep", ""), 200, `[`+changed+`]`)
	for _, invalid := range []string{`{}`, `[1]`, `[{}]`, `[{"data_type":"order"}]`} {
		if got := do(t, srv, "PATCH", path, invalid); got.status != 422 {
			t.Errorf("%s: %d %s", invalid, got.status, got.body)
		}
	}
	if got := do(t, srv, "GET", path+"?data_type=order", ""); got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
