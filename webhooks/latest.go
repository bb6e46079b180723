package webhooks

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Delivery is an event as it was delivered.
type Delivery struct {
	Event *Event // what was delivered, as [Parse] read it
	// ID is the sender's id of the message, the same each time the message is delivered; empty if it is not known.
	ID string
}

// Latest keeps the newest version of every summary and every sample in memory: last write wins. The zero Latest is empty and
// ready. It is safe for any number of goroutines.
//
// Which version is the newest is decided by when it was received ([Event.ReceivedAt]), as the interface specification has it, and
// not by the order of the calls: whoever applies the same deliveries, in any order, with repetitions and on any number of
// goroutines, ends with the same content. Within a batch the later element wins; of two deliveries with the same time, the one
// whose content is the greater text. Events of action created and updated are treated alike.
//
// That rule has a hazard. Messages are delivered again when the receiver did not acknowledge them, up to a day later and in any
// order. If an older version is delivered again after a newer one came, it was received last, and wins. A program that cannot
// bear this sets Version to something that grows with the version itself, such as a summary's updated_at, or remembers the ids
// of deliveries so that a message counts once; and it reads the data anew from the API where it must be sure: after an outage,
// and before a decision that depends on a single value.
//
// A stored sample takes some 35 to 45 bytes, if it is a number with or without an interval and no members of its own; any other
// takes the bytes of its JSON text too.
type Latest struct {
	// Version, if it is not nil, says which version of its content a delivery is, in place of the time of receipt: the greater
	// one wins. It must give the same answer whenever it is asked about a message, and must not be changed once Apply was called.
	Version func(Delivery) int64

	shards [64]shard
	shapes shapes
}

// shard is the users of whom some bits of the id are the same.
type shard struct {
	mu        sync.RWMutex
	series    map[Series]*series
	summaries map[SummaryKey]summary
	_         [16]byte // so that two shards are seldom in one line of the processor's cache
}

type summary struct {
	version int64
	text    string
}

// Changes says what an event changed.
type Changes struct {
	Added    int // summaries or samples that were not there
	Updated  int // those that were there with other content
	Same     int // those that were there with the same content
	Older    int // those of which a newer version was there
	Repeated int // samples of which a later one in the batch has the same key
	Keyless  int // samples without a key, which are not kept: the event is [ErrUnreadable]
	// Samples are the numbers of the samples in [Samples.Data] that were added or updated, in ascending order;
	// nil if there are none.
	Samples []int
}

const errNoEvent = permanentError("webhooks: the delivery has no event")

// Apply keeps what an event carries, where it is the newest version. It changes nothing for an event that carries neither a
// summary nor samples.
//
// Every error matches [ErrPermanent]: return it from the function of a [Handler] as it is, and the handler gives the delivery to the
// dead-letter function. [ErrUnreadable] says that some of the event cannot be read (see [Event.Err]); the rest was applied, and the
// changes tell what that did. With any other error, such as [ErrNoUser] and [ErrNoID], nothing of the event is kept.
func (l *Latest) Apply(d Delivery) (Changes, error) {
	e := d.Event
	if e == nil {
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
	case *Activity, *Summary:
		keys, err := e.Keys()
		if err != nil {
			return Changes{}, err
		}
		text, err := data.MarshalJSON()
		if err != nil {
			return Changes{}, fmt.Errorf("%w: %w", ErrPermanent, err)
		}
		return l.applySummary(keys.Summary, summary{l.version(d), string(text)}), malformed(data)
	default: // nothing of which there are versions
		return Changes{}, e.Err()
	}
}

func (l *Latest) version(d Delivery) int64 {
	if l.Version != nil {
		return l.Version(d)
	}
	if n, ok := nanos(d.Event.ReceivedAt); ok {
		return n
	}
	return math.MinInt64
}

func (l *Latest) shard(user uuid.UUID) *shard {
	return &l.shards[(user[15]^user[7]^user[3])%byte(len(l.shards))]
}

