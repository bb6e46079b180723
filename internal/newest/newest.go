// Package newest decides which version of a summary or sample is stored: last write wins. It serves
// webhooks.Latest, whose documentation states the rule, and webhooks/sqlstore, so that both store
// the same content after the same deliveries.
package newest

import (
	"math"
	"time"
)

// DeliveryIDKey is the context key of the ID of a delivery, which both packages set.
type DeliveryIDKey struct{}

// Outcome is the result of applying a received version.
type Outcome uint8

// The outcomes.
const (
	Added   Outcome = iota // nothing was stored under the key
	Updated                // the received version replaces the stored one
	Same                   // both have the same content; the received version number is stored
	Older                  // the stored version stays
)

// Compare decides between the stored and the received version of one key. The greater version wins.
// Of two equal versions with different content, the one with the greater JSON wins. Compare calls
// documents, which returns the JSON of both, only for those.
func Compare(stored, received int64, same bool, documents func() (stored, received string)) Outcome {
	switch {
	case received < stored:
		return Older
	case same:
		return Same
	case received == stored:
		if s, r := documents(); r < s {
			return Older
		}
	}
	return Updated
}

// UnixNano returns t in nanoseconds since 1970. ok is false if t does not fit an int64, which ends
// in September 1677 and April 2262, or is within two seconds of these ends.
func UnixNano(t time.Time) (n int64, ok bool) {
	const limit = math.MaxInt64/1_000_000_000 - 1
	s := t.Unix()
	return t.UnixNano(), -limit <= s && s <= limit
}

// ClampUnixNano returns t in nanoseconds since 1970, or the nearest int64 if t does not fit.
func ClampUnixNano(t time.Time) int64 {
	n, ok := UnixNano(t)
	switch {
	case ok:
		return n
	case t.Unix() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// EndUnixNano returns the end of a range of times in nanoseconds since 1970: [ClampUnixNano] of t,
// or the greatest int64 if t is zero, which means no end.
func EndUnixNano(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return ClampUnixNano(t)
}
