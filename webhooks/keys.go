// The keys of summaries and samples.

package webhooks

import (
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// SummaryKey identifies a summary: two versions of it have the same key. It is comparable and can
// be used as a map key or a database key.
type SummaryKey struct {
	UserID   uuid.UUID // the service's ID of the user
	Resource string    // such as "activity", see [EventType.Resource]
	ID       uuid.UUID // the summary's ID
}

// SampleKey identifies a sample: two versions of it have the same key. It is comparable and can be
// used as a map key or a database key. Equal times give the same key, regardless of their offsets.
type SampleKey struct {
	UserID   uuid.UUID // the service's ID of the user
	Resource string    // such as "glucose", see [EventType.Resource]
	// Provider is the slug of the source's provider, the same in both shapes of [Source]; empty if
	// it is unknown.
	Provider string
	// SourceType is the type of the source or, if that is unknown, of the sample; empty if both
	// are. The type "unknown" counts as unknown.
	SourceType string
	UnixNano   int64 // the sample's timestamp or, if it has none, its start
}

// Series returns the part of the key that does not depend on the time.
func (k SampleKey) Series() Series { return Series{k.UserID, k.Resource, k.Provider, k.SourceType} }

// Series identifies samples that differ only in time. Its fields are those of [SampleKey].
type Series struct {
	UserID     uuid.UUID // the service's ID of the user
	Resource   string    // such as "glucose"
	Provider   string    // slug of the source's provider
	SourceType string    // type of the source or the sample
}

func (s Series) key(at int64) SampleKey {
	return SampleKey{s.UserID, s.Resource, s.Provider, s.SourceType, at}
}

// Keys holds the keys of the summary or the samples of an event.
type Keys struct {
	Summary SummaryKey  // zero if the event carries no summary
	Samples []SampleKey // one for each element of [Samples.Data], nil if the event carries no samples
}

var (
	// ErrNoUser is the error for an event with wearable data but without a readable user ID.
	// Storing such events under the zero ID would mix the data of different users.
	ErrNoUser error = permanentError("webhooks: the event has no readable user id")
	// ErrNoID is the error for a summary without a readable ID, and for an order that a program
	// created without one.
	ErrNoID error = permanentError("webhooks: the summary has no readable id")
)

// Keys returns the keys of the summary or the samples that the event carries, and none for an event
// that carries neither. The key of a sample is zero if it has neither a timestamp nor a start, or
// if its time does not fit SampleKey.UnixNano, which ends in September 1677 and April 2262. The
// error is [ErrNoUser] or [ErrNoID].
func (e *Event) Keys() (Keys, error) {
	if e == nil {
		return Keys{}, errNoEvent
	}
	switch data := e.Data.(type) {
	case *Samples:
		if e.UserID == uuid.Nil {
			return Keys{}, ErrNoUser
		}
		series := e.series(data)
		keys := make([]SampleKey, len(data.Data))
		for i := range data.Data {
			s := &data.Data[i]
			if at, ok := s.instant(); ok {
				keys[i] = SampleKey{series.UserID, series.Resource, series.Provider, typeIn(series, s), at}
			}
		}
		return Keys{Samples: keys}, nil
	case wearableSummary:
		return e.summaryKey(data.head().id)
	default: // nothing that has versions
		return Keys{}, nil
	}
}

// ProviderSlug returns the slug of the provider that the event's data comes from or is about, empty
// if the event has none. See [Source.ProviderSlug].
func (e *Event) ProviderSlug() string {
	if e == nil {
		return ""
	}
	switch data := e.Data.(type) {
	case *Samples:
		return e.series(data).Provider
	case wearableSummary:
		return data.head().source.ProviderSlug()
	case *WorkoutStreamNotice:
		return data.Source.ProviderSlug()
	case *HistoricalPull:
		return whatIsKnown(data.Provider)
	case *ProviderConnection:
		return data.ConnectedProvider().ProviderSlug()
	case *ConnectionError:
		return whatIsKnown(data.Provider)
	case *ProviderDevice:
		return whatIsKnown(data.Provider)
	default:
		return ""
	}
}

// UpdatedAt returns when the summary that the event carries last changed. It is zero if the event
// carries no summary or the time cannot be read. Source: public API reference only.
func (e *Event) UpdatedAt() time.Time {
	if e == nil {
		return time.Time{}
	}
	if data, ok := e.Data.(wearableSummary); ok {
		return data.head().updatedAt
	}
	return time.Time{}
}

func (e *Event) summaryKey(id uuid.UUID) (Keys, error) {
	switch {
	case e.UserID == uuid.Nil:
		return Keys{}, ErrNoUser
	case id == uuid.Nil:
		return Keys{}, ErrNoID
	}
	return Keys{Summary: SummaryKey{e.UserID, e.Type.Resource(), id}}, nil
}

// series returns the series of a batch. Its SourceType is empty if that of each sample is used: see
// typeIn.
func (e *Event) series(s *Samples) Series {
	provider := s.Source.ProviderSlug()
	if provider == "" && s.Provider != nil {
		provider = s.Provider.ProviderSlug()
	}
	return Series{e.UserID, e.Type.Resource(), provider, whatIsKnown(string(s.Source.Type))}
}

// typeIn returns the source type of a sample in a batch.
func typeIn(batch Series, s *Sample) string {
	if batch.SourceType != "" {
		return batch.SourceType
	}
	return whatIsKnown(s.Type)
}

func isKnown(s string) bool { return s != "" && s != string(SourceTypeUnknown) }

func whatIsKnown(s string) string {
	if isKnown(s) {
		return s
	}
	return ""
}

// instant returns the time of the sample's key; ok is false if there is none.
func (s *Sample) instant() (unixNano int64, ok bool) {
	t := s.Timestamp
	if t.IsZero() {
		t = s.Start
	}
	return newest.UnixNano(t)
}
