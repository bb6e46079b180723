package labhealthtest_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestWorkoutStream(t *testing.T) {
	rec := newReceiver(t)
	srv := newServer(t)
	ada := srv.AddUser("ada")
	noError(t, srv.DeliverTo(rec.URL))
	id, err := srv.AddWorkout(ada, 10)
	noError(t, err)
	noError(t, srv.Flush(t.Context()))
	checkEvent(t, srv.Deliveries()[0].Body, strings.NewReplacer(
		"TEAM", srv.TeamID.String(), "USER", ada.String(), "WORKOUT", id.String()).Replace(`{
		"event_type":"daily.data.workout_stream.created","team_id":"TEAM","user_id":"USER","client_user_id":"ada",
		"data":{"user_id":"USER","workout_id":"WORKOUT","provider_id":"1","sport":{"id":64,"name":"Cycling","slug":"cycling"},
			"source":{"name":"Wahoo","slug":"wahoo","logo":"https://example.com/logos/wahoo.png"},
			"message":"The stream can be read from /v2/timeseries/workouts/WORKOUT/stream"}}`))

	path := "/v2/timeseries/workouts/" + id.String() + "/stream"
	check(t, do(t, srv, "GET", path, ""), 200, `{
		"time":[1741089590,1741089591,1741089592,1741089593,1741089594,1741089595,1741089596,1741089597,1741089598,1741089599],
		"heartrate":[130,130,131,131,131,132,132,132,133,null],
		"cadence":[85,85,85.1,85.1,85.1,85.2,85.2,85.2,85.3,85.3],
		"power":[200,200,202,202,202,204,204,204,206,206],
		"distance":[0,8.5,17,25.5,34,42.5,51,59.5,68,76.5],
		"lat":[],"lng":[],"altitude":[],"velocity_smooth":[],"resistance":null,"temperature":null}`)
	check(t, do(t, srv, "GET", "/v2/timeseries/workouts/"+unknownID+"/stream", ""), 404, `{"detail":"Workout not found"}`)
	if got := do(t, srv, "GET", "/v2/timeseries/workouts/x/stream", ""); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
	if _, err := srv.AddWorkout(uuid.MustParse(unknownID), 1); err == nil {
		t.Error("AddWorkout succeeds for an unknown user")
	}
}
