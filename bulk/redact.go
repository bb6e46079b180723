// The printed form of entries and rejections.

package bulk

import (
	"fmt"
	"log/slog"
)

//go:generate go run ../scripts/generate

// A sample ID identifies a patient. Types that hold one print a short form under every verb of fmt
// and as attributes of slog. Their fields hold the ID, and so does their JSON, in which they are
// stored.

func shortForm(typeName, step string, record int64) slog.Value {
	return slog.StringValue(fmt.Sprintf("bulk.%s{%s, record %d, redacted}", typeName, nameOrMark(step), record))
}

// LogValue returns the step and the number of the record.
func (e Entry) LogValue() slog.Value { return shortForm("Entry", string(e.Step), e.Record) }

// LogValue returns the outcome and the number of the record.
func (r Rejection) LogValue() slog.Value { return shortForm("Rejection", r.Outcome, r.Record) }

// LogValue returns the error message, which does not contain the sample ID.
func (e RecordError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// LogValue returns the error message.
func (e UnknownColumnsError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Format prints the error message under every verb.
func (e RecordError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }
