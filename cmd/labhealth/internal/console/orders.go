package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

const (
	laneCards = 50               // cards of a lane, at most
	freshAge  = 10 * time.Second // how long new cards are marked
)

func (c *Console) ordersRoutes() {
	c.mux.HandleFunc("GET /console/orders", c.ordersPage)
	c.mux.HandleFunc("GET /console/orders/{id}", c.orderPage)
	if !c.sandbox() {
		c.mux.HandleFunc("POST /console/orders/{id}/reveal", c.revealPatient)
		return
	}
	c.mux.HandleFunc("GET /console/orders/{id}/{document}", c.orderDocument)
	c.mux.HandleFunc("POST /console/orders", c.addOrder)
	c.mux.HandleFunc("POST /console/orders/fill", c.fillOrders)
	c.mux.HandleFunc("POST /console/orders/{id}/{action}", c.changeOrder)
}

// board is the data of the template "orders".
type board struct {
	Total, Stuck int
	Lanes        []boardLane
	Methods      []boardMethod
	Query        string
	Method       string
	Path         string // of this view
	Sandbox      bool
	Add          *addForm // nil in listen mode
	None         bool     // there are no orders at all
	Fill         bool     // whether invented orders can be added
	Steps        []todo
}

// Found is the number of orders that the filter selects.
func (b *board) Found() (n int) {
	for _, l := range b.Lanes {
		n += l.Count
	}
	return n
}

type boardMethod struct {
	Key, Name, Icon, Path string
	Current               bool
}

type boardLane struct {
	lane
	Count int
	Cards []card
	Older string // path that shows the older ones, or empty
	More  int    // older ones
}

// todo is a step of the first run.
type todo struct {
	Done                bool
	Lead, Text, Command string
	Waiting             string
}

// card is an order on the board.
type card struct {
	labhealthtest.OrderState
	Lane       string
	Words      string
	Age        string
	Icon       string
	MethodName string
	Vial       vial
	Ended      bool // cancelled or failed
	Tags       []cardTag
	Steps      []string // class of each step: on, here or empty
	Step       int
	StepsState string // done, stuck or empty
	Next       string // the next status in words, empty if there is none
	HasResults bool
	Fresh      bool
	Back       string // path to return to
}

// Key are the words that the filter finds beside the text.
func (c card) Key() string {
	return strings.Join([]string{c.Method, c.Status, c.SampleID, c.ClientUserID, c.ID.String()}, " ")
}

// cardTag is a small fact on a card. Sign is up, diamond, warn or empty.
type cardTag struct{ Tone, Sign, Text string }

// Aria describes the steps.
func (c card) Aria() string { return fmt.Sprintf("step %d of %d", c.Step, len(c.Steps)) }

func (c *Console) ordersPage(w http.ResponseWriter, r *http.Request) {
	b, err := c.newBoard(r.Context(), r.URL.Query())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.render(w, r, "orders", page{Title: "Orders", Current: "orders", Live: c.ordersTopics(), Data: b})
}

// ordersTopics are the topics that change orders. Without a sandbox, deliveries bring them.
func (c *Console) ordersTopics() string {
	if c.sandbox() {
		return "orders"
	}
	return "deliveries"
}

// newBoard returns the orders that the query selects: q has words, method a collection method, and
// lane with before shows older orders of one lane.
func (c *Console) newBoard(ctx context.Context, query url.Values) (*board, error) {
	states, err := c.orderStates(ctx)
	if err != nil {
		return nil, err
	}
	b := &board{Total: len(states), None: len(states) == 0, Sandbox: c.sandbox(), Query: query.Get("q"), Path: boardView(query), Fill: c.sandbox()}
	if isMethod(query.Get("method")) {
		b.Method = query.Get("method")
	}
	if c.sandbox() {
		b.Add = c.newAddForm(ctx)
	}
	b.Methods = append(b.Methods, boardMethod{"", "All", "", boardPath(b.Query, ""), b.Method == ""})
	for _, m := range methods {
		b.Methods = append(b.Methods, boardMethod{m.Key, m.Name, m.Key, boardPath(b.Query, m.Key), b.Method == m.Key})
	}
	if b.None {
		b.Query, b.Method, b.Path = "", "", "/console/orders"
		b.Steps = c.firstSteps()
		return b, nil
	}
	c.fillLanes(ctx, b, states, query)
	return b, nil
}

