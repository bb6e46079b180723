package labhealth

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
)

const (
	opListPipelines   = "GET /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
	opUpsertPipelines = "POST /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
	opDeletePipelines = "DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
)

// PipelinesService provides access to the ETL pipelines of the teams: where events are pushed, beside
// webhooks. They are available on the Scale plan. Source of all but the plan and the routing by event
// type prefix: public API reference only.
type PipelinesService struct{ org *organisation }

// EventDestination names a kind of destination that an ETL pipeline pushes events to. Values other
// than the constants occur.
type EventDestination string

// The kinds of destinations.
const (
	EventDestinationCloudPubSub EventDestination = "cloud_pubsub"
	EventDestinationRabbitMQ    EventDestination = "rabbitmq"
	EventDestinationSvix        EventDestination = "svix"
	EventDestinationAzureAMQP   EventDestination = "azure_amqp"
)

// ETLPipeline is where the events of a team are pushed. It redacts itself when printed.
type ETLPipeline struct {
	Redacted[ETLPipeline]

	TeamID             uuid.UUID                   `json:"team_id"`                              // the team
	Preferences        EventDestinationPreferences `json:"preferences"`                          // which destinations are in use
	PushHistoricalData bool                        `json:"push_historical_data" default:"false"` // whether older data is pushed too, as daily.data events; false by default
	ProviderRawData    bool                        `json:"provider_raw_data" default:"false"`    // whether events raw.<provider>.* are pushed too; false by default
	CloudPubSub        *CloudPubSub                `json:"cloud_pubsub,omitzero"`                // nil if not configured
	RabbitMQ           *RabbitMQ                   `json:"rabbitmq,omitzero"`                    // nil if not configured
	Svix               *Svix                       `json:"svix,omitzero"`                        // nil if not configured
	AzureAMQP          *AzureAMQP                  `json:"azure_amqp,omitzero"`                  // nil if not configured
	EventTypePrefixes  []string                    `json:"event_type_prefixes,omitzero"`         // events whose type starts with one of these are pushed; nil for all

	RawObject `json:"-"`
}

// EventDestinationPreferences says which of its destinations a pipeline uses.
type EventDestinationPreferences struct {
	Preferred EventDestination   `json:"preferred"` // the main destination
	Enabled   []EventDestination `json:"enabled"`   // the destinations that are in use

	RawObject `json:"-"`
}

// CloudPubSub is a destination at a topic of Google Cloud Pub/Sub.
type CloudPubSub struct {
	Project         string `json:"project"`          // the project's ID
	Topic           string `json:"topic"`            // the topic's name
	MessageOrdering bool   `json:"message_ordering"` // whether messages have an ordering key, which is the user's ID

	RawObject `json:"-"`
}

// RabbitMQ is a destination at an exchange of a RabbitMQ server. It redacts itself when printed.
type RabbitMQ struct {
	Redacted[RabbitMQ]

	URI      Secret `json:"uri"`      // the server, with user and password
	Exchange string `json:"exchange"` // the exchange's name; the routing key is the event type

	RawObject `json:"-"`
}

// Svix is a destination at webhooks, which [WebhooksService] manages.
type Svix struct {
	// Regional is always true.
	//
	// Deprecated: it has one value. Source: public API reference only.
	Regional *bool `json:"regional,omitzero" default:"true"`

	RawObject `json:"-"`
}

// EventHubCompression says when an event is compressed. Values other than the constants occur.
type EventHubCompression string

// When events are compressed.
const (
	EventHubCompressionAuto   EventHubCompression = "auto"   // large ones only
	EventHubCompressionAlways EventHubCompression = "always" // all of them
)

// AzureAMQP is a destination at an Azure event hub. Which event hub, or which container of a blob
// storage, an event goes to is decided by the first matcher that fits its type: see
// [ETLPipeline.EventHubDestination]. It redacts itself when printed.
type AzureAMQP struct {
	Redacted[AzureAMQP]

	// ConnectionString opens the event hubs.
	ConnectionString Secret `json:"connection_string"`
	// DefaultEventHub receives the events that no matcher fits.
	DefaultEventHub string `json:"default_event_hub"`
	// EventHubMatchers are tried in order.
	EventHubMatchers []EventHubMatcher `json:"event_hub_matchers,omitzero"`
	// Compression says when events are compressed: auto by default.
	Compression *EventHubCompression `json:"compression,omitzero" default:"auto"`

	RawObject `json:"-"`
}

