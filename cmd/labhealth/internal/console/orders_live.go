package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

const (
	// orderPause is how long changes of orders are collected, so that an order that changes often
	// is rendered once.
	orderPause = 200 * time.Millisecond
	// maxLiveOrders is the number of orders whose cards are sent one by one. If more have changed,
	// whole lanes are sent.
	maxLiveOrders = 40
)

// orderChanges are orders that have changed and were not published yet.
type orderChanges struct {
	// empty reports whether a page was shown that had no orders.
	empty atomic.Bool

	mu      sync.Mutex
	pending map[uuid.UUID]bool
	timer   *time.Timer

	// The states of the stored orders, which are many decoded orders, until one changes.
	states   []labhealthtest.OrderState
	statesAt time.Time
}

// statesAge is how long the states of stored orders are kept.
const statesAge = time.Second

// storedStates returns the states of the orders that deliveries brought.
func (c *Console) storedStates(ctx context.Context) ([]labhealthtest.OrderState, error) {
	o := &c.changedOrders
	o.mu.Lock()
	defer o.mu.Unlock()
	if age := c.Now().Sub(o.statesAt); o.states != nil && age >= 0 && age < statesAge {
		return o.states, nil
	}
	states := []labhealthtest.OrderState{}
	for stored, err := range c.Inspector.Store.Orders(ctx, sqlstore.OrderFilter{}) {
		if err != nil {
			return nil, err
		}
		states = append(states, storedState(stored))
	}
	o.states, o.statesAt = states, c.Now()
	return states, nil
}

// orderChanged updates the open pages after a change of an order.
func (c *Console) orderChanged(ctx context.Context, id uuid.UUID) {
	o := &c.changedOrders
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending == nil {
		o.pending = map[uuid.UUID]bool{}
	}
	o.pending[id] = true
	o.states = nil
	if o.timer == nil {
		o.timer = time.AfterFunc(orderPause, func() { c.publishOrders(ctx) })
	}
}

// orderDelivered updates the open pages after a delivery: what they show of it and, without a
// sandbox, the order that it brought.
func (c *Console) orderDelivered(ctx context.Context, number int64) {
	topic := func(id uuid.UUID) string { return "order-" + id.String() }
	if c.sandbox() && len(c.live.topics("order-")) == 0 {
		return
	}
	list, err := c.Inspector.List(ctx, inspect.Filter{After: number - 1, Before: number + 1}, 1)
	if err != nil || len(list) == 0 || list[0].OrderID == uuid.Nil {
		return
	}
	if id := list[0].OrderID; !c.sandbox() || c.live.watched(topic(id)) {
		c.orderChanged(ctx, id)
	}
}

// publishOrders sends the changes that were collected.
func (c *Console) publishOrders(ctx context.Context) {
	o := &c.changedOrders
	o.mu.Lock()
	changed := o.pending
	o.pending, o.timer = nil, nil
	o.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	c.publishFirstOrders(ctx)
	c.publishOrderCounts(ctx)
	for id := range changed {
		if c.live.watched("order-" + id.String()) {
			c.publishOrder(ctx, id)
		}
	}
	switch {
	case !c.boardWatched():
	case len(changed) > maxLiveOrders:
		c.publishLanes(ctx)
	default:
		for _, id := range c.latestLast(ctx, changed) {
			c.publishCard(ctx, id)
		}
	}
}

// latestLast returns the orders in the order in which their cards are put in front of the others.
func (c *Console) latestLast(ctx context.Context, changed map[uuid.UUID]bool) (ids []uuid.UUID) {
	since := map[uuid.UUID]time.Time{}
	for id := range changed {
		state, _ := c.orderState(ctx, id)
		ids, since[id] = append(ids, id), state.Since
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int {
		return cmp.Or(since[a].Compare(since[b]), strings.Compare(a.String(), b.String()))
	})
	return ids
}

// publishFirstOrders replaces empty pages by the board as soon as there are orders.
func (c *Console) publishFirstOrders(ctx context.Context) {
	if !c.changedOrders.empty.Load() {
		return
	}
	b, err := c.newBoard(ctx, nil)
	if err != nil {
		c.Log.Error("console: cannot read the orders", "error", err)
		return
	}
	if !b.None && c.changedOrders.empty.Swap(false) {
		c.live.publish("no-orders", change{ID: "no-orders", HTML: c.partial("orders", b), Say: "The first order was received"})
	}
}

