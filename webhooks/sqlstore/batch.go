// The summaries and samples of deliveries that are applied together.

package sqlstore

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// batch holds the summaries, samples and orders of deliveries, and the stored rows with the same
// keys.
type batch struct {
	applied []Applied   // what is known without the database: errors, and samples repeated or without a key
	of      []uuid.UUID // the user of each delivery
	users   []userKey   // in ascending order
	series  []webhooks.Series

	samples      []received[content]
	sampleSlots  []sampleSlot // one for each key
	summaries    []received[string]
	summarySlots []summarySlot
	stored       []storedSeries // of series, after Store.readWearables

	orders      []*receivedOrder
	orderSlots  []*orderSlot    // one for each order of a user, by both
	transitions []Transition    // new entries in the timelines of orders, after Store.applyOrders
	results     []resultsChange // stored results that have changed
	silent      bool            // queues no reactions: the data is not new
	isRead      bool            // from the API, and not received: deleted users stay deleted
	deleted     []userKey       // deleted users that it has data of, after Store.apply has returned errIdle
	queued      bool            // Store.queue has queued some
}

// received is a version of a sample or a summary in a delivery.
type received[C comparable] struct {
	content  C
	version  int64
	slot     int32
	delivery int32
	index    int32 // of a sample in its delivery
}

// slot holds the stored version of a key, and the version to write in its place.
type slot[C comparable] struct {
	series  int32 // index in batch.series
	found   bool  // there is a version
	dirty   bool  // it is to be written
	changed bool  // it was added or updated
	version int64
	content C
}

type sampleSlot struct {
	slot[content]
	at     int64
	last   int32 // index of the last one in batch.samples
	stored bool  // there is a version in the database
	shape  int64 // of the version to write
}

type summarySlot struct {
	slot[string] // JSON
	id           uuid.UUID
}

// put stores a received version if it is newer. json returns the JSON of a content.
func (s *slot[C]) put(r *received[C], json func(*C) string) newest.Outcome {
	outcome := newest.Added
	if s.found {
		outcome = newest.Compare(s.version, r.version, s.content == r.content, func() (string, string) {
			return json(&s.content), json(&r.content)
		})
	}
	if outcome == newest.Older {
		return outcome
	}
	s.changed = s.changed || outcome != newest.Same
	s.dirty = s.dirty || outcome != newest.Same || s.version != r.version
	s.found, s.version, s.content = true, r.version, r.content
	return outcome
}

// decide applies the received versions to the slots, in the order of the deliveries.
func (b *batch) decide() []Applied {
	applied := slices.Clone(b.applied)
	for i := range b.samples {
		r := &b.samples[i]
		slot, c := &b.sampleSlots[r.slot], &applied[r.delivery].Changes
		if slot.found && slot.content.document != "" && r.content.document == "" && r.content.json(slot.at) == slot.content.document {
			r.content = slot.content // its series has too many shapes: see numberShapes
		}
		outcome := slot.put(r, func(c *content) string { return c.json(slot.at) })
		count(c, outcome)
		if outcome == newest.Added || outcome == newest.Updated {
			c.Samples = append(c.Samples, int(r.index))
		}
	}
	for i := range b.summaries {
		r := &b.summaries[i]
		outcome := b.summarySlots[r.slot].put(r, func(document *string) string { return *document })
		count(&applied[r.delivery].Changes, outcome)
	}
	for i := range applied {
		slices.Sort(applied[i].Changes.Samples)
	}
	return applied
}