func (l *Latest) applySummary(key SummaryKey, now summary) (c Changes) {
	sh := l.shard(key.UserID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	was, found := sh.summaries[key]
	switch {
	case !found:
		c.Added = 1
		key.Resource = shared(key.Resource)
	case now.version < was.version, now.version == was.version && now.text < was.text:
		c.Older = 1
		return c
	case now.text == was.text:
		c.Same = 1
	default:
		c.Updated = 1
	}
	if sh.summaries == nil {
		sh.summaries = map[SummaryKey]summary{}
	}
	sh.summaries[key] = now
	return c
}

// shared returns s as a string that all who store it share.
func shared(s string) string { return unique.Make(s).Value() }

// record is a stored sample.
type record struct {
	at      int64 // nanoseconds, of the key
	version int64
	value   float64
	shape   uint32
	extra   uint32 // seconds of an interval, or the number of an odd sample in its series
}

// shape is what many samples have in common.
type shape struct {
	form      form
	hasValue  bool
	hasOffset bool
	offset    int32
	east      int32 // of the timestamp as it was written, in seconds
	kind      string
	unit      string
}

type form uint8

const (
	point    form = iota // a timestamp and nothing else
	interval             // start is the timestamp, end some whole seconds later
	odd                  // anything else: kept as text
)

// shapes gives numbers to shapes. Whoever knows a number finds its shape without a lock.
type shapes struct {
	mu      sync.RWMutex
	numbers map[shape]uint32
	list    atomic.Pointer[[]shape]
}

func (s *shapes) number(of shape) uint32 {
	s.mu.RLock()
	n, ok := s.numbers[of]
	s.mu.RUnlock()
	if ok {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.numbers[of]; ok {
		return n
	}
	of.kind, of.unit = shared(of.kind), shared(of.unit)
	if s.numbers == nil {
		s.numbers = map[shape]uint32{}
	}
	all := s.all()
	n = uint32(len(all))
	s.numbers[of] = n
	all = append(all, of)
	s.list.Store(&all)
	return n
}

func (s *shapes) all() []shape {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// shapeOf returns the shape of a sample, and the seconds of an interval.
func shapeOf(s *Sample) (shape, uint32) {
	_, east := s.Timestamp.Zone()
	sh := shape{
		hasValue: s.hasValue(), hasOffset: s.hasOffset(), offset: s.TimezoneOffset,
		east: int32(east), kind: s.Type, unit: s.Unit,
	}
	if s.Extra || s.Text != "" || s.Systolic != 0 || s.Diastolic != 0 || s.Timestamp.IsZero() {
		return shape{form: odd}, 0
	}
	if s.Start.IsZero() && s.End.IsZero() {
		return sh, 0
	}
	_, eastEnd := s.End.Zone()
	lasts := s.End.Sub(s.Start)
	if !sameTime(s.Start, s.Timestamp) || eastEnd != east || lasts < 0 || lasts%time.Second != 0 || lasts/time.Second > math.MaxUint32 {
		return shape{form: odd}, 0
	}
	sh.form = interval
	return sh, uint32(lasts / time.Second)
}

// entry is a sample on its way into a series.
type entry struct {
	record
	text   string // of an odd sample
	series uint32 // which one, of those of the batch
	index  int32  // in the batch
}

// work is what applying a batch needs for a moment.
type work struct {
	entries []entry
	kinds   []string // source types: one series each
}

var works = sync.Pool{New: func() any { return new(work) }}

func (l *Latest) applySamples(e *Event, batch *Samples, version int64) (c Changes, err error) {
	base := e.series(batch)
	w := works.Get().(*work)
	defer func() {
		clear(w.entries)
		clear(w.kinds)
		if cap(w.entries) <= 1<<12 {
			works.Put(w)
		}
	}()
	w.entries, w.kinds = w.entries[:0], w.kinds[:0]

	var recent [4]struct { // the shapes seen last
		shape
		number uint32
		known  bool
	}
	ordered := true
	for i := range batch.Data {
		s := &batch.Data[i]
		at, ok := s.instant()
		if !ok {
			c.Keyless++
			continue
		}
		sh, extra := shapeOf(s)
		r := 0
		for r < len(recent) && (!recent[r].known || recent[r].shape != sh) {
			r++
		}
		if r == len(recent) {
			r = i % len(recent)
			recent[r].shape, recent[r].number, recent[r].known = sh, l.shapes.number(sh), true
		}
		kind := typeIn(base, s)
		n := 0
		for n < len(w.kinds) && w.kinds[n] != kind {
			n++
		}
		if n == len(w.kinds) {
			w.kinds = append(w.kinds, kind)
		}
		now := entry{record{at, version, s.Value, recent[r].number, extra}, "", uint32(n), int32(i)}
		if sh.form == odd {
			text, err := s.MarshalJSON()
			if err != nil {
				return Changes{}, fmt.Errorf("%w: %w", ErrPermanent, err)
			}
			now.text, now.value = string(text), 0
		}
		if k := len(w.entries); k > 0 {
			was := &w.entries[k-1]
			ordered = ordered && (was.series < now.series || was.series == now.series && was.at < now.at)
		}
		w.entries = append(w.entries, now)
	}
	entries := w.entries
	if !ordered {
		slices.SortFunc(entries, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.series, b.series), cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
		})
		kept := entries[:0]
		for i := range entries {
			if i+1 < len(entries) && entries[i].series == entries[i+1].series && entries[i].at == entries[i+1].at {
				c.Repeated++
				continue
			}
			kept = append(kept, entries[i])
		}
		entries = kept
	}
	if len(entries) == 0 {
		return c, nil
	}

	c.Samples = make([]int, 0, len(entries))
	sh := l.shard(base.UserID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].series == entries[0].series {
			n++
		}
		key := base
		key.SourceType = w.kinds[entries[0].series]
		sh.find(key).put(l, entries[:n], &c)
		entries = entries[n:]
	}
	switch {
	case len(c.Samples) == 0:
		c.Samples = nil
	case !ordered:
		slices.Sort(c.Samples)
	}
	return c, nil
}

