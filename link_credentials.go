// Links with a password, a code or an email address.

package labhealth

// Source of this file: public API reference only.

import "context"

const (
	opLinkPassword = "POST /v2/link/provider/password/{provider}"
	opLinkMFA      = "POST /v2/link/provider/password/{provider}/complete_mfa"
	opLinkEmail    = "POST /v2/link/provider/email/{provider}"
)

// ConnectPasswordBody is the request of [LinkService.ConnectPassword].
type ConnectPasswordBody struct {
	Redacted

	Username string `json:"username"` // the user's name at the provider
	Password Secret `json:"password"` // the user's password at the provider
	// Region is where the user's account is: a two-letter code such as us, de or gb, nil for the
	// default.
	Region *string `json:"region,omitzero"`
}

func (b *ConnectPasswordBody) validate(v *validator) {
	v.required("username", b.Username)
	v.required("password", string(b.Password))
}

// completeMFA is the body of [LinkService.CompletePasswordMFA].
type completeMFA struct {
	MFACode Secret `json:"mfa_code"`
}

func (b *completeMFA) validate(v *validator) { v.required("mfa_code", string(b.MFACode)) }

// ConnectEmailBody is the request of [LinkService.ConnectEmail].
type ConnectEmailBody struct {
	Redacted

	Email string `json:"email"` // of the user's account at the provider
	// Provider repeats the provider of the path.
	//
	// Deprecated: the path has it.
	Provider *Provider `json:"provider,omitzero"`
	// Region is where the user's account is: a two-letter code such as us, de or gb, nil for the
	// default.
	Region *string `json:"region,omitzero"`
}

func (b *ConnectEmailBody) validate(v *validator) { v.email("email", b.Email) }

// ProviderLink is the state of a link with a password.
type ProviderLink struct {
	State       ProviderLinkState `json:"state"`                 // whether the provider is connected
	RedirectURL *Secret           `json:"redirect_url,omitzero"` // where to send the user, nil if nowhere; it may hold a token
	ErrorType   *LinkErrorType    `json:"error_type,omitzero"`   // nil: an error is returned as an [APIError]
	Error       *string           `json:"error,omitzero"`        // nil: an error is returned as an [APIError]
	// ProviderMFA is set if State is [ProviderLinkPendingMFA]: the provider has sent the user a
	// code, for [LinkService.CompletePasswordMFA].
	ProviderMFA *ProviderMFA `json:"provider_mfa,omitzero"`
	// Provider repeats the provider of the path.
	//
	// Deprecated: the path has it.
	Provider Provider `json:"provider"`
	// Connected is whether the provider is connected.
	//
	// Deprecated: use State.
	Connected bool `json:"connected"`
	// ProviderID is the user's ID at the provider, nil if unknown.
	//
	// Deprecated: there is no replacement.
	ProviderID *string `json:"provider_id"`

	RawObject `json:"-"`
}

func (l *ProviderLink) verify() error {
	if l.State == "" {
		return &unreadable{reason: "it has no readable state"}
	}
	return nil
}

// ProviderLinkState is the state of a [ProviderLink]. Values other than the constants occur.
type ProviderLinkState string

// Values of [ProviderLinkState].
const (
	ProviderLinkSuccess    ProviderLinkState = "success"
	ProviderLinkError      ProviderLinkState = "error" // never in a result: see [LinkService]
	ProviderLinkPendingMFA ProviderLinkState = "pending_provider_mfa"
)

// LinkErrorType is why a link failed. Values other than the constants occur.
type LinkErrorType string

// Values of [LinkErrorType].
const (
	LinkErrorInvalidToken             LinkErrorType = "invalid_token"
	LinkErrorTokenExpired             LinkErrorType = "token_expired"
	LinkErrorTokenNotValidated        LinkErrorType = "token_not_validated"
	LinkErrorTokenConsumed            LinkErrorType = "token_consumed"
	LinkErrorProviderCredentialError  LinkErrorType = "provider_credential_error"
	LinkErrorProviderPasswordExpired  LinkErrorType = "provider_password_expired"
	LinkErrorProviderAPIError         LinkErrorType = "provider_api_error"
	LinkErrorUnsupportedRegion        LinkErrorType = "unsupported_region"
	LinkErrorDuplicateConnection      LinkErrorType = "duplicate_connection"
	LinkErrorRequiredScopesNotGranted LinkErrorType = "required_scopes_not_granted"
	LinkErrorIncorrectMFACode         LinkErrorType = "incorrect_mfa_code"
	LinkErrorUserCancelled            LinkErrorType = "user_cancelled"
)

// ProviderMFA is the second factor for which a provider asks.
type ProviderMFA struct {
	Method string `json:"method"` // how the code was sent: sms or email
	Hint   string `json:"hint"`   // where it was sent, in part

	RawObject `json:"-"`
}

// ConnectPassword connects a user to a provider with the user's password there: POST
// /v2/link/provider/password/{provider}. See [Provider] for those with passwords. The user is that
// of the link token: a deployment may require it in a header, as for [LinkService.OAuth]. If State
// of the result is [ProviderLinkPendingMFA], continue with [LinkService.CompletePasswordMFA].
func (s *LinkService) ConnectPassword(ctx context.Context, provider Provider, body ConnectPasswordBody, opts ...CallOption) (*ProviderLink, error) {
	return call(ctx, coreOf(s), new(ProviderLink), request{op: opLinkPassword, ids: []string{string(provider)}, body: &body, errorsIn200: true}, opts)
}

// CompletePasswordMFA passes on the code that the provider sent to the user: POST
// /v2/link/provider/password/{provider}/complete_mfa.
func (s *LinkService) CompletePasswordMFA(ctx context.Context, provider Provider, code Secret, opts ...CallOption) (*ProviderLink, error) {
	body := completeMFA{code}
	return call(ctx, coreOf(s), new(ProviderLink), request{op: opLinkMFA, ids: []string{string(provider)}, body: &body, errorsIn200: true}, opts)
}

// ConnectEmail connects a user to a provider that needs the user's email address only: POST
// /v2/link/provider/email/{provider}. The response is not documented: a nil error means that the
// service accepted the request, and [WithResponse] returns the response.
func (s *LinkService) ConnectEmail(ctx context.Context, provider Provider, body ConnectEmailBody, opts ...CallOption) error {
	return callEmpty(ctx, coreOf(s), request{op: opLinkEmail, ids: []string{string(provider)}, body: &body, errorsIn200: true}, opts)
}
