package console

import (
	"math"
	"slices"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// span is the part of the time of a user that plots show, by the clock of the user: a day has 288
// slots of 5 minutes and a week 168 slots of an hour, also when the clock changes.
type span struct {
	day  time.Time // midnight of the last day, by the clock of the user written as UTC
	week bool      // the 7 days up to day; otherwise day alone
}

func (s span) days() int {
	if s.week {
		return 7
	}
	return 1
}

func (s span) slot() time.Duration {
	if s.week {
		return time.Hour
	}
	return 5 * time.Minute
}

func (s span) slots() int { return s.days() * int(24*time.Hour/s.slot()) }

// start is the first midnight of the span, by the clock of the user written as UTC.
func (s span) start() time.Time { return s.day.AddDate(0, 0, 1-s.days()) }

// The limits of offsets from UTC in the world. Others are invalid.
const (
	westernmost = -12 * time.Hour
	easternmost = 14 * time.Hour
)

// limits are the times between which the span is in some time zone.
func (s span) limits() (from, to time.Time) {
	return s.start().Add(-easternmost), s.day.AddDate(0, 0, 1).Add(-westernmost)
}

// move returns the span that is n spans later.
func (s span) move(n int) span { return span{s.day.AddDate(0, 0, n*s.days()), s.week} }

// within returns a query with the span.
func (s span) within(q query) query {
	name := ""
	if s.week {
		name = "week"
	}
	return q.with("day", s.day.Format(time.DateOnly), "span", name)
}

// offsetOf returns the offset from UTC that a sample has.
func offsetOf(s *webhooks.Sample) (offset time.Duration, ok bool) {
	offset = time.Duration(s.TimezoneOffset) * time.Second
	return offset, s.HasTimezoneOffset && offset >= westernmost && offset <= easternmost
}

// slot has what is known of the values within a slot of time.
type slot struct {
	n               int
	low, mean, high float64
	sum             float64
}

// add adds a finite value. No result overflows.
func (s *slot) add(v float64) {
	if s.n == 0 {
		*s = slot{1, v, v, v, v}
		return
	}
	s.n++
	n := float64(s.n)
	s.low, s.high = min(s.low, v), max(s.high, v)
	s.mean = min(s.high, max(s.low, s.mean*((n-1)/n)+v/n))
	s.sum = finite(s.sum + v)
}

// merge adds the values of another slot.
func (s *slot) merge(o slot) {
	switch {
	case o.n == 0:
	case s.n == 0:
		*s = o
	default:
		n := float64(s.n + o.n)
		s.low, s.high = min(s.low, o.low), max(s.high, o.high)
		s.mean = min(s.high, max(s.low, s.mean*(float64(s.n)/n)+o.mean*(float64(o.n)/n)))
		s.n, s.sum = s.n+o.n, finite(s.sum+o.sum)
	}
}

// finite limits a number to those that are finite.
func finite(v float64) float64 { return min(math.MaxFloat64, max(-math.MaxFloat64, v)) }

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// reduction reduces the samples of one unit to slots, in one pass.
type reduction struct {
	span  span
	unit  string
	lines []line // one, or systolic and diastolic

	target  [2]float64 // the usual range, if the second is not 0
	inRange int        // samples within target

	first, last time.Time // by the clock of the user
	previous    time.Time // UTC, of the sample before
	at          int       // slot of the sample before
	intervals   []time.Duration
	candidates  []hole
	end         time.Time // by the clock of the user: there is no gap after it
}

type line struct {
	slots []slot
	all   slot // of the span
}

// hole is a number of slots without a sample.
type hole struct {
	from, to int           // slots, to is not included
	length   time.Duration // between the samples beside it
}

// maxIntervals is the number of intervals of which the usual one is determined.
const maxIntervals = 4096

func newReduction(s span, unit string, now time.Time) *reduction {
	return &reduction{span: s, unit: unit, end: now}
}

// add adds the values of a sample that was measured at a time, which is not before that of the
// sample before. Samples outside the span, and values that are no numbers, are ignored.
func (r *reduction) add(at time.Time, offset time.Duration, values ...float64) {
	local := at.Add(offset)
	since := local.Sub(r.span.start())
	i := int(since / r.span.slot())
	if since < 0 || i >= r.span.slots() || !allFinite(values) {
		return
	}
	if r.lines == nil {
		r.lines = make([]line, len(values))
		for i := range r.lines {
			r.lines[i].slots = make([]slot, r.span.slots())
		}
		r.first = local
		r.candidates = append(r.candidates, hole{0, i, since})
	} else {
		length := at.Sub(r.previous)
		if len(r.intervals) < maxIntervals {
			r.intervals = append(r.intervals, length)
		}
		if i > r.at+1 {
			r.candidates = append(r.candidates, hole{r.at + 1, i, length})
		}
	}
	r.previous, r.last, r.at = at, local, i
	for n, v := range values {
		if n < len(r.lines) {
			r.lines[n].slots[i].add(v)
			r.lines[n].all.add(v)
		}
	}
	if r.target[1] != 0 && values[0] >= r.target[0] && values[0] <= r.target[1] {
		r.inRange++
	}
}

func allFinite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !isFinite(v) })
}

// usual returns the usual time between two samples; 0 if there are fewer than three.
func (r *reduction) usual() time.Duration {
	if len(r.intervals) < 2 {
		return 0
	}
	slices.Sort(r.intervals)
	return r.intervals[len(r.intervals)/2]
}

// gaps returns where samples are missing: slots without any, between samples with more than three
// times the usual time between them. Overlapping holes, of a clock that was set back, are left out.
func (r *reduction) gaps() []hole {
	usual := r.usual()
	if usual == 0 {
		return nil
	}
	holes := r.candidates
	end := r.span.day.AddDate(0, 0, 1)
	if r.end.Before(end) {
		end = r.end
	}
	if i := int(end.Sub(r.span.start()) / r.span.slot()); i > r.at+1 {
		holes = append(holes, hole{r.at + 1, i, end.Sub(r.last)})
	}
	var gaps []hole
	for _, h := range holes {
		if h.to > h.from && h.length > 3*usual && r.isEmpty(h) {
			gaps = append(gaps, h)
		}
	}
	return gaps
}

func (r *reduction) isEmpty(h hole) bool {
	return !slices.ContainsFunc(r.lines[0].slots[h.from:h.to], func(s slot) bool { return s.n > 0 })
}
