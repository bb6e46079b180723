package bulk

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// findExistingOrders lists the orders of records that a resumed run is about to send. A journal
// whose end was lost cannot be distinguished from one whose run was interrupted there, and the lost
// records would be sent again.
func (r *run) findExistingOrders() error {
	if !r.resumed || r.opts.TrustJournal {
		return nil
	}
	l := newOrderList(r.isSendable)
	needed := false
	r.mu.Lock()
	for _, s := range r.index.states {
		needed = needed || r.isSendable(s)
		r.hasUnknown = r.hasUnknown || s.isUnresolved()
	}
	r.mu.Unlock()
	if !needed {
		return nil
	}
	if r.torn { // the dropped lines may include an attempt in progress
		if err := r.waitUntilSettled(r.started); err != nil {
			return err
		}
	}
	r.setPhase(PhaseListing)
	if err := r.readList(r.opts.List, l); err != nil {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		return fmt.Errorf("bulk: the list of orders could not be read in full, so that nothing was sent: the journal may have lost what an "+
			"earlier run did (Options.TrustJournal): %w", err)
	}
	r.existing = l
	return nil
}

// selectMissing selects a record whose order is not in the list. It records the order of any other.
func (r *run) selectMissing(body *labhealth.ImportOrderBody, key sampleKey, s state) (bool, error) {
	for _, o := range r.existing.orders[key] {
		switch {
		case o.sampleID != fold(body.SampleID):
			continue
		case o.user == uuid.Nil:
			r.existing.uncertain++
			return false, nil
		}
		if o.user != body.UserID {
			s.flags |= changed
		}
		return false, r.recordExisting(body, key, s, o.id)
	}
	if r.existing.mayHide(body.UserID) {
		r.existing.uncertain++
		return false, nil
	}
	return true, nil
}

// recordExisting records that a record has an order that the journal does not show.
func (r *run) recordExisting(body *labhealth.ImportOrderBody, key sampleKey, s state, orderID uuid.UUID) error {
	e := Entry{Step: StepApplied, SampleID: body.SampleID, Record: r.number, OrderID: orderID}
	if s.has(changed) {
		// The order was imported from another record, so there is no digest.
		e.Digest = hex.EncodeToString(make([]byte, len(s.digest)))
		r.mu.Lock()
		r.index.set(key, s)
		r.mu.Unlock()
		r.addEntry(e)
		return nil
	}
	e.Digest = hex.EncodeToString(s.digest[:])
	r.mu.Lock()
	r.found++
	r.mu.Unlock()
	r.addEntry(e)
	return nil
}
