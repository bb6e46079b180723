// The insurance of users, payors and diagnosis codes.

package labhealthtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// insurance is a health insurance of a user.
type insurance struct {
	PayorCode    string          `json:"payor_code"`
	MemberID     string          `json:"member_id"`
	GroupID      *string         `json:"group_id"`
	Relationship string          `json:"relationship"`
	Insured      json.RawMessage `json:"insured"`
	Guarantor    json.RawMessage `json:"guarantor"`
	Company      struct {
		Name    string `json:"name"`
		Address any    `json:"address"`
	} `json:"company"`
	IsPrimary bool `json:"is_primary"`

	id uuid.UUID // health_insurance_id of orders
}

// createInsurance replaces no older insurance: orders have the latest primary one.
func (s *Server) createInsurance(r *request, u *user) (any, error) {
	var v insurance
	r.decode(&v)
	i := slices.IndexFunc(s.allPayors(), func(p payor) bool { return p.PayorCode == v.PayorCode })
	if i < 0 {
		return nil, reject(http.StatusBadRequest, "Payor does not exist")
	}
	p := s.allPayors()[i]
	v.Company.Name, v.Company.Address, v.id = p.Name, p.OrgAddress, s.newID()
	u.insurances = append(u.insurances, &v)
	return v, nil
}

func (s *Server) getLatestInsurance(r *request, u *user) (any, error) {
	if v := u.insurance(r.queryBool("is_primary")); v != nil {
		return v, nil
	}
	return nil, reject(http.StatusNotFound, "Insurance not found")
}

// insurance returns the latest primary or secondary insurance, nil if there is none.
func (u *user) insurance(primary bool) *insurance {
	for _, v := range slices.Backward(u.insurances) {
		if v.IsPrimary == primary {
			return v
		}
	}
	return nil
}

const commercialInsurance = "commercial_insurance"

// checkInsurance rejects an order that an insurance pays if the user has none.
func (u *user) checkInsurance(body *orderRequest) error {
	if body.BillingType == commercialInsurance && body.HealthInsurance == nil && u.insurance(true) == nil {
		return reject(http.StatusBadRequest, "User has no primary insurance")
	}
	return nil
}

// payor is an insurer. Clearing houses have the code codes[provider] for it.
type payor struct {
	PayorCode  string           `json:"payor_code"`
	Name       string           `json:"name"`
	Aliases    []string         `json:"aliases"`
	OrgAddress guarantorAddress `json:"org_address"`
	Source     string           `json:"source"`

	codes map[string]string
}

// platformPayors are the insurers that every server knows.
var platformPayors = []payor{
	platformPayor("PAY-EXAMPLE", "Example Health Plan", "EX001", "EHP", "Example Health"),
	platformPayor("PAY-SAMPLE", "Sample Mutual", "SA002"),
	platformPayor("PAY-SPECIMEN", "Specimen Care", "SP003"),
}

func platformPayor(code, name, external string, aliases ...string) payor {
	return payor{
		code, name, append([]string{}, aliases...),
		guarantorAddress{FirstLine: "1 Insurance Way", SecondLine: new(""), Country: "US", Zip: "94105", City: "San Francisco", State: "CA"},
		"platform", map[string]string{"availity": external, "stedi": external},
	}
}

func (s *Server) allPayors() []payor { return slices.Concat(platformPayors, s.payors) }

func (s *Server) createPayor(r *request) (any, error) {
	var body struct {
		Name            string           `json:"name"`
		Address         guarantorAddress `json:"address"`
		Provider        *string          `json:"provider"`
		ProviderPayorID *string          `json:"provider_payor_id"`
	}
	r.decode(&body)
	p := payor{fmt.Sprintf("PAY-TEAM-%d", len(s.payors)+1), body.Name, []string{}, body.Address, "team", map[string]string{}}
	if body.Provider != nil && body.ProviderPayorID != nil {
		p.codes[*body.Provider] = *body.ProviderPayorID
	}
	s.payors = append(s.payors, p)
	return p, nil
}

