// Secret, a string that is not printed.

package labhealth

import (
	"fmt"
	"log/slog"
)

// Secret is a key, a signing secret, a token or a connection string. Under every verb of package
// fmt, and as an attribute of log/slog, it prints as "[redacted]". Use string(s) to get the value;
// its JSON encoding is not redacted.
type Secret string

// Format prints "[redacted]".
func (Secret) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[redacted]") }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue("[redacted]") }
