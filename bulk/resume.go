// Finds the orders of an earlier run whose journal is incomplete.

package bulk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// findExisting lists the orders of records that a resumed run is about to send, or that may have
// been sent. A journal whose end was lost cannot be distinguished from one whose run was
// interrupted there, and the lost records would be sent again.
func (r *resolver) findExisting() error {
	if !r.writer.resumed && !r.opts.Reconcile || r.opts.TrustJournal {
		return nil
	}
	sendable := r.writer.count(r.isSendable)
	r.hasUnknown = r.writer.hasUnknown()
	if sendable == 0 && !r.hasUnknown {
		return nil
	}
	l := newOrderList(func(s state) bool { return r.isSendable(s) || s.isUnresolved() })
	err := r.listSettled(l, sendable)
	switch {
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case err != nil && sendable > 0:
		return fmt.Errorf("bulk: the list of orders could not be read in full, so that nothing was sent: the journal may have lost what an "+
			"earlier run did (Options.TrustJournal): %w", err)
	}
	if err == nil && r.writer.index.damaged {
		r.writer.add(Entry{Step: StepReconciled})
	}
	for key := range l.orders {
		if r.isSendable(r.writer.state(key)) {
			r.reporter.existingLeft.Add(1)
		}
	}
	r.existing = l // if err is not nil, the orders that were found
	return r.resolveOrphans(l)
}

// listSettled adds the orders of all users to l. It waits until attempts of earlier runs have
// settled if the journal may lack them, or if the list is behind.
func (r *resolver) listSettled(l *orderList, sendable int64) error {
	r.reporter.setPhase(PhaseListing)
	err := r.readList(r.opts.List, l, 0)
	left, since := sendable-int64(len(l.orders)), r.writer.started
	switch {
	case err == nil && r.writer.index.damaged && left > 0:
	case errors.Is(err, errMissingOrder) && sendable > 0:
		since = r.writer.sinceUnknown()
	default:
		return err
	}
	if err := r.waitUntilSettled(since, left); err != nil {
		return err
	}
	r.reporter.setPhase(PhaseListing)
	return r.readList(r.opts.List, l, 0)
}

// isSendable reports whether the state of a record allows sending it in the first pass.
func (r *resolver) isSendable(s state) bool {
	switch {
	case !s.has(inSource) || s.has(conflict|invalid) || s.isUnresolved() || s.step == codeApplied:
		return false
	case s.step == codeRejected:
		return s.has(changed) || r.opts.RetryRejected
	}
	return true
}

// isOpen reports whether the first pass has something to do for a record.
func (r *resolver) isOpen(s state) bool {
	return r.isSendable(s) || s.isResendable() && (r.existing != nil || r.opts.ListByUser)
}

// selectOpen selects the records for the first pass, and records what is known of the others.
func (r *resolver) selectOpen(row *row) bool {
	switch {
	case row.state.isUnresolved():
		r.addUser(row)
		return r.existing != nil && r.resolveRow(row, r.existing) // if the order was found
	case r.existing != nil:
		return r.selectMissing(row)
	}
	return true
}

// selectMissing selects a record whose order is not in the list. It records the order of any other.
func (r *resolver) selectMissing(row *row) bool {
	var found *listedOrder
	for i := range r.existing.orders[row.key] {
		o := &r.existing.orders[row.key][i]
		switch {
		case o.sampleID != fold(row.body.SampleID):
		case o.user == uuid.Nil:
			r.existing.uncertain++
			return false
		case found == nil || o.user == row.body.UserID:
			found = o
		}
	}
	switch {
	case found != nil:
		r.recordExisting(row, found)
		return false
	case r.existing.mayHide(row.body.UserID):
		r.existing.uncertain++
		return false
	}
	return true
}

// recordExisting records that a record has an order that the journal does not show.
func (r *resolver) recordExisting(row *row, o *listedOrder) {
	e := row.entry(StepApplied)
	e.OrderID, e.Digest = o.id, hex.EncodeToString(row.state.digest[:])
	isMine := o.user == row.body.UserID
	r.reporter.existingLeft.Add(-1)
	switch {
	case !isMine && r.opts.Reconcile:
		e.Step, e.OrderID, e.Fields = StepRejected, uuid.Nil, otherUsersOrder
	case !isMine || row.state.has(changed):
		// The order was imported from another record, so there is no digest.
		e.Digest = hex.EncodeToString(make([]byte, len(row.state.digest)))
		r.writer.update(row.key, func(s *state) { s.flags |= changed })
	default:
		r.reporter.found.Add(1)
	}
	r.writer.add(e)
}

// otherUsersOrder is the problem of a record whose sample ID another user's order has. Sending it
// would create a second order for the sample.
var otherUsersOrder = []Problem{{Path: "body.sample_id", Reason: "belongs to an order of another user"}}

// existingErr returns an error if the list of orders left records of the first pass uncertain.
func (r *resolver) existingErr() error {
	if r.existing == nil {
		return nil
	}
	return r.existing.uncertainErr()
}
