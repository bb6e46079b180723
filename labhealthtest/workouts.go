// Workouts and their streams.

package labhealthtest

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// workoutStream is the stream of a workout on an indoor bicycle, which has no position.
type workoutStream struct {
	Time        []int64    `json:"time"`
	Heartrate   []*int64   `json:"heartrate"`
	Cadence     []*float64 `json:"cadence"`
	Power       []*float64 `json:"power"`
	Distance    []*float64 `json:"distance"`
	Lat         []*float64 `json:"lat"`
	Lng         []*float64 `json:"lng"`
	Altitude    []*float64 `json:"altitude"`
	Velocity    []*float64 `json:"velocity_smooth"`
	Resistance  []*float64 `json:"resistance"`
	Temperature []*float64 `json:"temperature"`
}

// AddWorkout adds a workout of a user with one sample per second, and sends the event
// daily.data.workout_stream.created with its ID. Every tenth heart rate is missing. AddWorkout
// returns an error if the user does not exist.
func (s *Server) AddWorkout(userID uuid.UUID, seconds int) (workoutID uuid.UUID, err error) {
	err = s.withUser(userID, func(u *user) error {
		workoutID = s.addWorkout(seconds)
		s.emitWorkoutStream(u, workoutID, &dataOptions{provider: "wahoo", shape: SourceNamed})
		return nil
	})
	return workoutID, err
}

// addWorkout adds a stream.
func (s *Server) addWorkout(seconds int) (workoutID uuid.UUID) {
	workoutID = s.newID()
	s.workouts[workoutID] = newWorkoutStream(s.now().Add(-time.Duration(seconds)*time.Second), seconds)
	return workoutID
}

// newWorkoutStream returns the JSON of a stream.
func newWorkoutStream(start time.Time, seconds int) []byte {
	stream := workoutStream{
		Time: []int64{}, Heartrate: []*int64{}, Cadence: []*float64{}, Power: []*float64{}, Distance: []*float64{},
		Lat: []*float64{}, Lng: []*float64{}, Altitude: []*float64{}, Velocity: []*float64{},
	}
	for i := range seconds {
		wave := math.Round(10 * math.Sin(float64(i)/30))
		rate := new(int64(130 + wave))
		if i%10 == 9 {
			rate = nil
		}
		stream.Time = append(stream.Time, start.Unix()+int64(i))
		stream.Heartrate = append(stream.Heartrate, rate)
		stream.Cadence = append(stream.Cadence, new(85+wave/10))
		stream.Power = append(stream.Power, new(200+2*wave))
		stream.Distance = append(stream.Distance, new(float64(i)*8.5))
	}
	return encode(stream)
}

func (s *Server) emitWorkoutStream(u *user, workoutID uuid.UUID, o *dataOptions) {
	s.emitData(u, "daily.data.workout_stream.", "created", map[string]any{
		"user_id":     u.UserID,
		"source":      o.source(),
		"provider_id": fmt.Sprint(len(s.workouts)),
		"workout_id":  workoutID,
		"sport":       map[string]any{"id": 64, "name": "Cycling", "slug": "cycling"},
		"message":     "The stream can be read from /v2/timeseries/workouts/" + workoutID.String() + "/stream",
	}, o)
}

func (s *Server) getWorkoutStream(r *request) (any, error) {
	if stream := s.workouts[r.pathUUID("workout_id")]; stream != nil {
		return &response{statusCode: http.StatusOK, body: stream}, nil
	}
	return nil, reject(http.StatusNotFound, "Workout not found")
}
