package console

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// deliveryRow is the data of the partial "delivery-row".
type deliveryRow struct {
	inspect.Delivery
	On    bool // its detail is shown
	Path  string
	Today bool
}

// toned is a text in one of the tones ok, warn and bad, or without one.
type toned struct{ Tone, Text string }

// deliveryMark is the verdict as a shape. Shape is v, r, d or w.
type deliveryMark struct{ Class, Shape, Text string }

// eventType is the type of an event, with the part that matters most in the middle.
type eventType struct{ Start, Middle, End string }

func (t eventType) String() string { return t.Start + t.Middle + t.End }

func newEventType(text string) eventType {
	if text == "" {
		return eventType{Middle: "no event"}
	}
	end := strings.LastIndexByte(text, '.')
	if end < 0 {
		return eventType{Middle: visible(text)}
	}
	middle := strings.LastIndexByte(text[:end], '.') + 1
	return eventType{visible(text[:middle]), visible(text[middle:end]), visible(text[end:])}
}

func (c *Console) deliveryRow(d inspect.Delivery, q query) deliveryRow {
	return deliveryRow{Delivery: d, Path: q.Beside(d.Number), Today: c.isToday(d.ReceivedAt)}
}

// Mark is the verdict.
func (r deliveryRow) Mark() deliveryMark { return markOf(r.Delivery) }

// EventType is the type of the event.
func (r deliveryRow) EventType() eventType { return newEventType(r.Type) }

// Who is the order or the user.
func (r deliveryRow) Who() string { return whoOf(r.Delivery) }

// isToday reports whether a time is on the day of now.
func (c *Console) isToday(at time.Time) bool {
	return at.In(c.zone()).Format(time.DateOnly) == c.Now().Format(time.DateOnly)
}

// timeOf formats a time of another delivery, with the day if it is another one than now.
func (c *Console) timeOf(at time.Time) string {
	if c.isToday(at) {
		return at.In(c.zone()).Format("15:04:05")
	}
	return at.In(c.zone()).Format("2 Jan 15:04:05")
}

func markOf(d inspect.Delivery) deliveryMark {
	switch {
	case d.Verdict == inspect.Rejected:
		return deliveryMark{"bad", "r", "rejected: " + shortReason(d.Reason)}
	case d.DuplicateOf > 0:
		return deliveryMark{"dup", "d", "duplicate"}
	case d.Reason != "":
		return deliveryMark{"warn", "w", d.Reason}
	case d.Malformed > 0:
		return deliveryMark{"warn", "w", countOf(d.Malformed, "malformed field")}
	case d.Verdict == inspect.Unsigned:
		return deliveryMark{"dup", "v", "not signed"}
	default:
		return deliveryMark{"ok", "v", "verified"}
	}
}

// whoOf returns the order or the user of a delivery.
func whoOf(d inspect.Delivery) string {
	switch {
	case d.OrderID != uuid.Nil:
		return "order " + d.OrderID.String()[:8]
	case d.ClientUserID != "":
		return visible(firstChars(d.ClientUserID, 40))
	case d.UserID != uuid.Nil:
		return "user " + d.UserID.String()[:8]
	default:
		return ""
	}
}

// firstChars shortens a text to n characters.
func firstChars(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i] + "…"
		}
		n--
	}
	return text
}

// Counts reports whether the numbers of changes are shown: they say more than About.
func (r deliveryRow) Counts() bool {
	ch := r.Changes
	return r.Mark().Shape == "v" && r.OrderID == uuid.Nil && ch.Added+ch.Updated+ch.Same+ch.Older > 0
}

// Note says what is odd, or what the event is about.
func (r deliveryRow) Note() toned {
	switch {
	case r.Verdict == inspect.Rejected:
		return toned{"bad", shortReason(r.Reason)}
	case r.DuplicateOf > 0:
		return toned{"", "duplicate of #" + strconv.FormatInt(r.DuplicateOf, 10)}
	case r.Reason != "":
		return toned{"warn", shortReason(r.Reason)}
	case r.Malformed > 0:
		return toned{"warn", countOf(r.Malformed, "malformed field")}
	}
	about := firstChars(r.About, 60)
	if r.OrderID != uuid.Nil && strings.Count(about, ".") == 2 && isKnownStatus(about) {
		about = firstLower(statusWords(about, ""))
	}
	if r.ReplayOf > 0 {
		return toned{"", strings.TrimSuffix("replay of #"+strconv.FormatInt(r.ReplayOf, 10)+", "+about, ", ")}
	}
	if r.Counts() {
		about = ""
	}
	return toned{"", about}
}

func firstLower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// shortReason returns what is wrong, without what may have caused it.
func shortReason(reason string) string {
	if at := strings.IndexAny(reason, ":,"); at > 0 {
		return reason[:at]
	}
	return reason
}

// countOf returns "1 field" or "2 fields".
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ry") {
		what = strings.TrimSuffix(what, "y") + "ie"
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return number(n) + " " + what + "s"
}
