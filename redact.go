// Redacted, which requests with patient data embed.

package labhealth

import (
	"fmt"
	"log/slog"

	"github.com/labhealth/labhealth-go/internal/redact"
)

// Redacted is embedded in the types of requests and options that hold patient data or secrets.
// Printed with package fmt, or logged as an attribute of log/slog, they show "{redacted}". So do
// all types that are decoded from JSON of the service, because they embed [RawObject]. Some of them
// add their IDs; those that hold nothing about a person and no secret, such as [LabTest], print
// their fields. JSON is never redacted.
//
// Four cases cannot be prevented. Package fmt prints the unexported fields of a program's own
// structs, and whatever is passed to %p, or to %w without being an error. The JSON handler of slog
// encodes values inside slices, maps and structs. It also encodes a program's own struct that
// embeds two of these types, because the methods of both hide each other.
type Redacted struct{}

// Format prints "{redacted}" under every verb.
func (Redacted) Format(s fmt.State, _ rune) { redact.Print(s, redact.Form) }

// LogValue returns "{redacted}".
func (Redacted) LogValue() slog.Value { return slog.StringValue(redact.Form) }
