package labhealth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const (
	opListPipelines   = "GET /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
	opUpsertPipelines = "POST /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
	opDeletePipelines = "DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
)

// PipelinesService is the ETL pipelines of the teams: where events are pushed to, beside webhooks. They are available on the
// Scale plan.
type PipelinesService struct{ org *organisation }

// ETLPipeline is where the events of a team are pushed: one of the four destinations is set. It redacts itself when printed.
type ETLPipeline struct {
	TeamID             uuid.UUID            `json:"team_id"`                              // the team
	Preferences        json.RawMessage      `json:"preferences"`                          // of no published shape
	PushHistoricalData bool                 `json:"push_historical_data" default:"false"` // whether older data is pushed too, as daily.data events; false by default
	ProviderRawData    bool                 `json:"provider_raw_data" default:"false"`    // whether events raw.<provider>.* are pushed too; false by default
	CloudPubSub        *PipelineDestination `json:"cloud_pubsub,omitzero"`                // nil for another destination
	RabbitMQ           *PipelineDestination `json:"rabbitmq,omitzero"`                    // nil for another destination
	Svix               *PipelineDestination `json:"svix,omitzero"`                        // nil for another destination
	AzureAMQP          *AzureAMQP           `json:"azure_amqp,omitzero"`                  // nil for another destination
	EventTypePrefixes  []string             `json:"event_type_prefixes,omitzero"`         // events whose type begins with one of these are pushed; nil for all

	Kept `json:"-"`
}

// PipelineDestination is the configuration of a destination whose shape is not published: JSON, as it is sent and as it came. It
// may hold passwords and redacts itself when printed.
type PipelineDestination struct {
	JSON json.RawMessage // empty is null
}

// MarshalJSON writes the configuration as it is.
func (d PipelineDestination) MarshalJSON() ([]byte, error) {
	if len(d.JSON) == 0 {
		return []byte("null"), nil
	}
	return d.JSON, nil
}

// UnmarshalJSON keeps the configuration as it is.
func (d *PipelineDestination) UnmarshalJSON(b []byte) error {
	d.JSON = bytes.Clone(b)
	return nil
}

// Format shows nothing of the value.
func (d PipelineDestination) Format(s fmt.State, _ rune) { redacted(s, d) }

// LogValue shows nothing of the value.
func (PipelineDestination) LogValue() slog.Value { return redactedValue("PipelineDestination") }

// EventHubCompression says when an event is compressed. Values other than the constants occur.
type EventHubCompression string

// When events are compressed.
const (
	EventHubCompressionAuto   EventHubCompression = "auto"   // large ones only
	EventHubCompressionAlways EventHubCompression = "always" // all of them
)

// AzureAMQP is a destination at an Azure event hub. Which event hub, or which container of a blob storage, an event goes to is
// decided by the first matcher that fits its type: see [ETLPipeline.EventHubDestination]. It redacts itself when printed.
type AzureAMQP struct {
	// ConnectionString opens the event hubs. It is empty in answers that hide it. Its name is an inference.
	ConnectionString Secret `json:"connection_string,omitzero"`
	// DefaultEventHub takes what no matcher fits; nil if such events are not pushed.
	DefaultEventHub *string `json:"default_event_hub,omitzero"`
	// EventHubMatchers are tried in order.
	EventHubMatchers []EventHubMatcher `json:"event_hub_matchers,omitzero"`
	// Compression says when events are compressed, nil if not said.
	Compression *EventHubCompression `json:"compression,omitzero"`

	Kept `json:"-"`
}

// EventHubMatcher says where events of some types go: to an event hub or to a blob storage. It redacts itself when printed.
type EventHubMatcher struct {
	EventTypePrefix *string      `json:"event_type_prefix,omitzero"` // fits types that begin with it; nil for none
	EventTypeRegex  *string      `json:"event_type_regex,omitzero"`  // fits types in which the regular expression is found; nil for none
	EventHub        *string      `json:"event_hub,omitzero"`         // the event hub; nil for a blob storage
	BlobStorage     *BlobStorage `json:"blob_storage,omitzero"`      // the blob storage; nil for an event hub

	Kept `json:"-"`
}

// BlobStorage is a container that events are written to. It redacts itself when printed.
type BlobStorage struct {
	ConnectionString Secret `json:"connection_string"` // opens the storage; empty in answers that hide it
	ContainerName    string `json:"container_name"`    // the container
	// Container is ContainerName in another spelling, for answers that use it; nil otherwise.
	Container *string `json:"container,omitzero"`

	Kept `json:"-"`
}

// EventHubDestination is where an event goes: one of the two is set. It redacts itself when printed.
type EventHubDestination struct {
	EventHub    string       // the event hub; empty for a blob storage
	BlobStorage *BlobStorage // the blob storage; nil for an event hub
	Matcher     int          // which of the matchers fits, counted from 0; -1 if none does and this is the default
}

