package sqlstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
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

func orderID(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("00000000-0000-4000-9000-%012d", n))
}

// orderVersion is a version of an order as the service could send it. It is independent of the
// types of the library.
type orderVersion struct {
	order    int
	withUser bool
	updated  int // seconds; 0 if missing
	events   []orderEntry
	last     *orderEntry
	note     string
	reduced  bool // has the deprecated status only, as the response of an update
	received int  // seconds
	isRead   bool
	critical bool // an event about the order in place of the order
}

type orderEntry struct {
	id     int // 0 if missing
	at     int // seconds; 0 if missing
	status string
	detail string
}

func second(n int) string { return noon.Add(time.Duration(n) * time.Second).Format(time.RFC3339) }

func (e *orderEntry) json() map[string]any {
	fields := map[string]any{"status": e.status}
	if e.id != 0 {
		fields["id"] = e.id
	}
	if e.at != 0 {
		fields["created_at"] = second(e.at)
	}
	if e.detail != "" {
		fields["status_detail"] = e.detail
	}
	return fields
}

func (v *orderVersion) document() string {
	fields := map[string]any{"id": orderID(v.order), "notes": v.note, "created_at": second(-60)}
	if v.withUser {
		fields["user_id"] = user(v.order % 3)
		fields["order_transaction"] = map[string]any{"id": orderID(1000 + v.order/2), "orders": []any{
			map[string]any{"id": orderID(v.order), "parent_id": orderID(v.order / 2 * 2)}}}
	}
	if v.updated != 0 {
		fields["updated_at"] = second(v.updated)
	}
	events := []any{}
	for i := range v.events {
		events = append(events, v.events[i].json())
	}
	fields["events"] = events
	if v.last != nil {
		fields["last_event"] = v.last.json()
	}
	if v.reduced {
		fields["status"] = "cancelled"
	}
	document, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(document)
}

// delivery returns what a receiver, or a program that reads, applies.
func (v *orderVersion) delivery(t testing.TB) webhooks.Delivery {
	t.Helper()
	at := noon.Add(time.Duration(v.received) * time.Second)
	if v.isRead && !v.critical {
		order := new(labhealth.Order)
		if err := json.Unmarshal([]byte(v.document()), order); err != nil {
			t.Fatal(err)
		}
		e, err := webhooks.EventOfOrder(order, at)
		if err != nil {
			t.Fatal(err)
		}
		return webhooks.Delivery{Event: e}
	}
	kind, data := "labtest.order.updated", v.document()
	if v.critical {
		kind, data = "labtest.result.critical", fmt.Sprintf(`{"order_id":"%s","status":"final"}`, orderID(v.order))
	}
	e, err := webhooks.Parse([]byte(`{"event_type":"` + kind + `","data":` + data + `}`))
	if err != nil {
		t.Fatal(err)
	}
	e.ReceivedAt = at
	return webhooks.Delivery{Event: e}
}

// referenceOrder is what is to be stored of an order.
type referenceOrder struct {
	Document, Status, Results string
	User, Transaction, Parent uuid.UUID
	Since                     int64
	Timeline                  map[string]orderEntry
}

// referenceKey is the number of an order of its user, or of the one that no version names a user
// of.
func referenceKey(order int, withUser bool) int {
	if withUser {
		return order
	}
	return 1000 + order
}

