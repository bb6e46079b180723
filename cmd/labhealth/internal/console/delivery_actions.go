package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Limits of the actions.
const (
	maxUnconfirmed = 100      // deliveries that are replayed without a confirmation
	maxEdit        = 1 << 20  // bytes of a body that is edited in the browser
	maxInlineBody  = 64 << 10 // bytes of a body within a curl command
	replayWait     = 3 * time.Second
	maxDelay       = time.Hour
)

// jobs are replays that go on after the response to the request that started them.
type replayJobs struct {
	mu      sync.Mutex
	closed  bool
	cancel  context.CancelFunc
	ctx     context.Context
	running sync.WaitGroup
}

// start runs f in the background until the console is closed. It reports whether it is running.
func (j *replayJobs) start(f func(context.Context)) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	if j.ctx == nil {
		j.ctx, j.cancel = context.WithCancel(context.Background())
	}
	j.running.Go(func() { f(j.ctx) })
	return true
}

// close ends all jobs and waits for them.
func (j *replayJobs) close() {
	j.mu.Lock()
	j.closed = true
	if j.cancel != nil {
		j.cancel()
	}
	j.mu.Unlock()
	j.running.Wait()
}

// replay sends deliveries again. It waits for the result for a short time; what takes longer goes
// on in the background.
func (c *Console) replay(ctx context.Context, r inspect.Replay, after time.Duration) (numbers []int64, done bool, err error) {
	type result struct {
		numbers []int64
		err     error
	}
	finished := make(chan result, 1)
	started := c.jobs.start(func(ctx context.Context) {
		select {
		case <-ctx.Done():
			finished <- result{nil, ctx.Err()}
			return
		case <-time.After(after):
		}
		numbers, err := c.Inspector.Replay(ctx, r)
		switch {
		case err != nil && ctx.Err() != nil:
			c.Log.Warn("console: a replay was interrupted", "sent", len(numbers))
		case err != nil:
			c.Log.Error("console: a replay failed", "sent", len(numbers), "error", err)
		}
		finished <- result{numbers, err}
	})
	if !started {
		return nil, true, errors.New("the console is being closed")
	}
	if after > 0 {
		return nil, false, nil
	}
	select {
	case f := <-finished:
		return f.numbers, true, f.err
	case <-ctx.Done():
	case <-time.After(replayWait):
	}
	return nil, false, nil
}

func numberOf(r *http.Request) int64 {
	n, _ := strconv.ParseInt(r.PathValue("number"), 10, 64)
	return n
}

// replayDelivery replays one delivery: again, twice, later or with a new ID.
func (c *Console) replayDelivery(w http.ResponseWriter, r *http.Request) {
	n := numberOf(r)
	replay := inspect.Replay{Numbers: []int64{n}}
	var after time.Duration
	how := r.PostFormValue("as")
	switch how {
	case "again":
	case "twice":
		replay.Copies = 2
	case "new":
		replay.NewID = true
	default:
		seconds, err := strconv.Atoi(how)
		after = time.Duration(seconds) * time.Second
		if err != nil || after <= 0 || after > maxDelay {
			http.Error(w, "as: it must be again, twice, new, or a number of seconds from 1 to 3600", http.StatusBadRequest)
			return
		}
	}
	own := fmt.Sprintf("/console/deliveries/%d", n)
	numbers, done, err := c.replay(r.Context(), replay, after)
	switch {
	case err != nil:
		c.back(w, r, own, "bad", "Not replayed: "+err.Error())
	case after > 0:
		c.back(w, r, own, "ok", fmt.Sprintf("Delivery %d is sent again in %s.", n, age(after)))
	case !done || len(numbers) == 0:
		c.back(w, r, own, "warn", "The application has not responded yet. The replay appears in the list.")
	default:
		tone, text := c.replayed(r.Context(), numbers)
		c.back(w, r, fmt.Sprintf("/console/deliveries/%d", numbers[0]), tone, text)
	}
}

// replayed says what became of the first replay.
func (c *Console) replayed(ctx context.Context, numbers []int64) (tone, text string) {
	text = "Replayed."
	if len(numbers) > 1 {
		text = fmt.Sprintf("Replayed %d times.", len(numbers))
	}
	d, ok, err := c.Inspector.Get(ctx, numbers[0])
	switch {
	case err != nil || !ok || d.Forward == nil:
		return "ok", text
	case d.Forward.StatusCode == 0:
		return "warn", text + " The application did not respond."
	case d.Forward.StatusCode/100 != 2:
		return "warn", fmt.Sprintf("%s The application responded %d in %s.", text, d.Forward.StatusCode, tookText(d.Forward.Took))
	default:
		return "ok", fmt.Sprintf("%s The application responded %d in %s.", text, d.Forward.StatusCode, tookText(d.Forward.Took))
	}
}

