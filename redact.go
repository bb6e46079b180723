package labhealth

import (
	"fmt"
	"log/slog"

	"github.com/labhealth/labhealth-go/internal/redact"
)

// Redacted marks a type that holds patient data or secrets: a struct of this module embeds it.
// Printed with package fmt, or logged as an attribute of log/slog, the value then shows the name of
// its type, such as "labhealth.Shipment{redacted}", and nothing else. Its JSON encoding is not
// redacted.
//
// Three cases cannot be prevented: fmt prints the unexported fields of a caller's own struct, and
// whatever is passed to %p, or to %w without being an error; and slog's JSON handler encodes values
// that are nested in slices, maps and structs.
type Redacted struct{}

// LogValue returns "{redacted}". The types that embed Redacted add their name.
func (Redacted) LogValue() slog.Value { return slog.StringValue("{redacted}") }

// Format prints "{redacted}" under every verb. The types that embed Redacted add their name.
func (r Redacted) Format(s fmt.State, _ rune) { redact.Print(s, r.LogValue().String()) }
