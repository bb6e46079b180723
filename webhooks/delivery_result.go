// DeliveryResult and Reason: the status code of a response, and why.

package webhooks

import "time"

// DeliveryResult reports how a delivery was processed. It contains no error message, and no part of
// the event except its type.
type DeliveryResult struct {
	DeliveryID string        // empty if missing or malformed; not verified if the status is 401
	Type       EventType     // empty if no event was parsed
	StatusCode int           // of the response; 0 if Late
	Reason     Reason        // for the status code
	Duplicate  bool          // another delivery with this ID was or is being processed
	Late       bool          // a second report: the call succeeded or panicked after its deadline
	Panic      string        // after a panic: the type of the value, and the stack
	ReceivedAt time.Time     // when the request arrived
	Duration   time.Duration // from ReceivedAt to the response, or to the end of the late call
}

// Reason explains the status code of a response. There are no values other than the constants, so
// it is suitable as a metrics label.
type Reason string

// Reasons, by status code.
const (
	ReasonApplied      Reason = "applied"       // 204: your function processed the event
	ReasonStored       Reason = "stored"        // 204: the store function stored the delivery
	ReasonDuplicate    Reason = "duplicate"     // 204: the delivery was processed before
	ReasonDeadLettered Reason = "dead-lettered" // 204: the dead-letter function accepted the body
	ReasonNotMarked    Reason = "not marked"    // 204: processed, but the ID was not stored
	ReasonIncomplete   Reason = "incomplete"    // 400: the body is incomplete
	ReasonUnreadable   Reason = "unreadable"    // 400: not an event, and no dead-letter function
	ReasonHeaders      Reason = "headers"       // 401: see [ErrHeaders]
	ReasonTimestamp    Reason = "timestamp"     // 401: see [ErrTimestamp]
	ReasonSignature    Reason = "signature"     // 401: see [ErrSignature]
	ReasonMethod       Reason = "method"        // 405: the method is not POST
	ReasonTooLarge     Reason = "too large"     // 413: the body exceeds the limit
	ReasonFailed       Reason = "failed"        // 503: the called function returned an error
	ReasonPermanent    Reason = "permanent"     // 503: [ErrPermanent], and no dead-letter function
	ReasonPanicked     Reason = "panicked"      // 503: the called function, or the deduplicator, panicked
	ReasonDeadline     Reason = "deadline"      // 503: the called function timed out
	ReasonOverloaded   Reason = "overloaded"    // 503: the body exceeds [WithInFlightLimit]
	ReasonDeduplicator Reason = "deduplicator"  // 503: the deduplicator failed
	ReasonShutdown     Reason = "shutdown"      // 503: the handler is shutting down
)
