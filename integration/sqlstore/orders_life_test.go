package sqlstore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// labEvent parses an event of user 1.
func labEvent(t testing.TB, kind, data string, receivedAt int) webhooks.Delivery {
	t.Helper()
	e, err := webhooks.Parse([]byte(`{"event_type":"labtest.` + kind + `","user_id":"` + user(1).String() + `","data":` + data + `}`))
	if err != nil {
		t.Fatal(err)
	}
	e.ReceivedAt = noon.Add(time.Duration(receivedAt) * time.Second)
	return webhooks.Delivery{Event: e}
}

// orderJSON returns an order of user 1 with some statuses, a second each.
func orderJSON(n int, more string, statuses ...string) string {
	events := make([]string, len(statuses))
	for i, status := range statuses {
		events[i] = fmt.Sprintf(`{"id":%d,"created_at":%q,"status":"%s"}`, n*100+i, second(i), status)
	}
	return fmt.Sprintf(`{"id":%q,"user_id":%q,"created_at":%q,"updated_at":%q,"events":[%s]%s}`,
		orderID(n), user(1), second(0), second(len(statuses)-1), strings.Join(events, ","), more)
}

func orderOf(t testing.TB, document string) *labhealth.Order {
	t.Helper()
	o := new(labhealth.Order)
	if err := o.UnmarshalJSON([]byte(document)); err != nil {
		t.Fatal(err)
	}
	return o
}

func resultsOf(t testing.TB, document string) *labhealth.OrderResults {
	t.Helper()
	r := new(labhealth.OrderResults)
	if err := r.UnmarshalJSON([]byte(document)); err != nil {
		t.Fatal(err)
	}
	return r
}

func applyOne(t testing.TB, store *sqlstore.Store, d webhooks.Delivery) sqlstore.Applied {
	t.Helper()
	applied, err := store.ApplyAll(t.Context(), []webhooks.Delivery{d})
	if err != nil {
		t.Fatal(err)
	}
	return applied[0]
}

func storedOrder(t testing.TB, store *sqlstore.Store, n int) sqlstore.StoredOrder {
	t.Helper()
	o, ok, err := store.Order(t.Context(), orderID(n))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return o
}

const (
	ordered   = "received.testkit.ordered"
	delivered = "sample_with_lab.testkit.delivered_to_lab"
	completed = "completed.testkit.completed"
)

// The service's clock decides between versions of an order, and the time of receipt only between
// those that it does not distinguish.
func TestOrderVersions(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store := d.store(t)
		type changes = webhooks.Changes
		for i, c := range []struct {
			data        string
			receivedAt  int
			want        changes
			transitions int
			status      string
		}{
			{orderJSON(1, ``, ordered, delivered), 10, changes{Added: 1}, 2, delivered},
			{orderJSON(1, ``, ordered), 20, changes{Older: 1}, 0, delivered},           // an old event again
			{orderJSON(1, ``, ordered, delivered), 10, changes{Same: 1}, 0, delivered}, // again
			{orderJSON(1, ``, ordered, delivered), 15, changes{Same: 1}, 0, delivered}, // again, later
			{orderJSON(1, `,"notes":"x"`, ordered, delivered), 12, changes{Older: 1}, 0, delivered},
			{orderJSON(1, `,"notes":"x"`, ordered, delivered), 16, changes{Updated: 1}, 0, delivered},
			{orderJSON(1, `,"notes":"x","requisition_form_url":"https://a.example/1"`, ordered, delivered), 17, changes{Same: 1}, 0, delivered},
			{orderJSON(1, `,"requisition_form_url":"https://a.example/2","notes":"x"`, ordered, delivered), 18, changes{Same: 1}, 0, delivered},
			{orderJSON(1, ``, ordered, delivered, completed), 5, changes{Updated: 1}, 1, completed}, // received on a machine whose clock is behind
			{orderJSON(1, ``, ordered, delivered), 30, changes{Older: 1}, 0, completed},
			{fmt.Sprintf(`{"id":%q,"status":"cancelled","user_id":%q}`, orderID(1), user(1)), 40, changes{Older: 1}, 0, completed}, // the response of an update
			{fmt.Sprintf(`{"id":%q,"events":[{"id":107,"created_at":%q,"status":"received.testkit.registered"}]}`, orderID(1), second(1)), 41, changes{Older: 1}, 1, completed},
		} {
			a := applyOne(t, store, labEvent(t, "order.updated", c.data, c.receivedAt))
			if diff := cmp.Diff(sqlstore.Applied{Changes: c.want, Transitions: c.transitions}, a); diff != "" {
				t.Errorf("%d: %s", i, diff)
			}
			if o := storedOrder(t, store, 1); string(o.Status) != c.status {
				t.Errorf("%d: %s", i, o.Status)
			}
		}
		timeline, err := store.Timeline(t.Context(), orderID(1))
		var got []string
		for _, e := range timeline {
			got = append(got, fmt.Sprint(e.ID, " ", int(e.At.Sub(noon)/time.Second), " ", string(e.Status)))
		}
		if diff := cmp.Diff([]string{"100 0 " + ordered, "101 1 " + delivered, "107 1 received.testkit.registered", "102 2 " + completed}, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
		a := applyOne(t, store, labEvent(t, "order.created", fmt.Sprintf(`{"id":%q,"created_at":"no time","events":[{"id":1,"status":%q}]}`, orderID(2), ordered), 1))
		if a.Err != webhooks.ErrUnreadable || a.Changes.Added != 1 || a.Transitions != 1 {
			t.Errorf("partly unreadable: %+v", a)
		}
		if _, ok, err := store.Order(t.Context(), orderID(3)); ok || err != nil {
			t.Error(ok, err)
		}
	})
}

