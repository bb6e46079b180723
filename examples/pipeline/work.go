package main

import (
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

// apply deals with messages in one transaction and acknowledges them. With an error, some may come again.
func (w worker) apply(ctx context.Context, msgs []jetstream.Msg) error {
	// Shutting down does not disturb it. What is not done in time is somebody else's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.ackWait*3/4)
	defer cancel()
	began := time.Now()
	b := &taken{worker: w}
	for _, msg := range msgs {
		if meta, err := msg.Metadata(); err == nil {
			w.metrics.pending.Set(float64(meta.NumPending))
			if meta.NumDelivered > 1 {
				w.metrics.redelivered.Inc()
			}
		}
		raw, err := rawOf(msg)
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
		return acknowledge(ctx, b.done)
	}
	err := b.commit(ctx, b.events, b.from)
	if err == nil {
		w.metrics.batches.Observe(float64(len(b.events)))
		w.metrics.applying.Observe(time.Since(began).Seconds())
	}
	return errors.Join(err, acknowledge(ctx, b.done))
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
	if failure := (*sqlstore.Error)(nil); errors.As(err, &failure) && failure.Refused {
		if len(events) == 1 {
			b.putAside(ctx, from[0].msg, from[0].raw, "refused", err)
			return nil
		}
		for i := range events {
			if err := b.commit(ctx, events[i:i+1], from[i:i+1]); err != nil {
				giveBack(from[i+1:])
				return err
			}
		}
		return nil
	}
	if err != nil {
		b.metrics.failed.Inc()
		b.log.Warn("a batch was not applied", "events", len(events), "error", err)
		giveBack(from)
		return err
	}
	for i, a := range applied {
		if a.Err != nil {
			b.putAside(ctx, from[i].msg, from[i].raw, "keyless", a.Err)
			continue
		}
		b.metrics.count(from[i].raw.ReceivedAt, a.Changes)
		b.done = append(b.done, from[i].msg)
	}
	return nil
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
