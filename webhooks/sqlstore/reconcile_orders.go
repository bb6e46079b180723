package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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
		ids, err := p.withResults(ctx, `order_id`, orderID)
		if err != nil || len(ids) == 0 {
			return true, err
		}
		return true, p.readResults(ctx, orderID)
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

// remember keeps the orders of a page.
func (p *pass) remember(orders []labhealth.Order) {
	p.previous = make(map[uuid.UUID]bool, len(orders))
	for i := range orders {
		p.previous[orders[i].ID] = true
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
	p.remember(orders)
	if last && !p.at.Newest.IsZero() {
		// An order that changed during this pass, after its page was read, has not been seen. It
		// was changed at most that long before Newest.
		took := max(0, time.Since(p.at.Started))
		since := p.at.Newest.Add(-took - orDefault(p.Overlap, time.Hour))
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
	p.remember(orders)
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
	for after := uuid.Nil; ; {
		var ids []uuid.UUID
		n := 0
		err := query(ctx, p.Store.db, func(rows *sql.Rows) error {
			var id uuid.UUID
			if err := rows.Scan(&from, &id); err != nil {
				return err
			}
			n, after = n+1, id
			if _, isListed := p.seen[id]; !isListed {
				ids = append(ids, id)
			}
			return nil
		}, p.Store.dialect.bind(`SELECT created, order_id FROM labhealth_orders
			WHERE created >= ? AND (created, order_id) > (?, ?) AND created < ? AND missing IS NULL
			ORDER BY created, order_id LIMIT 1000`), from, from, after.String(), until)
		if err != nil {
			return p.Store.failed(ctx, "reconcile", err)
		}
		if err := p.readUnlisted(ctx, ids); err != nil || n < 1000 {
			return err
		}
	}
}

// readUnlisted reads orders one by one. Those that cannot be read are due soon.
func (p *pass) readUnlisted(ctx context.Context, ids []uuid.UUID) error {
	failed, err := p.each(ctx, len(ids), func(p *pass, ctx context.Context, i int) error { return p.readOrder(ctx, ids[i]) })
	if err != nil {
		return err
	}
	soon := time.Now().Add(retryTime).UnixNano()
	for _, i := range failed {
		if _, err := p.Store.exec(ctx, `UPDATE labhealth_orders SET check_at = ? WHERE order_id = ? AND (check_at IS NULL OR check_at > ?)`,
			soon, ids[i].String(), soon); err != nil {
			return err
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
		// It may come back, so it is looked for again, but seldom.
		later := readAt.Add(longestWait).UnixNano()
		changed, err := p.Store.exec(ctx, `UPDATE labhealth_orders SET missing = ?, changed = ?, results_at = CASE WHEN results_at IS NOT NULL THEN CAST(? AS bigint) END,
			check_at = CASE WHEN check_at IS NOT NULL THEN CAST(? AS bigint) END WHERE order_id = ? AND missing IS NULL`,
			readAt.UnixNano(), readAt.UnixNano(), later, later, id.String())
		if changed > 0 {
			p.found.MissingOrders++
			p.found.MissingOrderIDs = appendMissing(p.found.MissingOrderIDs, id)
		}
		return err
	case err != nil:
		return err
	}
	return p.applyOrders(ctx, []labhealth.Order{*order}, readAt)
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

// dueOrder is a stored order that is to be read.
type dueOrder struct {
	id    uuid.UUID
	due   int64
	since int64 // when it reached its status
	final bool  // final results are stored
}

// dueOrders returns orders whose column, check_at or results_at, is due. A time that is later than
// the longest wait was set by a clock that was ahead.
func (p *pass) dueOrders(ctx context.Context, column string) (orders []dueOrder, err error) {
	now := time.Now()
	read := `SELECT * FROM (SELECT order_id, ` + column + `, coalesce(nullif(since, 0), nullif(updated, 0), nullif(created, 0), changed),
		` + hasFinalResults + ` FROM labhealth_orders AS o WHERE ` + column + ` %s ? ORDER BY ` + column + ` LIMIT ?) AS due`
	err = query(ctx, p.Store.db, func(rows *sql.Rows) error {
		var o dueOrder
		err := rows.Scan(&o.id, &o.due, &o.since, &o.final)
		orders = append(orders, o)
		return err
	}, p.Store.dialect.bind(fmt.Sprintf(read+` UNION ALL `+read+` LIMIT ?`, "<=", ">")),
		now.UnixNano(), ordersPage, now.Add(longestWait).UnixNano(), ordersPage, ordersPage)
	return orders, p.Store.failed(ctx, "reconcile", err)
}

// postpone moves the due time of an order, unless it has been changed since it was read. The wait
// is a quarter of the time since the order reached its status, so that it doubles every third time.
func (p *pass) postpone(ctx context.Context, o dueOrder, column string, least, most time.Duration) error {
	now := time.Now()
	age := now.Sub(time.Unix(0, o.since))
	wait := min(max(age/4, least), most)
	next := now.Add(wait).UnixNano()
	switch {
	case column == "check_at":
	case o.final:
		next = finalAt(o.since, now.UnixNano())
	case age > resultsFor:
		next = now.Add(longestWait).UnixNano()
	}
	return p.setDue(ctx, o, column, next)
}

func (p *pass) setDue(ctx context.Context, o dueOrder, column string, next int64) error {
	_, err := p.Store.exec(ctx, `UPDATE labhealth_orders SET `+column+` = nullif(CAST(? AS bigint), 0) WHERE order_id = ? AND `+column+` = ?`,
		next, o.id.String(), o.due)
	return err
}

// readEach reads each of the orders, and postpones those that cannot be read.
func (p *pass) readEach(ctx context.Context, orders []dueOrder, column string, read func(p *pass, ctx context.Context, o dueOrder) error) error {
	failed, err := p.each(ctx, len(orders), func(p *pass, ctx context.Context, i int) error { return read(p, ctx, orders[i]) })
	if err != nil {
		return err
	}
	soon := time.Now().Add(retryTime).UnixNano()
	for _, i := range failed {
		if err := p.setDue(ctx, orders[i], column, soon); err != nil {
			return err
		}
	}
	return nil
}

// readDue reads orders that have been in a status for longer than is usual.
func (p *pass) readDue(ctx context.Context) (complete bool, err error) {
	due, err := p.dueOrders(ctx, "check_at")
	if err != nil || len(due) == 0 {
		return true, err
	}
	ids := make([]uuid.UUID, len(due))
	for i, o := range due {
		ids[i] = o.id
	}
	readAt := time.Now()
	page, err := p.Client.Orders.List(ctx, labhealth.ListOrdersParams{OrderIDs: ids, Size: ordersPage})
	if err != nil {
		if !p.failsAlone(ctx, err) {
			return false, err
		}
		page = new(labhealth.OrderPage) // one of them may make the list fail
	}
	// The service may ignore the filter. Orders that were not asked for show that, and are ignored.
	orders := slices.DeleteFunc(page.Orders, func(o labhealth.Order) bool { return !slices.Contains(ids, o.ID) })
	p.found.Unfiltered = len(orders) < len(page.Orders)
	if err := p.applyOrders(ctx, orders, readAt); err != nil {
		return false, err
	}
	return len(due) < ordersPage, p.readEach(ctx, due, "check_at", func(p *pass, ctx context.Context, o dueOrder) error {
		if !slices.ContainsFunc(orders, func(read labhealth.Order) bool { return read.ID == o.id }) {
			if err := p.readOrder(ctx, o.id); err != nil {
				return err
			}
		}
		return p.postpone(ctx, o, "check_at", time.Hour, 7*24*time.Hour)
	})
}

// readDueResults reads the results of orders that have or may have new ones.
func (p *pass) readDueResults(ctx context.Context) (complete bool, err error) {
	due, err := p.dueOrders(ctx, "results_at")
	if err != nil {
		return false, err
	}
	return len(due) < ordersPage, p.readEach(ctx, due, "results_at", func(p *pass, ctx context.Context, o dueOrder) error {
		if err := p.readResults(ctx, o.id); err != nil {
			return err
		}
		return p.postpone(ctx, o, "results_at", time.Minute, 24*time.Hour) // if there are none
	})
}

// hasFinalResults is the condition for orders o of which final results are stored.
const hasFinalResults = ` EXISTS (SELECT 1 FROM labhealth_order_results AS r WHERE r.order_id = o.order_id AND r.status <> 'partial')`

// hasOrMayHaveResults is the condition for orders that have results, or may have some without an
// event: see mayHaveResults. The lab may have had partial ones of an order that has failed.
const hasOrMayHaveResults = ` missing IS NULL AND (results <> 'none' OR results_at IS NOT NULL OR status LIKE '%.draw#_completed' ESCAPE '#'
	OR NOT (status = '' OR status LIKE 'received.%' OR status LIKE 'collecting#_sample.%' ESCAPE '#' OR status LIKE 'cancelled.%'))`

// withResults returns the orders that have or may have results, and have an ID in a column.
func (p *pass) withResults(ctx context.Context, column string, of uuid.UUID) (ids []uuid.UUID, err error) {
	err = query(ctx, p.Store.db, func(rows *sql.Rows) error {
		var id uuid.UUID
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, p.Store.dialect.bind(`SELECT order_id FROM labhealth_orders WHERE `+column+` = ? AND`+hasOrMayHaveResults+` ORDER BY order_id`), of.String())
	return ids, p.Store.failed(ctx, "reconcile", err)
}

// readResults reads the results of a stored order. It is no error if there are none yet.
func (p *pass) readResults(ctx context.Context, id uuid.UUID) error {
	order, ok, err := p.Store.Order(ctx, id)
	if err != nil || !ok {
		return err
	}
	readAt := time.Now()
	results, err := p.Client.Orders.Results(ctx, id)
	switch {
	case isMissing(err):
		return nil
	case err != nil:
		return err
	}
	p.found.Read.Results++
	changed, err := p.Store.storeResults(ctx, order.Order, results, readAt, true) // unless it was deleted meanwhile
	if changed {
		p.found.Differences.Results++
	}
	return err
}
