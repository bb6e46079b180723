// What a handler writes to the log, in words that name what to change.

package webhooks

import (
	"log/slog"

	"github.com/labhealth/labhealth-go/internal/warn"
)

// What a handler without [WithLogger] writes to the log, in words that name what to change. A
// method other than POST and an incomplete body are not written: anyone can send them.
var (
	// ofRequests is about requests and calls that do not return.
	ofRequests = map[Reason]string{
		ReasonHeaders:    "webhooks: a request has no valid signature headers: does a proxy remove or change them?",
		ReasonTimestamp:  "webhooks: the timestamp of a delivery is too old or too new: check the clock of this machine",
		ReasonSignature:  "webhooks: a delivery is not signed with a secret of the Verifier: use the secret of this endpoint, and both during a rotation; nothing may read or change the body before",
		ReasonTooLarge:   "webhooks: a delivery is larger than WithBodyLimit allows",
		ReasonPanicked:   "webhooks: the function or the Deduplicator panicked",
		ReasonDeadline:   "webhooks: the function did not return before the deadline: is what it waits for, such as a database, locked or overloaded? See NewRawHandler and WithDeadline",
		ReasonOverloaded: "webhooks: too many bodies are in flight: see WithInFlightLimit",
	}
	// ofErrors is about errors of functions.
	ofErrors = map[Reason]string{
		ReasonFailed:       "webhooks: the function returned an error: the sender delivers the event again, and disables an endpoint that fails for days",
		ReasonPermanent:    "webhooks: the function returned an error that matches ErrPermanent: keep such bodies with WithDeadLetter",
		ReasonUnreadable:   "webhooks: a delivery is no event and was rejected: keep such bodies with WithDeadLetter",
		ReasonDeduplicator: "webhooks: the Deduplicator returned an error: deliveries are rejected until it works",
		ReasonNotMarked:    "webhooks: the Deduplicator did not store an ID: its event may be processed again",
	}
)

// resolvable are the problems that are over when a delivery was processed.
var resolvable = []string{
	ofRequests[ReasonHeaders], ofRequests[ReasonTimestamp], ofRequests[ReasonSignature], ofRequests[ReasonPanicked], ofRequests[ReasonDeadline],
	ofRequests[ReasonOverloaded], ofErrors[ReasonFailed], ofErrors[ReasonDeduplicator], ofErrors[ReasonNotMarked],
}

// warnOfRequest writes a warning about a delivery that was not processed, or that one was.
func (h *Handler) warnOfRequest(result DeliveryResult) {
	message, failed := ofRequests[result.Reason]
	switch {
	case h.warnings == nil:
	case failed && result.Panic != "":
		h.warnings.Warn(h.logger, message, slog.String("panic", result.Panic))
	case failed:
		h.warnings.Warn(h.logger, message)
	case result.Reason == ReasonApplied || result.Reason == ReasonStored:
		h.warnings.Resolved(h.logger, resolvable...)
	}
}

// warnOfError writes a warning about an error of a function.
func (h *Handler) warnOfError(reason Reason, err error) {
	if h.warnings != nil {
		h.warnings.Warn(h.logger, ofErrors[reason], warn.Cause(err))
	}
}
