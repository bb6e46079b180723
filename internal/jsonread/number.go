package jsonread

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// maxNumber is the length of the longest number that is converted: far longer than a float64 can
// distinguish.
const maxNumber = 1000

// Integer decodes a number without a fraction: 3, and 3.0 or 3e0, which some encoders write for it.
func Integer(data []byte) (int64, bool) {
	n, ok := scanNumber(data, 0)
	if !ok {
		return 0, false
	}
	return n.int64(data[:n.end])
}

// Float decodes a number.
func Float(data []byte) (float64, bool) {
	n, ok := scanNumber(data, 0)
	if !ok {
		return 0, false
	}
	return n.float64(data[:n.end])
}

// int64 converts n, which was scanned from raw.
func (n number) int64(raw []byte) (int64, bool) {
	if i, ok := n.integer(); ok {
		return i, true
	}
	return parseInt(raw)
}

// integer converts n if it is written as an integer that an int64 has without its sign.
func (n number) integer() (i int64, ok bool) {
	i = int64(n.mantissa)
	if n.negative {
		i = -i
	}
	return i, n.fraction == 0 && n.mantissa <= math.MaxInt64
}

// parseInt converts a number without loss: 9007199254740993.0 and 1e18 are integers, and
// 9007199254740992.5 is none, although the nearest float64 is.
func parseInt(raw []byte) (int64, bool) {
	if len(raw) > maxNumber {
		return 0, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(raw)), "e")
	zeros, _ := strconv.Atoi(exponent) // the nearest int if it is too large
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole, negative := strings.CutPrefix(whole, "-")
	digits := strings.TrimRight(whole+fraction, "0")
	zeros = min(max(zeros, -2*maxNumber), 2*maxNumber) + len(whole) - len(digits)
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return 0, true
	}
	if zeros < 0 || len(digits)+zeros > maxIntDigits {
		return 0, false
	}
	if digits += strings.Repeat("0", zeros); negative {
		digits = "-" + digits
	}
	i, err := strconv.ParseInt(digits, 10, 64)
	return i, err == nil
}

// maxIntDigits is the number of digits of the largest int64.
const maxIntDigits = 19

// float64 converts n, which was scanned from raw.
func (n number) float64(raw []byte) (float64, bool) {
	if f, ok := n.exact(); ok {
		return f, true
	}
	if n.fraction == inexact {
		return parseFloat(raw)
	}
	f := quotient(n.mantissa, powersOf10[n.fraction])
	if n.negative {
		f = -f
	}
	return f, true
}

// exact converts n if a float64 has its mantissa and its power of ten exactly, so that dividing
// them is rounded once.
func (n number) exact() (f float64, ok bool) {
	if n.mantissa > 1<<53 || uint(n.fraction) > 15 {
		return 0, false
	}
	f = float64(n.mantissa) / float64(powersOf10[n.fraction])
	if n.negative {
		f = -f
	}
	return f, true
}

func parseFloat(raw []byte) (float64, bool) {
	if len(raw) > maxNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// powersOf10 are the powers of ten that a uint64 holds.
var powersOf10 = func() (t [20]uint64) {
	for i, n := 0, uint64(1); i < len(t); i, n = i+1, n*10 {
		t[i] = n
	}
	return t
}()

// quotient returns the float64 that is nearest to m/d, where d is not 0.
func quotient(m, d uint64) float64 {
	// With the highest bits of both set, m/d has 63 or 64 bits before the point if m is shifted by
	// 63 bits. What remains counts only as a bit below those that a float64 has, so that the
	// conversion rounds correctly.
	up, down := bits.LeadingZeros64(m), bits.LeadingZeros64(d)
	m, d = m<<up, d<<down
	q, rest := bits.Div64(m>>1, m<<63, d)
	if rest != 0 {
		q |= 1
	}
	return float64(q) * math.Float64frombits(uint64(1023-63+down-up)<<52)
}
