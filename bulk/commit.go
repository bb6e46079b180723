package bulk

import (
	"slices"
	"time"
)

// addEntry applies an entry to the index and queues it for the journal; commit writes it.
func (r *run) addEntry(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applyEntry(e)
}

// applyEntry is addEntry for a caller that holds r.mu.
func (r *run) applyEntry(e Entry) {
	e.At = r.opts.Now()
	r.pending = append(r.pending, e)
	if err := r.index.apply(&e); err != nil {
		r.stop(err)
	}
	if e.Step == StepUnknown || e.Step == StepDisputed {
		r.lastUnknown = time.Now()
	}
	if e.Step == StepDisputed {
		r.disputes[r.index.key(e.SampleID)] = e
	}
}

// commit writes the pending entries to the journal.
func (r *run) commit() error {
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	r.mu.Lock()
	entries := r.pending
	r.pending = r.spare[:0]
	r.mu.Unlock()
	renewal, renews := r.renewLease()
	if renews {
		entries = slices.Insert(entries, 0, renewal) // before the intents that it covers
	}
	if r.journalErr == nil && len(entries) > 0 {
		if r.journalErr = r.journal.Append(entries); r.journalErr != nil {
			r.stop(r.journalErr)
		}
	}
	if renews && r.journalErr == nil {
		r.leased = true
		r.leaseEnd.Store(int64(renewal.Lease))
	}
	clear(entries)
	r.spare = entries
	return r.journalErr
}

// commitPeriodically commits outcomes that no batch of intents commits, and renews the lease.
func (r *run) commitPeriodically(finished <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.commit()
		case <-finished:
			return
		}
	}
}
