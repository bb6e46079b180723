// Latest: the samples of a series, ordered by time.

package webhooks

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"
	"unique"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/newest"
)

// series holds the samples of a series. Those of a long one are spread over windows of time, so
// that inserting one between others moves only those of its window. Most are appended to the last.
type series struct {
	windows   []window         // in ascending order
	documents map[int64]string // by time: JSON of the samples of which a record cannot hold everything
}

// window holds the samples of two and a half hours.
type window struct {
	number  int64    // the time without its windowBits lower bits
	records []record // in ascending order
}

const windowBits = 43

// record is a stored sample.
type record struct {
	at      int64 // nanoseconds since 1970, from the key
	version int64
	value   float64
	shape   uint32 // index in shard.shapes
	seconds uint32 // of an interval
}

// entry is a sample that is stored or is to be stored.
type entry struct {
	record
	document string // JSON, if the record cannot hold everything
	skipped  bool   // it has no key, or a later sample of the batch has the same
}

// applySamples stores the samples of a batch, or none of them after an error.
func (l *Latest) applySamples(e *Event, batch *Samples, version int64) (Changes, error) {
	of := e.series(batch)
	sh := l.shard(of.UserID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	entries, err := sh.entriesOf(batch.Data, version)
	if err != nil {
		return Changes{}, err
	}
	c := skip(of, batch.Data, entries)
	changed := make([]int, 0, len(entries))
	var stored *series
	var storedType string
	for i := range entries {
		if entries[i].skipped {
			continue
		}
		if sourceType := typeIn(of, &batch.Data[i]); stored == nil || sourceType != storedType {
			stored, storedType = sh.findOrAdd(Series{of.UserID, of.Resource, of.Provider, sourceType}), sourceType
		}
		outcome := stored.put(sh.shapes, &entries[i])
		if c.count(outcome); outcome == newest.Added || outcome == newest.Updated {
			changed = append(changed, i)
		}
	}
	if len(changed) > 0 {
		c.Samples = changed
	}
	return c, nil
}

// entriesOf returns an entry for each sample.
func (sh *shard) entriesOf(samples []Sample, version int64) ([]entry, error) {
	entries := make([]entry, len(samples))
	var previous newest.Shape
	var number uint32 // of the previous shape
	var err error
	for i := range samples {
		s, e := &samples[i], &entries[i]
		at, ok := s.instant()
		if e.skipped = !ok; !ok {
			continue
		}
		shape, seconds := shapeOf(s)
		if i == 0 || shape != previous {
			if number, err = sh.numberOf(shape); err != nil {
				return nil, err
			}
			previous = shape
		}
		e.record = record{at, version, s.Value, number, seconds}
		if e.document, err = documentOf(s, shape, e); err != nil {
			return nil, err
		}
		if e.document != "" {
			e.value, e.seconds = 0, 0
			e.shape, _ = sh.numberOf(newest.Shape{Form: newest.JSON})
		}
	}
	return entries, nil
}

// errNotText is the error for a sample that a program created and that could not be written.
const errNotText = permanentError("webhooks: type and unit of a sample must be valid UTF-8")

// numberOf returns the index of a shape, which it adds if there is none.
func (sh *shard) numberOf(shape newest.Shape) (uint32, error) {
	if number, ok := sh.shapeOf[shape]; ok {
		return number, nil
	}
	if !utf8.ValidString(shape.Type) || !utf8.ValidString(shape.Unit) {
		return 0, errNotText
	}
	if sh.shapeOf == nil {
		sh.shapeOf = map[newest.Shape]uint32{}
	}
	shape.Type, shape.Unit = shared(shape.Type), shared(shape.Unit)
	number := uint32(len(sh.shapes))
	sh.shapes, sh.shapeOf[shape] = append(sh.shapes, shape), number
	return number, nil
}

// documentOf returns the JSON of a sample of which a record cannot hold everything, and nothing for
// any other. A number with more digits than a float64 is the same however it is written.
func documentOf(s *Sample, shape newest.Shape, e *entry) (string, error) {
	if shape.Form == newest.JSON || math.IsInf(s.Value, 0) || math.IsNaN(s.Value) {
		document, err := s.MarshalJSON()
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrPermanent, err)
		}
		return string(document), nil
	}
	if s.Rounded {
		rounded := jsonOf(&shape, e)
		if exact := string(jsonread.ReplaceField([]byte(rounded), "value", string(s.Number()))); exact != rounded {
			return exact, nil
		}
	}
	return "", nil
}

// skip marks the entries of samples without a key, and of those that a later one with the same key
// replaces. It counts both.
func skip(of Series, samples []Sample, entries []entry) (c Changes) {
	ascending, last := true, int64(math.MinInt64)
	for i := range entries {
		if entries[i].skipped {
			c.Keyless++
			continue
		}
		ascending = ascending && last < entries[i].at
		last = entries[i].at
	}
	if ascending { // as nearly always
		return c
	}
	type key struct {
		sourceType string
		at         int64
	}
	later := map[key]bool{}
	for i, e := range slices.Backward(entries) {
		k := key{typeIn(of, &samples[i]), e.at}
		if e.skipped {
			continue
		}
		if later[k] {
			entries[i].skipped = true
			c.Repeated++
		}
		later[k] = true
	}
	return c
}

// findOrAdd returns a series, which it adds if there is none.
func (sh *shard) findOrAdd(of Series) *series {
	se := sh.series[of]
	if se == nil {
		if sh.series == nil {
			sh.series = map[Series]*series{}
		}
		se = new(series)
		of.Resource, of.Provider, of.SourceType = shared(of.Resource), shared(of.Provider), shared(of.SourceType)
		sh.series[of] = se
	}
	return se
}

