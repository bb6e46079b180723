package webhooks

import (
	"errors"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

var (
	// ErrPermanent marks errors that recur however often a delivery is sent. [ErrNoUser],
	// [ErrNoID], [ErrUnreadable] and *[ParseError] match it with [errors.Is], as does an
	// application's own error that wraps it. Such a delivery needs a new version of the program or
	// a manual repair, and is kept as a dead letter until then. See [WithDeadLetter].
	ErrPermanent = errors.New("webhooks: the delivery fails each time")
	// ErrUnreadable is returned for an event with data that cannot be read. The rest of the event
	// was applied.
	ErrUnreadable error = permanentError("webhooks: some of the data cannot be read")
)

// permanentError is an error that matches ErrPermanent.
type permanentError string

func (e permanentError) Error() string { return string(e) }

func (permanentError) Is(target error) bool { return target == ErrPermanent }

// Is reports whether target is [ErrPermanent].
func (e *ParseError) Is(target error) bool { return target == ErrPermanent }

// Err returns [ErrUnreadable] if some data of the event cannot be read: [*Unknown] data that is not
// what the event's type promises, a sample without a readable time, a malformed value in any field
// of the data (see [labhealth.RawObject]), or a missing type. It returns nil for an event whose
// type has no payload type in this package: that type is new, not wrong. [Latest.Apply] and package
// sqlstore call Err. A program that applies events itself returns the error after it has applied
// the rest.
func (e *Event) Err() error {
	switch data := e.Data.(type) {
	case nil:
		return nil
	case *Unknown:
		if data.Err != nil || e.Type == "" && !e.isOperational() {
			return ErrUnreadable
		}
	case *Samples:
		for i := range data.Data {
			if _, ok := data.Data[i].instant(); !ok {
				return ErrUnreadable
			}
		}
		return malformed(data)
	default:
		return malformed(data)
	}
	return nil
}

// isOperational reports whether an event without an event_type is a message of the sender about
// itself, which has a field type, or was not parsed but created by the program.
func (e *Event) isOperational() bool {
	ref := jsonread.Ref(e.RawObject)
	if ref.IsZero() {
		return true
	}
	for name, value := range jsonread.Fields(ref.Raw()) {
		if string(name) == "type" && value[0] == '"' {
			return true
		}
	}
	return false
}

// malformed returns [ErrUnreadable] if a value in the data does not fit its field.
func malformed(data Payload) error {
	if len(data.Malformed()) > 0 {
		return ErrUnreadable
	}
	return nil
}
