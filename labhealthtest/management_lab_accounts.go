package labhealthtest

import (
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// labAccount is an account of the organisation at a lab. Teams in its allowlist can use it.
type labAccount struct {
	ID                   uuid.UUID           `json:"id"`
	Lab                  string              `json:"lab"`
	OrgID                uuid.UUID           `json:"org_id"`
	Status               string              `json:"status"`
	DelegatedFlow        string              `json:"delegated_flow"`
	ProviderAccountID    string              `json:"provider_account_id"`
	AccountName          *string             `json:"account_name"`
	DefaultClinicalNotes *string             `json:"default_clinical_notes"`
	BusinessUnits        []string            `json:"business_units"`
	AllowedBilling       map[string][]string `json:"allowed_billing"`
	TeamIDs              []uuid.UUID         `json:"team_id_allowlist"`

	deployment deployment
}

// newLabAccounts returns the accounts that an organisation starts with. Its first team can use one
// of them.
func (s *Server) newLabAccounts() []*labAccount {
	return []*labAccount{
		{
			ID: s.deriveID(), Lab: "quest", OrgID: s.OrgID, Status: "active", DelegatedFlow: "not_delegated", ProviderAccountID: "97500001",
			AccountName: new("Example Clinic"), BusinessUnits: []string{"NEL"},
			AllowedBilling: map[string][]string{"client_bill": {"AZ", "CA", "NJ"}, "commercial_insurance": {"CA"}},
			TeamIDs:        []uuid.UUID{s.TeamID}, deployment: deployment{serverEnv, serverRegion},
		},
		{
			ID: s.deriveID(), Lab: "labcorp", OrgID: s.OrgID, Status: "pending", DelegatedFlow: "fully_delegated", ProviderAccountID: "04200002",
			AllowedBilling: map[string][]string{"client_bill": {"AZ"}},
			TeamIDs:        []uuid.UUID{}, deployment: deployment{serverEnv, serverRegion},
		},
	}
}

var (
	labAccountFilters = []filter[*labAccount]{
		equalsUUID("lab_account_id", func(a *labAccount) uuid.UUID { return a.ID }),
		equals("status", enum("active", "pending", "suspended", "ready_to_launch"), func(a *labAccount) string { return a.Status }),
	}
	patchLabAccountSchema = object(required("team_id_allowlist", arrayOf(uuidSchema)))
)

func (a *labAccount) allows(team uuid.UUID) bool { return slices.Contains(a.TeamIDs, team) }

func (s *Server) listLabAccounts(r *request) (any, error) {
	team, byTeam := parseUUID(r.queryOne("team_id", uuidSchema))
	found := selected(r, s.org.labAccounts, labAccountFilters)
	if err := r.err(); err != nil {
		return nil, err
	}
	found = selectFunc(found, func(a *labAccount) bool { return a.deployment == r.deployment() && (!byTeam || a.allows(team)) })
	return map[string]any{"data": append([]*labAccount{}, found...)}, nil
}

// patchLabAccount replaces the teams that can use an account.
func (s *Server) patchLabAccount(r *request) (any, error) {
	var body struct {
		TeamIDs []uuid.UUID `json:"team_id_allowlist"`
	}
	r.decode(patchLabAccountSchema, &body)
	if err := r.err(); err != nil {
		return nil, err
	}
	for _, id := range body.TeamIDs {
		if s.team(id) == nil {
			return nil, teamNotFound
		}
	}
	for _, a := range s.org.labAccounts {
		if a.ID == r.pathUUID("account_id") && a.deployment == r.deployment() {
			a.TeamIDs = body.TeamIDs
			return map[string]any{"lab_account": a}, nil
		}
	}
	return nil, reject(http.StatusNotFound, "Lab account not found")
}

// listTeamLabAccounts lists the accounts that a team can use.
func (s *Server) listTeamLabAccounts(r *request) (any, error) {
	found := selected(r, s.organisationServer().org.labAccounts, labAccountFilters)
	if err := r.err(); err != nil {
		return nil, err
	}
	found = selectFunc(found, func(a *labAccount) bool { return a.allows(s.TeamID) })
	return map[string]any{"data": append([]*labAccount{}, found...)}, nil
}
