package newest

import (
	"math"
	"testing"
	"time"
)

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		stored, received         int64
		storedJSON, receivedJSON string
		want                     Outcome
	}{
		{1, 2, "b", "a", Updated},
		{1, 2, "a", "a", Same},
		{2, 1, "a", "b", Older},
		{2, 1, "a", "a", Older},
		{1, 1, "a", "a", Same},
		{1, 1, "a", "b", Updated},
		{1, 1, "b", "a", Older},
		{1, 1, "63", "7", Updated}, // as strings
		{math.MinInt64, math.MaxInt64, "b", "a", Updated},
	} {
		got := Compare(c.stored, c.received, c.storedJSON == c.receivedJSON, func() (string, string) {
			if c.stored != c.received || c.storedJSON == c.receivedJSON {
				t.Errorf("%+v: the JSON is not needed", c)
			}
			return c.storedJSON, c.receivedJSON
		})
		if got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		t       time.Time
		n       int64
		ok      bool
		clamped int64
	}{
		{time.Unix(0, 0), 0, true, 0},
		{time.Unix(-1, 5).In(time.FixedZone("", 3600)), -999_999_995, true, -999_999_995},
		{time.Time{}, 0, false, math.MinInt64},
		{time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), 0, false, math.MinInt64},
		{time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC), 0, false, math.MaxInt64},
	} {
		n, ok := UnixNano(c.t)
		if ok != c.ok || ok && n != c.n || ClampUnixNano(c.t) != c.clamped {
			t.Errorf("%v: %d, %v, clamped %d", c.t, n, ok, ClampUnixNano(c.t))
		}
	}
	if n := EndUnixNano(time.Unix(0, 5)); n != 5 {
		t.Error(n)
	}
	if n := EndUnixNano(time.Time{}); n != math.MaxInt64 {
		t.Error(n)
	}
}

func TestFormOf(t *testing.T) {
	noon := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	east := noon.In(time.FixedZone("", 3600))
	var none time.Time
	for name, c := range map[string]struct {
		timestamp, start, end time.Time
		extra                 bool
		text                  string
		systolic, diastolic   float64
		want                  Form
		seconds               uint32
	}{
		"point":                 {timestamp: noon, want: Point},
		"interval":              {timestamp: noon, start: noon, end: noon.Add(90 * time.Second), want: Interval, seconds: 90},
		"empty interval":        {timestamp: east, start: east, end: east, want: Interval},
		"longest interval":      {timestamp: noon, start: noon, end: noon.Add(math.MaxUint32 * time.Second), want: Interval, seconds: math.MaxUint32},
		"too long":              {timestamp: noon, start: noon, end: noon.Add((math.MaxUint32 + 1) * time.Second), want: JSON},
		"fraction of a second":  {timestamp: noon, start: noon, end: noon.Add(time.Millisecond), want: JSON},
		"negative":              {timestamp: noon, start: noon, end: noon.Add(-time.Second), want: JSON},
		"other start":           {timestamp: noon, start: noon.Add(1), end: noon.Add(time.Second), want: JSON},
		"other offset of start": {timestamp: noon, start: east, end: noon, want: JSON},
		"other offset of end":   {timestamp: noon, start: noon, end: east, want: JSON},
		"start only":            {timestamp: noon, start: noon, want: JSON},
		"end only":              {timestamp: noon, end: noon, want: JSON},
		"no timestamp":          {start: noon, end: noon, want: JSON},
		"nothing":               {timestamp: none, want: JSON},
		"further fields":        {timestamp: noon, extra: true, want: JSON},
		"note":                  {timestamp: noon, text: "x", want: JSON},
		"systolic":              {timestamp: noon, systolic: 120, want: JSON},
		"diastolic":             {timestamp: noon, diastolic: 80, want: JSON},
	} {
		form, seconds := FormOf(&c.timestamp, &c.start, &c.end, c.extra, c.text, c.systolic, c.diastolic)
		if form != c.want || seconds != c.seconds {
			t.Errorf("%s: %v, %d seconds", name, form, seconds)
		}
	}
}

func TestFitsColumns(t *testing.T) {
	for _, c := range []struct {
		value   float64
		seconds uint32
		want    bool
	}{
		{0, 0, true}, {-1.5, math.MaxInt32, true}, {1, math.MaxInt32 + 1, false},
		{math.Copysign(0, -1), 0, false}, {math.Inf(1), 0, false}, {math.Inf(-1), 0, false}, {math.NaN(), 0, false},
	} {
		if got := FitsColumns(c.value, c.seconds); got != c.want {
			t.Errorf("%v, %d seconds: %v", c.value, c.seconds, got)
		}
	}
}