// boardWatched reports whether a board is open.
func (c *Console) boardWatched() bool {
	for _, m := range methods {
		if c.live.watched("orders-" + m.Key) {
			return true
		}
	}
	return c.live.watched("orders") || c.live.watched("orders-found")
}

// publishOrderCounts sends the number of orders: in the navigation, in the head, and of each lane.
func (c *Console) publishOrderCounts(ctx context.Context) {
	states, err := c.orderStates(ctx)
	if err != nil {
		c.Log.Error("console: cannot read the orders", "error", err)
		return
	}
	c.live.publish("nav", change{ID: "count-orders", HTML: c.partial("nav-count", navItem{Key: "orders", Count: len(states)})})
	for _, m := range append([]string{""}, methodKeys()...) {
		topic := strings.TrimSuffix("orders-"+m, "-")
		if !c.live.watched(topic) {
			continue
		}
		b := c.countLanes(states, m)
		c.live.publish(topic, change{ID: "orders-count", HTML: c.partial("orders-count", b)})
		for _, l := range b.Lanes {
			c.live.publish(topic, change{ID: l.Key + "-n", HTML: c.partial("lane-count", l)})
			c.live.publish(topic, change{ID: l.Key + "-jump", HTML: c.partial("lane-jump", l)})
			c.live.publish(topic, change{ID: l.Key + "-older", HTML: c.partial("lane-older", l)})
		}
	}
}

func methodKeys() (keys []string) {
	for _, m := range methods {
		keys = append(keys, m.Key)
	}
	return keys
}

// countLanes counts the orders of a method, or of all.
func (c *Console) countLanes(states []labhealthtest.OrderState, method string) *board {
	b := &board{Total: len(states), Method: method}
	for _, l := range lanes {
		b.Lanes = append(b.Lanes, boardLane{lane: l})
	}
	for _, s := range states {
		if isStuck(s.Status, s.Since, c.now()) {
			b.Stuck++
		}
		if method == "" || s.Method == method {
			b.Lanes[laneOfOrder(s.Status)].Count++
		}
	}
	for i := range b.Lanes {
		b.Lanes[i].setOlder(b, laneCards)
	}
	return b
}

// publishCard sends the card of an order to the lane where it belongs.
func (c *Console) publishCard(ctx context.Context, id uuid.UUID) {
	state, ok := c.orderState(ctx, id)
	ch := change{ID: "order-" + id.String()}
	if ok {
		o := c.newCard(ctx, state, "") // each page sets where it returns to
		o.Fresh = true
		ch.HTML, ch.Into = c.partial("card", o), o.Lane+"-cards"
		ch.Say = "Order " + id.String()[:8] + ": " + o.Words
		c.live.publish("orders-"+state.Method, ch)
	} else {
		for _, m := range methods {
			c.live.publish("orders-"+m.Key, ch)
		}
	}
	c.live.publish("orders", ch)
	ch.Into = "" // a search shows what it found
	c.live.publish("orders-found", ch)
}

// publishLanes sends all lanes.
func (c *Console) publishLanes(ctx context.Context) {
	for _, m := range append([]string{""}, methodKeys()...) {
		topic := strings.TrimSuffix("orders-"+m, "-")
		if !c.live.watched(topic) {
			continue
		}
		b, err := c.newBoard(ctx, map[string][]string{"method": {m}})
		if err != nil {
			c.Log.Error("console: cannot read the orders", "error", err)
			return
		}
		for _, l := range b.Lanes {
			c.live.publish(topic, change{ID: l.Key, HTML: c.partial("lane", l)})
		}
	}
}

func (c *Console) orderState(ctx context.Context, id uuid.UUID) (labhealthtest.OrderState, bool) {
	if c.sandbox() {
		return c.Server.OrderState(id)
	}
	stored, ok, err := c.Inspector.Store.Order(ctx, id)
	if err != nil || !ok {
		return labhealthtest.OrderState{}, false
	}
	return storedState(stored), true
}

// publishOrder sends the parts of the page of an order.
func (c *Console) publishOrder(ctx context.Context, id uuid.UUID) {
	o, err := c.newOrder(ctx, id, false)
	if err != nil || o == nil {
		return
	}
	for _, part := range []string{"order-head", "order-timeline", "order-facts", "order-results", "order-read"} {
		c.live.publish("order-"+id.String(), change{ID: part, HTML: c.partial(part, o)})
	}
}
