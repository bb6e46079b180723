package bulk

import (
	"context"
	"encoding/hex"
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
		open, since := r.index.counts[bUnknown]+r.index.counts[bStray], r.since
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
		l.certain = uncertain == nil
		r.inherited = r.inherited && !l.certain
		r.enter(PhaseImporting)
		err := r.settleOrphans(l)
		if err == nil {
			err = r.wave(func(body *labhealth.ImportOrderBody, key id, s state) (bool, error) {
				if !s.unresolved() || s.orphaned() {
					return false, nil
				}
				return r.settleOne(body, key, s, l)
			})
		}
		switch {
		case err != nil:
			return err
		case uncertain != nil:
			return uncertain
		case l.doubts > 0:
			return l.hidden()
		}
	}
}

// recall looks for the orders of records that are about to be sent, if the journal is that of an
// earlier run. A journal that has lost its end cannot be distinguished from one whose run ended
// there, and what it has lost would be sent again.
func (r *run) recall() error {
	if !r.resumed || r.opts.TrustJournal {
		return nil
	}
	l := newLists(r.sendable)
	open := false
	r.mu.Lock()
	for _, s := range r.index.states {
		open = open || r.sendable(s)
		r.inherited = r.inherited || s.unresolved()
	}
	r.mu.Unlock()
	if !open {
		return nil
	}
	if r.torn { // what was dropped may have been an attempt that is still under way
		if err := r.settle(r.started); err != nil {
			return err
		}
	}
	r.enter(PhaseListing)
	if err := r.list(r.opts.List, l); err != nil {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		return fmt.Errorf("bulk: the list of orders could not be read in full, so that nothing was sent: the journal may have lost what an "+
			"earlier run did (Options.TrustJournal): %w", err)
	}
	r.earlier = l
	return nil
}

