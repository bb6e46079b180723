// The parser of events: the envelope, then the payload.

package webhooks

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// An event is parsed in two steps: its envelope, then the data as the payload that the event's type
// promises. A fast scanner reads what the service sends every day, including batches of samples,
// which it reads while it scans the envelope. What is unusual, such as a value of the wrong kind,
// is left to the decoder of package jsonread, which finds the same values in whatever the scanner
// reads.

// eventMemory is what parsing a batch of samples needs, in one allocation.
type eventMemory struct {
	event    Event
	document jsonread.Buffer
	samples  Samples
	sample   [1]Sample // for a batch of one
}

// parser parses one event.
type parser struct {
	jsonread.FastScanner
	Envelope
	payloadType *payloadType       // of the type of the envelope; nil if that is missing
	event, data jsonread.Span      // data is empty if the event has none, and may be known before
	document    *jsonread.Document // nil while only the envelope is read
	mark        int                // bytes of the body before Data: a byte order mark
	memory      *eventMemory       // nil if only the envelope is read
	batch       batchState
}

// batchState says whether the scanner has read the data as a batch of samples.
type batchState uint8

const (
	batchUntried batchState = iota
	batchFailed             // it is no batch, or not one for the scanner
	batchRead               // it is in memory.samples
)

// cutMark returns the body without a byte order mark, which some systems write before JSON, and the
// length of the mark.
func cutMark(body []byte) ([]byte, int) {
	rest := bytes.TrimPrefix(body, []byte("\ufeff"))
	return rest, len(body) - len(rest)
}

// parseEnvelope finds the event and its data, and reads the envelope.
func (p *parser) parseEnvelope() error {
	if uint64(len(p.Data)) > jsonread.MaxSize {
		return &ParseError{Reason: "it is too large"}
	}
	if !p.scanEnvelope() {
		if err := p.decodeEnvelope(); err != nil {
			return err
		}
	}
	if p.UserID == uuid.Nil {
		p.UserID = p.userInData()
	}
	return nil
}

// envelopeFields are the fields of an envelope, in their most frequent order.
var envelopeFields = jsonread.NewFieldNames("event_type", "data", "team_id", "user_id", "client_user_id")

// scanEnvelope reads an envelope and, if it is a batch of samples without anything unusual, its
// data.
func (p *parser) scanEnvelope() bool {
	p.Space()
	p.event.Lo = uint32(p.Pos)
	seen := 0
	n, ok := p.FirstField(envelopeFields)
	for ; ok && n >= 0; n, ok = p.NextField(envelopeFields, n+1) {
		if n < len(envelopeFields) && seen&(1<<n) != 0 {
			return false // duplicate names are left to the decoder
		}
		seen |= 1 << n
		if !p.scanField(n) {
			return false
		}
	}
	p.event.Hi = uint32(p.Pos)
	p.Space()
	return ok && p.Pos == len(p.Data)
}

// scanField reads the value of a field of the envelope.
func (p *parser) scanField(field int) (ok bool) {
	switch field {
	case 0: // event_type
		return p.scanType()
	case 1: // data
		p.data.Lo = uint32(p.Pos)
		ok = p.scanData()
		p.data.Hi = uint32(p.Pos)
		return ok
	case 2: // team_id
		return p.UUID(&p.TeamID)
	case 3: // user_id
		return p.UUID(&p.UserID)
	case 4: // client_user_id
		return scanString(&p.FastScanner, &p.ClientUserID)
	}
	return p.Skip(1)
}

// scanType reads null or a type without escapes.
func (p *parser) scanType() bool {
	if p.Peek() == 'n' {
		return p.Null()
	}
	content, escaped, ok := p.String()
	if !ok || escaped {
		return false
	}
	if content.Len() > 0 {
		p.setType(content.Of(p.Data))
	}
	return true
}

// setType sets the type, without a new string if it is one of the constants.
func (p *parser) setType(b []byte) {
	t, ok := known[string(b)]
	if !ok {
		t.EventType = EventType(b)
		t.payload = payloadTypeOf(t.EventType)
	}
	p.Type, p.payloadType = t.EventType, t.payload
}

// scanData reads the data if it is a batch of samples, and steps over it otherwise.
func (p *parser) scanData() bool {
	if p.data.Hi > p.data.Lo { // it is known
		p.Pos = int(p.data.Hi)
		return true
	}
	if p.memory != nil && p.payloadType != nil && p.payloadType.samples && p.scanBatch() {
		return true
	}
	return p.Skip(1)
}

