// Package webhooks reads the events that the service sends to an application.
//
// [Parse] turns a body into an [Event] whose Data is one of a few payload types; a type switch over them is the whole of most
// receivers:
//
//	switch data := event.Data.(type) {
//	case *webhooks.Samples: // a batch of measured values
//	case *webhooks.Activity, *webhooks.Summary: // a day, a night, a workout
//	case *webhooks.LabOrder: // an order whose status changed
//	default: // not for us, and no reason to fail
//	}
//
// Nothing is lost: an event of a type that is not known, or whose data is not what its type promises, is [*Unknown] with the bytes
// that came; members without a field are in RawJSON, and encoding an event to JSON writes all of them again, with the program's
// changes on top. Values that do not fit, such as a malformed date, leave their field zero and are named by Malformed. [ParseEnvelope]
// reads the type and the ids only, to route an event.
//
// The service delivers an event at least once and in any order, so the same summary or sample arrives again and again, in
// different versions. Which of two is meant by the same thing say [SummaryKey] and [SampleKey], which [Event.Keys] returns;
// [Latest] keeps the newest version of each in memory.
//
// A [Verifier] checks that a delivery comes from the service, and a [Handler] does all of it over HTTP. Events that come through
// an event hub have the same bodies, which may be compressed: see the example of [Parse].
//
// Events hold health data. Printed or logged, they show their type and the ids of the service only; the package's errors never
// quote what came.
package webhooks
