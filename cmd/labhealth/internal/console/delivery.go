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

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

// detailOptions select what is shown of a delivery.
type detailOptions struct {
	tab       string // diff, body or go; empty means diff if there is a previous version
	reveal    bool   // show hidden values
	factsOnly bool
	query     deliveryQuery // of the list beside it
}

// deliveryView is the data of the template delivery.
type deliveryView struct {
	Number   int64
	ID       string
	Type     eventType
	Path     string // of its actions
	Close    string // address of the list
	Verdict  deliveryVerdict
	Facts    []deliveryFact
	Finding  string // what the response of the application shows
	Advice   *advice
	Why      *whyTwice
	Store    *storeView
	ReplayOf int64

	Tabs     []deliveryTab
	Tab      string
	Previous *previousVersion
	Body     jsonView
	Typed    eventView
	Hidden   bool // a hidden value can be shown
	Reveal   bool
	NoBody   bool

	RevealPath   string
	Downloadable bool
	Headers      []headerRow
	Replays      []replayAll
}

// verdict says whether the delivery was accepted, and why.
type deliveryVerdict struct {
	Mark   deliveryMark
	Bad    bool
	Title  string
	Checks []deliveryCheck
}

type deliveryCheck struct {
	Mark deliveryMark
	Bad  bool
	Text string
	Path string // of the delivery that it is about
	Link string
}

// deliveryFact is one of the four steps of a delivery.
type deliveryFact struct{ Label, Tone, Lead, Text string }

// advice is what to do about a rejected delivery.
type advice struct{ Steps []adviceStep }

type adviceStep struct{ Title, Text, Command string }

// whyTwice says why a delivery has been received more than once.
type whyTwice struct{ Text, Path, Link string }

type deliveryTab struct {
	Name, Path string
	Current    bool
}

// previousVersion is the delivery that the difference is against.
type previousVersion struct {
	Path, Time string
	Number     int64
}

type headerRow struct{ Name, Value, Note string }

// replayAll replays all deliveries of an order or a user.
type replayAll struct{ Name, Path string }

// deliveryView returns the view of a delivery, or nil if it does not exist.
func (c *Console) deliveryView(ctx context.Context, n int64, o detailOptions) (*deliveryView, error) {
	d, ok, err := c.Inspector.Get(ctx, n)
	if err != nil || !ok {
		return nil, err
	}
	previous, hasPrevious, err := c.Inspector.Previous(ctx, n)
	if err != nil {
		return nil, err
	}
	event, _ := webhooks.Parse(d.Body)
	view := &deliveryView{Number: n, ID: visible(d.ID), Type: newEventType(d.Type), Path: fmt.Sprintf("/console/deliveries/%d", n), ReplayOf: d.ReplayOf}
	var first *inspect.Delivery
	if d.DuplicateOf > 0 {
		if f, ok, err := c.Inspector.Get(ctx, d.DuplicateOf); err != nil {
			return nil, err
		} else if ok {
			first = &f
		}
	}
	view.Verdict = c.verdict(d, first)
	view.Facts = c.facts(d, event)
	view.Finding = asSentence(visible(d.Finding()))
	var before *inspect.Delivery
	if hasPrevious {
		before = &previous
	}
	if view.Store, err = c.storeView(ctx, d, event, before); err != nil || o.factsOnly {
		return view, err
	}
	view.Advice = adviceOn(d)
	view.Why = c.whyTwice(d, first)
	view.Close = o.query.path(0)
	view.Headers = headerRows(d, c.zone(), o.reveal)
	view.replays(d)
	view.showBody(c, d, event, before, o)
	return view, nil
}

