package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go"
)

const pullsJSON = `{
	"data": [{
		"user_id": "11111111-2222-4333-8444-555555555555",
		"provider": {
			"oura": {
				"pulled": {
					"sleep": {"status": "retrying", "range_start": "2024-12-04T00:00:00+00:00", "range_end": "2025-03-04T12:00:00.123456+00:00",
						"timeline": {"scheduled_at": "2025-03-04T12:00:00+00:00", "started_at": "2025-03-04T12:00:05+00:00", "ended_at": null},
						"days_with_data": 12, "release": "2025-05-09", "trace_id": "0af7651916cd43dd", "error_details": "provider_rate_limit_exceeded"},
					"activity": {"status": "on_hold", "timeline": {"scheduled_at": "2025-03-04T12:00:00"}, "release": "2025-05-09",
						"error_details": {"code": "transport_failure", "attempts": [1, 2]}}
				},
				"not_pulled": ["workouts", "body"]
			},
			"fitbit": {"pulled": {}, "not_pulled": [], "paused": true}
		}
	}],
	"next_cursor": "bmV4dA"
}`

func TestHistoricalPulls(t *testing.T) {
	client, _ := respondingWith(t, 200, pullsJSON)
	got := must[*labhealth.HistoricalPullPage](t)(client.Users.HistoricalPulls(t.Context(), labhealth.ListHistoricalPullsParams{}))
	equal(t, 0, len(got.Malformed()))
	equal(t, jsonData(t, pullsJSON), jsonData(t, mustEncode(t, got)))

	// A change within a map keeps unknown fields beside it.
	oura := got.Data[0].Provider["oura"]
	oura.NotPulled = nil
	got.Data[0].Provider["oura"] = oura
	want := strings.Replace(pullsJSON, `["workouts", "body"]`, "[]", 1)
	equal(t, jsonData(t, want), jsonData(t, mustEncode(t, got)))
}

func TestHistoricalPullStates(t *testing.T) {
	for _, state := range []labhealth.HistoricalPullStatus{"success", "failure", "in_progress", "scheduled", "retrying", "something new"} {
		body := fmt.Sprintf(`{"data":[{"user_id":"x","provider":{"oura":{"pulled":{"sleep":{"status":%q,"timeline":7,"error_details":null}}}}}]}`, state)
		client, _ := respondingWith(t, 200, body)
		got := must[*labhealth.HistoricalPullPage](t)(client.Users.HistoricalPulls(t.Context(), labhealth.ListHistoricalPullsParams{}))
		equal(t, state, got.Data[0].Provider["oura"].Pulled["sleep"].Status)
		equal(t, []labhealth.Malformed{{Path: "data.0.user_id", Want: "uuid"}, {Path: "data.0.provider.oura.pulled.sleep.timeline", Want: "object"}}, got.Malformed())
		equal(t, body, mustEncode(t, got))
	}
	equal(t, []labhealth.HistoricalPullStatus{"success", "failure", "in_progress", "scheduled", "retrying"}, []labhealth.HistoricalPullStatus{
		labhealth.HistoricalPullSuccess, labhealth.HistoricalPullFailure, labhealth.HistoricalPullInProgress, labhealth.HistoricalPullScheduled,
		labhealth.HistoricalPullRetrying,
	})
}
