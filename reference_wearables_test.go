package labhealth

import (
	"strings"

	"github.com/labhealth/labhealth-go/internal/reference"
)

var wearableReference = newWearableReference()

// newWearableReference connects the resources of wearable data with the two methods that read all
// of them.
func newWearableReference() referenceArea {
	a := referenceArea{
		components: map[string]any{
			"ClientFacingSleepStream":               SleepStream{},
			"ClientFacingHRVTimeseries":             SleepStreamSample{},
			"ClientFacingHeartRateTimeseries":       SleepStreamSample{},
			"ClientFacingHypnogramTimeseries":       SleepStreamSample{},
			"ClientFacingRespiratoryRateTimeseries": SleepStreamSample{},
			"ClientFacingStream":                    WorkoutStream{},
		},
		enums: map[string]any{
			"/v2/summary/{resource}/{user_id}":            SummaryResource(""),
			"/v2/timeseries/{user_id}/{resource}/grouped": SampleResource(""),
		},
		operations: map[string]string{
			opSleepStream:   "Wearables.SleepStream",
			opWorkoutStream: "Workouts.Stream",
		},
		exceptions: map[string]string{
			"GET /v2/summary/profile/{user_id}.start_date": "the method reads other resources too",
			"GET /v2/summary/profile/{user_id}.end_date":   "the method reads other resources too",
		},
	}
	for _, o := range reference.Operations() {
		switch {
		case strings.HasPrefix(o.Path, "/v2/summary/"):
			a.operations[o.String()] = "Wearables.Summaries"
			a.exceptions[o.String()+".response"] = "summaries of every resource are raw JSON, which webhooks.ReadSummaries decodes"
			a.exceptions[o.Response] = "summaries of every resource are raw JSON, which webhooks.ReadSummaries decodes"
		case strings.HasSuffix(o.Path, "/grouped"):
			a.operations[o.String()] = "Wearables.Samples"
			a.components[o.Response] = SamplePage{}
			a.exceptions[strings.TrimSuffix(o.Response, "Response")] = "groups of every resource are raw JSON, which webhooks.ReadSamples decodes"
		}
	}
	return a
}
