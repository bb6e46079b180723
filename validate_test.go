package labhealth

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

var (
	someUser = uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702")
	someTest = uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c01")
)

func validPatient() PatientDetailsWithValidation {
	return PatientDetailsWithValidation{
		FirstName: "Ada", LastName: "Example", DOB: Date{1990, 1, 31}, Gender: GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
	}
}

func validProxy() *GuarantorDetails {
	return &GuarantorDetails{
		FirstName: "Grace", LastName: "Example", PhoneNumber: "+14155550123",
		Address: Address{FirstLine: "1 Sample Street", City: "Springfield", State: "CA", Zip: "94105", Country: "US"},
	}
}

func validImport() ImportOrderBody {
	return ImportOrderBody{
		UserID: someUser, BillingType: BillingClientBill, CollectionMethod: CollectionMethodTestkit, SampleID: "S-0001",
		OrderSet: OrderSetRequest{LabTestIDs: []uuid.UUID{someTest}}, PatientDetails: validPatient(),
		PatientAddress: PatientAddress{ReceiverName: "Ada Example", FirstLine: "1 Sample Street", City: "Springfield", State: "CA", Zip: "94105", Country: "US"},
	}
}

func validCreate() CreateOrderBody {
	return CreateOrderBody{
		UserID: someUser, PatientDetails: validPatient(), OrderSet: &OrderSetRequest{LabTestIDs: []uuid.UUID{someTest}},
		PatientAddress: PatientAddressWithValidation{FirstLine: "1 Sample Street", City: "Springfield", State: "CA", Zip: "94105", Country: "US"},
	}
}

// fieldLines returns what a ValidationError says, one line for each field.
func fieldLines(t *testing.T, err error) (lines []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *ValidationError
	if !errors.As(err, &e) || !errors.Is(err, ErrValidation) || OutcomeOf(err) != OutcomeNotSent {
		t.Fatalf("%#v is not a ValidationError of a request that was not sent", err)
	}
	for _, f := range e.Fields {
		lines = append(lines, f.Path()+" ["+f.Type+"] "+f.Msg)
	}
	return lines
}

