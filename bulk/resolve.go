// Resolves unknown outcomes with the orders that the service lists.

package bulk

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// maxAttempts is the number of times a run sends a record whose outcome remains unknown.
const maxAttempts = 5

// resolver looks up records in the lists of orders that the service has: those with an unknown
// outcome, and in a resumed run all that are about to be sent.
type resolver struct {
	control

	client   *labhealth.Client
	pass     *sourcePass
	writer   *journalWriter
	reporter *reporter
	pacer    *pacer

	existing   *orderList // orders listed before a resumed run sends; nil if it did not list them
	hasUnknown bool       // an earlier run may have left records whose outcome is still unknown

	mu    sync.Mutex              // guards users while records are sent
	users map[sampleKey]uuid.UUID // of records with an unknown outcome, with Options.ListByUser
}

// addUser stores the user of a record with an unknown outcome.
func (r *resolver) addUser(row *row) {
	if !r.opts.ListByUser {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users == nil {
		r.users = map[sampleKey]uuid.UUID{}
	}
	r.users[row.key] = row.body.UserID
}

// listUnknown reads the lists for the records with an unknown outcome, when their attempts have
// settled. After an error the list holds the orders found so far.
func (r *resolver) listUnknown() (*orderList, error) {
	l := newOrderList(state.isUnresolved)
	c := r.writer.counts()
	if err := r.waitUntilSettled(r.writer.sinceUnknown(), c[categoryUnknown]+c[categoryStray]); err != nil {
		return l, err
	}
	r.reporter.setPhase(PhaseListing)
	err := r.readListsTwice(l)
	l.complete = err == nil
	r.hasUnknown = r.hasUnknown && !l.complete
	return l, err
}

// waitUntilSettled waits until [Options.Settle] has passed since an attempt, for records whose
// order may still be created.
func (r *resolver) waitUntilSettled(since time.Time, records int64) error {
	start := time.Now()
	left := r.opts.Settle - start.Sub(since)
	if left <= 0 {
		return nil
	}
	r.reporter.settle(start.Add(left), records)
	err := sleep(r.ctx, left)
	r.reporter.settled(time.Since(start))
	return err
}

// resolveRow resolves a record of the source and reports whether it is to be sent again.
func (r *resolver) resolveRow(row *row, l *orderList) bool {
	user := row.body.UserID
	if row.state.has(changed) {
		user = uuid.Nil // the record that was sent may have had another user
	}
	return r.resolve(row.entry(""), row.state, user, l) == StepAbsent && row.state.attempts < maxAttempts
}

// resolveOrphans resolves the records that cannot be sent again, because they are no longer in the
// source or have become invalid. The journal has the data needed to find their orders.
func (r *resolver) resolveOrphans(l *orderList) error {
	if r.writer.count(state.isOrphaned) == 0 {
		return nil
	}
	if err := r.writer.commit(); err != nil { // so that the journal has all entries that the index counts
		return err
	}
	var orphans []entryState // a journal may not be able to append while it is read
	for e, err := range r.writer.lastEntries() {
		if err != nil {
			return err
		}
		if e.state.isOrphaned() {
			orphans = append(orphans, entryState{Entry{SampleID: e.SampleID, Record: e.Record}, e.state})
		}
	}
	for _, e := range orphans {
		r.resolve(e.Entry, e.state, uuid.Nil, l)
	}
	return nil
}

// resolve records the result of the lists for a record, and returns the step, or "" if they are not
// certain. If user is nil, an order of any user counts.
func (r *resolver) resolve(e Entry, s state, user uuid.UUID, l *orderList) Step {
	key := r.writer.index.key(e.SampleID)
	certain, otherUser := l.complete, false
	for _, o := range l.orders[key] {
		switch {
		case o.sampleID != fold(e.SampleID):
		case o.user == user || user == uuid.Nil:
			e.Step, e.OrderID = StepApplied, o.id
			r.writer.add(e)
			if s.has(inSource) && !s.has(changed) {
				r.reporter.found.Add(1)
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
		rejection := r.writer.takeDispute(key)
		e.Step, e.StatusCode, e.RequestID = StepRejected, rejection.StatusCode, rejection.RequestID
		e.Fields, e.Message = rejection.Fields, rejection.Message
	case otherUser:
		e.Step, e.Fields = StepRejected, otherUsersOrder
	default:
		e.Step = StepAbsent
	}
	r.writer.add(e)
	return e.Step
}

// readListsTwice reads the lists of the orders of all records with an unknown outcome, twice.
func (r *resolver) readListsTwice(l *orderList) error {
	filters := r.filters()
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
		return fmt.Errorf("bulk: the list of orders could not be read in full, so that records whose outcome is unknown stay as they are: %w", lastErr)
	}
	return nil
}

// filters returns the lists that show the orders of all records with an unknown outcome: one for
// each user, or one for all.
func (r *resolver) filters() []labhealth.ListOrdersParams {
	unresolved := map[uuid.UUID]bool{}
	all := !r.opts.ListByUser || r.hasUnknown
	r.writer.forEach(func(key sampleKey, s state) {
		if s.isUnresolved() {
			user, ok := r.users[key]
			unresolved[user] = true
			all = all || !ok || s.isOrphaned() || s.has(changed) // its user is unknown
		}
	})
	if all {
		return []labhealth.ListOrdersParams{r.opts.List}
	}
	var filters []labhealth.ListOrdersParams
	for user := range unresolved {
		params := r.opts.List
		params.UserID = user
		filters = append(filters, params)
	}
	return filters
}