func isMethod(method string) bool {
	return slices.ContainsFunc(methods, func(m struct{ Key, Name, Lower string }) bool { return m.Key == method })
}

// boardPath returns the path of the orders with words and a method.
func boardPath(q, method string) string { return boardView(url.Values{"q": {q}, "method": {method}}) }

// boardView returns the path of the view of the board that a query has.
func boardView(query url.Values) string {
	values := url.Values{}
	for _, name := range []string{"q", "method", "lane", "from"} {
		if value := query.Get(name); value != "" {
			values.Set(name, value)
		}
	}
	if encoded := values.Encode(); encoded != "" {
		return "/console/orders?" + encoded
	}
	return "/console/orders"
}

// fillLanes adds the latest orders of each lane, or the older ones of the lane in the query.
func (c *Console) fillLanes(ctx context.Context, b *board, states []labhealthtest.OrderState, query url.Values) {
	now := c.now()
	wanted := strings.Fields(strings.ToLower(b.Query))
	byLane := make([][]labhealthtest.OrderState, len(lanes))
	for _, s := range states {
		if isStuck(s.Status, s.Since, now) {
			b.Stuck++
		}
		if matches(s, b.Method, wanted) {
			i := laneOfOrder(s.Status)
			byLane[i] = append(byLane[i], s)
		}
	}
	from := 0
	_, _ = fmt.Sscan(query.Get("from"), &from)
	for i, l := range lanes {
		found := byLane[i]
		if only := query.Get("lane"); only != "" && only != l.Key {
			found = nil
		}
		slices.SortStableFunc(found, func(a, b labhealthtest.OrderState) int {
			return cmp.Or(b.Since.Compare(a.Since), b.CreatedAt.Compare(a.CreatedAt))
		})
		start := max(0, min(from, len(found)))
		end := min(start+laneCards, len(found))
		bl := boardLane{lane: l, Count: len(found)}
		bl.setOlder(b, end)
		for _, s := range found[start:end] {
			if !c.sandbox() {
				c.countStoredResults(ctx, &s)
			}
			bl.Cards = append(bl.Cards, c.newCard(s, b.Path))
		}
		b.Lanes = append(b.Lanes, bl)
	}
}

// setOlder sets what leads from the cards before end to the older ones.
func (l *boardLane) setOlder(b *board, end int) {
	if l.More = l.Count - end; l.More <= 0 {
		l.More = 0
		return
	}
	values := url.Values{"lane": {l.Key}, "from": {fmt.Sprint(end)}}
	if b.Query != "" {
		values.Set("q", b.Query)
	}
	if b.Method != "" {
		values.Set("method", b.Method)
	}
	l.Older = "/console/orders?" + values.Encode()
}

// laneOfOrder returns the lane of a status. Orders with an unknown status are in the first one.
func laneOfOrder(status string) int {
	top, _, _ := splitStatus(status)
	return laneOf[top]
}

// matches reports whether an order has the method and all words.
func matches(s labhealthtest.OrderState, method string, wanted []string) bool {
	if method != "" && s.Method != method {
		return false
	}
	if len(wanted) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{
		s.ID.String(), s.LabTest, s.Status, statusWords(s.Status, s.StatusDetail), s.SampleID, s.ClientUserID, s.UserID.String(), methodName(s.Method),
	}, " "))
	return !slices.ContainsFunc(wanted, func(word string) bool { return !strings.Contains(text, word) })
}

// now is the clock of the console.
func (c *Console) now() time.Time { return c.Now().UTC() }

