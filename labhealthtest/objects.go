package labhealthtest

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// stamp is a date-time as most answers write it: whole seconds, or six digits of fraction where there is one, and the offset
// +00:00.
type stamp time.Time

// MarshalText writes the date-time.
func (s stamp) MarshalText() ([]byte, error) {
	t := time.Time(s)
	if t.Nanosecond() == 0 {
		return t.AppendFormat(nil, "2006-01-02T15:04:05+00:00"), nil
	}
	return t.AppendFormat(nil, "2006-01-02T15:04:05.000000+00:00"), nil
}

// microStamp is a date-time as order transactions write it, with a Z; one answer holds both forms.
type microStamp time.Time

// MarshalText writes the date-time.
func (s microStamp) MarshalText() ([]byte, error) {
	return time.Time(s).AppendFormat(nil, "2006-01-02T15:04:05.000000Z"), nil
}

// birthDate is a date that answers write as a date-time.
type birthDate string

// MarshalText writes the date-time.
func (d birthDate) MarshalText() ([]byte, error) {
	return []byte(d + "T00:00:00+00:00"), nil
}

// order is an order as every answer and event shows it. What it points to is shared between orders and never changed, except for
// Details and Transaction.
type order struct {
	ID                uuid.UUID        `json:"id"`
	UserID            uuid.UUID        `json:"user_id"`
	TeamID            uuid.UUID        `json:"team_id"`
	PatientDetails    *patientDetails  `json:"patient_details"`
	PatientAddress    *patientAddress  `json:"patient_address"`
	LabTest           *labTest         `json:"lab_test"`
	Details           details          `json:"details"`
	SampleID          *string          `json:"sample_id"`
	Notes             *string          `json:"notes"`
	ClinicalNotes     *string          `json:"clinical_notes"`
	CreatedAt         stamp            `json:"created_at"`
	UpdatedAt         stamp            `json:"updated_at"`
	Events            []orderEvent     `json:"events"`
	Status            string           `json:"status"`
	LastEvent         orderEvent       `json:"last_event"`
	Physician         *orderPhysician  `json:"physician"`
	HealthInsuranceID *uuid.UUID       `json:"health_insurance_id"`
	RequisitionForm   *string          `json:"requisition_form_url"`
	Priority          bool             `json:"priority"`
	ShippingDetails   *shippingAddress `json:"shipping_details"`
	ActivateBy        *string          `json:"activate_by"`
	Passthrough       *string          `json:"passthrough"`
	BillingType       string           `json:"billing_type"`
	ICDCodes          []string         `json:"icd_codes"`
	HasABN            bool             `json:"has_abn"`
	Interpretation    *string          `json:"interpretation"`
	HasMissingResults *bool            `json:"has_missing_results"`
	ExpectedResultBy  *string          `json:"expected_result_by_date"`
	WorstResultBy     *string          `json:"worst_case_result_by_date"`
	Origin            string           `json:"origin"`
	Transaction       transaction      `json:"order_transaction"`

	// scheduled tells that the order was created with activate_by.
	scheduled bool
	// results is an answer that a test gave, nil for the usual one.
	results []byte
	// missing holds the reasons for markers that could not be measured.
	missing map[int64]string
}

type patientDetails struct {
	DOB               birthDate  `json:"dob"`
	Gender            string     `json:"gender"`
	FirstName         string     `json:"first_name"`
	LastName          string     `json:"last_name"`
	PhoneNumber       string     `json:"phone_number"`
	Email             string     `json:"email"`
	MedicalProxy      *guarantee `json:"medical_proxy"`
	Race              *string    `json:"race"`
	Ethnicity         *string    `json:"ethnicity"`
	SexualOrientation *string    `json:"sexual_orientation"`
	GenderIdentity    *string    `json:"gender_identity"`

	// searchName is the full name in lower case.
	searchName string
}

// guarantee is the GuarantorDetails of an order.
type guarantee struct {
	FirstName       string  `json:"first_name"`
	LastName        string  `json:"last_name"`
	Address         home    `json:"address"`
	PhoneNumber     string  `json:"phone_number"`
	HouseholdIncome *int64  `json:"household_income"`
	HouseholdSize   *int64  `json:"household_size"`
	Email           *string `json:"email"`
}

// home is an Address.
type home struct {
	FirstLine   string  `json:"first_line"`
	SecondLine  *string `json:"second_line"`
	Country     string  `json:"country"`
	Zip         string  `json:"zip"`
	City        string  `json:"city"`
	State       string  `json:"state"`
	AccessNotes *string `json:"access_notes"`
}

type patientAddress struct {
	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	State        string  `json:"state"`
	Zip          string  `json:"zip"`
	Country      string  `json:"country"`
	AccessNotes  *string `json:"access_notes"`
	PhoneNumber  *string `json:"phone_number"`
}

type shippingAddress struct {
	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	State        string  `json:"state"`
	Zip          string  `json:"zip"`
	Country      string  `json:"country"`
	PhoneNumber  string  `json:"phone_number"`
}

type orderPhysician struct {
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	NPI       string `json:"npi"`
}

type orderEvent struct {
	ID           int64   `json:"id"`
	CreatedAt    stamp   `json:"created_at"`
	Status       string  `json:"status"`
	StatusDetail *string `json:"status_detail"`
}

// details holds a *testkitData, *appointmentData or *siteData.
type details struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

type testkitData struct {
	siteData
	Shipment *shipment `json:"shipment"`
}

