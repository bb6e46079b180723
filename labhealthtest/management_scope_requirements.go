package labhealthtest

import (
	"encoding/json"

	"github.com/google/uuid"
)

// scopes are the scope requirements of a team for a provider.
type scopes struct {
	Must     []string  `json:"user_must_grant"`
	May      []string  `json:"user_may_grant"`
	TeamID   uuid.UUID `json:"team_id"`
	Provider string    `json:"provider"`
}

const googleScope = "https://www.googleapis.com/auth/"

// scopesOf lists the scopes of the providers that have requirements, in the order of responses.
var scopesOf = []struct {
	provider string
	values   schema
}{
	{"fitbit", enum("heartrate", "oxygen_saturation", "cardio_fitness", "respiratory_rate", "activity", "location", "nutrition",
		"profile", "settings", "sleep", "social", "weight", "temperature")},
	{"google_fit", enum("openid", "email", googleScope+"fitness.activity.read", googleScope+"fitness.body.read",
		googleScope+"fitness.sleep.read", googleScope+"fitness.blood_glucose.read", googleScope+"fitness.blood_pressure.read",
		googleScope+"fitness.heart_rate.read", googleScope+"fitness.nutrition.read", googleScope+"fitness.location.read")},
	{"google_health", enum("openid", "email", googleScope+"googlehealth.activity_and_fitness.readonly",
		googleScope+"googlehealth.sleep.readonly", googleScope+"googlehealth.health_metrics_and_measurements.readonly",
		googleScope+"googlehealth.nutrition.readonly", googleScope+"googlehealth.ecg.readonly", googleScope+"googlehealth.irn.readonly",
		googleScope+"googlehealth.location.readonly", googleScope+"googlehealth.profile.readonly", googleScope+"googlehealth.settings.readonly")},
	{"oura", enum("email", "personal", "daily", "heartrate", "workout", "tag", "session")},
	{"strava", enum("activity:read_all", "activity:write", "profile:write", "profile:read_all")},
	{"withings", enum("user.activity", "user.metrics", "user.sleepevents")},
	{"wahoo", enum("email", "user_read", "workouts_read", "offline_data")},
	{"whoop_v2", enum("read:recovery", "read:cycles", "read:workout", "read:sleep", "read:profile", "read:body_measurement", "offline")},
	{"my_fitness_pal_v2", enum("diary", "measurements", "private-exercises", "subscriptions")},
}

var upsertScopesSchema = func() schema {
	var fields []field
	for _, p := range scopesOf {
		fields = append(fields, nullable(p.provider, object(
			required("user_must_grant", arrayOf(p.values)),
			required("user_may_grant", arrayOf(p.values)),
		)))
	}
	return patchObject(fields...)
}()

// listScopes lists the requirements of a team that were set.
func (s *Server) listScopes(r *request) (any, error) {
	provider := r.queryOne("provider", oauthProviderSchema)
	t, err := s.requestedTeam(r)
	if err != nil {
		return nil, err
	}
	found := []scopes{}
	for _, p := range scopesOf {
		if required, ok := t.scopes[p.provider]; ok && (provider == "" || provider == p.provider) {
			found = append(found, required)
		}
	}
	return map[string]any{"requirements": found}, nil
}

// upsertScopes replaces the requirements for the providers in the body. Null leaves those of a
// provider unchanged.
func (s *Server) upsertScopes(r *request) (any, error) {
	var body map[string]json.RawMessage
	r.decode(upsertScopesSchema, &body)
	t, err := s.requestedTeam(r)
	if err != nil {
		return nil, err
	}
	for provider, raw := range body {
		required := scopes{TeamID: t.ID, Provider: provider}
		if json.Unmarshal(raw, &required); string(raw) != "null" {
			t.scopes[provider] = required
		}
	}
	return success, nil
}