// find returns the series, which it makes if there is none.
func (sh *shard) find(key Series) *series {
	if se := sh.series[key]; se != nil {
		return se
	}
	if sh.series == nil {
		sh.series = map[Series]*series{}
	}
	se := &series{}
	key.Resource, key.Provider, key.SourceType = shared(key.Resource), shared(key.Provider), shared(key.SourceType)
	sh.series[key] = se
	return se
}

// series is the samples of a series in chunks: every chunk sorted by time, and before the next one.
type series struct {
	chunks [][]record
	texts  []string // of odd samples
	free   []uint32 // texts that are not in use
}

const chunkSize = 512

// put stores entries, which are sorted by time.
func (se *series) put(l *Latest, entries []entry, c *Changes) {
	ci, i := 0, 0
	for len(entries) > 0 {
		at := entries[0].at
		var found bool
		ci, i, found = se.search(ci, i, at)
		if found {
			se.replace(l, &se.chunks[ci][i], &entries[0], c)
			entries = entries[1:]
			continue
		}
		// All entries that lie between two that are there go in at once.
		n := 1
		if bound, ok := se.next(ci, i); ok {
			for n < len(entries) && entries[n].at < bound {
				n++
			}
		} else {
			n = len(entries)
		}
		c.Added += n
		for k := range entries[:n] {
			c.Samples = append(c.Samples, int(entries[k].index))
		}
		ci, i = se.insert(ci, i, entries[:n])
		entries = entries[n:]
	}
}

// search finds the place of a time at or behind (ci, i).
func (se *series) search(ci, i int, at int64) (int, int, bool) {
	last := len(se.chunks) - 1
	if last < 0 {
		return 0, 0, false
	}
	if c := se.chunks[last]; at > c[len(c)-1].at {
		return last, len(c), false
	}
	if c := se.chunks[ci]; i < len(c) && c[i].at == at { // the one behind the one before
		return ci, i, true
	}
	if c := se.chunks[ci]; at > c[len(c)-1].at {
		rest := se.chunks[ci+1:]
		n, _ := slices.BinarySearchFunc(rest, at, func(c []record, at int64) int { return cmp.Compare(c[len(c)-1].at, at) })
		ci, i = ci+1+n, 0
	}
	c := se.chunks[ci]
	lo, hi := min(i, len(c)), len(c)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); c[mid].at < at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return ci, lo, lo < len(c) && c[lo].at == at
}

// next returns the time of the record at (ci, i), or of the next chunk's first.
func (se *series) next(ci, i int) (int64, bool) {
	switch {
	case ci < len(se.chunks) && i < len(se.chunks[ci]):
		return se.chunks[ci][i].at, true
	case ci+1 < len(se.chunks):
		return se.chunks[ci+1][0].at, true
	}
	return 0, false
}

