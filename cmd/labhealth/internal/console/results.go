package console

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/labhealth/labhealth-go"
)

// resultsView is the data of the template "results".
type resultsView struct {
	Results []resultRow
	Missing []labhealth.MissingResult
	Markers []labhealth.Marker // of the order
	Partial bool
	Flags   map[string]int // how many results have a mark, by its tone
	Legacy  *jsonView      // results of older orders
	Problem string         // why they could not be read
}

// flag is the mark of a result. Tone is crit, hi, lo or empty.
type flag struct{ Tone, Text string }

// resultRow is a result.
type resultRow struct {
	*labhealth.Result
	Usual string // range
	Flag  flag
	Bar   *rangeBar
	Note  string // in place of the bar
}

// newResults returns the results of an order, or nil if there are none. Deliveries bring none.
func (c *Console) newResults(ctx context.Context, o *labhealth.Order, reveal bool) *resultsView {
	if !c.sandbox() {
		return nil
	}
	results, err := c.Client.Orders.Results(ctx, o.ID)
	switch {
	case errors.Is(err, labhealth.ErrNoResults) || errors.Is(err, labhealth.ErrNotFound):
		return nil
	case err != nil:
		return &resultsView{Problem: err.Error()}
	}
	v := &resultsView{
		Missing: results.MissingResults, Markers: o.LabTest.Markers, Partial: results.Metadata.Status == labhealth.ResultsStatusPartial, Flags: map[string]int{},
	}
	if legacy := results.LegacyResults(); legacy != nil {
		view := viewJSON(legacy, jsonOptions{Reveal: reveal})
		v.Legacy = &view
	}
	for i := range results.Results {
		row := newResultRow(&results.Results[i])
		v.Flags[row.Flag.Tone]++
		v.Results = append(v.Results, row)
	}
	return v
}

func newResultRow(r *labhealth.Result) resultRow {
	row := resultRow{Result: r, Flag: flagOf(r), Usual: usualRange(r)}
	row.Bar = newRangeBar(r, row.Flag)
	switch {
	case len(r.Result) > 120:
		row.Note = shorten([]byte(r.Result))
	case row.Bar != nil:
	case row.Usual == "":
		row.Note = "no range is given"
	default:
		row.Note = "no number, no range to draw"
	}
	return row
}

// flagOf returns what the service says of a result.
func flagOf(r *labhealth.Result) flag {
	above, below := r.IsAboveMaxRange != nil && *r.IsAboveMaxRange, r.IsBelowMinRange != nil && *r.IsBelowMinRange
	switch {
	case r.Critical():
		return flag{"crit", "Critical"}
	case above:
		return flag{"hi", "Above"}
	case below:
		return flag{"lo", "Below"}
	case r.Abnormal():
		return flag{"hi", "Abnormal"}
	}
	return flag{"", "Usual"}
}

// usualRange returns the usual range in words.
func usualRange(r *labhealth.Result) string {
	low, high := r.MinRangeValue, r.MaxRangeValue
	switch {
	case low != nil && high != nil:
		return numberText(*low) + "–" + numberText(*high)
	case low != nil:
		return "≥ " + numberText(*low)
	case high != nil:
		return "≤ " + numberText(*high)
	}
	if r.ReferenceRange != nil {
		return firstChars(*r.ReferenceRange, 40)
	}
	return ""
}

func numberText(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// Geometry of the bar of a range, in units of its SVG.
const (
	barWidth  = 208.0
	barMargin = 4.0
)

// rangeBar is a result on the axis of its range: the usual values, and a dot, or a span for a
// result such as "<1.0". The numbers are coordinates.
type rangeBar struct {
	Tone, Label    string
	UsualX, UsualW float64
	IsSpan         bool
	X, W           float64 // of the dot, or of the span
}

// newRangeBar returns the bar of a result, or nil if it is no number or has no range.
func newRangeBar(r *labhealth.Result, f flag) *rangeBar {
	low, high := math.Inf(-1), math.Inf(1) // of the usual range
	if r.MinRangeValue != nil {
		low = *r.MinRangeValue
	}
	if r.MaxRangeValue != nil {
		high = *r.MaxRangeValue
	}
	from, to, isSpan := math.Inf(-1), math.Inf(1), false // of the result
	switch v := r.Parse().(type) {
	case labhealth.NumericResult:
		from, to = v.Value, v.Value
	case labhealth.RangeResult:
		isSpan = true
		if v.Low != nil {
			from = *v.Low
		}
		if v.High != nil {
			to = *v.High
		}
	default:
		return nil
	}
	minimum, maximum := barAxis(low, high, from, to)
	if !(minimum < maximum) || math.IsInf(maximum-minimum, 0) {
		return nil
	}
	x := func(v float64) float64 {
		if math.IsInf(v, 0) {
			return min(barWidth, max(0, v))
		}
		return min(barWidth, max(0, barMargin+(v-minimum)/(maximum-minimum)*(barWidth-2*barMargin)))
	}
	return &rangeBar{
		Tone: f.Tone, Label: strings.ToLower(f.Text), UsualX: x(low), UsualW: max(0, x(high)-x(low)), IsSpan: isSpan, X: x(from), W: max(1, x(to)-x(from)),
	}
}

// barAxis returns the ends of the axis: the usual range, room on both sides, and the result. They
// are equal if there is no usual range.
func barAxis(low, high, from, to float64) (minimum, maximum float64) {
	switch {
	case isFinite(low) && isFinite(high):
		room := (high - low) / 2
		minimum, maximum = low-room, high+room
		if low >= 0 {
			minimum = max(0, minimum)
		}
	case isFinite(low):
		minimum, maximum = min(0, low*2), low+math.Abs(low)*1.5
	case isFinite(high):
		minimum, maximum = min(0, high*2), high+math.Abs(high)/2
	default:
		return 0, 0
	}
	room := (maximum - minimum) / 12
	for _, v := range []float64{from, to} {
		switch {
		case !isFinite(v):
		case v > maximum:
			maximum = v + room
		case v < minimum:
			minimum = v - room
		}
	}
	return minimum, maximum
}