func TestOrderResults(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		ctx := t.Context()
		due := func(n int) (state string) {
			t.Helper()
			if err := db.QueryRow(`SELECT results || CASE WHEN results_at IS NULL THEN '' WHEN results_at <= ` + fmt.Sprint(time.Now().UnixNano()) +
				` THEN ' now' ELSE ' later' END FROM labhealth_orders WHERE order_id = '` + orderID(n).String() + `'`).Scan(&state); err != nil {
				t.Fatal(err)
			}
			return state
		}
		recent := func(more string, statuses ...string) webhooks.Delivery { // within the time in which results come
			data := strings.ReplaceAll(orderJSON(1, more, statuses...), "2025-03-01T", time.Now().UTC().AddDate(0, 0, -2).Format("2006-01-02T"))
			return labEvent(t, "order.updated", data, 1)
		}
		results := func(n int, status, more string, at time.Time) bool {
			t.Helper()
			changed, err := store.ApplyResults(ctx, orderOf(t, orderJSON(n, "")), resultsOf(t, `{"metadata":{"status":"`+status+`"},"results":[`+more+`]}`), at)
			if err != nil {
				t.Fatal(err)
			}
			return changed
		}
		for i, c := range []struct {
			do   func() bool
			done bool
			want string
		}{
			{func() bool { return applyOne(t, store, recent("", ordered)).Transitions == 1 }, true, "none"},
			{func() bool { return applyOne(t, store, recent("", ordered, delivered)).Transitions == 1 }, true, "none later"},
			{func() bool {
				return applyOne(t, store, labEvent(t, "result.critical", fmt.Sprintf(`{"order_id":%q}`, orderID(1)), 1)).Err == nil
			}, true, "none now"},
			{func() bool { return results(1, "partial", `{"name":"a"}`, time.Now()) }, true, "partial later"},
			{func() bool { return results(1, "partial", `{"name":"a"}`, time.Now()) }, false, "partial later"},
			{func() bool { return results(1, "partial", `{"name":"older"}`, noon) }, false, "partial later"},
			{func() bool {
				return applyOne(t, store, labEvent(t, "match_review.updated", fmt.Sprintf(`{"id":%q,"resolved_order_id":%q}`, orderID(9), orderID(1)), 1)).Err == nil
			}, true, "partial now"},
			{func() bool { return results(1, "final", `{"name":"a"},{"name":"b"}`, time.Now()) }, true, "final later"},
			{func() bool { return applyOne(t, store, recent("", ordered, delivered, completed)).Transitions == 1 }, true, "final now"},
			{func() bool { return results(1, "final", `{"name":"a"},{"name":"b"}`, time.Now().Add(-time.Hour)) }, false, "final now"}, // read before
			{func() bool { return results(1, "final", `{"name":"a"},{"name":"b"}`, time.Now()) }, false, "final later"},
			{func() bool {
				return applyOne(t, store, recent("", ordered, delivered, completed, "completed.testkit.corrected")).Transitions == 1
			}, true, "corrected now"},
			{func() bool { return results(1, "final", `{"name":"a"},{"name":"c"}`, time.Now()) }, true, "corrected later"},
		} {
			if done := c.do(); done != c.done {
				t.Errorf("%d: %v", i, done)
			}
			if got := due(1); got != c.want {
				t.Errorf("%d: %q, want %q", i, got, c.want)
			}
		}
		stored, ok, err := store.OrderResults(ctx, orderID(1))
		if err != nil || !ok || len(stored.Results) != 2 || stored.Results[1].Name != "c" {
			t.Error(stored.RawJSON(), ok, err)
		}
		if n := column(t, db, `SELECT CAST(revision AS text) FROM labhealth_order_results`); !slices.Equal(n, []string{"3"}) {
			t.Error(n)
		}

		// Results come before their order.
		if !results(2, "partial", "", time.Now()) {
			t.Error("unchanged")
		}
		if _, ok, err := store.Order(ctx, orderID(2)); ok || err != nil {
			t.Error(ok, err)
		}
		applyOne(t, store, labEvent(t, "order.created", orderJSON(2, "", ordered, "cancelled.testkit.cancelled"), 1))
		if o := storedOrder(t, store, 2); o.Results != sqlstore.ResultsPartial {
			t.Error(o.Results)
		}
		for _, c := range []struct {
			order   *labhealth.Order
			results *labhealth.OrderResults
		}{{nil, &labhealth.OrderResults{}}, {&labhealth.Order{}, &labhealth.OrderResults{}}, {&labhealth.Order{ID: orderID(1)}, nil}} {
			if changed, err := store.ApplyResults(ctx, c.order, c.results, noon); changed || err == nil {
				t.Error(changed, err)
			}
		}
		if _, ok, err := store.OrderResults(ctx, orderID(3)); ok || err != nil {
			t.Error(ok, err)
		}
	})
}