// EventHubMatcher says where events of some types go: to an event hub or to a blob storage. It redacts itself when printed.
type EventHubMatcher struct {
	Redacted[EventHubMatcher]

	EventTypePrefix *string      `json:"event_type_prefix,omitzero"` // fits types that begin with it; nil for none
	EventTypeRegex  *string      `json:"event_type_regex,omitzero"`  // fits types in which the regular expression is found; nil for none
	EventHub        *string      `json:"event_hub,omitzero"`         // the event hub; nil for a blob storage
	BlobStorage     *BlobStorage `json:"blob_storage,omitzero"`      // the blob storage; nil for an event hub

	RawObject `json:"-"`
}

// BlobStorage is a container that events are written to. It redacts itself when printed.
type BlobStorage struct {
	Redacted[BlobStorage]

	ConnectionString Secret `json:"connection_string"` // opens the storage
	ContainerName    string `json:"container_name"`    // the container
	// Container is ContainerName under another name, which one page of the reference shows; nil
	// otherwise.
	Container *string `json:"container,omitzero"`

	RawObject `json:"-"`
}

// EventHubDestination is where an event goes: one of the two is set. It redacts itself when printed.
type EventHubDestination struct {
	Redacted[EventHubDestination]

	EventHub    string       // the event hub; empty for a blob storage
	BlobStorage *BlobStorage // the blob storage; nil for an event hub
	Matcher     int          // which of the matchers fits, counted from 0; -1 if none does and this is the default
}

// ListETLPipelinesParams selects pipelines. Zero fields are not sent.
type ListETLPipelinesParams struct {
	TeamID     uuid.UUID // pipelines of one team
	NextCursor string    // where the page begins: NextCursor of the page before; empty for the first
}

func (p ListETLPipelinesParams) query() queryValues {
	q := newQuery()
	q.setID("team_id", p.TeamID)
	q.setString("next_cursor", p.NextCursor)
	return q
}

// ETLPipelinePage is one page of the list of pipelines: the response of [PipelinesService.List].
type ETLPipelinePage struct {
	Redacted[ETLPipelinePage]

	Pipelines  []ETLPipeline `json:"pipelines" jsonread:"own"` // the pipelines of the page
	NextCursor *string       `json:"next_cursor,omitzero"`     // where the next page begins; nil at the end of the list

	RawObject `json:"-"`
}

func (p *ETLPipelinePage) verify() error {
	if p.Pipelines == nil {
		return errNoList
	}
	return nil
}

