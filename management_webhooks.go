package labhealth

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"
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

// WebhooksService provides access to the webhooks that the events of the organisation's teams are
// delivered to. Package webhooks reads what is delivered there. Source of its operations: public API
// reference only.
type WebhooksService struct{ org *organisation }

// Webhook is an address that events of a team are posted to.
type Webhook struct {
	ID          string    `json:"id"`                    // the webhook's id; any text
	URL         string    `json:"url"`                   // the address
	CreatedAt   time.Time `json:"created_at"`            // when it was created
	UpdatedAt   time.Time `json:"updated_at"`            // when it was changed last
	Description *string   `json:"description,omitzero"`  // for people; nil if there is none
	RateLimit   *int64    `json:"rate_limit,omitzero"`   // deliveries per second, nil for no limit; the unit is an inference
	Disabled    *bool     `json:"disabled,omitzero"`     // whether nothing is delivered; nil if not said
	FilterTypes []string  `json:"filter_types,omitzero"` // the event types that are delivered, nil for all

	RawObject `json:"-"`
}

func (w *Webhook) verify() error {
	if w.ID == "" {
		return requireID(uuid.Nil, "webhook")
	}
	return nil
}

// ListWebhooksParams choose a page of webhooks. Zero members are left out.
type ListWebhooksParams struct {
	NextCursor string // where the page begins: NextCursor of the page before; empty for the first
	Limit      int    // webhooks on a page; the service takes 50 if it is 0
}

func (p ListWebhooksParams) validate(v *validator) {
	v.atLeast("limit", p.Limit, 0)
}

func (p ListWebhooksParams) query() queryValues {
	q := newQuery()
	q.setString("next_cursor", p.NextCursor)
	q.setInt("limit", p.Limit)
	return q
}

// WebhookPage is one page of the list of webhooks: the answer of [WebhooksService.List].
type WebhookPage struct {
	Data       []Webhook `json:"data" jsonread:"own"` // the webhooks of the page
	NextCursor *string   `json:"next_cursor"`         // where the next page begins; nil at the end of the list

	RawObject `json:"-"`
}

// CreateWebhookBody is the request of [WebhooksService.Create]. It redacts itself when printed.
type CreateWebhookBody struct {
	Redacted[CreateWebhookBody]

	URL         string   `json:"url"`                   // the address
	Description *string  `json:"description,omitzero"`  // for people; nil for none
	RateLimit   *int64   `json:"rate_limit,omitzero"`   // see [Webhook]; nil for no limit
	Disabled    *bool    `json:"disabled,omitzero"`     // whether nothing is delivered; nil for false
	FilterTypes []string `json:"filter_types,omitzero"` // the event types that are delivered, nil for all
	Secret      Secret   `json:"secret,omitzero"`       // what deliveries are signed with; empty: the service makes one
}

func (b *CreateWebhookBody) validate(v *validator) {
	v.required("url", b.URL)
}

// UpdateWebhookBody is the request of [WebhooksService.Update]. Members that are left out stay as they are.
type UpdateWebhookBody struct {
	URL         *string            `json:"url,omitzero"`          // the address
	Description *string            `json:"description,omitzero"`  // for people
	RateLimit   Nullable[int64]    `json:"rate_limit,omitzero"`   // see [Webhook]; [Null] for no limit
	Disabled    *bool              `json:"disabled,omitzero"`     // whether nothing is delivered
	FilterTypes Nullable[[]string] `json:"filter_types,omitzero"` // the event types that are delivered; [Null] for all
}

// WebhookHeaders is what is sent with every delivery of a webhook, beside the usual headers.
type WebhookHeaders struct {
	Redacted[WebhookHeaders]

	Headers   map[string]Secret `json:"headers"`   // by name; values of sensitive headers may be hidden
	Sensitive []string          `json:"sensitive"` // names of the headers whose values are hidden

	RawObject `json:"-"`
}

// replaceWebhookHeadersBody is the request of [WebhooksService.ReplaceHeaders].
type replaceWebhookHeadersBody struct {
	Headers map[string]Secret `json:"headers"`
}

// WebhookSecret is what the deliveries of a webhook are signed with. It redacts itself when printed.
type WebhookSecret struct {
	Redacted[WebhookSecret]

	Key Secret `json:"key"` // "whsec_" and base64, as webhooks.NewVerifier takes it

	RawObject `json:"-"`
}

func (s *WebhookSecret) verify() error {
	if s.Key == "" {
		return &unreadable{reason: "it has no readable key"}
	}
	return nil
}

