// ETL pipelines.

package labhealthtest

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
)

type pipeline struct {
	Preferences       json.RawMessage `json:"preferences"`
	PushHistorical    bool            `json:"push_historical_data"`
	ProviderRaw       bool            `json:"provider_raw_data"`
	CloudPubSub       json.RawMessage `json:"cloud_pubsub"`
	RabbitMQ          json.RawMessage `json:"rabbitmq"`
	Svix              json.RawMessage `json:"svix"`
	AzureAMQP         json.RawMessage `json:"azure_amqp"`
	EventTypePrefixes []string        `json:"event_type_prefixes"`

	owned
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
	r.decode(&body)
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
		p.owned = owned{id, r.deployment()}
		removeFunc(&s.org.pipelines, func(old *pipeline) bool { return old.owned == p.owned })
		s.org.pipelines = append(s.org.pipelines, &p)
		upserted = append(upserted, &p)
	}
	return upserted, nil
}

// deletePipelines deletes the pipelines of the teams in the query, or of all teams, and responds
// with them.
func (s *Server) deletePipelines(r *request) (any, error) {
	visible := isVisible(r)
	match := func(p *pipeline) bool { return visible(&p.owned) }
	deleted := append([]*pipeline{}, selectFunc(s.org.pipelines, match)...)
	removeFunc(&s.org.pipelines, match)
	return deleted, nil
}
