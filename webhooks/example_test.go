package webhooks_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

func ExampleParse() {
	for _, body := range []string{
		`{"event_type":"daily.data.glucose.created","data":{"source":{"provider":"example_sensor","type":"automatic"},"data":[
			{"timestamp":"2025-03-01T12:00:00+00:00","timezone_offset":3600,"type":"automatic","unit":"mmol/L","value":5.4}]}}`,
		`{"event_type":"daily.data.activity.updated","data":{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","calendar_date":"2025-03-01","steps":10482}}`,
		`{"event_type":"daily.data.sleep.created","data":{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c12","calendar_date":"2025-03-01","total":26100}}`,
		`{"event_type":"daily.data.workout_stream.created","data":{"workout_id":"77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5","sport":{"id":7,"name":"Running","slug":"running"}}}`,
		`{"event_type":"provider.connection.created","data":{"provider":{"name":"Example Ring","slug":"example_ring","logo":""}}}`,
		`{"event_type":"labtest.order.updated","data":{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","last_event":{"id":2,"status":"completed.testkit.completed"}}}`,
		`{"event_type":"historical.data.sleep.created","data":{"start_date":"2024-12-01","end_date":"2025-03-01","provider":"example_ring"}}`,
		`{"event_type":"labtest.result.critical","data":{"sample_id":"S-1"}}`,
		`{"event_type":"daily.data.body.created","data":"see the API"}`,
	} {
		event, err := webhooks.Parse([]byte(body))
		if err != nil {
			fmt.Println(err) // not JSON: nobody can read this
			continue
		}
		switch data := event.Data.(type) {
		case *webhooks.Samples:
			for _, s := range data.Data {
				fmt.Println(event.Type.Resource(), s.Timestamp.Format(time.DateTime), s.Value, s.Unit, "from", data.Source.Provider)
			}
		case *webhooks.Activity:
			fmt.Println("activity on", data.CalendarDate, *data.Steps, "steps")
		case *webhooks.Summary:
			var sleep struct{ Total int }
			if err := data.Decode(&sleep); err != nil {
				fmt.Println(err)
			}
			fmt.Println(event.Type.Resource(), "on", data.CalendarDate, sleep.Total, "seconds")
		case *webhooks.WorkoutStreamNotice:
			fmt.Println(data.Sport.Name, "can be read: workout", data.WorkoutID)
		case *webhooks.ProviderConnection:
			fmt.Println("connected", data.Provider.Name)
		case *webhooks.LabOrder:
			fmt.Println("order", data.ID, "is", data.CurrentStatus())
		case *webhooks.HistoricalPull:
			fmt.Println("all", event.Type.Resource(), "from", data.Provider, "since", data.StartDate.Format(time.DateOnly))
		case *webhooks.Unknown:
			fmt.Println(event.Type, "is not for us:", data.Err)
		}
	}
	// Output:
	// glucose 2025-03-01 12:00:00 5.4 mmol/L from example_sensor
	// activity on 2025-03-01 10482 steps
	// sleep on 2025-03-01 26100 seconds
	// Running can be read: workout 77d0a3b2-5c1e-4e0f-8a66-91f2d4c8b0a5
	// connected Example Ring
	// order c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5 is completed.testkit.completed
	// all sleep from example_ring since 2024-12-01
	// labtest.result.critical is not for us: <nil>
	// daily.data.body.created is not for us: webhooks: the data is not an object
}

func ExampleParseEnvelope() {
	body := []byte(`{"event_type":"daily.data.steps.updated","data":{"data":[{"value":1}]},"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"}`)
	envelope, err := webhooks.ParseEnvelope(body)
	if err != nil {
		panic(err)
	}
	fmt.Println(envelope.Type, "goes to partition", envelope.UserID[15]%8)
	// Output: daily.data.steps.updated goes to partition 4
}

// Events that come through an event hub have the bodies of webhooks, compressed if they are large. A few bytes can become
// gigabytes, so what is read is capped.
func ExampleParse_eventHub() {
	const most = 16 << 20
	read := func(body []byte, contentEncoding string) (*webhooks.Event, error) {
		if contentEncoding == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			if body, err = io.ReadAll(io.LimitReader(z, most+1)); err != nil {
				return nil, err
			}
		}
		if len(body) > most {
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
		panic(err)
	}
	fmt.Println(event.Type, event.Data.(*webhooks.Samples).Data[0].Value)
	// Output: daily.data.steps.created 237
}

func ExampleLatest() {
	parse := func(receivedAt time.Time, steps string) webhooks.Delivery {
		event, err := webhooks.Parse([]byte(`{"event_type":"daily.data.steps.updated","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{` +
			`"source":{"slug":"example_watch"},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"count","value":` + steps + `}]}}`))
		if err != nil {
			panic(err)
		}
		event.ReceivedAt = receivedAt
		return webhooks.Delivery{Event: event}
	}
	noon := time.Date(2025, 3, 1, 12, 5, 0, 0, time.UTC)

	var latest webhooks.Latest
	for _, delivery := range []webhooks.Delivery{
		parse(noon.Add(time.Minute), "237"), // a bucket that is still being filled
		parse(noon.Add(2*time.Minute), "301"),
		parse(noon, "120"), // received first, and applied last by a slow worker
	} {
		changes, err := latest.Apply(delivery)
		if err != nil {
			fmt.Println(err)
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

func ExampleEvent_Keys() {
	event, err := webhooks.Parse([]byte(`{"event_type":"daily.data.heartrate.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{` +
		`"source":{"provider":"example_ring","type":"ring"},"data":[{"timestamp":"2025-03-01T13:00:00+01:00","unit":"bpm","value":63}]}}`))
	if err != nil {
		panic(err)
	}
	keys, err := event.Keys()
	if err != nil {
		panic(err)
	}
	fmt.Printf("%+v\n", keys.Samples[0])
	// Output: {UserID:0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4 Resource:heartrate Provider:example_ring SourceType:ring UnixNano:1740830400000000000}
}