// ListETLPipelinesParams choose pipelines. Zero members are left out. They are those of team API keys, an inference.
type ListETLPipelinesParams struct {
	TeamID     uuid.UUID // pipelines of one team
	NextCursor string    // where the page begins: NextCursor of the page before; empty for the first
}

// ETLPipelinePage is one page of the list of pipelines, the answer of [PipelinesService.List], or those that
// [PipelinesService.Upsert] set.
type ETLPipelinePage struct {
	Pipelines  []ETLPipeline `json:"pipelines" jsonread:"own"` // the pipelines of the page
	NextCursor *string       `json:"next_cursor,omitzero"`     // where the next page begins; nil at the end of the list

	Kept `json:"-"`
}

// UpsertETLPipelinesBody is the request of [PipelinesService.Upsert]. One of the four destinations is to be set. It redacts itself
// when printed.
type UpsertETLPipelinesBody struct {
	TeamIDs            []uuid.UUID          `json:"team_ids"`                      // the teams that get a pipeline each
	Preferences        json.RawMessage      `json:"preferences"`                   // required, of no published shape
	PushHistoricalData *bool                `json:"push_historical_data,omitzero"` // see [ETLPipeline]; nil for false
	ProviderRawData    *bool                `json:"provider_raw_data,omitzero"`    // see [ETLPipeline]; nil for false
	CloudPubSub        *PipelineDestination `json:"cloud_pubsub,omitzero"`         // nil for another destination
	RabbitMQ           *PipelineDestination `json:"rabbitmq,omitzero"`             // nil for another destination
	Svix               *PipelineDestination `json:"svix,omitzero"`                 // nil for another destination
	AzureAMQP          *AzureAMQP           `json:"azure_amqp,omitzero"`           // nil for another destination
	EventTypePrefixes  []string             `json:"event_type_prefixes,omitzero"`  // see [ETLPipeline]; nil for all
}

// List reads one page of the pipelines in an environment: GET /v1/org/{org_id}/team_etl_pipelines/{env}/{region}.
func (s *PipelinesService) List(ctx context.Context, env TeamEnvironment, region Region, params ListETLPipelinesParams, opts ...CallOption) (*ETLPipelinePage, error) {
	q := newQuery()
	q.id("team_id", params.TeamID)
	q.text("next_cursor", params.NextCursor)
	r := s.org.request(opListPipelines, string(env), string(region))
	r.query = q.Values
	return call[ETLPipelinePage](ctx, s.org.core, r, nil, opts)
}

// All reads the pipelines page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *PipelinesService) All(ctx context.Context, env TeamEnvironment, region Region, params ListETLPipelinesParams, opts ...CallOption) iter.Seq2[*ETLPipeline, error] {
	id := func(v *ETLPipeline) uuid.UUID { return v.TeamID }
	return paged(opListPipelines, params.NextCursor, id, func(cursor string) (p part[ETLPipeline, string], err error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, env, region, params, opts...)
		if err != nil {
			return p, err
		}
		return cursorPart(page.Pipelines, page.NextCursor), nil
	})
}

// Upsert sets the pipelines of teams, in place of those they had: POST /v1/org/{org_id}/team_etl_pipelines/{env}/{region}. It can
// be called again after any error. What the service answers is not published: the pipelines, and one alone, are read.
func (s *PipelinesService) Upsert(ctx context.Context, env TeamEnvironment, region Region, body UpsertETLPipelinesBody, opts ...CallOption) (*ETLPipelinePage, error) {
	var c checker
	if len(body.TeamIDs) == 0 {
		c.add("team_ids", "missing", "is required: at least one team")
	}
	c.at("team_ids", func() {
		for i, id := range body.TeamIDs {
			c.id(fmt.Sprint(i), id)
		}
	})
	c.text("preferences", string(body.Preferences))
	r := s.org.request(opUpsertPipelines, string(env), string(region))
	r.value, r.problems = &body, c.in("body")
	return call(ctx, s.org.core, r, func(p *ETLPipelinePage) string {
		var one ETLPipeline
		if p.Pipelines == nil && jsonread.Unmarshal(p.RawJSON(), &one) == nil && one.TeamID != uuid.Nil {
			p.Pipelines = []ETLPipeline{one}
		}
		return ""
	}, opts)
}

// Delete deletes the pipelines of teams: DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}. The answer says what became of
// each. That pipelines are named by their teams, in a parameter team_id, is an inference.
func (s *PipelinesService) Delete(ctx context.Context, env TeamEnvironment, region Region, teamIDs []uuid.UUID, opts ...CallOption) (*BatchDeletion, error) {
	return s.org.deleteBatch(ctx, opDeletePipelines, "team_id", env, region, teamIDs, opts)
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
	hub := a.DefaultEventHub
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
