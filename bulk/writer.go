// The state of all records, in the index and in the journal.

package bulk

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go/internal/machine"
)

// journalWriter keeps the state of all records, in the index and in the journal. An entry changes
// the index at once, and the journal at the next commit.
type journalWriter struct {
	control

	journal Journal
	file    *File // the journal, if it supports marks
	machine machine.Machine
	boot    string // of the system; empty if it is unknown
	started time.Time
	resumed bool // the journal existed before this run
	torn    bool // the end of the journal was dropped when it was opened

	mu          sync.Mutex // guards the following fields, except the key and the digests of the index
	index       *index
	lastUnknown time.Time // last attempt with an unknown outcome, or the start of the run
	pending     []Entry   // not yet in the journal
	disputes    map[sampleKey]Entry

	sending  atomic.Bool  // requests are in progress, or about to be
	leaseEnd atomic.Int64 // the end of the lease, in nanoseconds since the boot

	commitMu sync.Mutex // guards the following fields
	leased   bool       // the journal has a lease of this run
	spare    []Entry    // a buffer for pending
	err      error      // after it the journal takes no more entries
}

func newJournalWriter(c control, journal Journal) *journalWriter {
	now := time.Now()
	w := &journalWriter{control: c, journal: journal, machine: system{}, index: newIndex(), disputes: map[sampleKey]Entry{}, started: now, lastUnknown: now}
	if f, ok := journal.(*File); ok && f != nil {
		w.resumed, w.torn, w.file = f.existed, f.torn, f
		w.machine = cmp.Or(f.machine, w.machine)
	}
	w.boot = w.machine.BootID()
	w.index.boot = w.boot
	return w
}

// replay builds the index from the journal, or starts a new journal.
func (w *journalWriter) replay() error {
	for e, err := range w.journal.Entries() {
		if err != nil {
			return err
		}
		w.resumed = true
		if err := w.index.apply(&e); err != nil {
			return err
		}
		if e.Step == StepDisputed {
			w.disputes[w.index.key(e.SampleID)] = e
		}
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.applyLeases()
	return w.recordIncomplete()
}

// begin starts a new journal, or one that has imported nothing into another target.
func (w *journalWriter) begin() error {
	if w.index.mac != nil && (w.index.target == w.opts.Target || !w.index.nothingImported()) {
		if w.index.target != w.opts.Target {
			return fmt.Errorf("bulk: the journal belongs to an import into %q, not %q", w.index.target, w.opts.Target)
		}
		return nil
	}
	key := make([]byte, 32)
	rand.Read(key) // never returns an error
	if w.opts.DryRun {
		w.index.setDigestKey(key)
		return nil
	}
	e := Entry{Step: StepBegin, At: w.opts.Now(), Version: journalVersion, Key: key, Target: w.opts.Target}
	if err := w.journal.Append([]Entry{e}); err != nil {
		return err
	}
	return w.index.apply(&e)
}

// recordIncomplete records that entries of earlier runs are missing from the journal. It is also
// for a later run, if this one is interrupted, or is a dry run, which looks for no orders.
func (w *journalWriter) recordIncomplete() error {
	if !w.torn && !(w.opts.Reconcile && !w.opts.DryRun && !w.index.reconciled) {
		return nil
	}
	w.add(Entry{Step: StepIncomplete})
	return w.commit()
}

// add applies entries to the index and queues them for the journal; commit writes them.
func (w *journalWriter) add(entries ...Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range entries {
		e.At = w.opts.Now()
		w.pending = append(w.pending, e)
		if err := w.index.apply(&e); err != nil {
			w.stop(err)
		}
		if e.Step == StepUnknown || e.Step == StepDisputed {
			w.lastUnknown = time.Now()
		}
		if e.Step == StepDisputed {
			w.disputes[w.index.key(e.SampleID)] = e
		}
	}
}

// commit writes the pending entries to the journal.
func (w *journalWriter) commit() error {
	w.commitMu.Lock()
	defer w.commitMu.Unlock()
	w.mu.Lock()
	entries := w.pending
	w.pending = w.spare[:0]
	w.mu.Unlock()
	renewal, renews := w.renewLease()
	if renews {
		entries = slices.Insert(entries, 0, renewal) // before the intents that it covers
	}
	if w.err == nil && len(entries) > 0 {
		if w.err = w.journal.Append(entries); w.err != nil {
			w.stop(w.err)
		}
	}
	if renews && w.err == nil {
		w.leased = true
		w.leaseEnd.Store(int64(renewal.Lease))
	}
	clear(entries)
	w.spare = entries
	return w.err
}

// commitPeriodically commits outcomes that no batch of intents commits, and renews the lease.
func (w *journalWriter) commitPeriodically(finished <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.commit()
		case <-finished:
			return
		}
	}
}

// addRecord adds a record of the source, with its problems, to the index. It reports whether the
// record is the first that differs from another one with its sample ID.
func (w *journalWriter) addRecord(record *Rejection, sum digest) (isFirstConflict bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.index
	if record.SampleID == "" {
		x.counts[categoryInvalid]++
		return false
	}
	key := x.key(record.SampleID)
	s, inJournal := x.states[key]
	switch {
	case s.has(inSource) && s.digest == sum:
		x.counts[categoryDuplicate]++
		return false
	case s.has(inSource):
		isFirstConflict = !s.has(conflict)
		s.flags |= conflict
		x.counts[categoryInvalid]++
		x.set(key, s)
		return isFirstConflict
	}
	if inJournal && s.digest != sum {
		s.flags |= changed
	}
	if record.Fields != nil && (s.step != codeApplied || s.has(changed)) {
		s.flags |= invalid
	}
	s.digest = sum
	s.flags |= inSource
	x.set(key, s)
	return false
}

// state returns the state of a record.
func (w *journalWriter) state(key sampleKey) state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index.states[key]
}

// update changes the state of a record.
func (w *journalWriter) update(key sampleKey, change func(*state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.index.states[key]
	change(&s)
	w.index.set(key, s)
}

// mark returns the state of a record and sets a flag of it.
func (w *journalWriter) mark(key sampleKey, f flags) state {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.index.states[key]
	if known {
		marked := s
		marked.flags |= f
		w.index.states[key] = marked
	}
	return s
}

func (w *journalWriter) clearFlag(f flags) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, s := range w.index.states {
		if s.has(f) {
			s.flags &^= f
			w.index.states[key] = s
		}
	}
}

// forEach calls f for all records, which must not use w.
func (w *journalWriter) forEach(f func(sampleKey, state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, s := range w.index.states {
		f(key, s)
	}
}

// count returns the number of records whose state is wanted.
func (w *journalWriter) count(wanted func(state) bool) (n int64) {
	w.forEach(func(_ sampleKey, s state) {
		if wanted(s) {
			n++
		}
	})
	return n
}

// counts returns the number of records in each category.
func (w *journalWriter) counts() [categories]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index.counts
}

// hasUnknown reports whether there are records with an unknown outcome.
func (w *journalWriter) hasUnknown() bool {
	c := w.counts()
	return c[categoryUnknown]+c[categoryStray] > 0
}

// sinceUnknown returns the time of the last attempt with an unknown outcome.
func (w *journalWriter) sinceUnknown() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lastUnknown
}

// takeDispute returns the rejection of a record whose outcome was unknown before.
func (w *journalWriter) takeDispute(key sampleKey) Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.disputes[key]
	delete(w.disputes, key)
	return e
}
