package labhealthtest

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
)

type pipeline struct {
	TeamID            uuid.UUID       `json:"team_id"`
	Preferences       json.RawMessage `json:"preferences"`
	PushHistorical    bool            `json:"push_historical_data"`
	ProviderRaw       bool            `json:"provider_raw_data"`
	CloudPubSub       json.RawMessage `json:"cloud_pubsub"`
	RabbitMQ          json.RawMessage `json:"rabbitmq"`
	Svix              json.RawMessage `json:"svix"`
	AzureAMQP         json.RawMessage `json:"azure_amqp"`
	EventTypePrefixes []string        `json:"event_type_prefixes"`

	deployment deployment
}

var (
	destinationSchema     = enum("cloud_pubsub", "rabbitmq", "svix", "azure_amqp")
	eventHubMatcherSchema = object(
		nullable("event_type_prefix", stringSchema),
		nullable("event_type_regex", stringSchema),
		nullable("event_hub", stringSchema),
		nullable("blob_storage", object(
			required("connection_string", stringSchema),
			required("container_name", stringSchema),
		)),
	)
	upsertPipelinesSchema = object(
		optional("team_ids", arrayOf(uuidSchema), []any{}),
		nullable("preferences", object(
			required("preferred", destinationSchema),
			required("enabled", arrayOf(destinationSchema)),
		)),
		nullable("push_historical_data", booleanSchema),
		nullable("provider_raw_data", booleanSchema),
		nullable("cloud_pubsub", object(
			required("project", stringSchema),
			required("topic", stringSchema),
			required("message_ordering", booleanSchema),
		)),
		nullable("rabbitmq", object(
			required("uri", stringSchema),
			required("exchange", stringSchema),
		)),
		nullable("svix", object(optional("regional", booleanSchema, true))),
		nullable("azure_amqp", object(
			required("connection_string", stringSchema),
			required("default_event_hub", stringSchema),
			optional("event_hub_matchers", arrayOf(eventHubMatcherSchema), []any{}),
			optional("compression", enum("auto", "always"), "auto"),
		)),
		optional("event_type_prefixes", arrayOf(stringSchema), nil),
	)
)

func (s *Server) listPipelines(r *request) (any, error) {
	visible := isVisible(r)
	found := selectFunc(s.org.pipelines, func(p *pipeline) bool { return visible(p.TeamID, p.deployment) })
	return page(r, "pipelines", found, func(p *pipeline) string { return p.TeamID.String() })
}

// destinations returns the names of the destinations of a pipeline.
func (p *pipeline) destinations() []string {
	names := []string{}
	for _, d := range []struct {
		name     string
		settings json.RawMessage
	}{
		{"cloud_pubsub", p.CloudPubSub},
		{"rabbitmq", p.RabbitMQ},
		{"svix", p.Svix},
		{"azure_amqp", p.AzureAMQP},
	} {
		if string(d.settings) != "null" {
			names = append(names, d.name)
		}
	}
	return names
}

// upsertPipelines stores pipelines. The server pushes nothing to them. Without preferences a
// pipeline prefers the first of its destinations and enables all of them.
func (s *Server) upsertPipelines(r *request) (any, error) {
	var body struct {
		pipeline
		TeamIDs []uuid.UUID `json:"team_ids"`
	}
	r.decode(upsertPipelinesSchema, &body)
	if err := r.err(); err != nil {
		return nil, err
	}
	if string(body.Preferences) == "null" {
		enabled := body.destinations()
		if len(enabled) == 0 {
			return nil, reject(http.StatusBadRequest, "A pipeline needs a destination")
		}
		body.Preferences = encode(map[string]any{"preferred": enabled[0], "enabled": enabled})
	}
	for _, id := range body.TeamIDs {
		if _, err := s.localTeam(r, id); err != nil {
			return nil, err
		}
	}
	upserted := []*pipeline{}
	for _, id := range body.TeamIDs {
		p := body.pipeline
		p.TeamID, p.deployment = id, r.deployment()
		removeFunc(&s.org.pipelines, func(old *pipeline) bool { return old.TeamID == id && old.deployment == p.deployment })
		s.org.pipelines = append(s.org.pipelines, &p)
		upserted = append(upserted, &p)
	}
	return upserted, nil
}

// deletePipelines deletes the pipelines of the teams in the query, or of all teams, and responds
// with them.
func (s *Server) deletePipelines(r *request) (any, error) {
	teams := r.queryList("team_id", uuidSchema)
	if err := r.err(); err != nil {
		return nil, err
	}
	visible := isVisibleOf(r, teams)
	match := func(p *pipeline) bool { return visible(p.TeamID, p.deployment) }
	deleted := append([]*pipeline{}, selectFunc(s.org.pipelines, match)...)
	removeFunc(&s.org.pipelines, match)
	return deleted, nil
}
