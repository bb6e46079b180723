// Package webhooks receives and reads the events that the service sends to an application.
//
//	verifier, err := webhooks.NewVerifier(secret)
//	…
//	handler, err := webhooks.NewHandler(verifier, func(ctx context.Context, event *webhooks.Event) error {
//		switch data := event.Data.(type) {
//		case *webhooks.LabOrder: // an order whose status changed
//		case *webhooks.Samples: // a batch of measured values
//		case *webhooks.Activity, *webhooks.Summary: // a day, a night, a workout
//		default: // not for us, and no reason to fail
//		}
//		return nil // an error makes the sender try again
//	})
//	…
//	http.Handle("/webhooks", handler)
//
// # Receiving
//
// A [Handler] checks who sent a delivery, parses it, calls the application once, and responds as
// the sender expects. [NewRawHandler] makes one that stores deliveries first and leaves the rest
// for later. A [Verifier] alone checks signatures for a receiver of another kind. Events that come
// through an event hub have the same bodies, which may be compressed: see the example of [Parse].
//
// # Reading
//
// [Parse] turns a body into an [Event] whose Data is one of a few payload types. Nothing is lost:
// an event of a type that is not known, or whose data is not what its type promises, is [*Unknown]
// with its raw bytes; fields that the payload type does not have are in RawJSON, and encoding an
// event to JSON writes all of them again, with the program's changes on top. Values that do not
// fit, such as a malformed date, leave their field zero and are named by Malformed. [Event.Err]
// reports whether there are any, or data of another shape than the type promises: return its error,
// and the handler keeps the body as a dead letter (see [WithDeadLetter]). [ParseEnvelope] reads the
// type and the IDs only, to route an event.
//
// # Last write wins
//
// The service delivers an event at least once and in any order, so the same summary or sample
// arrives again and again, in different versions. [Event.Keys] returns a [SummaryKey] or
// [SampleKey]s, which are equal for versions of the same thing. [Latest] keeps the latest version
// of each in memory, package [github.com/labhealth/labhealth-go/webhooks/sqlstore] in a database.
//
// # Redaction
//
// Events hold health data. Printed or logged, they show their type and the service's IDs only; the
// package's errors never quote a body.
package webhooks
