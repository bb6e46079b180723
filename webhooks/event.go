// Event, Parse, and the interface of all payloads.

package webhooks

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Event has an envelope, which is the type and the IDs, and data.
//
// It holds health data: printed or logged, it shows only its type and the service's IDs. Encoding
// it as JSON writes every received field, with the program's changes applied, but not ReceivedAt.
type Event struct {
	// Type is empty if it is missing, as in the sender's own operational messages and in an order
	// without an envelope: see [LabOrder].
	Type   EventType
	TeamID uuid.UUID // the team; zero if it is missing or malformed
	// UserID is the service's ID of the user: from the envelope or, if that has none, from the
	// data. It is zero if neither can be read.
	UserID uuid.UUID
	// ClientUserID is your own reference for the user: any string, empty if it is missing.
	ClientUserID string
	// ReceivedAt is the time of receipt. [Parse] sets it to the current time. It determines which
	// version of a summary or sample is the latest, so a program that stores deliveries and parses
	// them later should set it.
	ReceivedAt time.Time
	// Data is never nil after [Parse].
	Data Payload

	labhealth.RawObject
}

// Payload is the data of an event. Its types are:
//
//   - summaries of wearable data: [*Activity], [*Sleep], [*SleepCycle], [*Workout], [*Body],
//     [*Profile], [*Meal], [*MenstrualCycle], [*Electrocardiogram], and [*Summary] for those of a
//     resource that this package has no type for
//   - other wearable data: [*Samples], [*WorkoutStreamNotice], [*HistoricalPull]
//   - providers: [*ProviderConnection], [*ConnectionError], [*ProviderDevice]
//   - lab tests: [*LabOrder], [*LabAppointment], [*CriticalResult], [*MatchReview], [*ParsingJob]
//   - continuous queries: [*ContinuousQueryChanges]
//   - everything else: [*Unknown]
//
//sumtype:decl
type Payload interface {
	json.Marshaler
	// RawJSON returns a copy of the received data, or nil if the program created the payload.
	RawJSON() json.RawMessage
	// Malformed lists the malformed fields, with paths relative to the data. See
	// [labhealth.RawObject].
	Malformed() []labhealth.Malformed

	isPayload()
}

func (*Samples) isPayload()                {}
func (*Activity) isPayload()               {}
func (*Sleep) isPayload()                  {}
func (*SleepCycle) isPayload()             {}
func (*Workout) isPayload()                {}
func (*Body) isPayload()                   {}
func (*Profile) isPayload()                {}
func (*Meal) isPayload()                   {}
func (*MenstrualCycle) isPayload()         {}
func (*Electrocardiogram) isPayload()      {}
func (*Summary) isPayload()                {}
func (*WorkoutStreamNotice) isPayload()    {}
func (*HistoricalPull) isPayload()         {}
func (*ProviderConnection) isPayload()     {}
func (*ConnectionError) isPayload()        {}
func (*ProviderDevice) isPayload()         {}
func (*LabOrder) isPayload()               {}
func (*LabAppointment) isPayload()         {}
func (*CriticalResult) isPayload()         {}
func (*MatchReview) isPayload()            {}
func (*ParsingJob) isPayload()             {}
func (*ContinuousQueryChanges) isPayload() {}
func (*Unknown) isPayload()                {}

// Envelope is the part of an event that [ParseEnvelope] reads. When printed, it redacts your own
// reference for the user.
type Envelope struct {
	Type         EventType // see [Event]
	TeamID       uuid.UUID // see [Event]
	UserID       uuid.UUID // see [Event]
	ClientUserID string    // see [Event]
}

// ParseError reports a body that is not an event, because it is not a JSON object. It never quotes
// the body.
type ParseError struct {
	Offset int    // bytes before the error
	Reason string // a fixed phrase
}

