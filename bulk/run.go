package bulk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/machine"
)

// run is the state of one call of [Run].
type run struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	client  *labhealth.Client
	source  Source
	journal Journal
	machine machine.Machine
	opts    Options

	importPacer *pacer
	listPacer   *pacer

	started    time.Time
	resumed    bool       // the journal existed before this run
	torn       bool       // the end of the journal was dropped when it was opened
	number     int64      // of the current record of the source
	line       int        // where it starts in its file; see [Record]
	header     *header    // of the current record; nil if it has none
	checked    bool       // the source was read to its end
	existing   *orderList // orders listed before a resumed run sends; nil if it did not list them
	hasUnknown bool       // an earlier run may have left records whose outcome is still unknown

	mu            sync.Mutex // guards the following fields
	index         *index
	lastUnknown   time.Time // last attempt with an unknown outcome, or the start of the run
	pending       []Entry   // not yet in the journal
	disputes      map[sampleKey]Entry
	conflicts     map[sampleKey][2]position // the first two records of each sample ID with a conflict
	streak        streak                    // of rejections
	phase         Phase
	settledAt     time.Time // when PhaseSettling ends
	settling      int64     // records that it waits for
	waitedFor     int64     // the most of them
	waited        time.Duration
	queued        int64         // records passed to the workers
	completed     int64         // records that the workers are finished with
	existingLeft  int64         // records whose orders were listed and are not recorded yet
	listed        int64         // orders read from all lists
	list          listProgress  // the current list
	listTook      time.Duration // the last list
	records       int64
	extraInvalid  int64 // not in the index: without a sample ID, or with a repeated one
	duplicates    int64
	appliedBefore int64
	found         int64
	sent          int64

	boot     string       // of the system; empty if it is unknown
	sending  atomic.Bool  // requests are in progress, or about to be
	leaseEnd atomic.Int64 // the end of the lease, in nanoseconds since the boot
	marker   *File        // the journal, if it supports marks

	commitMu   sync.Mutex // guards the following fields
	leased     bool       // the journal has a lease of this run
	spare      []Entry    // a buffer for pending
	journalErr error      // after it the journal takes no more entries
}

// Run imports the records of source and logs each step in journal. After any interruption, another
// call of Run with the same source and journal resumes the import. See the package documentation
// for the guarantees.
//
// When ctx ends, Run finishes the imports in progress, which takes up to [Options.Timeout], and
// returns the error of ctx, joined with that of the last request if it failed. It also returns an
// error if the source or the journal cannot be read or written, if a response is not about a
// record, at [Options.RejectionLimit], if the service fails for longer than [Options.Outage], at
// once if the first requests fail because of an unknown host, a certificate or a wrong scheme, or
// if records remain whose outcome is unknown because the list of orders could not be read in full.
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
	r := newRun(client, source, journal, opts)
	r.ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	if err := r.replayJournal(); err != nil {
		return nil, err
	}
	r.applyLeases()
	if err := r.recordIncomplete(); err != nil {
		return nil, err
	}
	var background sync.WaitGroup
	finished := make(chan struct{})
	if opts.Progress != nil {
		m := new(meter)
		opts.Progress(r.progress(m)) // before the run starts, to show the first phase
		background.Go(func() { r.reportProgress(m, finished) })
	}
	background.Go(func() { r.commitPeriodically(finished) })
	err = r.execute()
	close(finished)
	background.Wait()
	report := r.report()
	report.Incomplete = !r.checked
	if r.checked {
		report.Strays = r.index.counts[categoryStray]
	}
	return &report, err
}

func newRun(client *labhealth.Client, source Source, journal Journal, opts Options) *run {
	r := &run{
		client: client, source: source, journal: journal, machine: system{}, opts: opts,
		index: newIndex(), disputes: map[sampleKey]Entry{}, conflicts: map[sampleKey][2]position{},
		importPacer: &pacer{outage: opts.Outage, workers: opts.Concurrency, logger: opts.Logger},
		listPacer:   &pacer{outage: opts.Outage, logger: opts.Logger},
		started:     time.Now(), phase: PhaseChecking, streak: streak{limit: opts.RejectionLimit},
	}
	r.lastUnknown = r.started
	if f, ok := journal.(*File); ok && f != nil {
		r.resumed, r.torn, r.marker = f.existed, f.torn, f
		r.machine = cmp.Or(f.machine, r.machine)
	}
	r.boot = r.machine.BootID()
	r.index.boot = r.boot
	if opts.Rate > 0 {
		r.importPacer.interval = time.Duration(float64(time.Second) / opts.Rate)
		r.listPacer.interval = r.importPacer.interval
	}
	return r
}

// execute runs the stages in order.
func (r *run) execute() error {
	err := r.checkSource()
	r.checked = err == nil
	switch {
	case err != nil:
	case !r.opts.DryRun:
		err = r.importRecords()
	}
	err = r.withLastError(cmp.Or(err, r.commit(), r.marker.checkInPlace(), context.Cause(r.ctx)))
	return cmp.Or(err, r.writeRejections(err != nil))
}

// withLastError adds why requests failed to the error of a context that ended meanwhile.
func (r *run) withLastError(err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if last := cmp.Or(r.importPacer.lastError(), r.listPacer.lastError()); last != nil && !errors.Is(err, last) {
		return fmt.Errorf("%w; the last request failed: %w", err, last)
	}
	return err
}

// importRecords runs the stages that send records.
func (r *run) importRecords() error {
	if err := r.findExistingOrders(); err != nil {
		return err
	}
	r.setPhase(PhaseImporting)
	if err := r.sendSelected(r.selectUnsent); err != nil {
		return err
	}
	if err := r.resolveUnknown(); err != nil {
		return err
	}
	if r.existing != nil {
		return r.existing.uncertainErr()
	}
	return nil
}

// replayJournal builds the index from the journal, or starts a new journal.
func (r *run) replayJournal() error {
	for e, err := range r.journal.Entries() {
		if err != nil {
			return err
		}
		r.resumed = true
		if err := r.index.apply(&e); err != nil {
			return err
		}
		if e.Step == StepDisputed {
			r.disputes[r.index.key(e.SampleID)] = e
		}
	}
	if r.index.mac != nil && (r.index.target == r.opts.Target || !r.index.nothingImported()) {
		if r.index.target != r.opts.Target {
			return fmt.Errorf("bulk: the journal belongs to an import into %q, not %q", r.index.target, r.opts.Target)
		}
		return nil
	}
	key := make([]byte, 32)
	rand.Read(key) // never returns an error
	if r.opts.DryRun {
		r.index.setDigestKey(key)
		return nil
	}
	e := Entry{Step: StepBegin, At: r.opts.Now(), Version: journalVersion, Key: key, Target: r.opts.Target}
	if err := r.journal.Append([]Entry{e}); err != nil {
		return err
	}
	return r.index.apply(&e)
}

func (r *run) setPhase(p Phase) {
	r.mu.Lock()
	r.phase = p
	r.mu.Unlock()
}
