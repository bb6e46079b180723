// Latest: last write wins in memory.

package webhooks

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// Delivery is an event and the ID of its delivery.
type Delivery struct {
	Event *Event // the event, as [Parse] returns it
	// ID is the same in each attempt to deliver the event; empty if it is unknown.
	ID string
}

// Latest keeps the latest version of every summary and every sample in memory: last write wins. The
// zero Latest is empty and ready to use. It is safe for concurrent use.
//
// The version of an event is the time at which it was received ([Event.ReceivedAt]), as in the
// interface specification. The order of the calls does not matter: applying the same deliveries, in
// any order, with repetitions and from any number of goroutines, gives the same content. Within an
// event, the later of two samples with the same key wins. Of equal versions, the one with the
// greater JSON wins, compared as strings. Whether an event says created or updated makes no
// difference.
//
// This rule has a hazard. The sender repeats deliveries that were not acknowledged, up to 28 hours
// later and in any order. If an older version is delivered again after a newer one, it was received
// last and wins. To avoid this, set Version to a function whose result increases with each version:
// for summaries, that of [Event.UpdatedAt]. Or store delivery IDs, to apply each delivery once.
// Also read the data from the API again where correctness matters: after an outage, and before a
// decision that depends on a single value. See [ReadSummaries].
//
// A [Series] takes about 200 bytes, and a sample 35 to 70. A sample that is not a number, does not
// fit a float64, or has fields that [Sample] lacks also takes the size of its JSON. Further fields
// that are null do not count, and may not be stored.
type Latest struct {
	// Version, if not nil, returns the version of a delivery, in place of the time of receipt. The
	// greater version wins. It must always return the same value for the same delivery, and must
	// not be changed after the first call of Apply.
	Version func(Delivery) int64

	shards [64]shard
}

// shard holds the data of those users whose IDs have some bits in common, so that calls for
// different users seldom wait for each other.
type shard struct {
	mu        sync.RWMutex
	summaries map[SummaryKey]summary
	series    map[Series]*series
	shapes    []newest.Shape          // what samples have in common, stored once
	shapeOf   map[newest.Shape]uint32 // index in shapes
}

type summary struct {
	version  int64
	document string // JSON
}

// Changes counts the effects of applying an event. Package sqlstore counts orders too.
type Changes struct {
	Added   int // summaries or samples that were not stored before
	Updated int // stored ones whose content changed
	Same    int // received ones with the stored content, not older than the stored version
	Older   int // received ones that do not win against the stored version
	// Repeated counts samples that a later one of the batch with the same key replaced. They are
	// not stored, even if their content differs, like that of two doses of insulin at the same
	// time.
	Repeated int
	Keyless  int // samples without a key, which are not stored; see [ErrUnreadable]
	// Samples are the indexes in [Samples.Data] of the samples that were added or updated, in
	// ascending order; nil if there are none.
	Samples []int
}

func (c *Changes) count(outcome newest.Outcome) {
	switch outcome {
	case newest.Added:
		c.Added++
	case newest.Updated:
		c.Updated++
	case newest.Same:
		c.Same++
	case newest.Older:
		c.Older++
	}
}

const errNoEvent = permanentError("webhooks: the delivery has no event")

// Apply stores the summary or the samples of an event, except those of which a newer version is
// stored. It ignores events that have neither.
//
// Every error matches [ErrPermanent]: return it unchanged from the function of a [Handler], and the
// handler passes the delivery to the dead-letter function. [ErrUnreadable] reports that part of the
// event cannot be decoded (see [Event.Err]). The rest was applied and is counted in the changes.
// After any other error, such as [ErrNoUser] or [ErrNoID], no part of the event is stored.
func (l *Latest) Apply(d Delivery) (Changes, error) {
	e := d.Event
	switch {
	case l == nil:
		return Changes{}, errors.New("webhooks: Apply needs a Latest that is not nil")
	case e == nil:
		return Changes{}, errNoEvent
	}
	switch data := e.Data.(type) {
	case *Samples:
		if e.UserID == uuid.Nil {
			return Changes{}, ErrNoUser
		}
		changes, err := l.applySamples(e, data, l.version(d))
		if err == nil && changes.Keyless > 0 {
			err = ErrUnreadable
		}
		return changes, cmp.Or(err, malformed(data))
	case wearableSummary:
		keys, err := e.Keys()
		if err != nil {
			return Changes{}, err
		}
		document, err := data.MarshalJSON()
		if err != nil {
			return Changes{}, fmt.Errorf("%w: %w", ErrPermanent, err)
		}
		return l.applySummary(keys.Summary, summary{l.version(d), string(document)}), malformed(data)
	default: // nothing that has versions
		return Changes{}, e.Err()
	}
}

