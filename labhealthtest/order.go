// The JSON of an order.

package labhealthtest

import (
	"time"

	"github.com/google/uuid"
)

// The objects of an order, with the JSON names and the field order of the service.

// order is an order as responses and events contain it. Orders share what they point to, so only
// Details may be modified in place, and Transaction for all of its orders.
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
	CreatedAt         timestamp        `json:"created_at"`
	UpdatedAt         timestamp        `json:"updated_at"`
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
	Transaction       *transaction     `json:"order_transaction"`

	appointment *appointment     // the latest, nil if there is none
	scheduled   bool             // created with activate_by
	withoutSMS  bool             // the communication settings
	results     []byte           // set by SetResults
	resultTypes []string         // of invented results; nil for the usual ones
	missing     map[int64]string // by marker: why it could not be measured
	corrected   map[int64]string // by marker: the value that replaces the invented one
}

type patientDetails struct {
	DOB               birthDate  `json:"dob"`
	Gender            string     `json:"gender"`
	FirstName         string     `json:"first_name"`
	LastName          string     `json:"last_name"`
	PhoneNumber       string     `json:"phone_number"`
	Email             string     `json:"email"`
	MedicalProxy      *guarantor `json:"medical_proxy"`
	Race              *string    `json:"race"`
	Ethnicity         *string    `json:"ethnicity"`
	SexualOrientation *string    `json:"sexual_orientation"`
	GenderIdentity    *string    `json:"gender_identity"`

	searchName string // full name in lower case
}

// guarantor is the GuarantorDetails of the interface specification.
type guarantor struct {
	FirstName       string           `json:"first_name"`
	LastName        string           `json:"last_name"`
	Address         guarantorAddress `json:"address"`
	PhoneNumber     string           `json:"phone_number"`
	HouseholdIncome *int64           `json:"household_income"`
	HouseholdSize   *int64           `json:"household_size"`
	Email           *string          `json:"email"`
}

// guarantorAddress is the Address of the interface specification.
type guarantorAddress struct {
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
	ID           int64     `json:"id"`
	CreatedAt    timestamp `json:"created_at"`
	Status       string    `json:"status"`
	StatusDetail *string   `json:"status_detail"`
}

// details holds *testkitData, *appointmentData or *siteData, depending on the collection method.
type details struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

type testkitData struct {
	siteData
	Shipment *shipment `json:"shipment"`
}

// appointmentData belongs to walk-in tests and at-home phlebotomies.
type appointmentData struct {
	siteData
	AppointmentID *uuid.UUID `json:"appointment_id"`
}

type siteData struct {
	ID        uuid.UUID `json:"id"`
	CreatedAt timestamp `json:"created_at"`
	UpdatedAt timestamp `json:"updated_at"`
}

func (d *siteData) setUpdatedAt(now time.Time) { d.UpdatedAt = timestamp(now) }

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
	ID                      uuid.UUID      `json:"id"`
	CreatedAt               microTimestamp `json:"created_at"`
	UpdatedAt               microTimestamp `json:"updated_at"`
	LowLevelStatus          string         `json:"low_level_status"`
	LowLevelStatusCreatedAt microTimestamp `json:"low_level_status_created_at"`
	Origin                  string         `json:"origin"`
	ParentID                *uuid.UUID     `json:"parent_id"`

	topLevel string // top-level status of the order
}
