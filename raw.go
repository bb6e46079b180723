// RawObject: the received JSON of a value, its malformed fields, and that it is not printed.

package labhealth

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/redact"
)

//go:generate go run ./scripts/generate

// RawObject is embedded in every type that is decoded from JSON of the service. It keeps the
// received JSON, so that nothing is lost: unknown fields, and fields whose value does not match
// their type, are encoded again, together with the changes that the program made. The zero
// RawObject belongs to a value that was not received.
//
// Each element of a page, such as an order, has its own received JSON, and keeps nothing of the
// page and of the other elements in memory. Its strings are parts of that JSON, unless it is larger
// than 16 KiB: a string of an order keeps the 4 kB of the order in memory. [strings.Clone] avoids
// that.
//
// Do not embed a received type, such as [Order], in a struct with other fields: its MarshalJSON and
// UnmarshalJSON become those of the struct, and ignore the other fields. Make it a field instead.
type RawObject jsonread.Ref

var _ = jsonread.Embeds(func(r *RawObject) *jsonread.Ref { return (*jsonread.Ref)(r) })

// received returns the received JSON itself, which must not be changed.
func (r RawObject) received() []byte {
	ref := jsonread.Ref(r)
	if ref.IsZero() {
		return nil
	}
	return ref.Bytes()
}

// RawJSON returns a copy of the received JSON, including its white space. It is nil for a value
// that was not received. It holds patient data if the value does.
func (r RawObject) RawJSON() json.RawMessage { return jsonread.Ref(r).Raw() }

// Malformed returns the fields, at any depth of the value, whose received value does not match
// their type: a bad UUID or date, or a string for a number. Such a field is zero, and its value is
// part of [RawObject.RawJSON]. Null is never malformed: it is decoded as absent. The list has at
// most 1,000 entries.
func (r RawObject) Malformed() []Malformed {
	var list []Malformed
	for _, p := range jsonread.Ref(r).Problems() {
		list = append(list, Malformed{Path: strings.Join(p.Path, "."), Want: p.Want})
	}
	return list
}

// Format prints "{redacted}" under every verb, and so does every type that embeds RawObject without
// a printed form of its own: see [Redacted].
func (RawObject) Format(s fmt.State, _ rune) { redact.Print(s, redact.Form) }

// LogValue returns "{redacted}".
func (RawObject) LogValue() slog.Value { return slog.StringValue(redact.Form) }

// Equal always reports true. It exists for go-cmp, so that cmp.Diff compares a decoded value with a
// literal by their fields alone.
func (RawObject) Equal(RawObject) bool { return true }

// Malformed identifies a field whose received value does not match its type. It never holds the
// value.
type Malformed struct {
	// Path is the path from the value whose method was called, such as "events.1.created_at".
	Path string
	// Want is the expected type: "uuid", "date", "date-time", "string", "integer", "number",
	// "boolean", "array" or "object".
	Want string
}