// missing reports whether a record is to be sent although the journal may have lost what an earlier
// run did: its sample has no order.
func (r *run) missing(body *labhealth.ImportOrderBody, key id, s state) (bool, error) {
	for _, o := range r.earlier.orders[key] {
		switch {
		case o.sampleID != fold(body.SampleID):
			continue
		case o.user == uuid.Nil:
			r.earlier.doubts++
			return false, nil
		case o.user != body.UserID:
			s.flags |= changed
		}
		e := Entry{Step: StepApplied, SampleID: body.SampleID, Record: r.number, OrderID: o.id}
		if s.flags&changed != 0 {
			// It was imported from another record; so the digest is that of none.
			e.Digest = hex.EncodeToString(make([]byte, len(s.digest)))
			r.mu.Lock()
			r.index.set(key, s)
			r.mu.Unlock()
			r.record(e)
			return false, r.write(Refusal{Outcome: "changed", Record: r.number, SampleID: body.SampleID})
		}
		e.Digest = hex.EncodeToString(s.digest[:])
		r.mu.Lock()
		r.found++
		r.mu.Unlock()
		r.record(e)
		return false, nil
	}
	if r.earlier.hides(body.UserID) {
		r.earlier.doubts++
		return false, nil
	}
	return true, nil
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
func (r *run) settleOne(body *labhealth.ImportOrderBody, key id, s state, l *lists) (bool, error) {
	user := body.UserID
	if s.flags&changed != 0 {
		user = uuid.Nil // the one that was sent may have been of another user
	}
	step := r.conclude(Entry{SampleID: body.SampleID, Record: r.number}, key, s, user, l)
	if step == StepApplied && s.flags&changed != 0 {
		return false, r.write(Refusal{Outcome: "changed", Record: r.number, SampleID: body.SampleID})
	}
	return step == StepAbsent && s.attempts < maxAttempts, nil
}

// settleOrphans decides about the records whose outcome is unknown and that will not be sent again:
// the source has lost them, or has something in their place that cannot be sent. What the journal
// says of them is enough to look for their orders.
func (r *run) settleOrphans(l *lists) error {
	if l.orphans == 0 {
		return nil
	}
	if err := r.commit(); err != nil { // so that the journal has what the index counts
		return err
	}
	var found []Entry // a journal may not be able to take entries while it is read
	var number uint32
	for e, err := range r.journal.Entries() {
		if err != nil {
			return err
		}
		number++
		if e.Step == StepBegin {
			continue
		}
		r.mu.Lock()
		s := r.index.states[r.index.key(e.SampleID)]
		r.mu.Unlock()
		if s.entry == number && s.orphaned() {
			found = append(found, Entry{SampleID: e.SampleID, Record: e.Record})
		}
	}
	for _, e := range found {
		key := r.index.key(e.SampleID)
		r.mu.Lock()
		s := r.index.states[key]
		r.mu.Unlock()
		if r.conclude(e, key, s, uuid.Nil, l) == StepApplied && s.flags&changed != 0 && s.flags&conflict == 0 {
			// The record's number is that of an earlier source.
			if err := r.write(Refusal{Outcome: "changed", SampleID: e.SampleID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclude records what the lists say of a record whose outcome is unknown, and returns it; nothing
// if they are not certain. Where user is nil, an order of any user counts.
func (r *run) conclude(e Entry, key id, s state, user uuid.UUID, l *lists) Step {
	certain, taken := l.certain, false
	for _, o := range l.orders[key] {
		switch {
		case o.sampleID != fold(e.SampleID):
		case o.user == user || user == uuid.Nil:
			e.Step, e.OrderID = StepApplied, o.id
			r.record(e)
			if s.flags&seen != 0 && s.flags&changed == 0 {
				r.mu.Lock()
				r.found++
				r.mu.Unlock()
			}
			return e.Step
		case o.user == uuid.Nil:
			certain = false
			l.doubts++
		default:
			taken = true
		}
	}
	if certain && l.hides(user) {
		certain = false
		l.doubts++
	}
	if !certain {
		return ""
	}
	switch e.Step = StepAbsent; {
	case s.step == disputed:
		// Its sample id belongs to another order, or it was rejected for what it holds: either way
		// it is not there.
		r.mu.Lock()
		was := r.disputes[key]
		delete(r.disputes, key)
		r.mu.Unlock()
		e.Step, e.Status, e.RequestID, e.Fields = StepRefused, was.Status, was.RequestID, was.Fields
	case taken: // it would be a second order for one sample
		e.Step, e.Fields = StepRefused, []Problem{{"body.sample_id", "belongs to an order of another user"}}
	}
	r.record(e)
	return e.Step
}

// lists is what two lists of orders show of the records whose outcome is unknown.
type lists struct {
	orders  map[id][]listed
	blind   map[uuid.UUID]bool // users one of whose orders does not show its sample id; uuid.Nil for any user
	certain bool               // the lists are complete
	orphans int                // records that the source does not tell the user of
	wanted  func(state) bool   // of which records orders are kept
	doubts  int                // records of which the lists prove nothing because of orders that do not show what they are
}

// hides reports whether an order of the user, or of anybody if it is nil, does not show its sample
// id.
func (l *lists) hides(user uuid.UUID) bool {
	return l.blind[user] || l.blind[uuid.Nil] || user == uuid.Nil && len(l.blind) > 0
}

func newLists(wanted func(state) bool) *lists {
	return &lists{orders: map[id][]listed{}, blind: map[uuid.UUID]bool{}, wanted: wanted}
}

// hidden is an error if orders that do not show what they are left a record in doubt.
func (l *lists) hidden() error {
	if l.doubts == 0 {
		return nil
	}
	return fmt.Errorf("bulk: the list of orders does not show the user and sample id of every order: %d records are not certain", l.doubts)
}

type listed struct {
	sampleID string // folded
	user, id uuid.UUID
}

// look reads the list of orders twice. An error means that it was not complete both times; what was found is there all the same.
func (r *run) look() (*lists, error) {
	l := newLists(state.unresolved)
	users, err := r.usersOf(l)
	if err != nil {
		return l, err
	}
	filters := []labhealth.ListOrdersParams{r.opts.List}
	if users != nil {
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

// usersOf returns the users whose orders have to be listed, nil for all, and counts the orphans.
func (r *run) usersOf(l *lists) (map[uuid.UUID]bool, error) {
	any := !r.opts.ListByUser || r.inherited
	r.mu.Lock()
	for _, s := range r.index.states {
		if s.orphaned() {
			l.orphans++
		}
		any = any || s.orphaned() || s.unresolved() && s.flags&changed != 0 // who it was sent for is not known any more
	}
	r.mu.Unlock()
	if any {
		return nil, nil
	}
	users := map[uuid.UUID]bool{}
	err := r.each(func(body *labhealth.ImportOrderBody, _ id, s state) (bool, error) {
		if s.unresolved() {
			users[body.UserID] = true
		}
		return false, nil
	})
	return users, err
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

// note keeps an order if it belongs to a record that is looked for, or if it could.
func (r *run) note(o *labhealth.Order, l *lists) {
	if o.SampleID == nil {
		// Orders that were not imported have none. One that does not show it could be any.
		for name, value := range jsonread.Fields(o.RawJSON()) {
			if string(name) == "sample_id" && string(value) == "null" {
				return
			}
		}
		l.blind[o.UserID] = true
		return
	}
	key := r.index.key(*o.SampleID)
	r.mu.Lock()
	wanted := l.wanted(r.index.states[key])
	r.mu.Unlock()
	found := listed{fold(*o.SampleID), o.UserID, o.ID}
	if wanted && !slices.Contains(l.orders[key], found) {
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
