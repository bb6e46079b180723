// Numbers: integers and floats without an allocation.

package jsonread

import (
	"fmt"
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
	if digits += "0000000000000000000"[:zeros]; negative {
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

// Rounds reports whether f, which was decoded from a number, is written with other digits than the
// number has, apart from zeros at its ends: 0.1 and 0.10 are not rounded, and 0.1000000000000000001
// and 9007199254740993 are.
func Rounds(raw []byte, f float64) bool {
	n, _ := scanNumber(raw, 0)
	return n.rounds(raw, f)
}

// rounds is [Rounds] for n, which was scanned from raw.
func (n number) rounds(raw []byte, f float64) bool {
	if rounded, certain := n.misses(f); certain {
		return rounded
	}
	var text, received, written [32]byte
	shortest := strconv.AppendFloat(text[:0], f, 'e', -1, 64)
	digits, exponent, ok := decimal(received[:0], raw)
	shortestDigits, shortestExponent, _ := decimal(written[:0], shortest)
	return !ok || exponent != shortestExponent || string(digits) != string(shortestDigits)
}

// misses is rounds without the cost of strconv. It is certain about nearly all numbers of up to 19
// digits without an exponent, but not about what is exactly in the middle between two decimals or
// at the end of an interval.
func (n number) misses(f float64) (rounded, certain bool) {
	const hidden = 1 << 52
	if n.fraction == inexact {
		return false, false
	}
	// The decimals with as many digits after the point are further apart than the float64s around
	// f, so that each of them has its own, and none with fewer digits has the same.
	float := math.Float64bits(f)&(hidden-1) | hidden
	if n.mantissa < float {
		return false, true
	}
	for n.fraction > 0 && n.mantissa%10 == 0 {
		n.mantissa, n.fraction = n.mantissa/10, n.fraction-1
		if n.mantissa < float {
			return false, true
		}
	}
	// f is float / 2^shift. In units of 1 / (2^shift * 10^fraction), the float64s around f are ulp
	// apart and the decimals are step apart. The products overflow, but their difference, which is
	// at most ulp / 2, is correct.
	shift := 1023 + 52 - int(math.Float64bits(f)>>52&0x7ff)
	if n.fraction < 1 || n.fraction > 18 || uint(shift) > 59 || float == hidden {
		return false, false
	}
	ulp, step := powersOf10[n.fraction], uint64(1)<<shift
	above := int64(n.mantissa<<shift - float*ulp) // by which the number is above f
	// All numbers between these distances from the number become f.
	down, up := uint64(int64(ulp/2)+above), uint64(int64(ulp/2)-above)
	// Those with fewer digits that are next to the number.
	toLower := n.mantissa % 10 * step
	toUpper := 10*step - toLower
	switch off := 2 * max(above, -above); {
	case toLower < down, toUpper < up, uint64(off) > step: // one is shorter, or another one is nearer
		return true, true
	case toLower > down && toUpper > up && uint64(off) < step:
		return false, true
	}
	return false, false
}

// decimal appends the digits of a number, without zeros at their ends. The number is 0.digits times
// ten to the power of the exponent. ok is false if the exponent is far beyond any use.
func decimal(to, raw []byte) (digits []byte, exponent int, ok bool) {
	point := -1
	digits, ok = to, true
	for i, c := range raw {
		if c|0x20 == 'e' {
			var err error
			exponent, err = strconv.Atoi(string(raw[i+1:]))
			ok = err == nil && math.MinInt32 < exponent && exponent < math.MaxInt32
			break
		}
		switch c {
		case '-':
		case '.':
			point = len(digits)
		default:
			digits = append(digits, c)
		}
	}
	if point < 0 {
		point = len(digits)
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits, point = digits[1:], point-1
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if len(digits) == 0 {
		return nil, 0, true
	}
	return digits, point + exponent, ok
}

// Decimal returns a number without loss, in the notation in which encoding/json writes a float64.
func Decimal(raw []byte) string {
	digits, exponent, ok := decimal(nil, raw)
	sign := ""
	if raw[0] == '-' {
		sign = "-"
	}
	switch {
	case !ok:
		return string(raw)
	case len(digits) == 0:
		return sign + "0"
	case exponent <= -6 || exponent > 21:
		mantissa := string(digits[:1])
		if len(digits) > 1 {
			mantissa += "." + string(digits[1:])
		}
		return fmt.Sprintf("%s%se%+d", sign, mantissa, exponent-1)
	case exponent <= 0:
		return sign + "0." + strings.Repeat("0", -exponent) + string(digits)
	case exponent >= len(digits):
		return sign + string(digits) + strings.Repeat("0", exponent-len(digits))
	}
	return sign + string(digits[:exponent]) + "." + string(digits[exponent:])
}
