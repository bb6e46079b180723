package webhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Event is one message of the service: an envelope and what it carries.
//
// It holds health data: printed or logged, it shows its type and the ids of the service only. Encoding it to JSON is complete
// and gives every member that came, with the changes that the program made on top; ReceivedAt is not part of it.
type Event struct {
	Type   EventType // what happened; empty if the type is missing, as in the sender's own operational messages
	TeamID uuid.UUID // the team; zero if it is missing or malformed
	// UserID is the service's id of the user. It is that of the envelope, else that in the data; zero if neither can be read.
	UserID uuid.UUID
	// ClientUserID is the application's own reference for the user: any text, empty if it did not come.
	ClientUserID string
	// ReceivedAt is when the event came: [Parse] sets it to the time it is called. It decides which version of a datum is the
	// newest, so a program that parses later than it receives should set it to the time of receipt.
	ReceivedAt time.Time
	// Data is what the event carries. It is never nil after [Parse].
	Data Payload

	labhealth.RawObject
}

// Payload is the data of an event: a [*Samples], [*Activity], [*Summary], [*WorkoutStreamNotice], [*ProviderConnection],
// [*LabOrder], [*HistoricalPull] or [*Unknown].
//
//sumtype:decl
type Payload interface {
	json.Marshaler
	// RawJSON returns a copy of the data as it came, nil if it did not come from outside.
	RawJSON() json.RawMessage
	// Malformed names the members whose value does not fit, with paths that begin at the data. See [labhealth.RawObject].
	Malformed() []labhealth.Malformed

	isPayload()
}

func (*Samples) isPayload()             {}
func (*Activity) isPayload()            {}
func (*Summary) isPayload()             {}
func (*WorkoutStreamNotice) isPayload() {}
func (*ProviderConnection) isPayload()  {}
func (*LabOrder) isPayload()            {}
func (*HistoricalPull) isPayload()      {}
func (*Unknown) isPayload()             {}

// Envelope is what [ParseEnvelope] reads of an event. It redacts the application's own reference for the user when printed.
type Envelope struct {
	Type         EventType // see [Event]
	TeamID       uuid.UUID // see [Event]
	UserID       uuid.UUID // see [Event]
	ClientUserID string    // see [Event]
}

// ParseError is a body that is not an event: no JSON object. It never quotes the body.
type ParseError struct {
	Offset int    // bytes before the place where the body stops being a JSON object
	Reason string // a fixed phrase
}

