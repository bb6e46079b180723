package webhooks

import (
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/newest"
)

// record is a stored sample.
type record struct {
	at      int64 // nanoseconds since 1970, from the key
	version int64
	value   float64
	shape   uint32 // index in shapes
	extra   uint32 // seconds of an interval, or index in series.documents
}

// shapes numbers the shapes of the stored samples. Looking one up by its number takes no lock.
type shapes struct {
	mu      sync.RWMutex
	numbers map[newest.Shape]uint32
	list    atomic.Pointer[[]newest.Shape]
}

func (s *shapes) number(shape newest.Shape) uint32 {
	s.mu.RLock()
	n, ok := s.numbers[shape]
	s.mu.RUnlock()
	if ok {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.numbers[shape]; ok {
		return n
	}
	shape.Type, shape.Unit = shared(shape.Type), shared(shape.Unit)
	if s.numbers == nil {
		s.numbers = map[newest.Shape]uint32{}
	}
	all := s.all()
	n = uint32(len(all))
	s.numbers[shape] = n
	all = append(all, shape)
	s.list.Store(&all)
	return n
}

func (s *shapes) all() []newest.Shape {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// recentShapes caches the numbers of the shapes that a batch repeats.
type recentShapes [4]struct {
	newest.Shape
	number uint32
	valid  bool
}

// number returns the number of the shape of sample i.
func (r *recentShapes) number(all *shapes, shape newest.Shape, i int) uint32 {
	for n := range r {
		if r[n].valid && r[n].Shape == shape {
			return r[n].number
		}
	}
	next := &r[i%len(r)]
	next.Shape, next.number, next.valid = shape, all.number(shape), true
	return next.number
}

// shared returns the canonical copy of s, so that equal strings share memory.
func shared(s string) string { return unique.Make(s).Value() }

// shapeOf returns the shape of a sample, and the seconds of an interval.
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

// sampleOf returns the sample of a record that is not stored as JSON.
func sampleOf(all []newest.Shape, r *record) Sample {
	shape := &all[r.shape]
	t := time.Unix(0, r.at).UTC()
	switch {
	case shape.East == 0:
	case shape.East%60 == 0:
		t = t.In(jsonread.Zone(int(shape.East / 60)))
	default:
		t = t.In(time.FixedZone("", int(shape.East)))
	}
	s := Sample{
		Timestamp: t, Value: r.value, HasValue: shape.HasValue, Type: shape.Type, Unit: shape.Unit,
		TimezoneOffset: shape.TimezoneOffset, HasTimezoneOffset: shape.HasTimezoneOffset,
	}
	if shape.Form == newest.Interval {
		s.Start, s.End = t, t.Add(time.Duration(r.extra)*time.Second)
	}
	return s
}

// jsonOf returns the JSON of a record that is not stored as such.
func jsonOf(all []newest.Shape, r *record) string {
	document, _ := sampleOf(all, r).MarshalJSON()
	return string(document)
}