func count(c *webhooks.Changes, outcome newest.Outcome) {
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

// reset empties the slots.
func (b *batch) reset() {
	for i := range b.sampleSlots {
		slot := &b.sampleSlots[i]
		slot.found, slot.dirty, slot.changed, slot.stored = false, false, false, false
	}
	for i := range b.summarySlots {
		slot := &b.summarySlots[i]
		slot.found, slot.dirty, slot.changed = false, false, false
	}
}

// batchReader builds a batch from deliveries.
type batchReader struct {
	*batch
	version      func(webhooks.Delivery) int64
	seriesIndex  indexes[webhooks.Series]
	sampleIndex  indexes[sampleKey]
	summaryIndex indexes[summaryKey]
	orderIndex   indexes[orderKey]
}

type sampleKey struct {
	at     int64
	series int32
}

type summaryKey struct {
	id     uuid.UUID
	series int32
}

// indexes numbers keys in the order in which they occur.
type indexes[K comparable] map[K]int32

func (x indexes[K]) of(key K) (n int32, isNew bool) {
	n, ok := x[key]
	if !ok {
		n = int32(len(x))
		x[key] = n
	}
	return n, !ok
}

// newBatch reads deliveries.
func newBatch(deliveries []webhooks.Delivery, version func(webhooks.Delivery) int64) *batch {
	b := &batch{applied: make([]Applied, len(deliveries)), of: make([]uuid.UUID, len(deliveries))}
	r := batchReader{b, version, indexes[webhooks.Series]{}, indexes[sampleKey]{}, indexes[summaryKey]{}, indexes[orderKey]{}}
	for i, d := range deliveries {
		b.applied[i].Err = r.add(int32(i), d)
	}
	for _, of := range b.series {
		b.users = append(b.users, keyOf(of.UserID))
	}
	slices.SortFunc(b.users, compareUsers)
	b.users = slices.Compact(b.users)
	slices.SortFunc(b.orderSlots, compareSlots)
	return b
}

func (r *batchReader) add(delivery int32, d webhooks.Delivery) error {
	if d.Event == nil {
		return errNoEvent
	}
	r.of[delivery] = d.Event.UserID
	keys, err := d.Event.Keys()
	if err != nil {
		return err
	}
	if samples, ok := d.Event.Data.(*webhooks.Samples); ok {
		err = r.addSamples(delivery, d, keys.Samples, samples.Data)
	} else if keys.Summary != (webhooks.SummaryKey{}) {
		err = r.addSummary(delivery, d, keys.Summary)
	} else {
		err = r.addOrder(delivery, d)
	}
	return cmp.Or(err, d.Event.Err())
}

func (r *batchReader) addSamples(delivery int32, d webhooks.Delivery, keys []webhooks.SampleKey, samples []webhooks.Sample) (err error) {
	contents := make([]content, len(samples))
	for i := range samples {
		if keys[i] == (webhooks.SampleKey{}) {
			continue
		}
		if contents[i], err = contentOf(&samples[i], keys[i].UnixNano); err != nil {
			return err
		}
	}
	version, changes := r.version(d), &r.applied[delivery].Changes
	var series webhooks.Series // the last one
	number := int32(-1)
	for i, key := range keys {
		if key == (webhooks.SampleKey{}) {
			changes.Keyless++
			continue
		}
		if of := key.Series(); number < 0 || of != series {
			series, number = of, r.seriesOf(of)
		}
		n, isNew := r.sampleIndex.of(sampleKey{key.UnixNano, number})
		if isNew {
			r.sampleSlots = append(r.sampleSlots, sampleSlot{at: key.UnixNano, slot: slot[content]{series: number}})
		}
		sample := received[content]{contents[i], version, n, delivery, int32(i)}
		if slot := &r.sampleSlots[n]; !isNew && r.samples[slot.last].delivery == delivery {
			changes.Repeated++
			r.samples[slot.last] = sample
		} else {
			slot.last = int32(len(r.samples))
			r.samples = append(r.samples, sample)
		}
	}
	return nil
}

func (r *batchReader) addSummary(delivery int32, d webhooks.Delivery, key webhooks.SummaryKey) error {
	document, err := d.Event.Data.MarshalJSON()
	if err != nil {
		return errUnencodable
	}
	series := r.seriesOf(webhooks.Series{UserID: key.UserID, Resource: key.Resource})
	n, isNew := r.summaryIndex.of(summaryKey{key.ID, series})
	if isNew {
		r.summarySlots = append(r.summarySlots, summarySlot{id: key.ID, slot: slot[string]{series: series}})
	}
	r.summaries = append(r.summaries, received[string]{string(document), r.version(d), n, delivery, 0})
	return nil
}

func (r *batchReader) seriesOf(series webhooks.Series) int32 {
	n, isNew := r.seriesIndex.of(series)
	if isNew {
		r.series = append(r.series, series)
	}
	return n
}