// scanBatch tries to read the data that is next as a batch of samples.
func (p *parser) scanBatch() bool {
	// A pointer is initialized in place; a variable would be built elsewhere and copied.
	r := &batchReader{FastScanner: p.FastScanner, document: p.document, batch: &p.memory.samples, one: p.memory.sample[:0]}
	if !r.read() {
		p.batch = batchFailed
		return false
	}
	p.batch = batchRead
	p.Pos = r.Pos
	return true
}

// scanString reads a string or null.
func scanString(s *jsonread.FastScanner, to *string) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	content, escaped, ok := s.String()
	if ok {
		*to = s.Text(content, escaped)
	}
	return ok
}

// envelopeForm is how an event is decoded and encoded.
type envelopeForm[D any] struct {
	Type         EventType `json:"event_type,omitzero"`
	Data         D         `json:"data,omitzero"`
	TeamID       uuid.UUID `json:"team_id,omitzero"`
	UserID       uuid.UUID `json:"user_id,omitzero"`
	ClientUserID string    `json:"client_user_id,omitzero"`

	labhealth.RawObject `json:"-"`
}

// anyJSON is a value of which only the span is decoded.
type anyJSON struct {
	labhealth.RawObject `json:"-"`
}

// unlikeJSON returns why a body has no JSON at all, "" if it may have some.
func unlikeJSON(body []byte) string {
	switch {
	case len(body) == 0:
		return "it is empty: was the body read before?"
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}), bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		return "it is UTF-16, not UTF-8"
	case !bytes.ContainsRune([]byte("{[\"tfn-0123456789 \t\r\n\x1f"), rune(body[0])):
		return "it is not JSON"
	case bytes.HasPrefix(body, []byte{0x1f, 0x8b}):
		return "it is compressed with gzip: decompress it first"
	}
	return ""
}

// decodeEnvelope reads an envelope that the scanner did not.
func (p *parser) decodeEnvelope() error {
	if p.document == nil {
		p.document = jsonread.NewDocument(p.Data)
	}
	if err := p.document.Valid(); err != nil {
		var syntax *jsonread.SyntaxError
		errors.As(err, &syntax)
		return &ParseError{Offset: p.mark + syntax.Offset, Reason: cmp.Or(unlikeJSON(p.Data), syntax.Reason)}
	}
	p.event = p.document.Value()
	if p.Data[p.event.Lo] != '{' {
		return &ParseError{Offset: p.mark + int(p.event.Lo), Reason: "it is not an object"}
	}
	var f envelopeForm[anyJSON]
	_ = p.document.Read(p.event, &f, 0) // it is valid
	p.Envelope = Envelope{f.Type, f.TeamID, f.UserID, f.ClientUserID}
	p.payloadType = payloadTypeOf(f.Type)
	p.data = jsonread.Ref(f.Data.RawObject).Span()
	p.batch = batchUntried
	if p.memory != nil { // what the scanner read may be other data of that name
		p.memory.samples = Samples{}
		clear(p.memory.sample[:])
	}
	return nil
}

// userInData returns the user ID in the data, the zero UUID if there is none.
func (p *parser) userInData() uuid.UUID {
	if p.batch == batchRead {
		return p.memory.samples.UserID
	}
	return userInData(p.data.Of(p.Data))
}

func userInData(data []byte) uuid.UUID {
	if s, ok := jsonread.String(jsonread.Lookup(data, "user_id")); ok && len(s) == 36 {
		if id, err := uuid.Parse(s); err == nil {
			return id
		}
	}
	return uuid.Nil
}

// budget returns how many bytes the payload of so many bytes may take beyond them. What the service
// sends stays far below.
func budget(data int) int { return data/2 + 1<<16 }

// dataError is how the data of an event does not match its type. It is a string, so that go-cmp
// compares events with it.
type dataError string

func (e dataError) Error() string { return string(e) }

const (
	errNoObject   dataError = "webhooks: the data is not an object"
	errNoArray    dataError = "webhooks: the data is not an array"
	errNoObjectID dataError = "webhooks: the data is an object without a readable id"
	errTooLarge   dataError = "webhooks: the data would take far more memory than its JSON"
)

// payload returns the data. It decodes the data if the scanner did not.
func (p *parser) payload() Payload {
	if p.batch == batchRead {
		return &p.memory.samples
	}
	typ := p.payloadType
	switch {
	case typ != nil:
		return p.known(typ)
	case p.Type == "" && p.isOrder():
		return p.bareOrder()
	}
	return p.unknown(nil)
}

