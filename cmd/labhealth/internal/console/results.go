package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/labhealth/labhealth-go"
)

// maxResults is the number of results that are shown.
const maxResults = 500

// resultsView is the data of the template "results".
type resultsView struct {
	Count   string // such as "10 of 11 markers, partial"
	Flags   []flagCount
	Rows    []resultRow
	More    int
	Legacy  *jsonView      // results of older orders
	Problem string         // why they could not be read
	Markers []markerChoice // that can be corrected
}

type flagCount struct {
	Flag flag
	Text string
}

// flag is the mark of a result. Tone is crit, hi, lo or empty.
type flag struct{ Tone, Text string }

type markerChoice struct {
	ID   int64
	Name string
}

// resultRow is a result, or a missing one.
type resultRow struct {
	Name, Value, Unit, Usual, LOINC string
	Flag                            flag
	Bar                             *rangeBar
	Note                            string // in place of the bar
	Missing                         bool
}

// newResults returns the results of an order, or nil if there are none.
func (c *Console) newResults(ctx context.Context, o *labhealth.Order, reveal bool) *resultsView {
	results, err := c.readResults(ctx, o.ID)
	switch {
	case errors.Is(err, labhealth.ErrNoResults) || errors.Is(err, labhealth.ErrNotFound) || err == nil && results == nil:
		return nil
	case err != nil:
		return &resultsView{Problem: visible(err.Error())}
	}
	v := &resultsView{}
	if legacy := results.LegacyResults(); legacy != nil {
		view := viewJSON(legacy, jsonOptions{Reveal: reveal})
		v.Legacy = &view
	}
	n := min(len(results.Results), maxResults)
	for i := range results.Results[:n] {
		v.Rows = append(v.Rows, newResultRow(&results.Results[i]))
	}
	v.More = len(results.Results) - n
	for _, m := range results.MissingResults[:min(len(results.MissingResults), maxResults)] {
		v.Rows = append(v.Rows, missingRow(m))
	}
	v.count(o, results)
	if c.sandbox() {
		for _, m := range o.LabTest.Markers {
			v.Markers = append(v.Markers, markerChoice{m.ID, visible(m.Name)})
		}
	}
	return v
}

// count sums up the results.
func (v *resultsView) count(o *labhealth.Order, results *labhealth.OrderResults) {
	n, markers := len(results.Results), len(o.LabTest.Markers)
	v.Count = countOf(n, "result")
	if markers > n {
		v.Count = fmt.Sprintf("%d of %d markers", n, markers)
	}
	if results.Metadata.Status == labhealth.ResultsStatusPartial {
		v.Count += ", partial"
	}
	counts := map[string]int{}
	for _, row := range v.Rows {
		counts[row.Flag.Tone]++
	}
	for _, f := range []flag{{"crit", "critical"}, {"hi", "above"}, {"lo", "below"}} {
		if counts[f.Tone] > 0 {
			v.Flags = append(v.Flags, flagCount{f, fmt.Sprintf("%d %s", counts[f.Tone], f.Text)})
		}
	}
}

func newResultRow(r *labhealth.Result) resultRow {
	row := resultRow{
		Name: cmp.Or(r.Name, r.Slug, "no name"), Value: cmp.Or(r.Result, "none"), Unit: deref(r.Unit), LOINC: deref(r.LOINC), Flag: flagOf(r), Usual: usualRange(r),
	}
	row.Bar = newRangeBar(r, row.Flag)
	switch {
	case len(row.Value) > 120:
		row.Value, row.Note = "see note", shorten([]byte(row.Value))
	case row.Bar != nil:
	case row.Usual == "":
		row.Note = "no range is given"
	default:
		row.Note = "no number, no range to draw"
	}
	return row
}

func missingRow(m labhealth.MissingResult) resultRow {
	reason := words(string(m.InferredFailureType))
	if note := deref(m.Note); note != "" {
		reason += ": " + shorten([]byte(note))
	}
	return resultRow{Name: cmp.Or(m.Name, m.Slug, "no name"), Note: reason, LOINC: deref(m.LOINC), Flag: flag{"", "Missing"}, Missing: true}
}

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
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
	return firstChars(deref(r.ReferenceRange), 40)
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
