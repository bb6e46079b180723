// The team's accounts with labs.

package labhealth

// Source of this file: public API reference only.

import (
	"context"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const opListLabAccounts = "GET /v3/lab_test/lab_account"

// LabAccount is an account with a lab, through which orders are placed.
type LabAccount struct {
	ID            uuid.UUID               `json:"id"`              // lab account ID
	Lab           string                  `json:"lab"`             // [Lab.Slug] of the lab
	OrgID         *uuid.UUID              `json:"org_id,omitzero"` // ID of the organisation, nil if none
	Status        LabAccountStatus        `json:"status"`          // whether orders can be placed
	DelegatedFlow LabAccountDelegatedFlow `json:"delegated_flow"`  // which part a physician network takes over
	// ProviderAccountID is the lab's ID of the account.
	ProviderAccountID string  `json:"provider_account_id"`
	AccountName       *string `json:"account_name,omitzero"` // nil if there is none
	// DefaultClinicalNotes are the notes of orders that have none, nil if there are none.
	DefaultClinicalNotes *string  `json:"default_clinical_notes,omitzero"`
	BusinessUnits        []string `json:"business_units,omitzero"` // nil if there are none
	// AllowedBilling lists the postal codes of the states in which each kind of billing is allowed.
	// That its keys are values of [Billing] is an inference.
	AllowedBilling map[Billing][]string `json:"allowed_billing"`
	// TeamIDAllowlist lists the teams that may use the account.
	TeamIDAllowlist []uuid.UUID `json:"team_id_allowlist"`

	RawObject `json:"-"`
}

// LabAccountStatus is the status of a [LabAccount]. Values other than the constants occur.
type LabAccountStatus string

// Values of [LabAccountStatus].
const (
	LabAccountStatusActive        LabAccountStatus = "active"
	LabAccountStatusPending       LabAccountStatus = "pending"
	LabAccountStatusSuspended     LabAccountStatus = "suspended"
	LabAccountStatusReadyToLaunch LabAccountStatus = "ready_to_launch"
)

// LabAccountDelegatedFlow tells which parts of an order are delegated to a physician network: the
// order, its results, both or none. Orders of a delegated account need a physician. Values other
// than the constants occur.
type LabAccountDelegatedFlow string

// Values of [LabAccountDelegatedFlow].
const (
	LabAccountOrderDelegated  LabAccountDelegatedFlow = "order_delegated"
	LabAccountResultDelegated LabAccountDelegatedFlow = "result_delegated"
	LabAccountFullyDelegated  LabAccountDelegatedFlow = "fully_delegated"
	LabAccountNotDelegated    LabAccountDelegatedFlow = "not_delegated"
)

// ListLabAccountsParams selects lab accounts. Zero fields are not sent.
type ListLabAccountsParams struct {
	LabAccountID uuid.UUID        // one account
	Status       LabAccountStatus // accounts with this status
}

func (p ListLabAccountsParams) query() queryValues {
	q := accountQuery(p.LabAccountID)
	q.setString("status", string(p.Status))
	return q
}

// labAccountList is the response of the operation that lists lab accounts.
type labAccountList struct {
	Data []LabAccount `json:"data" jsonread:"own"`

	RawObject `json:"-"`
}

// verify accepts an empty object too: the public API reference makes the list optional.
func (l *labAccountList) verify() error {
	for range jsonread.Fields(l.RawJSON()) {
		return requireList(l.Data)
	}
	return nil
}

// LabAccounts returns the lab accounts that the team may use: GET /v3/lab_test/lab_account. Their
// IDs are the LabAccountID of orders, order sets and the other methods of the catalog.
func (s *LabTestsService) LabAccounts(ctx context.Context, params ListLabAccountsParams, opts ...CallOption) ([]LabAccount, error) {
	list, err := call(ctx, coreOf(s), new(labAccountList), request{op: opListLabAccounts, query: params}, opts)
	if err != nil {
		return nil, err
	}
	return list.Data, nil
}
