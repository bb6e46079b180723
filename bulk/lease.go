// The leases within which a run sends, and what they show of earlier runs.

package bulk

import (
	"context"
	"time"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// A killed run cannot record when it sent last. Therefore it sends only within a lease, which it
// renews in the journal while requests are in progress. A later run on the same boot of the system
// knows from the last lease how long ago the last attempt ended at the latest. The time is that
// since the boot: it is independent of the clock, and counts while the system is suspended.

const leaseInterval = time.Second // between two renewals

// Tests change these.
var (
	leaseMargin = 5 * time.Second  // how much longer than an attempt a lease is
	minSettle   = 10 * time.Second // waited for, even if attempts ended long ago
)

// lease is what the journal shows of the leases of a run.
type lease struct {
	boot  string        // see [Entry.Boot]
	end   time.Duration // since the boot
	marks bool          // the run writes StepSending
}

// isOf reports whether the lease is of a known boot, and of this one.
func (l *lease) isOf(boot string) bool { return boot != "" && l.boot == boot }

// renewLease returns the entry of a new lease, and false if none is needed. The caller holds
// w.commitMu.
func (w *journalWriter) renewLease() (Entry, bool) {
	if !w.sending.Load() || w.boot == "" && w.leased {
		return Entry{}, false
	}
	end := w.machine.Uptime() + w.opts.Timeout + leaseMargin
	if w.leased && end-time.Duration(w.leaseEnd.Load()) < leaseInterval {
		return Entry{}, false
	}
	return w.leaseEntry(end), true
}

func (w *journalWriter) leaseEntry(end time.Duration) Entry {
	return Entry{Step: StepLease, At: w.opts.Now(), Boot: w.boot, Lease: end, Marks: w.file != nil}
}

// awaitLease waits until the lease covers an attempt that starts now.
func (w *journalWriter) awaitLease() error {
	for w.boot != "" && w.machine.Uptime()+w.opts.Timeout > time.Duration(w.leaseEnd.Load()) {
		if err := w.commit(); err != nil { // renews it
			return err
		}
	}
	return nil
}

// withLease returns a context for the attempts of a record, which marks the record and has a lease
// when a request is about to be sent: also if the process was stopped, or the system suspended,
// while it was connecting.
func (w *journalWriter) withLease(ctx context.Context, e Entry) context.Context {
	marked := false
	return transport.WithSendHook(ctx, func() error {
		if err := w.awaitLease(); err != nil || marked {
			return err
		}
		err := w.markSending(e)
		if marked = true; err != nil {
			w.stop(err)
		}
		return err
	})
}

// endLease records that no request is in progress anymore.
func (w *journalWriter) endLease() {
	w.sending.Store(false)
	w.commitMu.Lock()
	defer w.commitMu.Unlock()
	if w.leased && w.boot != "" {
		w.add(w.leaseEntry(w.machine.Uptime()))
		w.leased = false
	}
}

// markSending records that a record is about to be sent.
func (w *journalWriter) markSending(e Entry) error {
	if w.file == nil {
		return nil
	}
	e.Step, e.At = StepSending, w.opts.Now()
	return w.file.mark(e)
}

// applyLeases applies what the leases show of earlier runs: which records were not sent, and how
// long ago the others were. Neither is certain if entries of the journal are lost.
func (w *journalWriter) applyLeases() {
	if w.torn && w.file.cut && w.index.lease.isOf(w.boot) {
		w.torn = false // the system did not crash, so that only what the process was writing is missing
	}
	isDamaged := w.torn || w.index.damaged
	for key, s := range w.index.states {
		if s.step != codeIntent {
			continue
		}
		s.step = codePostponed
		if isDamaged {
			s.step = codeSending
		}
		w.index.set(key, s)
	}
	if last := &w.index.lease; last.isOf(w.boot) && !isDamaged {
		ago := w.machine.Uptime() - last.end - time.Second // uptime is rounded up
		w.lastUnknown = w.started.Add(-max(0, min(ago, w.opts.Settle-minSettle)))
	}
}
