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

// worker takes deliveries from the broker, applies them to the database and acknowledges them when that is committed. What it holds
// when it dies comes to another one: see -ack-wait. To apply a delivery twice changes nothing.
type worker struct{ *pipeline }

// run works until ctx ends, and finishes what it has begun then.
func (w worker) run(ctx context.Context) {
	var consumer jetstream.Consumer
	for ctx.Err() == nil {
		if consumer == nil { // at first, and after every failure
			w.insist(ctx, "the database is away", w.db.PingContext)
			w.insist(ctx, "the broker is away", func(ctx context.Context) (err error) {
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
			pause(ctx, 250*time.Millisecond)
		}
	}
}

// fetch returns what is there, at most n messages, or waits a moment for a first one.
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

// mostBytes is where a batch ends, however many events are there: deliveries of old data can be large, and all that is in a
// transaction has to be in memory, and in the database before others get it.
const mostBytes = 4 << 20

// apply deals with messages and acknowledges them, in one transaction unless they are large. With an error, some may come again.
func (w worker) apply(ctx context.Context, msgs []jetstream.Msg) error {
	for first := true; len(msgs) > 0; first = false {
		if !first {
			for _, msg := range msgs {
				msg.InProgress() // They have waited for those before.
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

// applySome deals with as many messages as a transaction should hold, and returns how many that are.
func (w worker) applySome(ctx context.Context, msgs []jetstream.Msg) (n int, err error) {
	// Shutting down does not disturb it. What is not done in time is somebody else's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.ackWait*3/4)
	defer cancel()
	began := time.Now()
	b := &taken{worker: w}
	for size := 0; n < len(msgs) && size < mostBytes; n++ {
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
			b.putAside(ctx, msg, raw, "message", err)
			continue
		}
		event, err := raw.Parse()
		if err != nil {
			b.putAside(ctx, msg, raw, "unreadable", err)
			continue
		}
		b.events, b.from = append(b.events, event), append(b.from, source{msg, raw})
	}
	if len(b.events) == 0 {
		return n, acknowledge(ctx, b.done)
	}
	err = b.commit(ctx, b.events, b.from)
	if err == nil {
		w.metrics.batches.Observe(float64(len(b.events)))
		w.metrics.applying.Observe(time.Since(began).Seconds())
	}
	return n, errors.Join(err, acknowledge(ctx, b.done))
}

// taken is what a worker has taken from the broker at a time.
type taken struct {
	worker
	events []webhooks.Delivery
	from   []source // of events
	done   []jetstream.Msg
}

type source struct {
	msg jetstream.Msg
	raw webhooks.RawDelivery
}

// commit applies events in one transaction. If the database refuses what they hold, each gets one of its own, so that nothing but
// what is refused is put aside. After any other failure they are given back.
func (b *taken) commit(ctx context.Context, events []webhooks.Delivery, from []source) error {
	applied, err := b.store.ApplyAll(ctx, events)
	switch {
	case !isRefused(err):
	case len(events) > 1:
		var late error
		for i := range events {
			err := b.commit(ctx, events[i:i+1], from[i:i+1])
			if err != nil && !isRefused(err) {
				giveBack(from[i+1:])
				return err
			}
			late = cmp.Or(late, err) // It holds up no other.
		}
		return late
	case !isLate(err):
		b.putAside(ctx, from[0].msg, from[0].raw, "refused", err)
		return nil
	}
	if err != nil {
		b.metrics.failed.Inc()
		b.log.Warn("a batch was not applied", "events", len(events), "error", err)
		giveBack(from)
		return err
	}
	for i, a := range applied {
		if errors.Is(a.Err, webhooks.ErrUnreadable) {
			b.metrics.countChanges(a.Changes) // of what could be read
			b.putAside(ctx, from[i].msg, from[i].raw, "unreadable", a.Err)
			continue
		}
		if a.Err != nil {
			b.putAside(ctx, from[i].msg, from[i].raw, "keyless", a.Err)
			continue
		}
		b.metrics.count(from[i].raw.ReceivedAt, a.Changes)
		b.done = append(b.done, from[i].msg)
	}
	return nil
}

func isRefused(err error) bool {
	failure := (*sqlstore.Error)(nil)
	return errors.As(err, &failure) && failure.Rejected
}

// isLate reports whether a statement took longer than the database lets it, which another time it may not.
func isLate(err error) bool {
	failure := (*sqlstore.Error)(nil)
	return errors.As(err, &failure) && failure.SQLState == "57014"
}

// giveBack has the broker send messages again, to this worker or another.
func giveBack(list []source) {
	for _, s := range list {
		s.msg.NakWithDelay(time.Second) // If it gets lost, they come after -ack-wait.
	}
}

// putAside keeps what cannot be applied for a person to look at. If that fails, it comes again.
func (b *taken) putAside(ctx context.Context, msg jetstream.Msg, raw webhooks.RawDelivery, reason string, cause error) {
	if err := b.store.DeadLetter(ctx, raw, cause); err != nil {
		b.log.Warn("a delivery could not be put aside", "delivery_id", raw.ID, "error", err)
		giveBack([]source{{msg, raw}})
		return
	}
	b.metrics.deadLetters.WithLabelValues(reason).Inc()
	b.log.Warn("a delivery was put aside", "delivery_id", raw.ID, "reason", reason)
	b.done = append(b.done, msg)
}

// acknowledge has the broker forget messages. It takes acknowledgements in the order that they are sent in, so its answer to the last
// is one to all. If they get lost, the messages come again.
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
