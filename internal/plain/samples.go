// Events with samples as plain structs, and invented ones as JSON.

package plain

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// The fields of an event with samples. Envelope is the first step of decoding, and its Data becomes
// a Batch. Event is both in one.
type (
	IDs struct {
		EventType    string    `json:"event_type"`
		TeamID       uuid.UUID `json:"team_id"`
		UserID       uuid.UUID `json:"user_id"`
		ClientUserID string    `json:"client_user_id"`
	}
	Envelope struct {
		IDs
		Data json.RawMessage `json:"data"`
	}
	Event struct {
		IDs
		Data Batch `json:"data"`
	}
	Batch struct {
		UserID   uuid.UUID `json:"user_id"`
		Source   Source    `json:"source"`
		SourceID int       `json:"source_id"`
		Data     []Sample  `json:"data"`
	}
	Source struct {
		Name string `json:"name"`
		Slug string `json:"slug"`
		Logo string `json:"logo"`
	}
	Sample struct {
		Timestamp      time.Time `json:"timestamp"`
		Start          time.Time `json:"start"`
		End            time.Time `json:"end"`
		TimezoneOffset *int      `json:"timezone_offset"`
		Type           *string   `json:"type"`
		Unit           string    `json:"unit"`
		Value          float64   `json:"value"`
	}
)

// DecodeEvent decodes an event in two steps, as a program that gets the type of the data from the
// envelope.
func DecodeEvent(document []byte) (e Event, err error) {
	var envelope Envelope
	if err = json.Unmarshal(document, &envelope); err == nil {
		e.IDs = envelope.IDs
		err = json.Unmarshal(envelope.Data, &e.Data)
	}
	return e, err
}

// EventJSON returns an event with n samples. The samples of the form "uniform" differ only in time
// and value. "mixed" ones are intervals with alternating types and values of 17 digits. "spaced"
// ones are uniform with a space after each comma and colon.
func EventJSON(n int, form string) []byte {
	const micros = "2006-01-02T15:04:05.123456-07:00"
	b := []byte(`{"event_type":"daily.data.glucose.created","data":{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","source_id":7,` +
		`"source":{"name":"Example Sensor","slug":"example_sensor","logo":"https://example.com/logo.png"},"data":[`)
	start := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		t := start.Add(time.Duration(i) * time.Minute)
		switch form {
		case "uniform":
			b = fmt.Appendf(b, `{"timestamp":"%s","timezone_offset":3600,"type":"automatic","unit":"mmol/L","value":%.1f}`,
				t.Format("2006-01-02T15:04:05+00:00"), 4+float64(i%50)/10)
		case "spaced":
			b = fmt.Appendf(b, `{"timestamp": "%s", "timezone_offset": 3600, "type": "automatic", "unit": "mmol/L", "value": %.1f}`,
				t.Format("2006-01-02T15:04:05+00:00"), 4+float64(i%50)/10)
		case "mixed":
			kind := [...]string{`"automatic"`, `null`, `"manual_scan"`}[i%3]
			b = fmt.Appendf(b, `{"id":null,"timestamp":"%s","start":"%s","end":"%s","timezone_offset":null,"type":%s,"unit":"mmol/L","value":%v}`,
				t.Format(micros), t.Format(micros), t.Add(time.Minute).Format(micros), kind, 39.518054167148996+float64(i)/7)
		}
	}
	return append(b, `]},"team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","client_user_id":"user-42"}`...)
}
