// The team of a key, its users and its source priorities.

package labhealthtest

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// organisationServer returns the server that has the management API. While a request is processed,
// both it and the server of the team are locked.
func (s *Server) organisationServer() *Server {
	if s.parent != nil {
		return s.parent
	}
	return s
}

// ownTeam returns the team of the server. It is called while a request is processed.
func (s *Server) ownTeam() *team { return s.organisationServer().team(s.TeamID) }

type teamDetails struct {
	ID              uuid.UUID        `json:"id"`
	OrgID           uuid.UUID        `json:"org_id"`
	Name            string           `json:"name"`
	SvixAppID       *string          `json:"svix_app_id"`
	ClientID        string           `json:"client_id"`
	ClientSecret    string           `json:"client_secret"`
	AirtableAPIKey  string           `json:"airtable_api_key"`
	AirtableBaseID  string           `json:"airtable_base_id"`
	WebhookSecret   string           `json:"webhook_secret"`
	APIKey          string           `json:"api_key"`
	APIKeys         []teamDetailsKey `json:"api_keys"`
	Configuration   map[string]any   `json:"configuration"`
	TestkitsTexts   bool             `json:"testkits_texts_enabled"`
	Communication   bool             `json:"lab_tests_patient_communication_enabled"`
	SMS             bool             `json:"lab_tests_patient_sms_communication_enabled"`
	Email           bool             `json:"lab_tests_patient_email_communication_enabled"`
	LogoURL         *string          `json:"logo_url"`
	DelegatedFlow   string           `json:"delegated_flow"`
	CriticalResults *string          `json:"critical_result_notification_email"`
}

type teamDetailsKey struct {
	apiKey
	DeletedAt *timestamp `json:"deleted_at"`
}

// requestedOwnTeam returns the team in the path, which must be that of the key.
func (s *Server) requestedOwnTeam(r *request) (*team, error) {
	if r.pathUUID("team_id") != s.TeamID || s.ownTeam() == nil {
		return nil, teamNotFound
	}
	return s.ownTeam(), nil
}

// getOwnTeam responds with the settings of the sandbox, which the management API changes.
func (s *Server) getOwnTeam(_ *request, t *team) (any, error) {
	v := teamDetails{
		ID: t.ID, OrgID: s.OrgID, Name: t.Name, APIKeys: []teamDetailsKey{}, Configuration: t.Sandbox.configuration(),
		TestkitsTexts: t.Sandbox.SMS, Communication: t.Sandbox.SMS || t.Sandbox.Email, SMS: t.Sandbox.SMS, Email: t.Sandbox.Email,
		LogoURL: t.Sandbox.LogoURL, DelegatedFlow: "order_and_results_with_customer_physician_network",
		CriticalResults: t.Sandbox.CriticalEmail,
	}
	for _, k := range s.organisationServer().org.apiKeys {
		if k.TeamID == t.ID && k.deployment == (deployment{serverEnv, serverRegion}) {
			v.APIKeys = append(v.APIKeys, teamDetailsKey{apiKey: *k})
			v.APIKey = k.Value
		}
	}
	return v, nil
}

// configuration returns the settings in the format of the team API.
func (v *settings) configuration() map[string]any {
	return map[string]any{
		"libreview":                          map[string]any{"practice_id": map[string]any{}, "strip_tz": false},
		"texts_enabled":                      v.SMS,
		"push_historical_data":               false,
		"provider_raw_data":                  false,
		"reject_duplicate_connection":        v.Duplicate,
		"sdk_per_device_activity_timeseries": v.PerDevice,
		"partial_webhooks_enabled":           v.Partial,
		"minor_ordering_enabled":             v.Minors,
		"eds_preferences":                    map[string]any{"preferred": "svix", "enabled": []string{"svix"}},
		"event_type_prefixes":                nil,
	}
}

// listPhysicians responds with one invented physician.
func (s *Server) listPhysicians(*request, *team) (any, error) {
	return []map[string]string{{"first_name": "Alan", "last_name": "Example", "npi": "1234567893"}}, nil
}

// maxFound is the number of users that a search returns at most.
const maxFound = 100

// searchUsers matches any part of the IDs of users, ignoring case.
func (s *Server) searchUsers(r *request) (any, error) {
	part := r.queryOne("query_id")
	found := []*user{}
	for _, u := range s.users {
		text := strings.ToLower(u.ClientUserID) + " " + u.UserID.String()
		if len(found) < maxFound && strings.Contains(text, strings.ToLower(part)) {
			found = append(found, u)
		}
	}
	return found, nil
}

// priorities are the order of the sources of one kind of data. The shape of the objects in the
// public API reference is not documented: the server requires a data type only.
type priorities struct {
	dataType string
	object   json.RawMessage
}

// prioritySchema returns the object itself.
func prioritySchema(v *validator, location []any, raw json.RawMessage) any {
	object(required("data_type", enum(reference.Enumerations()["PriorityResource"]...)))(v, location, raw)
	return raw
}

func (s *Server) listPriorities(r *request) (any, error) {
	return s.prioritiesOf(r.queryOne("data_type")), nil
}

// prioritiesOf returns the priorities of one kind of data, or all if it is empty.
func (s *Server) prioritiesOf(dataType string) []json.RawMessage {
	list := []json.RawMessage{}
	for _, p := range s.priorities {
		if dataType == "" || p.dataType == dataType {
			list = append(list, p.object)
		}
	}
	return list
}

// patchPriorities replaces the priorities of the kinds of data in the body, a list of objects.
func (s *Server) patchPriorities(r *request) (any, error) {
	var body []json.RawMessage
	r.decode(&body)
	for _, object := range body {
		var kind struct {
			DataType string `json:"data_type"`
		}
		json.Unmarshal(object, &kind)
		removeFunc(&s.priorities, func(old priorities) bool { return old.dataType == kind.DataType })
		s.priorities = append(s.priorities, priorities{kind.DataType, object})
	}
	return s.prioritiesOf(""), nil
}
