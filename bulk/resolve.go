package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// maxAttempts is how often one run sends a record whose outcome is unknown time and again.
const maxAttempts = 5

// pageTries is how often a page of the order list is asked for before the list counts as failed.
const pageTries = 5

// resolve finds out what became of records whose outcome is unknown, and sends those again whose orders do not exist.
func (r *run) resolve() error {
	for {
		r.mu.Lock()
		open, since := r.index.counts[bUnknown], r.since
		r.mu.Unlock()
		if open == 0 {
			return nil
		}
		if err := r.settle(since); err != nil {
			return err
		}
		r.enter(PhaseListing)
		l, uncertain := r.look()
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		r.enter(PhaseImporting)
		visited, blind := int64(0), int64(0)
		err := r.wave(func(body *labhealth.ImportOrderBody, key id, s state) (bool, error) {
			if !s.unresolved() || s.flags&conflict != 0 {
				return false, nil
			}
			visited++
			return r.settleOne(body, key, s, l, uncertain == nil, &blind)
		})
		switch {
		case err != nil:
			return err
		case uncertain != nil:
			return uncertain
		case blind > 0:
			return fmt.Errorf("bulk: the list of orders does not show the user and sample id of every order: %d records are not certain", blind)
		case visited == 0:
			return fmt.Errorf("bulk: %d records whose outcome is unknown can no longer be read from the source", open)
		}
	}
}

// settle waits until the settling time after the last unknown attempt is over.
func (r *run) settle(since time.Time) error {
	for {
		left := r.opts.Settle - time.Since(since)
		if left <= 0 {
			return nil
		}
		r.mu.Lock()
		r.until = time.Now().Add(left)
		r.mu.Unlock()
		r.enter(PhaseSettling)
		if err := sleep(r.ctx, left); err != nil {
			return err
		}
	}
}

// settleOne decides about one record whose outcome is unknown, and reports whether it is to be sent again.
func (r *run) settleOne(body *labhealth.ImportOrderBody, key id, s state, l *lists, certain bool, blind *int64) (bool, error) {
	e := Entry{SampleID: body.SampleID, Record: r.number}
	for _, o := range l.orders[key] {
		switch {
		case o.sampleID != body.SampleID:
		case o.user == body.UserID:
			e.Step, e.OrderID = StepApplied, o.id
			r.record(e)
			if s.flags&changed != 0 {
				return false, r.write(Refusal{Outcome: "changed", Record: r.number, SampleID: body.SampleID})
			}
			r.mu.Lock()
			r.found++
			r.mu.Unlock()
			return false, nil
		case o.user == uuid.Nil:
			certain = false
			*blind++
		}
	}
	if certain && (l.blind[body.UserID] || l.blind[uuid.Nil]) {
		certain = false
		*blind++
	}
	if !certain {
		return false, nil
	}
	if s.step == disputed {
		// Its sample id belongs to another order, or it was refused for what it holds: either way it is not there.
		r.mu.Lock()
		was := r.disputes[key]
		delete(r.disputes, key)
		r.mu.Unlock()
		e.Step, e.Status, e.RequestID, e.Fields = StepRefused, was.Status, was.RequestID, was.Fields
		r.record(e)
		return false, nil
	}
	e.Step = StepAbsent
	r.record(e)
	return s.flags&invalid == 0 && s.attempts < maxAttempts, nil
}

// lists is what two lists of orders show of the records whose outcome is unknown.
type lists struct {
	orders map[id][]listed
	blind  map[uuid.UUID]bool // users one of whose orders does not show its sample id; uuid.Nil for any user
}

type listed struct {
	sampleID string
	user, id uuid.UUID
}