// replayView is the data of the template replay-many.
type replayView struct {
	Query   deliveryQuery
	Order   string
	NewID   bool
	Count   int
	Before  int64 // the replay ends before this number, so that it has what was counted
	Confirm bool  // the number must be confirmed
	Error   string
	Forward forwardView
	Back    string
}

// replayPage shows how many deliveries would be replayed.
func (c *Console) replayPage(w http.ResponseWriter, r *http.Request) { c.showReplay(w, r, "") }

func (c *Console) showReplay(w http.ResponseWriter, r *http.Request, problem string) {
	q := deliveryQueryOf(r)
	if err := checkTimes(q, c.zone()); err != nil && problem == "" {
		problem = err.Error()
	}
	view := replayView{Query: q, Order: r.FormValue("order"), NewID: r.FormValue("new") != "", Before: q.Before, Error: problem, Forward: c.forwardView()}
	if view.Before == 0 {
		latest, err := c.Inspector.List(r.Context(), inspect.Filter{}, 1)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		if len(latest) > 0 {
			view.Before = latest[0].Number + 1
		}
	}
	f := q.filter(c.zone())
	f.Before = view.Before
	var err error
	if view.Count, err = c.countReplayed(r.Context(), f); err != nil {
		c.fail(w, r, err)
		return
	}
	view.Confirm = view.Count > maxUnconfirmed
	q.Before = 0
	view.Back = q.path(0)
	p := page{Title: "Replay", Current: "deliveries", Data: view}
	if problem != "" {
		p.Status = http.StatusUnprocessableEntity
	}
	c.render(w, r, "replay-many", p)
}

// countReplayed counts what a replay of a filter sends: rejected deliveries, which may be forged,
// only if the filter asks for them.
func (c *Console) countReplayed(ctx context.Context, f inspect.Filter) (int, error) {
	n, err := c.Inspector.Count(ctx, f)
	if err != nil || f.Is == "rejected" || strings.Contains(f.Query, "is:rejected") {
		return n, err
	}
	if f.Is != "" {
		f.Query = strings.TrimSpace(f.Query + " is:rejected")
	} else {
		f.Is = "rejected"
	}
	not, err := c.Inspector.Count(ctx, f)
	return n - not, err
}

func checkTimes(q deliveryQuery, zone *time.Location) error {
	from, err := parseLocal(q.From, zone)
	if q.From != "" && err != nil {
		return fmt.Errorf("from: %q is not a time such as 2026-11-23T09:30", q.From)
	}
	to, err := parseLocal(q.To, zone)
	if q.To != "" && err != nil {
		return fmt.Errorf("to: %q is not a time such as 2026-11-23T09:30", q.To)
	}
	if q.From != "" && q.To != "" && !from.Before(to) {
		return errors.New("from must be before to")
	}
	return nil
}

// replayMany replays what a filter selects.
func (c *Console) replayMany(w http.ResponseWriter, r *http.Request) {
	q := deliveryQueryOf(r)
	order := r.PostFormValue("order")
	if err := checkTimes(q, c.zone()); err != nil {
		c.showReplay(w, r, err.Error())
		return
	}
	if !slices.Contains([]string{"", "received", "reversed", "shuffled"}, order) {
		c.showReplay(w, r, "order must be received, reversed or shuffled")
		return
	}
	f := q.filter(c.zone())
	n, err := c.countReplayed(r.Context(), f)
	switch {
	case err != nil:
		c.fail(w, r, err)
		return
	case n == 0:
		c.showReplay(w, r, "No delivery is selected.")
		return
	case n > maxUnconfirmed && r.PostFormValue("confirm") == "":
		c.showReplay(w, r, fmt.Sprintf("Confirm that %s are sent.", countOf(n, "delivery")))
		return
	}
	numbers, done, err := c.replay(r.Context(), inspect.Replay{Filter: &f, Order: order, NewID: r.PostFormValue("new") != ""}, 0)
	q.Before = 0
	switch {
	case err != nil:
		c.back(w, r, q.path(0), "bad", fmt.Sprintf("%s of %s were sent again: %v", number(len(numbers)), countOf(n, "delivery"), err))
	case done:
		c.back(w, r, "/console/deliveries", "ok", countOf(len(numbers), "delivery")+" sent again.")
	default:
		c.back(w, r, "/console/deliveries", "ok", countOf(n, "delivery")+" are being sent again.")
	}
}

