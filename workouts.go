// WorkoutsService and the stream of a workout.

package labhealth

import (
	"context"

	"github.com/google/uuid"
)

// WorkoutsService provides access to the workouts of the team's users. See [Client.Workouts].
type WorkoutsService struct{ core *core }

const opWorkoutStream = "GET /v2/timeseries/workouts/{workout_id}/stream"

// Stream returns the data that was recorded during a workout: GET
// /v2/timeseries/workouts/{workout_id}/stream. The response may have up to 64 MiB. The ID is that
// of a webhooks.WorkoutStreamNotice, which reports that the stream is available. The error for an
// unknown ID matches [ErrNotFound].
func (s *WorkoutsService) Stream(ctx context.Context, workoutID uuid.UUID, opts ...CallOption) (*WorkoutStream, error) {
	r := request{op: opWorkoutStream, ids: []string{workoutID.String()}, maxBody: 64 << 20}
	return call(ctx, coreOf(s), new(WorkoutStream), r, opts)
}

// WorkoutStream is the response of [WorkoutsService.Stream]. It consists of parallel lists:
// elements with the same index belong to the same time. A list that was not recorded is nil or
// empty, and an element that was not recorded is nil. Source of the fields and units: public API
// reference only.
type WorkoutStream struct {
	Time           []int64    `json:"time,omitzero"`            // seconds since 1970
	Heartrate      []*int64   `json:"heartrate,omitzero"`       // beats per minute
	Cadence        []*float64 `json:"cadence,omitzero"`         // revolutions or steps per minute
	Altitude       []*float64 `json:"altitude,omitzero"`        // meters
	VelocitySmooth []*float64 `json:"velocity_smooth,omitzero"` // meters per second
	Lat            []*float64 `json:"lat,omitzero"`             // degrees north
	Lng            []*float64 `json:"lng,omitzero"`             // degrees east
	Distance       []*float64 `json:"distance,omitzero"`        // meters
	Power          []*float64 `json:"power,omitzero"`           // watts
	Resistance     []*float64 `json:"resistance,omitzero"`      // in a device-specific unit
	Temperature    []*float64 `json:"temperature,omitzero"`     // degrees Celsius

	RawObject `json:"-"`
}