// rotateWebhookSecretBody is the request of [WebhooksService.RotateSecret].
type rotateWebhookSecretBody struct {
	Key Secret `json:"key,omitzero"`
}

// List reads one page of a team's webhooks: GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook.
func (s *WebhooksService) List(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, params ListWebhooksParams, opts ...CallOption) (*WebhookPage, error) {
	r := s.org.request(opListWebhooks, teamID.String(), string(env))
	r.query = params
	return call[WebhookPage](ctx, s.org.core, r, opts)
}

// All reads a team's webhooks page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *WebhooksService) All(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, params ListWebhooksParams, opts ...CallOption) iter.Seq2[*Webhook, error] {
	id := func(w *Webhook) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(w.ID)) }
	return cursorPages(opListWebhooks, params.NextCursor, id, func(cursor string) ([]Webhook, *string, error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, teamID, env, params, opts...)
		if err != nil {
			return nil, nil, err
		}
		return page.Data, page.NextCursor, nil
	})
}

// Create adds an address that events of a team are posted to: POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook. What
// its deliveries are signed with is read with [WebhooksService.Secret].
func (s *WebhooksService) Create(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, body CreateWebhookBody, opts ...CallOption) (*Webhook, error) {
	r := s.org.request(opCreateWebhook, teamID.String(), string(env))
	r.body = &body
	return call[Webhook](ctx, s.org.core, r, opts)
}

// Get reads one webhook: GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}. An unknown one is [ErrNotFound].
func (s *WebhooksService) Get(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, webhookID string, opts ...CallOption) (*Webhook, error) {
	return call[Webhook](ctx, s.org.core, s.org.request(opGetWebhook, teamID.String(), string(env), webhookID), opts)
}

// Update changes a webhook: PATCH /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}. Its secret is changed with
// [WebhooksService.RotateSecret], its headers with [WebhooksService.ReplaceHeaders].
func (s *WebhooksService) Update(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, webhookID string, body UpdateWebhookBody, opts ...CallOption) (*Webhook, error) {
	r := s.org.request(opUpdateWebhook, teamID.String(), string(env), webhookID)
	r.body = &body
	return call[Webhook](ctx, s.org.core, r, opts)
}

// Delete removes a webhook: DELETE /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}.
func (s *WebhooksService) Delete(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, webhookID string, opts ...CallOption) error {
	return callEmpty(ctx, s.org.core, s.org.request(opDeleteWebhook, teamID.String(), string(env), webhookID), opts)
}

// Headers reads what is sent with every delivery: GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers.
func (s *WebhooksService) Headers(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, webhookID string, opts ...CallOption) (*WebhookHeaders, error) {
	r := s.org.request(opGetWebhookHeaders, teamID.String(), string(env), webhookID)
	return call[WebhookHeaders](ctx, s.org.core, r, opts)
}

// ReplaceHeaders sets all that is sent with every delivery: PUT
// /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers. Headers that are not given are gone; nil and an
// empty map remove all.
func (s *WebhooksService) ReplaceHeaders(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, webhookID string, headers map[string]Secret, opts ...CallOption) error {
	if headers == nil {
		headers = map[string]Secret{}
	}
	r := s.org.request(opReplaceWebhookHeaders, teamID.String(), string(env), webhookID)
	r.body = &replaceWebhookHeadersBody{headers}
	return callEmpty(ctx, s.org.core, r, opts)
}

// Secret reads what deliveries are signed with: GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret.
func (s *WebhooksService) Secret(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, webhookID string, opts ...CallOption) (*WebhookSecret, error) {
	r := s.org.request(opGetWebhookSecret, teamID.String(), string(env), webhookID)
	return call[WebhookSecret](ctx, s.org.core, r, opts)
}

// RotateSecret changes what deliveries are signed with: POST
// /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret/rotate. If key is empty the service makes one, which
// [WebhooksService.Secret] reads.
//
// A receiver that loses no delivery knows the new key before it is used: make one with 24 random bytes or more, "whsec_" and
// base64; let the receiver accept the old and the new; rotate; and forget the old one a day or more later, when no delivery is
// repeated any more.
func (s *WebhooksService) RotateSecret(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, webhookID string, key Secret, opts ...CallOption) error {
	r := s.org.request(opRotateWebhookSecret, teamID.String(), string(env), webhookID)
	r.body = &rotateWebhookSecretBody{key}
	return callEmpty(ctx, s.org.core, r, opts)
}