// known returns the data of an event of a known type.
func (p *parser) known(typ *payloadType) Payload {
	data := p.data.Of(p.Data)
	switch isList, isObject := startsWith(data, '['), startsWith(data, '{'); {
	case typ.isArray && !isList:
		return p.unknown(errNoArray)
	case !typ.isArray && !isObject && p.holdsNothing():
		return p.nothing()
	case !typ.isArray && !isObject:
		return p.unknown(errNoObject)
	}
	if typ.samples {
		if p.Pos = int(p.data.Lo); p.batch == batchUntried && p.scanBatch() {
			return &p.memory.samples
		}
		if startsWith(jsonread.Lookup(data, "data"), '[') || p.holdsNothing() {
			if s := &p.memory.samples; s.decode(p.document, p.data, mostSamples(len(p.Data))) {
				return s
			}
			return p.unknown(errTooLarge)
		}
	}
	return p.decode(typ.new())
}

func startsWith(value []byte, c byte) bool { return len(value) > 0 && value[0] == c }

// isOrder reports whether the event is an order itself, without an envelope: the public pages show
// some events so. Only orders have all three IDs.
func (p *parser) isOrder() bool {
	var hasUser, hasTeam, hasID, hasState bool
	for name, value := range jsonread.Fields(p.event.Of(p.Data)) {
		switch string(name) {
		case "event_type", "data", "order_id":
			return false
		case "id":
			hasID = true
		case "user_id":
			hasUser = true
		case "team_id":
			hasTeam = true
		case "last_event", "details", "patient_details":
			hasState = hasState || value[0] == '{'
		case "events":
			hasState = hasState || value[0] == '['
		}
	}
	return hasID && hasUser && hasTeam && hasState
}

// bareOrder decodes the event as an order.
func (p *parser) bareOrder() Payload {
	order := &LabOrder{}
	switch err := p.document.Read(p.event, &order.Order, budget(p.event.Len())); {
	case err != nil:
		return p.unknown(errTooLarge)
	case order.ID == uuid.Nil:
		return p.unknown(errNoObjectID)
	}
	return order
}

// holdsNothing reports whether an event of wearable data has none. A field that this package does
// not know may hold some.
func (p *parser) holdsNothing() bool {
	data := p.data.Of(p.Data)
	switch {
	case !strings.HasPrefix(string(p.Type), dailyPrefix):
		return false
	case len(data) > 0 && data[0] == '{':
		return areEmpty(data, batchFields, nil)
	}
	return (len(data) == 0 || isEmpty(data)) && areEmpty(p.event.Of(p.Data), envelopeFields, data)
}

// areEmpty reports whether all fields of an object are empty except the known ones, of which data
// has the value data.
func areEmpty(object []byte, known jsonread.FieldNames, data []byte) bool {
	for name, value := range jsonread.Fields(object) {
		isKnown := known.Index(name) < len(known) && (string(name) != "data" || bytes.Equal(value, data))
		if !isKnown && !isEmpty(value) {
			return false
		}
	}
	return true
}

// isEmpty reports whether a value is null, an object without fields or an array without elements.
func isEmpty(value []byte) bool {
	switch value[0] {
	case '{', '[':
		return len(bytes.TrimSpace(value[1:len(value)-1])) == 0
	}
	return value[0] == 'n'
}

// nothing returns the data of an event that holds nothing and no object.
func (p *parser) nothing() Payload {
	if !p.payloadType.samples || p.data.Len() == 0 {
		return p.unknown(nil)
	}
	p.memory.samples.RawObject = labhealth.RawObject(p.document.Ref(p.data))
	return &p.memory.samples
}

// decode decodes the data into a payload.
func (p *parser) decode(data Payload) Payload {
	var err error
	switch v := data.(type) {
	case apiObject:
		object, id := v.apiObject()
		if err = p.read(object); err == nil && *id == uuid.Nil {
			return p.unknown(errNoObjectID)
		}
	case *ContinuousQueryChanges:
		err = v.decode(p.document, p.event, p.data)
	case wearableSummary:
		if err = p.read(v); err == nil && v.head().id == uuid.Nil && len(v.Malformed()) == 0 && p.holdsNothing() {
			return p.unknown(nil)
		}
	default:
		err = p.read(v)
	}
	if err != nil {
		return p.unknown(errTooLarge)
	}
	return data
}

// read decodes the data into the struct that v points to. It fails only if the struct would take
// too much memory.
func (p *parser) read(v any) error {
	return p.document.Read(p.data, v, budget(p.data.Len()), "data")
}

func (p *parser) unknown(err error) *Unknown {
	u := &Unknown{Err: err}
	if p.data.Len() > 0 {
		u.Raw = slices.Clone(p.data.Of(p.Data))
	}
	return u
}
