// TeamService: the team of the key, its configuration, physicians and source priorities.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// TeamService provides access to the team that the key of the client belongs to. See [Client.Team].
// Teams are managed with package management. Source of its operations: public API reference only.
type TeamService struct{ core *core }

const (
	opGetOwnTeam             = "GET /v2/team/{team_id}"
	opSearchUsers            = "GET /v2/team/users/search"
	opSourcePriorities       = "GET /v2/team/source/priorities"
	opUpdateSourcePriorities = "PATCH /v2/team/source/priorities"
	opTeamPhysicians         = "GET /v2/team/{team_id}/physicians"
)

// PriorityResource is a kind of data for which sources have priorities. Values other than the
// constants occur.
type PriorityResource string

// Values of [PriorityResource].
const (
	PriorityResourceWorkouts   PriorityResource = "workouts"
	PriorityResourceActivity   PriorityResource = "activity"
	PriorityResourceSleep      PriorityResource = "sleep"
	PriorityResourceBody       PriorityResource = "body"
	PriorityResourceTimeseries PriorityResource = "timeseries"
)

// DelegatedFlowType is who handles the orders and results of a team. Values other than the constant
// occur.
type DelegatedFlowType string

// DelegatedFlowOrderAndResults is the value of [DelegatedFlowType] for a team whose orders and
// results are handled by its own network of physicians.
const DelegatedFlowOrderAndResults DelegatedFlowType = "order_and_results_with_customer_physician_network"

// TeamDetails is the team of a client, with its keys.
type TeamDetails struct {
	ID    uuid.UUID `json:"id"`     // team ID
	OrgID uuid.UUID `json:"org_id"` // ID of the organisation
	Name  string    `json:"name"`   // display name
	// SvixAppID identifies the team at the service that delivers the events, nil if unknown.
	SvixAppID *string `json:"svix_app_id,omitzero"`

	// The fields up to APIKey point to the empty string if they are absent, and are nil if they are
	// null.

	ClientID       *string `json:"client_id,omitzero" default:""`        // not documented
	ClientSecret   *Secret `json:"client_secret,omitzero" default:""`    // not documented
	AirtableAPIKey *Secret `json:"airtable_api_key,omitzero" default:""` // not documented
	AirtableBaseID *string `json:"airtable_base_id,omitzero" default:""` // not documented
	WebhookSecret  *Secret `json:"webhook_secret,omitzero" default:""`   // a secret that signs events
	APIKey         *Secret `json:"api_key,omitzero" default:""`          // a key of the team API

	APIKeys       []APIKey    `json:"api_keys,omitzero"`      // keys of the team API, nil if not listed
	Configuration *TeamConfig `json:"configuration,omitzero"` // settings, nil if not listed
	// TestkitsTextsEnabled is whether patients get text messages about test kits.
	//
	// Deprecated: use LabTestsPatientSMSCommunicationEnabled.
	TestkitsTextsEnabled bool `json:"testkits_texts_enabled"`
	// LabTestsPatientCommunicationEnabled is whether patients get messages.
	LabTestsPatientCommunicationEnabled bool `json:"lab_tests_patient_communication_enabled"`
	// LabTestsPatientSMSCommunicationEnabled is whether patients get text messages.
	LabTestsPatientSMSCommunicationEnabled bool `json:"lab_tests_patient_sms_communication_enabled"`
	// LabTestsPatientEmailCommunicationEnabled is whether patients get email.
	LabTestsPatientEmailCommunicationEnabled bool              `json:"lab_tests_patient_email_communication_enabled"`
	LogoURL                                  *string           `json:"logo_url,omitzero"` // URL of the team's logo, nil if there is none
	DelegatedFlow                            DelegatedFlowType `json:"delegated_flow"`    // who handles orders and results
	// CriticalResultNotificationEmail receives notifications of critical results, nil for none.
	CriticalResultNotificationEmail *string `json:"critical_result_notification_email,omitzero"`

	RawObject `json:"-"`
}

func (t *TeamDetails) verify() error { return requireID(t.ID, "team") }

// APIKey is a key of the team API in [TeamDetails].
type APIKey struct {
	ID        uuid.UUID  `json:"id"`                  // ID of the key, not secret
	Label     string     `json:"label"`               // display name
	Value     Secret     `json:"value"`               // the key itself
	TeamID    *uuid.UUID `json:"team_id,omitzero"`    // ID of the team, nil if not given
	CreatedAt time.Time  `json:"created_at"`          // creation time
	DeletedAt *time.Time `json:"deleted_at,omitzero"` // when it was revoked, nil if it is valid

	RawObject `json:"-"`
}

