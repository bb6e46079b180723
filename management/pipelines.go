// ETL pipelines, and the event hub that receives an event.

package management

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	opListPipelines   = "GET /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
	opUpsertPipelines = "POST /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
	opDeletePipelines = "DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
)

// PipelinesService provides access to the ETL pipelines of the teams, which push events to
// destinations such as message brokers. They are available on the Scale plan. Source of all but the
// plan and the routing by event type prefix: public API reference only.
type PipelinesService struct{ core sender }

// ETLPipeline configures the destinations that the events of a team are pushed to.
type ETLPipeline struct {
	TeamID uuid.UUID `json:"team_id"` // ID of the team
	// Preferences selects the destinations that are in use.
	Preferences labhealth.EventDestinationPreferences `json:"preferences"`
	// PushHistoricalData reports whether historical data is pushed too, as daily.data events. The
	// default is false.
	PushHistoricalData bool `json:"push_historical_data" default:"false"`
	// ProviderRawData reports whether raw.<provider>.* events are pushed too. The default is false.
	ProviderRawData bool         `json:"provider_raw_data" default:"false"`
	CloudPubSub     *CloudPubSub `json:"cloud_pubsub,omitzero"` // nil if not configured
	RabbitMQ        *RabbitMQ    `json:"rabbitmq,omitzero"`     // nil if not configured
	Svix            *Svix        `json:"svix,omitzero"`         // nil if not configured
	AzureAMQP       *AzureAMQP   `json:"azure_amqp,omitzero"`   // nil if not configured
	// EventTypePrefixes restricts the pipeline to event types that start with one of these, nil for
	// all event types.
	EventTypePrefixes []string `json:"event_type_prefixes,omitzero"`

	labhealth.RawObject `json:"-"`
}

// CloudPubSub is a topic of Google Cloud Pub/Sub.
type CloudPubSub struct {
	Project string `json:"project"` // ID of the project
	Topic   string `json:"topic"`   // name of the topic
	// MessageOrdering reports whether messages have an ordering key, which is the user's ID.
	MessageOrdering bool `json:"message_ordering"`

	labhealth.RawObject `json:"-"`
}

// RabbitMQ is an exchange of a RabbitMQ server.
type RabbitMQ struct {
	URI      labhealth.Secret `json:"uri"`      // URI of the server, with user and password
	Exchange string           `json:"exchange"` // name of the exchange; the routing key is the event type

	labhealth.RawObject `json:"-"`
}

// Svix delivers events to the webhooks that [WebhooksService] manages.
type Svix struct {
	// Regional is always true.
	//
	// Deprecated: true is its only value. Source: public API reference only.
	Regional *bool `json:"regional,omitzero" default:"true"`

	labhealth.RawObject `json:"-"`
}

// EventHubCompression selects the events that are compressed. Values other than the constants
// occur.
type EventHubCompression string

// Values of [EventHubCompression].
const (
	EventHubCompressionAuto   EventHubCompression = "auto"   // compresses large events only
	EventHubCompressionAlways EventHubCompression = "always" // compresses all events
)

// AzureAMQP routes events to Azure event hubs and blob storage containers. The first matcher that
// matches the type of an event selects its destination: see [ETLPipeline.EventHubDestination].
type AzureAMQP struct {
	// ConnectionString grants access to the event hubs.
	ConnectionString labhealth.Secret `json:"connection_string"`
	// DefaultEventHub receives the events that no matcher matches.
	DefaultEventHub string `json:"default_event_hub"`
	// EventHubMatchers are tried in order.
	EventHubMatchers []EventHubMatcher `json:"event_hub_matchers,omitzero"`
	// Compression selects the events that are compressed. The default is auto.
	Compression *EventHubCompression `json:"compression,omitzero" default:"auto"`

	labhealth.RawObject `json:"-"`
}

// EventHubMatcher routes matching event types to an event hub or a blob storage container. A type
// matches if it matches the prefix or the regular expression.
type EventHubMatcher struct {
	// EventTypePrefix matches event types that start with it, nil for none.
	EventTypePrefix *string `json:"event_type_prefix,omitzero"`
	// EventTypeRegex matches event types that contain a match of the regular expression, nil for
	// none.
	EventTypeRegex *string `json:"event_type_regex,omitzero"`
	// EventHub is the destination, nil if it is a blob storage container.
	EventHub *string `json:"event_hub,omitzero"`
	// BlobStorage is the destination, nil if it is an event hub.
	BlobStorage *BlobStorage `json:"blob_storage,omitzero"`

	labhealth.RawObject `json:"-"`
}

