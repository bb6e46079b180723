package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Headers of a published delivery, in addition to [jetstream.MsgIDHeader], which has its ID.
const (
	receivedHeader = "Received-At" // time of receipt in RFC 3339 with nanoseconds, which orders versions
	copyHeader     = "Delivery-Id" // ID of a delivery that is published again, in place of the other header
)

// broker has the stream of deliveries that were received and are not applied yet.
type broker struct {
	*settings
	conn  *nats.Conn
	js    jetstream.JetStream
	log   *slog.Logger
	state atomic.Pointer[state]
}

// state is what watch has seen last.
type state struct {
	server string                // ID of the server
	stream *jetstream.StreamInfo // the zero value if it was never seen
	err    error                 // why the broker cannot be used
}

// connect returns immediately, even if the broker is unavailable. The client reconnects in the
// background, and calls fail until then.
func connect(s *settings, log *slog.Logger, registry *prometheus.Registry) (*broker, error) {
	conn, err := nats.Connect(s.nats,
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250*time.Millisecond),
		nats.ReconnectBufSize(-1), // fail while disconnected: the service repeats the delivery
		nats.PingInterval(5*time.Second),
		nats.FlusherTimeout(5*time.Second),                                // of a broker that hangs: while it writes, other calls wait
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // calls return these errors too
	)
	if err != nil { // which may quote a password
		return nil, errors.New("-nats: not a broker URL, such as nats://127.0.0.1:4222")
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	b := &broker{settings: s, conn: conn, js: js, log: log}
	b.state.Store(&state{stream: &jetstream.StreamInfo{}, err: errNotChecked})
	registry.MustRegister(
		gauge("labhealth_broker_up", "1 if the broker can be used.", func() float64 {
			if b.ready(context.Background()) != nil {
				return 0
			}
			return 1
		}),
		gauge("labhealth_stream_deliveries", "Deliveries in the stream, which are not applied yet.", func() float64 {
			return float64(b.state.Load().stream.State.Msgs)
		}),
		gauge("labhealth_stream_oldest_age_seconds", "Time since the oldest delivery in the stream was stored; 0 if there is none.", func() float64 {
			if s := b.state.Load().stream.State; s.Msgs > 0 {
				return time.Since(s.FirstTime).Seconds()
			}
			return 0
		}))
	if s.receives() && s.monitors == "" {
		log.Warn("-nats-monitor is not set: whether the broker syncs what it acknowledges (sync_interval: always) is not verified")
	}
	return b, nil
}

// close flushes the acknowledgements and closes the connection.
func (b *broker) close() {
	b.conn.FlushTimeout(2 * time.Second)
	b.conn.Close()
}

// watch checks the broker several times a second until ctx is done.
func (b *broker) watch(ctx context.Context) {
	for ; ctx.Err() == nil; sleep(ctx, 250*time.Millisecond) {
		before := b.state.Load()
		now := b.look(ctx, before)
		b.state.Store(now)
		switch {
		case ctx.Err() != nil || fmt.Sprint(now.err) == fmt.Sprint(before.err):
		case now.err != nil:
			b.log.Error("the broker cannot be used", "error", now.err)
		default:
			b.log.Info("the broker can be used")
		}
	}
}

// look returns the state of the broker. It creates the stream if this process has never seen it,
// and changes nothing in one that is there. A stream that has disappeared is not created again: the
// deliveries in it were acknowledged, so somebody has to notice.
func (b *broker) look(ctx context.Context, before *state) *state {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	server, created := b.conn.ConnectedServerId(), before.stream.Created // zero if it was never seen
	if server == "" {
		return &state{stream: before.stream, err: errUnavailable}
	}
	stream, err := b.js.Stream(ctx, b.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) && created.IsZero() {
		stream, err = b.js.CreateStream(ctx, jetstream.StreamConfig{
			Name:       b.stream,
			Subjects:   []string{b.stream + ".>"},
			Retention:  jetstream.WorkQueuePolicy, // what is acknowledged is removed, and nothing else
			Discard:    jetstream.DiscardNew,      // if the disk is full
			Storage:    jetstream.FileStorage,
			Duplicates: 3 * time.Hour, // the first five attempts of the service
		})
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = fmt.Errorf("the broker does not have the stream %s anymore, nor the deliveries in it", b.stream)
	}
	if err != nil {
		return &state{server, before.stream, err}
	}
	info := stream.CachedInfo()
	if !created.IsZero() && !created.Equal(info.Created) {
		b.log.Error("the stream has been replaced by a new one, without its deliveries", "stream", b.stream)
	}
	err = checkStream(info.Config)
	if err == nil && b.receives() && (before.err != nil || before.server != server) {
		err = b.checkServers(ctx, info.Cluster)
	}
	return &state{server, info, err}
}

var errUnavailable, errNotChecked = errors.New("the broker is unavailable"), errors.New("the broker is not checked yet")

// ready returns why the broker cannot be used.
func (b *broker) ready(context.Context) error {
	s := b.state.Load()
	switch b.conn.ConnectedServerId() {
	case "":
		return errUnavailable
	case s.server:
		return s.err
	}
	return errNotChecked
}

// publish returns nil when the broker has stored the delivery, by this call or an earlier one.
func (b *broker) publish(ctx context.Context, d webhooks.RawDelivery) error {
	if err := b.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // the service waits for the response
	defer cancel()
	msg := &nats.Msg{Subject: b.stream + ".delivery", Data: d.Body, Header: nats.Header{}}
	msg.Header.Set(receivedHeader, d.ReceivedAt.UTC().Format(time.RFC3339Nano))
	if d.ID != "" {
		msg.Header.Set(jetstream.MsgIDHeader, d.ID)
	}
	ack, err := b.store(ctx, msg)
	if err != nil {
		b.log.Warn("the broker did not store a delivery", "delivery_id", d.ID, "bytes", len(d.Body), "error", err)
		return err
	}
	if ack.Duplicate {
		return b.storeAgain(ctx, d.ID, ack.Sequence)
	}
	return nil
}

// store publishes a message and waits for the acknowledgement.
func (b *broker) store(ctx context.Context, msg *nats.Msg) (*jetstream.PubAck, error) {
	return b.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(b.stream), jetstream.WithRetryAttempts(0))
}

// storeAgain makes sure that a delivery is durable whose message the broker has already. A server
// that was killed between writing and syncing a message finds it after the restart, and rejects the
// delivery as a duplicate without syncing anything: a power failure would lose it. So storeAgain
// publishes the message again, without an ID and with its time of receipt: a later one would win
// over versions received in between. If a worker has removed the message, it is in the database.
func (b *broker) storeAgain(ctx context.Context, id string, sequence uint64) error {
	stream, err := b.js.Stream(ctx, b.stream)
	if err != nil {
		return err
	}
	first, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	header := maps.Clone(first.Header)
	header.Del(jetstream.MsgIDHeader)
	header.Set(copyHeader, id)
	_, err = b.store(ctx, &nats.Msg{Subject: first.Subject, Data: first.Data, Header: header})
	return err
}

// rawOf returns the delivery in a message.
func rawOf(msg jetstream.Msg) webhooks.RawDelivery {
	header := msg.Headers()
	d := webhooks.RawDelivery{ID: cmp.Or(header.Get(jetstream.MsgIDHeader), header.Get(copyHeader)), Body: msg.Data()}
	if received, err := time.Parse(time.RFC3339Nano, header.Get(receivedHeader)); err == nil {
		d.ReceivedAt = received
	} else if meta, err := msg.Metadata(); err == nil { // another program has published it
		d.ReceivedAt = meta.Timestamp
	}
	return d
}
