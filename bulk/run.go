package bulk

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go"
)

// Options configures [Run]. The zero value uses the defaults. Printed or logged, it shows nothing.
type Options struct {
	Concurrency int     // imports at a time; 4 if 0
	Rate        float64 // requests per second at most; 0 for no limit

	// Target names what is imported into, such as the base URL. The journal keeps it, and a run
	// with another one returns an error: a journal of the sandbox would make a run skip what
	// production has never seen. It may be corrected as long as the journal shows that nothing was
	// imported.
	Target string

	DryRun       bool // check the source, and write and send nothing
	RetryRefused bool // send again what the service refused in earlier runs; without it only if the record was changed

	// TrustJournal makes a run that goes on with an earlier run's journal send what is left without
	// reading the list of orders first. Set it only if the list is out of reach and the journal is
	// known to be whole: a journal that was cut, put together wrongly or restored from a copy does
	// not show which orders it has lost, and they are made again.
	TrustJournal bool

	// RejectionLimit ends a run whose first records are all rejected with the same status and
	// without field errors, as with a wrong base URL or a team that may not import: after so many,
	// 10 if 0, and after any number if the source ends and the status is 404 or 405. None of them
	// is recorded as rejected then, and the corrected run sends them. An order, another status or
	// field errors show that the service reads the records, and lift the limit for the rest of the
	// run. Negative for no limit: then every rejection is recorded, which is right if the records
	// themselves are at fault. It is wrong if their orders exist already, which a service rejects too:
	// start the run again with the same journal, which finds such orders before it sends anything.
	RejectionLimit int

	Timeout time.Duration // of one import; 1 minute if 0, and not longer than that of the client's http.Client
	// Settle is how long after an attempt of unknown outcome its order may still come into being: 2 minutes if 0. It must be
	// longer than Timeout.
	Settle time.Duration
	Outage time.Duration // the run ends if the service does nothing but fail for so long, or asks for so long a pause; 10 minutes if 0

	// List narrows the lists of orders that are looked through for records whose outcome is unknown, with parameters that the
	// deployment is known to honour: such as a StartDate well before the import began. Page is ignored. Zero lists all orders.
	List labhealth.ListOrdersParams
	// ListByUser asks for the orders of each user who has such a record, instead of for all: quicker where the account has many
	// orders, and as safe if the deployment honours user_id, which is not in the interface document. Of records that an earlier
	// run left, the orders of all users are read, unless TrustJournal is set: a journal that was set back may name another user
	// than the one whose order was made last.
	ListByUser bool

	// Refusals gets a [Refusal] as a line of JSON for each record of this and earlier runs whose order does not exist, or may
	// not. It is complete when Run has returned without an error. Nil for none.
	Refusals io.Writer
	// OnError is told of each attempt that failed, by several goroutines at once. The service's
	// reasons are in the error's Detail and Body, and can quote patient data: they are nowhere else
	// for that reason. The error's text does not have the sample id. Nil for none.
	OnError func(sampleID string, err error)
	// Progress is told twice a second how far the run is. Nil for none.
	Progress func(Progress)

	// Now dates the journal's entries; nothing is decided by it. [time.Now] if nil.
	Now func() time.Time
}

// complete checks o and fills in what is zero.
func (o Options) complete() (Options, error) {
	o.Concurrency = cmp.Or(o.Concurrency, 4)
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Settle = cmp.Or(o.Settle, 2*time.Minute)
	o.Outage = cmp.Or(o.Outage, 10*time.Minute)
	o.RejectionLimit = cmp.Or(o.RejectionLimit, 10)
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.Concurrency < 0:
		return o, errors.New("bulk: Options.Concurrency must not be negative")
	case o.Rate < 0 || math.IsNaN(o.Rate):
		return o, errors.New("bulk: Options.Rate must not be negative")
	case o.Timeout < 0 || o.Settle < 0 || o.Outage < 0:
		return o, errors.New("bulk: Options.Timeout, Settle and Outage must not be negative")
	case o.Settle <= o.Timeout:
		return o, errors.New("bulk: Options.Settle must be longer than Options.Timeout: an attempt could still be under way")
	}
	return o, nil
}

