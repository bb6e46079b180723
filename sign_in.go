// Sign-in tokens for the apps of users.

package labhealth

// Source of this file: public API reference only.

import (
	"context"

	"github.com/google/uuid"
)

const opCreateSignInToken = "POST /v2/user/{user_id}/sign_in_token"

// SignInToken lets an app on the user's device send the user's health data, as from HealthKit or
// Health Connect. Anyone who has it can act as the user there.
type SignInToken struct {
	UserID      uuid.UUID `json:"user_id"`       // the user
	SignInToken Secret    `json:"sign_in_token"` // for the SDK of the app

	RawObject `json:"-"`
}

func (t *SignInToken) verify() error {
	if t.SignInToken == "" {
		return &unreadable{reason: "it has no readable sign-in token"}
	}
	return nil
}

// CreateSignInToken returns a token with which an app signs in as a user: POST
// /v2/user/{user_id}/sign_in_token. Create it in a backend, and send it to the user's device only:
// the API key must never be in an app.
func (s *UsersService) CreateSignInToken(ctx context.Context, userID uuid.UUID, opts ...CallOption) (*SignInToken, error) {
	return call(ctx, coreOf(s), new(SignInToken), request{op: opCreateSignInToken, ids: []string{userID.String()}}, opts)
}
