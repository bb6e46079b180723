package labhealthtest

import (
	"encoding/hex"
	"encoding/json"

	"github.com/google/uuid"
)

type credentials struct {
	ID          uuid.UUID       `json:"id"`
	TeamID      uuid.UUID       `json:"team_id"`
	Source      string          `json:"source"`
	ClientID    *string         `json:"client_id"`
	SecretHash  *string         `json:"client_secret_hash"`
	CreatedAt   timestamp       `json:"created_at"`
	UpdatedAt   timestamp       `json:"updated_at"`
	Details     json.RawMessage `json:"details"`
	AppURL      *string         `json:"app_url"`
	RedirectURL *string         `json:"redirect_url_override"`

	deployment deployment
}

var (
	credentialsSchema = object(
		required("team_id", uuidSchema),
		required("provider", stringSchema),
		nullable("client_id", stringSchema),
		nullable("client_secret", stringSchema),
		nullable("details", detailsSchema),
		nullable("redirect_url_override", stringSchema),
	)
	prepareCredentialsSchema = object(
		required("team_id", uuidSchema),
		required("provider", stringSchema),
	)
)

// detailsSchema accepts the details of any provider, for every provider.
var detailsSchema = anyOf(
	variant{"FitbitTeamProviderDetails", object(required("fitbit", object(
		optional("is_hr_enabled", booleanSchema, false),
		required("workout_verify_token", stringSchema),
		required("sleep_verify_token", stringSchema),
		required("body_verify_token", stringSchema),
		nullable("foods_verify_token", stringSchema),
	)))},
	variant{"GoogleFitTeamProviderDetails", object(
		required("redirect_uri", stringSchema),
		required("data_scopes", arrayOf(stringSchema)),
	)},
	variant{"GoogleHealthTeamProviderDetails", object(
		required("project_number", stringSchema),
		required("service_account_email", stringSchema),
	)},
	variant{"BioReferenceProviderDetails", labDetails(required("bioreference", objectOfAny))},
	variant{"LabCorpTeamProviderDetails", labDetails(required("labcorp", object(
		required("account_number", stringSchema),
		required("billing_method", enum("CM", "PT", "PI")),
	)))},
	variant{"QuestProviderDetails", labDetails(
		required("quest", objectOfAny),
		nullable("allowed_business_units", arrayOf(stringSchema)),
	)},
	variant{"PolarTeamProviderDetails", object(required("webhook_secret", stringSchema))},
	variant{"GetLabsTeamProviderDetails", object(required("getlabs", object(
		required("webhook_secret_key", stringSchema),
		required("webhook_secret_token", stringSchema),
	)))},
	variant{"PhlebFindersTeamProviderDetails", object(required("phlebfinders", object(
		required("account_id", stringSchema),
		required("account_name", stringSchema),
		required("team_id", stringSchema),
		required("team_name", stringSchema),
		required("webhook_token", stringSchema),
		required("email", stringSchema),
	)))},
	variant{"LabcorpProviderDetails", labDetails(
		required("sending_facility", stringSchema),
		required("sending_application", stringSchema),
		required("receiving_facility", stringSchema),
		required("receiving_application", stringSchema),
	)},
	variant{"MyFitnessPalV2TeamProviderDetails", object(required("client", stringSchema))},
)

// labDetails is the schema of the details of a lab, which have these fields and those of all labs.
func labDetails(fields ...field) schema {
	return object(append([]field{
		nullable("sub_account_id", stringSchema),
		nullable("sub_account_name", stringSchema),
		nullable("allowed_billing_types", arrayOf(enum("client_bill", "commercial_insurance", "patient_bill_passthrough", "patient_bill"))),
		nullable("disallowed_billing_states", mapOf(arrayOf(stringSchema))),
	}, fields...)...)
}

func (s *Server) listCredentials(r *request) (any, error) {
	teams, provider := r.queryList("team_id", uuidSchema), r.queryOne("provider", stringSchema)
	visible := isVisibleOf(r, teams)
	found := selectFunc(s.org.credentials, func(c *credentials) bool {
		return visible(c.TeamID, c.deployment) && (provider == "" || c.Source == provider)
	})
	return page(r, "credentials", found, func(c *credentials) string { return c.ID.String() })
}

// upsertCredentials creates or replaces the credentials of a team and a provider.
func (s *Server) upsertCredentials(r *request) (any, error) {
	var body struct {
		credentials
		Provider     string  `json:"provider"`
		ClientSecret *string `json:"client_secret"`
	}
	r.decode(credentialsSchema, &body)
	if err := r.err(); err != nil {
		return nil, err
	}
	if _, err := s.localTeam(r, body.TeamID); err != nil {
		return nil, err
	}
	c := body.credentials
	c.Source, c.CreatedAt, c.UpdatedAt = body.Provider, timestamp(r.now), timestamp(r.now)
	c.deployment = r.deployment()
	if body.ClientSecret != nil {
		hash := s.derive("secret "+*body.ClientSecret, 0)
		c.SecretHash = new(hex.EncodeToString(hash[:]))
	}
	for _, old := range s.org.credentials {
		if old.TeamID == c.TeamID && old.Source == c.Source && old.deployment == c.deployment {
			c.ID, c.CreatedAt = old.ID, old.CreatedAt
			*old = c
			return old, nil
		}
	}
	c.ID = s.deriveID()
	s.org.credentials = append(s.org.credentials, &c)
	return c, nil
}

func (s *Server) deleteCredentials(r *request) (any, error) {
	visible := isVisible(r)
	return deleteByID(r, "credential_id", func(id uuid.UUID) bool {
		return removeFunc(&s.org.credentials, func(c *credentials) bool {
			return c.ID == id && visible(c.TeamID, c.deployment)
		})
	})
}

// prepareCredentials requires a redirect URL for the providers "oura" and "fitbit", and for nothing
// for others.
func (s *Server) prepareCredentials(r *request) (any, error) {
	var body struct {
		TeamID   uuid.UUID `json:"team_id"`
		Provider string    `json:"provider"`
	}
	r.decode(prepareCredentialsSchema, &body)
	if err := r.err(); err != nil {
		return nil, err
	}
	if _, err := s.localTeam(r, body.TeamID); err != nil {
		return nil, err
	}
	if body.Provider != "oura" && body.Provider != "fitbit" {
		return map[string]any{"status": "no_action_needed", "preparation_steps": []any{}}, nil
	}
	return map[string]any{"status": "preparations_required", "preparation_steps": []map[string]any{{
		"type": "redirect_uri", "key": nil, "value": s.URL + "/oauth/" + body.Provider,
		"description": "Allow this redirect address.",
	}}}, nil
}
