// Webhook endpoints, their headers and secrets.

package management

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	opListWebhooks          = "GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook"
	opCreateWebhook         = "POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook"
	opGetWebhook            = "GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}"
	opUpdateWebhook         = "PATCH /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}"
	opDeleteWebhook         = "DELETE /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}"
	opGetWebhookHeaders     = "GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers"
	opReplaceWebhookHeaders = "PUT /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers"
	opGetWebhookSecret      = "GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret"
	opRotateWebhookSecret   = "POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret/rotate"
)

// WebhooksService provides access to the webhooks of the organisation's teams. Package webhooks
// receives their deliveries. Source of its operations: public API reference only.
type WebhooksService struct{ core sender }

// Webhook is an endpoint that the service posts the events of a team to.
type Webhook struct {
	ID          string    `json:"id"`                   // ID of the webhook, any string
	URL         string    `json:"url"`                  // URL of the endpoint
	CreatedAt   time.Time `json:"created_at"`           // creation time
	UpdatedAt   time.Time `json:"updated_at"`           // time of the last change
	Description *string   `json:"description,omitzero"` // human-readable text, nil if there is none
	// RateLimit is the maximum number of deliveries per second, nil for no limit. The unit is an
	// inference.
	RateLimit *int64 `json:"rate_limit,omitzero"`
	// Disabled reports whether deliveries are turned off. The default is false. It is nil if it is
	// null.
	Disabled *bool `json:"disabled" default:"false"`
	// FilterTypes lists the event types that are delivered, nil for all.
	FilterTypes []string `json:"filter_types,omitzero"`

	labhealth.RawObject `json:"-"`
}

func (w *Webhook) verify() error {
	if w.ID == "" {
		return requireID(uuid.Nil, "webhook")
	}
	return nil
}

// ListWebhooksParams selects a page of webhooks. Zero fields are not sent.
type ListWebhooksParams struct {
	NextCursor string // NextCursor of the previous page; empty for the first
	Limit      int    // webhooks per page; the service uses 50 if it is 0
}

func (p ListWebhooksParams) validate(v validator) {
	v.AtLeast("limit", p.Limit, 0)
}

func (p ListWebhooksParams) query() url.Values {
	return url.Values{"next_cursor": optional(p.NextCursor), "limit": optional(p.Limit)}
}

// WebhookPage is one page of webhooks: the response of [WebhooksService.List].
type WebhookPage struct {
	Data       []Webhook `json:"data" jsonread:"own"` // the webhooks of the page
	NextCursor *string   `json:"next_cursor"`         // nil on the last page

	labhealth.RawObject `json:"-"`
}

func (p *WebhookPage) verify() error { return requireList(p.Data) }

func (p *WebhookPage) elements() (any, *string) { return p.Data, p.NextCursor }

// CreateWebhookBody is the request of [WebhooksService.Create].
type CreateWebhookBody struct {
	labhealth.Redacted

	URL         string  `json:"url"`                  // URL of the endpoint
	Description *string `json:"description,omitzero"` // human-readable text, nil for none
	// RateLimit limits the deliveries as in [Webhook], nil for no limit.
	RateLimit *int64 `json:"rate_limit,omitzero"`
	// Disabled turns deliveries off. Nil means false.
	Disabled *bool `json:"disabled,omitzero"`
	// FilterTypes lists the event types to deliver, nil for all.
	FilterTypes []string `json:"filter_types,omitzero"`
	// Secret signs the deliveries. If it is empty, the service generates one.
	Secret labhealth.Secret `json:"secret,omitzero"`
}

func (b *CreateWebhookBody) validate(v validator) {
	v.Required("url", b.URL)
}

// UpdateWebhookBody is the request of [WebhooksService.Update]. Omitted fields are unchanged. That
// [labhealth.Null] clears a value is an inference.
type UpdateWebhookBody struct {
	labhealth.Redacted

	URL *string `json:"url,omitzero"` // URL of the endpoint
	// Description is human-readable text; [labhealth.Null] for none.
	Description labhealth.Nullable[string] `json:"description,omitzero"`
	// RateLimit limits the deliveries as in [Webhook]; [labhealth.Null] for no limit.
	RateLimit labhealth.Nullable[int64] `json:"rate_limit,omitzero"`
	// Disabled turns deliveries off or on.
	Disabled *bool `json:"disabled,omitzero"`
	// FilterTypes lists the event types to deliver; [labhealth.Null] for all.
	FilterTypes labhealth.Nullable[[]string] `json:"filter_types,omitzero"`
}

// WebhookHeaders is the set of headers that every delivery of a webhook carries in addition to the
// usual ones.
type WebhookHeaders struct {
	// Headers holds the values by name. Values of sensitive headers may be hidden.
	Headers map[string]labhealth.Secret `json:"headers"`
	// Sensitive lists the names of the headers whose values are hidden.
	Sensitive []string `json:"sensitive"`

	labhealth.RawObject `json:"-"`
}

// replaceWebhookHeadersBody is the request of [WebhooksService.ReplaceHeaders].
type replaceWebhookHeadersBody struct {
	Headers map[string]labhealth.Secret `json:"headers"`
}

// WebhookSecret is the signing secret of a webhook.
type WebhookSecret struct {
	// Key is "whsec_" followed by base64, the format that webhooks.NewVerifier takes.
	Key labhealth.Secret `json:"key"`

	labhealth.RawObject `json:"-"`
}

