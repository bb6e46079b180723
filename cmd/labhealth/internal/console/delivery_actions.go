package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	maxUnconfirmed = 100     // deliveries that are replayed without a confirmation
	maxEdit        = 1 << 20 // bytes of a body that is edited in the browser
	replayWait     = 3 * time.Second
	maxDelay       = time.Hour
)

// replayJobs are replays that go on after the response to the request that started them.
type replayJobs struct {
	mu      sync.Mutex
	closed  bool
	ctx     context.Context
	cancel  context.CancelFunc
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

// errGoesOn says that a replay has no result yet.
const errGoesOn = warning("The application has not responded yet. What is sent appears in the list.")

// replay sends deliveries again. It waits for the result for a short time; what takes longer goes
// on in the background, with errGoesOn.
func (c *Console) replay(ctx context.Context, r inspect.Replay, after time.Duration) ([]int64, error) {
	var numbers []int64
	var failed error
	finished := make(chan struct{})
	started := c.jobs.start(func(ctx context.Context) {
		defer close(finished)
		select {
		case <-ctx.Done():
			failed = ctx.Err()
			return
		case <-time.After(after):
		}
		if numbers, failed = c.Inspector.Replay(ctx, r); failed != nil {
			c.Log.Error("console: a replay failed or was interrupted", "sent", len(numbers), "error", failed)
		}
	})
	if !started {
		return nil, errors.New("the console is being closed")
	}
	if after > 0 {
		return nil, errGoesOn
	}
	select {
	case <-finished:
		return numbers, failed
	case <-ctx.Done():
	case <-time.After(replayWait):
	}
	return nil, errGoesOn
}

func numberOf(r *http.Request) int64 {
	n, _ := strconv.ParseInt(r.PathValue("number"), 10, 64)
	return n
}

// replayDelivery replays one delivery: again, twice, later or with a new ID.
func (c *Console) replayDelivery(r *http.Request) (path, done string, err error) {
	n := numberOf(r)
	replay := inspect.Replay{Numbers: []int64{n}}
	var after time.Duration
	path = deliveryPath(n)
	switch as := r.PostFormValue("as"); as {
	case "again":
	case "twice":
		replay.Copies = 2
	case "new":
		replay.NewID = true
	default:
		seconds, err := strconv.Atoi(as)
		after = time.Duration(seconds) * time.Second
		if err != nil || after <= 0 || after > maxDelay {
			return path, "", errors.New("as must be again, twice, new, or a number of seconds from 1 to 3600")
		}
	}
	numbers, err := c.replay(r.Context(), replay, after)
	switch {
	case after > 0 && errors.Is(err, errGoesOn):
		return path, fmt.Sprintf("Delivery %d is sent again in %s.", n, age(after)), nil
	case err != nil || len(numbers) == 0:
		return path, "", err
	}
	done, err = c.replayed(r.Context(), "Replayed.", numbers)
	return deliveryPath(numbers[0]), done, err
}

// replayed says what became of the first replay.
func (c *Console) replayed(ctx context.Context, text string, numbers []int64) (done string, err error) {
	if len(numbers) > 1 {
		text = fmt.Sprintf("Replayed %d times.", len(numbers))
	}
	d, ok, err := c.Inspector.Get(ctx, numbers[0])
	if err != nil {
		return "", warning(text)
	}
	if !ok || d.Forward == nil {
		return text, nil
	}
	if d.Forward.StatusCode == 0 {
		return "", warning(text + " The application did not respond.")
	}
	text = fmt.Sprintf("%s The application responded %d in %s.", text, d.Forward.StatusCode, tookText(d.Forward.Took))
	if d.Forward.StatusCode/100 != 2 {
		return "", warning(text)
	}
	return text, nil
}

// replayView is the data of the template replay-many.
type replayView struct {
	Query   query // before ends the replay, so that it has what was counted
	Order   string
	NewID   bool
	Count   int
	Confirm bool // the number must be confirmed
	Error   string
	Forward forwardView
	Back    string
}

// replayPage shows how many deliveries would be replayed.
func (c *Console) replayPage(w http.ResponseWriter, r *http.Request) {
	_, problem := parseTimes(deliveryQuery(r), c.zone())
	c.showReplay(w, r, problem)
}

func (c *Console) showReplay(w http.ResponseWriter, r *http.Request, problem error) {
	q := deliveryQuery(r)
	view := replayView{Query: q, Order: r.FormValue("order"), NewID: r.FormValue("new") != "", Forward: c.forwardView(), Back: q.with("before", "").Address()}
	p := page{Title: "Replay", Current: "deliveries", Data: &view}
	if problem != nil {
		view.Error, p.Status = sentence(problem), http.StatusUnprocessableEntity
	}
	if q.Get("before") == "" {
		latest, err := c.Inspector.List(r.Context(), inspect.Filter{}, 1)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		if len(latest) > 0 {
			view.Query = q.with("before", strconv.FormatInt(latest[0].Number+1, 10))
		}
	}
	n, err := c.countReplayed(r.Context(), filterOf(view.Query, c.zone()))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	view.Count, view.Confirm = n, n > maxUnconfirmed
	c.render(w, r, "replay-many", p)
}

// countReplayed counts what a replay of a filter sends: rejected deliveries, which may be forged,
// only if the filter asks for them.
func (c *Console) countReplayed(ctx context.Context, f inspect.Filter) (int, error) {
	n, err := c.Inspector.Count(ctx, f)
	if err != nil || f.Is == "rejected" || strings.Contains(f.Query, "is:rejected") {
		return n, err
	}
	f.Query = strings.TrimSpace(f.Query + " is:rejected")
	not, err := c.Inspector.Count(ctx, f)
	return n - not, err
}

// parseTimes returns the times of a query, which are zero if they are missing.
func parseTimes(q query, zone *time.Location) (times [2]time.Time, err error) {
	for i, name := range []string{"from", "to"} {
		if text := q.Get(name); text != "" {
			if times[i], err = parseLocal(text, zone); err != nil {
				return times, fmt.Errorf("%s: %q is not a time such as 2026-11-23T09:30", name, text)
			}
		}
	}
	if !times[0].IsZero() && !times[1].IsZero() && !times[0].Before(times[1]) {
		return times, errors.New("from must be before to")
	}
	return times, nil
}

// replayMany replays what a filter selects.
func (c *Console) replayMany(w http.ResponseWriter, r *http.Request) {
	q := deliveryQuery(r)
	f, order := filterOf(q, c.zone()), r.PostFormValue("order")
	if _, err := parseTimes(q, c.zone()); err != nil {
		c.showReplay(w, r, err)
		return
	}
	n, err := c.countReplayed(r.Context(), f)
	switch {
	case err != nil:
		c.fail(w, r, err)
		return
	case !slices.Contains([]string{"", "received", "reversed", "shuffled"}, order):
		err = errors.New("order must be received, reversed or shuffled")
	case n == 0:
		err = errors.New("no delivery is selected")
	case n > maxUnconfirmed && r.PostFormValue("confirm") == "":
		err = fmt.Errorf("confirm that %s are sent", countOf(n, "delivery"))
	}
	if err != nil {
		c.showReplay(w, r, err)
		return
	}
	numbers, err := c.replay(r.Context(), inspect.Replay{Filter: &f, Order: order, NewID: r.PostFormValue("new") != ""}, 0)
	switch {
	case errors.Is(err, errGoesOn):
		c.back(w, r, deliveriesPath, "ok", countOf(n, "delivery")+" are being sent again.")
	case err != nil:
		c.back(w, r, q.with("before", "").Address(), "bad", fmt.Sprintf("%s of %s were sent again: %v", number(len(numbers)), countOf(n, "delivery"), err))
	default:
		c.back(w, r, deliveriesPath, "ok", countOf(len(numbers), "delivery")+" sent again.")
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
func (c *Console) editPage(w http.ResponseWriter, r *http.Request) { c.showEdit(w, r, "", "") }

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
	view := editView{Number: d.Number, Type: newEventType(d.Type), Error: problem, Forward: c.forwardView()}
	p := page{Title: fmt.Sprintf("Edit delivery %d", d.Number), Current: "deliveries", Data: &view}
	switch {
	case problem != "":
		view.Body, p.Status = body, http.StatusUnprocessableEntity
	case d.Body == nil && d.Size > 0:
		view.TooLarge = "The body was too large to be kept."
	case len(d.Body) > maxEdit:
		view.TooLarge = "The body has " + sizeOf(len(d.Body)) + ". Bodies of at most 1 MiB can be edited here: download it, and send it with another program."
	case !utf8.Valid(d.Body):
		view.TooLarge = "The body is not UTF-8 and cannot be edited in a browser."
	case r.Method != http.MethodPost && hidesSome(d.Body):
		view.Ask = true
	default:
		view.Body = editable(d.Body)
	}
	view.Rows = min(40, max(12, strings.Count(view.Body, "\n")+2))
	c.render(w, r, "edit-delivery", p)
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
	numbers, err := c.replay(r.Context(), inspect.Replay{Numbers: []int64{numberOf(r)}, Body: []byte(body)}, 0)
	if errors.Is(err, errGoesOn) || err == nil && len(numbers) == 0 {
		c.back(w, r, deliveriesPath, "warn", errGoesOn.Error())
		return
	}
	if err != nil {
		c.showEdit(w, r, body, "Not sent: "+err.Error())
		return
	}
	tone := "ok"
	text, err := c.replayed(r.Context(), "Sent with a new ID.", numbers)
	if err != nil {
		tone, text = "warn", err.Error()
	}
	c.back(w, r, deliveryPath(numbers[0]), tone, text)
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
	fmt.Fprint(w, curlOfDelivery(c.Inspector.Forward(), header, body))
}

// setForward changes where deliveries are forwarded.
func (c *Console) setForward(r *http.Request) (path, done string, err error) {
	err = c.Inspector.SetForward(strings.TrimSpace(r.PostFormValue("url")))
	if to := c.forwardView().Short; to != "" {
		return deliveriesPath, "Deliveries are forwarded to " + to + ".", err
	}
	return deliveriesPath, "Deliveries are not forwarded anymore.", err
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

// testEventTypes returns the types that can be invented: the others are not documented.
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

// sendPage lets the sandbox send an invented event.
func (c *Console) sendPage(w http.ResponseWriter, r *http.Request) {
	const most = 200
	view := sendView{Types: testEventTypes(), Type: r.FormValue("type")}
	p := page{Title: "Send a test event", Current: "deliveries", Data: &view}
	user, err := uuid.Parse(r.FormValue("user"))
	if view.User = user; r.Method == http.MethodPost {
		if err == nil {
			err = c.Server.SendEvent(user, view.Type)
		}
		if err == nil {
			c.back(w, r, deliveriesPath+"?"+url.Values{"q": {"user:" + user.String()}}.Encode(), "ok", "The event was sent.")
			return
		}
		view.Error, p.Status = sentence(err), http.StatusUnprocessableEntity
	}
	users, err := c.Client.Users.List(r.Context(), labhealth.ListUsersParams{Limit: most})
	if err != nil {
		c.fail(w, r, err)
		return
	}
	view.Users, view.More = users.Users, users.Total > most
	if view.Type == "" {
		view.Type = "daily.data.glucose.created"
	}
	c.render(w, r, "send-event", p)
}
