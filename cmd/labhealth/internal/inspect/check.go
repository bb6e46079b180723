package inspect

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// CheckOptions configures CheckApplication.
type CheckOptions struct {
	// Page is a path of the application, such as /orders/{id}, that shows an invented order. {id}
	// is replaced by its ID. Without it, only status codes are checked.
	Page string
	// StoreDown says that the database of the application has been stopped: the application must
	// not acknowledge what it cannot store.
	StoreDown bool
}

// Probe is one step of CheckApplication.
type Probe struct {
	Name    string // what was sent, or looked at
	Want    string // the correct result
	Got     string
	Passed  bool
	Unclear bool   // passed, but see Finding
	Finding string // what the result means, if it is not as it should be
}

// pageWait is how long a page of the application may take to show what was delivered.
var pageWait = 4 * time.Second

// CheckApplication sends deliveries of invented orders directly to the application: valid, forged,
// old, repeated, late and unknown ones. It compares the responses with what they should be. Nothing
// of it is stored here. It stops when no valid delivery is accepted or there is no response.
func (i *Inspector) CheckApplication(ctx context.Context, o CheckOptions) ([]Probe, error) {
	if !i.enter() {
		return nil, errClosed
	}
	defer i.requests.Done()
	c := applicationCheck{inspector: i, target: i.Forward(), user: uuid.New(), options: o}
	switch {
	case c.target == "":
		return nil, errors.New("inspect: no application is set: forward deliveries to one first")
	case i.verifier.Load() == webhooks.Unsigned:
		return nil, errors.New("inspect: there is no signing secret, which the check needs")
	}
	if err := c.setPage(); err != nil {
		return nil, err
	}
	c.run(ctx)
	return c.probes, ctx.Err()
}

// applicationCheck is a check in progress.
type applicationCheck struct {
	inspector *Inspector
	target    string
	page      *url.URL // nil without a page
	user      uuid.UUID
	options   CheckOptions
	probes    []Probe
	ended     bool // there was no response
}

// setPage resolves the path of the page on the host of the application.
func (c *applicationCheck) setPage() error {
	if c.options.Page == "" {
		return nil
	}
	application, err := url.Parse(c.target)
	if err != nil {
		return err
	}
	page, err := url.Parse(c.options.Page)
	if err != nil || page.Host != "" || page.Scheme != "" || !strings.HasPrefix(page.Path, "/") {
		return errors.New("inspect: the page must be a path of the application, such as /orders/{id}")
	}
	page.Scheme, page.Host, page.User = application.Scheme, application.Host, application.User
	c.page = page
	return nil
}

func (c *applicationCheck) run(ctx context.Context) {
	order, other := uuid.New(), uuid.New()
	created, completed := c.orderBody("labtest.order.created", order, false), c.orderBody("labtest.order.updated", order, true)
	if c.options.StoreDown {
		c.storeDown(ctx, created)
		return
	}
	first := c.signed(created)
	if !c.accepts(ctx, "A created order", first, created, "") {
		c.diagnose(ctx, created)
		return
	}
	page := c.shows(ctx, "The order on the page", order)
	c.accepts(ctx, "The same delivery again", first, created,
		"The sender repeats a delivery until it is acknowledged, with the same ID. Acknowledge a duplicate, and do nothing else.")
	c.once(ctx, order, page)
	c.accepts(ctx, "An update of the order", c.signed(completed), completed,
		"The sender repeats it until it is acknowledged. Most events of an order are updates.")
	latest := c.changes(ctx, order, page)
	c.accepts(ctx, "The created event with a new ID, after the update", c.signed(created), created,
		"Events arrive in any order. Acknowledge one that is older than what is stored, and keep what is stored.")
	c.keeps(ctx, order, page, latest)
	early := c.orderBody("labtest.order.updated", other, true)
	c.accepts(ctx, "An update of an order that was never created", c.signed(early), early,
		"Events arrive in any order: store the order from the update.")
	c.shows(ctx, "That order on the page", other)
	unknown := []byte(`{"event_type":"labtest.check.invented","data":{"id":"` + order.String() + `"},"user_id":"` + c.user.String() + `"}`)
	c.accepts(ctx, "An unknown type of event", c.signed(unknown), unknown,
		"The service adds types. Acknowledge and ignore those that the application does not use: the sender repeats the others until it gives up.")
	c.forged(ctx, created)
	spaced := []byte(strings.Replace(string(created), `{"event_type":`, `{ "event_type" : `, 1))
	c.accepts(ctx, "Valid, with spaces in the JSON", c.signed(spaced), spaced,
		"Verify the received bytes: the application verifies a body that it has parsed and encoded again.")
	rotated := c.signed(created)
	rotated.Set("Svix-Signature", wrongSignature+" "+rotated.Get("Svix-Signature"))
	c.accepts(ctx, "Valid, with two signatures", rotated, created,
		"During a rotation of the secret, the header has two signatures, separated by a space. Accept the delivery if either matches.")
}

