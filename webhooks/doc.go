// Package webhooks receives and reads the events that the service sends to an application.
//
//	verifier, err := webhooks.NewVerifier(secret) // see Webhooks.Create and Secret of package management
//	…
//	handler, err := webhooks.NewHandler(verifier, func(ctx context.Context, event *webhooks.Event) error {
//		switch data := event.Data.(type) {
//		case *webhooks.LabOrder: // an order whose status changed
//		case *webhooks.Samples: // a batch of measured values
//		case *webhooks.Sleep: // a night or a nap
//		default: // ignore other events
//		}
//		return nil // an error makes the sender try again
//	})
//	…
//	http.Handle("/webhooks", handler)
//
// # Receiving
//
// A delivery is a request with an event. Its sender is the service. A [Handler] verifies the
// signature, parses the body, calls your function, and responds as the sender expects.
// [NewRawHandler] returns one that stores deliveries first, to be processed later. Your own
// receiver can use a [Verifier] alone. Events that arrive through a broker, such as an Azure event
// hub, have the same bodies, possibly compressed: see the example of [Parse].
//
// # Delivery
//
// The sender waits 15 s for a response. A 2xx acknowledges the delivery; everything else is a
// failure, redirects included. The sender makes up to eight attempts: at once, and 5 s, 5 min, 30
// min, 2 h, 5 h, 10 h and 10 h after the one before, 28 hours in all. All attempts have the same
// ID. The sender disables a receiver that fails for five days. Events arrive at least once and in
// any order. Source: public API reference; for the ID, the Standard Webhooks specification. To skip
// repeated deliveries, a [Handler] stores IDs for 72 hours.
//
// # Reading
//
// [Parse] decodes a body into an [Event], whose Data has a Go type for each documented type of
// event: see [Payload]. [EventTypes] lists the types of events: those of the catalog in the public
// API reference, and older ones. If the type is unknown, or the data does not match it, Data is an
// *[Unknown] with the raw JSON. Nothing is lost: RawJSON returns all received fields, including
// those that the payload type does not have. Encoding an event as JSON writes them again, with your
// changes.
//
// A malformed value, such as an invalid date, leaves its field zero, and Malformed lists the field.
// [Event.Err] returns an error for malformed values and for data that does not match the type. If
// your function returns that error, the handler passes the body to the dead-letter function (see
// [WithDeadLetter]). [ParseEnvelope] decodes only the type and the IDs, for routing.
//
// # Last write wins
//
// Wearable data consists of summaries, such as of a night, and samples, which are measured values.
// Each arrives again and again, in different versions and in any order. All versions of a summary
// or sample have the same key: see [Event.Keys]. [Latest] keeps the latest version of each in
// memory, and package [github.com/labhealth/labhealth-go/webhooks/sqlstore] keeps it in a database.
//
// # Lost events
//
// What you did not receive can be read from the API. [ReadAll] reads the wearable data of a user
// and returns it as events. Methods of [labhealth.Client] read the rest:
//
//	Lost event                   How to read it back
//	daily.data.*                 ReadAll, or ReadSummaries and ReadSamples for one resource
//	daily.data.workout_stream.*  Workouts.Stream with the ID of each workout
//	historical.data.*            Users.HistoricalPulls
//	provider.connection.*        Users.Get, Users.ConnectedProviders with states and errors
//	provider.device.*            Users.Devices
//	labtest.order.*              Orders.List with UpdatedStartDate, or Orders.ResendEvents
//	labtest.appointment.*        Appointments.Get for each order
//	labtest.result.critical      Orders.Results for each order, with interpretations
//	labtest.match_review.*       UnmatchedResults.List, All
//	lab_report.parsing_job.*     LabReports.Get for each job
//	continuous_query.*           Client.Do; see the public API reference
//
// # Redaction
//
// Events hold health data. Printed or logged, they show only their type and the service's IDs. The
// package's errors never quote a body.
package webhooks
