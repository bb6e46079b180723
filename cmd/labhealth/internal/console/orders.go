package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	maxSteps  = 12               // of a card
)

func (c *Console) ordersRoutes() {
	c.mux.HandleFunc("GET /console/orders", c.ordersPage)
	c.mux.HandleFunc("GET /console/orders/{id}", c.orderPage)
	c.mux.HandleFunc("POST /console/orders/{id}/reveal", c.orderPage)
	if c.sandbox() {
		c.mux.HandleFunc("GET /console/orders/{id}/{document}", c.orderDocument)
		c.act("POST /console/orders", c.addOrder)
		c.act("POST /console/orders/fill", c.fillOrders)
		c.act("POST /console/orders/{id}/{action}", c.changeOrder)
	}
}

// board is the data of the template "orders".
type board struct {
	Total, Stuck int
	Lanes        []boardLane
	Query        query
	Sandbox      bool
	Tests        []labhealth.LabTest // of which orders can be added
	Started      bool                // a program has sent a request
}

// Methods returns the collection methods with the address of their orders.
func (b *board) Methods() []chipView {
	all := b.Query.with("method", "", "lane", "", "from", "")
	chips := []chipView{{Name: "All", Path: all.Address(), Current: b.Query.Get("method") == ""}}
	for _, m := range methods {
		chips = append(chips, chipView{
			Name: m.Name, Icon: m.Key, Path: all.with("method", m.Key).Address(), Current: b.Query.Get("method") == m.Key,
		})
	}
	return chips
}

// Found is the number of orders that the filter selects.
func (b *board) Found() (n int) {
	for _, l := range b.Lanes {
		n += l.Count
	}
	return n
}

type boardLane struct {
	lane
	Count int
	Cards []card
	Older string // path that shows the older ones, or empty
	More  int    // older ones
}

// card is an order on the board.
type card struct {
	labhealthtest.OrderState
	Lane  string
	Stuck bool
	Fresh bool
	Steps int    // 0 if it has ended
	Step  int    // the current one, from 0; Steps if all are done
	Back  string // path to return to
}

// Key are the words that the filter finds beside the text.
func (c card) Key() string {
	return strings.Join([]string{c.Method, c.Status, c.SampleID, c.ClientUserID, c.ID.String()}, " ")
}

func (c *Console) ordersPage(w http.ResponseWriter, r *http.Request) {
	states, err := c.orderStates(r.Context())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	b := &board{Total: len(states), Sandbox: c.sandbox(), Query: boardQuery(r.URL.Query())}
	live := "deliveries" // without a sandbox, these bring the orders
	if c.sandbox() {
		b.Tests, b.Started, live = c.labTests(r.Context()), c.Server.RequestCount() > 0, "orders"
	}
	c.fillLanes(b, states)
	c.render(w, r, "orders", page{Title: "Orders", Current: "orders", Live: live, Data: b})
}

// boardQuery returns what a query selects: q has words, method a collection method, and lane with
// from shows older orders of one lane.
func boardQuery(from url.Values) query {
	q := newQuery(from, ordersPath, "q", "method", "lane", "from")
	if !slices.ContainsFunc(methods, func(m method) bool { return m.Key == q.Get("method") }) {
		q = q.with("method", "")
	}
	return q
}

// fillLanes adds the latest orders of each lane, or the older ones of the lane in the query.
func (c *Console) fillLanes(b *board, states []labhealthtest.OrderState) {
	byLane := make([][]labhealthtest.OrderState, len(lanes))
	for _, s := range states {
		if isStuck(s.Status, s.Since, c.Now()) {
			b.Stuck++
		}
		if matches(s, b.Query) {
			i := laneOfOrder(s.Status)
			byLane[i] = append(byLane[i], s)
		}
	}
	from, _ := strconv.Atoi(b.Query.Get("from"))
	for i, l := range lanes {
		found := byLane[i]
		if only := b.Query.Get("lane"); only != "" && only != l.Key {
			found = nil
		}
		slices.SortStableFunc(found, func(a, b labhealthtest.OrderState) int {
			return cmp.Or(b.Since.Compare(a.Since), b.CreatedAt.Compare(a.CreatedAt))
		})
		start := max(0, min(from, len(found)))
		end := min(start+laneCards, len(found))
		bl := boardLane{lane: l, Count: len(found), More: len(found) - end}
		if bl.More > 0 {
			bl.Older = b.Query.with("lane", l.Key, "from", strconv.Itoa(end)).Address()
		}
		for _, s := range found[start:end] {
			bl.Cards = append(bl.Cards, c.newCard(s, b.Query.Address()))
		}
		b.Lanes = append(b.Lanes, bl)
	}
}

// laneOfOrder returns the lane of a status. Orders with an unknown status are in the first one.
func laneOfOrder(status string) int {
	top, _, _ := splitStatus(status)
	return laneOf[top]
}

// matches reports whether a query selects an order.
func matches(s labhealthtest.OrderState, q query) bool {
	text := strings.Join([]string{
		s.ID.String(), s.LabTest, s.Status, statusWords(s.Status, s.StatusDetail), s.SampleID, s.ClientUserID, s.UserID.String(), methodName(s.Method),
	}, " ")
	return (q.Get("method") == "" || s.Method == q.Get("method")) && matchesWords(text, q.Get("q"))
}

// newCard returns the card of an order.
func (c *Console) newCard(s labhealthtest.OrderState, back string) card {
	o := card{
		OrderState: s, Lane: lanes[laneOfOrder(s.Status)].Key, Stuck: isStuck(s.Status, s.Since, c.Now()), Fresh: c.Now().Sub(s.Since) < freshAge, Back: back,
	}
	if o.Lane != "ended" {
		o.Steps = min(max(1, s.Reached)+len(s.Next), maxSteps)
		o.Step = max(0, o.Steps-len(s.Next)-1)
	}
	if o.Lane == "completed" {
		o.Step = o.Steps
	}
	return o
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
