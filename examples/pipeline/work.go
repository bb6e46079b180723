package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// worker takes deliveries from the broker, applies them to the database and acknowledges them after
// the commit. If it dies, the broker delivers its messages to another one after -ack-wait. Applying
// a delivery twice changes nothing.
type worker struct{ *pipeline }

// run applies batches until ctx is done, and finishes the current one then.
func (w worker) run(ctx context.Context) {
	var consumer jetstream.Consumer
	for ctx.Err() == nil {
		if consumer == nil { // at the start, and after every error
			w.retry(ctx, "the database is unavailable", w.db.PingContext)
			w.retry(ctx, "the broker is unavailable", func(ctx context.Context) (err error) {
				consumer, err = w.broker.consumer(ctx, w.settings)
				return err
			})
			continue
		}
		msgs, err := fetch(consumer, w.batch)
		if len(msgs) > 0 {
			err = errors.Join(err, w.apply(ctx, msgs))
		}
		if err != nil {
			consumer = nil
			sleep(ctx, 250*time.Millisecond)
		}
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
// historical data can be large, and a transaction has to fit into memory and to commit within
// -ack-wait.
const maxBatchBytes = 4 << 20

// apply processes messages and acknowledges them, in one transaction unless they are large. After
// an error, the broker delivers some of them again.
func (w worker) apply(ctx context.Context, msgs []jetstream.Msg) error {
	for first := true; len(msgs) > 0; first = false {
		if !first {
			for _, msg := range msgs {
				msg.InProgress() // they have waited for the previous ones
			}
		}
		n, err := w.applySome(ctx, msgs)
		msgs = msgs[n:]
		if err != nil || ctx.Err() != nil {
			for _, msg := range msgs {
				msg.NakWithDelay(time.Second)
			}
			return err
		}
	}
	return nil
}

// applySome processes as many messages as fit into a transaction, and returns their number.
func (w worker) applySome(ctx context.Context, msgs []jetstream.Msg) (n int, err error) {
	// A shutdown does not interrupt it. After -ack-wait, another worker gets the messages.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.ackWait*3/4)
	defer cancel()
	start := time.Now()
	b := &messages{worker: w}
	for size := 0; n < len(msgs) && size < maxBatchBytes; n++ {
		msg := msgs[n]
		if meta, err := msg.Metadata(); err == nil {
			w.metrics.pending.Set(float64(meta.NumPending))
			if meta.NumDelivered > 1 {
				w.metrics.redelivered.Inc()
			}
		}
		raw, err := rawOf(msg)
		size += len(raw.Body)
		if err != nil {
			b.deadLetter(ctx, source{msg, raw}, "message", err)
			continue
		}
		event, err := raw.Parse()
		if err != nil {
			b.deadLetter(ctx, source{msg, raw}, "unreadable", err)
			continue
		}
		b.events, b.sources = append(b.events, event), append(b.sources, source{msg, raw})
	}
	if len(b.events) == 0 {
		return n, acknowledge(ctx, b.done)
	}
	err = b.commit(ctx, b.events, b.sources)
	if err == nil {
		w.metrics.batches.Observe(float64(len(b.events)))
		w.metrics.applying.Observe(time.Since(start).Seconds())
	}
	return n, errors.Join(err, acknowledge(ctx, b.done))
}

// messages is a batch that a worker has taken from the broker.
type messages struct {
	worker
	events  []webhooks.Delivery
	sources []source        // of events
	done    []jetstream.Msg // to be acknowledged
}

// source is the message of an event.
type source struct {
	msg jetstream.Msg
	raw webhooks.RawDelivery
}

// commit applies events in one transaction. If the database rejects it, commit applies each event
// in its own, so that only those that are rejected become dead letters. After any other error it
// gives the messages back.
func (b *messages) commit(ctx context.Context, events []webhooks.Delivery, sources []source) error {
	applied, err := b.store.ApplyAll(ctx, events)
	switch {
	case !isRejected(err):
	case len(events) > 1:
		var timeout error
		for i := range events {
			err := b.commit(ctx, events[i:i+1], sources[i:i+1])
			if err != nil && !isRejected(err) {
				giveBack(sources[i+1:])
				return err
			}
			timeout = cmp.Or(timeout, err) // the others go on
		}
		return timeout
	case !isTimeout(err):
		b.deadLetter(ctx, sources[0], "rejected", err)
		return nil
	}
	if err != nil {
		b.metrics.failed.Inc()
		b.log.Warn("a batch was not applied", "events", len(events), "error", err)
		giveBack(sources)
		return err
	}
	for i, a := range applied {
		if errors.Is(a.Err, webhooks.ErrUnreadable) {
			b.metrics.countChanges(a.Changes) // of what can be read
			b.deadLetter(ctx, sources[i], "unreadable", a.Err)
			continue
		}
		if a.Err != nil {
			b.deadLetter(ctx, sources[i], "keyless", a.Err)
			continue
		}
		b.metrics.count(sources[i].raw.ReceivedAt, a.Changes)
		b.done = append(b.done, sources[i].msg)
	}
	return nil
}

func isRejected(err error) bool {
	failure := (*sqlstore.Error)(nil)
	return errors.As(err, &failure) && failure.Rejected
}

// isTimeout reports whether a statement took longer than the database allows, which can succeed
// later.
func isTimeout(err error) bool {
	failure := (*sqlstore.Error)(nil)
	return errors.As(err, &failure) && failure.SQLState == "57014"
}

// giveBack makes the broker redeliver messages, to this worker or another.
func giveBack(list []source) {
	for _, s := range list {
		s.msg.NakWithDelay(time.Second) // if it is lost, the broker waits for -ack-wait
	}
}

// deadLetter stores a delivery that cannot be applied. If that fails, it gives the message back.
func (b *messages) deadLetter(ctx context.Context, s source, reason string, cause error) {
	if err := b.store.DeadLetter(ctx, s.raw, cause); err != nil {
		b.log.Warn("a dead letter was not stored", "delivery_id", s.raw.ID, "error", err)
		giveBack([]source{s})
		return
	}
	b.metrics.deadLetters.WithLabelValues(reason).Inc()
	b.log.Warn("a delivery became a dead letter", "delivery_id", s.raw.ID, "reason", reason)
	b.done = append(b.done, s.msg)
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
