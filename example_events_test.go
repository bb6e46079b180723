package labhealth_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// webhookSecret is an invented secret. A program reads it from where it stores secrets.
const webhookSecret = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9"

// Receive signed events with an http.Handler.
func Example_receiveEvents() {
	_, srv, userID := exampleService()
	defer srv.Close()
	mux := http.NewServeMux()

	verifier, err := webhooks.NewVerifier(webhookSecret)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhooks.NewHandler(verifier, func(ctx context.Context, event *webhooks.Event) error {
		switch data := event.Data.(type) {
		case *webhooks.LabOrder:
			fmt.Println("order", data.ID, "is", data.CurrentStatus())
		case *webhooks.Samples:
			fmt.Println(len(data.Data), "samples of", event.Type.Resource(), "from", data.Source.ProviderSlug())
		}
		return event.Err() // after an error the service delivers the event again
	})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("/webhooks", handler)

	application := httptest.NewServer(mux)
	defer application.Close()
	if err := srv.DeliverTo(application.URL+"/webhooks", labhealthtest.WithSigningSecrets(webhookSecret)); err != nil {
		log.Fatal(err)
	}
	if _, err := srv.AddOrder(userID, srv.LabTests.Testkit); err != nil {
		log.Fatal(err)
	}
	if err := srv.Flush(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// order e125750a-a608-45e2-8ffc-2d1212f4a465 is received.testkit.ordered
}

// Parse events and keep the latest version of every sample in memory.
func Example_latestSamples() {
	body := []byte(`{"event_type":"daily.data.glucose.updated","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{` +
		`"source":{"slug":"example_sensor"},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":5.4}]}}`)
	var latest webhooks.Latest // safe for concurrent use

	event, err := webhooks.Parse(body)
	if err != nil {
		log.Fatal(err) // body is not a JSON object
	}
	changes, err := latest.Apply(webhooks.Delivery{Event: event})
	if err != nil {
		log.Fatal(err) // such as webhooks.ErrUnreadable: the rest of the event is stored
	}
	fmt.Println("added:", changes.Added, "updated:", changes.Updated)
	for key, sample := range latest.Samples() {
		fmt.Println(key.Resource, key.Provider, sample.Timestamp.Format(time.DateTime), sample.Value, sample.Unit)
	}
	// Output:
	// added: 1 updated: 0
	// glucose example_sensor 2025-03-01 12:00:00 5.4 mmol/L
}

// Fetch the stream of a workout. The event only announces it, because a stream is too large for an
// event.
func ExampleWorkoutsService_Stream() {
	client, srv, userID := exampleService()
	defer srv.Close()

	notices := make(chan *webhooks.WorkoutStreamNotice, 1)
	handler, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, event *webhooks.Event) error {
		if notice, ok := event.Data.(*webhooks.WorkoutStreamNotice); ok {
			notices <- notice
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	application := httptest.NewServer(handler)
	defer application.Close()
	if err := srv.DeliverTo(application.URL); err != nil {
		log.Fatal(err)
	}
	if _, err := srv.AddWorkout(userID, 1800); err != nil {
		log.Fatal(err)
	}

	notice := <-notices
	stream, err := client.Workouts.Stream(context.Background(), notice.WorkoutID)
	if err != nil {
		log.Fatal(err)
	}
	var sum, beats, missing int64
	for _, bpm := range stream.Heartrate {
		if bpm == nil {
			missing++
			continue
		}
		sum, beats = sum+*bpm, beats+1
	}
	fmt.Printf("%s: %d seconds, %d beats per minute, %d missing values\n", notice.Sport.Name, len(stream.Time), sum/beats, missing)
	// Output:
	// Cycling: 1800 seconds, 130 beats per minute, 180 missing values
}
