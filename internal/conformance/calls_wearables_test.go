package conformance

import (
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

var (
	sleepID     = uuid.MustParse("9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f31")
	marchFirst  = labhealth.Date{Year: 2025, Month: time.March, Day: 1}
	marchSecond = labhealth.Date{Year: 2025, Month: time.March, Day: 2}
)

const samplePageJSON = `{
	"groups": {
		"oura": [{"source": {"provider": "oura", "type": "ring", "app_id": null}, "data": [
			{"timestamp": "2025-03-01T12:00:00+00:00", "timezone_offset": 3600, "type": "ring", "unit": "bpm", "value": 6.10e1}]}],
		"fitbit": [{"source": {"name": "Fitbit", "slug": "fitbit", "logo": ""}, "data": []}]
	},
	"next": null,
	"next_cursor": null
}`

var wearableCalls = []apiCall{
	{
		method: "Wearables.Summaries", op: "GET /v2/summary/{resource}/{user_id}",
		url: "/v2/summary/sleep/11111111-2222-4333-8444-555555555555?end_date=2025-03-02&provider=oura&start_date=2025-03-01",
		// The tests of summaries have the names of the list.
		response: `{"data": [{"id": "9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f31", "total": 2.61e4, "score": null}, {"id": "x"}]}`,
		args:     []any{userID, labhealth.SummarySleep, labhealth.ListSummariesParams{StartDate: marchFirst, EndDate: marchSecond, Provider: "oura"}},
	},
	{
		method: "Wearables.Samples", op: "GET /v2/timeseries/{user_id}/{resource}/grouped",
		url: "/v2/timeseries/11111111-2222-4333-8444-555555555555/body_weight/grouped" +
			"?end_date=2025-03-02T00%3A00%3A00Z&next_cursor=bmV4dA&provider=withings&start_date=2025-03-01T12%3A00%3A00%2B01%3A00",
		response: samplePageJSON,
		args: []any{userID, "body_weight", labhealth.ListSamplesParams{
			StartDate: time.Date(2025, time.March, 1, 12, 0, 0, 0, time.FixedZone("", 3600)),
			EndDate:   time.Date(2025, time.March, 2, 0, 0, 0, 0, time.UTC), Provider: "withings", NextCursor: "bmV4dA",
		}},
	},
	{
		method: "Wearables.SamplePages", op: "GET /v2/timeseries/{user_id}/{resource}/grouped",
		url:      "/v2/timeseries/11111111-2222-4333-8444-555555555555/heartrate/grouped?start_date=2025-03-01T00%3A00%3A00Z",
		response: samplePageJSON, want: "[" + samplePageJSON + "]",
		args: []any{userID, "heartrate", labhealth.ListSamplesParams{StartDate: time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC)}},
	},
	{
		method: "Wearables.SleepStream", op: "GET /v2/timeseries/sleep/{sleep_id}/stream",
		url: "/v2/timeseries/sleep/9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f31/stream",
		response: `{
			"hrv": [{"id": 1, "timestamp": "2025-03-01T00:05:00+00:00", "timezone_offset": 3600, "type": "ring", "unit": "rmssd", "value": 61.5}],
			"heartrate": [{"timestamp": "2025-03-01T00:05:00+00:00", "timezone_offset": -18000, "unit": "bpm", "value": 51}],
			"hypnogram": [{"timestamp": "2025-03-01T00:05:00+00:00", "unit": "stage", "value": 3,
				"start": "2025-03-01T00:05:00+00:00", "end": "2025-03-01T00:35:00+00:00"}],
			"respiratory_rate": []
		}`,
		args: []any{sleepID},
	},
}
