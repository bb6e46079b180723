// The schemas of orders that are imported and created, typed by hand.

package labhealthtest

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

var collectionMethods = []string{"testkit", "walk_in_test", "at_home_phlebotomy", "on_site_collection"}

// The enumerations of requests.
var (
	billingTypeSchema      = enum("client_bill", "commercial_insurance", "patient_bill_passthrough", "patient_bill")
	collectionMethodSchema = enum(collectionMethods...)
	genderSchema           = enum("female", "male", "other", "unknown")
	raceSchema             = enum("african_american_or_black", "asian", "indigenous_native_american_alaska_native", "other",
		"pacific_islander_or_hawaiian", "white_caucasian")
	ethnicitySchema         = enum("hispanic", "non_hispanic", "ashkenazi_jewish", "other")
	sexualOrientationSchema = enum("lesbian_gay_or_homosexual", "heterosexual_or_straight", "bisexual", "dont_know", "other")
	genderIdentitySchema    = enum("male", "female", "female_to_male_ftm_transgender_male_trans_man",
		"male_to_female_mtf_transgender_female_trans_woman", "genderqueer", "other")
	consentTypeSchema = enum("terms-of-use", "telehealth-informed-consent", "mobile-terms-and-conditions",
		"notice-of-privacy-practices", "privacy-policy", "hipaa-authorization")
)

var (
	// nameSchema is for first and last names. The pattern is from the public API reference.
	nameSchema = boundedString(1, 50, regexp.MustCompile(`^([a-zA-Z0-9]{1})([a-zA-Z0-9-.,']*(\s[a-zA-Z0-9-.,']+)*[a-zA-Z0-9-.,']?)$`))
	// zipSchema applies to created orders, not to imported ones.
	zipSchema   = boundedString(0, math.MaxInt, regexp.MustCompile(`^\d{5}(-\d{4})?$`))
	notesSchema = boundedString(0, 1000, nil)
)