// put stores an entry, unless the stored version of the sample is newer.
func (se *series) put(shapes []newest.Shape, e *entry) newest.Outcome {
	w, isWindow := se.search(e.at)
	if !isWindow {
		if w > 0 && w == len(se.windows) { // the window before is probably complete: it needs no room to grow
			se.windows[w-1].records = slices.Clone(se.windows[w-1].records)
		}
		se.windows = slices.Insert(se.windows, w, window{number: e.at >> windowBits})
	}
	to := &se.windows[w]
	i, found := to.search(e.at)
	if !found {
		to.records = slices.Insert(to.records, i, e.record)
		se.keep(e)
		return newest.Added
	}
	stored := se.entry(&to.records[i])
	same := stored.shape == e.shape && stored.seconds == e.seconds && stored.document == e.document &&
		math.Float64bits(stored.value) == math.Float64bits(e.value)
	outcome := newest.Compare(stored.version, e.version, same, func() (string, string) {
		return stored.json(shapes), e.json(shapes)
	})
	if outcome != newest.Older {
		to.records[i] = e.record
		se.keep(e)
	}
	return outcome
}

// search returns the index of the window of a time, or where to insert it.
func (se *series) search(at int64) (w int, found bool) {
	number, last := at>>windowBits, len(se.windows)-1
	if last >= 0 && se.windows[last].number == number {
		return last, true
	}
	return slices.BinarySearchFunc(se.windows, number, func(w window, number int64) int { return cmp.Compare(w.number, number) })
}

// search returns the index of the record of a time, or where to insert it.
func (w *window) search(at int64) (i int, found bool) {
	if n := len(w.records); n == 0 || w.records[n-1].at < at {
		return n, false
	}
	return slices.BinarySearchFunc(w.records, at, func(r record, at int64) int { return cmp.Compare(r.at, at) })
}

// keep stores the document of an entry, and deletes that of the sample that it replaces.
func (se *series) keep(e *entry) {
	switch {
	case e.document == "":
		delete(se.documents, e.at)
	case se.documents == nil:
		se.documents = map[int64]string{e.at: e.document}
	default:
		se.documents[e.at] = e.document
	}
}

func (se *series) entry(r *record) entry { return entry{record: *r, document: se.documents[r.at]} }

// between returns the samples of a series from a time until before another, in ascending order, and
// the shapes of these.
func (sh *shard) between(of Series, from, end int64) (found []entry, shapes []newest.Shape) {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	se := sh.series[of]
	if se == nil {
		return nil, nil
	}
	for w, _ := se.search(from); w < len(se.windows) && se.windows[w].number <= end>>windowBits; w++ {
		for i := range se.windows[w].records {
			if r := &se.windows[w].records[i]; from <= r.at && r.at < end {
				found = append(found, se.entry(r))
			}
		}
	}
	return found, sh.shapes
}

// shapeOf returns what a sample has in common with others, and the seconds of an interval.
func shapeOf(s *Sample) (newest.Shape, uint32) {
	form, seconds := newest.FormOf(&s.Timestamp, &s.Start, &s.End, s.Extra, s.Text, s.Systolic, s.Diastolic)
	if form == newest.JSON {
		return newest.Shape{Form: form}, 0
	}
	_, east := s.Timestamp.Zone()
	return newest.Shape{
		Form: form, HasValue: s.hasValue(), HasTimezoneOffset: s.hasOffset(), TimezoneOffset: s.TimezoneOffset,
		East: int32(east), Type: s.Type, Unit: s.Unit,
	}, seconds
}

// sample returns the sample of an entry.
func (e *entry) sample(shapes []newest.Shape) (s Sample) {
	if e.document == "" {
		return sampleOf(&shapes[e.shape], e)
	}
	s.UnmarshalJSON([]byte(e.document)) // MarshalJSON wrote it
	return s
}

// json returns the JSON of an entry.
func (e *entry) json(shapes []newest.Shape) string {
	if e.document == "" {
		return jsonOf(&shapes[e.shape], e)
	}
	return e.document
}

// jsonOf returns the JSON of an entry that has no document.
func jsonOf(shape *newest.Shape, e *entry) string {
	document, _ := sampleOf(shape, e).MarshalJSON()
	return string(document)
}

// sampleOf returns the sample of an entry that has no document.
func sampleOf(shape *newest.Shape, e *entry) Sample {
	t := time.Unix(0, e.at).UTC()
	switch {
	case shape.East == 0:
	case shape.East%60 == 0:
		t = t.In(jsonread.Zone(int(shape.East / 60)))
	default:
		t = t.In(time.FixedZone("", int(shape.East)))
	}
	s := Sample{
		Timestamp: t, Value: e.value, HasValue: shape.HasValue, Type: shape.Type, Unit: shape.Unit,
		TimezoneOffset: shape.TimezoneOffset, HasTimezoneOffset: shape.HasTimezoneOffset,
	}
	if shape.Form == newest.Interval {
		s.Start, s.End = t, t.Add(time.Duration(e.seconds)*time.Second)
	}
	return s
}

// shared returns the canonical copy of s, so that equal strings share memory.
func shared(s string) string { return unique.Make(s).Value() }

func (se *series) clone() *series {
	to := &series{slices.Clone(se.windows), maps.Clone(se.documents)}
	for i := range to.windows {
		to.windows[i].records = slices.Clone(to.windows[i].records)
	}
	return to
}
