// Warnings: what is allowed, and what labs are known to reject.

package labhealth

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What labs reject is not what the service rejects: an order is accepted, and fails days later. The
// checks of this file are therefore asked for, and nothing that the client sends depends on them.

// Warnings returns the fields that the interface specification allows, and that the service or a
// lab is known to reject later. It is for a check before an import, such as the dry run of package
// bulk, together with [ImportOrderBody.Validate]; [OrdersService.Import] does not call it. It
// returns nil if there are none.
//
//   - Names that labs do not accept: they start with an ASCII letter or digit, and have letters,
//     digits and - . , ' with single spaces between words, and no accents. Source: public API
//     reference only.
//   - An NPI that does not have ten digits, of which the last is the check digit of the others.
//   - Licensed states that are no states, or without the state of the patient.
//   - For an address in the US, a state or a ZIP code that does not exist, and a ZIP code of
//     another state.
//   - Values of enumerations other than the constants of their types.
//
// The messages name what is allowed, and hold no value of the request.
func (b ImportOrderBody) Warnings() []FieldError {
	a := &b.PatientAddress
	return orderWarnings(b.BillingType, b.CollectionMethod, b.Physician, &b.PatientDetails, a.State, a.Zip, a.Country)
}

// Warnings is like [ImportOrderBody.Warnings], and also returns clinical notes of more than 1000
// characters. Source: public API reference only.
func (b CreateOrderBody) Warnings() []FieldError {
	a := &b.PatientAddress
	fields := orderWarnings(b.BillingType, b.CollectionMethod, b.Physician, &b.PatientDetails, a.State, a.Zip, a.Country)
	if utf8.RuneCountInString(valueOf(b.ClinicalNotes)) > 1000 {
		fields = append(fields, FieldError{Loc: []string{"body", "clinical_notes"}, Type: "string_too_long", Msg: "labs take at most 1000 characters"})
	}
	return fields
}

func orderWarnings(billing Billing, method LabTestCollectionMethod, physician *PhysicianCreateRequest, patient *PatientDetailsWithValidation,
	state, zip, country string) []FieldError {
	v := validator{loc: []string{"body"}}
	warnValue(&v, "billing_type", billing, BillingClientBill, BillingCommercialInsurance, BillingPatientBillPassthrough, BillingPatientBill)
	warnValue(&v, "collection_method", method,
		CollectionMethodTestkit, CollectionMethodWalkInTest, CollectionMethodAtHomePhlebotomy, CollectionMethodOnSiteCollection)
	v.within("physician", func() { physician.warn(&v, state) })
	v.within("patient_details", func() { patient.warn(&v) })
	v.within("patient_address", func() { v.warnAddress(state, zip, country) })
	return v.fields
}

// warnValue warns of a value of an enumeration that is not one of those that are known.
func warnValue[T ~string](v *validator, name string, value T, known ...T) {
	if value == "" || slices.Contains(known, value) {
		return
	}
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = string(k)
	}
	v.add(name, "enum", "is not one of "+strings.Join(list, ", "))
}

func (p *PatientDetailsWithValidation) warn(v *validator) {
	v.warnName("first_name", p.FirstName)
	v.warnName("last_name", p.LastName)
	warnValue(v, "gender", p.Gender, GenderFemale, GenderMale, GenderOther, GenderUnknown)
	warnValue(v, "race", valueOf(p.Race), RaceAfricanAmericanOrBlack, RaceAsian, RaceIndigenousNativeAmericanAlaskaNative, RaceOther,
		RacePacificIslanderOrHawaiian, RaceWhiteCaucasian)
	warnValue(v, "ethnicity", valueOf(p.Ethnicity), EthnicityHispanic, EthnicityNonHispanic, EthnicityAshkenaziJewish, EthnicityOther)
	warnValue(v, "sexual_orientation", valueOf(p.SexualOrientation), SexualOrientationLesbianGayOrHomosexual,
		SexualOrientationHeterosexualOrStraight, SexualOrientationBisexual, SexualOrientationDontKnow, SexualOrientationOther)
	warnValue(v, "gender_identity", valueOf(p.GenderIdentity), GenderIdentityMale, GenderIdentityFemale,
		GenderIdentityFemaleToMaleFTMTransgenderMaleTransMan, GenderIdentityMaleToFemaleMTFTransgenderFemaleTransWoman,
		GenderIdentityGenderqueer, GenderIdentityOther)
	if g := p.MedicalProxy; g != nil {
		v.within("medical_proxy", func() {
			v.warnName("first_name", g.FirstName)
			v.warnName("last_name", g.LastName)
			v.within("address", func() { v.warnAddress(g.Address.State, g.Address.Zip, g.Address.Country) })
		})
	}
}