// Error says where the body stops being an event, and why.
func (e *ParseError) Error() string {
	return "webhooks: not an event: at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// Parse reads an event. It copies what it keeps: the body may be used again.
//
// It fails, with a *[ParseError], only if the body is not a JSON object in valid UTF-8, nested at most 1,000 deep. An event of
// an unknown type, and one whose data is not what its type promises, is read with [*Unknown] data: a receiver that refuses
// what it does not know is switched off by the sender.
//
// Parse does not check who sent the body.
func Parse(body []byte) (*Event, error) { return parse(bytes.Clone(body)) }

// parsed is what reading a batch of samples needs, in one piece of memory.
type parsed struct {
	event   Event
	doc     jsonread.Room
	samples Samples
	one     [1]Sample
}

// parse keeps text.
func parse(text []byte) (*Event, error) {
	if !jsonread.Fits(text) {
		return nil, &ParseError{Reason: "it is too large"}
	}
	all := &parsed{}
	p := parser{scanner: scanner{text: text}, doc: all.doc.Keep(text), samples: &all.samples, one: all.one[:]}
	if !p.event() {
		if err := p.generalEnvelope(); err != nil {
			return nil, err
		}
	}
	e := &all.event
	e.Type, e.TeamID, e.UserID, e.ClientUserID = p.Type, p.TeamID, p.UserID, p.ClientUserID
	e.ReceivedAt = time.Now()
	e.RawObject = labhealth.RawObject(p.doc.Ref(p.lo, p.hi, 0))
	if p.isSamples {
		e.Data = &all.samples
	} else {
		e.Data = p.payload()
	}
	switch {
	case e.UserID != uuid.Nil:
	case p.isSamples:
		e.UserID = all.samples.UserID
	default:
		e.UserID = p.userInData()
	}
	return e, nil
}

// ParseEnvelope reads the type and the ids of an event, to route it, and steps over its data without decoding it. It accepts and
// refuses the same bodies as [Parse].
func ParseEnvelope(body []byte) (Envelope, error) {
	if !jsonread.Fits(body) {
		return Envelope{}, &ParseError{Reason: "it is too large"}
	}
	p := parser{scanner: scanner{text: body}}
	if !p.event() {
		p.doc = jsonread.NewDocument(body)
		if err := p.generalEnvelope(); err != nil {
			return Envelope{}, err
		}
	}
	if p.UserID == uuid.Nil {
		p.UserID = p.userInData()
	}
	return p.Envelope, nil
}

// envelopeForm is an event as jsonread reads it.
type envelopeForm[D any] struct {
	Type         EventType `json:"event_type,omitzero"`
	Data         D         `json:"data,omitzero"`
	TeamID       uuid.UUID `json:"team_id,omitzero"`
	UserID       uuid.UUID `json:"user_id,omitzero"`
	ClientUserID string    `json:"client_user_id,omitzero"`

	labhealth.RawObject `json:"-"`
}

// anyJSON is a value of which nothing but its place is read.
type anyJSON struct {
	labhealth.RawObject `json:"-"`
}

// generalEnvelope reads an envelope that the parser's own scanner did not.
func (p *parser) generalEnvelope() error {
	if err := p.doc.Valid(); err != nil {
		var e *jsonread.SyntaxError
		errors.As(err, &e)
		return &ParseError{Offset: e.Offset, Reason: e.Reason}
	}
	p.lo, p.hi = trim(p.text)
	if p.text[p.lo] != '{' {
		return &ParseError{Offset: p.lo, Reason: "it is not an object"}
	}
	var f envelopeForm[anyJSON]
	if err := p.doc.Read(0, len(p.text), &f, 0); err != nil {
		return &ParseError{Reason: "it is not an object"} // cannot be: it is valid
	}
	p.Envelope = Envelope{f.Type, f.TeamID, f.UserID, f.ClientUserID}
	p.dataLo, p.dataHi, _ = jsonread.Ref(f.Data.RawObject).Span()
	p.isSamples, p.tried = false, false
	if p.samples != nil { // the data may be read again, or other data of that name
		*p.samples = Samples{}
		clear(p.one)
	}
	return nil
}

func trim(text []byte) (lo, hi int) {
	rest := bytes.TrimLeft(text, " \n\t\r")
	lo = len(text) - len(rest)
	return lo, lo + len(bytes.TrimRight(rest, " \n\t\r"))
}

// member returns the value of a member of the data, the last one of that name, nil if there is none.
func (p *parser) member(name string) (value []byte) {
	s := scanner{text: p.text[p.dataLo:p.dataHi]}
	if s.at() != '{' {
		return nil
	}
	for more := s.open('}'); more; {
		key, ok := s.key()
		if !ok { // a name with escapes
			value = nil
			for key, v := range jsonread.Members(s.text) {
				if string(key) == name {
					value = v
				}
			}
			return value
		}
		start := s.i
		s.skip(0)
		if string(key) == name {
			value = s.text[start:s.i]
		}
		more, _ = s.more('}')
	}
	return value
}

// userInData reads the user id in the data of an event that names none beside it.
func (p *parser) userInData() uuid.UUID {
	if s, ok := jsonread.String(p.member("user_id")); ok && len(s) == 36 {
		if id, err := uuid.Parse(s); err == nil {
			return id
		}
	}
	return uuid.Nil
}

// budget is what the typed values of a text may take in memory beyond the text. What the service sends stays far below.
func budget(text int) int { return text/2 + 1<<16 }

var (
	errNoObject = errors.New("webhooks: the data is not an object")
	errNoOrder  = errors.New("webhooks: the data is an order without a readable id")
	errAbsurd   = errors.New("webhooks: the data would take far more memory than its text")
)

// payload reads the data, if it was not read on the way.
func (p *parser) payload() Payload {
	lo, hi := p.dataLo, p.dataHi
	kind := kindOf(p.Type)
	if kind == unknownKind {
		return p.unknown(nil)
	}
	if hi == lo || p.text[lo] != '{' {
		return p.unknown(errNoObject)
	}
	if kind.mayBeSamples() {
		if p.i = lo; !p.tried && p.batch(p.samples) {
			return p.samples
		}
		if list := p.member("data"); list != nil && list[0] == '[' {
			return p.generalSamples()
		}
	}
	switch kind {
	case activityKind:
		return read(p, &Activity{})
	case streamKind:
		return read(p, &WorkoutStreamNotice{})
	case connectionKind:
		return read(p, &ProviderConnection{})
	case historicalKind:
		return read(p, &HistoricalPull{})
	case orderKind:
		return p.order()
	default:
		return read(p, &Summary{})
	}
}

// read reads the data into a struct.
func read[P Payload](p *parser, v P) Payload {
	if p.doc.Read(p.dataLo, p.dataHi, v, budget(p.dataHi-p.dataLo), "data") != nil {
		return p.unknown(errAbsurd) // the text is known to be valid
	}
	return v
}

func (p *parser) order() Payload {
	o := &LabOrder{}
	switch err := p.doc.Read(p.dataLo, p.dataHi, &o.Order, budget(p.dataHi-p.dataLo), "data"); {
	case err != nil:
		return p.unknown(errAbsurd)
	case o.ID == uuid.Nil:
		return p.unknown(errNoOrder)
	}
	return o
}

func (p *parser) unknown(err error) *Unknown {
	u := &Unknown{Err: err}
	if p.dataLo < p.dataHi {
		u.Raw = slices.Clone(p.text[p.dataLo:p.dataHi])
	}
	return u
}

// MarshalJSON writes every member that came, with the changes made since. See [labhealth.RawObject].
func (e Event) MarshalJSON() ([]byte, error) {
	var f envelopeForm[json.RawMessage]
	var was Event
	if ref := jsonread.Ref(e.RawObject); came(ref) {
		if err := ref.Again(&f); err != nil {
			return nil, err
		}
		was = Event{Type: f.Type, TeamID: f.TeamID, UserID: f.UserID, ClientUserID: f.ClientUserID}
		if was.UserID == uuid.Nil {
			p := parser{scanner: scanner{text: f.Data}, dataHi: len(f.Data)}
			was.UserID = p.userInData()
		}
	}
	put(&f.Type, was.Type, e.Type)
	put(&f.TeamID, was.TeamID, e.TeamID)
	put(&f.UserID, was.UserID, e.UserID)
	put(&f.ClientUserID, was.ClientUserID, e.ClientUserID)
	data := []byte("null")
	if v := reflect.ValueOf(e.Data); v.IsValid() && !v.IsNil() {
		var err error
		if data, err = e.Data.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	if len(f.Data) > 0 || string(data) != "null" {
		f.Data = data
	}
	return jsonread.Marshal(&f)
}

// UnmarshalJSON reads an event as [Parse] does.
func (e *Event) UnmarshalJSON(b []byte) error {
	p, err := Parse(b)
	if err == nil {
		*e = *p
	}
	return err
}

// put sets what a program changed.
func put[T comparable](p *T, was, now T) {
	if now != was {
		*p = now
	}
}

func came(r jsonread.Ref) bool {
	_, _, ok := r.Span()
	return ok
}