// referenceOrders applies versions. partial reports whether partial results of an order are stored.
func referenceOrders(versions []orderVersion, partial func(order int) bool) map[int]referenceOrder {
	all := map[int]referenceOrder{}
	best := map[int]orderVersion{}
	rank := func(v *orderVersion) (int64, int, string) {
		latest := int64(0)
		for _, at := range append([]int{v.updated}, v.times()...) {
			if at != 0 {
				latest = max(latest, noon.Unix()+int64(at))
			}
		}
		return latest, v.received, v.document()
	}
	for _, v := range versions {
		if v.critical {
			continue
		}
		key := referenceKey(v.order, v.withUser)
		o, known := all[key]
		if !known {
			o.Timeline = map[string]orderEntry{}
		}
		if v.withUser {
			o.User, o.Transaction, o.Parent = user(v.order%3), orderID(1000+v.order/2), orderID(v.order/2*2)
		}
		for _, e := range v.entries() {
			id := strconv.Itoa(e.id)
			if e.id == 0 {
				id = fmt.Sprintf("%s@%d", e.status, e.nano())
			}
			stored, found := o.Timeline[id]
			if !found || fmt.Sprintf("%020d %s %s", e.nano(), e.status, e.detail) > fmt.Sprintf("%020d %s %s", stored.nano(), stored.status, stored.detail) {
				o.Timeline[id] = e
			}
		}
		old := best[key]
		newAt, newReceived, newText := rank(&v)
		oldAt, oldReceived, oldText := rank(&old)
		if !known || newAt > oldAt || newAt == oldAt && (newReceived > oldReceived || newReceived == oldReceived && newText > oldText) {
			best[key] = v
		}
		all[key] = o
	}
	for n, o := range all {
		v := best[n]
		o.Document = v.document()
		o.Status, o.Since = v.current(o.Timeline)
		o.Results = v.results(o.Status, o.Timeline, partial(n%1000))
		all[n] = o
	}
	return all
}

func (e *orderEntry) nano() int64 {
	if e.at == 0 {
		return 0
	}
	return noon.Add(time.Duration(e.at) * time.Second).UnixNano()
}

func (v *orderVersion) times() (all []int) {
	for _, e := range v.entries() {
		all = append(all, e.at)
	}
	return all
}

func (v *orderVersion) entries() []orderEntry {
	all := slices.Clone(v.events)
	if v.last != nil {
		all = append(all, *v.last)
	}
	return all
}

func (v *orderVersion) current(timeline map[string]orderEntry) (string, int64) {
	if v.last != nil {
		return v.last.status, v.last.nano()
	}
	if len(v.events) > 0 {
		best := v.events[0]
		for _, e := range v.events[1:] {
			if e.nano() >= best.nano() {
				best = e
			}
		}
		return best.status, best.nano()
	}
	ids := slices.SortedFunc(maps.Keys(timeline), func(a, b string) int { return referenceLater(a, b, timeline) })
	if len(ids) == 0 {
		return "", 0
	}
	e := timeline[ids[len(ids)-1]]
	return e.status, e.nano()
}

// referenceLater compares by time, and then by number, without a number first.
func referenceLater(a, b string, timeline map[string]orderEntry) int {
	x, y := timeline[a], timeline[b]
	pad := func(id string) string {
		if strings.Contains(id, "@") {
			return " " + id
		}
		return fmt.Sprintf("%020s", id)
	}
	return strings.Compare(fmt.Sprintf("%020d ", x.nano())+pad(a), fmt.Sprintf("%020d ", y.nano())+pad(b))
}

func (v *orderVersion) results(status string, timeline map[string]orderEntry, partial bool) string {
	if !partial && (strings.HasPrefix(status, "cancelled.") || status == "" && v.reduced) {
		return "none"
	}
	seen := map[string]bool{"partial_results": partial}
	for _, e := range timeline {
		seen[e.status[strings.LastIndexByte(e.status, '.')+1:]] = true
	}
	for _, c := range [][2]string{{"corrected", "corrected"}, {"completed", "final"}, {"partial_results", "partial"}} {
		if seen[c[0]] {
			return c[1]
		}
	}
	return "none"
}

var orderStatuses = []string{
	"received.testkit.ordered", "received.testkit.requisition_created", "collecting_sample.testkit.with_customer",
	"sample_with_lab.testkit.delivered_to_lab", "sample_with_lab.walk_in_test.partial_results", "sample_with_lab.walk_in_test.partial_results",
	"completed.testkit.completed", "completed.testkit.corrected", "failed.testkit.sample_error", "cancelled.testkit.cancelled", `odd\"\u0000.a.b`,
}

