package bulk

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// maxAttempts is the number of times a run sends a record whose outcome remains unknown.
const maxAttempts = 5

// resolveUnknown looks up the orders of records with an unknown outcome, and sends the records that
// have none again, until no outcome is unknown.
func (r *run) resolveUnknown() error {
	for {
		r.mu.Lock()
		unknown, lastUnknown := r.index.counts[categoryUnknown]+r.index.counts[categoryStray], r.lastUnknown
		r.mu.Unlock()
		if unknown == 0 {
			return nil
		}
		if err := r.waitUntilSettled(lastUnknown, unknown); err != nil {
			return err
		}
		if err := r.resolveOnce(); err != nil {
			return err
		}
	}
}

// resolveOnce reads the lists and resolves the records that they decide. It returns an error if a
// record remains unresolved.
func (r *run) resolveOnce() error {
	r.setPhase(PhaseListing)
	l, listErr := r.readListsTwice()
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	l.complete = listErr == nil
	r.hasUnknown = r.hasUnknown && !l.complete
	r.setPhase(PhaseImporting)
	if err := r.resolveOrphans(l); err != nil {
		return err
	}
	err := r.sendSelected(func(body *labhealth.ImportOrderBody, key sampleKey, s state) (bool, error) {
		if !s.isUnresolved() || s.isOrphaned() {
			return false, nil
		}
		return r.resolveRecord(body, key, s, l)
	})
	switch {
	case err != nil:
		return err
	case listErr != nil:
		return listErr
	}
	return l.uncertainErr()
}

// waitUntilSettled waits until [Options.Settle] has passed since an attempt, for records whose
// order may still be created.
func (r *run) waitUntilSettled(since time.Time, records int64) error {
	start := time.Now()
	left := r.opts.Settle - start.Sub(since)
	if left <= 0 {
		return nil
	}
	r.mu.Lock()
	r.phase, r.settledAt, r.settling, r.waitedFor = PhaseSettling, start.Add(left), records, max(r.waitedFor, records)
	r.mu.Unlock()
	err := sleep(r.ctx, left)
	r.mu.Lock()
	r.waited += time.Since(start)
	r.mu.Unlock()
	return err
}

// resolveRecord resolves a record of the source and reports whether it is to be sent again.
func (r *run) resolveRecord(body *labhealth.ImportOrderBody, key sampleKey, s state, l *orderList) (bool, error) {
	user := body.UserID
	if s.has(changed) {
		user = uuid.Nil // the record that was sent may have had another user
	}
	step := r.resolve(Entry{SampleID: body.SampleID, Record: r.number}, key, s, user, l)
	return step == StepAbsent && s.attempts < maxAttempts, nil
}

// resolveOrphans resolves the records that cannot be sent again, because they are no longer in the
// source or have become invalid. The journal has the data needed to find their orders.
func (r *run) resolveOrphans(l *orderList) error {
	if l.orphans == 0 {
		return nil
	}
	orphans, err := r.readOrphans()
	if err != nil {
		return err
	}
	for _, e := range orphans {
		key := r.index.key(e.SampleID)
		r.mu.Lock()
		s := r.index.states[key]
		r.mu.Unlock()
		r.resolve(e, key, s, uuid.Nil, l)
	}
	return nil
}

// readOrphans returns sample ID and number of the orphaned records. It reads them before they are
// resolved, because a journal may not be able to append while it is read.
func (r *run) readOrphans() (orphans []Entry, _ error) {
	if err := r.commit(); err != nil { // so that the journal has all entries that the index counts
		return nil, err
	}
	for e, err := range r.lastEntries() {
		if err != nil {
			return nil, err
		}
		if e.state.isOrphaned() {
			orphans = append(orphans, Entry{SampleID: e.SampleID, Record: e.Record})
		}
	}
	return orphans, nil
}

// resolve records the result of the lists for a record, and returns the step, or "" if they are not
// certain. If user is nil, an order of any user counts.
func (r *run) resolve(e Entry, key sampleKey, s state, user uuid.UUID, l *orderList) Step {
	certain, otherUser := l.complete, false
	for _, o := range l.orders[key] {
		switch {
		case o.sampleID != fold(e.SampleID):
		case o.user == user || user == uuid.Nil:
			e.Step, e.OrderID = StepApplied, o.id
			r.addEntry(e)
			if s.has(inSource) && !s.has(changed) {
				r.mu.Lock()
				r.found++
				r.mu.Unlock()
			}
			return e.Step
		case o.user == uuid.Nil:
			l.addUncertain()
			certain = false
		default:
			otherUser = true
		}
	}
	if certain && (l.mayHide(user) || l.unnamed[user]) { // an order without a sample ID may be the one
		l.addUncertain()
		certain = false
	}
	if !certain {
		return ""
	}
	switch {
	case s.step == codeDisputed:
		// The sample ID belongs to another order, or the record is invalid. Its order does not
		// exist in either case.
		r.mu.Lock()
		rejection := r.disputes[key]
		delete(r.disputes, key)
		r.mu.Unlock()
		e.Step, e.StatusCode, e.RequestID = StepRejected, rejection.StatusCode, rejection.RequestID
		e.Fields, e.Message = rejection.Fields, rejection.Message
	case otherUser:
		e.Step, e.Fields = StepRejected, otherUsersOrder
	default:
		e.Step = StepAbsent
	}
	r.addEntry(e)
	return e.Step
}

// readListsTwice reads the lists of the orders of all records with an unknown outcome, twice. After
// an error the list holds the orders found so far.
func (r *run) readListsTwice() (*orderList, error) {
	l := newOrderList(state.isUnresolved)
	users, err := r.unknownUsers(l)
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
	var lastErr error
	for round := range 2 {
		for i, params := range filters {
			if err := r.readList(params, l, (2-round)*len(filters)-i-1); err != nil {
				lastErr = err
				break
			}
		}
	}
	if lastErr != nil {
		return l, fmt.Errorf("bulk: the list of orders could not be read in full, so that records whose outcome is unknown stay as they are: %w", lastErr)
	}
	return l, nil
}

// unknownUsers returns the users whose orders have to be listed, nil for all, and counts the
// orphans.
func (r *run) unknownUsers(l *orderList) (map[uuid.UUID]bool, error) {
	all := !r.opts.ListByUser || r.hasUnknown
	r.mu.Lock()
	for _, s := range r.index.states {
		if s.isOrphaned() {
			l.orphans++
		}
		all = all || s.isOrphaned() || s.isUnresolved() && s.has(changed) // its user is unknown
	}
	r.mu.Unlock()
	if all {
		return nil, nil
	}
	users := map[uuid.UUID]bool{}
	err := r.forEachRecord(func(body *labhealth.ImportOrderBody, _ sampleKey, s state) error {
		if s.isUnresolved() {
			users[body.UserID] = true
		}
		return nil
	})
	return users, err
}
