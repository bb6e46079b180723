// The team's accounts with labs, and what they allow.

package labhealthtest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// LabAccounts are the IDs of the lab accounts that every server has. They are the same on every
// server.
type LabAccounts struct {
	// Active is an account with the lab of [LabTests.WalkIn]. It allows client_bill in AZ, CA, NV
	// and TX, and patient_bill in CA.
	Active uuid.UUID
	// Pending is an account with the lab of [LabTests.OtherLab]. Its status is pending, in which it
	// can be used. It allows client_bill in CA and TX. Orders are delegated and need a physician.
	Pending uuid.UUID
	// Suspended is an account with the lab of [LabTests.WalkIn] that cannot be used.
	Suspended uuid.UUID
}

var accountIDs = LabAccounts{
	Active:    uuid.MustParse("4e0a9d7c-1f2b-4c3d-8e5f-6a7b8c9d0e01"),
	Pending:   uuid.MustParse("4e0a9d7c-1f2b-4c3d-8e5f-6a7b8c9d0e02"),
	Suspended: uuid.MustParse("4e0a9d7c-1f2b-4c3d-8e5f-6a7b8c9d0e03"),
}

// labAccount is an account of the organisation. The teams in its allowlist can use it.
type labAccount struct {
	ID                   uuid.UUID           `json:"id"`
	Lab                  string              `json:"lab"`
	OrgID                *uuid.UUID          `json:"org_id"`
	Status               string              `json:"status"`
	DelegatedFlow        string              `json:"delegated_flow"`
	ProviderAccountID    string              `json:"provider_account_id"`
	AccountName          *string             `json:"account_name"`
	DefaultClinicalNotes *string             `json:"default_clinical_notes"`
	BusinessUnits        []string            `json:"business_units"`
	AllowedBilling       map[string][]string `json:"allowed_billing"`
	TeamIDAllowlist      []uuid.UUID         `json:"team_id_allowlist"`

	deployment deployment
}

// newLabAccounts returns the lab accounts that the organisation starts with. Its first team can use
// all of them.
func (s *Server) newLabAccounts() []*labAccount {
	team := []uuid.UUID{s.TeamID}
	accounts := []*labAccount{
		{
			ID: accountIDs.Active, Lab: mainLab.Slug, OrgID: &s.OrgID, Status: "active", DelegatedFlow: "not_delegated",
			ProviderAccountID: "EX-1001", AccountName: new("Example account"), BusinessUnits: []string{"clinic"},
			AllowedBilling:  map[string][]string{"client_bill": {"AZ", "CA", "NV", "TX"}, "patient_bill": {"CA"}},
			TeamIDAllowlist: team,
		},
		{
			ID: accountIDs.Pending, Lab: otherLab.Slug, OrgID: &s.OrgID, Status: "pending", DelegatedFlow: "order_delegated",
			ProviderAccountID: "OT-2001", DefaultClinicalNotes: new("Call before the visit"),
			AllowedBilling: map[string][]string{"client_bill": {"CA", "TX"}}, TeamIDAllowlist: team,
		},
		{
			ID: accountIDs.Suspended, Lab: mainLab.Slug, Status: "suspended", DelegatedFlow: "not_delegated",
			ProviderAccountID: "EX-1002", AllowedBilling: map[string][]string{}, TeamIDAllowlist: team,
		},
	}
	for _, a := range accounts {
		a.deployment = deployment{serverEnv, serverRegion}
	}
	return accounts
}

// labAccounts returns the lab accounts that the team can use. It is called while a request is
// processed.
func (s *Server) labAccounts() []*labAccount {
	return selectFunc(s.organisationServer().org.labAccounts, func(a *labAccount) bool { return a.allows(s.TeamID) })
}

func (a *labAccount) allows(team uuid.UUID) bool { return slices.Contains(a.TeamIDAllowlist, team) }

func (s *Server) labAccount(id uuid.UUID) *labAccount {
	account, _ := first(s.labAccounts(), func(a *labAccount) bool { return a.ID == id })
	return account
}

var accountFilters = []filter[*labAccount]{
	equals("lab_account_id", func(a *labAccount) string { return a.ID.String() }),
	equals("status", func(a *labAccount) string { return a.Status }),
}

func (s *Server) listLabAccounts(r *request) (any, error) {
	return map[string]any{"data": selected(r, s.labAccounts(), accountFilters)}, nil
}

// queryAccount returns the lab account that the parameter lab_account_id selects, nil if there is
// no such parameter.
func (s *Server) queryAccount(r *request) (*labAccount, error) {
	id, ok := parseUUID(r.queryOne("lab_account_id"))
	if account := s.labAccount(id); !ok || account != nil {
		return account, nil
	}
	return nil, reject(http.StatusNotFound, "Lab account not found")
}

// usableAccount returns the lab account with this ID, through which tests of the lab can be
// ordered. It returns nil for nil.
func (s *Server) usableAccount(id *uuid.UUID, l *lab) (*labAccount, error) {
	if id == nil {
		return nil, nil
	}
	account := s.labAccount(*id)
	switch {
	case account == nil:
		return nil, reject(http.StatusBadRequest, "Lab account does not exist")
	case account.Lab != l.Slug:
		return nil, reject(http.StatusBadRequest, "Lab account belongs to another lab")
	case account.Status == "suspended":
		return nil, reject(http.StatusBadRequest, "Lab account is suspended")
	}
	return account, nil
}

// checkAccount returns an error if the lab account of an order does not allow it.
func (s *Server) checkAccount(body *orderRequest, l *lab) error {
	id := body.LabAccountID
	if id == nil && body.OrderSet != nil {
		id = body.OrderSet.LabAccountID
	}
	account, err := s.usableAccount(id, l)
	if account == nil || err != nil {
		return err
	}
	state := strings.ToUpper(body.PatientAddress.State)
	switch {
	case !slices.Contains(account.AllowedBilling[body.BillingType], state):
		return reject(http.StatusBadRequest, "Lab account does not allow "+body.BillingType+" in "+state)
	case account.DelegatedFlow == "order_delegated" && body.Physician == nil:
		return reject(http.StatusBadRequest, "Lab account requires a physician")
	}
	return nil
}