func TestOrderFilters(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		const n = 450 // several pages
		var all []webhooks.Delivery
		for i := range n {
			more := ""
			if i%10 == 0 {
				more = fmt.Sprintf(`,"order_transaction":{"id":%q,"orders":[{"id":%q,"parent_id":%q}]}`, orderID(1000), orderID(i), orderID(7))
			}
			data := orderJSON(i, more, []string{ordered, delivered, completed}[:1+i%3]...)
			all = append(all, labEvent(t, "order.created", strings.ReplaceAll(data, user(1).String(), user(i%2).String()), i))
		}
		apply(t, store, all)
		since := time.Now()
		applyOne(t, store, labEvent(t, "appointment.updated", fmt.Sprintf(`{"id":%q,"order_id":%q}`, orderID(1), orderID(3)), 1)) // no change
		applyOne(t, store, labEvent(t, "order.updated", orderJSON(5, "", ordered, delivered, completed, "completed.testkit.corrected"), 1))
		list := func(f sqlstore.OrderFilter) (ids []uuid.UUID) {
			for o, err := range store.Orders(t.Context(), f) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, o.Order.ID)
				if _, _, err := store.Order(t.Context(), o.Order.ID); err != nil { // no connection is open
					t.Fatal(err)
				}
			}
			return ids
		}
		for i, c := range []struct {
			f    sqlstore.OrderFilter
			want int
		}{
			{sqlstore.OrderFilter{}, n},
			{sqlstore.OrderFilter{UserID: user(1)}, n / 2},
			{sqlstore.OrderFilter{Status: []labhealth.OrderStatus{ordered}}, n / 3},
			{sqlstore.OrderFilter{Status: []labhealth.OrderStatus{ordered, delivered}, UserID: user(0)}, n / 3},
			{sqlstore.OrderFilter{Results: []sqlstore.ResultsState{sqlstore.ResultsFinal}}, n/3 - 1},
			{sqlstore.OrderFilter{Results: []sqlstore.ResultsState{sqlstore.ResultsFinal, sqlstore.ResultsCorrected}}, n / 3},
			{sqlstore.OrderFilter{TransactionID: orderID(1000)}, n / 10},
			{sqlstore.OrderFilter{ChangedSince: since}, 1},
			{sqlstore.OrderFilter{ChangedSince: since.Add(-time.Hour)}, n},
			{sqlstore.OrderFilter{ChangedSince: since.Add(time.Hour)}, 0},
			{sqlstore.OrderFilter{UserID: user(2)}, 0},
		} {
			ids := list(c.f)
			if len(ids) != c.want {
				t.Errorf("%d: %d", i, len(ids))
			}
			slices.SortFunc(ids, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
			if len(slices.Compact(ids)) != c.want {
				t.Errorf("%d: an order twice", i)
			}
		}
		if o := storedOrder(t, store, 10); o.ParentID != orderID(7) || o.Order.OrderTransaction == nil {
			t.Error(o.ParentID)
		}
		for range store.Orders(t.Context(), sqlstore.OrderFilter{}) {
			break
		}
	})
}

