package console

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// TestReductionBorders checks which samples belong to a day and to a week.
func TestReductionBorders(t *testing.T) {
	day := span{day: date(2026, 11, 20)}
	week := span{day: date(2026, 11, 20), week: true}
	west := -8 * time.Hour
	for _, test := range []struct {
		span   span
		at     time.Time
		offset time.Duration
		slot   int // -1 if it is outside
	}{
		{day, date(2026, 11, 20), 0, 0},
		{day, date(2026, 11, 20).Add(-1), 0, -1},
		{day, date(2026, 11, 21).Add(-1), 0, 287},
		{day, date(2026, 11, 21), 0, -1},
		{day, date(2026, 11, 20).Add(8 * time.Hour), west, 0},
		{day, date(2026, 11, 20).Add(8*time.Hour - 1), west, -1},
		{day, date(2026, 11, 21).Add(8*time.Hour - 1), west, 287},
		{week, date(2026, 11, 14), 0, 0},
		{week, date(2026, 11, 14).Add(-1), 0, -1},
		{week, date(2026, 11, 21).Add(-1), 0, 167},
		{week, date(2026, 11, 21), 0, -1},
	} {
		r := newReduction(test.span, "", date(2027, 1, 1))
		r.add(test.at, test.offset, 5)
		found := -1
		if len(r.lines) > 0 {
			for i, s := range r.lines[0].slots {
				if s.n > 0 {
					found = i
				}
			}
		}
		if found != test.slot {
			t.Errorf("%v with offset %v is in slot %d of %v, want %d", test.at, test.offset, found, test.span, test.slot)
		}
	}
}

// TestReductionClock checks that neither a clock that is put forward nor one that is put back makes
// a gap, and that every day keeps its slots.
func TestReductionClock(t *testing.T) {
	const hour = time.Hour
	forward := newReduction(span{day: date(2026, 3, 8)}, "", date(2027, 1, 1))
	for at := date(2026, 3, 8).Add(8 * hour); at.Before(date(2026, 3, 9).Add(7 * hour)); at = at.Add(5 * time.Minute) {
		offset := -8 * hour
		if !at.Before(date(2026, 3, 8).Add(10 * hour)) {
			offset = -7 * hour
		}
		forward.add(at, offset, 60)
	}
	filled := 0
	for i, s := range forward.lines[0].slots {
		if s.n > 0 {
			filled++
		} else if i < 24 || i >= 36 {
			t.Errorf("slot %d is empty", i)
		}
	}
	if gaps := forward.gaps(); filled != 276 || gaps != nil {
		t.Errorf("put forward: %d slots, gaps %v", filled, gaps)
	}
	back := newReduction(span{day: date(2026, 11, 1)}, "", date(2027, 1, 1))
	for at := date(2026, 11, 1).Add(7 * hour); at.Before(date(2026, 11, 2).Add(8 * hour)); at = at.Add(5 * time.Minute) {
		offset := -7 * hour
		if !at.Before(date(2026, 11, 1).Add(9 * hour)) {
			offset = -8 * hour
		}
		back.add(at, offset, 60)
	}
	for i, s := range back.lines[0].slots {
		want := 1
		if i >= 12 && i < 24 {
			want = 2
		}
		if s.n != want {
			t.Errorf("slot %d has %d samples, want %d", i, s.n, want)
		}
	}
	if gaps := back.gaps(); gaps != nil {
		t.Errorf("put back: gaps %v", gaps)
	}
}