var errSource = errors.New("bulk: the source did not give the same records each time it was ranged over")

// run is the state of one run.
type run struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	client  *labhealth.Client
	source  Source
	journal Journal
	opts    Options
	pace    *pacer // of imports
	lists   *pacer
	started time.Time
	number  int64  // of the record that is being read
	resumed bool   // the journal was there before this run
	torn    bool   // the journal's end was dropped when it was opened
	earlier *lists // orders of records that the journal does not call applied; nil if nobody looked
	checked bool   // the source was read to its end
	// inherited reports whether an earlier run may have left records whose outcome is still unknown.
	inherited bool

	mu           sync.Mutex // guards what follows
	index        *index
	since        time.Time // of the last attempt of unknown outcome; those of earlier runs count as made when this one started
	pending      []Entry   // not yet in the journal
	disputes     map[id]Entry
	proven       bool    // the service has shown that it reads records
	held         []Entry // until then: rejections that may not be due to the records
	rejection    error   // the last one's
	phase        Phase
	until        time.Time // the end of PhaseSettling
	records      int64
	extraInvalid int64 // records that the index does not count: without a sample id, or further ones of one sample id
	duplicates   int64
	before       int64
	found        int64
	sent         int64

	committing sync.Mutex // guards what follows
	spare      []Entry
	lost       error // why the journal takes no more
}

// Run imports the records of source and writes into journal what it does, so that another Run with both of them goes on where
// this one ended, whatever ended it. See the package documentation for what it guarantees.
//
// When ctx ends, imports that are under way are finished, which takes as long as [Options.Timeout] at most, and Run returns the
// context's error. Other errors: the source or the journal cannot be read or written; the service refuses the key, or fails for
// longer than [Options.Outage]; records are left whose outcome is unknown, because the list of orders could not be read in full.
// The report counts what became of the records in all these cases; it is nil only if nothing was begun. Records that are refused
// or invalid are no error.
//
// Experimental: the endpoint it calls, POST /v3/order/import, is in closed beta.
func Run(ctx context.Context, client *labhealth.Client, source Source, journal Journal, opts Options) (*Report, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if source == nil || !opts.DryRun && (client == nil || journal == nil) {
		return nil, errors.New("bulk: Run needs a client, a source and a journal")
	}
	if journal == nil {
		journal = new(Memory)
	}
	r := &run{
		client: client, source: source, journal: journal, opts: opts, index: newIndex(), disputes: map[id]Entry{},
		pace:    &pacer{outage: opts.Outage, workers: opts.Concurrency},
		lists:   &pacer{outage: opts.Outage},
		started: time.Now(), phase: PhaseChecking, proven: opts.RejectionLimit < 0,
	}
	r.since = r.started
	if f, ok := journal.(*File); ok {
		r.resumed, r.torn = f.found, f.torn
	}
	if opts.Rate > 0 {
		r.pace.interval = time.Duration(float64(time.Second) / opts.Rate)
		r.lists.interval = r.pace.interval
	}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	if err := r.replay(); err != nil {
		return nil, err
	}
	var helpers sync.WaitGroup
	ended := make(chan struct{})
	if opts.Progress != nil {
		m := new(meter)
		opts.Progress(r.progress(m)) // here, so that the first one is of the first phase
		helpers.Go(func() { r.show(m, ended) })
	}
	helpers.Go(func() { r.flush(ended) })
	err = r.all()
	close(ended)
	helpers.Wait()
	report := r.report()
	report.Incomplete, report.Strays = !r.checked, r.index.counts[bStray]
	return &report, err
}

// all does the phases in turn.
func (r *run) all() error {
	err := r.check()
	r.checked = err == nil
	if err == nil && !r.opts.DryRun {
		err = r.recall()
		if err == nil {
			r.enter(PhaseImporting)
			err = r.wave(r.first)
		}
		if err == nil {
			err = r.resolve()
		}
		if err == nil && r.earlier != nil {
			err = r.earlier.hidden()
		}
	} else if err == nil {
		err = r.each(r.first)
	}
	if late := r.commit(); err == nil {
		err = late
	}
	if late := r.rest(); err == nil {
		err = late
	}
	if err == nil && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	return err
}

