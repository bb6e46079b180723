package labhealth_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

func warnedImport() labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID: uuid.New(), BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodWalkInTest, SampleID: "S-1",
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1955, Month: 12, Day: 10}, Gender: labhealth.GenderFemale,
			PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		Physician: &labhealth.PhysicianCreateRequest{FirstName: "Grace", LastName: "Sample", NPI: "1234567893", LicensedStates: []string{"CA"}},
	}
}

func TestWarnings(t *testing.T) {
	const (
		name  = ": is not a name that labs accept: letters without accents, digits and - . , ' with single spaces between words, and a letter or digit first"
		state = "is not a state of the US in two upper-case letters, such as CA"
		npi   = "body.physician.npi: is not an NPI: ten digits, of which the last is a check digit"
	)
	patient := func(f func(*labhealth.PatientDetailsWithValidation)) func(*labhealth.ImportOrderBody) {
		return func(b *labhealth.ImportOrderBody) { f(&b.PatientDetails) }
	}
	address := func(state, zip, country string) func(*labhealth.ImportOrderBody) {
		return func(b *labhealth.ImportOrderBody) {
			b.PatientAddress.State, b.PatientAddress.Zip, b.PatientAddress.Country = state, zip, country
			b.Physician = nil
		}
	}
	for what, c := range map[string]struct {
		change func(*labhealth.ImportOrderBody)
		want   []string
	}{
		"valid":        {func(*labhealth.ImportOrderBody) {}, nil},
		"no physician": {func(b *labhealth.ImportOrderBody) { b.Physician = nil }, nil},
		"valid names": {patient(func(p *labhealth.PatientDetailsWithValidation) {
			p.FirstName, p.LastName = "Mary-Ann J.", "O'Neil, Jr. 3"
		}), nil},
		"accent":         {patient(func(p *labhealth.PatientDetailsWithValidation) { p.FirstName = "Renée" }), []string{"body.patient_details.first_name" + name}},
		"two spaces":     {patient(func(p *labhealth.PatientDetailsWithValidation) { p.LastName = "van  Dyke" }), []string{"body.patient_details.last_name" + name}},
		"starts with -":  {patient(func(p *labhealth.PatientDetailsWithValidation) { p.LastName = "-Smith" }), []string{"body.patient_details.last_name" + name}},
		"unknown gender": {patient(func(p *labhealth.PatientDetailsWithValidation) { p.Gender = "F" }), []string{"body.patient_details.gender: is not one of female, male, other, unknown"}},
		"unknown race": {patient(func(p *labhealth.PatientDetailsWithValidation) { p.Race = new(labhealth.Race("martian")) }),
			[]string{"body.patient_details.race: is not one of african_american_or_black, asian, indigenous_native_american_alaska_native, other, pacific_islander_or_hawaiian, white_caucasian"}},
		"unknown method": {func(b *labhealth.ImportOrderBody) { b.CollectionMethod = "walk in" },
			[]string{"body.collection_method: is not one of testkit, walk_in_test, at_home_phlebotomy, on_site_collection"}},
		"check digit":    {func(b *labhealth.ImportOrderBody) { b.Physician.NPI = "1234567890" }, []string{npi}},
		"nine digits":    {func(b *labhealth.ImportOrderBody) { b.Physician.NPI = "123456789" }, []string{npi}},
		"letters":        {func(b *labhealth.ImportOrderBody) { b.Physician.NPI = "12345678A3" }, []string{npi}},
		"not a state":    {func(b *labhealth.ImportOrderBody) { b.Physician.LicensedStates = []string{"CA", "Texas"} }, []string{"body.physician.licensed_states.1: " + state}},
		"another state":  {func(b *labhealth.ImportOrderBody) { b.Physician.LicensedStates = []string{"TX"} }, []string{"body.physician.licensed_states: does not have the state of the patient's address"}},
		"lower case":     {address("ca", "93940", "US"), []string{"body.patient_address.state: " + state}},
		"other ZIP":      {address("NY", "93940", "usa"), []string{"body.patient_address.zip: is a ZIP code of another state"}},
		"no ZIP":         {address("NY", "1001", "U.S."), []string{"body.patient_address.zip: is not a ZIP code, such as 94105 or 94105-1234"}},
		"ZIP+4":          {address("NY", "10001-0001", "US"), nil},
		"Fishers Island": {address("NY", "06390", "US"), nil},
		"Guam":           {address("GU", "96910", "US"), nil},
		"Austin":         {address("TX", "73301", "US"), nil},
		"abroad":         {address("Bayern", "80331", "DE"), nil},
		"proxy": {patient(func(p *labhealth.PatientDetailsWithValidation) {
			p.MedicalProxy = &labhealth.GuarantorDetails{FirstName: "Zoë", LastName: "Example", Address: labhealth.Address{State: "MA", Zip: "94105", Country: "US"}}
		}), []string{"body.patient_details.medical_proxy.first_name" + name, "body.patient_details.medical_proxy.address.zip: is a ZIP code of another state"}},
	} {
		body := warnedImport()
		c.change(&body)
		var got []string
		for _, f := range body.Warnings() {
			got = append(got, f.Path()+": "+f.Msg)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	note := strings.Repeat("é", 1001)
	create := labhealth.CreateOrderBody{ClinicalNotes: &note}
	if got := create.Warnings(); len(got) != 1 || got[0].Path() != "body.clinical_notes" || got[0].Msg != "labs take at most 1000 characters" {
		t.Error(got)
	}
}

// What is warned of is not invalid, unless Validate says so too.
func TestWarningsDoNotReject(t *testing.T) {
	body := warnedImport()
	body.PatientDetails.FirstName, body.PatientDetails.Gender, body.Physician.NPI, body.PatientAddress.Zip = "Renée", "F", "1", "1"
	if len(body.Warnings()) != 4 {
		t.Error(body.Warnings())
	}
	if err := body.Validate(); err != nil {
		t.Error(err)
	}
}
