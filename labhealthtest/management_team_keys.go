package labhealthtest

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

type apiKey struct {
	ID        uuid.UUID `json:"id"`
	Label     string    `json:"label"`
	Value     string    `json:"value"`
	TeamID    uuid.UUID `json:"team_id"`
	CreatedAt stamp     `json:"created_at"`

	env, region string
}

type token struct {
	team  uuid.UUID
	until time.Time
}

type credentials struct {
	ID          uuid.UUID       `json:"id"`
	TeamID      uuid.UUID       `json:"team_id"`
	Source      string          `json:"source"`
	ClientID    *string         `json:"client_id"`
	SecretHash  *string         `json:"client_secret_hash"`
	CreatedAt   stamp           `json:"created_at"`
	UpdatedAt   stamp           `json:"updated_at"`
	Details     json.RawMessage `json:"details"`
	AppURL      *string         `json:"app_url"`
	RedirectURL *string         `json:"redirect_url_override"`

	env, region string
}

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

	env, region string
}

var (
	apiKeyBody = object(
		field{"label", required, text, nil},
		field{"team_id", required, aUUID, nil},
	)
	credentialsBody = object(
		field{"team_id", required, aUUID, nil},
		field{"provider", required, text, nil},
		field{"client_id", optional | nullable, text, nil},
		field{"client_secret", optional | nullable, text, nil},
		field{"details", optional | nullable, anything, nil},
		field{"redirect_url_override", optional | nullable, text, nil},
	)
	prepareBody = object(
		field{"team_id", required, aUUID, nil},
		field{"provider", required, text, nil},
	)
	destination     = oneOf("cloud_pubsub", "rabbitmq", "svix", "azure_amqp")
	eventHubMatcher = object(
		field{"event_type_prefix", optional | nullable, text, nil},
		field{"event_type_regex", optional | nullable, text, nil},
		field{"event_hub", optional | nullable, text, nil},
		field{"blob_storage", optional | nullable, object(
			field{"connection_string", required, text, nil},
			field{"container_name", required, text, nil},
		), nil},
	)
	pipelinesBody = object(
		field{"team_ids", optional, list(aUUID), []any{}},
		field{"preferences", optional | nullable, object(
			field{"preferred", required, destination, nil},
			field{"enabled", required, list(destination), nil},
		), nil},
		field{"push_historical_data", optional | nullable, aBoolean, nil},
		field{"provider_raw_data", optional | nullable, aBoolean, nil},
		field{"cloud_pubsub", optional | nullable, object(
			field{"project", required, text, nil},
			field{"topic", required, text, nil},
			field{"message_ordering", required, aBoolean, nil},
		), nil},
		field{"rabbitmq", optional | nullable, object(
			field{"uri", required, text, nil},
			field{"exchange", required, text, nil},
		), nil},
		field{"svix", optional | nullable, object(field{"regional", optional, aBoolean, true}), nil},
		field{"azure_amqp", optional | nullable, object(
			field{"connection_string", required, text, nil},
			field{"default_event_hub", required, text, nil},
			field{"event_hub_matchers", optional, list(eventHubMatcher), []any{}},
			field{"compression", optional, oneOf("auto", "always"), "auto"},
		), nil},
		field{"event_type_prefixes", optional, list(text), nil},
	)
)

// inPlace reads the environment and the region of the path.
func (r *request) inPlace() (env, region string) { return r.vars["env"], r.vars["region"] }

// within reports whether the caller may see a thing of a team in a place, which the parameter team_id selects too.
func (s *Server) within(r *request, caller *managementKey) func(team uuid.UUID, env, region string) bool {
	teamID := r.queryOne("team_id", aUUID)
	wantEnv, wantRegion := r.inPlace()
	return func(team uuid.UUID, env, region string) bool {
		return caller.may(team) && env == wantEnv && region == wantRegion && (teamID == "" || team.String() == teamID)
	}
}