// replay reads the journal.
func (r *run) replay() error {
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
	if r.index.mac != nil && (r.index.target == r.opts.Target || !r.index.untouched()) {
		if r.index.target != r.opts.Target {
			return fmt.Errorf("bulk: the journal is of an import into %q, not %q", r.index.target, r.opts.Target)
		}
		return nil
	}
	key := make([]byte, 32)
	rand.Read(key) // It never returns an error.
	if r.opts.DryRun {
		r.index.setKey(key)
		return nil
	}
	e := Entry{Step: StepBegin, At: r.opts.Now(), Version: version, Key: key, Target: r.opts.Target}
	if err := r.journal.Append([]Entry{e}); err != nil {
		return err
	}
	return r.index.apply(&e)
}

// check reads the source for the first time: all that can be wrong with it is found before anything is sent.
func (r *run) check() error {
	r.number = 0
	for body, err := range r.source {
		r.number++
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		var unreadable *RecordError
		line := Refusal{Outcome: "invalid", Record: r.number, SampleID: body.SampleID}
		var sum digest
		switch {
		case errors.As(err, &unreadable):
			line.SampleID, line.Line, line.Fields = unreadable.SampleID, unreadable.Line, unreadable.Problems
			rand.Read(sum[:]) // it is like no other
		case err != nil:
			return fmt.Errorf("bulk: the source cannot be read: %w", err)
		default:
			var unwritable *Problem
			if sum, unwritable = r.index.digest(&body); unwritable != nil {
				rand.Read(sum[:])
				line.Fields = []Problem{*unwritable}
			}
			if line.Fields == nil {
				line.Fields = problems(body.Validate())
			}
		}
		if r.meet(line.SampleID, sum, line.Fields != nil) {
			if err := r.write(line); err != nil {
				return err
			}
		}
	}
	r.mu.Lock()
	r.before = r.index.counts[bApplied]
	r.mu.Unlock()
	return nil
}

// meet takes a record of the source into the index, and reports whether it is to be reported as invalid.
func (r *run) meet(sampleID string, sum digest, bad bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records++
	if sampleID == "" {
		r.extraInvalid++
		return true
	}
	x := r.index
	key := x.key(sampleID)
	s, known := x.states[key]
	switch {
	case s.flags&seen != 0 && s.digest == sum:
		r.duplicates++
		return false
	case s.flags&seen != 0:
		s.flags |= conflict
		r.extraInvalid++
		x.set(key, s)
		return bad
	}
	if known && s.digest != sum {
		s.flags |= changed
	}
	if bad && (s.step != applied || s.flags&changed != 0) {
		s.flags |= invalid
	}
	s.digest = sum
	s.flags |= seen
	x.set(key, s)
	return s.flags&invalid != 0 && s.step != applied
}

// first decides about a record when the source is read for the second time.
func (r *run) first(body *labhealth.ImportOrderBody, key id, s state) (bool, error) {
	switch {
	case s.flags&conflict != 0:
		if body.Validate() != nil {
			return false, nil // check has reported it
		}
		return false, r.write(Refusal{Outcome: "conflict", Record: r.number, SampleID: body.SampleID})
	case s.step == applied && s.flags&changed != 0:
		return false, r.write(Refusal{Outcome: "changed", Record: r.number, SampleID: body.SampleID})
	case !r.sendable(s):
		return false, nil
	case r.earlier != nil:
		return r.missing(body, key, s)
	}
	return true, nil
}

// sendable reports whether a record is to be sent for what is known of it before the first wave.
func (r *run) sendable(s state) bool {
	switch {
	case s.flags&seen == 0 || s.flags&(conflict|invalid) != 0 || s.unresolved() || s.step == applied:
		return false
	case s.step == refused:
		return s.flags&changed != 0 || r.opts.RetryRefused
	}
	return true
}

// visitor decides about a record of the source, and returns true if it is to be sent.
type visitor func(body *labhealth.ImportOrderBody, key id, s state) (bool, error)

