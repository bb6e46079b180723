// Reads orders and results: lists that change meanwhile, missing orders, results that are due.

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Order reads one order and its results. That the service does not have the order is no error: see
// MissingOrders of [Reconciled].
func (r *Reconciler) Order(ctx context.Context, orderID uuid.UUID) (Reconciled, error) {
	if err := r.check(ctx); err != nil {
		return Reconciled{}, err
	}
	p := &pass{Reconciler: r, name: "order", run: func(p *pass, ctx context.Context) (bool, error) {
		if err := p.readOrder(ctx, orderID); err != nil {
			return false, err
		}
		orders, err := p.withResults(ctx, allSlots, `o.order_id`, orderID)
		for i := 0; i < len(orders) && err == nil; i++ {
			err = p.readResults(ctx, orders[i])
		}
		return true, err
	}}
	return p.once(ctx)
}

// ordersPage is the number of orders of a page, and of those that are read together.
const ordersPage = 100

var errRepeatedPage = errors.New("sqlstore: the service repeats a page of orders")

// nextOrders reads the next page of a list of orders, and moves the position. The last page is
// empty or reported as the last.
//
// Orders change while a list is read. One that is created, deleted, or updated so that a filter
// selects it, moves all later ones to other pages. The list is therefore not read by page numbers:
// it is sorted by the time of creation, which never changes, and the next page starts at the time
// of the last order of this one, which is read again. Nothing is skipped, whatever happens to the
// orders before it. If a whole page has one time of creation, the next one has the next number.
//
// A service that does not honor the filter or the sort key is read by page numbers. Then an order
// can be skipped if another one is deleted meanwhile. The next pass finds it.
func (p *pass) nextOrders(ctx context.Context, params labhealth.ListOrdersParams) (orders []labhealth.Order, readAt time.Time, last bool, err error) {
	p.at.Page = max(p.at.Page, 1)
	number := p.at.Page
	params.StartDate, params.OrderKey, params.OrderDirection = p.at.From, "created_at", "asc"
	params.Page, params.Size = number, p.pageSize()
	readAt = time.Now()
	page, err := p.Client.Orders.List(ctx, params)
	if err != nil {
		last, err = p.passPage(ctx, err)
		return nil, readAt, last, err
	}
	orders = page.Orders
	ids := make(map[uuid.UUID]bool, len(orders))
	isRepeated := len(p.previous) > 0
	for i := range orders {
		ids[orders[i].ID] = true
		isRepeated = isRepeated && p.previous[orders[i].ID]
		p.note(&orders[i], params)
	}
	last = p.isLastPage(page, number, ids)
	if isRepeated && len(ids) == len(p.previous) && number > 1 { // the page number is ignored
		if page.Total != nil && *page.Total > int64(len(orders)) {
			return nil, readAt, false, errRepeatedPage
		}
		last = true
	}
	p.previous = ids
	p.movePosition(orders, number)
	return orders, readAt, last || p.isEndless(), nil
}

// maxPages is the number of pages after which a list counts as endless.
const maxPages = 100_000

// isEndless counts a page of a list, and reports whether there were too many. The rest has failed.
func (p *pass) isEndless() bool {
	if p.at.Pages++; p.at.Pages < maxPages {
		return false
	}
	p.at.Pages = 0
	p.at.Failed++
	p.found.Failed++
	return true
}

// note records what an order of a page shows.
func (p *pass) note(order *labhealth.Order, params labhealth.ListOrdersParams) {
	const wholeDay = 24 * time.Hour // the service may honor the date only
	updated := order.UpdatedAt
	if !updated.IsZero() && updated.Before(params.UpdatedStartDate.Add(-wholeDay)) {
		p.at.Unfiltered, p.found.Unfiltered = true, true
	}
	// A time far in the future is wrong, and would exclude everything until then.
	if updated.After(p.at.Newest) && updated.Before(time.Now().Add(wholeDay)) {
		p.at.Newest = updated
	}
}

// isLastPage reports whether no page follows one with these orders. A size that is not a full page
// says nothing: the service may have a smaller limit than the one that it reports, and it may leave
// out orders of a page. So without a total, the last page is one with no other orders than the page
// before it.
func (p *pass) isLastPage(page *labhealth.OrderPage, number int, ids map[uuid.UUID]bool) bool {
	n, largest := len(page.Orders), p.at.Largest
	p.at.Largest = max(n, largest)
	if n > 0 && page.Total != nil && *page.Total > 0 {
		size := int64(p.pageSize())
		if page.Size != nil && *page.Size > 0 {
			size = *page.Size
		}
		return int64(number-1)*size+int64(n) >= *page.Total
	}
	for id := range ids {
		if !p.previous[id] {
			return false
		}
	}
	return n < largest || number > 1 || n == 0
}

