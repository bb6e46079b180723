package bulk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// findExistingOrders lists the orders of records that a resumed run is about to send, or that may
// have been sent. A journal whose end was lost cannot be distinguished from one whose run was
// interrupted there, and the lost records would be sent again.
func (r *run) findExistingOrders() error {
	if !r.resumed && !r.opts.Reconcile || r.opts.TrustJournal {
		return nil
	}
	l := newOrderList(func(s state) bool { return r.isSendable(s) || s.isUnresolved() })
	sendable, needed := r.countOpen(l)
	if !needed {
		return nil
	}
	err := r.listSettled(l, sendable)
	switch {
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case err != nil && sendable > 0:
		return fmt.Errorf("bulk: the list of orders could not be read in full, so that nothing was sent: the journal may have lost what an "+
			"earlier run did (Options.TrustJournal): %w", err)
	}
	if err == nil && r.index.damaged {
		r.addEntry(Entry{Step: StepReconciled})
	}
	r.countExisting(l)
	r.existing = l // if err is not nil, the orders that were found
	return r.resolveOrphans(l)
}

// listSettled adds the orders of all users to l. It waits until attempts of earlier runs have
// settled if the journal may lack them, or if the list is behind.
func (r *run) listSettled(l *orderList, sendable int64) error {
	err := r.listExisting(l)
	left, since := sendable-int64(len(l.orders)), r.started
	switch {
	case err == nil && r.index.damaged && left > 0:
	case errors.Is(err, errMissingOrder) && sendable > 0:
		since = r.lastUnknown
	default:
		return err
	}
	if err := r.waitUntilSettled(since, left); err != nil {
		return err
	}
	return r.listExisting(l)
}

// countExisting counts the records whose orders were listed and are going to be recorded.
func (r *run) countExisting(l *orderList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range l.orders {
		if r.isSendable(r.index.states[key]) {
			r.existingLeft++
		}
	}
}

// recordIncomplete records that entries of earlier runs are missing from the journal. It is also
// for a later run, if this one is interrupted, or is a dry run, which looks for no orders.
func (r *run) recordIncomplete() error {
	if !r.torn && !(r.opts.Reconcile && !r.opts.DryRun && !r.index.reconciled) {
		return nil
	}
	r.addEntry(Entry{Step: StepIncomplete})
	return r.commit()
}

// countOpen returns the number of records that can be sent, and whether orders of these or of
// records with an unknown outcome have to be looked up.
func (r *run) countOpen(l *orderList) (sendable int64, needed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.index.states {
		switch {
		case r.isSendable(s):
			sendable++
		case s.isOrphaned():
			l.orphans++
		}
		r.hasUnknown = r.hasUnknown || s.isUnresolved()
	}
	return sendable, sendable > 0 || r.hasUnknown
}

// listExisting adds the orders of all users to l.
func (r *run) listExisting(l *orderList) error {
	r.setPhase(PhaseListing)
	return r.readList(r.opts.List, l, 0)
}

// selectMissing selects a record whose order is not in the list. It records the order of any other.
func (r *run) selectMissing(body *labhealth.ImportOrderBody, key sampleKey, s state) (bool, error) {
	var found *listedOrder
	for i := range r.existing.orders[key] {
		o := &r.existing.orders[key][i]
		switch {
		case o.sampleID != fold(body.SampleID):
		case o.user == uuid.Nil:
			r.existing.uncertain++
			return false, nil
		case found == nil || o.user == body.UserID:
			found = o
		}
	}
	switch {
	case found != nil:
		r.recordExisting(body, key, s, found)
		return false, nil
	case r.existing.mayHide(body.UserID):
		r.existing.uncertain++
		return false, nil
	}
	return true, nil
}

// recordExisting records that a record has an order that the journal does not show.
func (r *run) recordExisting(body *labhealth.ImportOrderBody, key sampleKey, s state, o *listedOrder) {
	e := Entry{Step: StepApplied, SampleID: body.SampleID, Record: r.number, OrderID: o.id, Digest: hex.EncodeToString(s.digest[:])}
	isMine := o.user == body.UserID
	r.mu.Lock()
	r.existingLeft--
	r.mu.Unlock()
	switch {
	case !isMine && r.opts.Reconcile:
		e.Step, e.OrderID, e.Fields = StepRejected, uuid.Nil, otherUsersOrder
	case !isMine || s.has(changed):
		// The order was imported from another record, so there is no digest.
		e.Digest = hex.EncodeToString(make([]byte, len(s.digest)))
		s.flags |= changed
		r.mu.Lock()
		r.index.set(key, s)
		r.mu.Unlock()
	default:
		r.mu.Lock()
		r.found++
		r.mu.Unlock()
	}
	r.addEntry(e)
}

// otherUsersOrder is the problem of a record whose sample ID another user's order has. Sending it
// would create a second order for the sample.
var otherUsersOrder = []Problem{{Path: "body.sample_id", Reason: "belongs to an order of another user"}}