// wrongSignature matches nothing.
var wrongSignature = "v1," + base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))

// forged sends what must be rejected.
func (c *applicationCheck) forged(ctx context.Context, body []byte) {
	unsigned := c.signed(body)
	unsigned.Del("Svix-Signature")
	wrong := c.signed(body)
	wrong.Set("Svix-Signature", wrongSignature)
	old := c.signedAt(body, c.inspector.config.Now().Add(-10*time.Minute))
	for _, p := range []struct {
		name, finding string
		header        http.Header
		body          []byte
	}{
		{"Without a signature", "Anyone who knows the URL can send events. Reject what has no signature.", unsigned, body},
		{"With a wrong signature", "Anyone who knows the URL can send events. Compare the signature, and reject what does not match.", wrong, body},
		{"Changed after it was signed", "The signature does not cover the body: sign id.timestamp.body with the received bytes.", c.signed(body), bytes.Replace(body, []byte(`"CHECK"`), []byte(`"OTHER"`), 1)},
		{"Signed ten minutes ago", "A recorded delivery can be sent again later. Reject timestamps that are older than five minutes.", old, body},
	} {
		c.rejects(ctx, p.name, p.header, p.body, p.finding)
	}
}

// storeDown sends a valid delivery, which the application cannot store.
func (c *applicationCheck) storeDown(ctx context.Context, body []byte) {
	f := c.send(ctx, c.signed(body), body)
	p := Probe{Name: "A created order, while the database is down", Want: "5xx", Got: f.result(), Passed: f.StatusCode/100 != 2}
	switch {
	case !p.Passed:
		p.Finding = "It acknowledges a delivery that it has not stored. The sender does not repeat it: the event is lost. Respond after the commit."
	case f.StatusCode == 401 || f.StatusCode == 403:
		p.Unclear, p.Finding = true, "It was rejected before it was stored. Check first with the database running."
	case f.StatusCode == 0:
		p.Unclear, p.Finding = true, "The sender repeats it, but 503 says why: "+f.Err+"."
	}
	c.probes = append(c.probes, p)
}

// accepts sends what must be acknowledged, and reports whether it was. Without a response, the check
// ends.
func (c *applicationCheck) accepts(ctx context.Context, name string, header http.Header, body []byte, finding string) bool {
	if c.ended {
		return false
	}
	f := c.send(ctx, header, body)
	p := Probe{Name: name, Want: "2xx", Got: f.result(), Passed: f.StatusCode/100 == 2}
	d := Delivery{Verdict: Verified, Forward: f, Size: len(body)}
	if p.Finding = d.Finding(); !p.Passed && finding != "" && f.StatusCode != 0 {
		p.Finding = finding
	} else if f.StatusCode >= 500 {
		p.Finding += ". If it fetches the order from the service: this order is invented, so that there is none"
	}
	p.Unclear = p.Passed && p.Finding != ""
	c.probes = append(c.probes, p)
	c.ended = f.StatusCode == 0
	return p.Passed
}

// rejects sends what must be rejected.
func (c *applicationCheck) rejects(ctx context.Context, name string, header http.Header, body []byte, finding string) {
	if c.ended {
		return
	}
	f := c.send(ctx, header, body)
	p := Probe{Name: name, Want: "4xx", Got: f.result(), Passed: f.StatusCode/100 == 4}
	switch {
	case f.StatusCode/100 == 2:
		p.Finding = finding
	case !p.Passed:
		p.Finding = "It is not accepted, but the application fails instead of responding 401."
	}
	c.probes = append(c.probes, p)
}

