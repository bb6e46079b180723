package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

var workoutID = uuid.MustParse("6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c")

const streamJSON = `{
	"time": [1741089590, 1741089591, 1741089592],
	"heartrate": [null, 131, 132],
	"lat": [37.77491, null, -0.0],
	"lng": [], "power": null, "distance": [0, 8.5, 1.7e1],
	"velocity_smooth": [8.5, 8.5, null], "strokes": [1, 2, 3]
}`

func TestWorkoutStream(t *testing.T) {
	client, s := respondingWith(t, 200, streamJSON)
	got := must[*labhealth.WorkoutStream](t)(client.Workouts.Stream(t.Context(), workoutID))
	equal(t, "https://api.example.com/v2/timeseries/workouts/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c/stream", s.only(t).URL)
	equal(t, &labhealth.WorkoutStream{
		Time:           []int64{1741089590, 1741089591, 1741089592},
		Heartrate:      []*int64{nil, new(int64(131)), new(int64(132))},
		Lat:            []*float64{new(37.77491), nil, new(0.0)},
		Lng:            []*float64{},
		Distance:       []*float64{new(0.0), new(8.5), new(17.0)},
		VelocitySmooth: []*float64{new(8.5), new(8.5), nil},
	}, got)
	equal(t, 0, len(got.Malformed()))

	// An unchanged value encodes to the received JSON; a change keeps nulls, digits and unknown
	// fields.
	equal(t, streamJSON, string(got.RawJSON()))
	encoded := must[[]byte](t)(json.Marshal(got))
	equal(t, jsonData(t, streamJSON), jsonData(t, string(encoded)))
	got.Heartrate[1] = nil
	got.Lat = append(got.Lat, nil, new(1.25))
	got.Power = []*float64{new(200.0), nil}
	equal(t, jsonData(t, `{
		"time": [1741089590, 1741089591, 1741089592], "heartrate": [null, null, 132],
		"lat": [37.77491, null, -0.0, null, 1.25], "lng": [], "power": [200, null], "distance": [0, 8.5, 1.7e1],
		"velocity_smooth": [8.5, 8.5, null], "strokes": [1, 2, 3]}`), jsonData(t, mustEncode(t, got)))
	equal(t, `{"time":[1],"heartrate":[null,60],"cadence":[85.5]}`, string(must[[]byte](t)(json.Marshal(labhealth.WorkoutStream{
		Time: []int64{1}, Heartrate: []*int64{nil, new(int64(60))}, Cadence: []*float64{new(85.5)},
	}))))
}

func TestWorkoutStreamOddElements(t *testing.T) {
	const text = `{"time":["soon",2],"heartrate":[60,"sixty",61.5,null],"lat":[true,1],"lng":"none","power":[{},[],1]}`
	client, _ := respondingWith(t, 200, text)
	got := must[*labhealth.WorkoutStream](t)(client.Workouts.Stream(t.Context(), workoutID))
	equal(t, &labhealth.WorkoutStream{
		Time: []int64{0, 2}, Heartrate: []*int64{new(int64(60)), nil, nil, nil},
		Lat: []*float64{nil, new(1.0)}, Power: []*float64{nil, nil, new(1.0)},
	}, got)
	equal(t, []labhealth.Malformed{
		{Path: "time.0", Want: "integer"}, {Path: "heartrate.1", Want: "integer"}, {Path: "heartrate.2", Want: "integer"},
		{Path: "lat.0", Want: "number"}, {Path: "lng", Want: "array"}, {Path: "power.0", Want: "number"}, {Path: "power.1", Want: "number"},
	}, got.Malformed())
	got.Power[0] = new(5.0) // what did not fit stays beside a change
	equal(t, `{"time":["soon",2],"heartrate":[60,"sixty",61.5,null],"lat":[true,1],"lng":"none","power":[5,[],1]}`,
		mustEncode(t, got))
}

// Long streams of zeros or nulls, which have one digit for each element, decode like any other.
func TestWorkoutStreamOfZeros(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	lists := []string{"time", "heartrate", "cadence", "altitude", "velocity_smooth", "lat", "lng", "distance", "power", "resistance", "temperature"}
	for _, test := range []struct {
		name, element string
		lists         []string
		length        int
	}{
		{"120,000 in eleven lists", "0", lists, 120_000/11 + 1},
		{"120,000 in each of two", "0", []string{"time", "power"}, 120_000},
		{"120,000 in one", "0", []string{"lat"}, 120_000},
		{"nulls", "null", lists[1:], 12_000},
		{"eight hours of seconds in eleven lists", "0", lists, 8 * 3600},
	} {
		t.Run(test.name, func(t *testing.T) {
			list := "[" + strings.Repeat(test.element+",", test.length-1) + test.element + "]"
			text := "{"
			for i, name := range test.lists {
				if i > 0 {
					text += ","
				}
				text += `"` + name + `":` + list
			}
			text += "}"
			client, _ := respondingWith(t, 200, text)
			got := must[*labhealth.WorkoutStream](t)(client.Workouts.Stream(t.Context(), workoutID))
			equal(t, 0, len(got.Malformed()))
			for i, n := range []int{
				len(got.Time), len(got.Heartrate), len(got.Cadence), len(got.Altitude), len(got.VelocitySmooth), len(got.Lat),
				len(got.Lng), len(got.Distance), len(got.Power), len(got.Resistance), len(got.Temperature),
			} {
				want := 0
				for _, name := range test.lists {
					if name == lists[i] {
						want = test.length
					}
				}
				equal(t, want, n)
			}
			equal(t, true, text == mustEncode(t, got))
		})
	}
}

// A stream may be larger than other responses.
func TestWorkoutStreamLimit(t *testing.T) {
	large := `{"time":[` + strings.Repeat("1741089590,", 900_000) + "1]}"
	client, _ := respondingWith(t, 200, large)
	got := must[*labhealth.WorkoutStream](t)(client.Workouts.Stream(t.Context(), workoutID))
	equal(t, 900_001, len(got.Time))
	client, _ = scripted(t, []reply{{status: 200, body: large}}, labhealth.WithBodyLimit(1<<20))
	_, err := client.Workouts.Stream(t.Context(), workoutID)
	equal(t, "labhealth: GET /v2/timeseries/workouts/{workout_id}/stream: 200 OK, but the response could not be read: applied (the response is larger than the limit: raise it with WithBodyLimit)", errorText(err))
}
