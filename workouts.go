package labhealth

import (
	"context"

	"github.com/google/uuid"
)

// WorkoutsService is the workouts of the team's users: [Client.Workouts].
type WorkoutsService struct{ core *core }

const opWorkoutStream = "GET /v2/timeseries/workouts/{workout_id}/stream"

// Stream reads what was recorded during a workout: GET /v2/timeseries/workouts/{workout_id}/stream, with an answer of up to 64
// MiB. The id is that of a webhooks.WorkoutStreamNotice, which says that the stream can be read. An unknown one is [ErrNotFound].
func (s *WorkoutsService) Stream(ctx context.Context, workoutID uuid.UUID, opts ...CallOption) (*WorkoutStream, error) {
	r := request{op: opWorkoutStream, ids: []string{workoutID.String()}, maxBody: 64 << 20}
	return call[WorkoutStream](ctx, s.core, r, opts)
}

// WorkoutStream is the answer of [WorkoutsService.Stream]: parallel lists, in which elements of the same index belong to the same
// moment. A list that was not recorded is nil or empty; an element that was not recorded is nil. It redacts
// itself when printed. Source of the fields and units: public API
// reference only.
type WorkoutStream struct {
	Redacted[WorkoutStream]

	Time           []int64    `json:"time,omitzero"`            // seconds since 1970
	Heartrate      []*int64   `json:"heartrate,omitzero"`       // beats per minute
	Cadence        []*float64 `json:"cadence,omitzero"`         // revolutions or steps per minute
	Altitude       []*float64 `json:"altitude,omitzero"`        // meters
	VelocitySmooth []*float64 `json:"velocity_smooth,omitzero"` // meters per second
	Lat            []*float64 `json:"lat,omitzero"`             // degrees north
	Lng            []*float64 `json:"lng,omitzero"`             // degrees east
	Distance       []*float64 `json:"distance,omitzero"`        // meters
	Power          []*float64 `json:"power,omitzero"`           // watts
	Resistance     []*float64 `json:"resistance,omitzero"`      // in units of the device
	Temperature    []*float64 `json:"temperature,omitzero"`     // degrees Celsius

	RawObject `json:"-"`
}
