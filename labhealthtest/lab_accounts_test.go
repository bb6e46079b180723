package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestListLabAccounts(t *testing.T) {
	srv := newServer(t)
	type list struct {
		Data []struct {
			ID              uuid.UUID
			Lab, Status     string
			TeamIDAllowlist []uuid.UUID `json:"team_id_allowlist"`
		}
	}
	ids := srv.LabAccounts
	for query, want := range map[string][]uuid.UUID{
		"":                        {ids.Active, ids.Pending, ids.Suspended},
		"?status=pending":         {ids.Pending},
		"?status=ready_to_launch": {},
		"?lab_account_id=" + ids.Suspended.String(): {ids.Suspended},
		"?lab_account_id=" + unknownID:              {},
	} {
		got := decode[list](t, do(t, srv, "GET", "/v3/lab_test/lab_account"+query, ""))
		if len(got.Data) != len(want) {
			t.Errorf("%s: %+v, want %v", query, got, want)
			continue
		}
		for i, account := range got.Data {
			if account.ID != want[i] || account.TeamIDAllowlist[0] != srv.TeamID {
				t.Errorf("%s: %+v, want %v", query, account, want[i])
			}
		}
	}
	if got := do(t, srv, "GET", "/v3/lab_test/lab_account?status=closed", ""); got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A lab account limits the lab, the billing types and the states of an order.
func TestOrdersOfLabAccounts(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	body := bodyFor(t, createBody, user)
	with := func(account uuid.UUID, fields string) string {
		return strings.Replace(body, "{", fmt.Sprintf(`{"lab_account_id":%q,%s`, account, fields), 1)
	}
	atOtherLab := func(body string) string {
		return replaceOnce(t, body, "5b41f610-ebc5-4803-8f0c-a61c3bdc7f02", "5b41f610-ebc5-4803-8f0c-a61c3bdc7f05")
	}
	const physician = `"physician":{"first_name":"Jane","last_name":"Example","npi":"1234567893"},`
	ids := srv.LabAccounts
	for _, request := range []struct{ name, body, detail string }{
		{"unknown", with(uuid.MustParse(unknownID), ""), "Lab account does not exist"},
		{"another lab", with(ids.Pending, ""), "Lab account belongs to another lab"},
		{"suspended", with(ids.Suspended, ""), "Lab account is suspended"},
		{"billing", with(ids.Active, `"billing_type":"commercial_insurance",`), "Lab account does not allow commercial_insurance in CA"},
		{"in the order set", replaceOnce(t, body, `"order_set": {`, `"order_set":{"lab_account_id":"`+unknownID+`",`), "Lab account does not exist"},
		{"delegated", atOtherLab(with(ids.Pending, "")), "Lab account requires a physician"},
		{"delegated, with a physician", atOtherLab(with(ids.Pending, physician)), ""},
		{"active", with(ids.Active, `"billing_type":"patient_bill",`), ""},
		{"none", body, ""},
	} {
		got := do(t, srv, "POST", "/v3/order", request.body)
		switch {
		case request.detail != "":
			check(t, got, 400, fmt.Sprintf(`{"detail":%q}`, request.detail))
		case got.status != 200:
			t.Errorf("%s: %d %s", request.name, got.status, got.body)
		}
	}
}