// searchPayors matches a part of the names, ignoring case, and the codes of clearing houses.
func (s *Server) searchPayors(r *request) (any, error) {
	return s.findPayors(r.queryOne("insurance_name"), r.queryOne("provider"), r.queryOne("provider_payor_id")), nil
}

// searchPayorsDeprecated takes a body and calls the code of a payor otherwise.
func (s *Server) searchPayorsDeprecated(r *request) (any, error) {
	var body struct {
		Name     string `json:"insurance_name"`
		Provider string `json:"provider"`
		ID       string `json:"provider_id"`
	}
	r.decode(&body)
	list := []map[string]any{}
	for _, p := range s.findPayors(body.Name, body.Provider, body.ID) {
		list = append(list, map[string]any{"code": p.PayorCode, "name": p.Name, "aliases": p.Aliases, "org_address": p.OrgAddress, "source": p.Source})
	}
	return list, nil
}

func (s *Server) findPayors(name, provider, id string) []payor {
	return selectFunc(s.allPayors(), func(p payor) bool {
		names := strings.ToLower(p.Name + "\n" + strings.Join(p.Aliases, "\n"))
		return strings.Contains(names, strings.ToLower(name)) && (id == "" || p.codes[provider] == id)
	})
}

type diagnosis struct {
	Code        string `json:"diagnosis_code"`
	Description string `json:"description"`
	IsSecondary bool   `json:"is_secondary"`
}

var diagnoses = []diagnosis{
	{"B95.61", "Methicillin susceptible Staphylococcus aureus infection as the cause of diseases classified elsewhere", true},
	{"E03.9", "Hypothyroidism, unspecified", false},
	{"E10.9", "Type 1 diabetes mellitus without complications", false},
	{"E11.9", "Type 2 diabetes mellitus without complications", false},
	{"E78.5", "Hyperlipidemia, unspecified", false},
	{"I10", "Essential (primary) hypertension", false},
	{"R73.09", "Other abnormal glucose", false},
	{"Z00.00", "Encounter for general adult medical examination without abnormal findings", false},
}

// The rules about pairs of codes. The values of their types are not documented.
var (
	excludedPairs = [][2]string{{"E10.9", "E11.9"}, {"E11.9", "R73.09"}}
	overlaps      = [][2]string{{"E78.5", "Z00.00"}}
)

func (s *Server) searchDiagnoses(r *request) (any, error) {
	query := strings.ToLower(r.queryOne("diagnosis_query"))
	return selectFunc(diagnoses, func(d diagnosis) bool {
		return strings.HasPrefix(strings.ToLower(d.Code), query) || strings.Contains(strings.ToLower(d.Description), query)
	}), nil
}

// validateICDCodes knows the codes of searchDiagnoses only.
func (s *Server) validateICDCodes(r *request) (any, error) {
	var body struct {
		Codes []string `json:"codes"`
	}
	r.decode(&body)
	problems, violations, warnings := []string{}, []map[string]string{}, []map[string]string{}
	for _, code := range body.Codes {
		if !slices.ContainsFunc(diagnoses, func(d diagnosis) bool { return d.Code == code }) {
			problems = append(problems, code+" is not a valid code")
		}
	}
	both := func(pair [2]string) bool {
		return slices.Contains(body.Codes, pair[0]) && slices.Contains(body.Codes, pair[1])
	}
	for _, pair := range excludedPairs {
		if both(pair) {
			violations = append(violations, map[string]string{"code": pair[0], "conflicts_with": pair[1], "type": "excludes1"})
		}
	}
	for _, pair := range overlaps {
		if both(pair) {
			warnings = append(warnings, map[string]string{"code": pair[0], "overlaps_with": pair[1], "type": "excludes2"})
		}
	}
	return map[string]any{
		"valid": len(problems) == 0 && len(violations) == 0, "errors": problems, "violations": violations, "warnings": warnings,
	}, nil
}