// BlobStorage is a blob storage container that events are written to.
type BlobStorage struct {
	ConnectionString labhealth.Secret `json:"connection_string"` // grants access to the storage
	ContainerName    string           `json:"container_name"`    // name of the container

	labhealth.RawObject `json:"-"`
}

// EventHubDestination is the destination of an event: an event hub or a blob storage container.
type EventHubDestination struct {
	labhealth.Redacted

	EventHub    string       // the event hub; empty if the destination is a blob storage container
	BlobStorage *BlobStorage // the container; nil if the destination is an event hub
	Matcher     int          // index of the matcher that matches; -1 for the default event hub
}

// ListETLPipelinesParams selects pipelines. Zero fields are not sent.
type ListETLPipelinesParams struct {
	TeamID     uuid.UUID // pipelines of one team
	NextCursor string    // NextCursor of the previous page; empty for the first
}

func (p ListETLPipelinesParams) query() url.Values {
	return url.Values{"team_id": optional(p.TeamID), "next_cursor": optional(p.NextCursor)}
}

// ETLPipelinePage is one page of pipelines: the response of [PipelinesService.List].
type ETLPipelinePage struct {
	Pipelines  []ETLPipeline `json:"pipelines" jsonread:"own"` // the pipelines of the page
	NextCursor *string       `json:"next_cursor,omitzero"`     // nil on the last page

	labhealth.RawObject `json:"-"`
}

func (p *ETLPipelinePage) elements() (any, *string) { return p.Pipelines, p.NextCursor }

func (p *ETLPipelinePage) verify() error { return requireList(p.Pipelines) }

func (*ETLPipelinePage) fromList(document []byte) []byte {
	return fmt.Appendf(nil, `{"pipelines":%s,"next_cursor":null}`, document)
}

// UpsertETLPipelinesBody is the request of [PipelinesService.Upsert].
type UpsertETLPipelinesBody struct {
	labhealth.Redacted

	TeamIDs []uuid.UUID `json:"team_ids"` // IDs of the teams, which get one pipeline each
	// Preferences selects the destinations that are in use. If nil, the service selects them.
	Preferences *labhealth.EventDestinationPreferences `json:"preferences,omitzero"`
	// PushHistoricalData also pushes historical data, as daily.data events. Nil means false.
	PushHistoricalData *bool `json:"push_historical_data,omitzero"`
	// ProviderRawData also pushes raw.<provider>.* events. Nil means false.
	ProviderRawData *bool        `json:"provider_raw_data,omitzero"`
	CloudPubSub     *CloudPubSub `json:"cloud_pubsub,omitzero"` // nil for none
	RabbitMQ        *RabbitMQ    `json:"rabbitmq,omitzero"`     // nil for none
	Svix            *Svix        `json:"svix,omitzero"`         // nil for none
	AzureAMQP       *AzureAMQP   `json:"azure_amqp,omitzero"`   // nil for none
	// EventTypePrefixes restricts the pipeline to event types that start with one of these, nil for
	// all event types.
	EventTypePrefixes []string `json:"event_type_prefixes,omitzero"`
}

func (b *UpsertETLPipelinesBody) validate(v validator) {
	requiredIDs(v, "team_ids", "team", b.TeamIDs)
	if p := b.Preferences; p != nil {
		v.Within("preferences", func() { v.Required("preferred", string(p.Preferred)) })
	}
	if d := b.CloudPubSub; d != nil {
		v.Within("cloud_pubsub", func() {
			v.Required("project", d.Project)
			v.Required("topic", d.Topic)
		})
	}
	if d := b.RabbitMQ; d != nil {
		v.Within("rabbitmq", func() {
			v.Required("uri", string(d.URI))
			v.Required("exchange", d.Exchange)
		})
	}
	if d := b.AzureAMQP; d != nil {
		v.Within("azure_amqp", func() {
			v.Required("connection_string", string(d.ConnectionString))
			v.Required("default_event_hub", d.DefaultEventHub)
		})
	}
}

// List returns one page of the pipelines of an environment:
// GET /v1/org/{org_id}/team_etl_pipelines/{env}/{region}.
func (s *PipelinesService) List(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListETLPipelinesParams, opts ...labhealth.CallOption) (*ETLPipelinePage, error) {
	r := request{Op: opListPipelines, IDs: []string{string(env), string(region)}, Params: params}
	return call(ctx, coreOf(s), new(ETLPipelinePage), r, opts)
}

