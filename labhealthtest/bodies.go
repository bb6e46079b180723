package labhealthtest

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// The enumerations that requests are held to.
var (
	collectionMethods = []string{"testkit", "walk_in_test", "at_home_phlebotomy", "on_site_collection"}
	lowLevelStatuses  = []string{
		"ordered", "requisition_created", "requisition_bypassed", "transit_customer", "out_for_delivery", "with_customer",
		"transit_lab", "delivered_to_lab", "completed", "failure_to_deliver_to_lab", "failure_to_deliver_to_customer",
		"problem_in_transit_lab", "problem_in_transit_customer", "sample_error", "appointment_scheduled",
		"appointment_cancelled", "appointment_pending", "draw_completed", "cancelled", "lost", "do_not_process",
		"partial_results", "awaiting_registration", "registered", "redraw_available", "corrected", "lab_processing_blocked",
	}

	billing          = oneOf("client_bill", "commercial_insurance", "patient_bill_passthrough", "patient_bill")
	collectionMethod = oneOf(collectionMethods...)
	lowLevelStatus   = oneOf(lowLevelStatuses...)
	interpretation   = oneOf("normal", "abnormal", "critical", "unknown")
	gender           = oneOf("female", "male", "other", "unknown")
	race             = oneOf("african_american_or_black", "asian", "indigenous_native_american_alaska_native", "other",
		"pacific_islander_or_hawaiian", "white_caucasian")
	ethnicity         = oneOf("hispanic", "non_hispanic", "ashkenazi_jewish", "other")
	sexualOrientation = oneOf("lesbian_gay_or_homosexual", "heterosexual_or_straight", "bisexual", "dont_know", "other")
	genderIdentity    = oneOf("male", "female", "female_to_male_ftm_transgender_male_trans_man",
		"male_to_female_mtf_transgender_female_trans_woman", "genderqueer", "other")
	consentType = oneOf("terms-of-use", "telehealth-informed-consent", "mobile-terms-and-conditions",
		"notice-of-privacy-practices", "privacy-policy", "hipaa-authorization")
)

var (
	// name is the kind of all first and last names; the pattern is that of the public reference.
	name = limited(1, 50, regexp.MustCompile(`^([a-zA-Z0-9]{1})([a-zA-Z0-9-.,']*(\s[a-zA-Z0-9-.,']+)*[a-zA-Z0-9-.,']?)$`))
	// zip is checked where an order is created, not where one is imported.
	zip   = limited(0, math.MaxInt, regexp.MustCompile(`^\d{5}(-\d{4})?$`))
	notes = limited(0, 1000, nil)
)

