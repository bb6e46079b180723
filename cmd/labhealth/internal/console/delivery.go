package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

// detailOptions select what is shown of a delivery.
type detailOptions struct {
	tab    string // diff or body; empty means diff if there is a previous version
	reveal bool   // show hidden values
	query  query  // of the list beside it
}

// deliveryView is the data of the template delivery.
type deliveryView struct {
	inspect.Delivery
	Query      query
	EventType  eventType
	Mark       deliveryMark
	Title      string            // whether the delivery was accepted, and why
	First      *inspect.Delivery // of a duplicate
	StoredAs   [2]string         // what became of it in the store
	Forwarding bool              // an application is set
	Advice     string            // what is wrong with a rejected delivery: headers, clock or secret
	Tab        string
	Previous   *inspect.Delivery // the version that the difference is against
	View       jsonView
	Reveal     bool
	NoBody     bool
	Headers    []headerRow
}

type headerRow struct{ Name, Value, Note string }

// deliveryView returns the view of a delivery, or nil if it does not exist.
func (c *Console) deliveryView(ctx context.Context, n int64, o detailOptions) (*deliveryView, error) {
	d, ok, err := c.Inspector.Get(ctx, n)
	if err != nil || !ok {
		return nil, err
	}
	event, _ := webhooks.Parse(d.Body)
	v := &deliveryView{
		Delivery: d, Query: o.query, EventType: newEventType(d.Type), Mark: markOf(d), Title: titleOf(d), StoredAs: storedAs(d, event),
		Forwarding: c.Inspector.Forward() != "", Advice: adviceOn(d), Reveal: o.reveal, NoBody: d.Body == nil && d.Size > 0, Headers: headerRows(d, c.zone(), o.reveal),
	}
	if previous, ok, err := c.Inspector.Previous(ctx, n); err != nil {
		return nil, err
	} else if ok {
		v.Previous = &previous
	}
	if d.DuplicateOf > 0 {
		if first, ok, err := c.Inspector.Get(ctx, d.DuplicateOf); err != nil {
			return nil, err
		} else if ok {
			v.First = &first
		}
	}
	if v.Tab = "diff"; v.Previous == nil || o.tab == "body" {
		v.Tab = "body"
		v.View = viewJSON(d.Body, bodyOptions(event, o.reveal))
		return v, nil
	}
	before, _ := webhooks.Parse(v.Previous.Body)
	v.View = viewDiff(v.Previous.Body, d.Body, bodyOptions(before, o.reveal), bodyOptions(event, o.reveal))
	return v, nil
}

// Tabs are the views of the body.
func (v *deliveryView) Tabs() (tabs []chipView) {
	for _, t := range [][2]string{{"Difference", "diff"}, {"Body", "body"}} {
		if t[1] == "body" || v.Previous != nil {
			tabs = append(tabs, chipView{Name: t[0], Path: v.Query.with("tab", t[1]).Beside(v.Number), Current: t[1] == v.Tab})
		}
	}
	return tabs
}

// Warning is what the response of the application shows.
func (v *deliveryView) Warning() string { return asSentence(v.Finding()) }

// bodyOptions returns how the body of an event is shown. event is nil for a body that is none.
func bodyOptions(event *webhooks.Event, reveal bool) jsonOptions {
	options := jsonOptions{Reveal: reveal, HideAll: event == nil}
	if event == nil {
		return options
	}
	options.Kept = keptFields(event.Malformed(), inspect.UnknownFields(event))
	if _, ok := event.Data.(*webhooks.Unknown); ok {
		options.Kept["data"] = "no type of the library"
	}
	return options
}

// keptFields says what is odd of the fields that the library keeps as they were received.
func keptFields(malformed []labhealth.Malformed, unknown []string) map[string]string {
	kept := map[string]string{}
	for _, m := range malformed {
		kept[m.Path] = "malformed: no " + m.Want
	}
	for _, path := range unknown {
		kept[path] = "unknown field"
	}
	return kept
}

// Who names the user.
func (v *deliveryView) Who() string { return userName(v.Delivery) }

func userName(d inspect.Delivery) string {
	if d.ClientUserID != "" {
		return visible(firstChars(d.ClientUserID, 40))
	}
	return "user " + d.UserID.String()[:8]
}

// titleOf says whether a delivery was accepted, and why.
func titleOf(d inspect.Delivery) string {
	accepted := "Verified"
	if d.Verdict == inspect.Unsigned {
		accepted = "Accepted without a signature"
	}
	switch {
	case d.Verdict == inspect.Rejected:
		return "Rejected: " + shortReason(d.Reason)
	case d.DuplicateOf > 0:
		return accepted + ", and a duplicate"
	case d.Reason != "":
		return accepted + ", but " + d.Reason
	case !d.Applied:
		return accepted + ", and waits for the store"
	case d.Transitions == 0 && changesText(d.Changes) == "":
		return accepted
	}
	return accepted + " and stored"
}

