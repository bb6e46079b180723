// Run: the stages of an import, and the parts that own its state.

package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/labhealth/labhealth-go"
)

// run is one call of [Run]: it passes the records from one of its parts to the next.
type run struct {
	control

	pass     *sourcePass
	writer   *journalWriter
	sender   *sender
	resolver *resolver
	reporter *reporter
}

// control is what the parts of a run share.
type control struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	opts *Options
}

// Run imports the records of source and logs each step in journal. After any interruption, another
// call of Run with the same source and journal resumes the import. See the package documentation
// for the guarantees.
//
// When ctx ends, Run finishes the imports in progress, which takes up to [Options.Timeout], and
// returns the error of ctx, joined with that of the last request if it failed. It also returns an
// error
//
//   - if the source or the journal cannot be read or written,
//   - after a 3xx or 4xx that is no rejection,
//   - at [Options.RejectionLimit],
//   - if the service fails for longer than [Options.Outage], or at once if the first requests fail
//     because of an unknown host, a certificate or a wrong scheme,
//   - if the outcome of records stays unknown.
//
// The report is complete in all these cases; it is nil only if the run could not start. Records
// that are rejected or invalid are not an error.
//
// Experimental: the endpoint, POST /v3/order/import, is in closed beta.
func Run(ctx context.Context, client *labhealth.Client, source Source, journal Journal, opts Options) (*Report, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if ctx == nil || source == nil || !opts.DryRun && (client == nil || client.Orders == nil || journal == nil) {
		return nil, errors.New("bulk: Run needs a context, a client of labhealth.NewClient, a source and a journal")
	}
	if journal == nil {
		journal = new(Memory)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := newRun(control{ctx, stop, &opts}, client, source, journal)
	if err := r.writer.replay(); err != nil {
		return nil, err
	}
	var background sync.WaitGroup
	finished := make(chan struct{})
	if opts.Progress != nil {
		m := new(meter)
		opts.Progress(r.progress(m)) // before the run starts, to show the first phase
		background.Go(func() { r.reportProgress(m, finished) })
	}
	background.Go(func() { r.writer.commitPeriodically(finished) })
	err = r.execute()
	close(finished)
	background.Wait()
	counts := r.writer.counts()
	report := r.reporter.report(counts)
	report.Incomplete = !r.pass.checked
	if r.pass.checked {
		report.Strays = counts[categoryStray]
	}
	return &report, err
}

func newRun(c control, client *labhealth.Client, source Source, journal Journal) *run {
	reporter := newReporter()
	writer := newJournalWriter(c, journal)
	pass := &sourcePass{control: c, source: source, writer: writer, conflicts: map[sampleKey][2]position{}}
	resolver := &resolver{control: c, client: client, pass: pass, writer: writer, reporter: reporter, pacer: newPacer(c.opts, 0)}
	sender := &sender{control: c, client: client, pass: pass, writer: writer, reporter: reporter,
		pacer: newPacer(c.opts, c.opts.Concurrency), streak: streak{limit: c.opts.RejectionLimit}, onUnknown: resolver.addUser}
	return &run{control: c, pass: pass, writer: writer, sender: sender, resolver: resolver, reporter: reporter}
}

// execute runs the stages in order.
func (r *run) execute() error {
	err := r.pass.check()
	if err == nil {
		r.reporter.before.Store(r.writer.counts()[categoryApplied])
	}
	if err == nil && !r.opts.DryRun {
		err = r.importRecords()
	}
	err = r.withLastError(cmp.Or(err, r.writer.commit(), r.writer.file.checkInPlace(), context.Cause(r.ctx)))
	return cmp.Or(err, r.writeRejections(err != nil))
}

// withLastError adds why requests failed to the error of a context that ended meanwhile.
func (r *run) withLastError(err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if last := cmp.Or(r.sender.pacer.lastError(), r.resolver.pacer.lastError()); last != nil && !errors.Is(err, last) {
		return fmt.Errorf("%w; the last request failed: %w", err, last)
	}
	return err
}

// importRecords runs the stages that send records, until no outcome is unknown.
func (r *run) importRecords() error {
	if err := r.resolver.findExisting(); err != nil {
		return err
	}
	r.reporter.setPhase(PhaseImporting)
	if err := r.sender.send(r.resolver.isOpen, r.resolver.selectOpen); err != nil {
		return err
	}
	for r.writer.hasUnknown() {
		if err := r.resolveUnknown(); err != nil {
			return err
		}
	}
	return r.resolver.existingErr()
}

// resolveUnknown looks up the orders of records with an unknown outcome, and sends the records that
// have none again. It returns an error if a record remains unresolved.
func (r *run) resolveUnknown() error {
	l, listErr := r.resolver.listUnknown()
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.reporter.setPhase(PhaseImporting)
	if err := r.resolver.resolveOrphans(l); err != nil {
		return err
	}
	err := r.sender.send(state.isResendable, func(row *row) bool { return r.resolver.resolveRow(row, l) })
	return cmp.Or(err, listErr, l.uncertainErr())
}