// movePosition moves the position behind a page.
func (p *pass) movePosition(orders []labhealth.Order, number int) {
	p.at.Page = number + 1
	if len(orders) == 0 {
		return
	}
	created := func(a, b labhealth.Order) int { return a.CreatedAt.Compare(b.CreatedAt) }
	if !p.at.Unsorted && !slices.IsSortedFunc(orders, created) {
		if number > 1 || !p.at.From.IsZero() {
			p.at.Page = 1 // from the start again
		}
		p.at.From, p.at.Numbered, p.at.Unsorted = time.Time{}, true, true
		return
	}
	if !p.at.From.IsZero() && orders[0].CreatedAt.Before(p.at.From.Add(-time.Second)) {
		p.at.Numbered, p.at.Unfiltered, p.found.Unfiltered = true, true, true
	}
	// Whether the service includes the start is not documented: a microsecond earlier it does.
	if from := orders[len(orders)-1].CreatedAt.Add(-time.Microsecond); !p.at.Numbered && from.After(p.at.From) {
		p.at.From, p.at.Page = from, 1
	}
	p.resize()
}

func (p *pass) pageSize() int { return orDefault(p.at.Size, ordersPage) }

// maxPassed is the number of orders in a row that are passed one by one.
const maxPassed = 10

// passPage moves the position when a page of orders cannot be read although the service responds to
// other requests: to a page of a tenth of the size or, if it has one order, past that order. Behind
// several such orders it passes times, longer each time, until now. What is passed counts as
// failed. Stored orders among it are not listed, so that a walk reads them one by one.
func (p *pass) passPage(ctx context.Context, err error) (last bool, _ error) {
	if verdictOf(ctx, err) != unclear || !p.responds(ctx) {
		return false, err
	}
	at := &p.at
	if size := p.pageSize(); size > 1 {
		at.Page, at.Size, at.Small = (at.Page-1)*10+1, size/10, 10
		p.passKnown()
		return false, nil
	}
	jump := time.Millisecond << max(0, at.Passed-maxPassed)
	switch {
	case at.Passed < maxPassed:
		at.Page++
	case at.Numbered || at.From.IsZero():
		return false, err
	default:
		at.From, at.Page = at.From.Add(jump), 1
		last = at.From.After(time.Now())
	}
	at.Passed++
	at.Failed++
	p.found.Failed++
	return last, nil
}

// resize makes the pages larger again behind one that could not be read. Their numbers count the
// orders before them.
func (p *pass) resize() {
	at := &p.at
	at.Passed = 0
	if at.Size == 0 {
		return
	}
	at.Small--
	if before := (at.Page - 1) * at.Size; at.Small <= 0 && before%(10*at.Size) == 0 {
		at.Size *= 10
		at.Page = before/at.Size + 1
	}
	if at.Size == ordersPage {
		at.Size = 0
	}
	p.passKnown()
}

// passKnown moves the position behind the first order of a list, if a page has one order: it was
// the last one of the page before.
func (p *pass) passKnown() {
	if p.at.Size == 1 && p.at.Page == 1 && !p.at.From.IsZero() && !p.at.Numbered {
		p.at.Page = 2
	}
}

// readChanged reads a page of the orders that the service has changed.
func (p *pass) readChanged(ctx context.Context) (complete bool, err error) {
	if p.at.Since.IsZero() { // walkOrders reads older ones
		p.at.Since = p.at.Started.AddDate(0, 0, -orDefault(p.Days, 30))
	}
	orders, readAt, last, err := p.nextOrders(ctx, labhealth.ListOrdersParams{UpdatedStartDate: p.at.Since})
	if err != nil {
		return false, err
	}
	if last && !p.at.Newest.IsZero() {
		// An order that changed during this pass, after its page was read, has not been seen. It
		// was changed at most that long before Newest.
		took := max(0, time.Since(p.at.Started))
		since := p.at.Newest.Add(-took - overlap)
		// What could not be read is read again, for a day: the walks read everything.
		if oldest := since.Add(-day); p.at.Failed == 0 || p.at.Since.After(since) {
			p.at.Since = since
		} else if p.at.Since.Before(oldest) {
			p.at.Since = oldest
		}
	}
	return last, p.applyOrders(ctx, orders, readAt)
}

