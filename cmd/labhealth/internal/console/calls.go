package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Limits of what the console stores about requests.
const (
	maxRecords = 10_000    // at least
	maxSummary = 256 << 10 // bytes of a response that is summarized
)

// creating are the operations that create an order.
var creating = map[string]bool{"POST /v3/order/import": true, "POST /v3/order": true, "POST /v3/order/testkit": true}

// requestRecord is what the console stores about a request. It has no patient data.
type requestRecord struct {
	Number    int
	At        time.Time
	Method    string
	Path      string // without the values of patients
	Operation string
	Status    int // 0 if the request was not processed
	Took      time.Duration
	Size      int // of the body, in bytes
	Faulted   bool
	Fault     string
	Client    string
	Label     string      // the sample ID or the idempotency key, or empty
	Orders    []uuid.UUID // that the request created
	Note      string      // what the response says, in a few words
	Again     bool        // the request was processed a second time, and created another order
	Repeated  bool        // the response repeats an earlier one, for an idempotency key

	sample string // the sample ID of an order
	key    string // requests with the same key are the same call
	text   string // for the search
}

// IsRead reports whether the request changes nothing.
func (r *requestRecord) IsRead() bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// Executed reports whether the request was processed and not rejected.
func (r *requestRecord) Executed() bool { return r.Status >= 200 && r.Status < 300 }

// processed reports whether the request was processed, as the table of calls counts it.
func (r *requestRecord) processed() bool {
	return r.IsRead() && r.Status != 0 || !r.IsRead() && r.Executed() && !r.Repeated
}

// Rejected reports whether the service rejected the request.
func (r *requestRecord) Rejected() bool { return r.Status >= 400 }

// requestLog has the records of the latest requests of the sandbox.
type requestLog struct {
	mu      sync.Mutex
	records []*requestRecord // by number
	last    int              // number of the latest record, or of the latest one that was cleared
	seen    map[string]uuid.UUID
}

func newRequestLog() *requestLog { return &requestLog{seen: map[string]uuid.UUID{}} }

// all returns the records of all requests, oldest first. It must be called often enough: the
// service keeps the responses of the latest requests only.
func (l *requestLog) all(server *labhealthtest.Server) []*requestRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	if server.RequestCount() > l.last {
		for _, r := range server.Requests() {
			if r.Number > l.last {
				l.append(r)
			}
		}
	}
	return slices.Clone(l.records)
}

// clear removes all records of requests that were received so far.
func (l *requestLog) clear(server *labhealthtest.Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = max(l.last, server.RequestCount())
	l.records = nil
	clear(l.seen)
}

func (l *requestLog) append(r labhealthtest.Request) {
	if len(l.records) >= 2*maxRecords {
		l.records = slices.Clone(l.records[maxRecords:])
		clear(l.seen)
	}
	l.last = r.Number
	rec := newRequestRecord(r)
	l.identify(rec, r)
	l.records = append(l.records, rec)
}

