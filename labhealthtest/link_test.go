package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func TestLinkToken(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	create := func(fields string) string {
		got := decode[map[string]string](t, do(t, srv, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q%s}`, ada, fields)))
		if got["link_web_url"] != "https://link.example.com/?token="+got["link_token"] {
			t.Errorf("%v", got)
		}
		return got["link_token"]
	}
	token := create(`,"redirect_url":"https://example.com","on_error":"redirect","on_close":null,"filter_on_providers":["oura","fitbit"]`)
	if srv.CompleteLink(token, "garmin") == nil {
		t.Error("a source outside the filter was connected")
	}
	noError(t, srv.CompleteLink(token, "oura"))
	if srv.CompleteLink(token, "fitbit") == nil {
		t.Error("the token was used twice")
	}
	if srv.CompleteLink(create(`,"provider":"garmin"`), "oura") == nil {
		t.Error("a token for garmin connects oura")
	}
	noError(t, srv.CompleteLink(create(""), "garmin"))
	if got := do(t, srv, "GET", "/v2/user/"+ada.String(), "").body; strings.Count(got, `"source"`) != 2 {
		t.Error(got)
	}
	late := create("")
	do(t, srv, "DELETE", "/v2/user/"+ada.String(), "")
	if srv.CompleteLink(late, "garmin") == nil {
		t.Error("a deleted user was connected")
	}
	check(t, do(t, srv, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q}`, ada)), 404, `{"detail":"User not found"}`)
	got := do(t, srv, "POST", "/v2/link/token", `{"user_id":"`+unknownID+`","provider":"sundial","filter_on_providers":[],"on_error":"close"}`)
	for _, want := range []string{`"body","provider"`, `"too_short","loc":["body","filter_on_providers"]`, `"body","on_error"`} {
		if got.status != 422 || !strings.Contains(got.body, want) {
			t.Errorf("%d %s lacks %s", got.status, got.body, want)
		}
	}
}

func TestLinkProviders(t *testing.T) {
	srv := newServer(t)
	const oura = `"id":1,"name":"Oura","slug":"oura","description":"Data of Oura.","logo":"https://example.com/logos/oura.png",
		"auth_type":"oauth","oauth_url":"https://oauth.example.com/oura"`
	check(t, do(t, srv, "GET", "/v2/link/provider/oauth/oura", ""), 200, `{`+oura+`,"group":null,"source_type":"provider","is_active":true,"backfill_num_days":90}`)
	if got := do(t, srv, "GET", "/v2/link/provider/oauth/whoop", ""); got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	}
	list := decode[[]map[string]any](t, do(t, srv, "GET", "/v2/link/providers", ""))
	if diff := cmp.Diff(decodeJSON(t, `{`+oura+`,"form_components":{}}`), any(list[0])); diff != "" {
		t.Errorf("the first provider (-want +got):\n%s", diff)
	}
	forms := 0
	for _, p := range list {
		if p["oauth_url"] == nil && len(p["form_components"].(map[string]any)) > 0 {
			forms++
		}
	}
	if len(list) != 10 || forms != 2 {
		t.Errorf("%d providers, %d forms", len(list), forms)
	}
}

func TestConnectDemo(t *testing.T) {
	srv := newServer(t)
	ada, grete := srv.AddUser("ada"), srv.AddUser("grete")
	connect := func(user uuid.UUID, provider string) response {
		return do(t, srv, "POST", "/v2/link/connect/demo", fmt.Sprintf(`{"user_id":%q,"provider":%q}`, user, provider))
	}
	check(t, connect(ada, "oura"), 200, `{"success":true,"detail":"The demo provider is connected"}`)
	check(t, connect(ada, "oura"), 200, `{"success":false,"detail":"The demo provider is already connected"}`)
	check(t, connect(uuid.New(), "oura"), 404, `{"detail":"User not found"}`)
	if got := connect(ada, "garmin"); got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := do(t, srv, "GET", "/v2/user/"+ada.String()+"/device", "").body; !strings.Contains(got, "Oura Ring") {
		t.Error(got)
	}

	// The team rejects a second user with the same account, with status 200.
	manageOrg(t, srv, "PATCH", "ORG/team/TEAM", `{"sandbox":{"reject_duplicate_connection":true}}`)
	check(t, connect(grete, "oura"), 200,
		`{"state":"error","error_type":"duplicate_connection","error":"Another user has connected this provider account"}`)
	check(t, connect(grete, "fitbit"), 200, `{"success":true,"detail":"The demo provider is connected"}`)
}