// insert puts entries before (ci, i) and returns the place behind them.
func (se *series) insert(ci, i int, entries []entry) (int, int) {
	for len(entries) > 0 {
		if len(se.chunks) == 0 {
			se.chunks = append(se.chunks, nil)
		}
		c := se.chunks[ci]
		if len(c) == chunkSize {
			if i == chunkSize && ci == len(se.chunks)-1 {
				se.chunks = append(se.chunks, nil)
				ci, i = ci+1, 0
			} else {
				const half = chunkSize / 2
				se.chunks = slices.Insert(se.chunks, ci+1, append(make([]record, 0, half*3/2), c[half:]...))
				se.chunks[ci] = append(make([]record, 0, half*3/2), c[:half]...)
				if i > half {
					ci, i = ci+1, i-half
				}
			}
			continue
		}
		n := min(len(entries), chunkSize-len(c))
		if len(c)+n > cap(c) {
			c = append(make([]record, 0, min(chunkSize, max(len(c)+n, 2*len(c)))), c...)
		}
		c = c[:len(c)+n]
		copy(c[i+n:], c[i:])
		for k := range entries[:n] {
			c[i+k] = se.stored(&entries[k])
		}
		se.chunks[ci] = c
		entries = entries[n:]
		i += n
	}
	return ci, i
}

// stored returns the record of an entry, whose text it keeps if there is one.
func (se *series) stored(e *entry) record {
	r := e.record
	if e.text == "" {
		return r
	}
	if n := len(se.free); n > 0 {
		r.extra, se.free = se.free[n-1], se.free[:n-1]
	} else {
		r.extra = uint32(len(se.texts))
		se.texts = append(se.texts, "")
	}
	se.texts[r.extra] = e.text
	return r
}

// replace decides between what is stored and what came.
func (se *series) replace(l *Latest, was *record, now *entry, c *Changes) {
	if now.version < was.version {
		c.Older++
		return
	}
	all := l.shapes.all()
	wasOdd := all[was.shape].form == odd
	same := was.shape == now.shape && (wasOdd && se.texts[was.extra] == now.text ||
		!wasOdd && was.extra == now.extra && math.Float64bits(was.value) == math.Float64bits(now.value))
	if same {
		c.Same++
		was.version = now.version
		return
	}
	if now.version == was.version && now.content(all) < se.content(all, was) {
		c.Older++
		return
	}
	if wasOdd {
		se.texts[was.extra] = ""
		se.free = append(se.free, was.extra)
	}
	*was = se.stored(now)
	c.Updated++
	c.Samples = append(c.Samples, int(now.index))
}

// content is the text by which two versions of the same time are ordered.
func (se *series) content(all []shape, r *record) string {
	if all[r.shape].form == odd {
		return se.texts[r.extra]
	}
	return textOf(all, r)
}

func (e *entry) content(all []shape) string {
	if e.text != "" {
		return e.text
	}
	return textOf(all, &e.record)
}

func textOf(all []shape, r *record) string {
	text, _ := sampleOf(all, r).MarshalJSON()
	return string(text)
}

// sampleOf makes a sample of a record that is not odd.
func sampleOf(all []shape, r *record) Sample {
	sh := &all[r.shape]
	t := time.Unix(0, r.at).UTC()
	switch {
	case sh.east == 0:
	case sh.east%60 == 0:
		t = t.In(jsonread.Zone(int(sh.east / 60)))
	default:
		t = t.In(time.FixedZone("", int(sh.east)))
	}
	s := Sample{
		Timestamp: t, Value: r.value, HasValue: sh.hasValue, Type: sh.kind, Unit: sh.unit,
		TimezoneOffset: sh.offset, HasTimezoneOffset: sh.hasOffset,
	}
	if sh.form == interval {
		s.Start, s.End = t, t.Add(time.Duration(r.extra)*time.Second)
	}
	return s
}

// sample makes a sample of a record.
func (se *series) sample(all []shape, r *record) (s Sample) {
	if all[r.shape].form != odd {
		return sampleOf(all, r)
	}
	s.UnmarshalJSON([]byte(se.texts[r.extra])) // it was written by MarshalJSON
	return s
}

