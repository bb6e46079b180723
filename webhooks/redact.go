// The printed form of events and deliveries.

package webhooks

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"
)

// Types that hold health data show only their name and the service's IDs when printed or logged.
// Those that show their name alone embed [labhealth.Redacted], which documents what no type can
// prevent. Their JSON encoding is not redacted.

// short returns the redacted form of a value: its name and its nonzero IDs.
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

// printable returns t if it is suitable for a log line, and "?" otherwise: the sender can send any
// string, also a name.
func printable(t EventType) EventType {
	if t != "" && (len(t) > 128 || strings.Trim(string(t), typeChars) != "" || !strings.Contains(string(t), ".")) {
		return "?"
	}
	return t
}

const typeChars = "abcdefghijklmnopqrstuvwxyz0123456789._-"

// LogValue returns the name of the type.
func (*Latest) LogValue() slog.Value { return short("Latest") }

// Format prints the name of the type under every verb.
func (l *Latest) Format(s fmt.State, _ rune) { fmt.Fprint(s, l.LogValue().String()) }

// LogValue returns the event's type and the service's ID of the user.
func (e Event) LogValue() slog.Value { return short("Event", e.Type, e.UserID) }

// LogValue returns the event's type and the service's ID of the user.
func (e Envelope) LogValue() slog.Value { return short("Envelope", e.Type, e.UserID) }

// LogValue returns the event's type and the service's ID of the user.
func (d Delivery) LogValue() slog.Value {
	e := cmp.Or(d.Event, &Event{})
	return short("Delivery", e.Type, e.UserID)
}

// LogValue returns the ID of the delivery.
func (d RawDelivery) LogValue() slog.Value {
	if !validID(d.ID) {
		return short("RawDelivery")
	}
	return short("RawDelivery", d.ID)
}

// LogValue returns the service's ID of the user.
func (v Samples) LogValue() slog.Value { return short("Samples", v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Activity) LogValue() slog.Value { return short("Activity", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Summary) LogValue() slog.Value { return short("Summary", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Sleep) LogValue() slog.Value { return short("Sleep", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v SleepCycle) LogValue() slog.Value { return short("SleepCycle", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Workout) LogValue() slog.Value { return short("Workout", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Body) LogValue() slog.Value { return short("Body", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Profile) LogValue() slog.Value { return short("Profile", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Meal) LogValue() slog.Value { return short("Meal", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v MenstrualCycle) LogValue() slog.Value { return short("MenstrualCycle", v.ID, v.UserID) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Electrocardiogram) LogValue() slog.Value { return short("Electrocardiogram", v.ID, v.UserID) }

// LogValue returns the workout's ID and the service's ID of the user.
func (v WorkoutStreamNotice) LogValue() slog.Value {
	return short("WorkoutStreamNotice", v.WorkoutID, v.UserID)
}

// LogValue returns the service's ID of the user.
func (v ProviderConnection) LogValue() slog.Value { return short("ProviderConnection", v.UserID) }

// LogValue returns the service's ID of the user.
func (v HistoricalPull) LogValue() slog.Value { return short("HistoricalPull", v.UserID) }

// LogValue returns the service's ID of the user.
func (v ConnectionError) LogValue() slog.Value { return short("ConnectionError", v.UserID) }

// LogValue returns the device's ID and the service's ID of the user.
func (v ProviderDevice) LogValue() slog.Value { return short("ProviderDevice", v.ID, v.UserID) }

// LogValue returns the order's ID and the service's ID of the user.
func (v CriticalResult) LogValue() slog.Value { return short("CriticalResult", v.OrderID, v.UserID) }

// LogValue returns the review's ID.
func (v MatchReview) LogValue() slog.Value { return short("MatchReview", v.ID) }

// LogValue returns the name of the type.
func (v ContinuousQueryChanges) LogValue() slog.Value { return short("ContinuousQueryChanges") }

// LogValue returns Err, and no part of the data.
func (v Unknown) LogValue() slog.Value {
	if v.Err != nil {
		return slog.StringValue("webhooks.Unknown{" + v.Err.Error() + ", redacted}")
	}
	return short("Unknown")
}