// showBody fills the tab that is shown.
func (v *deliveryView) showBody(c *Console, d inspect.Delivery, event *webhooks.Event, previous *inspect.Delivery, o detailOptions) {
	v.Tab, v.Reveal, v.NoBody = o.tab, o.reveal, d.Body == nil && d.Size > 0
	if v.Tab != "body" && v.Tab != "go" && v.Tab != "diff" || v.Tab == "diff" && previous == nil {
		v.Tab = "diff"
		if previous == nil {
			v.Tab = "body"
		}
	}
	for _, t := range []struct{ name, key string }{{"Difference", "diff"}, {"Body", "body"}, {"As Go reads it", "go"}} {
		if t.key == "diff" && previous == nil {
			continue
		}
		q := o.query.path(d.Number)
		separator := "?"
		if strings.Contains(q, "?") {
			separator = "&"
		}
		v.Tabs = append(v.Tabs, deliveryTab{t.name, q + separator + "tab=" + t.key, t.key == v.Tab})
	}
	v.RevealPath = v.Path + "/reveal?tab=" + v.Tab + "#body"
	v.Downloadable = v.Tab == "body"
	switch v.Tab {
	case "diff":
		v.Previous = &previousVersion{o.query.path(previous.Number), c.timeOf(previous.ReceivedAt), previous.Number}
		v.Body = viewDiff(previous.Body, d.Body, previousOptions(previous, o.reveal), bodyOptions(event, o.reveal))
		v.Hidden = v.Body.Hidden
	case "body":
		options := bodyOptions(event, o.reveal)
		options.Compact = true
		v.Body = viewJSON(d.Body, options)
		v.Hidden = v.Body.Hidden
	case "go":
		v.Typed = newEventView(d.Body, event, o.reveal)
		v.Hidden = v.Typed.Hidden
	}
}

// bodyOptions returns how the body of an event is shown. event is nil for a body that is none.
func bodyOptions(event *webhooks.Event, reveal bool) jsonOptions {
	return jsonOptions{Reveal: reveal, HideAll: event == nil, Kept: keptPaths(event)}
}

func previousOptions(previous *inspect.Delivery, reveal bool) jsonOptions {
	if reveal {
		return jsonOptions{Reveal: true}
	}
	event, _ := webhooks.Parse(previous.Body)
	return bodyOptions(event, false)
}

func (v *deliveryView) replays(d inspect.Delivery) {
	const path = "/console/deliveries/replay?q="
	if d.OrderID != uuid.Nil {
		v.Replays = append(v.Replays, replayAll{"All of order " + d.OrderID.String()[:8], path + "order%3A" + d.OrderID.String()})
	}
	if d.UserID != uuid.Nil {
		v.Replays = append(v.Replays, replayAll{"All of " + userName(d), path + "user%3A" + d.UserID.String()})
	}
}

func userName(d inspect.Delivery) string {
	if d.ClientUserID != "" {
		return visible(firstChars(d.ClientUserID, 40))
	}
	return "user " + d.UserID.String()[:8]
}

func (c *Console) verdict(d inspect.Delivery, first *inspect.Delivery) deliveryVerdict {
	v := deliveryVerdict{Mark: markOf(d), Bad: d.Verdict == inspect.Rejected}
	accepted := "Verified"
	if d.Verdict == inspect.Unsigned {
		accepted = "Accepted without a signature"
	}
	switch {
	case v.Bad:
		v.Title = "Rejected: " + shortReason(d.Reason)
	case d.DuplicateOf > 0:
		v.Title = accepted + ", and a duplicate"
	case d.Reason != "":
		v.Title = accepted + ", but " + d.Reason
	case !d.Applied:
		v.Title = accepted + ", and waits for the store"
	case storesNothing(d):
		v.Title = accepted
	default:
		v.Title = accepted + " and stored"
	}
	for _, check := range d.Checks {
		mark := deliveryMark{"ok", "v", "passed"}
		if !check.Passed {
			mark = deliveryMark{"bad", "r", "failed"}
		}
		v.Checks = append(v.Checks, deliveryCheck{Mark: mark, Bad: !check.Passed, Text: check.Text})
	}
	if first != nil {
		v.Checks = append(v.Checks, deliveryCheck{Mark: deliveryMark{"dup", "d", "duplicate"}, Text: "this ID was received at",
			Path: fmt.Sprintf("/console/deliveries/%d", first.Number), Link: c.timeOf(first.ReceivedAt)})
	}
	return v
}

