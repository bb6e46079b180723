package console

import (
	"math"
	"strconv"
	"strings"
)

// scale is an axis with labels at equal distances.
type scale struct {
	ticks    []float64 // ascending, at least two; the first and the last are the ends
	decimals int       // of values on this axis
}

// scaleOf returns a scale from at most low to at least high with at most n intervals, whose length
// is 1, 2, 4 or 5 times a power of ten.
func scaleOf(low, high float64, n int) scale {
	if !isFinite(low) || !isFinite(high) {
		low, high = 0, 1
	}
	low, high = min(low, high), max(low, high)
	size := max(math.Abs(low), math.Abs(high))
	switch {
	case size < 1e-290:
		low, high = 0, 1
	case high/2-low/2 < size*1e-9:
		low, high = finite(low-size/20), finite(high+size/20)
	}
	exponent := int(math.Floor(math.Log10((high/2 - low/2) / float64(n) * 2)))
	best, least := scale{}, math.Inf(1)
	for e := exponent - 1; e <= exponent+1; e++ {
		for _, m := range []float64{1, 2, 4, 5} {
			step := times(m, e)
			from, to := math.Floor(low/step), math.Ceil(high/step)
			length := (to - from) * (step / 4)
			if count := to - from; count < 2 || count > float64(n) || length >= least {
				continue
			}
			ticks := make([]float64, 0, n+1)
			for i := from; i <= to; i++ {
				ticks = append(ticks, times(i*m, e))
			}
			best, least = scale{ticks, max(0, 1-int(math.Floor(math.Log10(step))))}, length
			if step >= 5 {
				best.decimals = 0
			}
		}
	}
	if best.ticks == nil || !allFinite(best.ticks) {
		return scale{[]float64{low, low/2 + high/2, high}, 0}
	}
	return best
}

// times returns m·10^e. It divides for negative e, so that 3·10^-1 is 0.3.
func times(m float64, e int) float64 {
	if e < 0 && e > -300 {
		return m / math.Pow10(-e)
	}
	return m * math.Pow10(e)
}

// y returns the place of a value from the top of a plot.
func (s scale) y(v, height float64) float64 {
	low, high := s.ticks[0], s.ticks[len(s.ticks)-1]
	return height * (1 - (v/2-low/2)/(high/2-low/2))
}

// text formats a value on the scale, with a thousands separator.
func (s scale) text(v float64) string {
	return readable(s.plain(v))
}

// plain formats a value on the scale as JSON does.
func (s scale) plain(v float64) string { return decimal(v, s.decimals) }

// decimal formats a number with at most so many decimals, and very large and small ones with an
// exponent.
func decimal(v float64, decimals int) string {
	if a := math.Abs(v); a >= 1e9 || a != 0 && a < 1e-4 {
		return strings.Replace(strconv.FormatFloat(v, 'g', 4, 64), "e+", "e", 1)
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

// readable writes -14918.5 as −14,918.5.
func readable(text string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "−", rest
	}
	whole, rest := text, ""
	if i := strings.IndexAny(text, ".e"); i >= 0 {
		whole, rest = text[:i], text[i:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + strings.Replace(rest, "e-", "e−", 1)
}

// labels returns the labels of the ticks, the highest first.
func (s scale) labels() []string {
	unit, suffix := 1.0, ""
	size := max(math.Abs(s.ticks[0]), math.Abs(s.ticks[len(s.ticks)-1]))
	switch {
	case size >= 1e6 && size < 1e9:
		unit, suffix = 1e6, "M"
	case size >= 1e3 && size < 1e6:
		unit, suffix = 1e3, "k"
	}
	labels := make([]string, 0, len(s.ticks))
	for i := len(s.ticks) - 1; i >= 0; i-- {
		v := s.ticks[i]
		label := readable(decimal(v/unit, 6))
		if size >= 1e9 || size < 1e-4 {
			label = readable(strings.Replace(strconv.FormatFloat(v, 'g', 2, 64), "e+", "e", 1))
		}
		if v != 0 {
			label += suffix
		}
		labels = append(labels, label)
	}
	return labels
}