// wave ranges over the source and sends the records for which visit returns true.
func (r *run) wave(visit visitor) error {
	q := newQueue(r.opts.Concurrency)
	var workers sync.WaitGroup
	for range r.opts.Concurrency {
		workers.Go(func() {
			for {
				j, ok := q.take()
				if !ok {
					return
				}
				r.send(j)
			}
		})
	}
	var group []job
	room := q.room()
	flush := func() error {
		for i := range group {
			sampleID := group[i].body.SampleID
			r.mu.Lock()
			sum := r.index.states[r.index.key(sampleID)].digest
			r.mu.Unlock()
			r.record(Entry{Step: StepIntent, SampleID: sampleID, Record: group[i].record, Digest: hex.EncodeToString(sum[:])})
		}
		if err := r.commit(); err != nil {
			return err
		}
		q.put(group)
		group = group[:0]
		room = q.room()
		return nil
	}
	err := r.each(func(body *labhealth.ImportOrderBody, key id, s state) (bool, error) {
		ok, err := visit(body, key, s)
		if !ok || err != nil {
			return false, err
		}
		r.mu.Lock()
		s = r.index.states[key]
		s.flags &^= changed
		s.attempts++
		r.index.set(key, s)
		r.mu.Unlock()
		if group = append(group, job{r.number, *body}); len(group) >= room {
			return true, flush()
		}
		return true, nil
	})
	if err == nil && len(group) > 0 {
		err = flush()
	}
	q.close()
	workers.Wait()
	if late := r.release(err == nil && r.ctx.Err() == nil); err == nil {
		err = late
	}
	if late := r.commit(); err == nil {
		err = late
	}
	if err == nil && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	return err
}

// each ranges over the source and calls visit for the records that can be read and written: once for a sample id, or, if there is
// a conflict, for every record that has it.
func (r *run) each(visit visitor) error {
	r.mu.Lock()
	for key, s := range r.index.states {
		if s.flags&taken != 0 {
			s.flags &^= taken
			r.index.states[key] = s
		}
	}
	r.mu.Unlock()
	r.number = 0
	for body, err := range r.source {
		r.number++
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		var unreadable *RecordError
		switch {
		case errors.As(err, &unreadable) || err == nil && body.SampleID == "":
			continue // check has reported it
		case err != nil:
			return fmt.Errorf("bulk: the source cannot be read: %w", err)
		}
		sum, unwritable := r.index.digest(&body)
		if unwritable != nil {
			continue // this too
		}
		key := r.index.key(body.SampleID)
		r.mu.Lock()
		s := r.index.states[key]
		if s.flags&conflict == 0 && s.flags&seen != 0 {
			marked := s
			marked.flags |= taken
			r.index.states[key] = marked
		}
		r.mu.Unlock()
		switch {
		case s.flags&seen == 0 || s.digest != sum && s.flags&conflict == 0:
			return errSource
		case s.flags&taken != 0:
			continue // a duplicate
		}
		if _, err := visit(&body, key, s); err != nil {
			return err
		}
	}
	return nil
}

// record notes a step. It is on its way to the journal then; commit waits until it is there.
func (r *run) record(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = r.opts.Now()
	r.pending = append(r.pending, e)
	if err := r.index.apply(&e); err != nil {
		r.stop(err)
	}
	if e.Step == StepUnknown || e.Step == StepDisputed {
		r.since = time.Now()
	}
	if e.Step == StepDisputed {
		r.disputes[r.index.key(e.SampleID)] = e
	}
}

// commit brings into the journal what was recorded.
func (r *run) commit() error {
	r.committing.Lock()
	defer r.committing.Unlock()
	r.mu.Lock()
	batch := r.pending
	r.pending = r.spare[:0]
	r.mu.Unlock()
	if r.lost == nil && len(batch) > 0 {
		if r.lost = r.journal.Append(batch); r.lost != nil {
			r.stop(r.lost)
		}
	}
	clear(batch)
	r.spare = batch
	return r.lost
}

// flush brings outcomes into the journal when no intents take them along.
func (r *run) flush(ended <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.commit()
		case <-ended:
			return
		}
	}
}

func (r *run) enter(p Phase) {
	r.mu.Lock()
	r.phase = p
	r.mu.Unlock()
}
