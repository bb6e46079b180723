package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Headers of a published delivery, in addition to [jetstream.MsgIDHeader], which has its ID.
const (
	receivedHeader = "Received-At"      // time of receipt in RFC 3339 with nanoseconds, which orders versions
	copyHeader     = "Delivery-Id"      // ID of a delivery that is published again, in place of the other header
	encodingHeader = "Content-Encoding" // gzip if the raw body is larger than a message can be
)

// bodyLimit is the size of the largest body that is received and unpacked.
const bodyLimit = 16 << 20

// broker holds the stream of deliveries that were received and are not applied yet.
type broker struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	stream   jetstream.StreamConfig
	receives bool
	monitors []string // URLs
	metrics  *metrics
	log      *slog.Logger

	admitting chan struct{}          // holds an element while admit checks the broker
	admitted  atomic.Pointer[string] // ID of the server that admit has accepted
	known     atomic.Pointer[known]  // the stream as find has seen it; nil if it has not yet
	waiting   atomic.Pointer[error]  // why a worker has no consumer: see partitioned
}

// connect returns immediately, even if the broker is unavailable. The client reconnects in the
// background, and calls fail until then.
func connect(s *settings, m *metrics, log *slog.Logger) (*broker, error) {
	conn, err := nats.Connect(s.nats,
		nats.Name("labhealth pipeline"),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250*time.Millisecond),
		nats.ReconnectBufSize(-1), // fail while disconnected: the service repeats the delivery
		nats.PingInterval(5*time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else the connection was closed here
				log.Warn("the broker is unavailable")
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("the broker is available again") }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // calls return these errors too
	)
	if malformed := (*url.Error)(nil); errors.As(err, &malformed) {
		return nil, errors.New("-nats: not a broker URL, such as nats://127.0.0.1:4222") // err may quote a password
	}
	if err != nil {
		return nil, fmt.Errorf("-nats: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if len(s.monitors) == 0 && s.receives() {
		log.Warn("-nats-monitor is not set: whether the broker syncs what it acknowledges (sync_interval: always) is not verified")
	}
	b := &broker{conn: conn, js: js, receives: s.receives(), monitors: s.monitors, metrics: m, log: log, admitting: make(chan struct{}, 1)}
	b.stream = jetstream.StreamConfig{
		Name:     s.stream,
		Subjects: []string{s.stream + ".>"},
		// Acknowledged messages are removed, and no others. If the disk is full, new ones are
		// rejected.
		Retention:  jetstream.WorkQueuePolicy,
		Discard:    jetstream.DiscardNew,
		Storage:    jetstream.FileStorage,
		Replicas:   s.replicas,
		Duplicates: s.dedup,
	}
	return b, nil
}

// publish returns nil when the broker has stored the delivery, by this call or an earlier one.
func (b *broker) publish(ctx context.Context, d webhooks.RawDelivery) error {
	// The service waits for the response.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := b.admit(ctx); err != nil {
		return err
	}
	msg := &nats.Msg{Subject: subject(b.stream.Name, d.Body), Data: d.Body, Header: nats.Header{}}
	msg.Header.Set(receivedHeader, d.ReceivedAt.UTC().Format(time.RFC3339Nano))
	if d.ID != "" {
		msg.Header.Set(jetstream.MsgIDHeader, d.ID)
	}
	if limit := b.conn.MaxPayload(); limit > 0 && int64(len(d.Body)) > limit-2048 { // headers count too
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		w.Write(d.Body)
		if err := w.Close(); err != nil {
			return err
		}
		msg.Data = packed.Bytes()
		msg.Header.Set(encodingHeader, "gzip")
	}
	ack, err := b.store(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		b.log.Error("a delivery is larger than max_payload of the broker: increase it", "delivery_id", d.ID, "bytes", len(msg.Data))
		return err
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		_, missing := b.find(ctx)
		return cmp.Or(missing, err)
	case err != nil:
		return err
	case ack.Duplicate:
		b.metrics.publishedAgain.Inc()
		return b.copyFirst(ctx, d.ID, ack.Sequence)
	}
	b.metrics.published.Inc()
	return nil
}

// store publishes a message and waits for the acknowledgement.
func (b *broker) store(ctx context.Context, msg *nats.Msg) (*jetstream.PubAck, error) {
	return b.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(b.stream.Name), jetstream.WithRetryAttempts(0))
}

// copyFirst makes sure that a delivery is durable whose message the broker has already. A server
// that was killed between writing and syncing a message finds it after the restart, and rejects the
// delivery as a duplicate without syncing anything: a power failure would lose it. So copyFirst
// publishes the message again, without an ID and with its time of receipt: a later one would win
// over versions received in between. If a worker has removed the message, it is in the database.
func (b *broker) copyFirst(ctx context.Context, id string, sequence uint64) error {
	stream, err := b.find(ctx)
	if err != nil {
		return err
	}
	if err := checkStream(stream.CachedInfo().Config); err != nil {
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

// isSubject reports whether an event type, which the sender sets, can be the end of a subject.
func isSubject(s string) bool {
	if len(s) > 128 {
		return false
	}
	for token := range strings.SplitSeq(s, ".") {
		if token == "" || strings.ContainsFunc(token, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
		}) {
			return false
		}
	}
	return true
}

// rawOf returns the delivery in a message. After an error, its body is that of the message.
func rawOf(msg jetstream.Msg) (d webhooks.RawDelivery, err error) {
	header := msg.Headers()
	d = webhooks.RawDelivery{ID: cmp.Or(header.Get(jetstream.MsgIDHeader), header.Get(copyHeader)), Body: msg.Data()}
	d.ReceivedAt, err = time.Parse(time.RFC3339Nano, header.Get(receivedHeader))
	if err != nil {
		return d, errors.New("the message has no time of receipt")
	}
	if header.Get(encodingHeader) == "gzip" {
		r, err := gzip.NewReader(bytes.NewReader(msg.Data()))
		if err != nil {
			return d, errors.New("the message is not gzip")
		}
		body, err := io.ReadAll(io.LimitReader(r, bodyLimit+1))
		if err != nil || len(body) > bodyLimit {
			return d, errors.New("the message is not gzip, or too large")
		}
		d.Body = body
	}
	return d, nil
}

// close flushes the buffered messages and closes the connection.
func (b *broker) close() {
	b.conn.FlushTimeout(2 * time.Second)
	b.conn.Close()
}
