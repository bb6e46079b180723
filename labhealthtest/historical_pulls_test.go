package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

type pullPage struct {
	Data []struct {
		UserID   uuid.UUID `json:"user_id"`
		Provider map[string]struct {
			Pulled map[string]struct{ Status string }
		}
	}
	NextCursor *string `json:"next_cursor"`
}

func TestHistoricalPulls(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddUsers(5)
	for _, i := range []int{0, 1, 3, 4} { // The third user has no source.
		noError(t, srv.Connect(ids[i], "oura"))
		noError(t, srv.Connect(ids[i], "oura"))
	}
	noError(t, srv.Connect(ids[3], "fitbit"))
	var got []string
	cursor := ""
	for {
		page := decode[pullPage](t, do(t, srv, "GET", "/v2/introspect/historical_pull?user_limit=2"+cursor, ""))
		for _, u := range page.Data {
			got = append(got, fmt.Sprint(u.UserID == ids[0], u.UserID == ids[4], len(u.Provider), len(u.Provider["oura"].Pulled)))
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&next_cursor=" + *page.NextCursor
		srv.AddUsers(1)
	}
	if s := strings.Join(got, "; "); s != "true false 1 3; false false 1 3; false false 2 3; false true 1 3" {
		t.Error(s)
	}
	page := decode[pullPage](t, do(t, srv, "GET", "/v2/introspect/historical_pull?provider=fitbit", ""))
	if len(page.Data) != 1 || page.Data[0].UserID != ids[3] || len(page.Data[0].Provider) != 1 {
		t.Error(page)
	}
	check(t, do(t, srv, "GET", "/v2/introspect/historical_pull?user_id="+ids[2].String(), ""), 200, `{"data":[],"next":null,"next_cursor":null}`)
	check(t, do(t, srv, "GET", "/v2/introspect/historical_pull?next_cursor=x", ""), 400, `{"detail":"Invalid cursor"}`)
	if got := do(t, srv, "GET", "/v2/introspect/historical_pull?user_id=x&user_limit=0", ""); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
}

func TestSetHistoricalPull(t *testing.T) {
	rec := newReceiver(t)
	srv := newServer(t)
	ada := srv.AddUser("ada")
	noError(t, srv.Connect(ada, "oura"))
	noError(t, srv.SetHistoricalPull(ada, "oura", "sleep", "retrying", "provider_rate_limit_exceeded"))
	noError(t, srv.SetHistoricalPull(ada, "oura", "workouts", "failure", "retry_quota_exhausted"))
	noError(t, srv.SetHistoricalPull(ada, "oura", "body", "scheduled", ""))
	pull := func(status, started, ended, days, details string) string {
		return strings.NewReplacer("STATUS", status, "STARTED", started, "ENDED", ended, "DAYS", days, "DETAILS", details).Replace(`{
			"status":"STATUS","range_start":"2024-12-04T12:00:00+00:00","range_end":"2025-03-04T12:00:00+00:00",
			"timeline":{"scheduled_at":"2025-03-04T12:00:00+00:00","started_at":STARTED,"ended_at":ENDED},
			"days_with_data":DAYS,"release":"2025-05-09","trace_id":null,"error_details":DETAILS}`)
	}
	const at = `"2025-03-04T12:00:00+00:00"`
	check(t, do(t, srv, "GET", "/v2/introspect/historical_pull", ""), 200, `{"next":null,"next_cursor":null,"data":[{"user_id":"`+ada.String()+`","provider":{"oura":{
		"not_pulled":[],"pulled":{
			"activity":`+pull("success", at, at, "90", "null")+`,
			"sleep":`+pull("retrying", at, "null", "0", `"provider_rate_limit_exceeded"`)+`,
			"workouts":`+pull("failure", at, at, "0", `"retry_quota_exhausted"`)+`,
			"body":`+pull("scheduled", "null", "null", "0", "null")+`}}}}]}`)

	noError(t, srv.DeliverTo(rec.URL))
	noError(t, srv.SetHistoricalPull(ada, "oura", "sleep", "success", ""))
	noError(t, srv.Flush(t.Context()))
	checkEvent(t, srv.Deliveries()[0].Body, strings.NewReplacer(
		"TEAM", srv.TeamID.String(), "USER", ada.String()).Replace(`{
		"event_type":"historical.data.sleep.created","team_id":"TEAM","user_id":"USER","client_user_id":"ada",
		"data":{"user_id":"USER","start_date":"2024-12-04T12:00:00+00:00","end_date":"2025-03-04T12:00:00+00:00","is_final":true,"provider":"oura"}}`))
	if srv.SetHistoricalPull(ada, "fitbit", "sleep", "success", "") == nil || srv.SetHistoricalPull(uuid.New(), "oura", "sleep", "success", "") == nil {
		t.Error("SetHistoricalPull succeeds for an unknown user or source")
	}
}
