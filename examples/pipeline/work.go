package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// worker takes deliveries from the broker, applies them to the database and acknowledges them after
// the commit. If it dies, the broker delivers its messages to another one after -ack-wait. Applying
// a delivery twice changes nothing.
//
// A batch that runs out of time is halved. A delivery that runs out of time on its own gets more,
// up to 32 times -ack-wait, and becomes a dead letter after -attempts. Only time counts as such an
// attempt: an unavailable database and a lock do not.
type worker struct{ *pipeline }

// run applies batches until ctx is done, and finishes the current one then.
func (w worker) run(ctx context.Context) {
	var consumer jetstream.Consumer
	for failures := 0; ctx.Err() == nil; {
		if consumer == nil { // at the start, and after every error
			w.retry(ctx, "the database is unavailable", w.db.PingContext)
			w.retry(ctx, "events cannot be fetched", func(ctx context.Context) (err error) {
				consumer, err = w.broker.consumer(ctx, w.settings)
				return err
			})
			continue
		}
		msgs, err := fetch(consumer, w.size.limit())
		if len(msgs) > 0 {
			err = errors.Join(err, w.apply(ctx, msgs))
		} else if err == nil {
			w.progress.idle()
		}
		if err == nil {
			failures = 0
			continue
		}
		consumer = nil
		sleep(ctx, min(250*time.Millisecond<<min(failures, 10), 5*time.Second))
		failures++
	}
}

// fetch returns up to n messages that are available, or waits a second for a first one.
func fetch(consumer jetstream.Consumer, n int) ([]jetstream.Msg, error) {
	msgs, err := collect(consumer.FetchNoWait(n))
	if len(msgs) == 0 && err == nil {
		msgs, err = collect(consumer.Fetch(1, jetstream.FetchMaxWait(time.Second)))
	}
	return msgs, err
}

func collect(batch jetstream.MessageBatch, err error) ([]jetstream.Msg, error) {
	if err != nil {
		return nil, err
	}
	var msgs []jetstream.Msg
	for msg := range batch.Messages() {
		msgs = append(msgs, msg)
	}
	return msgs, batch.Error()
}

// maxBatchBytes limits the size of a batch, regardless of the number of events. Deliveries of
// historical data can be large, and a transaction has to fit into memory.
const maxBatchBytes = 4 << 20

// batchTime is the time of a batch.
func (s *settings) batchTime() time.Duration { return s.ackWait * 3 / 4 }

// timeAlone is the time of a delivery on its own, by the number of times that the broker has
// delivered it: 2, 4, 8, 16 and then 32 times -ack-wait.
func (s *settings) timeAlone(delivered int) time.Duration { return s.ackWait << min(delivered, 5) }

// pauseAfter is the time from a failure of a delivery on its own to the next attempt.
func (s *settings) pauseAfter(delivered int) time.Duration { return s.timeAlone(delivered) / 4 }

// shutdownTime is how long a transaction may take after a shutdown has begun.
const shutdownTime = 5 * time.Second

// limited returns a context that ends after d, and soon after ctx is done.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(ctx, func() {
		sleep(inner, shutdownTime)
		cancel()
	})
	return inner, func() { stop(); cancel() }
}

// hold is what a worker has taken from the broker and not processed yet. Meanwhile it extends the
// time in which the messages have to be acknowledged. It cannot do so forever, because every
// transaction has a limited time.
type hold struct {
	worker
	most     int // deliveries in a transaction
	failures int // deliveries that failed on their own

	mu   sync.Mutex
	msgs []jetstream.Msg
}

// apply processes messages and acknowledges them, in as many transactions as it takes. After an
// error, and after the first transaction when ctx is done, the rest goes back to the broker.
func (w worker) apply(ctx context.Context, msgs []jetstream.Msg) error {
	h := &hold{worker: w, most: len(msgs), msgs: msgs}
	for _, msg := range msgs {
		if deliveredTimes(msg) > 1 {
			w.metrics.redelivered.Inc()
		}
	}
	w.progress.start()
	defer w.progress.stop()
	defer h.extend()()
	err := h.applyNext(ctx) // also while the program stops: it has taken these from the others
	for len(h.msgs) > 0 && err == nil && ctx.Err() == nil {
		err = h.applyNext(ctx)
	}
	h.giveBack(time.Second)
	return err
}