// TestReductionGaps checks what counts as a gap.
func TestReductionGaps(t *testing.T) {
	minute := func(n int) time.Time { return date(2026, 11, 20).Add(time.Duration(n) * time.Minute) }
	fill := func(now time.Time, every int, parts ...[2]int) *reduction {
		r := newReduction(span{day: date(2026, 11, 20)}, "", now)
		for _, p := range parts {
			for m := p[0]; m < p[1]; m += every {
				r.add(minute(m), 0, 60)
			}
		}
		return r
	}
	later := date(2027, 1, 1)
	for name, test := range map[string]struct {
		r    *reduction
		want []hole
	}{
		"none":                        {fill(later, 5, [2]int{0, 1440}), nil},
		"every 15 minutes":            {fill(later, 15, [2]int{0, 1440}), nil},
		"one sample":                  {fill(later, 5, [2]int{700, 701}), nil},
		"within":                      {fill(later, 5, [2]int{0, 600}, [2]int{660, 1440}), []hole{{120, 132, 65 * time.Minute}}},
		"at the start":                {fill(later, 5, [2]int{60, 1440}), []hole{{0, 12, time.Hour}}},
		"at the end":                  {fill(later, 5, [2]int{0, 1380}), []hole{{276, 288, 65 * time.Minute}}},
		"not yet":                     {fill(minute(600), 5, [2]int{0, 600}), nil},
		"not yet, after a gap":        {fill(minute(600), 5, [2]int{0, 540}), []hole{{108, 120, 65 * time.Minute}}},
		"three intervals are usual":   {fill(later, 5, [2]int{0, 600}, [2]int{610, 1440}), nil},
		"four intervals are a gap":    {fill(later, 5, [2]int{0, 600}, [2]int{615, 1440}), []hole{{120, 123, 20 * time.Minute}}},
		"the clock of a sender ahead": {fill(minute(100), 5, [2]int{0, 1440}), nil},
	} {
		if diff := cmp.Diff(test.want, test.r.gaps(), cmp.AllowUnexported(hole{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// FuzzReduction checks that the mean of a slot is within its values, that no sample is lost or
// counted twice, and that nothing overflows, whatever the values and times.
func FuzzReduction(f *testing.F) {
	f.Add(int64(0), int64(300), 60.0, 1e308, -1e308, int32(0), true)
	f.Add(int64(86399), int64(1), math.Inf(1), 5e-324, 0.0, int32(-28800), false)
	f.Add(int64(-1), int64(90000), math.NaN(), 1.7976931348623157e308, 1.7976931348623157e308, int32(50400), true)
	f.Fuzz(checkReduction)
}

// TestReductionRandom checks the same with random values of all sizes.
func TestReductionRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	value := func() float64 { return math.Float64frombits(random.Uint64()) }
	for range 5000 {
		a := value()
		near := a * (1 + random.Float64()*1e-3)
		checkReduction(t, random.Int64N(700_000), random.Int64N(90_000), a, value(), near, random.Int32(), random.IntN(2) == 0)
		checkReduction(t, random.Int64N(700_000), random.Int64N(9000), a, near, -near, 0, random.IntN(2) == 0)
		if t.Failed() {
			return
		}
	}
}

func checkReduction(t *testing.T, start, step int64, a, b, c float64, east int32, week bool) {
	offset := time.Duration(east%50400) * time.Second
	s := span{day: date(2026, 11, 20), week: week}
	r := newReduction(s, "", date(2026, 11, 20).Add(18*time.Hour))
	at, want := s.start().Add(time.Duration(start%(8*86400))*time.Second), 0
	for i := range 30 {
		v := []float64{a, b, c}[i%3]
		local := at.Add(offset)
		if isFinite(v) && !local.Before(s.start()) && local.Before(s.day.AddDate(0, 0, 1)) {
			want++
		}
		r.add(at, offset, v)
		at = at.Add(time.Duration(max(1, step%86400)) * time.Second)
	}
	n := 0
	for _, l := range r.lines {
		all := slot{}
		for _, s := range l.slots {
			n += s.n
			all.merge(s)
			if s.n > 0 && (s.mean < s.low || s.mean > s.high || !isFinite(s.mean) || !isFinite(s.sum)) {
				t.Errorf("a slot has low %v, mean %v, high %v, sum %v", s.low, s.mean, s.high, s.sum)
			}
		}
		if all.n != l.all.n || all.low != l.all.low || all.high != l.all.high {
			t.Errorf("the slots have %v, all have %v", all, l.all)
		}
	}
	if n != want {
		t.Errorf("%d samples are in slots, want %d", n, want)
	}
	for _, g := range r.gaps() {
		if g.from < 0 || g.to > s.slots() || g.from >= g.to {
			t.Errorf("gap %v", g)
		}
	}
	if n := decimalsOf(a, b, 4); isFinite(a) && isFinite(b) && (n < 0 || n > 400) {
		t.Errorf("%v to %v: %d decimals", a, b, n)
	}
}
