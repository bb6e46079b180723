package bulk

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/labhealth/labhealth-go"
)

var errChangedSource = errors.New("bulk: the source did not yield the same records each time")

// forEachRecord ranges over the source and calls f for each record that can be read and encoded:
// once per sample ID, or for every record of a sample ID with a conflict.
func (r *run) forEachRecord(f func(body *labhealth.ImportOrderBody, key sampleKey, s state) error) error {
	r.clearFlag(visited)
	r.number = 0
	for record, err := range r.source {
		r.number++
		r.line, r.header = record.Line, record.header
		body := record.Body
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if err == nil && body.SampleID == "" {
			continue // reported by checkSource, as are the records with a RecordError
		}
		var sum digest
		if err == nil {
			sum, err = r.index.digest(&body)
		}
		var recordErr *RecordError
		switch {
		case errors.As(err, &recordErr):
			continue
		case err != nil:
			return sourceError(err)
		}
		key := r.index.key(body.SampleID)
		s := r.visit(key)
		switch {
		case !s.has(inSource) || s.digest != sum && !s.has(conflict):
			return errChangedSource
		case s.has(visited):
			continue // a duplicate
		}
		if err := f(&body, key, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) clearFlag(f flags) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.index.states {
		if s.has(f) {
			s.flags &^= f
			r.index.states[key] = s
		}
	}
}

// visit returns the state of a record and marks it as visited.
func (r *run) visit(key sampleKey) state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.index.states[key]
	if s.has(inSource) && !s.has(conflict) {
		marked := s
		marked.flags |= visited
		r.index.states[key] = marked
	}
	return s
}

// selector reports whether a record is to be sent.
type selector func(body *labhealth.ImportOrderBody, key sampleKey, s state) (bool, error)

// selectUnsent selects the records for the first pass, and reports the others that need it.
func (r *run) selectUnsent(body *labhealth.ImportOrderBody, key sampleKey, s state) (bool, error) {
	switch {
	case s.isUnresolved() && !s.isOrphaned() && r.existing != nil:
		return r.resolveRecord(body, key, s, r.existing) // if the order was found
	case !r.isSendable(s):
		return false, nil
	case r.existing != nil:
		return r.selectMissing(body, key, s)
	}
	return true, nil
}

// isSendable reports whether the state of a record allows sending it in the first pass.
func (r *run) isSendable(s state) bool {
	switch {
	case !s.has(inSource) || s.has(conflict|invalid) || s.isUnresolved() || s.step == codeApplied:
		return false
	case s.step == codeRejected:
		return s.has(changed) || r.opts.RetryRejected
	}
	return true
}

// sendSelected ranges over the source and sends the selected records. The intents of a batch are in
// the journal before the workers get its jobs.
func (r *run) sendSelected(selected selector) error {
	q := newQueue(r.opts.Concurrency)
	var workers sync.WaitGroup
	for range r.opts.Concurrency {
		workers.Go(func() {
			for j, ok := q.take(); ok; j, ok = q.take() {
				r.send(j)
				r.mu.Lock()
				r.completed++
				r.mu.Unlock()
			}
		})
	}
	b := batch{run: r, queue: q, size: q.waitForSpace()}
	err := r.forEachRecord(func(body *labhealth.ImportOrderBody, key sampleKey, s state) error {
		ok, err := selected(body, key, s)
		if !ok || err != nil {
			return err
		}
		return b.add(body, key)
	})
	if err == nil && len(b.jobs) > 0 {
		err = b.flush()
	}
	q.close()
	workers.Wait()
	r.endLease()
	sourceDone := err == nil && r.ctx.Err() == nil
	return cmp.Or(err, r.finishStreak(sourceDone), r.commit(), context.Cause(r.ctx))
}

// batch collects jobs whose intents are committed together.
type batch struct {
	run   *run
	queue *queue
	jobs  []job
	size  int
}

// add adds the current record of the source.
func (b *batch) add(body *labhealth.ImportOrderBody, key sampleKey) error {
	r := b.run
	r.mu.Lock()
	s := r.index.states[key]
	s.flags &^= changed
	s.attempts++
	r.index.set(key, s)
	r.mu.Unlock()
	if b.jobs = append(b.jobs, job{position{r.number, r.line}, *body, r.header}); len(b.jobs) < b.size {
		return nil
	}
	return b.flush()
}

// flush commits the intents, passes the jobs to the workers and waits until the queue has space.
func (b *batch) flush() error {
	r := b.run
	for i := range b.jobs {
		j := &b.jobs[i]
		r.mu.Lock()
		sum := r.index.states[r.index.key(j.body.SampleID)].digest
		r.mu.Unlock()
		r.addEntry(Entry{Step: StepIntent, SampleID: j.body.SampleID, Record: j.record, Digest: hex.EncodeToString(sum[:])})
	}
	r.sending.Store(true)
	if err := r.commit(); err != nil {
		return err
	}
	r.mu.Lock()
	r.queued += int64(len(b.jobs))
	r.mu.Unlock()
	b.queue.put(b.jobs)
	b.jobs = b.jobs[:0]
	b.size = b.queue.waitForSpace()
	return nil
}

// finishStreak records the rejections that are still held back after a pass.
func (r *run) finishStreak(sourceDone bool) error {
	// The base URL is right if an earlier run has imported orders into the same target.
	rightURL := r.opts.Target != "" && r.appliedBefore > 0
	r.mu.Lock()
	defer r.mu.Unlock()
	record, err := r.streak.finish(sourceDone, rightURL)
	for _, e := range record {
		r.applyEntry(e)
	}
	return err
}
