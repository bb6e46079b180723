package labhealth

import "github.com/google/uuid"

// STUB
type LabAccountStatus string

type LabAccount struct {
	ID                   uuid.UUID           `json:"id"`
	Lab                  string              `json:"lab"`
	OrgID                *uuid.UUID          `json:"org_id,omitzero"`
	Status               LabAccountStatus    `json:"status"`
	DelegatedFlow        string              `json:"delegated_flow"`
	ProviderAccountID    string              `json:"provider_account_id"`
	AccountName          *string             `json:"account_name,omitzero"`
	DefaultClinicalNotes *string             `json:"default_clinical_notes,omitzero"`
	BusinessUnits        []string            `json:"business_units,omitzero"`
	AllowedBilling       map[string][]string `json:"allowed_billing"`
	TeamIDAllowlist      []uuid.UUID         `json:"team_id_allowlist"`

	RawObject `json:"-"`
}

type labAccountList struct {
	Data []LabAccount `json:"data" jsonread:"own"`

	RawObject `json:"-"`
}

func (l *labAccountList) verify() error { return requireList(l.Data) }