// choose returns the elements of list that are wanted.
func choose[E any](list []E, wanted func(E) bool) []E {
	return slices.DeleteFunc(slices.Clone(list), func(e E) bool { return !wanted(e) })
}

// inRegion is managed for a team that must be in the region of the path.
func (s *Server) inRegion(r *request, caller *managementKey, id uuid.UUID) (*team, answer) {
	t, a := s.managed(caller, id)
	if _, region := r.inPlace(); t != nil && t.Region != region {
		return nil, refuse(http.StatusBadRequest, "The team is in another region")
	}
	return t, a
}

func (s *Server) listAPIKeys(r *request, caller *managementKey) answer {
	in := s.within(r, caller)
	found := choose(s.org.apiKeys, func(k *apiKey) bool { return in(k.TeamID, k.env, k.region) })
	return replyPage(r, "api_keys", found, func(k *apiKey) string { return k.ID.String() })
}

func (s *Server) createAPIKey(r *request, caller *managementKey) answer {
	k := &apiKey{ID: s.madeID(), CreatedAt: stamp(r.now)}
	k.env, k.region = r.inPlace()
	r.decode(apiKeyBody, k)
	if a, bad := r.invalid(); bad {
		return a
	}
	if t, a := s.inRegion(r, caller, k.TeamID); t == nil {
		return a
	}
	k.Value = s.madeKey(map[string]string{"sandbox": "sk_", "production": "pk_"}[k.env] + k.region + "_")
	s.org.apiKeys = append(s.org.apiKeys, k)
	return reply(k)
}

// deleteEach deletes what the repeated parameter name names and remove removes.
func deleteEach(r *request, name string, remove func(uuid.UUID) bool) answer {
	ids := r.queryList(name, aUUID)
	if len(ids) == 0 {
		r.add("missing", []any{"query", name}, "Field required", []byte("null"), nil)
	}
	if a, bad := r.invalid(); bad {
		return a
	}
	deleted, missing := []string{}, []string{}
	for _, id := range ids {
		if remove(uuid.MustParse(id)) {
			deleted = append(deleted, id)
		} else {
			missing = append(missing, id)
		}
	}
	return reply(map[string][]string{"success": deleted, "failure": {}, "not_found": missing})
}

// removeFrom deletes the elements that are wanted and reports whether there were any.
func removeFrom[E any](list *[]E, wanted func(E) bool) bool {
	n := len(*list)
	*list = slices.DeleteFunc(*list, wanted)
	return len(*list) < n
}

func (s *Server) deleteAPIKeys(r *request, caller *managementKey) answer {
	in := s.within(r, caller)
	return deleteEach(r, "api_key_id", func(id uuid.UUID) bool {
		return removeFrom(&s.org.apiKeys, func(k *apiKey) bool { return k.ID == id && in(k.TeamID, k.env, k.region) })
	})
}

func (s *Server) listCredentials(r *request, caller *managementKey) answer {
	in := s.within(r, caller)
	found := choose(s.org.credentials, func(c *credentials) bool { return in(c.TeamID, c.env, c.region) })
	return replyPage(r, "credentials", found, func(c *credentials) string { return c.ID.String() })
}