func (s *WebhookSecret) verify() error {
	if s.Key == "" {
		return errors.New("it has no readable key")
	}
	return nil
}

// rotateWebhookSecretBody is the request of [WebhooksService.RotateSecret].
type rotateWebhookSecretBody struct {
	Key labhealth.Secret `json:"key,omitzero"`
}

// List returns one page of a team's webhooks:
// GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook.
func (s *WebhooksService) List(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, params ListWebhooksParams, opts ...labhealth.CallOption) (*WebhookPage, error) {
	r := request{Op: opListWebhooks, IDs: []string{teamID.String(), string(env)}, Params: params}
	return call(ctx, coreOf(s), new(WebhookPage), r, opts)
}

// All returns an iterator over a team's webhooks, page by page, starting at params.NextCursor. It
// behaves like [labhealth.LabTestsService.All].
func (s *WebhooksService) All(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, params ListWebhooksParams, opts ...labhealth.CallOption) iter.Seq2[*Webhook, error] {
	id := func(*Webhook) uuid.UUID { return uuid.Nil } // its ID is none: its JSON identifies it
	return cursorPages(ctx, coreOf(s), opts, opListWebhooks, params.NextCursor, id, func(ctx context.Context, cursor string, opts []labhealth.CallOption) (any, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, teamID, env, params, opts...)
	})
}

// Create creates a webhook: POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook. Read its
// signing secret with [WebhooksService.Secret].
func (s *WebhooksService) Create(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, body CreateWebhookBody, opts ...labhealth.CallOption) (*Webhook, error) {
	r := request{Op: opCreateWebhook, IDs: []string{teamID.String(), string(env)}, Body: &body}
	return call(ctx, coreOf(s), new(Webhook), r, opts)
}

// Get returns one webhook: GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}.
// The error for an unknown webhook is [labhealth.ErrNotFound].
func (s *WebhooksService) Get(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, webhookID string, opts ...labhealth.CallOption) (*Webhook, error) {
	r := request{Op: opGetWebhook, IDs: []string{teamID.String(), string(env), webhookID}}
	return call(ctx, coreOf(s), new(Webhook), r, opts)
}

// Update changes a webhook:
// PATCH /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}. To change its secret,
// use [WebhooksService.RotateSecret]; to change its headers, [WebhooksService.ReplaceHeaders].
func (s *WebhooksService) Update(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, webhookID string, body UpdateWebhookBody, opts ...labhealth.CallOption) (*Webhook, error) {
	r := request{Op: opUpdateWebhook, IDs: []string{teamID.String(), string(env), webhookID}, Body: &body}
	return call(ctx, coreOf(s), new(Webhook), r, opts)
}

// Delete deletes a webhook:
// DELETE /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}.
func (s *WebhooksService) Delete(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, webhookID string, opts ...labhealth.CallOption) error {
	r := request{Op: opDeleteWebhook, IDs: []string{teamID.String(), string(env), webhookID}}
	return callEmpty(ctx, coreOf(s), r, opts)
}

// Headers returns the additional headers of a webhook's deliveries:
// GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers.
func (s *WebhooksService) Headers(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, webhookID string, opts ...labhealth.CallOption) (*WebhookHeaders, error) {
	r := request{Op: opGetWebhookHeaders, IDs: []string{teamID.String(), string(env), webhookID}}
	return call(ctx, coreOf(s), new(WebhookHeaders), r, opts)
}

// ReplaceHeaders replaces the additional headers of a webhook's deliveries:
// PUT /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers. Headers that are
// not in the map are removed; a nil or empty map removes all.
func (s *WebhooksService) ReplaceHeaders(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, webhookID string, headers map[string]labhealth.Secret, opts ...labhealth.CallOption) error {
	if headers == nil {
		headers = map[string]labhealth.Secret{}
	}
	r := request{
		Op: opReplaceWebhookHeaders, IDs: []string{teamID.String(), string(env), webhookID},
		Body: &replaceWebhookHeadersBody{headers},
	}
	return callEmpty(ctx, coreOf(s), r, opts)
}

// Secret returns the signing secret of a webhook:
// GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret.
func (s *WebhooksService) Secret(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, webhookID string, opts ...labhealth.CallOption) (*WebhookSecret, error) {
	r := request{Op: opGetWebhookSecret, IDs: []string{teamID.String(), string(env), webhookID}}
	return call(ctx, coreOf(s), new(WebhookSecret), r, opts)
}

// RotateSecret replaces the signing secret of a webhook:
// POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret/rotate. If key is
// empty, the service generates one; read it with [WebhooksService.Secret].
//
// To rotate without losing deliveries, the receiver must have the new key before it is used:
// generate a key, which is "whsec_" followed by the base64 encoding of at least 24 random bytes;
// configure the receiver to accept the old and the new key; rotate; and remove the old key at least
// a day later, when deliveries signed with it are no longer retried.
func (s *WebhooksService) RotateSecret(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, webhookID string, key labhealth.Secret, opts ...labhealth.CallOption) error {
	r := request{
		Op: opRotateWebhookSecret, IDs: []string{teamID.String(), string(env), webhookID},
		Body: &rotateWebhookSecretBody{key},
	}
	return callEmpty(ctx, coreOf(s), r, opts)
}
