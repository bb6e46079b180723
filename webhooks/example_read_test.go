package webhooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log"
	"net/http/httptest"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// A receiver was down, and deliveries were lost. The application reads what the service has since
// then, and applies it like deliveries. New events can arrive meanwhile.
func ExampleReadSamples() {
	ctx := context.Background()
	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		log.Fatal(err)
	}

	var latest webhooks.Latest // or a sqlstore.Store
	handler, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, event *webhooks.Event) error {
		_, err := latest.Apply(webhooks.Delivery{Event: event})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	receiver := httptest.NewServer(handler)
	defer receiver.Close()
	if err := service.DeliverTo(receiver.URL); err != nil {
		log.Fatal(err)
	}

	user := service.AddUser("user-1")
	noon := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	gap := noon.Add(time.Hour)
	for _, err := range []error{
		service.AddSamples(user, "glucose", 12, labhealthtest.StartingAt(noon)),
		service.AddSamples(user, "glucose", 6, labhealthtest.StartingAt(gap), labhealthtest.Undelivered()),
		addSummary(service, user, "sleep", labhealthtest.StartingAt(gap), labhealthtest.Undelivered()),
		service.Flush(ctx),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}

	// Sources deliver late, so the data of the gap can be older than the gap.
	start := gap.AddDate(0, 0, -7)
	readBack := func(what string, events iter.Seq2[*webhooks.Event, error]) {
		for event, err := range events {
			if err != nil {
				log.Fatal(err) // start again: applying an event twice changes nothing
			}
			changes, err := latest.Apply(webhooks.Delivery{Event: event})
			if err != nil { // ErrUnreadable: part of the event is not stored
				fmt.Printf("%s: incomplete: %v\n", what, err)
			}
			fmt.Printf("%s: added %d, updated %d, already stored %d\n", what, changes.Added, changes.Updated, changes.Same)
		}
	}
	readBack("sleep", webhooks.ReadSummaries(ctx, client, user, labhealth.SummarySleep,
		labhealth.ListSummariesParams{StartDate: labhealth.DateOf(start)}))
	readBack("glucose", webhooks.ReadSamples(ctx, client, user, labhealth.SampleGlucose, labhealth.ListSamplesParams{StartDate: start}))
	// Output:
	// sleep: added 1, updated 0, already stored 0
	// glucose: added 6, updated 0, already stored 12
}

// A new receiver reads all wearable data of the last 90 days, of every resource and provider.
func ExampleReadAll() {
	ctx := context.Background()
	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		log.Fatal(err)
	}
	user := service.AddUser("user-1")
	yesterday := time.Now().AddDate(0, 0, -1)
	for _, err := range []error{
		service.Connect(user, "oura"),
		addSummary(service, user, "profile"),
		addSummary(service, user, "sleep", labhealthtest.StartingAt(yesterday)),
		service.AddSamples(user, "body_weight", 2, labhealthtest.StartingAt(yesterday)),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}

	var latest webhooks.Latest // or a sqlstore.Store
	incomplete := 0
	params := webhooks.ReadAllParams{StartDate: time.Now().AddDate(0, 0, -90)}
	for event, err := range webhooks.ReadAll(ctx, client, user, params) {
		if err != nil {
			log.Fatal(err) // start again: applying an event twice changes nothing
		}
		if _, err := latest.Apply(webhooks.Delivery{Event: event}); err != nil {
			incomplete++ // part of the event is not stored: keep event.RawJSON for a repair
			log.Print(event.Type, ": ", err)
		}
	}
	for key := range latest.Summaries() {
		fmt.Println(key.Resource)
	}
	for key := range latest.Samples() {
		fmt.Println(key.Resource, key.Provider)
	}
	fmt.Println(incomplete, "events are incomplete")
	// Unordered output:
	// profile
	// sleep
	// weight oura
	// weight oura
	// 0 events are incomplete
}

func addSummary(service *labhealthtest.Server, user uuid.UUID, resource string, opts ...labhealthtest.DataOption) error {
	_, err := service.AddSummary(user, resource, opts...)
	return err
}

// What client.Wearables returned as raw JSON, in the types of this package.
func ExampleDecodeSummary() {
	ctx := context.Background()
	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		log.Fatal(err)
	}
	user := service.AddUser("user-1")
	noon := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, err := range []error{
		addSummary(service, user, "sleep", labhealthtest.StartingAt(noon)),
		service.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(noon)),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}

	summaries, err := client.Wearables.Summaries(ctx, user, labhealth.SummarySleep, labhealth.ListSummariesParams{StartDate: labhealth.DateOf(noon)})
	if err != nil {
		log.Fatal(err)
	}
	for _, document := range summaries.Data {
		summary, err := webhooks.DecodeSummary("sleep", document)
		if err != nil {
			log.Fatal(err)
		}
		if sleep, ok := summary.(*webhooks.Sleep); ok { // otherwise *webhooks.Unknown
			fmt.Println("sleep of", sleep.CalendarDate)
		}
	}

	page, err := client.Wearables.Samples(ctx, user, labhealth.SampleGlucose, labhealth.ListSamplesParams{StartDate: noon})
	if err != nil {
		log.Fatal(err)
	}
	for provider, groups := range page.Groups {
		for _, group := range groups {
			var samples webhooks.Samples
			if err := json.Unmarshal(group, &samples); err != nil {
				log.Fatal(err)
			}
			for _, sample := range samples.Data {
				fmt.Println(provider, samples.Source.Type, sample.Unit, sample.Value > 0)
			}
		}
	}
	// Output:
	// sleep of 2025-03-01
	// oura ring mmol/L true
	// oura ring mmol/L true
	// oura ring mmol/L true
}