// The bodies of requests: name, need, kind, value when absent.
var (
	address = object(
		field{"first_line", required, text, nil},
		field{"second_line", optional | nullable, text, ""},
		field{"country", required, text, nil},
		field{"zip", required, text, nil},
		field{"city", required, text, nil},
		field{"state", required, text, nil},
		field{"access_notes", optional | nullable, notes, nil},
	)
	guarantor = object(
		field{"first_name", required, name, nil},
		field{"last_name", required, name, nil},
		field{"address", required, address, nil},
		field{"phone_number", required, aPhone, nil},
		field{"household_income", optional | nullable, anInteger, nil},
		field{"household_size", optional | nullable, anInteger, nil},
		field{"email", optional | nullable, text, nil},
	)
	patient = object(
		field{"first_name", required, name, nil},
		field{"last_name", required, name, nil},
		field{"dob", required, aDate, nil},
		field{"gender", required, gender, nil},
		field{"phone_number", required, aPhone, nil},
		field{"email", required, anEmail, nil},
		field{"medical_proxy", optional | nullable, guarantor, nil},
		field{"race", optional | nullable, race, nil},
		field{"ethnicity", optional | nullable, ethnicity, nil},
		field{"sexual_orientation", optional | nullable, sexualOrientation, nil},
		field{"gender_identity", optional | nullable, genderIdentity, nil},
		field{"household_income", optional | nullable, anInteger, nil},
		field{"household_size", optional | nullable, anInteger, nil},
	)
	importAddress = object(
		field{"receiver_name", required, text, nil},
		field{"first_line", required, text, nil},
		field{"second_line", optional | nullable, text, nil},
		field{"city", required, text, nil},
		field{"state", required, text, nil},
		field{"zip", required, text, nil},
		field{"country", required, text, nil},
		field{"access_notes", optional | nullable, notes, nil},
	)
	createAddress = object(
		field{"receiver_name", optional, text, ""},
		field{"first_line", required, text, nil},
		field{"second_line", optional | nullable, text, nil},
		field{"city", required, text, nil},
		field{"state", required, text, nil},
		field{"zip", required, zip, nil},
		field{"country", required, text, nil},
		field{"access_notes", optional | nullable, notes, nil},
		field{"phone_number", optional | nullable, aPhone, nil},
	)
	image = object(
		field{"content", required, text, nil},
		field{"content_type", required, oneOf("image/jpeg", "image/png"), nil},
	)
	physician = object(
		field{"first_name", required, name, nil},
		field{"last_name", required, name, nil},
		field{"npi", required, text, nil},
		field{"email", optional | nullable, text, nil},
		field{"licensed_states", optional, list(text), nil},
		field{"signature_image", optional | nullable, image, nil},
	)
	addOn = object(
		field{"marker_ids", optional | nullable, list(anInteger), nil},
		field{"provider_ids", optional | nullable, list(text), nil},
	)
	set = object(
		field{"lab_test_ids", optional | nullable, list(aUUID), nil},
		field{"add_on", optional | nullable, addOn, nil},
		field{"lab_account_id", optional | nullable, aUUID, nil},
	)
	consent = object(
		field{"consentType", required, consentType, nil},
		field{"version", optional, text, "1.0"},
		field{"timeOfConsent", optional | nullable, aDateTime, nil},
	)
	aoeAnswer = object(
		field{"marker_id", required, anInteger, nil},
		field{"question_id", required, anInteger, nil},
		field{"answer", required, text, nil},
	)

	importOrderBody = object(
		field{"user_id", required, aUUID, nil},
		field{"billing_type", required, billing, nil},
		field{"order_set", required, set, nil},
		field{"collection_method", required, collectionMethod, nil},
		field{"physician", optional | nullable, physician, nil},
		field{"patient_details", required, aPatient, nil},
		field{"patient_address", required, importAddress, nil},
		field{"sample_id", required, text, nil},
		field{"lab_account_id", optional | nullable, aUUID, nil},
	)
	createOrderBody = object(
		field{"user_id", required, aUUID, nil},
		field{"patient_details", required, aPatient, nil},
		field{"patient_address", required, createAddress, nil},
		field{"lab_test_id", optional | nullable, aUUID, nil},
		field{"order_set", optional | nullable, set, nil},
		field{"collection_method", optional | nullable, collectionMethod, nil},
		field{"physician", optional | nullable, physician, nil},
		field{"priority", optional, aBoolean, false},
		field{"billing_type", optional, billing, "client_bill"},
		field{"icd_codes", optional | nullable, list(text), nil},
		field{"consents", optional | nullable, list(consent), nil},
		field{"activate_by", optional | nullable, aDate, nil},
		field{"aoe_answers", optional | nullable, list(aoeAnswer), nil},
		field{"passthrough", optional | nullable, text, nil},
		field{"clinical_notes", optional | nullable, notes, nil},
		field{"lab_account_id", optional | nullable, aUUID, nil},
		field{"creator_member_id", optional | nullable, aUUID, nil},
	)
	updateOrderBody = object(
		field{"activate_by", nullable, aDate, nil},
	)
	createUserBody = object(
		field{"client_user_id", required, text, nil},
		field{"fallback_time_zone", optional | nullable, text, nil},
		field{"fallback_birth_date", optional | nullable, aDate, nil},
		field{"ingestion_start", optional | nullable, aDate, nil},
		field{"ingestion_end", optional | nullable, aDate, nil},
	)
	patchUserBody = object(
		field{"client_user_id", optional, text, nil},
		field{"fallback_time_zone", optional | nullable, text, nil},
		field{"fallback_birth_date", optional | nullable, aDate, nil},
		field{"ingestion_start", optional | nullable, aDate, nil},
		field{"ingestion_end", optional | nullable, aDate, nil},
	)
	resendBody = object(
		field{"order_ids", optional | nullable, list(aUUID), nil},
		field{"start_at", optional | nullable, aDateTime, nil},
		field{"end_at", optional | nullable, aDateTime, nil},
	)
)

// aPatient is the kind of patient_details: dates of birth in the future are refused, and so is a minor without a medical proxy.
func aPatient(c *checker, loc []any, in json.RawMessage) any {
	before := len(c.problems)
	v := patient(c, loc, in)
	if len(c.problems) > before {
		return v
	}
	details := v.(map[string]any)
	dob := details["dob"].(string)
	adultSince := c.now.AddDate(-18, 0, 0).Format(time.DateOnly)
	switch {
	case dob > c.now.Format(time.DateOnly):
		c.addValueError(append(slices.Clone(loc), "dob"), "dob must not be in the future", encode(dob))
	case dob > adultSince && details["medical_proxy"] == nil:
		c.addValueError(append(slices.Clone(loc), "medical_proxy"), "medical_proxy is required for a minor", []byte("null"))
	}
	return v
}

// placeOrder is the body of both operations that make an order, as far as it is used.
type placeOrder struct {
	UserID           uuid.UUID       `json:"user_id"`
	BillingType      string          `json:"billing_type"`
	LabTestID        *uuid.UUID      `json:"lab_test_id"`
	OrderSet         *orderSet       `json:"order_set"`
	CollectionMethod string          `json:"collection_method"`
	Physician        *orderPhysician `json:"physician"`
	PatientDetails   *patientDetails `json:"patient_details"`
	PatientAddress   *patientAddress `json:"patient_address"`
	SampleID         *string         `json:"sample_id"`
	Priority         bool            `json:"priority"`
	ICDCodes         []string        `json:"icd_codes"`
	ActivateBy       *string         `json:"activate_by"`
	AoEAnswers       []struct {
		MarkerID   int64  `json:"marker_id"`
		QuestionID int64  `json:"question_id"`
		Answer     string `json:"answer"`
	} `json:"aoe_answers"`
	Passthrough   *string `json:"passthrough"`
	ClinicalNotes *string `json:"clinical_notes"`
}

type orderSet struct {
	LabTestIDs []uuid.UUID `json:"lab_test_ids"`
	AddOn      *struct {
		MarkerIDs   []int64  `json:"marker_ids"`
		ProviderIDs []string `json:"provider_ids"`
	} `json:"add_on"`
}
