package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Headers of a published delivery, in addition to [jetstream.MsgIDHeader], which has its ID.
const (
	receivedHeader = "Received-At"      // time of receipt in RFC 3339 with nanoseconds, which orders versions
	encodingHeader = "Content-Encoding" // gzip if the raw body is larger than a message can be
)

// partitions is the number of partitions of the users. A worker can apply one of them: see
// -partition.
const partitions = 16

// bodyLimit is the size of the largest body that is received and unpacked.
const bodyLimit = 16 << 20

// broker holds the stream of deliveries that were received and are not applied yet.
type broker struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.StreamConfig
	metrics *metrics
	log     *slog.Logger
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
	return &broker{conn: conn, js: js, metrics: m, log: log, stream: jetstream.StreamConfig{
		Name:     s.stream,
		Subjects: []string{s.stream + ".>"},
		// Acknowledged messages are removed, and no others. If the disk is full, new ones are
		// rejected.
		Retention:  jetstream.WorkQueuePolicy,
		Discard:    jetstream.DiscardNew,
		Storage:    jetstream.FileStorage,
		Replicas:   s.replicas,
		Duplicates: s.dedup,
	}}, nil
}

// prepare creates the stream. It does not change an existing one, which may have more replicas or a
// limit.
func (b *broker) prepare(ctx context.Context) error {
	_, err := b.js.Stream(ctx, b.stream.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = b.js.CreateStream(ctx, b.stream)
	}
	return err
}

// check returns nil if deliveries can be published.
func (b *broker) check(ctx context.Context) error {
	_, err := b.js.Stream(ctx, b.stream.Name)
	return err
}

// consumer creates the consumer that the workers share.
func (b *broker) consumer(ctx context.Context, s *settings) (jetstream.Consumer, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	config := jetstream.ConsumerConfig{
		Durable:       "workers",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       s.ackWait,
		MaxDeliver:    -1, // retry for as long as the database is unavailable
		MaxAckPending: 100 * s.batch,
	}
	if s.partition >= 0 {
		config.Durable = fmt.Sprintf("workers-%02d", s.partition)
		config.FilterSubject = fmt.Sprintf("%s.%02d.>", s.stream, s.partition)
	}
	return b.js.CreateOrUpdateConsumer(ctx, s.stream, config)
}

// publish returns nil when the broker has stored the delivery, by this call or an earlier one.
func (b *broker) publish(ctx context.Context, d webhooks.RawDelivery) error {
	// The service waits for the response.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
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
	ack, err := b.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(b.stream.Name), jetstream.WithRetryAttempts(0))
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		b.log.Error("a delivery is larger than max_payload of the broker: increase it", "delivery_id", d.ID, "bytes", len(msg.Data))
		return err
	case err != nil:
		return err
	case ack.Duplicate:
		b.metrics.publishedAgain.Inc()
	default:
		b.metrics.published.Inc()
	}
	return nil
}

// subject returns the subject of a delivery: the stream, the user's partition and the event type.
func subject(stream string, body []byte) string {
	e, err := webhooks.ParseEnvelope(body)
	if err != nil {
		return stream + ".00.unreadable"
	}
	h := fnv.New32a()
	h.Write(e.UserID[:])
	kind := string(e.Type)
	if !isSubject(kind) {
		kind = "unknown"
	}
	return fmt.Sprintf("%s.%02d.%s", stream, h.Sum32()%partitions, kind)
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
	d = webhooks.RawDelivery{ID: msg.Headers().Get(jetstream.MsgIDHeader), Body: msg.Data()}
	d.ReceivedAt, err = time.Parse(time.RFC3339Nano, msg.Headers().Get(receivedHeader))
	if err != nil {
		return d, errors.New("the message has no time of receipt")
	}
	if msg.Headers().Get(encodingHeader) == "gzip" {
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