// look reads the list of orders twice. An error means that it was not complete both times; what was found is there all the same.
func (r *run) look() (*lists, error) {
	l := &lists{map[id][]listed{}, map[uuid.UUID]bool{}}
	filters := []labhealth.ListOrdersParams{r.opts.List}
	if r.opts.ListByUser {
		users := map[uuid.UUID]bool{}
		err := r.each(func(body *labhealth.ImportOrderBody, _ id, s state) (bool, error) {
			if s.unresolved() && !users[body.UserID] {
				users[body.UserID] = true
			}
			return false, nil
		})
		if err != nil {
			return l, err
		}
		filters = filters[:0]
		for user := range users {
			params := r.opts.List
			params.UserID = user
			filters = append(filters, params)
		}
	}
	var failed error
	for range 2 {
		for _, params := range filters {
			if err := r.list(params, l); err != nil {
				failed = err
				break
			}
		}
	}
	if failed != nil {
		return l, fmt.Errorf("bulk: the list of orders could not be read in full, so that records whose outcome is unknown stay as they are: %w", failed)
	}
	return l, nil
}

var (
	errShort  = errors.New("it ended before as many orders had come as it says there are")
	errRepeat = errors.New("a page repeats the one before")
	errPage   = errors.New("it is another page than the one that was asked for")
)

// list reads the whole list. It goes on until a page is empty, because a deployment may count fewer orders than it has, or make
// its pages smaller than it was asked to.
func (r *run) list(params labhealth.ListOrdersParams, l *lists) error {
	if params.Size == 0 {
		params.Size = 100
	}
	var before []uuid.UUID
	count, total := int64(0), int64(-1)
	for params.Page = 1; ; params.Page++ {
		page, err := r.page(params)
		if err == nil && page.Total != nil {
			total = *page.Total
		}
		whole := total >= 0 && count >= total
		var api *labhealth.APIError
		switch {
		case err != nil && whole && errors.As(err, &api):
			return nil // there may be deployments that refuse the page after the last one
		case err != nil:
			return err
		}
		ids := make([]uuid.UUID, len(page.Orders))
		for i := range page.Orders {
			ids[i] = page.Orders[i].ID
		}
		switch {
		case len(ids) == 0 && (whole || total < 0):
			return nil
		case len(ids) == 0:
			return errShort
		case slices.Equal(ids, before) || page.Page != nil && *page.Page != int64(params.Page):
			if whole {
				return nil
			}
			if slices.Equal(ids, before) {
				return errRepeat
			}
			return errPage
		}
		before = ids
		count += int64(len(ids))
		for i := range page.Orders {
			r.note(&page.Orders[i], l)
		}
	}
}

// note remembers an order if it belongs to a record whose outcome is unknown, or if it could.
func (r *run) note(o *labhealth.Order, l *lists) {
	if o.SampleID == nil {
		// Orders that were not imported have none. One that does not show it could be any.
		for name, value := range jsonread.Members(o.RawJSON()) {
			if string(name) == "sample_id" && string(value) == "null" {
				return
			}
		}
		l.blind[o.UserID] = true
		return
	}
	key := r.index.key(*o.SampleID)
	r.mu.Lock()
	open := r.index.states[key].unresolved()
	r.mu.Unlock()
	found := listed{*o.SampleID, o.UserID, o.ID}
	if open && !slices.Contains(l.orders[key], found) {
		l.orders[key] = append(l.orders[key], found)
	}
}

// page reads a page, with patience.
func (r *run) page(params labhealth.ListOrdersParams) (page *labhealth.OrderPage, err error) {
	for range pageTries {
		if err := r.lists.wait(r.ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		page, err = r.client.Orders.List(r.ctx, params, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		var api *labhealth.APIError
		switch {
		case err == nil:
			r.lists.answered()
			return page, nil
		case r.ctx.Err() != nil:
			return nil, context.Cause(r.ctx)
		case fatal(err):
			return nil, err
		case errors.As(err, &api) && api.StatusCode < 500 && api.StatusCode != 408 && api.StatusCode != 429:
			r.lists.answered()
			return nil, err
		}
		if err := r.lists.failed(began, err); err != nil {
			return nil, err
		}
	}
	return nil, err
}