// identify sets the key of a record. A request that has neither a sample ID nor an idempotency key
// is the same call as another with the same method, path and body.
func (l *requestLog) identify(rec *requestRecord, r labhealthtest.Request) {
	rec.key = rec.Operation
	if rec.IsRead() {
		if rec.key == "" {
			rec.key = rec.Method + " " + rec.Path
		}
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s\x00%s", r.Method, r.Path, r.Body))
	rec.key = string(sum[:])
	if key := r.Header.Get("X-Idempotency-Key"); key != "" {
		rec.key, rec.Label = rec.Operation+"\x00key "+key, clip(key, 40)
	}
	if rec.sample != "" {
		rec.key, rec.Label = rec.Operation+"\x00sample "+rec.sample, clip(rec.sample, 40)
	}
	for _, id := range rec.Orders {
		first, ok := l.seen[rec.key]
		switch {
		case !ok:
			l.seen[rec.key] = id
		case first == id:
			rec.Repeated = true
		default:
			rec.Again = true
		}
	}
}

func newRequestRecord(r labhealthtest.Request) *requestRecord {
	rec := &requestRecord{
		Number: r.Number, At: r.ReceivedAt, Method: clip(r.Method, 20), Path: clip(publicPath(r.Path), 400), Operation: r.Operation,
		Status: r.StatusCode, Took: r.Took, Size: len(r.Body), Faulted: r.Faulted, Fault: r.Fault, Client: clientName(r.Header),
	}
	if rec.Faulted && rec.Fault == "" {
		rec.Fault = "fault"
	}
	rec.summarize(r.Response)
	var body struct {
		SampleID string `json:"sample_id"`
		UserID   string `json:"user_id"`
	}
	if creating[r.Operation] && json.Unmarshal(r.Body, &body) == nil {
		rec.sample = body.SampleID
	}
	rec.text = fmt.Sprint(rec.Orders, rec.Method, rec.Path, rec.Operation, rec.Status, rec.Fault, rec.Note, rec.Client, " ", clip(rec.sample, 100), " ",
		clip(body.UserID, 40), " ", r.Header.Get("X-Idempotency-Key"))
	return rec
}

// summarize reads the response: the orders that were created, or why the request was rejected.
func (r *requestRecord) summarize(response []byte) {
	if len(response) == 0 || len(response) > maxSummary {
		return
	}
	var body struct {
		Order struct {
			ID uuid.UUID `json:"id"`
		} `json:"order"`
		Detail json.RawMessage `json:"detail"`
	}
	if response[0] != '{' || json.Unmarshal(response, &body) != nil {
		return
	}
	var fields []json.RawMessage
	var text string
	switch {
	case creating[r.Operation] && r.Executed() && body.Order.ID != uuid.Nil:
		r.Orders = []uuid.UUID{body.Order.ID}
	case json.Unmarshal(body.Detail, &fields) == nil && len(fields) > 0:
		r.Note = countOf(len(fields), "field") + " rejected"
	case json.Unmarshal(body.Detail, &text) == nil:
		r.Note = clip(text, 80)
	}
}

// clientName returns the name of the program in User-Agent, without its version.
func clientName(h http.Header) string {
	name, _, _ := strings.Cut(h.Get("User-Agent"), "/")
	name, _, _ = strings.Cut(name, " ")
	return clip(name, 40)
}

// publicPath returns a path with the values in its query hidden, except numbers, times, IDs and the
// parameters that choose one of a few words.
func publicPath(path string) string {
	before, query, ok := strings.Cut(path, "?")
	if !ok {
		return visible(path)
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, found := strings.Cut(part, "=")
		switch {
		case PatientFields[name] || strings.Contains(name, "patient"):
			parts[i] = name + "=" + mask
		case !found && !shownParameter.MatchString(name):
			parts[i] = mask
		case !shownParameter.MatchString(name) && !knownParameter.MatchString(name):
			parts[i] = name + "=" + mask
		case !shownParameter.MatchString(name) && !shownParameterValue.MatchString(value),
			shownParameter.MatchString(name) && !plainWord.MatchString(value):
			parts[i] = name + "=" + mask
		}
	}
	return visible(before + "?" + strings.Join(parts, "&"))
}

var (
	// shownParameter is a parameter whose value is one of a few words.
	shownParameter = regexp.MustCompile(`^(status|statuses|final_status|provider|resource|order_key|order_direction|collection_method|environment|format)$`)
	// knownParameter is the name of a parameter that may have a number, a time or an ID.
	knownParameter      = regexp.MustCompile(`^([a-z_]*id|[a-z_]*ids|limit|offset|page|size|cursor|[a-z_]*_date|date|days|[a-z_]*_at|is_[a-z_]+|version|a_la_carte_enabled)$`)
	shownParameterValue = regexp.MustCompile(`^([0-9][0-9TZ:.+%A-F-]*|true|false|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
	plainWord           = regexp.MustCompile(`^[a-z_.,]{0,60}$`)
)

// clip shortens a text to n characters, and makes it visible.
func clip(text string, n int) string { return visible(firstChars(text, n)) }

// call is a group of requests that are the same call.
type call struct {
	Name, Label, Client string
	Received, Processed int
	Orders              []uuid.UUID
	Requests            []*requestRecord // oldest first; of reads, the latest
	Verdict, Tone       string           // tone crit, hi or empty
	rank                int
	fault, rejected     int // index of the first such request, or -1
}

// groupCalls returns the calls, odd ones first and then the latest first.
func groupCalls(records []*requestRecord) []*call {
	var calls []*call
	byKey := map[string]*call{}
	for _, r := range records {
		c := byKey[r.key]
		if c == nil {
			c = &call{}
			byKey[r.key] = c
			calls = append(calls, c)
		}
		c.add(r)
	}
	for _, c := range calls {
		c.judge()
	}
	slices.SortStableFunc(calls, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.latest().Number, a.latest().Number))
	})
	return calls
}

func (c *call) latest() *requestRecord { return c.Requests[len(c.Requests)-1] }

// Latest is the number of the latest request.
func (c *call) Latest() int { return c.latest().Number }

func (c *call) add(r *requestRecord) {
	c.Received++
	for _, id := range r.Orders {
		if !slices.Contains(c.Orders, id) {
			c.Orders = append(c.Orders, id)
		}
	}
	if r.processed() {
		c.Processed++
	}
	c.Name, c.Client = r.Operation, r.Client
	if c.Name == "" {
		c.Name = r.Method + " " + clip(r.Path, 60)
	}
	if r.Label != "" {
		c.Label = r.Label
	}
	if r.IsRead() && len(c.Requests) > 20 {
		c.Requests = c.Requests[1:]
	}
	c.Requests = append(c.Requests, r)
}

// judge says how often the call was processed, and why.
func (c *call) judge() {
	first := c.Requests[0]
	if len(c.Orders) > 0 {
		c.Processed = len(c.Orders) // a response that is repeated for an idempotency key is not counted
	}
	fault := slices.IndexFunc(c.Requests, func(r *requestRecord) bool { return r.Faulted })
	rejected := slices.IndexFunc(c.Requests, (*requestRecord).Rejected)
	creates := first.Method == http.MethodPost
	switch {
	case len(c.Orders) > 1:
		c.rank, c.Tone, c.Verdict = 0, "crit", howOften(len(c.Orders))+": "+number(len(c.Orders))+" orders"
	case first.IsRead():
		c.rank, c.Verdict = 6, "Read"
	case creates && c.Processed > 1:
		c.rank, c.Tone, c.Verdict = 1, "hi", howOften(c.Processed)
	case fault >= 0 && c.Processed == 0:
		c.rank, c.Tone, c.Verdict = 2, "hi", "Not processed"
	case fault >= 0:
		c.rank, c.Verdict = 3, howOften(c.Processed)
	case c.Processed == 0:
		c.rank, c.Verdict = 4, "Rejected"
	default:
		c.rank, c.Verdict = 5, howOften(c.Processed)
	}
	c.fault, c.rejected = fault, rejected
}

// Text says what happened.
func (c *call) Text() string {
	fault, rejected := c.fault, c.rejected
	switch {
	case fault >= 0:
		return c.explainFault(c.Requests[fault], fault)
	case c.Requests[0].IsRead():
		return "A read changes nothing."
	case len(c.Orders) > 1:
		return "It was sent " + strings.ToLower(howOften(c.Received)) + ", without an idempotency key."
	case rejected >= 0 && c.Processed == 0:
		r := c.Requests[rejected]
		return fmt.Sprintf("The service responded %d. %s", r.Status, r.Note)
	case rejected >= 0:
		return fmt.Sprintf("It was sent again, and rejected with %d.", c.Requests[rejected].Status)
	case c.Received > c.Processed:
		return "It was sent again with its idempotency key, which repeats the response."
	}
	return ""
}

func (c *call) explainFault(r *requestRecord, index int) string {
	text := fmt.Sprintf("Request %d met the fault “%s”", r.Number, r.Fault)
	if r.Status == 0 {
		text += " and was not processed"
	} else if r.Executed() {
		text += " after it was processed"
	}
	if index == len(c.Requests)-1 {
		return text + ". It was not sent again."
	}
	next := c.Requests[index+1]
	if wait := next.At.Sub(r.At); wait < time.Second {
		text += "; it was sent again within a second"
	} else {
		text += fmt.Sprintf("; after %s it was sent again", age(wait))
	}
	switch {
	case next.Again:
		text += ", without looking for the order"
	case next.Rejected():
		text += fmt.Sprintf(", and rejected with %d", next.Status)
	case len(c.Orders) == 1 && r.Executed() && next.Executed():
		text += " with its idempotency key, which repeats the response"
	}
	return text + "."
}

// howOften returns Once, Twice or 3 times.
func howOften(n int) string {
	switch n {
	case 0:
		return "Never"
	case 1:
		return "Once"
	case 2:
		return "Twice"
	}
	return number(n) + " times"
}

// Squares are the requests that are drawn beside the number of the received ones.
func (c *call) Squares() []*requestRecord { return c.Requests[:min(len(c.Requests), maxSquares)] }

// ProcessedSquares is the number of squares beside that of the processed ones.
func (c *call) ProcessedSquares() int { return min(c.Processed, maxSquares) }

const maxSquares = 8

// Strip of the last minute, in the units of its drawing.
const (
	stripWidth = 660
	stripSlots = 60
)

// strip shows the requests of the last minute, one mark for each second.
type strip struct {
	stripMark // of all
	Marks     []stripMark
	Times     []string
}

// stripMark counts the requests of a second, which is X in the drawing.
type stripMark struct {
	X                                   int
	Title                               string
	Received, Processed, Faulted, Again int
}

func newStrip(records []*requestRecord, now time.Time) strip {
	start := now.Truncate(time.Second).Add(time.Second - time.Minute)
	s := strip{}
	for _, r := range records {
		i := int(r.At.Sub(start) / time.Second)
		if r.At.Before(start) || i >= stripSlots {
			continue
		}
		x := i*stripWidth/stripSlots + stripWidth/stripSlots/2
		if n := len(s.Marks); n == 0 || s.Marks[n-1].X != x {
			s.Marks = append(s.Marks, stripMark{X: x, Title: r.At.Format("15:04:05")})
		}
		s.Marks[len(s.Marks)-1].count(r)
		s.count(r)
	}
	for i := range s.Marks {
		m := &s.Marks[i]
		m.Title += fmt.Sprintf(" %s, %s processed", countOf(m.Received, "request"), number(m.Processed))
		if m.Faulted > 0 {
			m.Title += ", " + countOf(m.Faulted, "fault")
		}
	}
	for i := range 5 {
		layout := ":05"
		if i%4 == 0 {
			layout = "15:04:05"
		}
		s.Times = append(s.Times, start.Add(time.Duration(i)*15*time.Second).Format(layout))
	}
	return s
}

func (m *stripMark) count(r *requestRecord) {
	m.Received++
	if r.Faulted {
		m.Faulted++
	}
	if r.processed() {
		m.Processed++
	}
	if r.Again {
		m.Again++
	}
}