// Summary returns the newest version of a summary, an *[Activity] or a *[Summary] of the caller's own.
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
	if resource == DailyActivityUpdated.Resource() {
		a := &Activity{}
		a.UnmarshalJSON([]byte(s.text)) // it was written by MarshalJSON
		return a
	}
	v := &Summary{}
	v.UnmarshalJSON([]byte(s.text))
	return v
}

// Sample returns the newest version of a sample.
func (l *Latest) Sample(key SampleKey) (Sample, bool) {
	at := time.Unix(0, key.UnixNano)
	found := l.Range(key.Series(), at, at.Add(1))
	if len(found) == 0 {
		return Sample{}, false
	}
	return found[0], true
}

// Range returns the newest versions of the samples of a series that were taken at from or later and before to, by time.
func (l *Latest) Range(of Series, from, to time.Time) []Sample {
	var found []Sample
	sh := l.shard(of.UserID)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	se := sh.series[of]
	if se == nil {
		return nil
	}
	all := l.shapes.all()
	ci, i, _ := se.search(0, 0, clamped(from))
	for end := clamped(to); ci < len(se.chunks); ci, i = ci+1, 0 {
		c := se.chunks[ci]
		for ; i < len(c); i++ {
			if c[i].at >= end {
				return found
			}
			found = append(found, se.sample(all, &c[i]))
		}
	}
	return found
}

// clamped returns t in nanoseconds, or those nearest to it.
func clamped(t time.Time) int64 {
	n, ok := nanos(t)
	switch {
	case ok:
		return n
	case t.Unix() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// Summaries goes over the newest versions of all summaries, in no order. What is applied meanwhile may be seen or not.
func (l *Latest) Summaries() iter.Seq2[SummaryKey, Payload] {
	return func(yield func(SummaryKey, Payload) bool) {
		type item struct {
			key SummaryKey
			s   summary
		}
		for n := range l.shards {
			sh := &l.shards[n]
			sh.mu.RLock()
			items := make([]item, 0, len(sh.summaries))
			for k, s := range sh.summaries {
				items = append(items, item{k, s})
			}
			sh.mu.RUnlock()
			for _, it := range items {
				if !yield(it.key, it.s.payload(it.key.Resource)) {
					return
				}
			}
		}
	}
}

// Samples goes over the newest versions of all samples, one series after the other and each by time; the series are in no
// order. A series is seen as it is at one moment.
func (l *Latest) Samples() iter.Seq2[SampleKey, Sample] {
	return func(yield func(SampleKey, Sample) bool) {
		for n := range l.shards {
			sh := &l.shards[n]
			sh.mu.RLock()
			keys := make([]Series, 0, len(sh.series))
			for k := range sh.series {
				keys = append(keys, k)
			}
			sh.mu.RUnlock()
			for _, k := range keys {
				sh.mu.RLock()
				se := sh.series[k].copy()
				sh.mu.RUnlock()
				all := l.shapes.all()
				for _, c := range se.chunks {
					for i := range c {
						if !yield(k.key(c[i].at), se.sample(all, &c[i])) {
							return
						}
					}
				}
			}
		}
	}
}

func (se *series) copy() *series {
	to := &series{make([][]record, len(se.chunks)), slices.Clone(se.texts), slices.Clone(se.free)}
	for i, c := range se.chunks {
		to.chunks[i] = slices.Clone(c)
	}
	return to
}

// Snapshot returns a copy that later deliveries do not change: all of l as it is at one moment. Nothing is applied to l
// meanwhile.
func (l *Latest) Snapshot() *Latest {
	to := &Latest{Version: l.Version}
	for n := range l.shards {
		l.shards[n].mu.RLock()
		defer l.shards[n].mu.RUnlock()
	}
	for n := range l.shards {
		from, sh := &l.shards[n], &to.shards[n]
		sh.series = make(map[Series]*series, len(from.series))
		for k, se := range from.series {
			sh.series[k] = se.copy()
		}
		sh.summaries = make(map[SummaryKey]summary, len(from.summaries))
		for k, s := range from.summaries {
			sh.summaries[k] = s
		}
	}
	for _, sh := range l.shapes.all() {
		to.shapes.number(sh)
	}
	return to
}