// diagnose tries what the application may verify instead, after it has rejected a valid delivery.
func (c *applicationCheck) diagnose(ctx context.Context, body []byte) {
	p := &c.probes[len(c.probes)-1]
	if f := p.Got; !strings.HasPrefix(f, "4") {
		return
	}
	tried := 0
	for _, secret := range *c.inspector.secrets.Load() {
		for _, m := range mistakes(secret) {
			id, at := newID(), strconv.FormatInt(c.inspector.config.Now().Unix(), 10)
			mac := hmac.New(sha256.New, m.key)
			mac.Write([]byte(strings.NewReplacer("ID", id, "TIME", at).Replace(m.prefix)))
			mac.Write(m.content(body))
			header := http.Header{"Content-Type": {"application/json"}}
			for name, value := range map[string]string{"Id": id, "Timestamp": at, "Signature": m.encode(mac.Sum(nil))} {
				header.Set(m.names+name, value)
			}
			if f := c.send(ctx, header, body); f.StatusCode/100 == 2 {
				p.Finding = m.finding
				return
			}
			tried++
		}
	}
	if strings.HasPrefix(p.Got, "401") || strings.HasPrefix(p.Got, "403") {
		p.Finding = fmt.Sprintf("The application rejects a valid signature, and %d other ways to sign, such as with a secret that is not decoded: it has another secret, verifies a body that it has changed, or asks for other credentials. "+
			"Compare its secret with the one here, and log the bytes that it verifies", tried)
	}
}

// mistake is a wrong way to verify.
type mistake struct {
	key                    []byte
	prefix, names, finding string
	encode                 func([]byte) string
	content                func(body []byte) []byte // that is verified
}

func mistakes(secret string) []mistake {
	const all = "ID.TIME."
	text := strings.TrimPrefix(secret, "whsec_")
	key, _ := base64.StdEncoding.DecodeString(text)
	bare := base64.StdEncoding.EncodeToString
	v1 := func(b []byte) string { return "v1," + bare(b) }
	inHex := func(b []byte) string { return fmt.Sprintf("v1,%x", b) }
	const signed = "The application verifies something else than id.timestamp.body, where id and timestamp are the values of the headers: "
	received := func(body []byte) []byte { return body }
	encoded := func(body []byte) []byte { // with the fields in another order
		var document any
		_ = json.Unmarshal(body, &document) // it is our own
		again, _ := json.Marshal(document)
		return again
	}
	return []mistake{
		{[]byte(secret), all, "Svix-", "The application uses the text of the secret as the key. The key is what follows whsec_, decoded from base64.", v1, received},
		{[]byte(text), all, "Svix-", "The application does not decode the secret: the key is what follows whsec_, decoded from base64.", v1, received},
		{key, "", "Svix-", signed + "it leaves out the ID and the timestamp.", v1, received},
		{key, "TIME.", "Svix-", signed + "it leaves out the ID.", v1, received},
		{key, "ID.", "Svix-", signed + "it leaves out the timestamp.", v1, received},
		{key, all, "Svix-", "The application compares the signature without its version: remove v1, from each signature of the header first.", bare, received},
		{key, all, "Svix-", "The application compares hexadecimal signatures. They are base64.", inHex, received},
		{key, all, "Webhook-", "The application reads the headers webhook-id, webhook-timestamp and webhook-signature only. The service sends svix-id, svix-timestamp and svix-signature.", v1, received},
		{key, all, "Svix-", "The application verifies a body that it has parsed and encoded again. Verify the received bytes.", v1, encoded},
	}
}

// shows waits until the page of the application has the ID of an order, and returns it.
func (c *applicationCheck) shows(ctx context.Context, name string, order uuid.UUID) string {
	return c.look(ctx, name, "the ID is there", order, func(page string) bool { return strings.Contains(page, order.String()) },
		"The delivery was acknowledged and the order is not there: the application ignores the event, or has lost it.")
}

// changes waits until the page of an order is another one than before the update, and returns it.
func (c *applicationCheck) changes(ctx context.Context, order uuid.UUID, before string) string {
	if !strings.Contains(before, order.String()) {
		return ""
	}
	return c.look(ctx, "The page after the update", "it has changed", order, func(page string) bool { return page != "" && page != before },
		"The update was acknowledged and the page is the same as before: the application ignores labtest.order.updated, or the page does not show the status.")
}

// look waits until a page is as it should be.
func (c *applicationCheck) look(ctx context.Context, name, want string, order uuid.UUID, ok func(page string) bool, finding string) string {
	if c.page == nil || c.ended {
		return ""
	}
	p, start := Probe{Name: name, Want: want}, time.Now()
	for first := true; ; first = false {
		page, problem := c.get(ctx, order)
		took := time.Since(start)
		switch {
		case problem == "" && ok(page):
			p.Passed, p.Got = true, "at once"
			if !first {
				p.Got = fmt.Sprintf("after %d ms", took.Milliseconds())
				p.Unclear, p.Finding = true, "It was acknowledged before the page showed it. That is correct if the delivery was already stored, in a queue that survives a crash. Stop the database and check again."
			}
		case took < pageWait && sleep(ctx, 50*time.Millisecond) == nil:
			continue
		case problem != "":
			p.Got, p.Finding = problem, finding
		default:
			p.Got, p.Finding = "no", finding
		}
		c.probes = append(c.probes, p)
		return page
	}
}

