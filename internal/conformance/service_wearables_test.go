package conformance

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// A program shows a user's night: the sleeps of a week, the stream of the last one, and the heart
// rate during it.
func TestServiceWearables(t *testing.T) {
	srv, client := serve(t)
	ada := srv.AddUser("ada")
	monday := time.Date(2025, time.March, 3, 0, 0, 0, 0, time.UTC)
	var lastSleep uuid.UUID
	for day := range 7 {
		id, err := srv.AddSummary(ada, "sleep", labhealthtest.StartingAt(monday.AddDate(0, 0, day)))
		if err != nil {
			t.Fatal(err)
		}
		lastSleep = id
	}
	if err := srv.AddSamples(ada, "heartrate", 1500, labhealthtest.StartingAt(monday.AddDate(0, 0, 1))); err != nil {
		t.Fatal(err)
	}

	week := labhealth.ListSummariesParams{StartDate: labhealth.DateOf(monday), EndDate: labhealth.DateOf(monday.AddDate(0, 0, 6))}
	page := must[*labhealth.SummaryPage](t)(client.Wearables.Summaries(t.Context(), ada, labhealth.SummarySleep, week))
	equal(t, 7, len(page.Data))
	var sleep struct {
		ID           uuid.UUID      `json:"id"`
		CalendarDate labhealth.Date `json:"calendar_date"`
	}
	equal(t, nil, json.Unmarshal(page.Data[6], &sleep))
	equal(t, lastSleep, sleep.ID)
	equal(t, week.EndDate, sleep.CalendarDate)

	stream := must[*labhealth.SleepStream](t)(client.Wearables.SleepStream(t.Context(), lastSleep))
	equal(t, []int{16, 16, 16, 16}, []int{len(stream.HRV), len(stream.Heartrate), len(stream.Hypnogram), len(stream.RespiratoryRate)})
	equal(t, 0, len(stream.Malformed()))
	stage := stream.Hypnogram[0]
	equal(t, 30*time.Minute, stage.End.Sub(*stage.Start))
	equal(t, "bpm", stream.Heartrate[0].Unit)

	ride := must[uuid.UUID](t)(srv.AddSummary(ada, "workouts", labhealthtest.StartingAt(monday)))
	equal(t, 45*60, len(must[*labhealth.WorkoutStream](t)(client.Workouts.Stream(t.Context(), ride)).Power))

	pages, samples := 0, 0
	params := labhealth.ListSamplesParams{StartDate: monday, Provider: "oura"}
	for page, err := range client.Wearables.SamplePages(t.Context(), ada, "heartrate", params) {
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, group := range page.Groups["oura"] {
			var data struct{ Data []json.RawMessage }
			equal(t, nil, json.Unmarshal(group, &data))
			samples += len(data.Data)
		}
	}
	equal(t, []int{2, 1500}, []int{pages, samples})

	for _, resource := range []labhealth.SampleResource{"moon", "weight"} {
		_, err := client.Wearables.Samples(t.Context(), ada, resource, params)
		equal(t, true, errors.Is(err, labhealth.ErrNotFound))
	}
	_, err := client.Wearables.Summaries(t.Context(), uuid.New(), labhealth.SummarySleep, week)
	checkRejected(t, err, "GET /v2/summary/{resource}/{user_id}", 404, "User not found")
	_, err = client.Wearables.SleepStream(t.Context(), uuid.New())
	checkRejected(t, err, "GET /v2/timeseries/sleep/{sleep_id}/stream", 404, "Sleep not found")
	_, err = client.Wearables.Samples(t.Context(), ada, "hrv", labhealth.ListSamplesParams{}, labhealth.WithoutValidation())
	equal(t, 422, apiError(t, err).StatusCode)
}

// A deployment that has the operations elsewhere.
func TestWearablePaths(t *testing.T) {
	client, s := scripted(t, []reply{{status: 200, body: `{"sleep":[]}`}},
		labhealth.WithPath("GET /v2/summary/{resource}/{user_id}", "/wearables/{user_id}/{resource}"))
	_, err := client.Wearables.Summaries(t.Context(), userID, labhealth.SummarySleep, sinceMarch)
	equal(t, nil, err)
	equal(t, testURL+"/wearables/"+userID.String()+"/sleep?start_date=2025-03-01", s.only(t).URL)
}
