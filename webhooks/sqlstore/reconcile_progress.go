// Where passes go on, and the lease of the process that runs them.

package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// progress is where a pass goes on: the JSON in labhealth_reconciled.
type progress struct {
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"` // zero while the pass is not complete
	First    time.Time `json:"first,omitzero"`    // when it was complete first, if it is a repetition
	Failed   int       `json:"failed,omitzero"`   // pages and users that could not be read
	Outage   time.Time `json:"outage,omitzero"`   // the argument of Since
	Stage    int       `json:"stage,omitzero"`    // the part of the pass
	IsFirst  bool      `json:"is_first,omitzero"` // the first one of a Receiver: it takes over what there is
	Orders   int       `json:"orders,omitzero"`   // versions of orders that were read

	// Of orders that changed, by the service's clock.
	Since  time.Time `json:"since,omitzero"`  // those updated since; kept for the next pass
	Newest time.Time `json:"newest,omitzero"` // the latest update that was seen

	Pages int `json:"pages,omitzero"` // pages of a list that were read
	// Of a list after a page that could not be read: see passPage.
	Size   int `json:"size,omitzero"`   // of the next pages; 0 for the usual one
	Small  int `json:"small,omitzero"`  // how many pages have that size before a larger one is tried
	Passed int `json:"passed,omitzero"` // orders or users in a row that could not be read

	// Of a list of orders: see nextOrders.
	From       time.Time `json:"from,omitzero"`
	Page       int       `json:"page,omitzero"`
	Largest    int       `json:"largest,omitzero"`    // number of orders of the largest page
	Numbered   bool      `json:"numbered,omitzero"`   // read by page numbers only
	Unsorted   bool      `json:"unsorted,omitzero"`   // not in the order that was asked for
	Unfiltered bool      `json:"unfiltered,omitzero"` // with orders that a filter excludes
	Compared   int64     `json:"compared,omitzero"`   // stored orders created before were compared

	// Of users.
	Offset int       `json:"offset,omitzero"` // of the next page of the list
	After  uuid.UUID `json:"after,omitzero"`  // the last one that was read
}

// load reads the position of a pass.
func (p *pass) load(ctx context.Context) error {
	p.at = progress{}
	value, err := p.Store.reconciled(ctx, p.name)
	if err != nil || value == "" {
		p.at.IsFirst = p.Store.past.Load() != 0 && p.repeats // a walk
		return err
	}
	if json.Unmarshal([]byte(value), &p.at) != nil { // written by another version
		p.at = progress{}
	}
	if p.at.Unsorted && p.seen == nil { // which orders were seen is not stored
		p.at.Page = 0
	}
	if now := time.Now(); p.at.Started.After(now) { // the clock was ahead
		p.at.Started = now
		if !p.at.Finished.IsZero() {
			p.at = progress{Since: p.at.Since, Outage: p.at.Outage}
		}
	}
	return nil
}

// save stores the position of a pass.
func (p *pass) save(ctx context.Context) error {
	if !p.stored {
		return nil
	}
	value, err := json.Marshal(p.at)
	if err != nil {
		return err
	}
	return p.Store.saveReconciled(ctx, p.name, string(value))
}

// saveReconciled stores a value of labhealth_reconciled.
func (s *Store) saveReconciled(ctx context.Context, name, value string) error {
	_, err := s.change(ctx, "reconcile", `INSERT INTO labhealth_reconciled (slot, name, value) VALUES (0, $1::text, $2::text)
		ON CONFLICT (slot, name) DO UPDATE SET value = excluded.value`, name, value)
	return err
}

// reconciled returns a value of labhealth_reconciled; empty if there is none.
func (s *Store) reconciled(ctx context.Context, name string) (value string, err error) {
	_, err = s.queryRow(ctx, s.db, into{&value}, `SELECT r.value FROM labhealth_reconciled AS r WHERE r.slot = 0 AND r.name = $1::text`, name)
	return value, s.failed(ctx, "reconcile", err)
}

// leaseTime is how long the lease of a process that was killed excludes others.
const leaseTime = time.Minute

// lease is the right to run the passes, as one of several processes.
type lease struct {
	store  *Store
	holder string
	value  string // of the row, if it is held
}

// leaseValue is the JSON of the lease in labhealth_reconciled.
type leaseValue struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

// take takes or extends the lease, unless another process has it.
func (l *lease) take(ctx context.Context) (held bool, err error) {
	old, err := l.store.reconciled(ctx, "lease")
	if err != nil {
		return false, err
	}
	var current leaseValue
	_ = json.Unmarshal([]byte(old), &current) // the zero value has ended
	now := time.Now()
	if current.Holder != l.holder && now.Before(current.Until) && current.Until.Before(now.Add(2*leaseTime)) {
		return false, nil
	}
	value, err := json.Marshal(leaseValue{l.holder, now.Add(leaseTime)})
	if err != nil {
		return false, err
	}
	// Only one of several processes that have read the same value changes it.
	changed, err := l.store.change(ctx, "reconcile", `INSERT INTO labhealth_reconciled AS r (slot, name, value) VALUES (0, 'lease', $1::text)
		ON CONFLICT (slot, name) DO UPDATE SET value = excluded.value WHERE r.value = $2::text`, string(value), old)
	if err != nil || changed == 0 {
		return false, err
	}
	l.value = string(value)
	return true, nil
}

// hold extends the lease until ctx is done or the lease is lost.
func (l *lease) hold(ctx context.Context) {
	for until := time.Now().Add(leaseTime); time.Now().Before(until); {
		if sleep(ctx, leaseTime/6) != nil {
			return
		}
		limited, cancel := context.WithDeadline(ctx, until)
		asked := time.Now()
		held, err := l.take(limited)
		cancel()
		if err == nil && !held {
			return
		}
		if held {
			until = asked.Add(leaseTime)
		}
	}
}

// release ends the lease, so that another process need not wait for its end.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = l.store.change(ctx, "reconcile", `DELETE FROM labhealth_reconciled WHERE slot = 0 AND name = 'lease' AND value = $1::text`, l.value)
}