// editView is the data of the template edit-delivery.
type editView struct {
	Number   int64
	Type     eventType
	Body     string
	Rows     int
	Ask      bool // the body has hidden values, which are shown on demand
	TooLarge string
	Error    string
	Forward  forwardView
}

// editPage shows the body to be edited. A body with hidden values is shown after a POST only.
func (c *Console) editPage(w http.ResponseWriter, r *http.Request) {
	c.showEdit(w, r, "", "")
}

func (c *Console) showEdit(w http.ResponseWriter, r *http.Request, body, problem string) {
	d, ok, err := c.Inspector.Get(r.Context(), numberOf(r))
	switch {
	case err != nil:
		c.fail(w, r, err)
		return
	case !ok:
		c.noDelivery(w, r, numberOf(r))
		return
	}
	view := editView{Number: d.Number, Type: newEventType(d.Type), Body: body, Error: problem, Forward: c.forwardView()}
	if problem == "" {
		view.fill(d.Body, r.Method == http.MethodPost)
	}
	switch {
	case d.Body == nil && d.Size > 0:
		view.TooLarge = "The body was too large to be kept."
	case len(d.Body) > maxEdit:
		view.TooLarge = "The body has " + sizeOf(len(d.Body)) + ". Bodies of at most 1 MiB can be edited here: download it, and send it with another program."
	case !utf8.Valid(d.Body):
		view.TooLarge = "The body is not UTF-8 and cannot be edited in a browser."
	}
	if view.TooLarge != "" {
		view.Body, view.Ask = "", false
	}
	view.Rows = min(40, max(12, strings.Count(view.Body, "\n")+2))
	p := page{Title: fmt.Sprintf("Edit delivery %d", d.Number), Current: "deliveries", Data: view}
	if problem != "" {
		p.Status = http.StatusUnprocessableEntity
	}
	c.render(w, r, "edit-delivery", p)
}

// fill sets the body, if it is small enough, and has no hidden values or was asked for.
func (v *editView) fill(body []byte, asked bool) {
	if len(body) > maxEdit {
		return
	}
	if v.Ask = !asked && hidesSome(body); !v.Ask {
		v.Body = editable(body)
	}
}

// hidesSome reports whether a body of an event has values that are hidden.
func hidesSome(body []byte) bool {
	event, _ := webhooks.Parse(body)
	options := bodyOptions(event, false)
	options.MaxLines = maxEdit
	return viewJSON(body, options).Hidden
}

// editable returns the indented JSON, or the body as it is if that would be too large.
func editable(body []byte) string {
	const deepest = 100
	depth, most := 0, 0
	for _, b := range body {
		switch b {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	var b bytes.Buffer
	if most > deepest || json.Indent(&b, body, "", "  ") != nil || b.Len() > 2*maxEdit {
		return string(body)
	}
	return b.String()
}

// editDelivery sends a body that was edited, as a new delivery.
func (c *Console) editDelivery(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the body is too large to be edited here", http.StatusRequestEntityTooLarge)
		return
	}
	body := strings.ReplaceAll(r.PostForm.Get("body"), "\r\n", "\n")
	if problem := jsonProblem(body); problem != "" {
		c.showEdit(w, r, body, problem)
		return
	}
	n := numberOf(r)
	numbers, done, err := c.replay(r.Context(), inspect.Replay{Numbers: []int64{n}, Body: []byte(body)}, 0)
	switch {
	case err != nil:
		c.showEdit(w, r, body, "Not sent: "+err.Error())
	case !done || len(numbers) == 0:
		c.back(w, r, "/console/deliveries", "warn", "The application has not responded yet. The delivery appears in the list.")
	default:
		tone, text := c.replayed(r.Context(), numbers)
		c.back(w, r, fmt.Sprintf("/console/deliveries/%d", numbers[0]), tone, strings.Replace(text, "Replayed.", "Sent with a new ID.", 1))
	}
}

// jsonProblem returns what is wrong with a document, with the line and the column.
func jsonProblem(body string) string {
	var document any
	err := json.Unmarshal([]byte(body), &document)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return ""
	case strings.TrimSpace(body) == "":
		return "The body is empty."
	case !errors.As(err, &syntax):
		return "The body is not JSON: " + err.Error()
	}
	before := body[:max(0, min(int(syntax.Offset), len(body))-1)]
	if strings.Contains(err.Error(), "unexpected end") {
		before = body
	}
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("Line %d, column %d: %s.", line, column, strings.TrimPrefix(err.Error(), "json: "))
}

