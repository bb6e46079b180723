package webhooks

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"
)

// Types that hold health data show only their name and the service's IDs when printed or logged.
// Those that show their name alone embed [labhealth.Redacted], which documents what no type can
// prevent. Their JSON encoding is not redacted.

func redacted(s fmt.State, v slog.LogValuer) { fmt.Fprint(s, v.LogValue().String()) }

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
// string of any length.
func printable(t EventType) EventType {
	if len(t) > 128 || strings.Trim(string(t), typeChars) != "" {
		return "?"
	}
	return t
}

const typeChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// LogValue returns the name of the type.
func (*Latest) LogValue() slog.Value { return short("Latest") }

// Format prints the name of the type under every verb.
func (l *Latest) Format(s fmt.State, _ rune) { redacted(s, l) }

// LogValue returns the event's type and the service's ID of the user.
func (e Event) LogValue() slog.Value { return short("Event", e.Type, e.UserID) }

// Format prints the result of [Event.LogValue] under every verb.
func (e Event) Format(s fmt.State, _ rune) { redacted(s, e) }

// LogValue returns the event's type and the service's ID of the user.
func (e Envelope) LogValue() slog.Value { return short("Envelope", e.Type, e.UserID) }

// Format prints the result of [Envelope.LogValue] under every verb.
func (e Envelope) Format(s fmt.State, _ rune) { redacted(s, e) }

// LogValue returns the ID of the delivery.
func (d RawDelivery) LogValue() slog.Value {
	if !validID(d.ID) {
		return short("RawDelivery")
	}
	return short("RawDelivery", d.ID)
}

// Format prints the result of [RawDelivery.LogValue] under every verb.
func (d RawDelivery) Format(s fmt.State, _ rune) { redacted(s, d) }

// LogValue returns the service's ID of the user.
func (v Samples) LogValue() slog.Value { return short("Samples", v.UserID) }

// Format prints the result of [Samples.LogValue] under every verb.
func (v Samples) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Activity) LogValue() slog.Value { return short("Activity", v.ID, v.UserID) }

// Format prints the result of [Activity.LogValue] under every verb.
func (v Activity) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Summary) LogValue() slog.Value { return short("Summary", v.ID, v.UserID) }

// Format prints the result of [Summary.LogValue] under every verb.
func (v Summary) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Sleep) LogValue() slog.Value { return short("Sleep", v.ID, v.UserID) }

// Format prints the result of [Sleep.LogValue] under every verb.
func (v Sleep) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v SleepCycle) LogValue() slog.Value { return short("SleepCycle", v.ID, v.UserID) }

// Format prints the result of [SleepCycle.LogValue] under every verb.
func (v SleepCycle) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Workout) LogValue() slog.Value { return short("Workout", v.ID, v.UserID) }

// Format prints the result of [Workout.LogValue] under every verb.
func (v Workout) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Body) LogValue() slog.Value { return short("Body", v.ID, v.UserID) }

// Format prints the result of [Body.LogValue] under every verb.
func (v Body) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Profile) LogValue() slog.Value { return short("Profile", v.ID, v.UserID) }

// Format prints the result of [Profile.LogValue] under every verb.
func (v Profile) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Meal) LogValue() slog.Value { return short("Meal", v.ID, v.UserID) }

// Format prints the result of [Meal.LogValue] under every verb.
func (v Meal) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v MenstrualCycle) LogValue() slog.Value { return short("MenstrualCycle", v.ID, v.UserID) }

// Format prints the result of [MenstrualCycle.LogValue] under every verb.
func (v MenstrualCycle) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v Electrocardiogram) LogValue() slog.Value { return short("Electrocardiogram", v.ID, v.UserID) }

// Format prints the result of [Electrocardiogram.LogValue] under every verb.
func (v Electrocardiogram) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the workout's ID and the service's ID of the user.
func (v WorkoutStreamNotice) LogValue() slog.Value {
	return short("WorkoutStreamNotice", v.WorkoutID, v.UserID)
}

// Format prints the result of [WorkoutStreamNotice.LogValue] under every verb.
func (v WorkoutStreamNotice) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the service's ID of the user.
func (v ProviderConnection) LogValue() slog.Value { return short("ProviderConnection", v.UserID) }

// Format prints the result of [ProviderConnection.LogValue] under every verb.
func (v ProviderConnection) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the service's ID of the user.
func (v HistoricalPull) LogValue() slog.Value { return short("HistoricalPull", v.UserID) }

// Format prints the result of [HistoricalPull.LogValue] under every verb.
func (v HistoricalPull) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the service's ID of the user.
func (v ConnectionError) LogValue() slog.Value { return short("ConnectionError", v.UserID) }

// Format prints the result of [ConnectionError.LogValue] under every verb.
func (v ConnectionError) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the device's ID and the service's ID of the user.
func (v ProviderDevice) LogValue() slog.Value { return short("ProviderDevice", v.ID, v.UserID) }

// Format prints the result of [ProviderDevice.LogValue] under every verb.
func (v ProviderDevice) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the order's ID and the service's ID of the user.
func (v CriticalResult) LogValue() slog.Value { return short("CriticalResult", v.OrderID, v.UserID) }

// Format prints the result of [CriticalResult.LogValue] under every verb.
func (v CriticalResult) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the review's ID.
func (v MatchReview) LogValue() slog.Value { return short("MatchReview", v.ID) }

// Format prints the result of [MatchReview.LogValue] under every verb.
func (v MatchReview) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the job's ID.
func (v ParsingJob) LogValue() slog.Value { return short("ParsingJob", v.ID) }

// Format prints the result of [ParsingJob.LogValue] under every verb.
func (v ParsingJob) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns the name of the type.
func (v ContinuousQueryChanges) LogValue() slog.Value { return short("ContinuousQueryChanges") }

// Format prints the result of [ContinuousQueryChanges.LogValue] under every verb.
func (v ContinuousQueryChanges) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue returns Err, and no part of the data.
func (v Unknown) LogValue() slog.Value {
	if v.Err != nil {
		return slog.StringValue("webhooks.Unknown{" + v.Err.Error() + ", redacted}")
	}
	return short("Unknown")
}

// Format prints the result of [Unknown.LogValue] under every verb.
func (v Unknown) Format(s fmt.State, _ rune) { redacted(s, v) }
