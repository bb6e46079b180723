// The payload of continuous queries, whose data is an array.

package webhooks

// Source of this file: public API reference only.

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// ContinuousQueryChanges reports changes of the result tables of continuous queries: the data of
// continuous_query.result_table.changed, which is an array. Printed or logged, it shows nothing of
// them.
type ContinuousQueryChanges struct {
	// Tables has the tables in the order of the event. A program may add, change and remove
	// elements: encoding the payload to JSON writes unchanged ones as their raw bytes.
	Tables []ContinuousQueryResultTableChanges

	labhealth.RawObject
}

// ContinuousQueryResultTableChanges has the changed rows of one result table.
type ContinuousQueryResultTableChanges struct {
	QueryID   uuid.UUID `json:"query_id"`   // the query
	QuerySlug string    `json:"query_slug"` // the team's name of the query
	// Data has lists of JSON values by name. The reference does not document the names and values.
	Data map[string][]json.RawMessage `json:"data"`

	labhealth.RawObject `json:"-"`
}

// changesForm is how the payload is decoded: as a field of the event.
type changesForm struct {
	Data []ContinuousQueryResultTableChanges `json:"data"`

	labhealth.RawObject `json:"-"`
}

// MarshalJSON writes an array with every received element, with the program's changes applied.
func (c ContinuousQueryChanges) MarshalJSON() ([]byte, error) {
	raw := c.RawJSON()
	if c.Tables == nil && len(raw) > 0 && raw[0] != '[' {
		return raw, nil
	}
	list, unchanged, err := encodeList(raw, len(c.Tables), func(i int) ([]byte, error) { return c.Tables[i].MarshalJSON() })
	if unchanged {
		return raw, nil
	}
	return list, err
}

// UnmarshalJSON decodes a JSON value. It fails only if b is not JSON. Tables stays nil if the value
// is not an array, or one that would take far more memory than its JSON.
func (c *ContinuousQueryChanges) UnmarshalJSON(b []byte) error {
	if err := jsonread.Valid(b); err != nil {
		return err
	}
	*c = ContinuousQueryChanges{}
	document := jsonread.NewDocument(slices.Concat([]byte(`{"data":`), bytes.TrimSpace(b), []byte("}")))
	event := document.Value()
	_ = c.decode(document, event, jsonread.Span{Lo: event.Lo + uint32(len(`{"data":`)), Hi: event.Hi - 1}) // no Tables then
	return nil
}

// decode decodes the data of an event. It fails if the data would take too much memory.
func (c *ContinuousQueryChanges) decode(document *jsonread.Document, event, data jsonread.Span) error {
	c.RawObject = labhealth.RawObject(document.Ref(data))
	var form changesForm
	if err := document.Read(event, &form, budget(data.Len())); err != nil {
		return err
	}
	c.Tables = form.Data
	return nil
}
