// The orders that the service lists, to be matched with records.

package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// maxPageAttempts is the number of attempts to request a page of the order list.
const maxPageAttempts = 5

// orderList holds the orders from one or more lists that match records of the import.
type orderList struct {
	matches  func(state) bool // selects the records whose orders are kept
	orders   map[sampleKey][]listedOrder
	hidden   map[uuid.UUID]bool // users (Nil: any) with an order that does not show its sample ID
	complete bool               // the lists were read in full

	unnamed   map[uuid.UUID]bool // users with an order that has no sample ID
	shown     int                // orders that show their sample ID
	uncertain int                // records that remain uncertain because of orders without a user or sample ID
}

type listedOrder struct {
	sampleID string // folded
	user, id uuid.UUID
}

func newOrderList(matches func(state) bool) *orderList {
	return &orderList{matches: matches, orders: map[sampleKey][]listedOrder{}, hidden: map[uuid.UUID]bool{}, unnamed: map[uuid.UUID]bool{}}
}

// mayHide reports whether an order of the user, or of any user if it is nil, does not show its
// sample ID.
func (l *orderList) mayHide(user uuid.UUID) bool {
	return l.hidden[user] || l.hidden[uuid.Nil] || user == uuid.Nil && len(l.hidden) > 0
}

// addUncertain counts a record that a complete list does not decide.
func (l *orderList) addUncertain() {
	if l.complete {
		l.uncertain++
	}
}

// uncertainErr returns an error if records remain uncertain.
func (l *orderList) uncertainErr() error {
	if l.uncertain == 0 {
		return nil
	}
	return fmt.Errorf("bulk: the list of orders does not show the user and sample id of every order: %d records are not certain", l.uncertain)
}

// readList adds all pages of a list to l. It reads until a page is empty, because a deployment may
// report a total that is too small, or return smaller pages than requested. more is the number of
// lists that follow.
func (r *resolver) readList(params labhealth.ListOrdersParams, l *orderList, more int) error {
	start := time.Now()
	if params.Size == 0 {
		params.Size = 100
	}
	check := pageCheck{total: -1}
	r.writer.clearFlag(listed)
	for params.Page = 1; ; params.Page++ {
		page, err := r.fetchPage(params)
		if err != nil {
			// Some deployments may reject the page after the last one.
			if check.isComplete() && isRejection(err) {
				return r.checkListed(params, l)
			}
			return err
		}
		done, err := check.add(page, params.Page)
		r.reporter.addPage(int64(len(page.Orders)), listProgress{check.count, check.total, more})
		if done {
			r.reporter.listTook.Store(int64(time.Since(start)))
		}
		if done || err != nil {
			return cmp.Or(err, r.checkListed(params, l))
		}
		for i := range page.Orders {
			r.addListed(&page.Orders[i], l)
		}
	}
}

// checkListed returns an error for a list that lacks orders which are known to exist, or that shows
// no sample IDs, and which therefore cannot show that an order does not exist.
func (r *resolver) checkListed(params labhealth.ListOrdersParams, l *orderList) error {
	if params.UserID != uuid.Nil || r.opts.TrustJournal || len(l.hidden) > 0 { // see mayHide
		return nil
	}
	if r.writer.index.damaged && len(l.unnamed) > 0 && l.shown == 0 {
		return errNoSampleIDs
	}
	if r.writer.count(func(s state) bool { return s.step == codeApplied && !s.has(listed) }) > 0 {
		return errMissingOrder
	}
	return nil
}

// pageCheck checks that the pages of a list are complete and in order.
type pageCheck struct {
	count, total int64 // total is -1 if unknown
	previous     []uuid.UUID
}

var (
	errIncompleteList = errors.New("it ended before the number of orders that it reports")
	errSmallerTotal   = errors.New("the number of orders that it reports has decreased while it was read")
	errNoSampleIDs    = errors.New("none of its orders has a sample id")
	errMissingOrder   = errors.New("it does not have an order, or not with its sample id, that the journal has as applied (Options.List)")
	errRepeatedPage   = errors.New("a page repeats the previous one")
	errWrongPage      = errors.New("a page has another number than the requested one")
)

func (c *pageCheck) isComplete() bool { return c.total >= 0 && c.count >= c.total }

// add checks the next page and reports whether it is the end of the list.
func (c *pageCheck) add(page *labhealth.OrderPage, number int) (done bool, err error) {
	if page.Total != nil {
		if *page.Total < c.total {
			return false, errSmallerTotal // an order may have moved to a page that was read
		}
		c.total = *page.Total
	}
	ids := make([]uuid.UUID, len(page.Orders))
	for i := range page.Orders {
		ids[i] = page.Orders[i].ID
	}
	isRepeated := slices.Equal(ids, c.previous)
	isWrong := page.Page != nil && *page.Page != int64(number)
	switch {
	case len(ids) == 0 && (c.isComplete() || c.total < 0):
		return true, nil
	case len(ids) == 0:
		return false, errIncompleteList
	case (isRepeated || isWrong) && c.isComplete():
		return true, nil
	case isRepeated:
		return false, errRepeatedPage
	case isWrong:
		return false, errWrongPage
	}
	c.previous = ids
	c.count += int64(len(ids))
	return false, nil
}

// addListed adds an order to l if it matches a record, or could.
func (r *resolver) addListed(o *labhealth.Order, l *orderList) {
	if o.SampleID == nil {
		// An order that was not imported has null. One that does not show its sample ID may match.
		for name, value := range jsonread.Fields(o.RawJSON()) {
			if string(name) == "sample_id" && string(value) == "null" {
				l.unnamed[o.UserID] = true
				return
			}
		}
		l.hidden[o.UserID] = true
		return
	}
	l.shown++
	key := r.writer.index.key(*o.SampleID)
	order := listedOrder{fold(*o.SampleID), o.UserID, o.ID}
	if l.matches(r.writer.mark(key, listed)) && !slices.Contains(l.orders[key], order) {
		l.orders[key] = append(l.orders[key], order)
	}
}

// fetchPage requests a page, with retries.
func (r *resolver) fetchPage(params labhealth.ListOrdersParams) (page *labhealth.OrderPage, err error) {
	for range maxPageAttempts {
		if err := r.pacer.wait(r.ctx); err != nil {
			return nil, err
		}
		start := time.Now()
		page, err = r.client.Orders.List(r.ctx, params, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		var api *labhealth.APIError
		switch {
		case err == nil:
			r.pacer.succeeded()
			return page, nil
		case r.ctx.Err() != nil:
			return nil, context.Cause(r.ctx)
		case isRedirect(err):
			return nil, err
		case errors.As(err, &api) && api.StatusCode < 500 && api.StatusCode != 408 && api.StatusCode != 429:
			r.pacer.succeeded()
			return nil, err
		}
		if err := r.pacer.failed(start, err); err != nil {
			return nil, err
		}
	}
	return nil, err
}
