package webhooks_test

import (
	"fmt"
	"testing"

	"github.com/labhealth/labhealth-go/webhooks"
)

// The shapes of a source: the fields that the interface specification gives, those of the public
// API reference, and both.
var sourceShapes = map[string]string{
	"specification": `{"name":"Example Ring","slug":"example_ring","logo":"https://example.com/ring.png"}`,
	"reference":     `{"provider":"example_ring","type":"ring","app_id":null,"device_id":null,"sport":null,"workout_id":null}`,
	"both":          `{"provider":"example_ring","type":"ring","name":"","slug":"","logo":""}`,
	"unknown":       `{"provider":"unknown","slug":"example_ring"}`,
}

// What the examples do with an event names the provider, in each shape of a source and of a
// connection, and never panics.
func TestExamplesReadBothShapesOfASource(t *testing.T) {
	const user = `"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"`
	event := func(eventType, data string) *webhooks.Event {
		body := fmt.Sprintf(`{"event_type":%q,"data":%s,"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40",%s,"client_user_id":"user-1"}`, eventType, data, user)
		e, err := webhooks.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for name, source := range sourceShapes {
		samples := `{` + user + `,"source_id":16,"source":` + source + `,"data":[{"timestamp":"2025-03-01T12:00:00+00:00","timezone_offset":3600,"type":null,"unit":"x","value":1}]}`
		for eventType, test := range map[string]struct{ data, want string }{
			"daily.data.glucose.created":         {samples, "1 glucose from example_ring"},
			"daily.data.steps.created":           {samples, "1 steps from example_ring"},
			"daily.data.calories_active.created": {samples, "1 calories_active from example_ring"},
			"daily.data.activity.created": {`{` + user + `,"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","calendar_date":"2025-03-01","high":null,"source":` + source + `}`,
				"activity on 2025-03-01 from example_ring"},
			"daily.data.workout_stream.created": {`{` + user + `,"workout_id":"77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5","source":` + source + `}`,
				"daily.data.workout_stream.created is ignored"},
		} {
			if got := describe(event(eventType, test.data)); got != test.want {
				t.Errorf("%s, source of the %s: %q, want %q", eventType, name, got, test.want)
			}
		}
		for _, data := range []string{
			`{"source":` + source + `,` + user + `}`, `{"provider":` + source + `,` + user + `}`, `{"source":` + source + `,"provider":` + source + `}`,
			`{"source":` + source + `,"provider":{}}`, `{"source":` + source + `,"provider":null}`,
		} {
			e := event("provider.connection.created", data)
			if got := describe(e); got != "user-1 connected example_ring" {
				t.Errorf("%s: %q", data, got)
			}
		}
	}
	for _, data := range []string{`{}`, `{"source":null}`, `{"source":{},"provider":{"name":"Ring"}}`, `{"source":{"provider":"unknown"}}`} {
		if got := describe(event("provider.connection.created", data)); got != "user-1 connected " {
			t.Errorf("%s: %q", data, got)
		}
	}
	only := event("provider.connection.created", `{"provider":{"name":"Ring"}}`).Data.(*webhooks.ProviderConnection)
	if got := only.ConnectedProvider().Name; got != "Ring" {
		t.Errorf("the name of a provider without a slug is %q", got)
	}
	if got := (&webhooks.ProviderConnection{}).ConnectedProvider().Name; got != "" {
		t.Errorf("no provider is %q", got)
	}
}