// The bodies of the operations that import and create orders, typed by hand as a second reading of
// the documents.
var (
	guarantorAddressSchema = object(
		required("first_line", stringSchema),
		field{name: "second_line", schema: stringSchema, optional: true, nullable: true, missing: ""},
		required("country", stringSchema),
		required("zip", stringSchema),
		required("city", stringSchema),
		required("state", stringSchema),
		nullable("access_notes", notesSchema),
	)
	guarantorSchema = object(
		required("first_name", nameSchema),
		required("last_name", nameSchema),
		required("address", guarantorAddressSchema),
		required("phone_number", phoneSchema),
		nullable("household_income", integerSchema),
		nullable("household_size", integerSchema),
		nullable("email", stringSchema),
	)
	patientFieldsSchema = object(
		required("first_name", nameSchema),
		required("last_name", nameSchema),
		required("dob", dateSchema),
		required("gender", genderSchema),
		required("phone_number", phoneSchema),
		required("email", emailSchema),
		nullable("medical_proxy", guarantorSchema),
		nullable("race", raceSchema),
		nullable("ethnicity", ethnicitySchema),
		nullable("sexual_orientation", sexualOrientationSchema),
		nullable("gender_identity", genderIdentitySchema),
		nullable("household_income", integerSchema),
		nullable("household_size", integerSchema),
	)
	importAddressSchema = object(
		required("receiver_name", stringSchema),
		required("first_line", stringSchema),
		nullable("second_line", stringSchema),
		required("city", stringSchema),
		required("state", stringSchema),
		required("zip", stringSchema),
		required("country", stringSchema),
		nullable("access_notes", notesSchema),
	)
	createAddressSchema = object(
		optional("receiver_name", stringSchema, ""),
		required("first_line", stringSchema),
		nullable("second_line", stringSchema),
		required("city", stringSchema),
		required("state", stringSchema),
		required("zip", zipSchema),
		required("country", stringSchema),
		nullable("access_notes", notesSchema),
		nullable("phone_number", phoneSchema),
	)
	imageSchema = object(
		required("content", stringSchema),
		required("content_type", enum("image/jpeg", "image/png")),
	)
	physicianSchema = object(
		required("first_name", nameSchema),
		required("last_name", nameSchema),
		required("npi", stringSchema),
		nullable("email", stringSchema),
		optional("licensed_states", arrayOf(stringSchema), nil),
		nullable("signature_image", imageSchema),
	)
	healthInsuranceSchema = object(
		nullable("front_image", imageSchema),
		nullable("back_image", imageSchema),
		nullable("patient_signature_image", imageSchema),
		nullable("subjective", stringSchema),
		nullable("assessment_plan", stringSchema),
		nullable("payor_code", stringSchema),
		nullable("insurance_id", stringSchema),
		nullable("responsible_relationship", enum("Self", "Spouse", "Other")),
		nullable("responsible_details", object(
			required("first_name", nameSchema),
			required("last_name", nameSchema),
			required("address", guarantorAddressSchema),
			required("phone_number", phoneSchema),
			optional("phone_type", stringSchema, "Mobile"),
		)),
		nullable("diagnosis_codes", arrayOf(stringSchema)),
	)
	addOnSchema = object(
		nullable("marker_ids", arrayOf(integerSchema)),
		nullable("provider_ids", arrayOf(stringSchema)),
	)
	orderSetSchema = object(
		nullable("lab_test_ids", arrayOf(uuidSchema)),
		nullable("add_on", addOnSchema),
		nullable("lab_account_id", uuidSchema),
	)
	consentSchema = object(
		required("consentType", consentTypeSchema),
		optional("version", stringSchema, "1.0"),
		optional("timeOfConsent", dateTimeSchema, nil),
	)
	aoeAnswerSchema = object(
		required("marker_id", integerSchema),
		required("question_id", integerSchema),
		required("answer", stringSchema),
	)

	importOrderSchema = object(
		required("user_id", uuidSchema),
		required("billing_type", billingTypeSchema),
		required("order_set", orderSetSchema),
		required("collection_method", collectionMethodSchema),
		nullable("physician", physicianSchema),
		required("patient_details", patientSchema),
		required("patient_address", importAddressSchema),
		required("sample_id", stringSchema),
		nullable("lab_account_id", uuidSchema),
	)
	createOrderSchema = object(
		required("user_id", uuidSchema),
		required("patient_details", patientSchema),
		required("patient_address", createAddressSchema),
		nullable("lab_test_id", uuidSchema),
		nullable("order_set", orderSetSchema),
		nullable("collection_method", collectionMethodSchema),
		nullable("physician", physicianSchema),
		optional("priority", booleanSchema, false),
		optional("billing_type", billingTypeSchema, "client_bill"),
		nullable("icd_codes", arrayOf(stringSchema)),
		optional("consents", arrayOf(consentSchema), nil),
		nullable("health_insurance", healthInsuranceSchema),
		nullable("activate_by", dateSchema),
		nullable("aoe_answers", arrayOf(aoeAnswerSchema)),
		nullable("passthrough", stringSchema),
		nullable("clinical_notes", notesSchema),
		nullable("lab_account_id", uuidSchema),
		nullable("creator_member_id", uuidSchema),
	)
)

// patientSchema rejects a date of birth in the future, and a minor without a medical proxy.
func patientSchema(v *validator, location []any, raw json.RawMessage) any {
	before := len(v.errors)
	value := patientFieldsSchema(v, location, raw)
	if len(v.errors) > before {
		return value
	}
	details := value.(map[string]any)
	dob := details["dob"].(string)
	adultSince := v.now.AddDate(-18, 0, 0).Format(time.DateOnly)
	switch {
	case dob > v.now.Format(time.DateOnly):
		v.addValueError(append(slices.Clone(location), "dob"), "dob must not be in the future", encode(dob))
	case dob > adultSince && details["medical_proxy"] == nil:
		v.addValueError(append(slices.Clone(location), "medical_proxy"), "medical_proxy is required for a minor", jsonNull)
	}
	return value
}

// orderRequest is the body of the operations that create and import an order. Fields that the
// server does not use are missing.
type orderRequest struct {
	UserID           uuid.UUID       `json:"user_id"`
	BillingType      string          `json:"billing_type"`
	LabTestID        *uuid.UUID      `json:"lab_test_id"`
	OrderSet         *orderSet       `json:"order_set"`
	CollectionMethod string          `json:"collection_method"`
	Physician        *orderPhysician `json:"physician"`
	HealthInsurance  *struct{}       `json:"health_insurance"`
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
	Passthrough   *string    `json:"passthrough"`
	ClinicalNotes *string    `json:"clinical_notes"`
	LabAccountID  *uuid.UUID `json:"lab_account_id"`
}

type orderSet struct {
	LabTestIDs []uuid.UUID `json:"lab_test_ids"`
	AddOn      *struct {
		MarkerIDs   []int64  `json:"marker_ids"`
		ProviderIDs []string `json:"provider_ids"`
	} `json:"add_on"`
	LabAccountID *uuid.UUID `json:"lab_account_id"`
}