// storedAs says what became of a delivery in the store.
func storedAs(d inspect.Delivery, event *webhooks.Event) [2]string {
	ch := d.Changes
	total := ch.Added + ch.Updated + ch.Same + ch.Older + ch.Repeated + ch.Keyless
	switch {
	case d.Verdict == inspect.Rejected:
		return [2]string{"Nothing", "it is only shown here"}
	case d.DuplicateOf > 0:
		return [2]string{"Nothing new", "each delivery counts once"}
	case !d.Applied:
		return [2]string{"Not yet", "it waits for the store"}
	case total == 0 && d.Transitions == 0:
		return [2]string{"Nothing", "the store keeps orders and wearable data"}
	case d.Transitions > 0:
		return [2]string{countOf(d.Transitions, "new status"), changesText(ch)}
	}
	samples := false
	if event != nil { // nil if the body was too large to be kept
		_, samples = event.Data.(*webhooks.Samples)
	}
	if samples {
		return [2]string{fmt.Sprintf("%s of %s new", number(ch.Added+ch.Updated), number(total)), changesText(ch)}
	}
	if ch.Added+ch.Updated > 0 {
		return [2]string{"A new version", changesText(ch)}
	}
	return [2]string{"Nothing new", changesText(ch)}
}

func changesText(ch webhooks.Changes) string {
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{{ch.Added, "added"}, {ch.Updated, "updated"}, {ch.Same, "same"}, {ch.Older, "older"}, {ch.Repeated, "repeated"}, {ch.Keyless, "without a key"}} {
		if p.n > 0 {
			parts = append(parts, number(p.n)+" "+p.text)
		}
	}
	return strings.Join(parts, ", ")
}

// sentence returns an error as a sentence, without the name of a package.
func sentence(err error) string {
	return asSentence(withoutPackage(err))
}

func withoutPackage(err error) string {
	text := err.Error()
	for _, name := range []string{"labhealthtest: ", "labhealth: ", "inspect: "} {
		text = strings.TrimPrefix(text, name)
	}
	return text
}

// asSentence returns a text with a capital letter and a full stop, or "".
func asSentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// tookText formats a duration as 12 ms or 1.2 s.
func tookText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// sizeOf formats a size as 812 B, 9.8 kB or 1.2 MB.
func sizeOf(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}

// adviceOn returns what is wrong with a rejected delivery: headers, clock or secret.
func adviceOn(d inspect.Delivery) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(d.Reason), word) })
	}
	switch {
	case d.Verdict != inspect.Rejected:
		return ""
	case has("header"):
		return "headers"
	case has("old", "ago", "time", "ahead", "signed"):
		return "clock"
	}
	return "secret"
}

// signatureHeaders come first, because they are what is verified.
var signatureHeaders = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Svix-Id", "Svix-Timestamp", "Svix-Signature"}

func headerRows(d inspect.Delivery, zone *time.Location, reveal bool) (rows []headerRow) {
	isOther := func(name string) bool { return !slices.Contains(signatureHeaders, name) }
	names := slices.Sorted(maps.Keys(d.Header))
	for _, name := range slices.Concat(slices.DeleteFunc(slices.Clone(names), isOther), slices.DeleteFunc(names, func(name string) bool { return !isOther(name) })) {
		for _, value := range d.Header[name] {
			row := headerRow{Name: strings.ToLower(name), Value: firstChars(value, 1000)}
			if seconds, err := strconv.ParseInt(value, 10, 40); err == nil && strings.HasSuffix(name, "-Timestamp") && !isOther(name) {
				at := time.Unix(seconds, 0)
				row.Note = at.In(zone).Format("15:04:05") + ", " + age(max(d.ReceivedAt.Sub(at), at.Sub(d.ReceivedAt)))
				row.Note += map[bool]string{true: " after it was received", false: " before it was received"}[at.After(d.ReceivedAt)]
			}
			if isSecretHeader(name) || !reveal && !isKnownHeader(name) {
				row.Value = mask
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// isSecretHeader reports whether the value of a header lets others in.
func isSecretHeader(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Service-Api-Key", "X-Management-Key":
		return true
	}
	return false
}

// isKnownHeader reports whether a header says something of the connection or the signature. Others
// may have anything, and are shown when the hidden values are asked for.
func isKnownHeader(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Content-Encoding", "Content-Length", "Content-Type", "User-Agent", "Date", "Host", "Via", "Traceparent",
		"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip", "X-Request-Id", "Forwarded":
		return true
	}
	return slices.Contains(signatureHeaders, name)
}