// appointmentData is that of walk-in tests and at-home phlebotomies.
type appointmentData struct {
	siteData
	AppointmentID *uuid.UUID `json:"appointment_id"`
}

type siteData struct {
	ID        uuid.UUID `json:"id"`
	CreatedAt stamp     `json:"created_at"`
	UpdatedAt stamp     `json:"updated_at"`
}

func (d *siteData) touch(now time.Time) { d.UpdatedAt = stamp(now) }

type shipment struct {
	ID                     uuid.UUID `json:"id"`
	OutboundTrackingNumber *string   `json:"outbound_tracking_number"`
	OutboundTrackingURL    *string   `json:"outbound_tracking_url"`
	InboundTrackingNumber  *string   `json:"inbound_tracking_number"`
	InboundTrackingURL     *string   `json:"inbound_tracking_url"`
	OutboundCourier        *string   `json:"outbound_courier"`
	InboundCourier         *string   `json:"inbound_courier"`
	Notes                  *string   `json:"notes"`
}

type transaction struct {
	ID     uuid.UUID          `json:"id"`
	Status string             `json:"status"`
	Orders []transactionOrder `json:"orders"`
}

type transactionOrder struct {
	ID                      uuid.UUID  `json:"id"`
	CreatedAt               microStamp `json:"created_at"`
	UpdatedAt               microStamp `json:"updated_at"`
	LowLevelStatus          string     `json:"low_level_status"`
	LowLevelStatusCreatedAt microStamp `json:"low_level_status_created_at"`
	Origin                  string     `json:"origin"`
	ParentID                *uuid.UUID `json:"parent_id"`
}

type labTest struct {
	ID                        uuid.UUID   `json:"id"`
	Slug                      string      `json:"slug"`
	Name                      string      `json:"name"`
	SampleType                string      `json:"sample_type"`
	Method                    string      `json:"method"`
	Price                     json.Number `json:"price"`
	IsActive                  bool        `json:"is_active"`
	Status                    string      `json:"status"`
	Fasting                   bool        `json:"fasting"`
	Lab                       *lab        `json:"lab"`
	Markers                   []marker    `json:"markers"`
	IsDelegated               bool        `json:"is_delegated"`
	AutoGenerated             bool        `json:"auto_generated"`
	HasCollectionInstructions *bool       `json:"has_collection_instructions"`
	CommonTATDays             *int        `json:"common_tat_days"`
	WorstCaseTATDays          *int        `json:"worst_case_tat_days"`
}

type lab struct {
	ID                int      `json:"id"`
	Slug              string   `json:"slug"`
	Name              string   `json:"name"`
	FirstLineAddress  string   `json:"first_line_address"`
	City              string   `json:"city"`
	Zipcode           string   `json:"zipcode"`
	CollectionMethods []string `json:"collection_methods"`
	SampleTypes       []string `json:"sample_types"`
}

type marker struct {
	ID               int64   `json:"id"`
	Name             string  `json:"name"`
	Slug             string  `json:"slug"`
	Description      *string `json:"description"`
	LabID            *int    `json:"lab_id"`
	ProviderID       *string `json:"provider_id"`
	Type             *string `json:"type"`
	Unit             *string `json:"unit"`
	Price            *string `json:"price"`
	AoE              *aoe    `json:"aoe"`
	ALaCarteEnabled  bool    `json:"a_la_carte_enabled"`
	CommonTATDays    *int    `json:"common_tat_days"`
	WorstCaseTATDays *int    `json:"worst_case_tat_days"`
	IsOrderable      *bool   `json:"is_orderable"`
}

type aoe struct {
	Questions []question `json:"questions"`
}

type question struct {
	ID         int64            `json:"id"`
	Required   bool             `json:"required"`
	Code       string           `json:"code"`
	Value      string           `json:"value"`
	Type       string           `json:"type"`
	Sequence   int              `json:"sequence"`
	Answers    []questionAnswer `json:"answers"`
	Constraint *string          `json:"constraint"`
	Default    *string          `json:"default"`
}

type questionAnswer struct {
	ID    int64  `json:"id"`
	Code  string `json:"code"`
	Value string `json:"value"`
}

type user struct {
	UserID            uuid.UUID         `json:"user_id"`
	TeamID            uuid.UUID         `json:"team_id"`
	ClientUserID      string            `json:"client_user_id"`
	CreatedOn         stamp             `json:"created_on"`
	ConnectedSources  []connectedSource `json:"connected_sources"`
	FallbackBirthDate *fallbackDate     `json:"fallback_birth_date"`
	FallbackTimeZone  *fallbackZone     `json:"fallback_time_zone"`
	// Without a limit these are left out, as the interface document does not have them.
	IngestionStart *string `json:"ingestion_start,omitempty"`
	IngestionEnd   *string `json:"ingestion_end,omitempty"`

	number    int       // 1 for the user that was created first
	deletedAt time.Time // zero for a user that is not deleted
	pulls     []*pull   // in the order of sources and resources
}

type connectedSource struct {
	CreatedOn stamp  `json:"created_on"`
	Source    source `json:"source"`
}

type source struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
	Logo string `json:"logo"`
}

type fallbackDate struct {
	Value      string `json:"value"`
	SourceSlug string `json:"source_slug"`
	UpdatedAt  stamp  `json:"updated_at"`
}

type fallbackZone struct {
	ID         string `json:"id"`
	SourceSlug string `json:"source_slug"`
	UpdatedAt  stamp  `json:"updated_at"`
}
