// The connections of users to providers.

package labhealth

// Source of this file: public API reference only.

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// ConnectionErrorType is the reason why a connection to a provider does not work. Values other than
// the constants occur.
type ConnectionErrorType string

// Values of [ConnectionErrorType].
const (
	ConnectionErrorTokenRefreshFailed        ConnectionErrorType = "token_refresh_failed"
	ConnectionErrorWebhookRegistrationFailed ConnectionErrorType = "webhook_registration_failed"
	ConnectionErrorUserNotFound              ConnectionErrorType = "user_not_found"
	ConnectionErrorDeregisteredPerProvider   ConnectionErrorType = "deregistered_per_provider"
	ConnectionErrorRequiredScopesNotGranted  ConnectionErrorType = "required_scopes_not_granted"
	ConnectionErrorProviderCredentialError   ConnectionErrorType = "provider_credential_error"
	ConnectionErrorProviderPasswordExpired   ConnectionErrorType = "provider_password_expired"
	ConnectionErrorUnknown                   ConnectionErrorType = "unknown"
)

// Availability reports whether a resource of a connected provider can be read. Values other than
// the constants occur.
type Availability string

// Values of [Availability].
const (
	AvailabilityAvailable   Availability = "available"
	AvailabilityUnavailable Availability = "unavailable"
)

const (
	opConnectedProviders = "GET /v2/user/providers/{user_id}"
	opDisconnect         = "DELETE /v2/user/{user_id}/{provider}"
)

// ConnectedProvider is a provider that a user has connected, with the state of the connection.
type ConnectedProvider struct {
	Name      string    `json:"name"`       // display name
	Slug      string    `json:"slug"`       // stable identifier; see [Provider]
	Logo      string    `json:"logo"`       // URL of an icon
	CreatedOn time.Time `json:"created_on"` // when the user connected it
	// Status is the state of the connection. Its values are not documented; "connected" and "error"
	// are usual.
	Status string `json:"status"`
	// ExternalUserID is the provider's ID of the user, nil if unknown.
	ExternalUserID *string `json:"external_user_id,omitzero"`
	// ErrorDetails is why the connection does not work, nil if it works.
	ErrorDetails *ConnectionErrorDetails `json:"error_details,omitzero"`
	// ResourceAvailability reports for each [Resource] whether it can be read.
	ResourceAvailability map[string]ResourceAvailability `json:"resource_availability"`

	RawObject `json:"-"`
}

// ConnectionErrorDetails is why a connection does not work.
type ConnectionErrorDetails struct {
	ErrorType    ConnectionErrorType `json:"error_type"`    // the reason
	ErrorMessage string              `json:"error_message"` // human-readable
	ErroredAt    time.Time           `json:"errored_at"`    // when it happened

	RawObject `json:"-"`
}

// ResourceAvailability reports whether a resource of a connected provider can be read.
type ResourceAvailability struct {
	Status Availability `json:"status"` // whether it can be read
	// ScopeRequirements has the scopes that the resource needs, nil if the provider has no scopes.
	ScopeRequirements *ScopeRequirementsGrants `json:"scope_requirements,omitzero"`

	RawObject `json:"-"`
}

// ScopeRequirementsGrants has the scopes that a resource needs, by the decision of the user.
type ScopeRequirementsGrants struct {
	UserGranted ScopeRequirements `json:"user_granted"` // scopes that the user granted
	UserDenied  ScopeRequirements `json:"user_denied"`  // scopes that the user denied

	RawObject `json:"-"`
}

// ScopeRequirements lists scopes of a provider.
type ScopeRequirements struct {
	Required []string `json:"required"` // scopes without which the resource is unavailable
	Optional []string `json:"optional"` // scopes that add data

	RawObject `json:"-"`
}

// ConnectedProviders returns the providers that a user has connected: GET
// /v2/user/providers/{user_id}. The keys of the map are not documented; "providers" is usual.
func (s *UsersService) ConnectedProviders(ctx context.Context, userID uuid.UUID, opts ...CallOption) (map[string][]ConnectedProvider, error) {
	var list connectedProviders
	r := request{op: opConnectedProviders, ids: []string{userID.String()}, out: &list}
	if err := coreOf(s).do(ctx, r, opts); err != nil {
		return nil, err
	}
	return list.Lists, nil
}

// connectedProviders is a response that is a map, decoded as an object with that map.
type connectedProviders struct {
	Lists map[string][]ConnectedProvider `json:"lists"`
}

func (c *connectedProviders) read(resp *transport.Response) error { return readJSON(resp, c.decode) }

func (c *connectedProviders) decode(document []byte) error {
	if err := jsonread.Valid(document); err != nil || document[0] != '{' {
		return cmp.Or(err, error(errNoObject))
	}
	if err := jsonread.Unmarshal(fmt.Appendf(nil, `{"lists":%s}`, document), c); err != nil {
		return err
	}
	for _, list := range c.Lists {
		if list != nil {
			return nil
		}
	}
	if len(c.Lists) > 0 {
		return errNoList
	}
	return nil
}

// Disconnect ends the connection of a user to a provider: DELETE /v2/user/{user_id}/{provider}. The
// error for a provider that is not connected matches [ErrNotFound].
func (s *UsersService) Disconnect(ctx context.Context, userID uuid.UUID, provider Provider, opts ...CallOption) (*UserDeletion, error) {
	r := request{op: opDisconnect, ids: []string{userID.String(), string(provider)}}
	return call(ctx, coreOf(s), new(UserDeletion), r, opts)
}
