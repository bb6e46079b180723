package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// deliveryRow is the data of the partial "delivery-row".
type deliveryRow struct {
	Number  int64
	On      bool // its detail is shown
	Path    string
	Mark    deliveryMark
	Type    eventType
	At      time.Time
	Time    string
	Who     string
	Effects []storeEffect
	Note    toned
	End     toned
}

// toned is a text in one of the tones ok, warn and bad, or without one.
type toned struct{ Tone, Text string }

// deliveryMark is the verdict as a shape. Shape is v, r, d or w.
type deliveryMark struct{ Class, Shape, Text string }

// eventType is the type of an event, with the part that matters most in the middle.
type eventType struct{ Start, Middle, End string }

// storeEffect is a number of changes of the store.
type storeEffect struct {
	Text, Title string
	Strong      bool
}

// ElementID returns the ID of the element of the row.
func (r deliveryRow) ElementID() string { return "d" + strconv.FormatInt(r.Number, 10) }

// Say returns what is announced when the row appears.
func (r deliveryRow) Say() string { return r.Type.String() + " " + r.Mark.Text }

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
	at, now := d.ReceivedAt.In(c.zone()), c.Now().In(c.zone())
	row := deliveryRow{Number: d.Number, Path: q.Beside(d.Number), Mark: markOf(d), Type: newEventType(d.Type), At: at, Time: at.Format("15:04:05"), Who: whoOf(d)}
	if !sameDay(at, now) {
		row.Time = at.Format("2 Jan 15:04")
	}
	row.Effects, row.Note = effectsOf(d)
	row.End = endOf(d)
	return row
}

// sameDay reports whether two times of the same zone are on one day.
func sameDay(a, b time.Time) bool { return a.Format(time.DateOnly) == b.Format(time.DateOnly) }

// timeOf formats a time of another delivery, with the day if it is another one than now.
func (c *Console) timeOf(at time.Time) string {
	at, now := at.In(c.zone()), c.Now().In(c.zone())
	if sameDay(at, now) {
		return at.Format("15:04:05")
	}
	return at.Format("2 Jan 15:04:05")
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

func effectsOf(d inspect.Delivery) ([]storeEffect, toned) {
	switch {
	case d.Verdict == inspect.Rejected:
		return nil, toned{"bad", shortReason(d.Reason)}
	case d.DuplicateOf > 0:
		return nil, toned{"", "duplicate of #" + strconv.FormatInt(d.DuplicateOf, 10)}
	case d.Reason != "":
		return nil, toned{"warn", shortReason(d.Reason)}
	case d.Malformed > 0:
		return nil, toned{"warn", countOf(d.Malformed, "malformed field")}
	}
	var effects []storeEffect
	if d.OrderID == uuid.Nil {
		for _, e := range []struct {
			sign, title string
			n           int
		}{{"+", "added", d.Changes.Added}, {"~", "updated", d.Changes.Updated}, {"=", "the same", d.Changes.Same}, {"<", "older than the stored version", d.Changes.Older}} {
			if e.n > 0 {
				effects = append(effects, storeEffect{e.sign + number(e.n), e.title, e.sign == "+" || e.sign == "~"})
			}
		}
	}
	about := visible(firstChars(d.About, 60))
	if d.OrderID != uuid.Nil && strings.Count(about, ".") == 2 && isKnownStatus(about) {
		about = firstLower(statusWords(about, ""))
	}
	if d.ReplayOf > 0 {
		about = strings.TrimSuffix("replay of #"+strconv.FormatInt(d.ReplayOf, 10)+", "+about, ", ")
	}
	if len(effects) > 0 && d.ReplayOf == 0 {
		about = ""
	}
	return effects, toned{"", about}
}

func firstLower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// shortReason returns what is wrong, without what may have caused it.
func shortReason(reason string) string {
	if at := strings.IndexAny(reason, ":,"); at > 0 {
		return reason[:at]
	}
	return reason
}

func endOf(d inspect.Delivery) toned {
	switch f := d.Forward; {
	case d.Verdict == inspect.Rejected:
		return toned{"faint", "not stored"}
	case f == nil && d.DuplicateOf > 0:
		return toned{"faint", "not forwarded"}
	case f == nil:
		return toned{}
	case f.StatusCode == 0:
		return toned{"bad", "→ no response"}
	case f.StatusCode/100 == 2:
		return toned{"ok", fmt.Sprintf("→ %d", f.StatusCode)}
	default:
		return toned{"bad", fmt.Sprintf("→ %d", f.StatusCode)}
	}
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
