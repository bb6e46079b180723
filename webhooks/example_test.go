package webhooks_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// A batch of samples. HasValue distinguishes zero from a missing value, and Decode reads fields
// that Sample does not have.
func ExampleParse_samples() {
	event, err := webhooks.Parse([]byte(`{"event_type": "daily.data.glucose.created", "user_id": "0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",
		"data": {"source": {"provider": "example_sensor", "type": "automatic"}, "data": [
			{"timestamp": "2025-03-01T13:00:00+01:00", "timezone_offset": 3600, "unit": "mmol/L", "value": 5.4, "sensor_location": "arm"},
			{"timestamp": "2025-03-01T13:05:00+01:00", "timezone_offset": null, "unit": "mmol/L", "value": null}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	batch := event.Data.(*webhooks.Samples)
	fmt.Println(event.Type.Resource(), event.Type.Action(), "by", batch.Source.ProviderSlug(), "of", event.UserID)
	for _, sample := range batch.Data {
		if !sample.HasValue {
			fmt.Println(sample.Timestamp.UTC().Format(time.TimeOnly), "no value")
			continue
		}
		var more struct {
			SensorLocation string `json:"sensor_location"`
		}
		if err := sample.Decode(&more); err != nil {
			log.Fatal(err)
		}
		fmt.Println(sample.Timestamp.UTC().Format(time.TimeOnly), sample.Value, sample.Unit, more.SensorLocation)
	}
	// Output:
	// glucose created by example_sensor of 0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4
	// 12:00:00 5.4 mmol/L arm
	// 12:05:00 no value
}

// Samples of blood pressure have two values; notes have a string.
func ExampleParse_samplesWithoutValue() {
	for _, body := range []string{
		`{"event_type":"daily.data.blood_pressure.created","data":{"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"mmHg","systolic":121,"diastolic":79}]}}`,
		`{"event_type":"daily.data.note.created","data":{"data":[{"start":"2025-03-01T12:00:00Z","end":"2025-03-01T12:30:00Z","value":"lunch"}]}}`,
	} {
		event, err := webhooks.Parse([]byte(body))
		if err != nil {
			log.Fatal(err)
		}
		sample := event.Data.(*webhooks.Samples).Data[0]
		switch event.Type.Resource() {
		case "blood_pressure":
			fmt.Println(sample.Systolic, "over", sample.Diastolic, sample.Unit)
		case "note":
			fmt.Println(sample.Text, "took", sample.End.Sub(sample.Start))
		}
	}
	// Output:
	// 121 over 79 mmHg
	// lunch took 30m0s
}

// The summary of a day. Fields that the source did not measure are nil.
func ExampleParse_activity() {
	event, err := webhooks.Parse([]byte(`{"event_type": "daily.data.activity.updated", "data": {
		"id": "3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11", "calendar_date": "2025-03-01", "timezone_offset": 3600,
		"steps": 10482, "distance": 7310.5, "floors_climbed": null, "heart_rate": {"avg_bpm": 71, "resting_bpm": 52},
		"source": {"name": "Example Ring", "slug": "example_ring", "logo": ""}}}`))
	if err != nil {
		log.Fatal(err)
	}
	day := event.Data.(*webhooks.Activity)
	fmt.Println(day.CalendarDate, *day.Steps, "steps", *day.Distance, "m", "floors:", day.FloorsClimbed != nil)
	fmt.Println("at rest", *day.HeartRate.RestingBPM, "by", day.Source.ProviderSlug())
	// Output:
	// 2025-03-01 10482 steps 7310.5 m floors: false
	// at rest 52 by example_ring
}

// Every summary of wearable data has its own type. What was not measured is nil.
func ExampleParse_summary() {
	event, err := webhooks.Parse([]byte(`{"event_type": "daily.data.sleep.created", "data": {
		"id": "3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c12", "calendar_date": "2025-03-01", "type": "long_sleep", "total": 26100, "hr_lowest": 48}}`))
	if err != nil {
		log.Fatal(err)
	}
	switch data := event.Data.(type) {
	case *webhooks.Sleep:
		fmt.Println(data.CalendarDate, data.Type, time.Duration(data.Total)*time.Second)
		if data.HRLowest != nil {
			fmt.Println("lowest heart rate", *data.HRLowest)
		}
	case *webhooks.Workout:
		fmt.Println(data.CalendarDate, data.Sport.Slug, data.TimeEnd.Sub(data.TimeStart))
	}
	// Output:
	// 2025-03-01 long_sleep 7h15m0s
	// lowest heart rate 48
}

// Summaries of resources that are newer than the package share a type with their common fields.
// Decode reads the rest into a type of the program.
func ExampleSummary_Decode() {
	event, err := webhooks.Parse([]byte(`{"event_type": "daily.data.posture.created", "data": {
		"id": "3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c12", "calendar_date": "2025-03-01", "upright": 26100}}`))
	if err != nil {
		log.Fatal(err)
	}
	summary := event.Data.(*webhooks.Summary)
	var posture struct {
		Upright int // seconds
	}
	if err := summary.Decode(&posture); err != nil {
		log.Fatal(err)
	}
	fmt.Println(event.Type.Resource(), summary.CalendarDate, time.Duration(posture.Upright)*time.Second)
	// Output:
	// posture 2025-03-01 7h15m0s
}

// Some resources have samples with further fields.
func ExampleRawSample_Details() {
	event, err := webhooks.Parse([]byte(`{"event_type": "daily.data.insulin_injection.created", "data": {"data": [
		{"timestamp": "2025-03-01T12:00:00Z", "type": "rapid_acting", "unit": "unit", "value": 4, "delivery_mode": "bolus", "bolus_purpose": "meal"}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, sample := range event.Data.(*webhooks.Samples).Data {
		details := sample.Details()
		if sample.Type == webhooks.SampleTypeRapidActing && details.BolusPurpose != nil {
			fmt.Println(sample.Value, *details.BolusPurpose)
		}
	}
	// Output:
	// 4 meal
}

// An order event has the same type as the response of Orders.Get. Events arrive in any order: see
// LabOrder.
func ExampleParse_labOrder() {
	event, err := webhooks.Parse([]byte(`{"event_type": "labtest.order.updated", "data": {
		"id": "c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5", "sample_id": "SAMPLE-0001", "updated_at": "2025-03-01T12:00:00+00:00",
		"last_event": {"id": 2, "created_at": "2025-03-01T12:00:00+00:00", "status": "completed.testkit.completed"}}}`))
	if err != nil {
		log.Fatal(err)
	}
	order := event.Data.(*webhooks.LabOrder)
	fmt.Println(order.ID, *order.SampleID, order.CurrentStatus().TopLevel())
	fmt.Println(order) // shows no patient
	// Output:
	// c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5 SAMPLE-0001 completed
	// labhealth.Order{c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5 completed.testkit.completed, redacted}
}

// A user connected a wearable, and then its history was read. The historical data arrives in
// separate events.
func ExampleParse_connection() {
	for _, body := range []string{
		`{"event_type":"provider.connection.created","client_user_id":"user-1","data":{"source":{"name":"Example Ring","slug":"example_ring","logo":""}}}`,
		`{"event_type":"provider.connection.created","client_user_id":"user-2","data":{"provider":{"name":"Example Ring","slug":"example_ring","logo":""}}}`,
		`{"event_type":"historical.data.sleep.created","client_user_id":"user-1","data":{"start_date":"2024-12-01","end_date":"2025-03-01","provider":"example_ring"}}`,
	} {
		event, err := webhooks.Parse([]byte(body))
		if err != nil {
			log.Fatal(err)
		}
		switch data := event.Data.(type) {
		case *webhooks.ProviderConnection:
			fmt.Println(event.ClientUserID, "connected", data.ConnectedProvider().Name)
		case *webhooks.HistoricalPull:
			fmt.Println("all", event.Type.Resource(), "of", event.ClientUserID, "since", data.StartDate.Format(time.DateOnly), "was read")
		}
	}
	// Output:
	// user-1 connected Example Ring
	// user-2 connected Example Ring
	// all sleep of user-1 since 2024-12-01 was read
}

// A workout's stream is too large for an event. The notice means that Workouts.Stream can read it.
func ExampleParse_workoutStream() {
	event, err := webhooks.Parse([]byte(`{"event_type": "daily.data.workout_stream.created", "data": {
		"workout_id": "77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5", "sport": {"id": 7, "name": "Running", "slug": "running"}}}`))
	if err != nil {
		log.Fatal(err)
	}
	notice := event.Data.(*webhooks.WorkoutStreamNotice)
	fmt.Println(notice.Sport.Name, notice.WorkoutID)
	// Output:
	// Running 77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5
}

// Unknown types and unexpected data are not errors: Unknown keeps the raw bytes. Encoding an event
// returns the received JSON.
func ExampleParse_unknown() {
	for _, body := range []string{
		`{"event_type":"labtest.courier.called","data":{"sample_id":"S-1"},"severity":"high"}`,
		`{"event_type":"daily.data.body.created","data":"see the API"}`,
	} {
		event, err := webhooks.Parse([]byte(body))
		if err != nil {
			log.Fatal(err)
		}
		unknown := event.Data.(*webhooks.Unknown)
		fmt.Println(event.Type, string(unknown.Raw), unknown.Err)
		encoded, err := json.Marshal(event)
		fmt.Println("the same bytes:", string(encoded) == body, err)
	}
	_, err := webhooks.Parse([]byte(`"ping"`))
	var invalid *webhooks.ParseError
	fmt.Println("a body that is not an object is an error:", errors.As(err, &invalid))
	// Output:
	// labtest.courier.called {"sample_id":"S-1"} <nil>
	// the same bytes: true <nil>
	// daily.data.body.created "see the API" webhooks: the data is not an object
	// the same bytes: true <nil>
	// a body that is not an object is an error: true
}

// A router needs only the type and the IDs, which costs a fraction of Parse.
func ExampleParseEnvelope() {
	body := []byte(`{"event_type":"daily.data.steps.updated","data":{"data":[{"value":1}]},"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`)
	envelope, err := webhooks.ParseEnvelope(body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(envelope.Type, "goes to partition", envelope.UserID[15]%8)
	// Output: daily.data.steps.updated goes to partition 4
}

// Events from an event hub have the same bodies as webhooks, compressed if they are large. A few
// bytes can expand to gigabytes, so limit the size.
func ExampleParse_eventHub() {
	const maxBody = 16 << 20
	read := func(body []byte, contentEncoding string) (*webhooks.Event, error) {
		if contentEncoding == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			if body, err = io.ReadAll(io.LimitReader(z, maxBody+1)); err != nil {
				return nil, err
			}
		}
		if len(body) > maxBody {
			return nil, errors.New("the event is too large")
		}
		return webhooks.Parse(body)
	}

	var message bytes.Buffer
	z := gzip.NewWriter(&message)
	io.WriteString(z, `{"event_type":"daily.data.steps.created","data":{"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"count","value":237}]}}`)
	z.Close()
	event, err := read(message.Bytes(), "gzip")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(event.Type, event.Data.(*webhooks.Samples).Data[0].Value)
	// Output: daily.data.steps.created 237
}

// The latest version wins, whatever the order in which deliveries are applied: the one received
// last.
func ExampleLatest() {
	received := func(at time.Time, steps string) webhooks.Delivery {
		event, err := webhooks.Parse([]byte(`{"event_type":"daily.data.steps.updated","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{` +
			`"source":{"slug":"example_watch"},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"count","value":` + steps + `}]}}`))
		if err != nil {
			log.Fatal(err)
		}
		event.ReceivedAt = at
		return webhooks.Delivery{Event: event}
	}
	noon := time.Date(2025, 3, 1, 12, 5, 0, 0, time.UTC)

	var latest webhooks.Latest
	for _, delivery := range []webhooks.Delivery{
		received(noon.Add(time.Minute), "237"), // a bucket that is still filling
		received(noon.Add(2*time.Minute), "301"),
		received(noon, "120"), // received first, and applied last by a slow worker
	} {
		changes, err := latest.Apply(delivery)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("added %d, updated %d, older %d\n", changes.Added, changes.Updated, changes.Older)
	}
	for key, sample := range latest.Samples() {
		fmt.Println(key.Resource, key.Provider, time.Unix(0, key.UnixNano).UTC().Format(time.TimeOnly), sample.Value)
	}
	// Output:
	// added 1, updated 0, older 0
	// added 0, updated 1, older 0
	// added 0, updated 0, older 1
	// steps example_watch 12:00:00 301
}

// An event without a user has no keys and returns an error: a zero ID would merge the data of
// different users.
func ExampleEvent_Keys() {
	event, err := webhooks.Parse([]byte(`{"event_type":"daily.data.heartrate.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{` +
		`"source":{"provider":"example_ring","type":"ring"},"data":[{"timestamp":"2025-03-01T13:00:00+01:00","unit":"bpm","value":63}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	keys, err := event.Keys()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", keys.Samples[0])

	event.UserID = uuid.Nil
	_, err = event.Keys()
	fmt.Println(err)
	// Output:
	// {UserID:0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4 Resource:heartrate Provider:example_ring SourceType:ring UnixNano:1740830400000000000}
	// webhooks: the event has no readable user id
}
