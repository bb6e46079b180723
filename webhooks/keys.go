package webhooks

import (
	"math"
	"time"

	"github.com/google/uuid"
)

// SummaryKey is the identity of a summary: of two versions with the same key, the newer one counts. It compares with == and can
// be a key of a map or a database.
type SummaryKey struct {
	UserID   uuid.UUID // the service's id of the user
	Resource string    // such as "activity", see [EventType.Resource]
	ID       uuid.UUID // the summary's id
}

// SampleKey is the identity of a sample: of two versions with the same key, the newer one counts. It compares with == and can
// be a key of a map or a database. Times that are equal give the same key, whatever their offsets.
type SampleKey struct {
	UserID   uuid.UUID // the service's id of the user
	Resource string    // such as "glucose", see [EventType.Resource]
	// Provider is the slug of the source's provider, the same in both shapes of [Source]; empty if it is not known.
	Provider string
	// SourceType is that of the source, else the type of the sample; empty if neither is known. "unknown" is not known.
	SourceType string
	UnixNano   int64 // the sample's timestamp, else its start
}

// Series returns what the key shares with other samples.
func (k SampleKey) Series() Series { return Series{k.UserID, k.Resource, k.Provider, k.SourceType} }

// Series is what samples have in common that differ in time only.
type Series struct {
	UserID     uuid.UUID // see [SampleKey]
	Resource   string    // see [SampleKey]
	Provider   string    // see [SampleKey]
	SourceType string    // see [SampleKey]
}

func (s Series) key(at int64) SampleKey {
	return SampleKey{s.UserID, s.Resource, s.Provider, s.SourceType, at}
}

// Keys are the identities of what an event carries.
type Keys struct {
	Summary SummaryKey  // zero if the event carries no summary
	Samples []SampleKey // one for each element of [Samples.Data], nil if the event carries no samples
}

var (
	// ErrNoUser is the error for an event with wearable data of which nobody knows whose they are. Under a zero id, data of
	// different people would be taken for the same.
	ErrNoUser error = permanentError("webhooks: the event has no readable user id")
	// ErrNoID is the error for a summary without a readable id.
	ErrNoID error = permanentError("webhooks: the summary has no readable id")
)

// Keys returns the identities of the summary or the samples that the event carries; none for an event that carries neither. The
// key of a sample with neither a timestamp nor a start, and of one from before the year 1678 or after 2261, is zero. The error
// is [ErrNoUser] or [ErrNoID].
func (e *Event) Keys() (Keys, error) {
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
	case *Activity:
		return e.summaryKey(data.ID)
	case *Summary:
		return e.summaryKey(data.ID)
	case *LabOrder, *WorkoutStreamNotice, *ProviderConnection, *HistoricalPull, *Unknown:
	}
	return Keys{}, nil
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

// series is what the samples share. Its SourceType is empty if each sample's own type takes its place: see typeIn.
func (e *Event) series(s *Samples) Series {
	provider := s.Source.ProviderSlug()
	if provider == "" && s.Provider != nil {
		provider = s.Provider.ProviderSlug()
	}
	return Series{e.UserID, e.Type.Resource(), provider, whatIsKnown(string(s.Source.Type))}
}

// typeIn is the source type of a sample in a batch.
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

// instant is when the sample was taken, for its key.
func (s *Sample) instant() (unixNano int64, ok bool) {
	t := s.Timestamp
	if t.IsZero() {
		t = s.Start
	}
	return nanos(t)
}

// nanos returns t in nanoseconds; ok is false if they are too many for an int64.
func nanos(t time.Time) (unixNano int64, ok bool) {
	const most = math.MaxInt64/1_000_000_000 - 1
	s := t.Unix()
	return t.UnixNano(), -most <= s && s <= most
}
