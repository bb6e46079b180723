// LinkService, which connects users to providers.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/google/uuid"
)

// LinkService connects users to providers. See [Client.Link]. Its endpoints may report an error
// with status 200. The error is then an *[APIError] with that status, and the outcome is
// [OutcomeRejected]. Source of its operations: public API reference only.
type LinkService struct{ core *core }

const (
	opCreateLinkToken = "POST /v2/link/token"
	opLinkOAuth       = "GET /v2/link/provider/oauth/{oauth_provider}"
	opLinkProviders   = "GET /v2/link/providers"
	opConnectDemo     = "POST /v2/link/connect/demo"
)

// CreateLinkTokenBody is the request of [LinkService.CreateToken].
type CreateLinkTokenBody struct {
	Redacted

	UserID      uuid.UUID `json:"user_id"`               // the user who will connect a provider
	Provider    *Provider `json:"provider,omitzero"`     // the provider to connect, nil to let the user choose
	RedirectURL *string   `json:"redirect_url,omitzero"` // where the user returns to, nil for the service's page
	// FilterOnProviders limits the choice of the user. It is omitted if nil, and must not be empty.
	FilterOnProviders []Provider `json:"filter_on_providers,omitzero"`
	// OnError is "redirect" to send the user to RedirectURL after an error, nil to show the error.
	OnError *string `json:"on_error,omitzero"`
	// OnClose is "redirect" to send the user to RedirectURL after closing the page, nil otherwise.
	OnClose *string `json:"on_close,omitzero"`
}

func (b *CreateLinkTokenBody) validate(v *validator) {
	v.requiredID("user_id", b.UserID)
	if b.FilterOnProviders != nil && len(b.FilterOnProviders) == 0 {
		v.add("filter_on_providers", "too_short", "must be left out or have at least one provider")
	}
}

// LinkToken lets a user connect a provider. Anyone who has it can connect one to the same user.
type LinkToken struct {
	LinkToken  Secret `json:"link_token"`   // the token itself, for a program that shows its own pages
	LinkWebURL Secret `json:"link_web_url"` // URL of the service's page, with the token in it

	RawObject `json:"-"`
}

func (t *LinkToken) verify() error {
	if t.LinkToken == "" {
		return &unreadable{reason: "it has no readable link token"}
	}
	return nil
}

// LinkRedirect is what the query of [CreateLinkTokenBody.RedirectURL] says when the user returns.
type LinkRedirect struct {
	Redacted

	State     ProviderLinkState // the parameter state: success or error; empty if it is missing
	ErrorType LinkErrorType     // the parameter error_type: why the link failed; empty if it did not
}

// ParseLinkRedirect reads the query of the URL to which the user returns. Anyone can send a user to
// this URL: the event provider.connection.created and [UsersService.ConnectedProviders] tell
// whether a provider is connected.
func ParseLinkRedirect(query url.Values) LinkRedirect {
	return LinkRedirect{State: ProviderLinkState(query.Get("state")), ErrorType: LinkErrorType(query.Get("error_type"))}
}

// LinkSource is a provider to which a user can be sent: the response of [LinkService.OAuth].
type LinkSource struct {
	ID          int64   `json:"id"`             // the service's number of the provider
	Name        string  `json:"name"`           // display name
	Slug        string  `json:"slug"`           // stable identifier; see [Provider]
	Description string  `json:"description"`    // one sentence
	Logo        string  `json:"logo"`           // URL of an icon
	Group       *string `json:"group,omitzero"` // nil if there is none
	// OAuthURL is the URL to which to send the user, nil if the provider has none. It may hold a
	// token.
	OAuthURL *Secret `json:"oauth_url,omitzero"`
	// AuthType is how a user signs in: oauth if it is absent, nil if it is null.
	AuthType *SourceAuthType `json:"auth_type,omitzero" default:"oauth"`
	// SourceType is the kind of the provider: device if it is absent, nil if it is null.
	SourceType *SourceType `json:"source_type,omitzero" default:"device"`
	// IsActive is whether users can connect it: true if it is absent, nil if it is null.
	IsActive *bool `json:"is_active,omitzero" default:"true"`
	// BackfillNumDays is the number of past days that are read, nil if not documented.
	BackfillNumDays *int64 `json:"backfill_num_days,omitzero"`

	RawObject `json:"-"`
}

