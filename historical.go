// The historical pulls of users: types and methods.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/google/uuid"
)

// HistoricalPullStatus is the status of a historical pull: the import of a user's older data from a
// provider. Values other than the constants occur. Source of all but [HistoricalPullRetrying]:
// public API reference only.
type HistoricalPullStatus string

// Values of [HistoricalPullStatus].
const (
	HistoricalPullSuccess    HistoricalPullStatus = "success"
	HistoricalPullFailure    HistoricalPullStatus = "failure"
	HistoricalPullInProgress HistoricalPullStatus = "in_progress"
	HistoricalPullScheduled  HistoricalPullStatus = "scheduled"
	// HistoricalPullRetrying occurs for connections that were made after 9 May 2025.
	HistoricalPullRetrying HistoricalPullStatus = "retrying"
)

// ListHistoricalPullsParams selects historical pulls. Zero fields are not sent.
type ListHistoricalPullsParams struct {
	UserID    uuid.UUID // pulls of one user
	Provider  string    // pulls from one [Provider] or lab, by its slug
	UserLimit int       // users per page; the service's default is 50
	// NextCursor is where the page starts: NextCursor of the previous page, or empty for the first.
	NextCursor string
}

// HistoricalPullPage is one page of historical pulls: the response of
// [UsersService.HistoricalPulls].
type HistoricalPullPage struct {
	Data []UserHistoricalPulls `json:"data" jsonread:"own"` // the users of the page
	// Next is the former name of NextCursor.
	//
	// Deprecated: use NextCursor.
	Next *string `json:"next"`
	// NextCursor is where the next page starts, nil on the last page.
	NextCursor *string `json:"next_cursor"`

	RawObject `json:"-"`
}

func (p *HistoricalPullPage) verify() error { return requireList(p.Data) }

func (p *HistoricalPullPage) elements() (any, *string) { return p.Data, p.NextCursor }

// UserHistoricalPulls holds the historical pulls of one user.
type UserHistoricalPulls struct {
	UserID   uuid.UUID                          `json:"user_id"`  // the service's ID of the user
	Provider map[string]ProviderHistoricalPulls `json:"provider"` // by slug of the provider

	RawObject `json:"-"`
}

// ProviderHistoricalPulls lists which resources of one provider were pulled and which were not.
type ProviderHistoricalPulls struct {
	Pulled    map[string]HistoricalPull `json:"pulled"`     // by resource
	NotPulled []Resource                `json:"not_pulled"` // resources

	RawObject `json:"-"`
}

// HistoricalPull is the pull of one resource.
type HistoricalPull struct {
	Status   HistoricalPullStatus   `json:"status"`   // status of the pull
	Timeline HistoricalPullTimeline `json:"timeline"` // when the pull took place
	// Release is the version of the service that pulled the data.
	Release string `json:"release"`
	// RangeStart is the start of the requested period, nil if unknown.
	RangeStart *time.Time `json:"range_start,omitzero"`
	// RangeEnd is the end of the requested period, nil if unknown.
	RangeEnd     *time.Time `json:"range_end,omitzero"`
	DaysWithData int64      `json:"days_with_data"`    // 0 by default
	TraceID      *string    `json:"trace_id,omitzero"` // nil if there is none
	// ErrorDetails is the reason for a failure or a retry, nil or null if there is none. It has no
	// fixed shape. The strings "provider_rate_limit_exceeded", "provider_unavailable",
	// "transport_failure", "resource_contention", "non_retriable_error", "unexpected_error" and
	// "retry_quota_exhausted" occur.
	ErrorDetails json.RawMessage `json:"error_details,omitzero"`

	RawObject `json:"-"`
}

// HistoricalPullTimeline holds the times of a pull.
type HistoricalPullTimeline struct {
	ScheduledAt time.Time  `json:"scheduled_at"`        // when the pull was scheduled
	StartedAt   *time.Time `json:"started_at,omitzero"` // nil before the pull starts
	EndedAt     *time.Time `json:"ended_at,omitzero"`   // nil before the pull ends

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

// HistoricalPulls returns one page of historical pulls: GET /v2/introspect/historical_pull. The
// interface specification documents only that they have a status, one of which is retrying, and
// error information. Source of the rest: public API reference only.
func (s *UsersService) HistoricalPulls(ctx context.Context, params ListHistoricalPullsParams, opts ...CallOption) (*HistoricalPullPage, error) {
	return call(ctx, coreOf(s), new(HistoricalPullPage), request{op: opHistoricalPulls, query: params}, opts)
}

// AllHistoricalPulls returns an iterator over the historical pulls, page by page. It behaves like
// [LabTestsService.All].
func (s *UsersService) AllHistoricalPulls(ctx context.Context, params ListHistoricalPullsParams, opts ...CallOption) iter.Seq2[*UserHistoricalPulls, error] {
	id := func(u *UserHistoricalPulls) uuid.UUID { return u.UserID }
	return cursorPages(ctx, opts, opHistoricalPulls, params.NextCursor, id, func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error) {
		params := params
		params.NextCursor = cursor
		return s.HistoricalPulls(ctx, params, opts...)
	})
}