// storesNothing reports whether the store has nothing of a delivery that it has processed.
func storesNothing(d inspect.Delivery) bool {
	ch := d.Changes
	return ch.Added+ch.Updated+ch.Same+ch.Older+ch.Keyless == 0 && d.Transitions == 0
}

// facts are the four steps: received, stored, forwarded, responded.
func (c *Console) facts(d inspect.Delivery, event *webhooks.Event) []deliveryFact {
	return []deliveryFact{
		{"Received", "", d.ReceivedAt.In(c.zone()).Format("15:04:05.000"), fmt.Sprintf("attempt %d, %s", max(1, d.Attempt), sizeOf(d.Size))},
		storedFact(d, event),
		c.forwardedFact(d),
		respondedFact(d),
	}
}

func storedFact(d inspect.Delivery, event *webhooks.Event) deliveryFact {
	f := deliveryFact{Label: "Stored", Lead: "Nothing"}
	ch := d.Changes
	total := ch.Added + ch.Updated + ch.Same + ch.Older + ch.Repeated + ch.Keyless
	switch {
	case d.Verdict == inspect.Rejected:
		f.Text = "it is only shown here"
	case d.DuplicateOf > 0:
		f.Lead, f.Text = "Nothing new", "each delivery counts once"
	case !d.Applied:
		f.Lead, f.Text = "Not yet", "it waits for the store"
	case total == 0 && d.Transitions == 0:
		f.Text = "the store keeps orders and wearable data"
	case d.Transitions > 0:
		f.Lead, f.Text = countOf(d.Transitions, "new status"), changesText(ch)
	default:
		f.Lead, f.Text = fmt.Sprintf("%s of %s new", number(ch.Added+ch.Updated), number(total)), changesText(ch)
		if _, samples := dataOf(event).(*webhooks.Samples); !samples {
			f.Lead = "Nothing new"
			if ch.Added+ch.Updated > 0 {
				f.Lead = "A new version"
			}
		}
	}
	return f
}

