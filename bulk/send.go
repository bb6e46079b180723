// Selects the records that are sent, and passes them to the workers.

package bulk

import (
	"cmp"
	"context"
	"encoding/hex"
	"sync"

	"github.com/labhealth/labhealth-go"
)

// sender imports records: several at a time, at the pace that the service allows.
type sender struct {
	control

	client    *labhealth.Client
	pass      *sourcePass
	writer    *journalWriter
	reporter  *reporter
	pacer     *pacer
	onUnknown func(*row) // called for records with an unknown outcome, concurrently

	mu     sync.Mutex // guards streak, and the order of its entries in the journal
	streak streak     // of rejections
}

// send ranges over the wanted records of the source and sends the selected ones. The intents of a
// batch are in the journal before the workers get its rows.
func (s *sender) send(wanted func(state) bool, selected func(*row) bool) error {
	q := newQueue(s.opts.Concurrency)
	var workers sync.WaitGroup
	for range s.opts.Concurrency {
		workers.Go(func() {
			for row, ok := q.take(); ok; row, ok = q.take() {
				s.sendRow(row)
				s.reporter.completed.Add(1)
			}
		})
	}
	b := batch{sender: s, queue: q, size: q.waitForSpace()}
	err := s.pass.each(wanted, func(row *row) error {
		if !selected(row) {
			return nil
		}
		return b.add(row)
	})
	if err == nil && len(b.rows) > 0 {
		err = b.flush()
	}
	q.close()
	workers.Wait()
	s.writer.endLease()
	sourceDone := err == nil && s.ctx.Err() == nil
	return cmp.Or(err, s.finishStreak(sourceDone), s.writer.commit(), context.Cause(s.ctx))
}

// batch collects rows whose intents are committed together.
type batch struct {
	*sender

	queue *queue
	rows  []*row
	size  int
}

func (b *batch) add(row *row) error {
	b.writer.update(row.key, func(s *state) {
		s.flags &^= changed
		s.attempts++
	})
	if b.rows = append(b.rows, row); len(b.rows) < b.size {
		return nil
	}
	return b.flush()
}

// flush commits the intents, passes the rows to the workers and waits until the queue has space.
func (b *batch) flush() error {
	for _, row := range b.rows {
		e := row.entry(StepIntent)
		e.Digest = hex.EncodeToString(row.state.digest[:])
		b.writer.add(e)
	}
	b.writer.sending.Store(true)
	if err := b.writer.commit(); err != nil {
		return err
	}
	b.reporter.queued.Add(int64(len(b.rows)))
	b.queue.put(b.rows)
	b.rows = b.rows[:0]
	b.size = b.queue.waitForSpace()
	return nil
}

// entry returns a journal entry of the record.
func (r *row) entry(step Step) Entry {
	return Entry{Step: step, SampleID: r.body.SampleID, Record: r.record}
}

// finishStreak records the rejections that are still held back after a pass.
func (s *sender) finishStreak(sourceDone bool) error {
	// The base URL is right if an earlier run has imported orders into the same target.
	rightURL := s.opts.Target != "" && s.reporter.before.Load() > 0
	s.mu.Lock()
	defer s.mu.Unlock()
	record, err := s.streak.finish(sourceDone, rightURL)
	s.writer.add(record...)
	return err
}