// extend extends the time of the messages until the returned function is called.
func (h *hold) extend() (stop func()) {
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(h.ackWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				h.mu.Lock()
				for _, msg := range h.msgs {
					msg.InProgress()
				}
				h.mu.Unlock()
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}

// release removes the first n messages.
func (h *hold) release(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.msgs = h.msgs[n:]
}

// giveBack makes the broker redeliver the messages, to this worker or another. If it does not hear
// of it, it waits for -ack-wait.
func (h *hold) giveBack(delay time.Duration) {
	msgs := h.msgs
	h.release(len(msgs))
	for _, msg := range msgs {
		msg.NakWithDelay(delay)
	}
}

// giveBackOthers gives back all messages but the first one.
func (h *hold) giveBackOthers() {
	h.mu.Lock()
	others := h.msgs[1:]
	h.msgs = h.msgs[:1]
	h.mu.Unlock()
	for _, msg := range others {
		msg.Nak()
	}
}

// deliveredTimes returns how many times the broker has delivered a message, at least 1. Deliveries
// to workers that were killed count too.
func deliveredTimes(msg jetstream.Msg) int {
	meta, err := msg.Metadata()
	if err != nil {
		return 1
	}
	return max(1, int(min(meta.NumDelivered, 1000)))
}

// source is the message of a delivery.
type source struct {
	msg jetstream.Msg
	raw webhooks.RawDelivery
}

// letter is a delivery that cannot be applied.
type letter struct {
	source
	reason string
	cause  error
}

// transaction is a batch that is applied in one transaction.
type transaction struct {
	size    int // messages
	events  []webhooks.Delivery
	sources []source // of events
	letters []letter
}

// next returns the next batch.
func (h *hold) next() (t transaction) {
	most := min(h.most, h.size.limit(), len(h.msgs))
	for bytes := 0; t.size < most && bytes < maxBatchBytes; t.size++ {
		msg := h.msgs[t.size]
		raw, err := rawOf(msg)
		bytes += len(raw.Body)
		if err != nil {
			t.letters = append(t.letters, letter{source{msg, raw}, "message", err})
			continue
		}
		event, err := raw.Parse()
		if err != nil {
			t.letters = append(t.letters, letter{source{msg, raw}, "unreadable", err})
			continue
		}
		t.events, t.sources = append(t.events, event), append(t.sources, source{msg, raw})
	}
	return t
}

// applyNext applies the next batch. It returns an error if the database or the broker is
// unavailable.
func (h *hold) applyNext(ctx context.Context) error {
	t := h.next()
	available := h.batchTime()
	if len(h.msgs) == 1 { // nothing waits for it
		available = h.timeAlone(deliveredTimes(h.msgs[0]))
	}
	start := time.Now()
	inner, cancel := limited(ctx, available)
	defer cancel()
	inner = h.observe.Start(inner)
	applied, err := h.store.ApplyAll(inner, t.events)
	if err == nil {
		return h.finish(ctx, inner, t, applied, start)
	}
	h.observe.End(inner, sqlstore.Step{}, err)
	if ctx.Err() != nil {
		return nil
	}
	h.progress.failed(err)
	h.quiet.warn("a batch was not applied", err.Error(), "deliveries", t.size)
	return h.afterFailure(ctx, t, err)
}

// afterFailure decides how to go on after a batch has failed. It returns an error if the database
// is unavailable.
func (h *hold) afterFailure(ctx context.Context, t transaction, err error) error {
	deadline := errors.Is(err, context.DeadlineExceeded)
	if deadline && !h.responds(ctx) {
		return err
	}
	locked := sqlState(err) == lockTimeout
	late := isTimeout(err) && !locked
	switch {
	case t.size > 1 && locked: // perhaps only one of them needs the lock
		h.most = 1
	case t.size > 1 && (late || isRejected(err)):
		h.most = t.size / 2
		if late {
			h.size.shrink(t.size)
		}
	case deadline && len(h.msgs) > 1:
		h.size.shrink(1)
		h.giveBackOthers() // so that this one can have more time
	case late || locked:
		h.size.shrink(1)
		return h.postpone(ctx, t, err)
	case isRejected(err):
		return h.finishDead(ctx, t, "rejected", err)
	default:
		return err
	}
	return nil
}

// responds reports whether the database responds to a request that needs no time.
func (h *hold) responds(ctx context.Context) bool {
	ctx, cancel := limited(ctx, 5*time.Second)
	defer cancel()
	return h.db.PingContext(ctx) == nil
}

// postpone gives back a delivery that ran out of time on its own, or makes it a dead letter. It
// returns an error when several have failed like this: the database may be the reason.
func (h *hold) postpone(ctx context.Context, t transaction, err error) error {
	delivered := deliveredTimes(t.sources[0].msg)
	pause := h.pauseAfter(delivered)
	since := time.Now().Add(-h.timeAlone(delivered) - pause)
	locked := sqlState(err) == lockTimeout
	if locked {
		pause = min(pause, h.ackWait)
	}
	if !locked && delivered >= h.attempts && (h.progress.appliedSince(since) || delivered >= 3*h.attempts) {
		return h.finishDead(ctx, t, "too slow", err)
	}
	h.log.Warn("a delivery ran out of time", "delivery_id", t.sources[0].raw.ID, "attempt", delivered, "next", pause, "error", err)
	h.release(1)
	t.sources[0].msg.NakWithDelay(pause)
	h.observe.End(h.observe.Start(ctx), sqlstore.Step{Delayed: 1}, nil)
	if h.failures++; h.failures < 3 {
		return nil
	}
	return err
}

// finishDead makes a batch of one delivery a dead letter.
func (h *hold) finishDead(ctx context.Context, t transaction, reason string, cause error) error {
	t = transaction{size: 1, letters: []letter{{t.sources[0], reason, cause}}}
	return h.finish(ctx, h.observe.Start(ctx), t, nil, time.Now())
}

// finish stores the dead letters of a batch that was applied, and acknowledges its messages.
func (h *hold) finish(ctx, observed context.Context, t transaction, applied []sqlstore.Applied, start time.Time) error {
	var step sqlstore.Step
	var done []jetstream.Msg
	for i, a := range applied {
		addChanges(&step.Changes, a.Changes) // of what can be read
		switch {
		case a.Err == nil:
			step.Applied++
			h.metrics.latency.Observe(time.Since(t.sources[i].raw.ReceivedAt).Seconds())
			done = append(done, t.sources[i].msg)
		case errors.Is(a.Err, webhooks.ErrUnreadable):
			t.letters = append(t.letters, letter{t.sources[i], "unreadable", a.Err})
		default:
			t.letters = append(t.letters, letter{t.sources[i], "keyless", a.Err})
		}
	}
	if step.Applied > 0 {
		took := time.Since(start)
		h.metrics.batches.Observe(float64(step.Applied))
		if took < h.batchTime()/4 {
			h.size.grow(t.size, h.ackWait)
		}
	}
	for _, l := range t.letters {
		if h.deadLetter(ctx, l) {
			step.Dead++
			done = append(done, l.msg)
		} else {
			l.msg.NakWithDelay(time.Second)
		}
	}
	if len(done) > 0 {
		h.progress.completed(step.Applied > 0)
	}
	h.observe.End(observed, step, nil)
	h.release(t.size)
	inner, cancel := limited(ctx, h.batchTime())
	defer cancel()
	return acknowledge(inner, done)
}

// deadLetter stores a delivery that cannot be applied, and reports whether it did.
func (h *hold) deadLetter(ctx context.Context, l letter) bool {
	ctx, cancel := limited(ctx, h.batchTime())
	defer cancel()
	if err := h.store.DeadLetter(ctx, l.raw, l.cause); err != nil {
		h.progress.failed(err)
		h.quiet.warn("a dead letter was not stored", err.Error(), "delivery_id", l.raw.ID)
		return false
	}
	h.log.Warn("a delivery became a dead letter", "delivery_id", l.raw.ID, "reason", l.reason, "cause", l.cause) // no part of the delivery
	return true
}

// lockTimeout is the SQLSTATE of statements that waited too long for a lock.
const lockTimeout = "55P03"

func sqlState(err error) string {
	if failure := (*sqlstore.Error)(nil); errors.As(err, &failure) {
		return failure.SQLState
	}
	return ""
}

// isTimeout reports whether a transaction ran out of time, by its deadline or by a setting of the
// database.
func isTimeout(err error) bool {
	failure := (*sqlstore.Error)(nil)
	return errors.As(err, &failure) && failure.TimedOut
}

func isRejected(err error) bool {
	failure := (*sqlstore.Error)(nil)
	return errors.As(err, &failure) && failure.Rejected
}

// acknowledge removes messages from the broker. It processes acknowledgements in the order in which
// they are sent, so its response to the last one confirms all. If they are lost, the messages are
// delivered again.
func acknowledge(ctx context.Context, msgs []jetstream.Msg) error {
	for i, msg := range msgs {
		if i == len(msgs)-1 {
			return msg.DoubleAck(ctx)
		}
		if err := msg.Ack(); err != nil {
			return err
		}
	}
	return nil
}
