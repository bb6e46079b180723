// Permanent errors, and the unreadable parts of an event.

package webhooks

import (
	"errors"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

var (
	// ErrPermanent marks errors that recur each time a delivery is processed. [ErrNoUser],
	// [ErrNoID], [ErrUnreadable] and *[ParseError] match it with [errors.Is], as does an error of
	// yours that wraps it. Such a delivery needs a new version of your program or a manual repair,
	// and is kept as a dead letter until then. See [WithDeadLetter].
	ErrPermanent = errors.New("webhooks: the delivery fails each time")
	// ErrUnreadable is returned for an event if part of its data cannot be decoded. The rest of the
	// event was applied.
	ErrUnreadable error = permanentError("webhooks: some of the data cannot be read")
)

// permanentError is an error that matches ErrPermanent.
type permanentError string

func (e permanentError) Error() string { return string(e) }

func (permanentError) Is(target error) bool { return target == ErrPermanent }

// Is reports whether target is [ErrPermanent].
func (e *ParseError) Is(target error) bool { return target == ErrPermanent }

// Err returns [ErrUnreadable] if part of the event cannot be decoded: the data does not match the
// type of the event and is an [*Unknown], a sample has no readable time, a field of the data is
// malformed (see [labhealth.RawObject]), or a received event has no type and is no order. It
// returns nil for an event whose type has no payload type in this package, because new types are
// expected, and for an event of wearable data that holds nothing. [Latest.Apply] and package
// sqlstore call Err. A program that applies events itself should return the error after it has
// applied the rest. For a nil event it returns another error.
func (e *Event) Err() error {
	if e == nil {
		return errNoEvent
	}
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

// malformed returns [ErrUnreadable] if a field of the data is malformed.
func malformed(data Payload) error {
	if len(data.Malformed()) > 0 {
		return ErrUnreadable
	}
	return nil
}
