package inspect

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

// describe sets what the body says. A body of a rejected delivery is described too: it helps to
// find the sender.
func (d *record) describe(body []byte) {
	e, err := webhooks.Parse(body)
	if err != nil {
		if d.Reason == "" {
			d.Reason = "not an event"
			if parse := (*webhooks.ParseError)(nil); errors.As(err, &parse) {
				d.Reason = fmt.Sprintf("not an event: at byte %d: %s", parse.Offset, parse.Reason)
			}
		}
		return
	}
	d.Type, d.UserID, d.ClientUserID = shorten(string(e.Type), 100), e.UserID, shorten(e.ClientUserID, 200)
	d.Malformed, d.Unknown = len(e.Malformed()), len(UnknownFields(e))
	d.describeData(e)
	d.subject = subjectOf(e, d.OrderID)
}

// describeData sets what the data says.
func (d *record) describeData(e *webhooks.Event) {
	about := e.Type.Resource()
	switch v := e.Data.(type) {
	case *webhooks.LabOrder:
		d.OrderID, about = v.ID, word(v.CurrentStatus())
	case *webhooks.LabAppointment:
		d.OrderID, about = v.OrderID, "appointment "+word(v.Status)
	case *webhooks.CriticalResult:
		d.OrderID, about = v.OrderID, "critical result, "+word(v.Status)
	case *webhooks.MatchReview:
		about = "match review, " + word(v.Status)
		if v.ResolvedOrderID != nil {
			d.OrderID = *v.ResolvedOrderID
		}
	case *webhooks.Samples:
		about = fmt.Sprintf("%s, %s, %d samples", about, word(v.Source.ProviderSlug()), len(v.Data))
		if len(v.Data) == 1 {
			about = strings.TrimSuffix(about, "s")
		}
	case *webhooks.HistoricalPull:
		about = "history of " + about + ", " + word(v.Provider)
	case *webhooks.ProviderConnection:
		about = word(v.ConnectedProvider().ProviderSlug()) + " connected"
	case *webhooks.ConnectionError:
		about = word(v.Provider) + ": " + word(v.ErrorType)
	case *webhooks.ProviderDevice:
		about = "device"
	case *webhooks.Unknown:
		about = "unknown type"
		if v.Err != nil {
			about = strings.TrimPrefix(v.Err.Error(), "webhooks: ")
		}
	default:
		if source := sourceOf(e.Data); source != "" {
			about += ", " + source
		}
	}
	d.About = shorten(strings.ReplaceAll(about, ", , ", ", "), 80)
}

// sourceOf returns the provider of a summary.
func sourceOf(p webhooks.Payload) string {
	source, _ := FieldOf[webhooks.Source](p, "Source")
	return word(source.ProviderSlug())
}

var words = regexp.MustCompile(`^[a-z0-9_.-]{0,60}$`)

// word returns a status or a slug. Other text is left out: it is shown and printed without being
// asked for, and may be about a patient.
func word[T ~string](text T) string {
	if text = T(strings.ToLower(string(text))); !words.MatchString(string(text)) {
		return "another"
	}
	return string(text)
}

// subjectOf returns what an event is a version of: an order, a summary or a series.
func subjectOf(e *webhooks.Event, orderID uuid.UUID) string {
	if samples, ok := e.Data.(*webhooks.Samples); ok {
		if keys := seriesOf(e, samples); keys != "" {
			return keys
		}
		return ""
	}
	if orderID != uuid.Nil {
		return fmt.Sprintf("%T %s", e.Data, orderID)
	}
	if id, ok := FieldOf[uuid.UUID](e.Data, "ID"); ok && id != uuid.Nil {
		return fmt.Sprintf("%T %s %s %s", e.Data, e.UserID, e.Type.Resource(), id)
	}
	return ""
}

func seriesOf(e *webhooks.Event, samples *webhooks.Samples) string {
	if len(samples.Data) == 0 || e.UserID == uuid.Nil {
		return ""
	}
	kind := string(samples.Source.Type)
	if kind == "" || kind == string(webhooks.SourceTypeUnknown) {
		kind = samples.Data[0].Type
	}
	return fmt.Sprintf("series %s %s %q %q", e.UserID, e.Type.Resource(), shorten(samples.Source.ProviderSlug(), 80), shorten(kind, 80))
}

// statuses returns what identifies the entries in the timeline of an order.
func statuses(o *labhealth.Order) (entries []string) {
	for _, e := range append(slices.Clone(o.Events), o.LastEvent) {
		if e.Status == "" {
			continue
		}
		entries = append(entries, fmt.Sprintf("%s %d", e.Status, e.CreatedAt.UnixNano()))
	}
	return entries
}

// shorten makes text of a sender printable: one line, without control and formatting characters,
// with at most limit characters.
func shorten(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit-1]) + "…"
	}
	return s
}

func idText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
