package labhealth

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/google/uuid"
)

// HistoricalPullStatus is the state of a pull of a user's older data. Values other than the constants
// occur. Source of all but [HistoricalPullRetrying]: public API reference only.
type HistoricalPullStatus string

// States of a historical pull.
const (
	HistoricalPullSuccess    HistoricalPullStatus = "success"
	HistoricalPullFailure    HistoricalPullStatus = "failure"
	HistoricalPullInProgress HistoricalPullStatus = "in_progress"
	HistoricalPullScheduled  HistoricalPullStatus = "scheduled"
	// HistoricalPullRetrying is for connections made after 9 May 2025.
	HistoricalPullRetrying HistoricalPullStatus = "retrying"
)

// ListHistoricalPullsParams selects what [UsersService.HistoricalPulls] reads. Zero fields are not sent.
// Source: public API reference only.
type ListHistoricalPullsParams struct {
	UserID     uuid.UUID // one user
	Provider   string    // one provider, by its slug
	UserLimit  int       // users on a page
	NextCursor string    // where the page begins: NextCursor of the page before; empty for the first
}

// HistoricalPullPage is one page of the state of historical pulls: the response of
// [UsersService.HistoricalPulls]. Source: public API reference only.
type HistoricalPullPage struct {
	Data       []UserHistoricalPulls `json:"data" jsonread:"own"`  // the users of the page
	NextCursor *string               `json:"next_cursor,omitzero"` // where the next page begins; nil at the end of the list

	RawObject `json:"-"`
}

func (p *HistoricalPullPage) verify() error { return requireList(p.Data) }

func (p *HistoricalPullPage) elements() ([]UserHistoricalPulls, *string) { return p.Data, p.NextCursor }

// UserHistoricalPulls is the historical pulls of one user. Source: public API reference only.
type UserHistoricalPulls struct {
	UserID   uuid.UUID                          `json:"user_id"`  // the service's id of the user
	Provider map[string]ProviderHistoricalPulls `json:"provider"` // by the provider's slug

	RawObject `json:"-"`
}

// ProviderHistoricalPulls is what was pulled from one provider, and what was not.
// Source: public API reference only.
type ProviderHistoricalPulls struct {
	Pulled    map[string]HistoricalPull `json:"pulled"`     // by resource
	NotPulled []string                  `json:"not_pulled"` // resources

	RawObject `json:"-"`
}

// HistoricalPull is one pull of one resource. Source: public API reference only.
type HistoricalPull struct {
	Status       HistoricalPullStatus   `json:"status"`               // how far it is
	Timeline     HistoricalPullTimeline `json:"timeline"`             // when
	Release      string                 `json:"release"`              // the version of the service that pulled
	RangeStart   *time.Time             `json:"range_start,omitzero"` // beginning of the time that was asked for, nil if not known
	RangeEnd     *time.Time             `json:"range_end,omitzero"`   // end of the time that was asked for, nil if not known
	DaysWithData int64                  `json:"days_with_data"`       // 0 by default
	TraceID      *string                `json:"trace_id,omitzero"`    // nil if there is none
	// ErrorDetails says why it failed or is retried. It has no fixed shape; the texts "provider_rate_limit_exceeded",
	// "provider_unavailable", "transport_failure", "resource_contention", "non_retriable_error", "unexpected_error" and
	// "retry_quota_exhausted" occur. It is nil or null if there is nothing to say.
	ErrorDetails json.RawMessage `json:"error_details,omitzero"`

	RawObject `json:"-"`
}

// HistoricalPullTimeline is when a pull happened. Source: public API reference only.
type HistoricalPullTimeline struct {
	ScheduledAt time.Time  `json:"scheduled_at"`        // when it was planned
	StartedAt   *time.Time `json:"started_at,omitzero"` // nil before it started
	EndedAt     *time.Time `json:"ended_at,omitzero"`   // nil before it ended

	RawObject `json:"-"`
}

func (p ListHistoricalPullsParams) validate(v *validator) { v.atLeast("user_limit", p.UserLimit, 0) }

func (p ListHistoricalPullsParams) query() queryValues {
	q := newQuery()
	q.setID("user_id", p.UserID)
	q.setString("provider", p.Provider)
	q.setInt("user_limit", p.UserLimit)
	q.setString("next_cursor", p.NextCursor)
	return q
}

// HistoricalPulls returns one page of the state of historical pulls: GET
// /v2/introspect/historical_pull. The interface specification says only that they have a status, one
// of which is retrying, and error information. Source of the rest: public API reference only.
func (s *UsersService) HistoricalPulls(ctx context.Context, params ListHistoricalPullsParams, opts ...CallOption) (*HistoricalPullPage, error) {
	return call[HistoricalPullPage](ctx, s.core, request{op: opPullStatus, query: params}, opts)
}

// AllHistoricalPulls returns an iterator over the state of historical pulls, page by page, with the
// guarantees of [LabTestsService.All].
func (s *UsersService) AllHistoricalPulls(ctx context.Context, params ListHistoricalPullsParams, opts ...CallOption) iter.Seq2[*UserHistoricalPulls, error] {
	id := func(u *UserHistoricalPulls) uuid.UUID { return u.UserID }
	return cursorPages(opPullStatus, params.NextCursor, id, func(cursor string) (*HistoricalPullPage, error) {
		params := params
		params.NextCursor = cursor
		return s.HistoricalPulls(ctx, params, opts...)
	})
}
