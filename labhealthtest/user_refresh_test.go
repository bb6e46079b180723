package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func TestRefreshUser(t *testing.T) {
	now := noon
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return now }))
	ada := srv.AddUser("ada")
	refresh := func(query string) response { return do(t, srv, "POST", "/v2/user/refresh/"+ada.String()+query, "") }
	refreshed := func(done, inProgress, failed string) string {
		return fmt.Sprintf(`{"success":true,"user_id":%q,"refreshed_sources":[%s],"in_progress_sources":[%s],"failed_sources":[%s]}`,
			ada, done, inProgress, failed)
	}
	rejected := func(failed string) string {
		return fmt.Sprintf(`{"success":false,"user_id":%q,"error":"No source could be refreshed","failed_sources":[%s]}`, ada, failed)
	}
	const (
		oura   = `"oura/activity","oura/sleep","oura/workouts"`
		fitbit = `"fitbit/activity","fitbit/sleep","fitbit/workouts"`
	)
	check(t, refresh(""), 400, rejected(""))
	noError(t, srv.Connect(ada, "oura"))
	noError(t, srv.Connect(ada, "fitbit"))
	check(t, refresh("?timeout=5"), 200, refreshed(oura+","+fitbit, "", ""))
	noError(t, srv.SetConnectionError(ada, "fitbit", "unknown"))
	check(t, refresh("?timeout=60.0"), 200, refreshed(oura, "", fitbit))
	noError(t, srv.SetHistoricalPull(ada, "oura", "sleep", "in_progress", ""))
	check(t, refresh(""), 202, refreshed(`"oura/activity","oura/workouts"`, `"oura/sleep"`, fitbit))
	noError(t, srv.SetHistoricalPull(ada, "oura", "sleep", "success", ""))
	noError(t, srv.SetConnectionError(ada, "oura", "unknown"))
	check(t, refresh(""), 400, rejected(oura+","+fitbit))

	for query, code := range map[string]string{"?timeout=4.9": "greater_than_equal", "?timeout=61": "less_than_equal", "?timeout=soon": "float_parsing"} {
		if got := refresh(query); got.status != 422 || !strings.Contains(got.body, code) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	for range 3 {
		refresh("")
	}
	now = now.Add(time.Hour - time.Nanosecond)
	check(t, refresh(""), 429, `{"detail":"A user can be refreshed 8 times per hour"}`)
	now = now.Add(time.Nanosecond)
	noError(t, srv.Connect(ada, "oura"))
	check(t, refresh(""), 200, refreshed(oura, "", fitbit))
}