// orderTables are the tables that hold anything about orders.
var orderTables = []string{"labhealth_orders", "labhealth_order_events", "labhealth_order_results", "labhealth_reactions", "labhealth_reconciled_users"}

// What is deleted leaves nothing, and what belongs to others stays.
func TestDeleteOrders(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		add := func(n int) {
			data := strings.ReplaceAll(orderJSON(n, "", ordered, completed), user(1).String(), user(n%2).String())
			applyOne(t, store, labEvent(t, "order.updated", data, 1))
			if _, err := store.ApplyResults(t.Context(), orderOf(t, data), resultsOf(t, `{"results":[]}`), noon); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 6 {
			add(n)
		}
		// Results of an order that is not stored, and of one whose user was not known then: they
		// belong to no user.
		noOrder := &labhealth.Order{ID: orderID(50), UserID: user(1)}
		noUser := &labhealth.Order{ID: orderID(51)}
		for _, o := range []*labhealth.Order{noOrder, noUser} {
			if _, err := store.ApplyResults(t.Context(), o, resultsOf(t, `{"results":[]}`), noon); err != nil {
				t.Fatal(err)
			}
		}
		add(51)
		for i, u := range []int{0, 1} {
			_, err := db.Exec(placeholders(d.dialect, `INSERT INTO labhealth_reactions (slot, id, due, kind, user_id, order_id, at, queued, attempts, body)
				VALUES (?, ?, 1, 'transition', ?, ?, 1, 1, 0, '')`),
				sqlstore.Slot(user(u)), uuid.NewString(), user(u).String(), orderID(i).String())
			if err == nil {
				_, err = db.Exec(placeholders(d.dialect, `INSERT INTO labhealth_reconciled_users (slot, user_id, at) VALUES (?, ?, 1)`), sqlstore.Slot(user(u)), user(u).String())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := store.DeleteUser(t.Context(), user(1)); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{3, 6, 4, 1, 2} { // that the user was deleted is kept
			if n := count(t, db, orderTables[i]); n != want {
				t.Errorf("%s has %d rows, want %d", orderTables[i], n, want)
			}
		}
		for _, u := range []uuid.UUID{user(0), uuid.Nil} {
			if err := store.DeleteUser(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		for _, table := range append([]string{"labhealth_users"}, orderTables...) {
			if table == "labhealth_reconciled_users" {
				table += " WHERE deleted IS NULL"
			}
			if n := count(t, db, table); n != 0 {
				t.Errorf("%s has %d rows", table, n)
			}
		}
	})
}

func TestOrderViews(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		applyOne(t, store, labEvent(t, "order.updated", orderJSON(1, fmt.Sprintf(`,"origin":"redraw","sample_id":"s\\1","notes":"\u0000","order_transaction":{"id":%q,"orders":[{"id":%q,"parent_id":%q}]}`,
			orderID(7), orderID(1), orderID(6)), ordered, `a\\b\u0000.c.d`), 1))
		applyOne(t, store, labEvent(t, "order.updated", fmt.Sprintf(`{"id":%q,"events":[{"id":1,"status":"completed.testkit.completed","status_detail":"fulfillment_error"}]}`, orderID(2)), 1))
		at := func(column string) string {
			if d.dialect == sqlstore.PostgreSQL {
				return `coalesce(to_char(` + column + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '-')`
			}
			return `coalesce(` + column + `, '-')`
		}
		note := `document ->> 'notes'`
		if d.dialect == sqlstore.SQLite {
			note = `CASE WHEN json_type(document, '$.notes') = 'text' THEN '` + "\ufffd" + `' END`
		}
		states := column(t, db, `SELECT CAST(order_id AS text) || ' ' || CAST(user_id AS text) || ' ' || status || ' ' || `+at("since")+` || ' ' || results || ' ' ||
			coalesce(CAST(transaction_id AS text), '-') || ' ' || coalesce(CAST(parent_id AS text), '-') || ' ' || coalesce(origin, '-') || ' ' || coalesce(sample_id, '-') || ' ' ||
			`+at("created")+` || ' ' || `+at("updated")+` || ' ' || `+at("missing")+` || ' ' || CASE WHEN changed IS NULL THEN '-' ELSE 'changed' END || ' ' || coalesce(`+note+`, '-')
			FROM labhealth_order_states ORDER BY order_id`)
		want := []string{
			orderID(1).String() + " " + user(1).String() + ` a\b\x00.c.d 2025-03-01T12:00:01.000000Z none ` + orderID(7).String() + " " + orderID(6).String() +
				` redraw s\1 2025-03-01T12:00:00.000000Z 2025-03-01T12:00:01.000000Z - changed ` + "\ufffd",
			orderID(2).String() + " " + user(1).String() + ` completed.testkit.completed - final - - - - - - - changed -`,
		}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Error(diff)
		}
		timeline := column(t, db, `SELECT CAST(order_id AS text) || ' ' || CAST(user_id AS text) || ' ' || `+at("at")+` || ' ' || status || ' ' || detail
			FROM labhealth_order_timeline ORDER BY order_id, at`)
		want = []string{
			orderID(1).String() + " " + user(1).String() + ` 2025-03-01T12:00:00.000000Z ` + ordered + " ",
			orderID(1).String() + " " + user(1).String() + ` 2025-03-01T12:00:01.000000Z a\b\x00.c.d `,
			orderID(2).String() + " " + user(1).String() + ` - completed.testkit.completed fulfillment_error`,
		}
		if diff := cmp.Diff(want, timeline); diff != "" {
			t.Error(diff)
		}
		if o := storedOrder(t, store, 1); o.Status != "a\\b\x00.c.d" {
			t.Errorf("%q", string(o.Status))
		}
	})
}

// statementsOf returns how many statements a call sends.
func statementsOf(t *testing.T, d database, deliveries []webhooks.Delivery) (n []int) {
	var mu sync.Mutex
	sent := 0
	f := faults{before: func(operation string) error {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(operation, "begin") && operation != "commit" {
			sent++
		}
		return nil
	}}
	store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 { // everything is new, and the store has no IDs; everything is new; nothing is
		if round < 2 {
			clear(t, d)
		}
		sent = 0
		if _, err := store.ApplyAll(t.Context(), deliveries); err != nil {
			t.Fatal(err)
		}
		n = append(n, sent)
	}
	return n[1:]
}

// Orders cost a constant number of statements on PostgreSQL, and nothing if there are none.
func TestOrderStatements(t *testing.T) {
	d := postgres(t)
	d.store(t)
	var samples, orders []webhooks.Delivery
	for u := range 20 {
		samples = append(samples, parse(t, []webhooks.RawDelivery{spread(u, "heartrate", "ring", "watch", 100, time.Minute)})...)
	}
	for n := range 100 {
		orders = append(orders, labEvent(t, "order.updated", orderJSON(n, "", ordered, delivered), 1))
	}
	for name, c := range map[string]struct {
		deliveries []webhooks.Delivery
		want       []int // when everything is new, and when it is stored
	}{
		"samples": {samples, []int{6, 3}},
		"orders":  {orders, []int{5, 3}},
		"both":    {slices.Concat(samples, orders), []int{10, 5}},
	} {
		if got := statementsOf(t, d, c.deliveries); !slices.Equal(got, c.want) {
			t.Errorf("%s take %d statements, want %d", name, got, c.want)
		}
	}
}