// randomVersions returns the versions of some orders, of which each has more entries than the one
// before, as they are received: some are lost, doubled or late, some are read, and some lack what
// the service may leave out.
func randomVersions(r *rand.Rand, orders int) (all []orderVersion) {
	for order := range orders {
		var events []orderEntry
		at, identified := 1+r.IntN(10), r.IntN(4) > 0
		for n := range 1 + r.IntN(8) {
			e := orderEntry{at: at, status: orderStatuses[min(len(orderStatuses)-1, n+r.IntN(4))]}
			if identified {
				e.id = order*100 + n + 1
			}
			if r.IntN(20) == 0 {
				e.at = 0
			}
			if e.status == orderStatuses[len(orderStatuses)-1] {
				e.status = "odd\"\\ \x00.a.b"
			}
			events = append(events, e)
			at += r.IntN(3)
			v := orderVersion{order: order, withUser: r.IntN(5) > 0, events: slices.Clone(events), received: 20 + at + r.IntN(4), isRead: r.IntN(3) == 0}
			if r.IntN(3) > 0 {
				v.updated = at
			}
			if r.IntN(2) == 0 {
				v.last = &v.events[len(v.events)-1]
			}
			if r.IntN(6) == 0 {
				v.events = v.events[:r.IntN(len(v.events)+1)]
			}
			if r.IntN(10) == 0 {
				v.events, v.last, v.updated, v.reduced = nil, nil, 0, r.IntN(2) == 0
			}
			if identified && r.IntN(5) == 0 && len(v.events) > 0 {
				v.events[len(v.events)-1].detail = "fulfillment_error"
			}
			v.note = strconv.Itoa(r.IntN(2))
			for range r.IntN(4) { // lost, or doubled
				all = append(all, v)
				v.received += r.IntN(3) * r.IntN(10)
				v.critical = r.IntN(8) == 0
			}
			v.critical = false
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// checkOrders compares the content of a store with the reference.
func checkOrders(t *testing.T, store *sqlstore.Store, want map[int]referenceOrder) {
	t.Helper()
	got := map[int]referenceOrder{}
	for o, err := range store.Orders(t.Context(), sqlstore.OrderFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimLeft(o.Order.ID.String()[24:], "0") + "")
		if err != nil {
			n = 0
		}
		g := referenceOrder{Document: string(o.Order.RawJSON()), Status: string(o.Status), Results: string(o.Results), User: o.UserID,
			Parent: o.ParentID, Timeline: map[string]orderEntry{}}
		if !o.Since.IsZero() {
			g.Since = o.Since.UnixNano()
		}
		timeline, err := store.Timeline(t.Context(), o.Order.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range timeline {
			if e.UserID != o.UserID {
				continue
			}
			entry := orderEntry{status: string(e.Status), detail: string(e.Detail)}
			if !strings.Contains(e.ID, "@") {
				entry.id, _ = strconv.Atoi(e.ID)
			}
			if !e.At.IsZero() {
				entry.at = int(e.At.Sub(noon) / time.Second)
			}
			g.Timeline[e.ID] = entry
		}
		got[referenceKey(n, o.UserID != uuid.Nil)] = g
	}
	for n, o := range want {
		o.Transaction = uuid.Nil // checked by the filter
		want[n] = o
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(orderEntry{})); diff != "" {
		t.Errorf("stored (+) instead of (-):\n%s", diff)
	}
}

// Whatever is lost, doubled, delayed or read in between, and however it is divided into batches and
// among goroutines, the content is that of the reference, and each transition is new once.
func TestOrders(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		rounds := 3
		if long {
			rounds = 100
		}
		store := d.store(t)
		for round := range rounds {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			clear(t, d)
			versions := randomVersions(r, 12)
			goroutines := 1 + 3*(round%2)
			parts := make([][]webhooks.Delivery, goroutines)
			for i := range versions {
				n := r.IntN(goroutines)
				parts[n] = append(parts[n], versions[i].delivery(t))
			}
			var all sync.WaitGroup
			transitions := make([]int, goroutines)
			for n, part := range parts {
				sizes := rand.New(rand.NewPCG(seed, uint64(n)))
				all.Go(func() {
					for len(part) > 0 {
						size := min(len(part), 1+sizes.IntN(40))
						applied, err := store.ApplyAll(context.Background(), part[:size])
						if err != nil {
							t.Error(err)
							return
						}
						for _, a := range applied {
							transitions[n] += a.Transitions
						}
						part = part[size:]
					}
				})
			}
			all.Wait()
			want := referenceOrders(versions, func(int) bool { return false })
			checkOrders(t, store, want)
			sum, entries := 0, 0
			for _, n := range transitions {
				sum += n
			}
			for _, o := range want {
				entries += len(o.Timeline)
			}
			if sum != entries {
				t.Errorf("%d transitions were new, of %d", sum, entries)
			}
			if t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
	})
}