func (*ETLPipelinePage) fromList(document []byte, _ []json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"pipelines":%s,"next_cursor":null}`, document)
}

// UpsertETLPipelinesBody is the request of [PipelinesService.Upsert]. It redacts itself when printed.
type UpsertETLPipelinesBody struct {
	Redacted[UpsertETLPipelinesBody]

	TeamIDs            []uuid.UUID                  `json:"team_ids"`                      // the teams that get a pipeline each
	Preferences        *EventDestinationPreferences `json:"preferences,omitzero"`          // which destinations are in use; nil leaves it to the service
	PushHistoricalData *bool                        `json:"push_historical_data,omitzero"` // see [ETLPipeline]
	ProviderRawData    *bool                        `json:"provider_raw_data,omitzero"`    // see [ETLPipeline]
	CloudPubSub        *CloudPubSub                 `json:"cloud_pubsub,omitzero"`         // nil if not configured
	RabbitMQ           *RabbitMQ                    `json:"rabbitmq,omitzero"`             // nil if not configured
	Svix               *Svix                        `json:"svix,omitzero"`                 // nil if not configured
	AzureAMQP          *AzureAMQP                   `json:"azure_amqp,omitzero"`           // nil if not configured
	EventTypePrefixes  []string                     `json:"event_type_prefixes,omitzero"`  // see [ETLPipeline]
}

func (b *UpsertETLPipelinesBody) validate(v *validator) {
	v.requiredIDs("team_ids", "team", b.TeamIDs)
	if p := b.Preferences; p != nil {
		v.within("preferences", func() { v.required("preferred", string(p.Preferred)) })
	}
	v.within("cloud_pubsub", func() {
		if d := b.CloudPubSub; d != nil {
			v.required("project", d.Project)
			v.required("topic", d.Topic)
		}
	})
	v.within("rabbitmq", func() {
		if d := b.RabbitMQ; d != nil {
			v.required("uri", string(d.URI))
			v.required("exchange", d.Exchange)
		}
	})
	v.within("azure_amqp", func() {
		if d := b.AzureAMQP; d != nil {
			v.required("connection_string", string(d.ConnectionString))
			v.required("default_event_hub", d.DefaultEventHub)
		}
	})
}

// List reads one page of the pipelines in an environment: GET /v1/org/{org_id}/team_etl_pipelines/{env}/{region}.
func (s *PipelinesService) List(ctx context.Context, env TeamEnvironment, region Region, params ListETLPipelinesParams, opts ...CallOption) (*ETLPipelinePage, error) {
	r := s.org.request(opListPipelines, string(env), string(region))
	r.query = params
	return call[ETLPipelinePage](ctx, s.org.core, r, opts)
}

// All reads the pipelines page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *PipelinesService) All(ctx context.Context, env TeamEnvironment, region Region, params ListETLPipelinesParams, opts ...CallOption) iter.Seq2[*ETLPipeline, error] {
	id := func(v *ETLPipeline) uuid.UUID { return v.TeamID }
	return cursorPages(opListPipelines, params.NextCursor, id, func(cursor string) ([]ETLPipeline, *string, error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, env, region, params, opts...)
		if err != nil {
			return nil, nil, err
		}
		return page.Pipelines, page.NextCursor, nil
	})
}

// Upsert sets the pipelines of teams, in place of those they had, and returns them: POST
// /v1/org/{org_id}/team_etl_pipelines/{env}/{region}. It can be called again after any error. At least
// one team is required, because what an empty list means is not published.
func (s *PipelinesService) Upsert(ctx context.Context, env TeamEnvironment, region Region, body UpsertETLPipelinesBody, opts ...CallOption) ([]ETLPipeline, error) {
	r := s.org.request(opUpsertPipelines, string(env), string(region))
	r.body = &body
	return s.list(ctx, r, opts)
}

// Delete deletes the pipelines of teams: DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}. It
// returns the pipelines of the response; whether these are the deleted ones or those that remain is
// not published. At least one team is required, because no team may mean all of them.
func (s *PipelinesService) Delete(ctx context.Context, env TeamEnvironment, region Region, teamIDs []uuid.UUID, opts ...CallOption) ([]ETLPipeline, error) {
	return s.list(ctx, s.org.batch(opDeletePipelines, "team_id", env, region, teamIDs), opts)
}

// list calls an operation that responds with a list of pipelines.
func (s *PipelinesService) list(ctx context.Context, r request, opts []CallOption) ([]ETLPipeline, error) {
	page, err := call[ETLPipelinePage](ctx, s.org.core, r, opts)
	if err != nil {
		return nil, err
	}
	return page.Pipelines, nil
}

// EventHubDestination says where an event of a type goes, without asking the service. The type must begin with one of the
// pipeline's prefixes, if it has any. Then the first matcher whose prefix or regular expression fits decides; if none does, it is
// the default event hub. ok is false if the event is not pushed to an event hub or a blob storage.
//
// A regular expression that is not valid in Go is an error that names its matcher, also if another matcher fits: the service's own
// syntax is not published.
func (p ETLPipeline) EventHubDestination(eventType string) (d EventHubDestination, ok bool, err error) {
	return p.AzureAMQP.destination(p.EventTypePrefixes, eventType)
}

// EventHubDestination says where an event of a type would go. See [ETLPipeline.EventHubDestination].
func (b UpsertETLPipelinesBody) EventHubDestination(eventType string) (d EventHubDestination, ok bool, err error) {
	return b.AzureAMQP.destination(b.EventTypePrefixes, eventType)
}

func (a *AzureAMQP) destination(prefixes []string, eventType string) (d EventHubDestination, ok bool, err error) {
	begins := func(prefix string) bool { return strings.HasPrefix(eventType, prefix) }
	if a == nil {
		return d, false, nil
	}
	expressions := make([]*regexp.Regexp, len(a.EventHubMatchers))
	for i, m := range a.EventHubMatchers {
		if m.EventTypeRegex == nil {
			continue
		}
		if expressions[i], err = regexp.Compile(*m.EventTypeRegex); err != nil {
			return d, false, fmt.Errorf("labhealth: event_hub_matchers.%d.event_type_regex is not a valid regular expression: %w", i, err)
		}
	}
	if len(prefixes) > 0 && !slices.ContainsFunc(prefixes, begins) {
		return d, false, nil
	}
	d.Matcher = -1
	hub := &a.DefaultEventHub
	for i, m := range a.EventHubMatchers {
		if m.EventTypePrefix != nil && begins(*m.EventTypePrefix) || expressions[i] != nil && expressions[i].MatchString(eventType) {
			d.Matcher, d.BlobStorage, hub = i, m.BlobStorage, m.EventHub
			break
		}
	}
	if hub != nil {
		d.EventHub = *hub
	}
	return d, d.EventHub != "" || d.BlobStorage != nil, nil
}