// TeamConfig has settings of a team.
type TeamConfig struct {
	LibreView          LibreConfig `json:"libreview"`                            // settings of the provider LibreView
	TextsEnabled       bool        `json:"texts_enabled" default:"false"`        // whether patients get text messages; false by default
	PushHistoricalData bool        `json:"push_historical_data" default:"false"` // whether historical data is sent; false by default
	// ProviderRawData is whether data is also sent as the providers sent it; false by default.
	ProviderRawData bool `json:"provider_raw_data" default:"false"`
	// RejectDuplicateConnection rejects a source that another user has connected; false by default.
	RejectDuplicateConnection bool `json:"reject_duplicate_connection" default:"false"`
	// SDKPerDeviceActivityTimeseries is not documented; false by default.
	SDKPerDeviceActivityTimeseries bool `json:"sdk_per_device_activity_timeseries" default:"false"`
	// PartialWebhooksEnabled also enables events for partial results; false by default.
	PartialWebhooksEnabled bool `json:"partial_webhooks_enabled" default:"false"`
	// MinorOrderingEnabled allows patients who are minors; false by default.
	MinorOrderingEnabled bool `json:"minor_ordering_enabled" default:"false"`
	// EDSPreferences selects where events are sent, nil if there are no preferences.
	EDSPreferences *EventDestinationPreferences `json:"eds_preferences,omitzero"`
	// EventTypePrefixes selects the events that are sent, nil for all.
	EventTypePrefixes []string `json:"event_type_prefixes,omitzero"`

	RawObject `json:"-"`
}

// EventDestination is a kind of destination that an ETL pipeline pushes events to. Values other
// than the constants occur.
type EventDestination string

// Values of [EventDestination].
const (
	EventDestinationCloudPubSub EventDestination = "cloud_pubsub"
	EventDestinationRabbitMQ    EventDestination = "rabbitmq"
	EventDestinationSvix        EventDestination = "svix"
	EventDestinationAzureAMQP   EventDestination = "azure_amqp"
)

// EventDestinationPreferences selects the destinations that a pipeline uses.
type EventDestinationPreferences struct {
	Preferred EventDestination   `json:"preferred"` // the main destination
	Enabled   []EventDestination `json:"enabled"`   // the destinations that are in use

	RawObject `json:"-"`
}

// LibreConfig has settings of the provider LibreView.
type LibreConfig struct {
	PracticeID json.RawMessage `json:"practice_id"`              // an object without a documented shape
	StripTZ    bool            `json:"strip_tz" default:"false"` // whether times are sent without an offset; false by default

	RawObject `json:"-"`
}

// SearchUsersParams selects users.
type SearchUsersParams struct {
	Redacted

	// QueryID is a part of a user ID or a client user ID, of at least 2 characters. Which IDs match
	// is an inference. It is not sent if empty.
	QueryID string
}

func (p SearchUsersParams) validate(v *validator) {
	if utf8.RuneCountInString(p.QueryID) == 1 {
		v.add("query_id", "string_too_short", "must have at least 2 characters")
	}
}

func (p SearchUsersParams) query() queryValues {
	q := newQuery()
	q.setString("query_id", p.QueryID)
	return q
}

// SourcePrioritiesParams selects priorities.
type SourcePrioritiesParams struct {
	DataType PriorityResource // priorities for one kind of data; not sent if empty
}

func (p SourcePrioritiesParams) query() queryValues {
	q := newQuery()
	q.setString("data_type", string(p.DataType))
	return q
}

// Get returns the team: GET /v2/team/{team_id}. The ID is that of every [User] and event. The
// response may hold keys and secrets.
func (s *TeamService) Get(ctx context.Context, teamID uuid.UUID, opts ...CallOption) (*TeamDetails, error) {
	return call(ctx, coreOf(s), new(TeamDetails), request{op: opGetOwnTeam, ids: []string{teamID.String()}}, opts)
}

// SearchUsers returns the users that match: GET /v2/team/users/search.
func (s *TeamService) SearchUsers(ctx context.Context, params SearchUsersParams, opts ...CallOption) ([]User, error) {
	return callList[User](ctx, coreOf(s), request{op: opSearchUsers, query: params}, opts)
}

// SourcePriorities returns the order in which the team prefers the sources of the same data: GET
// /v2/team/source/priorities. The shape of the objects is not documented.
func (s *TeamService) SourcePriorities(ctx context.Context, params SourcePrioritiesParams, opts ...CallOption) ([]json.RawMessage, error) {
	return callList[json.RawMessage](ctx, coreOf(s), request{op: opSourcePriorities, query: params}, opts)
}

// UpdateSourcePriorities changes the order in which the team prefers the sources of the same data,
// and returns the priorities: PATCH /v2/team/source/priorities. The body is sent unchanged, because
// its shape is not documented; nil sends none.
func (s *TeamService) UpdateSourcePriorities(ctx context.Context, body json.RawMessage, opts ...CallOption) ([]json.RawMessage, error) {
	r := request{op: opUpdateSourcePriorities}
	if len(body) > 0 {
		r.body = body
	}
	return callList[json.RawMessage](ctx, coreOf(s), r, opts)
}

// Physicians returns the physicians who order for the team: GET /v2/team/{team_id}/physicians.
func (s *TeamService) Physicians(ctx context.Context, teamID uuid.UUID, opts ...CallOption) ([]OrderPhysician, error) {
	return callList[OrderPhysician](ctx, coreOf(s), request{op: opTeamPhysicians, ids: []string{teamID.String()}}, opts)
}