// newCard returns the card of an order.
func (c *Console) newCard(s labhealthtest.OrderState, back string) card {
	now := c.now()
	o := card{
		OrderState: s, Lane: lanes[laneOfOrder(s.Status)].Key, Words: statusWords(s.Status, s.StatusDetail), Age: age(now.Sub(s.Since)),
		Icon: methodIcon(s.Method), MethodName: methodName(s.Method), Vial: vialOf(s.Status), Back: back, Fresh: now.Sub(s.Since) < freshAge,
		HasResults: s.Results != nil,
	}
	o.LabTest = visible(cmp.Or(s.LabTest, "No lab test"))
	o.Ended = o.Lane == "ended"
	if len(s.Next) > 0 {
		o.Next = statusWords(s.Next[0], "")
	}
	stuck := isStuck(s.Status, s.Since, now)
	if s.Results != nil {
		o.addResults(*s.Results)
	}
	if stuck {
		o.Tags = append(o.Tags, cardTag{"warn", "warn", "stuck"})
	}
	if !isKnownStatus(s.Status) {
		o.Tags = append(o.Tags, cardTag{"warn", "warn", "unknown status"})
	}
	if s.RedrawOf != uuid.Nil {
		o.Tags = append(o.Tags, cardTag{"", "", "redraw of " + s.RedrawOf.String()[:8]})
	}
	if !o.Ended {
		o.Steps, o.Step = stepsOf(s.Reached, len(s.Next), o.Lane == "completed")
	}
	switch {
	case o.Lane == "completed":
		o.StepsState = "done"
	case stuck:
		o.StepsState = "stuck"
	}
	return o
}

// maxSteps limits the steps of a card.
const maxSteps = 12

// stepsOf returns the class of each step.
func stepsOf(reached, ahead int, done bool) (steps []string, step int) {
	reached = max(1, reached)
	for reached+ahead > maxSteps && reached > 1 {
		reached--
	}
	for i := range min(reached+ahead, maxSteps) {
		switch {
		case i < reached-1 || done:
			steps = append(steps, "on")
		case i == reached-1:
			steps = append(steps, "here")
		default:
			steps = append(steps, "")
		}
	}
	return steps, min(reached, maxSteps)
}

// addResults adds what the results of the order are, in place of its status once it is completed.
func (c *card) addResults(r labhealthtest.ResultCounts) {
	critical, abnormal := r.Interpretation == "critical", r.Interpretation == "abnormal"
	switch {
	case c.Lane == "completed":
		c.Words = countOf(r.Total, "result")
		if _, _, low := splitStatus(c.Status); low == "corrected" {
			c.Words = "Corrected, " + c.Words
		}
		if r.Total > 0 && r.Abnormal+r.Critical == 0 && !critical && !abnormal {
			c.Words += ", all usual"
		}
	case c.Markers > r.Total:
		c.Tags = append(c.Tags, cardTag{"", "", fmt.Sprintf("%d of %d results", r.Total, c.Markers)})
	}
	switch {
	case r.Critical > 0:
		c.Tags = append(c.Tags, cardTag{"bad", "diamond", fmt.Sprintf("%d critical", r.Critical)})
	case critical:
		c.Tags = append(c.Tags, cardTag{"bad", "diamond", "critical"})
	}
	switch {
	case r.Abnormal > 0:
		c.Tags = append(c.Tags, cardTag{"warn", "up", fmt.Sprintf("%d abnormal", r.Abnormal)})
	case abnormal && r.Critical == 0:
		c.Tags = append(c.Tags, cardTag{"warn", "up", "abnormal"})
	}
	if r.Missing > 0 && c.Lane == "completed" {
		c.Tags = append(c.Tags, cardTag{"", "", fmt.Sprintf("%d missing", r.Missing)})
	}
}

// reachedOf returns how many different statuses an order has had.
func reachedOf(o *labhealth.Order) int {
	var seen []labhealth.OrderStatus
	for _, e := range o.Events {
		if len(seen) < maxSteps && !slices.Contains(seen, e.Status) {
			seen = append(seen, e.Status)
		}
	}
	return len(seen)
}

// redrawOf returns the order that an order repeats, or zero.
func redrawOf(o *labhealth.Order) uuid.UUID {
	if o.Origin == nil || *o.Origin != labhealth.OrderOriginRedraw || o.OrderTransaction == nil {
		return uuid.Nil
	}
	for _, other := range o.OrderTransaction.Orders {
		if other.ID == o.ID && other.ParentID != nil {
			return *other.ParentID
		}
	}
	return uuid.Nil
}

