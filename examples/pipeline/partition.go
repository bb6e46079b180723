package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Every user belongs to one of 256 slots: see sqlstore.Slot. The slot is part of the subject of a
// delivery, and never changes. Which workers apply a slot does: for each partition, a range of
// slots, the stream has one consumer, and a message has exactly one consumer. -role repartition
// changes the consumers.

// partition is a range of slots, both ends included. Its length is a power of two and it starts at
// a multiple of its length, so that one filter selects its subjects. Of two partitions, one
// contains the other or they have no slot in common.
type partition struct{ first, last int }

var allSlots = partition{0, sqlstore.Slots - 1}

func (p partition) String() string {
	if p.first == p.last {
		return strconv.Itoa(p.first)
	}
	return fmt.Sprintf("%d-%d", p.first, p.last)
}

func (p partition) has(slot int) bool { return p.first <= slot && slot <= p.last }

// consumer returns the name of the consumer of the partition.
func (p partition) consumer() string { return fmt.Sprintf("workers-%03d-%03d", p.first, p.last) }

// filter returns the subjects of the partition: those that start with the bits that its slots have
// in common.
func (p partition) filter(stream string) string {
	common := slotBits - bits.Len(uint(p.last-p.first))
	return stream + bitTokens(p.first, common) + ".>"
}

// slotBits is the number of bits of a slot.
const slotBits = 8

// bitTokens returns the first n bits of a slot as tokens of a subject: .1.0.0 for the first three
// of 128.
func bitTokens(slot, n int) string {
	var tokens strings.Builder
	for i := range n {
		tokens.WriteByte('.')
		tokens.WriteByte('0' + byte(slot>>(slotBits-1-i)&1))
	}
	return tokens.String()
}

// subject returns the subject of a delivery: the stream, the bits of the user's slot and the event
// type.
func subject(stream string, body []byte) string {
	kind, user := "unreadable", uuid.Nil
	if e, err := webhooks.ParseEnvelope(body); err == nil {
		kind, user = string(e.Type), e.UserID
	}
	if !isSubject(kind) {
		kind = "unknown"
	}
	return stream + bitTokens(sqlstore.Slot(user), slotBits) + "." + kind
}

var errPartition = fmt.Errorf("-partition has ranges such as 0-127: of 1, 2, 4, … %d slots from 0 to %d, "+
	"from a multiple of their length on; several are separated by commas", sqlstore.Slots, sqlstore.Slots-1)

// parsePartitions reads a list such as 0-127,128-255. No two may have a slot in common.
func parsePartitions(list string) (all []partition, err error) {
	for text := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		n := last - first + 1
		if err1 != nil || err2 != nil || first < 0 || n < 1 || last >= sqlstore.Slots || n&(n-1) != 0 || first%n != 0 {
			return nil, errPartition
		}
		all = append(all, partition{first, last})
	}
	slices.SortFunc(all, func(a, b partition) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(all); i++ {
		if all[i].first <= all[i-1].last {
			return nil, fmt.Errorf("-partition has slot %d twice", all[i].first)
		}
	}
	return all, nil
}

// complete returns an error if a slot is in none of the partitions, which are in order.
func complete(all []partition) error {
	next := 0
	for _, p := range append(slices.Clone(all), partition{sqlstore.Slots, sqlstore.Slots}) {
		if p.first > next {
			return fmt.Errorf("-partition lacks %v: nobody would apply the events of these slots", partition{next, p.first - 1})
		}
		next = p.last + 1
	}
	return nil
}

// consumerConfig returns the consumer that the workers of a partition share.
func (b *broker) consumerConfig(s *settings, p partition) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       p.consumer(),
		FilterSubject: p.filter(b.stream.Name),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       s.ackWait,
		MaxDeliver:    -1, // retry for as long as the database is unavailable
		MaxAckPending: 100 * s.batch,
	}
}

// consumer returns the consumer of the worker's partition, and creates it if that is possible. It
// returns an error while the stream is partitioned otherwise. The worker is not ready then: see
// partitioned.
func (b *broker) consumer(ctx context.Context, s *settings) (jetstream.Consumer, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	consumer, err := b.js.CreateOrUpdateConsumer(ctx, b.stream.Name, b.consumerConfig(s, s.partitions[0]))
	var waiting error
	if err != nil {
		if there, listErr := b.partitions(ctx); listErr == nil {
			waiting = overlap(s.partitions[0], there)
		}
	}
	b.waiting.Store(&waiting)
	return consumer, cmp.Or(waiting, err)
}

// partitioned returns an error that says so if this worker waits because the consumers of the
// stream are those of other partitions.
func (b *broker) partitioned() error {
	if waiting := b.waiting.Load(); waiting != nil {
		return *waiting
	}
	return nil
}

// overlap returns an error if p has slots in common with another partition.
func overlap(p partition, there []partition) error {
	for _, other := range there {
		if other != p && other.first <= p.last && p.first <= other.last {
			var names []string
			for _, of := range there {
				names = append(names, of.String())
			}
			return fmt.Errorf("the stream is not partitioned for -partition %v, but for %s: see -role repartition", p, strings.Join(names, ","))
		}
	}
	return nil
}

// partitions returns the partitions that the stream has consumers of.
func (b *broker) partitions(ctx context.Context) (all []partition, err error) {
	stream, err := b.find(ctx)
	if err != nil {
		return nil, err
	}
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		var p partition
		if n, err := fmt.Sscanf(name, "workers-%d-%d", &p.first, &p.last); n == 2 && err == nil && p.consumer() == name {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b partition) int { return cmp.Compare(a.first, b.first) })
	return all, names.Err()
}

// repartition makes the consumers of the stream those of s.partitions. It removes the others: their
// messages stay in the stream, and those in flight are delivered again by the new consumers.
// Workers of a removed partition may create its consumer again before the new ones are there, so it
// repeats until nothing is left to do.
func (b *broker) repartition(ctx context.Context, s *settings) error {
	for ; ; sleep(ctx, 10*time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return errors.New("-role repartition was not completed: run it again")
		}
		there, err := b.partitions(ctx) // fails without a stream: its name may be wrong
		if err != nil {
			return err
		}
		if slices.Equal(there, s.partitions) {
			return nil
		}
		for _, p := range there {
			if slices.Contains(s.partitions, p) {
				continue
			}
			if err := b.js.DeleteConsumer(ctx, b.stream.Name, p.consumer()); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
			b.log.Info("the partition was removed", "partition", p)
		}
		for _, p := range s.partitions {
			if slices.Contains(there, p) {
				continue
			}
			_, err := b.js.CreateOrUpdateConsumer(ctx, b.stream.Name, b.consumerConfig(s, p))
			if api := (*jetstream.APIError)(nil); errors.As(err, &api) && isOverlap(api) {
				b.log.Warn("a worker of a removed partition is in the way: trying again", "partition", p)
			} else if err != nil {
				return err
			} else {
				b.log.Info("the partition was added", "partition", p)
			}
		}
	}
}

// isOverlap reports whether the broker rejected a consumer because another one has some of its
// messages.
func isOverlap(err *jetstream.APIError) bool {
	const multipleNonFiltered, notUnique = 10099, 10100
	return err.ErrorCode == multipleNonFiltered || err.ErrorCode == notUnique
}