// Error returns the offset and the reason.
func (e *ParseError) Error() string {
	if e == nil {
		e = &ParseError{}
	}
	return "webhooks: not an event: at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// Parse parses an event. It copies what it keeps: the caller may reuse the body. Keeping a string
// of an event of up to 16 KiB keeps that whole copy in memory, unless you [strings.Clone] it.
//
// The body must be a JSON object in valid UTF-8, with at most 1,000 levels of nesting; otherwise
// the error is a *[ParseError]. There is no other error. A byte order mark before the object is
// skipped, and is not part of the raw JSON of the event. An unknown type, or data that does not
// match the type, gives an [*Unknown] as the data and no error, because the sender disables
// receivers that reject events.
//
// Parse does not verify who sent the body.
func Parse(body []byte) (*Event, error) { return parse(bytes.Clone(body)) }

// parse is [Parse] for a body that it keeps.
func parse(body []byte) (*Event, error) {
	memory := &eventMemory{}
	body, mark := cutMark(body)
	p := &parser{FastScanner: jsonread.FastScanner{Data: body}, memory: memory, document: memory.document.Reset(body), mark: mark}
	p.Share()
	if err := p.parseEnvelope(); err != nil {
		return nil, err
	}
	e := &memory.event
	e.Type, e.TeamID, e.UserID, e.ClientUserID = p.Type, p.TeamID, p.UserID, p.ClientUserID
	e.ReceivedAt = time.Now()
	e.RawObject = labhealth.RawObject(p.document.Ref(p.event))
	e.Data = p.payload()
	return e, nil
}

// ParseEnvelope parses the type and the IDs of an event, for routing, and skips its data. It
// returns an error for the same bodies as [Parse].
func ParseEnvelope(body []byte) (Envelope, error) {
	body, mark := cutMark(body)
	p := &parser{FastScanner: jsonread.FastScanner{Data: body}, mark: mark}
	if err := p.parseEnvelope(); err != nil {
		return Envelope{}, err
	}
	return p.Envelope, nil
}

// MarshalJSON writes every received field, with the program's changes applied. See
// [labhealth.RawObject].
func (e Event) MarshalJSON() ([]byte, error) {
	if out, ok := e.rewrite(); ok {
		return out, nil
	}
	return e.encodeForm(Payload.MarshalJSON)
}

// encodeForm encodes the event field by field, and its data with encodeData.
func (e *Event) encodeForm(encodeData func(Payload) ([]byte, error)) ([]byte, error) {
	var f envelopeForm[json.RawMessage]
	var original Envelope
	if ref := jsonread.Ref(e.RawObject); !ref.IsZero() {
		if err := ref.Original(&f); err != nil {
			return nil, err
		}
		original = Envelope{f.Type, f.TeamID, f.UserID, f.ClientUserID}
		if original.UserID == uuid.Nil {
			original.UserID = userInData(f.Data)
		}
		if order, ok := e.Data.(*LabOrder); ok && order != nil && ref.Same(jsonread.Ref(order.RawObject)) {
			if original == (Envelope{e.Type, e.TeamID, e.UserID, e.ClientUserID}) {
				return encodeData(order)
			}
			f, original = envelopeForm[json.RawMessage]{}, Envelope{} // the program makes an envelope
		}
	}
	setChanged(&f.Type, original.Type, e.Type)
	setChanged(&f.TeamID, original.TeamID, e.TeamID)
	setChanged(&f.UserID, original.UserID, e.UserID)
	setChanged(&f.ClientUserID, original.ClientUserID, e.ClientUserID)
	data := []byte("null")
	if v := reflect.ValueOf(e.Data); v.IsValid() && !v.IsNil() {
		var err error
		if data, err = encodeData(e.Data); err != nil {
			return nil, err
		}
	}
	if len(f.Data) > 0 || string(data) != "null" {
		f.Data = data
	}
	return jsonread.Marshal(&f)
}

// setChanged sets a field to the value that the program gave it, unless that is the original one.
func setChanged[T comparable](field *T, original, now T) {
	if now != original {
		*field = now
	}
}

// UnmarshalJSON parses an event as [Parse] does.
func (e *Event) UnmarshalJSON(b []byte) error {
	p, err := Parse(b)
	switch {
	case err != nil:
		return err
	case e == nil:
		return errNoEvent
	}
	*e = *p
	return nil
}