func dataOf(event *webhooks.Event) webhooks.Payload {
	if event == nil {
		return nil
	}
	return event.Data
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

func (c *Console) forwardedFact(d inspect.Delivery) deliveryFact {
	f := deliveryFact{Label: "Forwarded", Lead: "No"}
	switch forward := d.Forward; {
	case forward == nil && d.Verdict == inspect.Rejected:
		f.Text = "only accepted deliveries are"
	case forward == nil && c.Inspector.Forward() == "":
		f.Text = "no application is set"
	case forward == nil:
		f.Text = "no application was set"
		if d.StatusCode == 0 {
			f.Lead, f.Text = "Waiting", "for the application"
		}
	case forward.StatusCode == 0:
		f.Tone, f.Lead, f.Text = "bad", "No response", firstChars(visible(forward.Err), 120)
	default:
		f.Tone, f.Lead, f.Text = "ok", fmt.Sprintf("%d in %s", forward.StatusCode, tookText(forward.Took)), shortURL(forward.URL)
		if forward.StatusCode/100 != 2 {
			f.Tone = "bad"
		}
	}
	return f
}

// sentence returns an error as a sentence, without the name of a package.
func sentence(err error) string {
	text := err.Error()
	for _, name := range []string{"labhealthtest: ", "labhealth: ", "inspect: "} {
		text = strings.TrimPrefix(text, name)
	}
	return asSentence(text)
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

func respondedFact(d inspect.Delivery) deliveryFact {
	f := deliveryFact{Label: "Our response", Lead: fmt.Sprintf("%d in %s", d.StatusCode, tookText(d.Took))}
	switch {
	case d.StatusCode == 0:
		f.Lead, f.Text = "Not yet", "it is being processed"
	case d.StatusCode/100 == 2:
		f.Text = "the sender is done"
	default:
		f.Tone, f.Text = "bad", "the sender tries again"
	}
	return f
}

// took formats a duration as 12 ms or 1.2 s.
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

// adviceOn returns what to do about a rejected delivery, or nil.
func adviceOn(d inspect.Delivery) *advice {
	if d.Verdict != inspect.Rejected {
		return nil
	}
	proxy := adviceStep{"Look between the sender and this receiver.",
		"A proxy that encodes the JSON again changes the bytes that were signed: the signature covers the body as it was sent, spaces included.", ""}
	words := strings.ToLower(d.Reason)
	switch {
	case strings.Contains(words, "header"):
		return &advice{[]adviceStep{
			{"Find out who sent it.", "The service signs every delivery. A request without the three headers webhook-id, webhook-timestamp and webhook-signature, or the same with svix-, is not from the service.", ""},
			{"Look between the sender and this receiver.", "Some proxies and tunnels remove headers that they do not know.", ""},
		}}
	case strings.Contains(words, "old"), strings.Contains(words, "ago"), strings.Contains(words, "time"), strings.Contains(words, "ahead"), strings.Contains(words, "signed"):
		return &advice{[]adviceStep{
			{"Compare the clocks.", "A signature is valid for five minutes before and after its timestamp. Synchronize the clock of this machine and of the sender.", ""},
			{"Send it again.", "A replay has a new timestamp and a new signature. A program that repeats stored requests with their old headers is rejected by every receiver.", ""},
		}}
	default:
		return &advice{[]adviceStep{
			{"Compare the secret.", "The endpoint has another secret than this receiver, or was given a new one. While a secret is rotated, pass both.", "labhealth webhooks secret"},
			proxy,
		}}
	}
}

func (c *Console) whyTwice(d inspect.Delivery, first *inspect.Delivery) *whyTwice {
	if first == nil {
		return nil
	}
	w := &whyTwice{Path: fmt.Sprintf("/console/deliveries/%d", first.Number), Link: "#" + strconv.FormatInt(first.Number, 10)}
	switch {
	case d.ReplayOf > 0:
		w.Text = "It was replayed with the same ID. An application that counts events counts this one twice."
	case first.StatusCode != 0 && first.StatusCode/100 != 2:
		w.Text = fmt.Sprintf("Our response was %d, so the sender tried again.", first.StatusCode)
	default:
		w.Text = "Our response was lost on its way, or the sender has sent it twice. An application that counts events counts this one twice."
	}
	return w
}

// signatureHeaders come first, because they are what is verified.
var signatureHeaders = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Svix-Id", "Svix-Timestamp", "Svix-Signature"}

func headerRows(d inspect.Delivery, zone *time.Location, reveal bool) []headerRow {
	var rows []headerRow
	rank := func(name string) int {
		if slices.Contains(signatureHeaders, name) {
			return 0
		}
		return 1
	}
	names := slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(d.Header))), func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		for _, value := range d.Header[name] {
			row := headerRow{Name: strings.ToLower(visible(name)), Value: firstChars(visible(value), 1000)}
			if strings.HasSuffix(name, "-Timestamp") && rank(name) == 0 {
				row.Note = timestampNote(value, d.ReceivedAt, zone)
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

func timestampNote(value string, received time.Time, zone *time.Location) string {
	seconds, err := strconv.ParseInt(value, 10, 40)
	if err != nil {
		return ""
	}
	at := time.Unix(seconds, 0)
	text := at.In(zone).Format("15:04:05")
	switch before := received.Sub(at); {
	case before >= 0:
		return text + ", " + age(before) + " before it was received"
	default:
		return text + ", " + age(-before) + " after it was received"
	}
}