func (l *Latest) version(d Delivery) int64 {
	if l.Version != nil {
		return l.Version(d)
	}
	return newest.ClampUnixNano(d.Event.ReceivedAt)
}

func (l *Latest) shard(user uuid.UUID) *shard {
	return &l.shards[(user[15]^user[7]^user[3])%byte(len(l.shards))]
}

func (l *Latest) applySummary(key SummaryKey, received summary) (c Changes) {
	sh := l.shard(key.UserID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	outcome := newest.Added
	if stored, found := sh.summaries[key]; found {
		same := received.document == stored.document
		outcome = newest.Compare(stored.version, received.version, same, func() (string, string) {
			return stored.document, received.document
		})
	} else {
		key.Resource = shared(key.Resource)
	}
	c.count(outcome)
	if outcome == newest.Older {
		return c
	}
	if sh.summaries == nil {
		sh.summaries = map[SummaryKey]summary{}
	}
	sh.summaries[key] = received
	return c
}

// Summary returns the latest version of a summary, such as a [*Sleep], which the caller owns. ok is
// false if there is none.
func (l *Latest) Summary(key SummaryKey) (data Payload, ok bool) {
	sh := l.shard(key.UserID)
	sh.mu.RLock()
	s, ok := sh.summaries[key]
	sh.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return s.payload(key.Resource), true
}

func (s summary) payload(resource string) Payload {
	data, _ := DecodeSummary(resource, []byte(s.document)) // MarshalJSON wrote it
	return data
}

// Sample returns the latest version of a sample; ok is false if there is none.
func (l *Latest) Sample(key SampleKey) (sample Sample, ok bool) {
	entries, shapes := l.shard(key.UserID).between(key.Series(), key.UnixNano, key.UnixNano+1)
	if len(entries) == 0 {
		return Sample{}, false
	}
	return entries[0].sample(shapes), true
}

// Range returns the latest versions of the samples of a series whose time is at or after from and
// before to, ordered by time. A zero time is no limit.
func (l *Latest) Range(of Series, from, to time.Time) []Sample {
	entries, shapes := l.shard(of.UserID).between(of, newest.ClampUnixNano(from), newest.EndUnixNano(to))
	if len(entries) == 0 {
		return nil
	}
	found := make([]Sample, len(entries))
	for i := range entries {
		found[i] = entries[i].sample(shapes)
	}
	return found
}

// Summaries iterates over the latest versions of all summaries, in no particular order. Changes
// made during the iteration may or may not be included.
func (l *Latest) Summaries() iter.Seq2[SummaryKey, Payload] {
	return func(yield func(SummaryKey, Payload) bool) {
		for n := range l.shards {
			sh := &l.shards[n]
			sh.mu.RLock()
			all := maps.Clone(sh.summaries)
			sh.mu.RUnlock()
			for key, s := range all {
				if !yield(key, s.payload(key.Resource)) {
					return
				}
			}
		}
	}
}

// Samples iterates over the latest versions of all samples, one series after the other, each
// ordered by time. The order of the series is not specified. Each series is a consistent snapshot.
func (l *Latest) Samples() iter.Seq2[SampleKey, Sample] {
	return func(yield func(SampleKey, Sample) bool) {
		for n := range l.shards {
			sh := &l.shards[n]
			sh.mu.RLock()
			all := slices.Collect(maps.Keys(sh.series))
			sh.mu.RUnlock()
			for _, of := range all {
				entries, shapes := sh.between(of, math.MinInt64, math.MaxInt64)
				for i := range entries {
					if !yield(of.key(entries[i].at), entries[i].sample(shapes)) {
						return
					}
				}
			}
		}
	}
}

// Snapshot returns a consistent copy of l, which later calls of Apply do not change. It blocks
// calls of Apply while it copies.
func (l *Latest) Snapshot() *Latest {
	to := &Latest{Version: l.Version}
	for n := range l.shards {
		l.shards[n].mu.RLock()
		defer l.shards[n].mu.RUnlock()
	}
	for n := range l.shards {
		from, sh := &l.shards[n], &to.shards[n]
		sh.summaries, sh.series = maps.Clone(from.summaries), maps.Clone(from.series)
		for of, se := range sh.series {
			sh.series[of] = se.clone()
		}
		sh.shapes, sh.shapeOf = slices.Clone(from.shapes), maps.Clone(from.shapeOf)
	}
	return to
}