// deliveryBody downloads the body.
func (c *Console) deliveryBody(w http.ResponseWriter, r *http.Request) {
	d, ok, err := c.Inspector.Get(r.Context(), numberOf(r))
	switch {
	case err != nil:
		c.fail(w, r, err)
	case !ok || d.Body == nil:
		c.noDelivery(w, r, numberOf(r))
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="delivery-%d.json"`, d.Number))
		w.Write(d.Body)
	}
}

// deliveryCurl returns a command that sends the delivery, with a signature of now. It is a POST
// because the command has the complete body.
func (c *Console) deliveryCurl(w http.ResponseWriter, r *http.Request) {
	header, body, err := c.Inspector.Signed(r.Context(), numberOf(r))
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, deliveryCommand(c.Inspector.Forward(), header, body))
}

// deliveryCommand returns a command for a POSIX shell that posts the exact bytes of the body.
func deliveryCommand(target string, header http.Header, body []byte) string {
	if target == "" {
		target = "http://localhost:3000/webhooks"
	}
	var b strings.Builder
	inline := utf8.Valid(body) && len(body) <= maxInlineBody && !bytes.HasPrefix(body, []byte("@")) && !bytes.ContainsAny(body, "\x00\r")
	if !inline {
		fmt.Fprintf(&b, "base64 -d <<'EOF' |\n%sEOF\n", base64Lines(body))
	}
	fmt.Fprintf(&b, "curl -X POST %s", shellQuote(target))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if isSecretHeader(name) || slices.Contains([]string{"Content-Length", "Host", "Accept-Encoding", "Connection", "Transfer-Encoding"}, name) {
			continue
		}
		for _, value := range header[name] {
			fmt.Fprintf(&b, " \\\n  -H %s", shellQuote(strings.ToLower(name)+": "+value))
		}
	}
	if inline {
		fmt.Fprintf(&b, " \\\n  --data-binary %s", shellQuote(string(body)))
	} else {
		b.WriteString(" \\\n  --data-binary @-")
	}
	b.WriteString("\n")
	return b.String()
}

// setForward changes where deliveries are forwarded.
func (c *Console) setForward(w http.ResponseWriter, r *http.Request) {
	to := strings.TrimSpace(r.PostFormValue("url"))
	if err := c.Inspector.SetForward(to); err != nil {
		c.back(w, r, "/console/deliveries", "bad", sentence(err))
		return
	}
	if to == "" {
		c.back(w, r, "/console/deliveries", "ok", "Deliveries are not forwarded anymore.")
		return
	}
	c.back(w, r, "/console/deliveries", "ok", "Deliveries are forwarded to "+c.forwardView().Short+".")
}

// sendView is the data of the template send-event.
type sendView struct {
	Users []labhealth.User
	More  bool // there are more users
	Types []string
	User  uuid.UUID
	Type  string
	Error string
}

// undocumented types cannot be invented.
func testEventTypes() []string {
	var types []string
	for _, t := range webhooks.EventTypes() {
		if !strings.Contains(string(t), "hypnogram") && !strings.Contains(string(t), "workout_stream") {
			types = append(types, string(t))
		}
	}
	slices.Sort(types)
	return types
}

func (c *Console) sendPage(w http.ResponseWriter, r *http.Request) { c.showSend(w, r, "") }

func (c *Console) showSend(w http.ResponseWriter, r *http.Request, problem string) {
	const most = 200
	users, err := c.Client.Users.List(r.Context(), labhealth.ListUsersParams{Limit: most})
	if err != nil {
		c.fail(w, r, err)
		return
	}
	view := sendView{Users: users.Users, More: users.Total > most, Types: testEventTypes(), Type: r.FormValue("type"), Error: problem}
	view.User, _ = uuid.Parse(r.FormValue("user"))
	if view.Type == "" {
		view.Type = "daily.data.glucose.created"
	}
	p := page{Title: "Send a test event", Current: "deliveries", Data: view}
	if problem != "" {
		p.Status = http.StatusUnprocessableEntity
	}
	c.render(w, r, "send-event", p)
}

// sendEvent lets the sandbox send an invented event.
func (c *Console) sendEvent(w http.ResponseWriter, r *http.Request) {
	user, err := uuid.Parse(r.PostFormValue("user"))
	if err != nil {
		c.showSend(w, r, "user: choose one of the users")
		return
	}
	if err := c.Server.SendEvent(user, r.PostFormValue("type")); err != nil {
		c.showSend(w, r, sentence(err))
		return
	}
	c.back(w, r, "/console/deliveries?"+url.Values{"q": {"user:" + user.String()}}.Encode(), "ok", "The event was sent.")
}