// once checks that a duplicate has not added the order a second time. It needs the page before it.
func (c *applicationCheck) once(ctx context.Context, order uuid.UUID, before string) {
	if !strings.Contains(before, order.String()) {
		return
	}
	c.still(ctx, order, Probe{Name: "The page after the duplicate", Want: "the order is there once", Got: "more often",
		Finding: "The application processes a delivery again. Store the ID of each delivery, and skip those that are stored."},
		func(page string) bool {
			return strings.Count(page, order.String()) > strings.Count(before, order.String())
		}, "once")
}

// keeps checks that an event that is older than the update has not replaced it.
func (c *applicationCheck) keeps(ctx context.Context, order uuid.UUID, before, after string) {
	if after == "" || after == before {
		return
	}
	c.still(ctx, order, Probe{Name: "The page after the late event", Want: "the update is still there", Got: "as before the update",
		Finding: "The application keeps what arrives last. Compare updated_at, or fetch the order from the service."},
		func(page string) bool { return page == before }, "it is")
}

// still adds a probe, which fails if the page has become wrong after a moment.
func (c *applicationCheck) still(ctx context.Context, order uuid.UUID, p Probe, isWrong func(page string) bool, right string) {
	if c.ended || sleep(ctx, pageWait/20) != nil {
		return
	}
	if page, _ := c.get(ctx, order); !isWrong(page) {
		p.Passed, p.Got, p.Finding = true, right, ""
	}
	c.probes = append(c.probes, p)
}

// get returns a page of the application.
func (c *applicationCheck) get(ctx context.Context, order uuid.UUID) (page, problem string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	u := *c.page
	u.Path, u.RawPath = strings.ReplaceAll(u.Path, "{id}", order.String()), ""
	u.RawQuery = strings.NewReplacer("{id}", order.String(), "%7Bid%7D", order.String()).Replace(u.RawQuery)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return "", "the URL is malformed"
	}
	response, err := c.inspector.forwarder.Do(r)
	if err != nil {
		return "", explain(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Sprintf("GET responded %d", response.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return "", explain(ctx, err)
	}
	return string(b), ""
}

func (c *applicationCheck) send(ctx context.Context, header http.Header, body []byte) *Forward {
	return c.inspector.forward(ctx, c.target, header, body)
}

// signed returns the headers of a valid delivery with a new ID.
func (c *applicationCheck) signed(body []byte) http.Header {
	return c.signedAt(body, c.inspector.config.Now())
}

func (c *applicationCheck) signedAt(body []byte, at time.Time) http.Header {
	header, _ := NewHeader(c.inspector.verifier.Load(), at, body) // it has secrets
	return header
}

// orderBody returns an event of an invented order, which was ordered or is completed.
func (c *applicationCheck) orderBody(eventType string, order uuid.UUID, completed bool) []byte {
	at := c.inspector.config.Now().UTC().Add(-time.Minute)
	entry := func(id int, at time.Time, status string) string {
		return fmt.Sprintf(`{"id":%d,"created_at":%q,"status":%q,"status_detail":null}`, id, at.Format(time.RFC3339Nano), status)
	}
	last := entry(1, at, "received.walk_in_test.ordered")
	events, status, updated := last, "received", at
	if completed {
		updated = at.Add(30 * time.Second)
		last = entry(2, updated, "completed.walk_in_test.completed")
		events, status = events+","+last, "completed"
	}
	return fmt.Appendf(nil, `{"event_type":%q,"data":{"id":%q,"user_id":%q,"details":{"type":"walk_in_test","data":{}},"sample_id":"CHECK","created_at":%q,"updated_at":%q,"events":[%s],"status":%q,"last_event":%s,"origin":"initial"},"user_id":%q,"client_user_id":"check"}`,
		eventType, order, c.user, at.Format(time.RFC3339Nano), updated.Format(time.RFC3339Nano), events, status, last, c.user)
}

// result describes a response.
func (f *Forward) result() string {
	if f.StatusCode == 0 {
		return "no response"
	}
	return fmt.Sprintf("%d in %d ms", f.StatusCode, max(1, f.Took.Milliseconds()))
}
