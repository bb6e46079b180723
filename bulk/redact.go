package bulk

import (
	"fmt"
	"log/slog"
)

// A sample id leads to a patient. Types that hold one print a short form under every verb of fmt
// and as attributes of slog; whoever needs the id reads the field. Encoding them to JSON is
// complete: that is how they are stored.

// short returns what a step of a record shows of itself.
func short(name, what string, record int64) slog.Value {
	return slog.StringValue(fmt.Sprintf("bulk.%s{%s, record %d, redacted}", name, plain(what), record))
}

// LogValue shows the step and the number of the record.
func (e Entry) LogValue() slog.Value { return short("Entry", string(e.Step), e.Record) }

// Format prints what [Entry.LogValue] returns.
func (e Entry) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.LogValue().String()) }

// LogValue shows the outcome and the number of the record.
func (r Refusal) LogValue() slog.Value { return short("Refusal", r.Outcome, r.Record) }

// Format prints what [Refusal.LogValue] returns.
func (r Refusal) Format(s fmt.State, _ rune) { fmt.Fprint(s, r.LogValue().String()) }

// LogValue shows the error's text, which has no sample id.
func (e RecordError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Format prints the error's text under every verb.
func (e RecordError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// LogValue shows nothing of the value: its writer may hold refusals.
func (Options) LogValue() slog.Value { return slog.StringValue("bulk.Options{redacted}") }

// Format prints what [Options.LogValue] returns.
func (o Options) Format(s fmt.State, _ rune) { fmt.Fprint(s, o.LogValue().String()) }

// LogValue shows nothing of the value: it has entries that it wrote.
func (File) LogValue() slog.Value { return slog.StringValue("bulk.File{redacted}") }

// Format prints what [File.LogValue] returns.
func (j File) Format(s fmt.State, _ rune) { fmt.Fprint(s, j.LogValue().String()) }
