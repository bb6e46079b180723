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
// r.commitMu.
func (r *run) renewLease() (Entry, bool) {
	if !r.sending.Load() || r.boot == "" && r.leased {
		return Entry{}, false
	}
	end := r.machine.Uptime() + r.opts.Timeout + leaseMargin
	if r.leased && end-time.Duration(r.leaseEnd.Load()) < leaseInterval {
		return Entry{}, false
	}
	return Entry{Step: StepLease, At: r.opts.Now(), Boot: r.boot, Lease: end, Marks: r.marker != nil}, true
}

// awaitLease waits until the lease covers an attempt that starts now.
func (r *run) awaitLease() error {
	for r.boot != "" && r.machine.Uptime()+r.opts.Timeout > time.Duration(r.leaseEnd.Load()) {
		if err := r.commit(); err != nil { // renews it
			return err
		}
	}
	return nil
}

// withLease returns a context for the attempts of a record, which marks the record and has a lease
// when a request is about to be sent: also if the process was stopped, or the system suspended,
// while it was connecting.
func (r *run) withLease(ctx context.Context, e Entry) context.Context {
	marked := false
	return transport.WithSendHook(ctx, func() error {
		if err := r.awaitLease(); err != nil || marked {
			return err
		}
		err := r.mark(e)
		if marked = true; err != nil {
			r.stop(err)
		}
		return err
	})
}

// endLease records that no request is in progress anymore.
func (r *run) endLease() {
	r.sending.Store(false)
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if r.leased && r.boot != "" {
		r.mu.Lock()
		r.pending = append(r.pending, Entry{Step: StepLease, At: r.opts.Now(), Boot: r.boot, Lease: r.machine.Uptime(), Marks: r.marker != nil})
		r.mu.Unlock()
		r.leased = false
	}
}

// mark records that a record is about to be sent.
func (r *run) mark(e Entry) error {
	if r.marker == nil {
		return nil
	}
	e.Step, e.At = StepSending, r.opts.Now()
	return r.marker.mark(e)
}

// applyLeases applies what the leases show of earlier runs: which records were not sent, and how
// long ago the others were. Neither is certain if entries of the journal are lost.
func (r *run) applyLeases() {
	if r.torn && r.marker.cut && r.index.lease.isOf(r.boot) {
		r.torn = false // the system did not crash, so that only what the process was writing is missing
	}
	isDamaged := r.torn || r.index.damaged
	for key, s := range r.index.states {
		if s.step != codeIntent {
			continue
		}
		s.step = codePostponed
		if isDamaged {
			s.step = codeSending
		}
		r.index.set(key, s)
	}
	if last := &r.index.lease; last.isOf(r.boot) && !isDamaged {
		ago := r.machine.Uptime() - last.end - time.Second // uptime is rounded up
		r.lastUnknown = r.started.Add(-max(0, min(ago, r.opts.Settle-minSettle)))
	}
}
