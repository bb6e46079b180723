package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// known is what a process has seen of the stream.
type known struct {
	created time.Time // of the stream that was there last, in UTC
	missing bool      // it was there, and is not anymore
}

// missingStream is the name of a stream that the broker does not have.
type missingStream string

func (s missingStream) Error() string { return "the broker has no stream " + string(s) }

var errUnavailable = errors.New("the broker is unavailable")

// find returns the stream. It reports loudly if the one that this process has seen before is
// missing, or another one is in its place: the events in it were acknowledged.
func (b *broker) find(ctx context.Context) (jetstream.Stream, error) {
	before := b.known.Load()
	stream, err := b.js.Stream(ctx, b.stream.Name)
	switch {
	case err == nil:
		b.saw(before, known{created: stream.CachedInfo().Created.UTC()})
	case errors.Is(err, jetstream.ErrStreamNotFound):
		if before != nil {
			b.saw(before, known{created: before.created, missing: true})
		}
		return nil, missingStream(b.stream.Name)
	case errors.Is(err, nats.ErrReconnectBufExceeded): // there is none, because there is no buffer
		return nil, errUnavailable
	}
	return stream, err
}

// saw reports a change from before to now, unless another call has seen one in the meantime.
func (b *broker) saw(before *known, now known) {
	if before != nil && *before == now || !b.known.CompareAndSwap(before, &now) || before == nil {
		return
	}
	b.admitted.Store(nil) // a new stream has its own settings
	log := b.log.With("stream", b.stream.Name)
	switch {
	case now.missing:
		b.metrics.streamLost.Inc()
		log.Error("the stream has disappeared, with all events in it")
	case now.created.Equal(before.created):
		log.Info("the stream is there again")
	case before.missing:
		log.Error("there is a new stream, without the events of the one that has disappeared")
	default:
		b.metrics.streamLost.Inc()
		log.Error("the stream has been replaced by a new one, without its events")
	}
}

// prepare creates the stream, if this process has never seen it. It does not change an existing
// one, which may have more replicas or a limit. Nor does it replace one that has disappeared, so
// that somebody notices.
func (b *broker) prepare(ctx context.Context) error {
	_, err := b.find(ctx)
	if _, missing := errors.AsType[missingStream](err); missing && b.known.Load() == nil {
		if _, err = b.js.CreateStream(ctx, b.stream); err == nil {
			_, err = b.find(ctx)
		}
	}
	return err
}

// check returns nil if deliveries can be published.
func (b *broker) check(ctx context.Context) error {
	if err := b.admit(ctx); err != nil {
		return err
	}
	_, err := b.find(ctx)
	return err
}

// storage is what all streams of an account or a server occupy, in bytes.
type storage struct {
	used  uint64
	limit int64 // none if 0 or less
}

func (s storage) share() float64 { return float64(s.used) / limitOf(s.limit) }

// storage returns the fullest of the account and, for a receiver with -nats-monitor, its servers. A
// stream without a limit can become as large as they allow.
func (b *broker) storage(ctx context.Context, replicas int) (storage, error) {
	account, err := b.js.AccountInfo(ctx)
	if err != nil {
		return storage{}, err
	}
	tier := account.Tier
	if of, ok := account.Tiers[fmt.Sprint("R", replicas)]; ok {
		tier = of
	}
	all := []storage{{tier.Store, tier.Limits.MaxStore}}
	if b.receives {
		for _, address := range b.monitors {
			if s, err := monitored(ctx, address); err == nil {
				all = append(all, storage{s.JetStream.Stats.Store, s.JetStream.Config.MaxStore})
			}
		}
	}
	return slices.MaxFunc(all, func(a, b storage) int {
		return cmp.Or(cmp.Compare(a.share(), b.share()), cmp.Compare(limitOf(b.limit), limitOf(a.limit)))
	}), nil
}