// orderStates returns the states of all orders: of the service, or of the deliveries.
func (c *Console) orderStates(ctx context.Context) ([]labhealthtest.OrderState, error) {
	if c.sandbox() {
		return c.Server.OrderStates(), nil
	}
	states := []labhealthtest.OrderState{}
	for stored, err := range c.Inspector.Store.Orders(ctx, sqlstore.OrderFilter{}) {
		if err != nil {
			return nil, err
		}
		states = append(states, storedState(stored))
	}
	return states, nil
}

func storedState(stored sqlstore.StoredOrder) labhealthtest.OrderState {
	o := stored.Order
	s := labhealthtest.OrderState{
		ID: o.ID, UserID: stored.UserID, Method: string(o.Details.Type), LabTest: o.LabTest.Name,
		Status: string(stored.Status), Since: stored.Since, CreatedAt: o.CreatedAt, Reached: reachedOf(o), Markers: len(o.LabTest.Markers), RedrawOf: redrawOf(o),
	}
	if o.SampleID != nil {
		s.SampleID = *o.SampleID
	}
	if d := o.LastEvent.StatusDetail; d != nil {
		s.StatusDetail = string(*d)
	}
	return s
}

// countStoredResults adds the results that deliveries brought.
func (c *Console) countStoredResults(ctx context.Context, s *labhealthtest.OrderState) {
	results, err := c.readResults(ctx, s.ID)
	if err != nil || results == nil {
		return
	}
	s.Results = &labhealthtest.ResultCounts{Total: len(results.Results), Missing: len(results.MissingResults)}
	for i := range results.Results {
		switch v := &results.Results[i]; {
		case v.Critical():
			s.Results.Critical++
		case v.Abnormal():
			s.Results.Abnormal++
		}
	}
	if results.Metadata.Interpretation != nil {
		s.Results.Interpretation = string(*results.Metadata.Interpretation)
	}
}

// readOrder returns an order: of the service, or of the deliveries. It is nil if there is none.
func (c *Console) readOrder(ctx context.Context, id uuid.UUID) (*labhealth.Order, error) {
	if c.sandbox() {
		if _, ok := c.Server.OrderState(id); !ok {
			return nil, nil
		}
		return c.Client.Orders.Get(ctx, id)
	}
	stored, ok, err := c.Inspector.Store.Order(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	return stored.Order, nil
}

// readResults returns the results of an order.
func (c *Console) readResults(ctx context.Context, id uuid.UUID) (*labhealth.OrderResults, error) {
	if c.sandbox() {
		return c.Client.Orders.Results(ctx, id)
	}
	results, _, err := c.Inspector.Store.OrderResults(ctx, id)
	return results, err
}

func (c *Console) countOrders(ctx context.Context) int {
	if c.sandbox() {
		return len(c.Server.Orders())
	}
	n, err := c.Inspector.CountOrders(ctx)
	if err != nil {
		c.Log.Error("console: cannot count the orders", "error", err)
	}
	return n
}

// firstSteps are what to do while there is no order.
func (c *Console) firstSteps() []todo {
	if !c.sandbox() {
		return []todo{
			{Lead: "Send webhooks to this address.", Text: "Each labtest.order event brings the whole order, which then appears here."},
		}
	}
	return []todo{
		{Done: c.Server.RequestCount() > 0, Lead: "Give your program the base URL and the key.",
			Text: "It sets LABHEALTH_URL, LABHEALTH_API_KEY and LABHEALTH_WEBHOOK_SECRET.", Command: `eval "$(labhealth sandbox env)"`},
		{Lead: "Import an order, from your program or with the command.", Command: "labhealth orders import examples/order.json",
			Waiting: "Waiting for POST /v3/order/import"},
		{Lead: "See its events under Deliveries.", Text: "They can be forwarded to your receiver, there or with the command.",
			Command: "labhealth sandbox --forward http://localhost:3000/webhooks"},
	}
}
