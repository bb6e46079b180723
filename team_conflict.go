// The error for an integration team ID that is in use.

package labhealth

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// TeamConflictError reports that a team could not be created or updated because its integration
// team ID belongs to another team. It wraps the *[APIError]. Its text does not have the ID of the
// team; its JSON does.
type TeamConflictError struct {
	TeamID uuid.UUID // ID of the team that the integration team ID belongs to

	api *APIError
}

// Error returns the message of the *[APIError].
func (e *TeamConflictError) Error() string { return orZero(e).api.orReason(teamExists) }

// Unwrap returns the *[APIError].
func (e *TeamConflictError) Unwrap() error { return orZero(e).api.orNil() }

// Format prints the result of [TeamConflictError.Error] under every verb.
func (e TeamConflictError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// teamConflict returns a *TeamConflictError if the body of e has the existing team's ID.
func teamConflict(e *APIError) error {
	if e.StatusCode != http.StatusConflict {
		return e
	}
	for _, c := range e.conflicts() {
		if c.TeamID != uuid.Nil {
			e.reason = teamExists
			return &TeamConflictError{c.TeamID, e}
		}
	}
	return e
}