func (s *Server) upsertCredentials(r *request, caller *managementKey) answer {
	var body struct {
		credentials
		Provider     string  `json:"provider"`
		ClientSecret *string `json:"client_secret"`
	}
	r.decode(credentialsBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	if t, a := s.inRegion(r, caller, body.TeamID); t == nil {
		return a
	}
	c := body.credentials
	c.Source, c.CreatedAt, c.UpdatedAt = body.Provider, stamp(r.now), stamp(r.now)
	c.env, c.region = r.inPlace()
	if body.ClientSecret != nil {
		hash := s.derive("secret "+*body.ClientSecret, 0)
		c.SecretHash = new(hex.EncodeToString(hash[:]))
	}
	for _, old := range s.org.credentials {
		if old.TeamID == c.TeamID && old.Source == c.Source && old.env == c.env && old.region == c.region {
			c.ID, c.CreatedAt = old.ID, old.CreatedAt
			*old = c
			return reply(old)
		}
	}
	c.ID = s.madeID()
	s.org.credentials = append(s.org.credentials, &c)
	return reply(c)
}

func (s *Server) deleteCredentials(r *request, caller *managementKey) answer {
	in := s.within(r, caller)
	return deleteEach(r, "credential_id", func(id uuid.UUID) bool {
		return removeFrom(&s.org.credentials, func(c *credentials) bool { return c.ID == id && in(c.TeamID, c.env, c.region) })
	})
}

// prepareCredentials asks for a redirect address at providers whose name begins with "oura" or "fitbit", and for nothing at
// others.
func (s *Server) prepareCredentials(r *request, caller *managementKey) answer {
	var body struct {
		TeamID   uuid.UUID `json:"team_id"`
		Provider string    `json:"provider"`
	}
	r.decode(prepareBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	if t, a := s.inRegion(r, caller, body.TeamID); t == nil {
		return a
	}
	if body.Provider != "oura" && body.Provider != "fitbit" {
		return reply(map[string]any{"status": "no_action_needed", "preparation_steps": []any{}})
	}
	return reply(map[string]any{"status": "preparations_required", "preparation_steps": []map[string]any{{
		"type": "redirect_uri", "key": nil, "value": s.URL + "/oauth/" + body.Provider, "description": "Allow this redirect address.",
	}}})
}

func (s *Server) listPipelines(r *request, caller *managementKey) answer {
	in := s.within(r, caller)
	found := choose(s.org.pipelines, func(p *pipeline) bool { return in(p.TeamID, p.env, p.region) })
	return replyPage(r, "pipelines", found, func(p *pipeline) string { return p.TeamID.String() })
}

// upsertPipelines stores pipelines and pushes nothing. Without preferences a pipeline prefers the
// first of its destinations and uses all of them.
func (s *Server) upsertPipelines(r *request, caller *managementKey) answer {
	var body struct {
		pipeline
		TeamIDs []uuid.UUID `json:"team_ids"`
	}
	r.decode(pipelinesBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	if string(body.Preferences) == "null" {
		enabled := []string{}
		for i, d := range []json.RawMessage{body.CloudPubSub, body.RabbitMQ, body.Svix, body.AzureAMQP} {
			if string(d) != "null" {
				enabled = append(enabled, []string{"cloud_pubsub", "rabbitmq", "svix", "azure_amqp"}[i])
			}
		}
		if len(enabled) == 0 {
			return refuse(http.StatusBadRequest, "A pipeline needs a destination")
		}
		body.Preferences = encode(map[string]any{"preferred": enabled[0], "enabled": enabled})
	}
	for _, id := range body.TeamIDs {
		if t, a := s.inRegion(r, caller, id); t == nil {
			return a
		}
	}
	made := []*pipeline{}
	for _, id := range body.TeamIDs {
		p := body.pipeline
		p.TeamID = id
		p.env, p.region = r.inPlace()
		removeFrom(&s.org.pipelines, func(old *pipeline) bool { return old.TeamID == id && old.env == p.env && old.region == p.region })
		s.org.pipelines = append(s.org.pipelines, &p)
		made = append(made, &p)
	}
	return reply(made)
}

// deletePipelines deletes the pipelines of the teams that the query names, or of all teams, and
// responds with them.
func (s *Server) deletePipelines(r *request, caller *managementKey) answer {
	env, region := r.inPlace()
	teams := r.queryList("team_id", aUUID)
	if a, bad := r.invalid(); bad {
		return a
	}
	chosen := func(p *pipeline) bool {
		return caller.may(p.TeamID) && p.env == env && p.region == region && (len(teams) == 0 || slices.Contains(teams, p.TeamID.String()))
	}
	deleted := append([]*pipeline{}, choose(s.org.pipelines, chosen)...)
	s.org.pipelines = slices.DeleteFunc(s.org.pipelines, chosen)
	return reply(deleted)
}