// walkOrders reads a page of all orders, and reads the stored orders that the service does not list
// one by one.
func (p *pass) walkOrders(ctx context.Context) (complete bool, err error) {
	orders, readAt, last, err := p.nextOrders(ctx, labhealth.ListOrdersParams{})
	if err != nil || len(orders) == 0 && !last {
		return false, err
	}
	if err := p.applyOrders(ctx, orders, readAt); err != nil {
		return false, err
	}
	if p.seen == nil {
		p.seen = map[uuid.UUID]int64{}
	}
	for i := range orders {
		p.seen[orders[i].ID] = nanoseconds(orders[i].CreatedAt)
	}
	if p.at.Unsorted && !last {
		return false, nil
	}
	until := int64(math.MaxInt64)
	if !last {
		until = nanoseconds(orders[len(orders)-1].CreatedAt)
	}
	if err := p.compareStored(ctx, until); err != nil {
		return false, err
	}
	p.at.Compared = until
	maps.DeleteFunc(p.seen, func(_ uuid.UUID, created int64) bool { return created < until })
	return last, nil
}

// compareStored reads the stored orders that were created before a time, and since the last ones
// that were compared, if they were not listed.
func (p *pass) compareStored(ctx context.Context, until int64) error {
	from := p.at.Compared
	if from == 0 {
		from = math.MinInt64
	}
	const which = `o.slot = $1::smallint AND o.created >= $2::bigint AND o.created < $3::bigint AND o.missing IS NULL`
	slots, err := p.Store.slotsWith(ctx, p.Store.db, `labhealth_orders | `+strings.Replace(which, `$1::smallint`, `k.slot AND $1::smallint = 0`, 1), 0, from, until)
	if err != nil {
		return p.Store.failed(ctx, "reconcile", err)
	}
	for _, slot := range slots {
		created, last := from, orderKey{}
		for more := true; more; {
			var unlisted []orderKey
			n := 0
			err := p.Store.query(ctx, p.Store.db, func(rows *sql.Rows) error {
				err := rows.Scan(&created, &last.user, &last.order)
				if _, isListed := p.seen[last.order]; !isListed {
					unlisted = append(unlisted, last)
				}
				n++
				return err
			}, `SELECT o.created, o.user_id, o.order_id FROM labhealth_orders AS o WHERE `+which+` AND (o.created, o.user_id, o.order_id) > ($2::bigint, $4::uuid, $5::uuid)
				ORDER BY o.created, o.user_id, o.order_id LIMIT 1000`, slot, created, until, last.user.String(), last.order.String())
			if err != nil {
				return p.Store.failed(ctx, "reconcile", err)
			}
			failed, err := p.each(ctx, len(unlisted), func(p *pass, ctx context.Context, i int) error { return p.readOrder(ctx, unlisted[i].order) })
			if err != nil {
				return err
			}
			p.at.Failed += len(failed)
			more = n == 1000
		}
	}
	return nil
}

// readOrder reads one order. If the service does not have it, it is missing.
func (p *pass) readOrder(ctx context.Context, id uuid.UUID) error {
	readAt := time.Now()
	order, err := p.Client.Orders.Get(ctx, id)
	switch {
	case isMissing(err):
		return p.setMissing(ctx, id, readAt)
	case err != nil:
		return err
	}
	return p.applyOrders(ctx, []labhealth.Order{*order}, readAt)
}

// setMissing stores that the service does not have an order. A walk that lists it brings it back.
func (p *pass) setMissing(ctx context.Context, id uuid.UUID, at time.Time) error {
	orders, err := p.storedOrders(ctx, allSlots, `o.order_id = $1::uuid`, id)
	for i := 0; i < len(orders) && err == nil; i++ {
		var changed int64
		changed, err = p.Store.change(ctx, "reconcile", `UPDATE labhealth_orders SET missing = $4::bigint, changed = $4::bigint, results_at = NULL WHERE `+ofOrder+` AND missing IS NULL`,
			append(orders[i].params(), at.UnixNano())...)
		if changed > 0 {
			p.found.MissingOrders++
			p.found.MissingOrderIDs = appendMissing(p.found.MissingOrderIDs, id)
		}
	}
	return err
}

// storedOrders returns the stored orders of slots with an ID in a condition.
func (p *pass) storedOrders(ctx context.Context, slots []int64, where string, id uuid.UUID) (orders []orderKey, err error) {
	err = p.Store.query(ctx, p.Store.db, func(rows *sql.Rows) error {
		var key orderKey
		err := rows.Scan(&key.user, &key.order)
		orders = append(orders, key)
		return err
	}, `SELECT o.user_id, o.order_id FROM labhealth_orders AS o WHERE o.slot IN {any: smallint} AND `+where+` ORDER BY o.user_id, o.order_id`, id.String(), anyOf(slots))
	return orders, p.Store.failed(ctx, "reconcile", err)
}

// applyOrders applies orders that were read.
func (p *pass) applyOrders(ctx context.Context, orders []labhealth.Order, readAt time.Time) error {
	events := make([]*webhooks.Event, 0, len(orders))
	for i := range orders {
		if !p.owns(orders[i].UserID) {
			continue
		}
		event, err := webhooks.EventOfOrder(&orders[i], readAt)
		if err != nil {
			p.found.Failed++
			continue
		}
		events = append(events, event)
	}
	return p.apply(ctx, events)
}