// All returns an iterator over the pipelines, page by page, starting at params.NextCursor. It
// behaves like [labhealth.LabTestsService.All].
func (s *PipelinesService) All(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListETLPipelinesParams, opts ...labhealth.CallOption) iter.Seq2[*ETLPipeline, error] {
	id := func(p *ETLPipeline) uuid.UUID { return p.TeamID }
	return cursorPages(ctx, coreOf(s), opts, opListPipelines, params.NextCursor, id, func(ctx context.Context, cursor string, opts []labhealth.CallOption) (any, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, env, region, params, opts...)
	})
}

// Upsert creates or replaces the pipelines of teams and returns them: POST
// /v1/org/{org_id}/team_etl_pipelines/{env}/{region}. It is idempotent: after any error it can be
// called again. At least one team is required, because the meaning of an empty list is not
// documented.
func (s *PipelinesService) Upsert(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, body UpsertETLPipelinesBody, opts ...labhealth.CallOption) ([]ETLPipeline, error) {
	return s.list(ctx, request{Op: opUpsertPipelines, IDs: []string{string(env), string(region)}, Body: &body}, opts)
}

// Delete deletes the pipelines of teams: DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}.
// It returns the pipelines of the response; it is not documented whether these are the deleted or
// the remaining ones. At least one team is required, because an empty list may mean all teams.
func (s *PipelinesService) Delete(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, teamIDs []uuid.UUID, opts ...labhealth.CallOption) ([]ETLPipeline, error) {
	r := request{Op: opDeletePipelines, IDs: []string{string(env), string(region)}, Params: batchParams{"team_id", teamIDs}}
	return s.list(ctx, r, opts)
}

// list calls an operation that responds with a list of pipelines.
func (s *PipelinesService) list(ctx context.Context, r request, opts []labhealth.CallOption) ([]ETLPipeline, error) {
	page, err := call(ctx, coreOf(s), new(ETLPipelinePage), r, opts)
	if err != nil {
		return nil, err
	}
	return page.Pipelines, nil
}

// EventHubDestination returns the destination of events of the given type, without calling the
// service. The type must start with one of the pipeline's prefixes, if it has any. The first
// matcher whose prefix or regular expression matches selects the destination; if none does, it is
// the default event hub. ok is false if such events are not pushed to an event hub or a blob
// storage container.
//
// If a regular expression is not valid in Go, EventHubDestination returns an error that names its
// matcher, even if another matcher matches: the syntax that the service uses is not documented.
func (p ETLPipeline) EventHubDestination(eventType string) (d EventHubDestination, ok bool, err error) {
	return p.AzureAMQP.destination(p.EventTypePrefixes, eventType)
}

// EventHubDestination returns the destination that events of the given type would have. See
// [ETLPipeline.EventHubDestination].
func (b UpsertETLPipelinesBody) EventHubDestination(eventType string) (d EventHubDestination, ok bool, err error) {
	return b.AzureAMQP.destination(b.EventTypePrefixes, eventType)
}

func (a *AzureAMQP) destination(prefixes []string, eventType string) (d EventHubDestination, ok bool, err error) {
	if a == nil {
		return d, false, nil
	}
	expressions, err := a.eventTypeExpressions()
	if err != nil {
		return d, false, err
	}
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(eventType, prefix) }
	if len(prefixes) > 0 && !slices.ContainsFunc(prefixes, hasPrefix) {
		return d, false, nil
	}
	d = EventHubDestination{EventHub: a.DefaultEventHub, Matcher: -1}
	for i, m := range a.EventHubMatchers {
		re := expressions[i]
		if m.EventTypePrefix != nil && hasPrefix(*m.EventTypePrefix) || re != nil && re.MatchString(eventType) {
			d = EventHubDestination{BlobStorage: m.BlobStorage, Matcher: i}
			if m.EventHub != nil {
				d.EventHub = *m.EventHub
			}
			break
		}
	}
	return d, d.EventHub != "" || d.BlobStorage != nil, nil
}

// eventTypeExpressions compiles the regular expressions of the matchers, nil for matchers without
// one.
func (a *AzureAMQP) eventTypeExpressions() ([]*regexp.Regexp, error) {
	expressions := make([]*regexp.Regexp, len(a.EventHubMatchers))
	for i, m := range a.EventHubMatchers {
		if m.EventTypeRegex == nil {
			continue
		}
		re, err := regexp.Compile(*m.EventTypeRegex)
		if err != nil {
			return nil, fmt.Errorf("labhealth: event_hub_matchers.%d.event_type_regex is not a valid regular expression: %w", i, err)
		}
		expressions[i] = re
	}
	return expressions, nil
}
