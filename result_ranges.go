// The reference range of a result, and its position in it.

package labhealth

import "strings"

// Range interprets ReferenceRange, such as "<5.7", "<=5.7", "< OR = 9.9" or "3.6-10.0", whose
// bounds are both included. It uses MinRangeValue and MaxRangeValue, as included bounds, only if
// ReferenceRange is nil: they do not tell whether a bound is included. ok is false if there is no
// range, or one in words. Source: public API reference only.
func (r *Result) Range() (bounds RangeResult, ok bool) {
	if r.ReferenceRange != nil {
		bounds, ok = parseRange(strings.TrimSpace(*r.ReferenceRange))
		return bounds, ok
	}
	return RangeResult{Low: r.MinRangeValue, High: r.MaxRangeValue}, r.MinRangeValue != nil || r.MaxRangeValue != nil
}

// Position is where a [Result] is in its reference range. See [Result.Position].
type Position int

// Values of [Position].
const (
	PositionUnknown Position = iota // the result or the range is no number, or the result is a bound on both sides
	PositionBelow
	PositionWithin
	PositionAbove
)

// Position compares the result ([Result.Parse]) with its range ([Result.Range]). A result that is a
// bound, such as "<0.5", has a position if all of its values have the same. It is arithmetic, not
// an interpretation: see [Result.Abnormal] for what the lab says.
func (r *Result) Position() Position {
	bounds, ok := r.Range()
	var low, high RangeResult // the ends of the result
	switch v := r.Parse().(type) {
	case NumericResult:
		low = RangeResult{Low: &v.Value}
		high = RangeResult{High: &v.Value}
	case RangeResult:
		low, high = v, v
	default:
		return PositionUnknown
	}
	switch {
	case !ok:
		return PositionUnknown
	case high.High != nil && isBelow(*high.High, high.HighStrict, bounds.Low, bounds.LowStrict):
		return PositionBelow
	case low.Low != nil && isBelow(-*low.Low, low.LowStrict, negated(bounds.High), bounds.HighStrict):
		return PositionAbove
	case bounds.holdsAbove(low) && bounds.holdsBelow(high):
		return PositionWithin
	}
	return PositionUnknown
}

// isBelow reports whether all values up to an end are below a bound. A strict end is no value
// itself, and a strict bound is not within.
func isBelow(end float64, endStrict bool, bound *float64, boundStrict bool) bool {
	return bound != nil && (end < *bound || end == *bound && (endStrict || boundStrict))
}

// holdsAbove reports whether no value of an interval is below the range.
func (r RangeResult) holdsAbove(v RangeResult) bool {
	return r.Low == nil || v.Low != nil && (*v.Low > *r.Low || *v.Low == *r.Low && (!r.LowStrict || v.LowStrict))
}

// holdsBelow reports whether no value of an interval is above the range.
func (r RangeResult) holdsBelow(v RangeResult) bool {
	return r.High == nil || v.High != nil && (*v.High < *r.High || *v.High == *r.High && (!r.HighStrict || v.HighStrict))
}

func negated(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(-*v)
}
