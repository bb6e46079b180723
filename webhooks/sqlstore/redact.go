// The printed form of stored values.

package sqlstore

import (
	"fmt"
	"log/slog"

	labhealth "github.com/labhealth/labhealth-go"
)

// Types that hold health data print a short form under every verb of fmt and as attributes of slog.

func printLogValue(s fmt.State, v slog.LogValuer) { fmt.Fprint(s, v.LogValue().String()) }

// LogValue returns the dialect.
func (s *Store) LogValue() slog.Value {
	if s == nil {
		return slog.StringValue("sqlstore.Store{nil}")
	}
	return slog.StringValue("sqlstore.Store{" + s.name.String() + "}")
}

// Format prints the result of [Store.LogValue] under every verb.
func (s *Store) Format(f fmt.State, _ rune) { printLogValue(f, s) }

// LogValue returns the service's ID of the user.
func (v StoredSample) LogValue() slog.Value {
	return slog.StringValue("sqlstore.StoredSample{" + v.Key.UserID.String() + ", redacted}")
}

// Format prints the result of [StoredSample.LogValue] under every verb.
func (v StoredSample) Format(f fmt.State, _ rune) { printLogValue(f, v) }

// LogValue returns the summary's ID and the service's ID of the user.
func (v StoredSummary) LogValue() slog.Value {
	return slog.StringValue("sqlstore.StoredSummary{" + v.Key.ID.String() + " " + v.Key.UserID.String() + ", redacted}")
}

// Format prints the result of [StoredSummary.LogValue] under every verb.
func (v StoredSummary) Format(f fmt.State, _ rune) { printLogValue(f, v) }

// LogValue returns all fields except the body.
func (d DeadLetter) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("sqlstore.DeadLetter{%s %s %d attempts, %s, redacted}", d.ID, d.Delivery.ID, d.Attempts, d.Reason))
}

// Format prints the result of [DeadLetter.LogValue] under every verb.
func (d DeadLetter) Format(f fmt.State, _ rune) { printLogValue(f, d) }

// LogValue returns the kind and the IDs.
func (r Reaction) LogValue() slog.Value {
	text := "sqlstore.Reaction{" + string(r.Kind) + " " + r.ID.String() + " user " + r.UserID.String()
	switch r.Kind {
	case ReactTransition, ReactResults:
		text += " order " + r.OrderID.String()
	case ReactSummary:
		text += " summary " + r.Summary.ID.String()
	case ReactSamples: // a series has no ID
	}
	return slog.StringValue(text + "}")
}

// Format prints the result of [Reaction.LogValue] under every verb.
func (r Reaction) Format(f fmt.State, _ rune) { printLogValue(f, r) }

// LogValue returns all fields, the Reaction without what it has of the data.
func (r FailedReaction) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("sqlstore.FailedReaction{%v %d attempts, %s}", r.Reaction, r.Attempts, r.Reason))
}

// Format prints the result of [FailedReaction.LogValue] under every verb.
func (r FailedReaction) Format(f fmt.State, _ rune) { printLogValue(f, r) }

// LogValue returns the IDs of the order and of the user, and the status.
func (v StoredOrder) LogValue() slog.Value {
	order := labhealth.Order{LastEvent: labhealth.OrderEvent{Status: v.Status}}
	if v.Order != nil {
		order.ID = v.Order.ID
	}
	return slog.StringValue("sqlstore.StoredOrder{" + v.UserID.String() + " " + order.LogValue().String() + "}")
}

// Format prints the result of [StoredOrder.LogValue] under every verb.
func (v StoredOrder) Format(f fmt.State, _ rune) { printLogValue(f, v) }

// LogValue returns the ID of the order and the status.
func (t Transition) LogValue() slog.Value {
	order := labhealth.Order{ID: t.OrderID, LastEvent: labhealth.OrderEvent{Status: t.Status}}
	return slog.StringValue("sqlstore.Transition{" + order.LogValue().String() + "}")
}

// Format prints the result of [Transition.LogValue] under every verb.
func (t Transition) Format(f fmt.State, _ rune) { printLogValue(f, t) }
