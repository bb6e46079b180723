package webhooks

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"
)

// Types that hold health data show only their name and the service's IDs when printed or logged.
// Those that show their name alone embed [labhealth.Redacted], which says what no type can prevent.
// Encoding them to JSON is complete.

func redacted(s fmt.State, v slog.LogValuer) { fmt.Fprint(s, v.LogValue().String()) }

// short returns what a value shows of itself: its name, and those of the IDs that are not zero.
func short(name string, ids ...any) slog.Value {
	text := "webhooks." + name + "{"
	for _, k := range ids {
		if t, ok := k.(EventType); ok {
			k = printable(t)
		}
		if k != uuid.Nil && k != EventType("") {
			text += fmt.Sprint(k) + " "
		}
	}
	if len(text) > len("webhooks.{")+len(name) {
		text = text[:len(text)-1] + ", "
	}
	return slog.StringValue(text + "redacted}")
}

// printable returns t if it fits a log line, else "?": the sender can send any string of any
// length.
func printable(t EventType) EventType {
	if len(t) > 128 || strings.Trim(string(t), typeChars) != "" {
		return "?"
	}
	return t
}

const typeChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// LogValue shows nothing of what is stored.
func (*Latest) LogValue() slog.Value { return short("Latest") }

// Format shows nothing of what is stored.
func (l *Latest) Format(s fmt.State, _ rune) { redacted(s, l) }

// LogValue shows the event's type and the service's ID of the user.
func (e Event) LogValue() slog.Value { return short("Event", e.Type, e.UserID) }

// Format prints what [Event.LogValue] returns.
func (e Event) Format(s fmt.State, _ rune) { redacted(s, e) }

// LogValue shows the event's type and the service's ID of the user.
func (e Envelope) LogValue() slog.Value { return short("Envelope", e.Type, e.UserID) }

// Format prints what [Envelope.LogValue] returns.
func (e Envelope) Format(s fmt.State, _ rune) { redacted(s, e) }

// LogValue shows the sender's ID of the message.
func (d RawDelivery) LogValue() slog.Value {
	if !validID(d.ID) {
		return short("RawDelivery")
	}
	return short("RawDelivery", d.ID)
}

// Format prints what [RawDelivery.LogValue] returns.
func (d RawDelivery) Format(s fmt.State, _ rune) { redacted(s, d) }

// LogValue shows the service's ID of the user.
func (v Samples) LogValue() slog.Value { return short("Samples", v.UserID) }

// Format prints what [Samples.LogValue] returns.
func (v Samples) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the summary's ID and the service's ID of the user.
func (v Activity) LogValue() slog.Value { return short("Activity", v.ID, v.UserID) }

// Format prints what [Activity.LogValue] returns.
func (v Activity) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the summary's ID and the service's ID of the user.
func (v Summary) LogValue() slog.Value { return short("Summary", v.ID, v.UserID) }

// Format prints what [Summary.LogValue] returns.
func (v Summary) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the workout's ID and the service's ID of the user.
func (v WorkoutStreamNotice) LogValue() slog.Value {
	return short("WorkoutStreamNotice", v.WorkoutID, v.UserID)
}

// Format prints what [WorkoutStreamNotice.LogValue] returns.
func (v WorkoutStreamNotice) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the service's ID of the user.
func (v ProviderConnection) LogValue() slog.Value { return short("ProviderConnection", v.UserID) }

// Format prints what [ProviderConnection.LogValue] returns.
func (v ProviderConnection) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the service's ID of the user.
func (v HistoricalPull) LogValue() slog.Value { return short("HistoricalPull", v.UserID) }

// Format prints what [HistoricalPull.LogValue] returns.
func (v HistoricalPull) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows what is wrong with the data, and nothing of the data.
func (v Unknown) LogValue() slog.Value {
	if v.Err != nil {
		return slog.StringValue("webhooks.Unknown{" + v.Err.Error() + ", redacted}")
	}
	return short("Unknown")
}

// Format prints what [Unknown.LogValue] returns.
func (v Unknown) Format(s fmt.State, _ rune) { redacted(s, v) }
