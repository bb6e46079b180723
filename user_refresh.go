// The refresh of the data of a user.

package labhealth

// Source of this file: public API reference only.

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const opRefreshUser = "POST /v2/user/refresh/{user_id}"

// RefreshUserParams configures [UsersService.Refresh].
type RefreshUserParams struct {
	// Timeout is how long the service waits for the providers, from 5 to 60 seconds. The default of
	// the service is 10 seconds.
	Timeout time.Duration
}

func (p RefreshUserParams) validate(v *validator) {
	if p.Timeout != 0 && (p.Timeout < 5*time.Second || p.Timeout > time.Minute) {
		v.add("timeout", "value_error", "must be between 5 and 60 seconds")
	}
}

func (p RefreshUserParams) query() queryValues {
	q := newQuery()
	if p.Timeout != 0 {
		q.Set("timeout", strconv.FormatFloat(p.Timeout.Seconds(), 'f', -1, 64))
	}
	return q
}

// UserRefresh is the response of [UsersService.Refresh]. A source is a provider and a resource,
// such as "withings/workouts"; its case varies.
type UserRefresh struct {
	Success           bool      `json:"success"`             // always true
	UserID            uuid.UUID `json:"user_id"`             // the service's ID of the user
	RefreshedSources  []string  `json:"refreshed_sources"`   // sources whose data is up to date
	InProgressSources []string  `json:"in_progress_sources"` // sources that were not done in time, and continue
	FailedSources     []string  `json:"failed_sources"`      // sources that could not be read

	RawObject `json:"-"`
}

func (r *UserRefresh) verify() error { return requireID(r.UserID, "user") }

// UserRefreshError reports that no source of a user could be refreshed. It wraps the *[APIError] of
// the response.
type UserRefreshError struct {
	FailedSources []string `json:"-"` // the sources that could not be read

	api *APIError
}

// Error returns the message of the *[APIError].
func (e *UserRefreshError) Error() string { return orZero(e).api.orReason(nothingRefreshed) }

// Format prints the error message under every verb, so that %#v does not print the sources.
func (e UserRefreshError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Unwrap returns the *[APIError].
func (e *UserRefreshError) Unwrap() error { return orZero(e).api.orNil() }

// userRefreshError returns e as a *UserRefreshError if its body has the sources that failed.
func userRefreshError(e *APIError) error {
	var body struct {
		FailedSources []string `json:"failed_sources"`
	}
	if e.StatusCode != http.StatusBadRequest || jsonread.Unmarshal(e.document(), &body) != nil || body.FailedSources == nil {
		return e
	}
	e.reason = nothingRefreshed
	return &UserRefreshError{body.FailedSources, e}
}

// Refresh makes the service read the newest data of a user from the connected providers: POST
// /v2/user/refresh/{user_id}. It returns when all have responded or params.Timeout has passed; data
// arrives as events. The service allows 8 calls per hour and user, and documents no status for
// further ones. If no provider responds, the error is a *[UserRefreshError].
//
// An attempt may take 15 seconds longer than params.Timeout, even if [RetryPolicy.WriteTimeout] is
// shorter.
func (s *UsersService) Refresh(ctx context.Context, userID uuid.UUID, params RefreshUserParams, opts ...CallOption) (*UserRefresh, error) {
	return call(ctx, coreOf(s), new(UserRefresh), request{
		op: opRefreshUser, ids: []string{userID.String()}, query: params, refine: userRefreshError,
		minTimeout: cmp.Or(params.Timeout, 10*time.Second) + 15*time.Second,
	}, opts)
}
