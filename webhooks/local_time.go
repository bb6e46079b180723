// The user's clock, also of sources that label it as UTC.

package webhooks

import (
	"slices"
	"time"
)

// wallClockProviders label the user's wall clock as UTC. freestyle_libre_ble does not.
var wallClockProviders = []string{"abbott_libreview", "freestyle_libre"}

// WallClock reports whether the timestamps of the source are the clock on the user's wall, although
// they are labeled as UTC or have no offset: their instants are unknown, and their TimezoneOffset
// has no meaning. That is so for abbott_libreview and freestyle_libre. Source: public API reference
// only.
func (s Source) WallClock() bool { return slices.Contains(wallClockProviders, s.ProviderSlug()) }

// LocalTime returns the timestamp of a sample of s by the user's clock, for the day or the hour of
// the user. It is in the zone of the TimezoneOffset. For a source with [Source.WallClock], it is
// the timestamp as received, whose zone has no meaning. ok is false if the sample has no timestamp
// or no offset: then only the user's time zone can tell, such as [labhealth.User.FallbackTimeZone].
func (s *Samples) LocalTime(sample *Sample) (t time.Time, ok bool) {
	switch {
	case sample == nil, sample.Timestamp.IsZero():
		return time.Time{}, false
	case s.Source.WallClock(), s.Provider != nil && s.Provider.WallClock():
		return sample.Timestamp, true
	case !sample.hasOffset():
		return time.Time{}, false
	}
	return sample.Timestamp.In(time.FixedZone("", int(sample.TimezoneOffset))), true
}