func TestValidateImport(t *testing.T) {
	const required = " [missing] is required"
	tests := []struct {
		name   string
		change func(*ImportOrderBody)
		want   []string
	}{
		{"nothing wrong", func(b *ImportOrderBody) {}, nil},
		{"nothing given", func(b *ImportOrderBody) { *b = ImportOrderBody{} }, []string{
			"body.user_id [missing] is required: a UUID that is not nil",
			"body.billing_type" + required,
			"body.collection_method" + required,
			"body.patient_details.first_name [string_too_short] is required: 1 to 50 characters",
			"body.patient_details.last_name [string_too_short] is required: 1 to 50 characters",
			"body.patient_details.dob [missing] is required: a date",
			"body.patient_details.gender" + required,
			"body.patient_details.phone_number" + required,
			"body.patient_details.email" + required,
			"body.patient_address.receiver_name" + required,
			"body.patient_address.first_line" + required,
			"body.patient_address.city" + required,
			"body.patient_address.state" + required,
			"body.patient_address.zip" + required,
			"body.patient_address.country" + required,
			"body.sample_id" + required,
		}},
		{"an empty order set is legal", func(b *ImportOrderBody) { b.OrderSet = OrderSetRequest{} }, nil},
		{"values outside the enums are sent", func(b *ImportOrderBody) {
			b.BillingType, b.CollectionMethod, b.PatientDetails.Gender, b.PatientDetails.Race = "barter", "drone_pickup", "Male", new(Race(""))
		}, nil},
		{"texts that labs may reject are sent", func(b *ImportOrderBody) {
			b.PatientDetails.FirstName, b.PatientDetails.PhoneNumber, b.PatientAddress.Zip, b.PatientAddress.Country = " Zoë ", "call me", "0", "Atlantis"
		}, nil},
		{"names of 50 characters, not bytes", func(b *ImportOrderBody) {
			b.PatientDetails.FirstName, b.PatientDetails.LastName = strings.Repeat("é", 50), strings.Repeat("😀", 50)
		}, nil},
		{"names of 51 characters", func(b *ImportOrderBody) {
			b.PatientDetails.FirstName, b.PatientDetails.LastName = strings.Repeat("é", 51), strings.Repeat("a", 51)
		}, []string{
			"body.patient_details.first_name [string_too_long] must have at most 50 characters",
			"body.patient_details.last_name [string_too_long] must have at most 50 characters",
		}},
		{"names of other people may be longer", func(b *ImportOrderBody) {
			b.PatientDetails.MedicalProxy = validProxy()
			b.PatientDetails.MedicalProxy.FirstName = strings.Repeat("a", 51)
			b.Physician = &PhysicianCreateRequest{FirstName: strings.Repeat("a", 51), LastName: "Sample", NPI: "1"}
		}, nil},
		{"access notes of 1000 characters", func(b *ImportOrderBody) { b.PatientAddress.AccessNotes = new(strings.Repeat("é", 1000)) }, nil},
		{"access notes of 1001 characters", func(b *ImportOrderBody) {
			b.PatientAddress.AccessNotes = new(strings.Repeat("é", 1001))
			b.PatientDetails.MedicalProxy = validProxy()
			b.PatientDetails.MedicalProxy.Address.AccessNotes = new(strings.Repeat("a", 1001))
		}, []string{
			"body.patient_details.medical_proxy.address.access_notes [string_too_long] must have at most 1000 characters",
			"body.patient_address.access_notes [string_too_long] must have at most 1000 characters",
		}},
		{"empty access notes", func(b *ImportOrderBody) { b.PatientAddress.AccessNotes, b.PatientAddress.SecondLine = new(""), new("") }, nil},
		{"nil UUIDs", func(b *ImportOrderBody) {
			b.OrderSet = OrderSetRequest{LabTestIDs: []uuid.UUID{someTest, uuid.Nil}, LabAccountID: &uuid.Nil}
			b.LabAccountID = &uuid.UUID{}
		}, []string{
			"body.order_set.lab_test_ids.1 [uuid] must be left out or be a UUID that is not nil",
			"body.order_set.lab_account_id [uuid] must be left out or be a UUID that is not nil",
			"body.lab_account_id [uuid] must be left out or be a UUID that is not nil",
		}},
		{"a birthday that does not exist", func(b *ImportOrderBody) { b.PatientDetails.DOB = Date{1990, 2, 29} },
			[]string{"body.patient_details.dob [date] must be a date that exists"}},
		{"a birthday in the year 0", func(b *ImportOrderBody) { b.PatientDetails.DOB = Date{0, 1, 1} },
			[]string{"body.patient_details.dob [date] must be a date that exists"}},
		{"an empty proxy", func(b *ImportOrderBody) { b.PatientDetails.MedicalProxy = &GuarantorDetails{} }, []string{
			"body.patient_details.medical_proxy.first_name" + required,
			"body.patient_details.medical_proxy.last_name" + required,
			"body.patient_details.medical_proxy.address.first_line" + required,
			"body.patient_details.medical_proxy.address.city" + required,
			"body.patient_details.medical_proxy.address.state" + required,
			"body.patient_details.medical_proxy.address.zip" + required,
			"body.patient_details.medical_proxy.address.country" + required,
			"body.patient_details.medical_proxy.phone_number" + required,
		}},
		{"an empty physician", func(b *ImportOrderBody) { b.Physician = &PhysicianCreateRequest{SignatureImage: &SignatureImage{}} }, []string{
			"body.physician.first_name" + required,
			"body.physician.last_name" + required,
			"body.physician.npi" + required,
			"body.physician.signature_image.content" + required,
			"body.physician.signature_image.content_type [value_error] must be image/jpeg or image/png",
		}},
		{"images", func(b *ImportOrderBody) {
			b.Physician = &PhysicianCreateRequest{FirstName: "Grace", LastName: "Sample", NPI: "1", SignatureImage: NewPNG([]byte{1})}
		}, nil},
		{"an image of another kind", func(b *ImportOrderBody) {
			b.Physician = &PhysicianCreateRequest{FirstName: "Grace", LastName: "Sample", NPI: "1", SignatureImage: &SignatureImage{Content: "x", ContentType: "image/gif"}}
		}, []string{"body.physician.signature_image.content_type [value_error] must be image/jpeg or image/png"}},
	}
	for _, test := range tests {
		b := validImport()
		test.change(&b)
		if diff := cmp.Diff(test.want, fieldLines(t, b.Validate())); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestValidateEmail(t *testing.T) {
	for _, email := range []string{"a@b", "ada@example.com", "ada+lab@sub.example.com", "ädä@exämple.com", `"ada"@example.com`, "a.@-b"} {
		b := validImport()
		b.PatientDetails.Email = email
		if got := fieldLines(t, b.Validate()); got != nil {
			t.Errorf("%s: %q", email, got)
		}
	}
	for _, email := range []string{"ada", "@", "@example.com", "ada@", "ada@@example.com", "ada@exa@mple.com", "ada @example.com", "ada@example.com ", "ada@exa\tmple.com", "ada\n@example.com", "ada@example.com\x7f"} {
		b := validImport()
		b.PatientDetails.Email = email
		want := []string{"body.patient_details.email [value_error] must be an email address: one @ and no spaces"}
		if diff := cmp.Diff(want, fieldLines(t, b.Validate())); diff != "" {
			t.Errorf("%q (-want +got)\n%s", email, diff)
		}
		if strings.Contains(b.Validate().Error(), "ada") {
			t.Errorf("%q is quoted", email)
		}
	}
}

func TestValidateCreate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*CreateOrderBody)
		want   []string
	}{
		{"nothing wrong", func(b *CreateOrderBody) {}, nil},
		{"the least there is", func(b *CreateOrderBody) { b.OrderSet = nil }, nil},
		{"nothing given", func(b *CreateOrderBody) { *b = CreateOrderBody{PatientDetails: validPatient()} }, []string{
			"body.user_id [missing] is required: a UUID that is not nil",
			"body.patient_address.first_line [missing] is required",
			"body.patient_address.city [missing] is required",
			"body.patient_address.state [missing] is required",
			"body.patient_address.zip [missing] is required",
			"body.patient_address.country [missing] is required",
		}},
		{"nil UUIDs and an impossible date", func(b *CreateOrderBody) {
			b.OrderSet.LabTestIDs[0], b.LabTestID, b.LabAccountID, b.CreatorMemberID, b.ActivateBy = uuid.Nil, &uuid.Nil, &uuid.Nil, &uuid.Nil, &Date{2099, 2, 30}
		}, []string{
			"body.order_set.lab_test_ids.0 [uuid] must be left out or be a UUID that is not nil",
			"body.lab_test_id [uuid] must be left out or be a UUID that is not nil",
			"body.activate_by [date] must be a date that exists",
			"body.lab_account_id [uuid] must be left out or be a UUID that is not nil",
			"body.creator_member_id [uuid] must be left out or be a UUID that is not nil",
		}},
		{"a zero date", func(b *CreateOrderBody) { b.ActivateBy = &Date{} }, []string{"body.activate_by [missing] is required: a date"}},
		{"patient, address and physician as in an import", func(b *CreateOrderBody) {
			b.PatientDetails.Email, b.PatientAddress.AccessNotes = "x", new(strings.Repeat("a", 1001))
			b.Physician = &PhysicianCreateRequest{FirstName: "Grace", LastName: "Sample"}
		}, []string{
			"body.patient_details.email [value_error] must be an email address: one @ and no spaces",
			"body.patient_address.access_notes [string_too_long] must have at most 1000 characters",
			"body.physician.npi [missing] is required",
		}},
		{"an invalid ZIP code", func(b *CreateOrderBody) { b.PatientAddress.Zip = "9410" }, []string{
			"body.patient_address.zip [string_pattern_mismatch] must be a ZIP code, such as 94105 or 94105-1234",
		}},
		{"a ZIP code with four more digits", func(b *CreateOrderBody) { b.PatientAddress.Zip = "94105-1234" }, nil},
		{"an empty consent and insurance", func(b *CreateOrderBody) {
			b.Consents = []Consent{{ConsentType: ConsentTermsOfUse}, {}}
			b.HealthInsurance = &HealthInsuranceCreateRequest{BackImage: &SignatureImage{}, ResponsibleDetails: &PersonDetails{Address: Address{AccessNotes: new(strings.Repeat("a", 1001))}}}
		}, []string{
			"body.health_insurance.back_image.content [missing] is required",
			"body.health_insurance.back_image.content_type [value_error] must be image/jpeg or image/png",
			"body.health_insurance.responsible_details.first_name [missing] is required",
			"body.health_insurance.responsible_details.last_name [missing] is required",
			"body.health_insurance.responsible_details.address.first_line [missing] is required",
			"body.health_insurance.responsible_details.address.city [missing] is required",
			"body.health_insurance.responsible_details.address.state [missing] is required",
			"body.health_insurance.responsible_details.address.zip [missing] is required",
			"body.health_insurance.responsible_details.address.country [missing] is required",
			"body.health_insurance.responsible_details.address.access_notes [string_too_long] must have at most 1000 characters",
			"body.health_insurance.responsible_details.phone_number [missing] is required",
			"body.consents.1.consentType [missing] is required",
		}},
		{"new values of enumerations", func(b *CreateOrderBody) {
			b.Consents = []Consent{{ConsentType: "new"}}
			b.HealthInsurance = &HealthInsuranceCreateRequest{ResponsibleRelationship: new(ResponsibleRelationship("Parent"))}
		}, nil},
		// Only the update of an order requires a date that is not past.
		{"a past date", func(b *CreateOrderBody) { b.ActivateBy = &Date{2020, 1, 1} }, nil},
	}
	for _, test := range tests {
		b := validCreate()
		test.change(&b)
		if diff := cmp.Diff(test.want, fieldLines(t, b.Validate())); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestValidateTestkits(t *testing.T) {
	address := ShippingAddress{ReceiverName: "Ada Example", FirstLine: "1 Main Street", City: "Reno", State: "NV", Zip: "89501", Country: "US", PhoneNumber: "+14155550123"}
	badZip := address
	badZip.Zip = "89501-1"
	id := uuid.New()
	register := RegisterTestkitBody{SampleID: "KIT-1", PatientDetails: validPatient(), PatientAddress: validCreate().PatientAddress}
	wrong := register
	wrong.UserID, wrong.SampleID, wrong.Physician, wrong.PatientAddress.Zip = &uuid.Nil, "", &PhysicianCreateRequestBase{}, "x"
	for _, test := range []struct {
		name string
		err  error
		want []string
	}{
		{"a testkit", CreateTestkitBody{UserID: id, LabTestID: id, ShippingDetails: address}.Validate(), nil},
		{"nothing", CreateTestkitBody{}.Validate(), []string{
			"body.user_id [missing] is required: a UUID that is not nil",
			"body.lab_test_id [missing] is required: a UUID that is not nil",
			"body.shipping_details.receiver_name [missing] is required",
			"body.shipping_details.first_line [missing] is required",
			"body.shipping_details.city [missing] is required",
			"body.shipping_details.state [missing] is required",
			"body.shipping_details.zip [missing] is required",
			"body.shipping_details.country [missing] is required",
			"body.shipping_details.phone_number [missing] is required",
		}},
		{"a bad ZIP code and a nil UUID", CreateTestkitBody{UserID: id, LabTestID: id, ShippingDetails: badZip, LabAccountID: &uuid.Nil}.Validate(), []string{
			"body.shipping_details.zip [string_pattern_mismatch] must be a ZIP code, such as 94105 or 94105-1234",
			"body.lab_account_id [uuid] must be left out or be a UUID that is not nil",
		}},
		{"a registration", register.Validate(), nil},
		{"a wrong registration", wrong.Validate(), []string{
			"body.user_id [uuid] must be left out or be a UUID that is not nil",
			"body.sample_id [missing] is required",
			"body.patient_address.zip [string_pattern_mismatch] must be a ZIP code, such as 94105 or 94105-1234",
			"body.physician.first_name [missing] is required",
			"body.physician.last_name [missing] is required",
			"body.physician.npi [missing] is required",
		}},
	} {
		if diff := cmp.Diff(test.want, fieldLines(t, test.err)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestValidateResendEvents(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name string
		body ResendEventsBody
		want []string
	}{
		{"nothing", ResendEventsBody{OrderIDs: []uuid.UUID{}}, []string{"body.order_ids [missing] or a time range is required"}},
		{"a nil UUID", ResendEventsBody{OrderIDs: []uuid.UUID{uuid.New(), uuid.Nil}}, []string{"body.order_ids.1 [missing] is required: a UUID that is not nil"}},
		{"60 days", ResendEventsBody{StartAt: &now, EndAt: new(now.Add(60 * 24 * time.Hour))}, nil},
		{"more", ResendEventsBody{StartAt: &now, EndAt: new(now.Add(60*24*time.Hour + 1))}, []string{"body.end_at [value_error] must be at most 60 days after start_at"}},
		{"an open range", ResendEventsBody{StartAt: new(now.AddDate(-1, 0, 0))}, nil}, // the service decides
	} {
		if diff := cmp.Diff(test.want, fieldLines(t, test.body.Validate())); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
	if got := fieldLines(t, (&request{query: LabelsPDFParams{}}).validate(false)); !cmp.Equal(got, []string{"query.collection_date [missing] is required: a time"}) {
		t.Error(got)
	}
}

func TestValidateUpdate(t *testing.T) {
	tests := []struct {
		body UpdateOrderBody
		want []string
	}{
		{UpdateOrderBody{}, []string{"body.activate_by [missing] must be set: a date, or Null to release the order"}},
		{UpdateOrderBody{Null[Date]()}, nil},
		{UpdateOrderBody{Value(Date{2999, 12, 31})}, nil},
		{UpdateOrderBody{Value(Date{})}, []string{"body.activate_by [missing] is required: a date"}},
		{UpdateOrderBody{Value(Date{2999, 2, 29})}, []string{"body.activate_by [date] must be a date that exists"}},
		{UpdateOrderBody{Value(Date{10000, 1, 1})}, []string{"body.activate_by [date] must be a date that exists"}},
		{UpdateOrderBody{Value(Date{2020, 1, 1})}, []string{"body.activate_by [value_error] must be today or later"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, fieldLines(t, test.body.Validate())); diff != "" {
			t.Errorf("%v (-want +got)\n%s", test.body, diff)
		}
	}
	if got, want := (UpdateOrderBody{}).Validate().Error(), "labhealth: not sent: body.activate_by must be set: a date, or Null to release the order"; got != want {
		t.Errorf("got %s", got)
	}
}

// sleepUntil sets the clock of a synctest bubble, which starts at midnight UTC of 1 January 2000.
func sleepUntil(t *testing.T, at string) {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(moment))
}

// A date is past only if it is past everywhere on earth: the day starts last where clocks are 12
// hours behind UTC.
func TestActivateByAroundMidnight(t *testing.T) {
	tests := []struct {
		now      string
		earliest Date
	}{
		{"2025-06-15T00:00:00Z", Date{2025, 6, 14}},
		{"2025-06-15T11:59:59Z", Date{2025, 6, 14}},
		{"2025-06-15T12:00:00Z", Date{2025, 6, 15}},
		{"2025-06-15T23:59:59Z", Date{2025, 6, 15}},
		{"2025-06-16T11:59:59Z", Date{2025, 6, 15}},
		{"2025-01-01T11:59:59Z", Date{2024, 12, 31}},
		{"2024-03-01T11:59:59Z", Date{2024, 2, 29}},
		{"2024-03-01T12:00:00Z", Date{2024, 3, 1}},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			sleepUntil(t, test.now)
			e := test.earliest
			before := DateOf(time.Date(e.Year, e.Month, e.Day-1, 0, 0, 0, 0, time.UTC))
			if got := fieldLines(t, UpdateOrderBody{Value(e)}.Validate()); got != nil {
				t.Errorf("%s: %v: %q", test.now, e, got)
			}
			want := []string{"body.activate_by [value_error] must be today or later"}
			if diff := cmp.Diff(want, fieldLines(t, UpdateOrderBody{Value(before)}.Validate())); diff != "" {
				t.Errorf("%s: %v (-want +got)\n%s", test.now, before, diff)
			}
		})
	}
}

// A patient is a minor only if under 18 everywhere on earth: the birthday starts first where clocks
// are 14 hours ahead of UTC.
func TestMinorsAroundMidnight(t *testing.T) {
	tests := []struct {
		now   string
		dob   Date
		minor bool
	}{
		{"2025-06-15T09:59:59Z", Date{2007, 6, 16}, true},
		{"2025-06-15T10:00:00Z", Date{2007, 6, 16}, false}, // it is the 16th at UTC+14
		{"2025-06-15T12:00:00Z", Date{2007, 6, 15}, false},
		{"2025-06-15T12:00:00Z", Date{2007, 6, 17}, true},
		{"2025-06-15T12:00:00Z", Date{2006, 6, 17}, false},
		{"2025-06-15T12:00:00Z", Date{2008, 1, 1}, true},
		{"2025-06-15T12:00:00Z", Date{1900, 1, 1}, false},
		{"2025-06-15T12:00:00Z", Date{2025, 6, 15}, true},
		// A date of birth in the future is left to the service.
		{"2025-06-15T09:59:59Z", Date{2025, 6, 15}, true},
		{"2025-06-15T09:59:59Z", Date{2025, 6, 16}, false},
		{"2025-06-15T10:00:00Z", Date{2025, 6, 16}, true},
		{"2025-06-15T10:00:00Z", Date{2025, 6, 17}, false},
		{"2025-06-15T12:00:00Z", Date{2085, 12, 10}, false},
		{"2025-12-31T09:59:59Z", Date{2008, 1, 1}, true},
		{"2025-12-31T10:00:00Z", Date{2008, 1, 1}, false},
		// Born on 29 February: of age on 28 February of a year that has no 29th, and on that of
		// every other year too.
		{"2022-02-27T09:59:59Z", Date{2004, 2, 29}, true},
		{"2022-02-27T10:00:00Z", Date{2004, 2, 29}, false},
		{"2022-02-28T12:00:00Z", Date{2004, 2, 29}, false},
		{"2022-02-27T10:00:00Z", Date{2004, 3, 1}, true},
		{"2022-02-28T10:00:00Z", Date{2004, 3, 1}, false},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			sleepUntil(t, test.now)
			var want []string
			if test.minor {
				want = []string{"body.patient_details.medical_proxy [missing] is required for a patient under 18"}
			}
			b := validImport()
			b.PatientDetails.DOB = test.dob
			if diff := cmp.Diff(want, fieldLines(t, b.Validate())); diff != "" {
				t.Errorf("%s, born %v (-want +got)\n%s", test.now, test.dob, diff)
			}
			b.PatientDetails.MedicalProxy = validProxy()
			if got := fieldLines(t, b.Validate()); got != nil {
				t.Errorf("%s, born %v, with a proxy: %q", test.now, test.dob, got)
			}
		})
	}
}

// Validation changes nothing in the body.
func TestValidateLeavesTheBodyAlone(t *testing.T) {
	b := validImport()
	b.PatientDetails.MedicalProxy = validProxy()
	before := mustEncode(t, b)
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	if string(mustEncode(t, b)) != string(before) {
		t.Error("the body changed")
	}
}
