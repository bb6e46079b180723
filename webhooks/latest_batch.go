package webhooks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/newest"
)

// entry is a sample of a batch that is being applied.
type entry struct {
	record
	document string // JSON, if it is stored as such
	series   uint32 // index in entries.types
	index    int32  // in the batch
}

// entries are those samples of a batch that have a key.
type entries struct {
	list   []entry
	types  []string // source types, one for each series
	sorted bool     // list is sorted by series and time, and no key occurs twice
}

var entriesPool = sync.Pool{New: func() any { return new(entries) }}

func (es *entries) release() {
	clear(es.list)
	clear(es.types)
	if cap(es.list) <= 1<<12 {
		entriesPool.Put(es)
	}
}

func (l *Latest) applySamples(e *Event, batch *Samples, version int64) (Changes, error) {
	series := e.series(batch)
	if len(batch.Data) == 1 {
		return l.applySample(series, &batch.Data[0], version)
	}
	es := entriesPool.Get().(*entries)
	defer es.release()
	var c Changes
	if err := es.collect(l, series, batch.Data, version, &c); err != nil {
		return Changes{}, err
	}
	if !es.sorted {
		es.sort(&c)
	}
	if len(es.list) == 0 {
		return c, nil
	}
	c.Samples = make([]int, 0, len(es.list))
	sh := l.shard(series.UserID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for list := es.list; len(list) > 0; { // series by series
		n := 1
		for n < len(list) && list[n].series == list[0].series {
			n++
		}
		number := l.kinds.number(kind{series.Resource, series.Provider, es.types[list[0].series]})
		sh.findOrAdd(seriesKey{series.UserID, number}).put(l, list[:n], &c)
		list = list[n:]
	}
	switch {
	case len(c.Samples) == 0:
		c.Samples = nil
	case !es.sorted:
		slices.Sort(c.Samples)
	}
	return c, nil
}

// applySample applies a batch of one sample, for which preparing the memory of a batch would take
// a good part of the time.
func (l *Latest) applySample(series Series, s *Sample, version int64) (c Changes, err error) {
	at, ok := s.instant()
	if !ok {
		c.Keyless++
		return c, nil
	}
	var one [1]entry
	received := &one[0]
	of, seconds := shapeOf(s)
	form, err := l.shapeNumber(of)
	if err != nil {
		return c, err
	}
	received.record = record{at, version, s.Value, form, seconds}
	if err := received.setDocument(l, s, &of); err != nil {
		return c, err
	}
	number := l.kinds.number(kind{series.Resource, series.Provider, typeIn(series, s)})
	sh := l.shard(series.UserID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.findOrAdd(seriesKey{series.UserID, number}).put(l, one[:], &c)
	return c, nil
}

// errNotText is the error for a sample that a program created and that could not be written.
const errNotText = permanentError("webhooks: type and unit of a sample must be valid UTF-8")

func (l *Latest) shapeNumber(of shape) (uint32, error) {
	if !utf8.ValidString(of.Type) || !utf8.ValidString(of.Unit) {
		return 0, errNotText
	}
	return l.shapes.number(of), nil
}

// collect creates entries from samples and counts those that have no key.
func (es *entries) collect(l *Latest, series Series, samples []Sample, version int64, c *Changes) error {
	es.list, es.types, es.sorted = es.list[:0], es.types[:0], true
	var previous shape
	var number uint32 // of the previous shape
	for i := range samples {
		s := &samples[i]
		at, ok := s.instant()
		if !ok {
			c.Keyless++
			continue
		}
		of, seconds := shapeOf(s)
		if of != previous || len(es.list) == 0 {
			var err error
			if number, err = l.shapeNumber(of); err != nil {
				return err
			}
			previous = of
		}
		received := entry{
			record: record{at, version, s.Value, number, seconds},
			series: es.seriesOf(typeIn(series, s)), index: int32(i),
		}
		if err := received.setDocument(l, s, &of); err != nil {
			return err
		}
		if n := len(es.list); n > 0 {
			last := &es.list[n-1]
			es.sorted = es.sorted &&
				(last.series < received.series || last.series == received.series && last.at < received.at)
		}
		es.list = append(es.list, received)
	}
	return nil
}

// setDocument makes e the JSON of a sample of which a record cannot hold everything.
func (e *entry) setDocument(l *Latest, s *Sample, of *shape) error {
	if of.Form == newest.JSON || math.IsInf(s.Value, 0) || math.IsNaN(s.Value) {
		document, err := s.MarshalJSON()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPermanent, err)
		}
		e.document, e.value = string(document), 0
	} else if s.Rounded {
		e.setRounded(l, s, *of)
	}
	return nil
}

// setRounded makes e the JSON of a sample whose number has more digits than its value. That is the
// same for numbers that are written differently.
func (e *entry) setRounded(l *Latest, s *Sample, of shape) {
	plain := jsonOf([]shape{of}, &record{at: e.at, value: s.Value, extra: e.extra})
	if document := string(jsonread.ReplaceField([]byte(plain), "value", string(s.Number()))); document != plain {
		e.document, e.value, e.extra = document, 0, 0
		e.shape = l.shapes.number(shape{newest.Shape{Form: newest.JSON}})
	}
}

// seriesOf returns the index of a source type.
func (es *entries) seriesOf(sourceType string) uint32 {
	for n := range es.types {
		if es.types[n] == sourceType {
			return uint32(n)
		}
	}
	es.types = append(es.types, sourceType)
	return uint32(len(es.types) - 1)
}

// sort sorts the entries by series and time, and removes those that a later one with the same key
// replaces.
func (es *entries) sort(c *Changes) {
	slices.SortFunc(es.list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.series, b.series), cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
	})
	list := es.list[:0]
	for i := range es.list {
		if i+1 < len(es.list) && es.list[i].series == es.list[i+1].series && es.list[i].at == es.list[i+1].at {
			c.Repeated++
			continue
		}
		list = append(list, es.list[i])
	}
	es.list = list
}