// dueOrder is a stored order whose results are to be read.
type dueOrder struct {
	orderKey
	due   int64
	since int64 // when it reached its status
}

// dueOrders returns orders whose results are due. A time that is later than the longest wait was
// set by a clock that was ahead.
func (p *pass) dueOrders(ctx context.Context) (orders []dueOrder, err error) {
	now := time.Now()
	for _, when := range []struct {
		is   string
		time int64
	}{{"<=", now.UnixNano()}, {">", now.Add(longestWait).UnixNano()}} {
		slots, err := p.Store.slotsWith(ctx, p.Store.db, `labhealth_orders | o.slot = k.slot AND o.results_at `+when.is+` $1::bigint`, when.time)
		if err != nil {
			return nil, p.Store.failed(ctx, "reconcile", err)
		}
		for _, slot := range slots {
			if len(orders) == ordersPage {
				break
			}
			err := p.Store.query(ctx, p.Store.db, func(rows *sql.Rows) error {
				var o dueOrder
				err := rows.Scan(&o.user, &o.order, &o.due, &o.since)
				orders = append(orders, o)
				return err
			}, `SELECT o.user_id, o.order_id, o.results_at, coalesce(nullif(o.since, 0), nullif(o.updated, 0), nullif(o.created, 0), o.changed)
				FROM labhealth_orders AS o WHERE o.slot = $1::smallint AND o.results_at `+when.is+` $2::bigint ORDER BY o.results_at LIMIT $3::integer`,
				slot, when.time, ordersPage-len(orders))
			if err != nil {
				return nil, p.Store.failed(ctx, "reconcile", err)
			}
		}
	}
	return orders, nil
}

// readDueResults reads the results of orders that have or may have new ones.
func (p *pass) readDueResults(ctx context.Context) (complete bool, err error) {
	due, err := p.dueOrders(ctx)
	if err != nil {
		return false, err
	}
	failed, err := p.each(ctx, len(due), func(p *pass, ctx context.Context, i int) error {
		if err := p.readResults(ctx, due[i].orderKey); err != nil {
			return err
		}
		return p.postpone(ctx, due[i], nextPoll(due[i].since, time.Now().UnixNano())) // if there are none
	})
	soon := time.Now().Add(retryTime).UnixNano()
	for n := 0; n < len(failed) && err == nil; n++ {
		err = p.postpone(ctx, due[failed[n]], soon)
	}
	return len(due) < ordersPage, err
}

// postpone moves the due time of an order, unless it has been changed since it was read.
func (p *pass) postpone(ctx context.Context, o dueOrder, next int64) error {
	_, err := p.Store.change(ctx, "reconcile", `UPDATE labhealth_orders SET results_at = nullif($4::bigint, 0) WHERE `+ofOrder+` AND results_at = $5::bigint`,
		append(o.params(), next, o.due)...)
	return err
}

// hasFinalResults is the condition for orders o of which final results are stored.
const hasFinalResults = ` EXISTS (SELECT 1 FROM labhealth_order_results AS r
	WHERE r.slot = o.slot AND r.user_id = o.user_id AND r.order_id = o.order_id AND r.status <> 'partial')`

// hasOrMayHaveResults is the condition for orders that have results, or may have some without an
// event: see mayHaveResults. The lab may have had partial ones of an order that has failed.
const hasOrMayHaveResults = ` o.missing IS NULL AND (o.results <> 'none' OR o.results_at IS NOT NULL OR o.status LIKE '%.draw#_completed' ESCAPE '#'
	OR NOT (o.status = '' OR o.status LIKE 'received.%' OR o.status LIKE 'collecting#_sample.%' ESCAPE '#' OR o.status LIKE 'cancelled.%'))`

// withResults returns the orders of slots that have or may have results, and have an ID in a
// column.
func (p *pass) withResults(ctx context.Context, slots []int64, column string, of uuid.UUID) ([]orderKey, error) {
	return p.storedOrders(ctx, slots, column+` = $1::uuid AND`+hasOrMayHaveResults, of)
}

// readResults reads the results of a stored order. It is no error if there are none yet.
func (p *pass) readResults(ctx context.Context, of orderKey) error {
	readAt := time.Now()
	results, err := p.Client.Orders.Results(ctx, of.order)
	switch {
	case isMissing(err):
		return nil
	case err != nil:
		return err
	}
	p.found.Read.Results++
	changed, err := p.Store.storeResults(ctx, of, results, readAt, true) // unless it was deleted meanwhile
	if changed {
		p.found.Differences.Results++
	}
	return err
}