func (s *LinkSource) verify() error {
	if s.Slug == "" {
		return &unreadable{reason: "it has no readable slug"}
	}
	return nil
}

// LinkProvider is a provider that a user can choose: an element of the response of
// [LinkService.Providers].
type LinkProvider struct {
	ID          int64  `json:"id"`          // the service's number of the provider
	Name        string `json:"name"`        // display name
	Slug        string `json:"slug"`        // stable identifier; see [Provider]
	Description string `json:"description"` // one sentence
	Logo        string `json:"logo"`        // URL of an icon
	// OAuthURL is the URL to which to send the user, nil if the provider has none. It may hold a
	// token.
	OAuthURL *Secret `json:"oauth_url,omitzero"`
	// AuthType is how a user signs in: oauth if it is absent, nil if it is null.
	AuthType *SourceAuthType `json:"auth_type,omitzero" default:"oauth"`
	// FormComponents describes the form of a provider with a password or an email. It is an object
	// without a documented shape, nil if absent.
	FormComponents json.RawMessage `json:"form_components,omitzero"`

	RawObject `json:"-"`
}

// ConnectDemoBody is the request of [LinkService.ConnectDemo].
type ConnectDemoBody struct {
	UserID   uuid.UUID `json:"user_id"`  // the user who gets the connection
	Provider Provider  `json:"provider"` // apple_health_kit, fitbit, freestyle_libre or oura
}

func (b *ConnectDemoBody) validate(v *validator) {
	v.requiredID("user_id", b.UserID)
	v.required("provider", string(b.Provider))
}

// DemoConnection is the response of [LinkService.ConnectDemo].
type DemoConnection struct {
	Success bool   `json:"success"` // whether the user is connected
	Detail  string `json:"detail"`  // human-readable

	RawObject `json:"-"`
}

func (d *DemoConnection) verify() error {
	if !d.Success && d.Detail == "" {
		return &unreadable{reason: "it has no readable result"}
	}
	return nil
}

// CreateToken starts the connection of a user to a provider: POST /v2/link/token. Send the user to
// LinkWebURL. The connection is reported by the event provider.connection.created.
func (s *LinkService) CreateToken(ctx context.Context, body CreateLinkTokenBody, opts ...CallOption) (*LinkToken, error) {
	return call(ctx, coreOf(s), new(LinkToken), request{op: opCreateLinkToken, body: &body, errorsIn200: true}, opts)
}

// OAuth returns a provider with the URL to which to send the user: GET
// /v2/link/provider/oauth/{oauth_provider}. See [Provider] for those with OAuth. A deployment may
// require the link token in a header whose name is not documented: see [WithHeader].
func (s *LinkService) OAuth(ctx context.Context, provider Provider, opts ...CallOption) (*LinkSource, error) {
	return call(ctx, coreOf(s), new(LinkSource), request{op: opLinkOAuth, ids: []string{string(provider)}, errorsIn200: true}, opts)
}

// Providers returns the providers that a user can choose: GET /v2/link/providers. A deployment may
// require the link token in a header, as for [LinkService.OAuth].
func (s *LinkService) Providers(ctx context.Context, opts ...CallOption) ([]LinkProvider, error) {
	return callList[LinkProvider](ctx, coreOf(s), request{op: opLinkProviders, errorsIn200: true}, opts)
}

// ConnectDemo connects a user to a provider with invented data: POST /v2/link/connect/demo. Check
// Success of the result.
func (s *LinkService) ConnectDemo(ctx context.Context, body ConnectDemoBody, opts ...CallOption) (*DemoConnection, error) {
	return call(ctx, coreOf(s), new(DemoConnection), request{op: opConnectDemo, body: &body, errorsIn200: true}, opts)
}
