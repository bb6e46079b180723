package webhooks

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/newest"
)

// record is a stored sample.
type record struct {
	at      int64 // nanoseconds since 1970, from the key
	version int64
	value   float64
	shape   uint32 // index in Latest.shapes
	extra   uint32 // seconds of an interval, or index in series.documents
}

// kind holds the strings of a [Series], which many series share.
type kind struct {
	resource, provider, sourceType string
}

func (k kind) shared() kind {
	return kind{shared(k.resource), shared(k.provider), shared(k.sourceType)}
}

func (k kind) guess() uint8 {
	return uint8(len(k.resource)) ^ end(k.resource) ^ uint8(len(k.provider))<<3 ^ end(k.provider)<<1 ^ end(k.sourceType)<<2
}

func (k kind) series(user uuid.UUID) Series {
	return Series{user, k.resource, k.provider, k.sourceType}
}

// end returns the last byte of a string, or 0 if it is empty.
func end(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// sharable is a value that has a number.
type sharable[T any] interface {
	comparable
	shared() T    // an equal value whose strings share memory with others
	guess() uint8 // a cheap hash
}

// numbers numbers values, which are stored once. Looking one up takes no lock.
type numbers[T sharable[T]] struct {
	mu     sync.Mutex // held while a value is added
	list   atomic.Pointer[[]T]
	slots  atomic.Pointer[[]atomic.Uint32] // open addressing: numbers, counted from 1; 0 is free
	recent [256]atomic.Uint32              // by guess: the number of the last value found, counted from 1
}

// number returns the number of a value, and gives it one if it has none.
func (s *numbers[T]) number(v T) uint32 {
	recent := &s.recent[v.guess()]
	if n := recent.Load(); n != 0 && (*s.list.Load())[n-1] == v {
		return n - 1
	}
	n, ok := s.find(v)
	if !ok {
		n = s.add(v)
	}
	recent.Store(n + 1)
	return n
}

// find returns the number of a value; ok is false if it has none.
func (s *numbers[T]) find(v T) (number uint32, ok bool) {
	slots := s.slots.Load()
	if slots == nil {
		return 0, false
	}
	for i := maphash.Comparable(seed, v); ; i++ {
		number := (*slots)[i&uint64(len(*slots)-1)].Load()
		if number == 0 {
			return 0, false
		}
		if (*s.list.Load())[number-1] == v { // the list is stored before the slot
			return number - 1, true
		}
	}
}

func (s *numbers[T]) add(v T) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.find(v); ok {
		return n
	}
	all := append(s.all(), v.shared())
	s.list.Store(&all)
	slots := s.slots.Load()
	if slots == nil || len(all) > len(*slots)/2 {
		larger := make([]atomic.Uint32, max(8, 4*len(all)))
		larger = larger[:1<<(bits.Len(uint(len(larger)))-1)]
		for i := range all[:len(all)-1] {
			enter(larger, all[i], uint32(i+1))
		}
		slots = &larger
	}
	enter(*slots, all[len(all)-1], uint32(len(all)))
	s.slots.Store(slots)
	return uint32(len(all) - 1)
}

// enter stores the number of a value in the first free slot for it.
func enter[T comparable](slots []atomic.Uint32, v T, number uint32) {
	i := maphash.Comparable(seed, v)
	for slots[i&uint64(len(slots)-1)].Load() != 0 {
		i++
	}
	slots[i&uint64(len(slots)-1)].Store(number)
}

// all returns the values by number.
func (s *numbers[T]) all() []T {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// shape is a [newest.Shape] that has a number.
type shape struct{ newest.Shape }

func (s shape) shared() shape {
	s.Type, s.Unit = shared(s.Type), shared(s.Unit)
	return s
}

func (s shape) guess() uint8 {
	return uint8(len(s.Type)) ^ uint8(len(s.Unit))<<4 ^ end(s.Type) ^ end(s.Unit)<<1 ^ uint8(s.TimezoneOffset/900) ^ uint8(s.East/900)<<2
}

// shared returns the canonical copy of s, so that equal strings share memory.
func shared(s string) string { return unique.Make(s).Value() }

// shapeOf returns the shape of a sample, and the seconds of an interval.
func shapeOf(s *Sample) (shape, uint32) {
	form, seconds := newest.FormOf(&s.Timestamp, &s.Start, &s.End, s.Extra, s.Text, s.Systolic, s.Diastolic)
	if form == newest.JSON {
		return shape{newest.Shape{Form: form}}, 0
	}
	_, east := s.Timestamp.Zone()
	return shape{newest.Shape{
		Form: form, HasValue: s.hasValue(), HasTimezoneOffset: s.hasOffset(), TimezoneOffset: s.TimezoneOffset,
		East: int32(east), Type: s.Type, Unit: s.Unit,
	}}, seconds
}

// sampleOf returns the sample of a record that is not stored as JSON.
func sampleOf(all []shape, r *record) Sample {
	shape := &all[r.shape].Shape
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
func jsonOf(all []shape, r *record) string {
	document, _ := sampleOf(all, r).MarshalJSON()
	return string(document)
}