// valueOf returns the value that p points to, or the zero value.
func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

func (p *PhysicianCreateRequest) warn(v *validator, patientState string) {
	if p == nil {
		return
	}
	v.warnName("first_name", p.FirstName)
	v.warnName("last_name", p.LastName)
	if p.NPI != "" && !isNPI(p.NPI) {
		v.add("npi", "value_error", "is not an NPI: ten digits, of which the last is a check digit")
	}
	isState := true
	v.within("licensed_states", func() {
		for i, state := range p.LicensedStates {
			if stateZIPs[state] == "" {
				v.add(strconv.Itoa(i), "enum", "is not a state of the US in two upper-case letters, such as CA")
				isState = false
			}
		}
	})
	if isState && len(p.LicensedStates) > 0 && stateZIPs[patientState] != "" && !slices.Contains(p.LicensedStates, patientState) {
		v.add("licensed_states", "value_error", "does not have the state of the patient's address")
	}
}

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9\-.,']*(\s[a-zA-Z0-9\-.,']+)*$`)

func (v *validator) warnName(name, s string) {
	if s != "" && !namePattern.MatchString(s) {
		v.add(name, "string_pattern_mismatch",
			"is not a name that labs accept: letters without accents, digits and - . , ' with single spaces between words, and a letter or digit first")
	}
}

// isNPI reports whether s is a National Provider Identifier: ten digits, and the sum of the digits
// by the Luhn algorithm, with the prefix 80840, is a multiple of ten.
func isNPI(s string) bool {
	if len(s) != 10 {
		return false
	}
	sum := 24 // of the prefix
	for i := range len(s) {
		digit := int(s[i] - '0')
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		if i%2 == 0 {
			digit *= 2
		}
		sum += digit/10 + digit%10
	}
	return sum%10 == 0
}

// warnAddress warns of a state and a ZIP code that do not fit, in an address of the US.
func (v *validator) warnAddress(state, zip, country string) {
	switch strings.ToUpper(strings.ReplaceAll(country, ".", "")) {
	case "US", "USA", "UNITED STATES", "UNITED STATES OF AMERICA":
	default:
		return
	}
	zips := stateZIPs[state]
	if state != "" && zips == "" {
		v.add("state", "enum", "is not a state of the US in two upper-case letters, such as CA")
	}
	if zip == "" {
		return
	}
	if !zipPattern.MatchString(zip) {
		v.add("zip", "string_pattern_mismatch", "is not a ZIP code, such as 94105 or 94105-1234")
		return
	}
	fits := func(r string) bool {
		from, to, _ := strings.Cut(r, "-")
		return zip[:3] >= from && zip[:3] <= cmp.Or(to, from)
	}
	if zips != "" && !slices.ContainsFunc(strings.Fields(zips), fits) {
		v.add("zip", "value_error", "is a ZIP code of another state")
	}
}

// stateZIPs are the first three digits of the ZIP codes of each state, district, territory and
// military region of the US. A prefix can belong to two of them.
var stateZIPs = map[string]string{
	"AL": "350-369", "AK": "995-999", "AZ": "850-865", "AR": "716-729", "CA": "900-961", "CO": "800-816", "CT": "060-069",
	"DE": "197-199", "DC": "200-205 569", "FL": "320-349", "GA": "300-319 398-399", "HI": "967-968", "ID": "832-838", "IL": "600-629",
	"IN": "460-479", "IA": "500-528", "KS": "660-679", "KY": "400-427", "LA": "700-714", "ME": "039-049", "MD": "203 206-219",
	"MA": "010-027 055", "MI": "480-499", "MN": "550-567", "MS": "386-397", "MO": "630-658", "MT": "590-599", "NE": "680-693",
	"NV": "889-898", "NH": "030-038", "NJ": "070-089", "NM": "870-884", "NY": "005 063 100-149", "NC": "270-289", "ND": "580-588",
	"OH": "430-459", "OK": "730-749", "OR": "970-979", "PA": "150-196", "RI": "028-029", "SC": "290-299", "SD": "570-577",
	"TN": "370-385", "TX": "733 739 750-799 885", "UT": "840-847", "VT": "050-059", "VA": "201 220-246", "WA": "980-994",
	"WV": "247-268", "WI": "530-549", "WY": "820-831 834",
	"AS": "967", "FM": "969", "GU": "969", "MH": "969", "MP": "969", "PR": "006-007 009", "PW": "969", "VI": "008",
	"AA": "340", "AE": "090-098", "AP": "962-966",
}
