// The open enumerations, and OrderStatus with its three parts.

package labhealth

import "strings"

// The enumerations are open: each is a string type with constants for the documented values. Other
// values are decoded and sent unchanged. The service may add values without a version change, and
// is known to return values that are not documented, such as the gender "Male" and the sample type
// "dried blood spot". A switch over an enumeration therefore needs a default case. The empty string
// is the zero value: the field was absent, or is not sent.

// Billing is the party that pays for an order: the billing_type of [ImportOrderBody],
// [CreateOrderBody] and [Order]. It is BillingClientBill if a response has none.
//
// Values other than the constants occur.
type Billing string

// Values of [Billing].
const (
	BillingClientBill             Billing = "client_bill"
	BillingCommercialInsurance    Billing = "commercial_insurance"
	BillingPatientBillPassthrough Billing = "patient_bill_passthrough"
	BillingPatientBill            Billing = "patient_bill"
)

// LabTestCollectionMethod is the method by which a sample is collected: the collection_method of
// [ImportOrderBody] and [CreateOrderBody], the method of a [LabTest], one of the collection methods
// of a [Lab], the type of [OrderDetails] and the middle part of an [OrderStatus].
//
// Values other than the constants occur.
type LabTestCollectionMethod string

// Values of [LabTestCollectionMethod].
const (
	CollectionMethodTestkit          LabTestCollectionMethod = "testkit"
	CollectionMethodWalkInTest       LabTestCollectionMethod = "walk_in_test"
	CollectionMethodAtHomePhlebotomy LabTestCollectionMethod = "at_home_phlebotomy"
	CollectionMethodOnSiteCollection LabTestCollectionMethod = "on_site_collection"
)

// AppointmentType returns the kind of the appointments of orders with the collection method, for
// the methods of [AppointmentsService]. It is empty if the method has no appointments.
func (m LabTestCollectionMethod) AppointmentType() AppointmentType {
	switch m {
	case CollectionMethodAtHomePhlebotomy:
		return AppointmentAtHome
	case CollectionMethodWalkInTest:
		return AppointmentWalkIn
	case CollectionMethodTestkit, CollectionMethodOnSiteCollection: // no appointments
	}
	return ""
}

// Gender is the gender of the patient in [PatientDetailsWithValidation].
//
// Values other than the constants occur, such as "Male".
type Gender string

// Values of [Gender].
const (
	GenderFemale  Gender = "female"
	GenderMale    Gender = "male"
	GenderOther   Gender = "other"
	GenderUnknown Gender = "unknown"
)

// Race is the race of the patient in [PatientDetailsWithValidation] and [OrderPatientDetails]. The
// service treats an absent value as 'Not Specified'.
//
// Values other than the constants occur.
type Race string

// Values of [Race].
const (
	RaceAfricanAmericanOrBlack               Race = "african_american_or_black"
	RaceAsian                                Race = "asian"
	RaceIndigenousNativeAmericanAlaskaNative Race = "indigenous_native_american_alaska_native"
	RaceOther                                Race = "other"
	RacePacificIslanderOrHawaiian            Race = "pacific_islander_or_hawaiian"
	RaceWhiteCaucasian                       Race = "white_caucasian"
)

// Ethnicity is the ethnicity of the patient in [PatientDetailsWithValidation] and
// [OrderPatientDetails]. The service treats an absent value as 'Not Specified'.
//
// Values other than the constants occur.
type Ethnicity string

// Values of [Ethnicity].
const (
	EthnicityHispanic        Ethnicity = "hispanic"
	EthnicityNonHispanic     Ethnicity = "non_hispanic"
	EthnicityAshkenaziJewish Ethnicity = "ashkenazi_jewish"
	EthnicityOther           Ethnicity = "other"
)

// SexualOrientation is the sexual orientation of the patient in [PatientDetailsWithValidation] and
// [OrderPatientDetails]. The service treats an absent value as 'Not Specified'.
//
// Values other than the constants occur.
type SexualOrientation string

// Values of [SexualOrientation].
const (
	SexualOrientationLesbianGayOrHomosexual SexualOrientation = "lesbian_gay_or_homosexual"
	SexualOrientationHeterosexualOrStraight SexualOrientation = "heterosexual_or_straight"
	SexualOrientationBisexual               SexualOrientation = "bisexual"
	SexualOrientationDontKnow               SexualOrientation = "dont_know"
	SexualOrientationOther                  SexualOrientation = "other"
)

// GenderIdentity is the gender identity of the patient in [PatientDetailsWithValidation] and
// [OrderPatientDetails]. The service treats an absent value as 'Not Specified'.
//
// Values other than the constants occur.
type GenderIdentity string

// Values of [GenderIdentity].
const (
	GenderIdentityMale                                       GenderIdentity = "male"
	GenderIdentityFemale                                     GenderIdentity = "female"
	GenderIdentityFemaleToMaleFTMTransgenderMaleTransMan     GenderIdentity = "female_to_male_ftm_transgender_male_trans_man"
	GenderIdentityMaleToFemaleMTFTransgenderFemaleTransWoman GenderIdentity = "male_to_female_mtf_transgender_female_trans_woman"
	GenderIdentityGenderqueer                                GenderIdentity = "genderqueer"
	GenderIdentityOther                                      GenderIdentity = "other"
)

// LabTestSampleType is a kind of sample: the one that a [LabTest] requires, or one of those that a
// [Lab] processes.
//
// Values other than the constants occur, such as "dried blood spot".
type LabTestSampleType string

// Values of [LabTestSampleType].
const (
	SampleTypeDriedBloodSpot LabTestSampleType = "dried_blood_spot"
	SampleTypeArmCollector   LabTestSampleType = "arm_collector"
	SampleTypeSerum          LabTestSampleType = "serum"
	SampleTypeSaliva         LabTestSampleType = "saliva"
	SampleTypeUrine          LabTestSampleType = "urine"
	SampleTypeStool          LabTestSampleType = "stool"
)

// LabTestStatus is the status of a [LabTest]. It replaces the deprecated is_active.
//
// Values other than the constants occur.
type LabTestStatus string

// Values of [LabTestStatus].
const (
	LabTestStatusActive          LabTestStatus = "active"
	LabTestStatusPendingApproval LabTestStatus = "pending_approval"
	LabTestStatusInactive        LabTestStatus = "inactive"
)

// MarkerType distinguishes single biomarkers from panels of them. See [Marker].
//
// Values other than the constants occur.
type MarkerType string

// Values of [MarkerType].
const (
	MarkerTypeBiomarker MarkerType = "biomarker"
	MarkerTypePanel     MarkerType = "panel"
)

// Interpretation summarizes the results of an [Order]. As a filter of [ListOrdersParams] the
// interface specification documents only normal, abnormal and critical.
//
// Values other than the constants occur.
type Interpretation string

// Values of [Interpretation].
const (
	InterpretationNormal   Interpretation = "normal"
	InterpretationAbnormal Interpretation = "abnormal"
	InterpretationCritical Interpretation = "critical"
	InterpretationUnknown  Interpretation = "unknown"
)

// OrderOrigin distinguishes the initial order of a transaction from redraws and recreations of an
// earlier one. See [Order] and [OrderInTransaction].
//
// Values other than the constants occur.
type OrderOrigin string

// Values of [OrderOrigin].
const (
	OrderOriginInitial    OrderOrigin = "initial"
	OrderOriginRedraw     OrderOrigin = "redraw"
	OrderOriginRecreation OrderOrigin = "recreation"
)

// OrderTransactionStatus is the status of an [OrderTransaction].
//
// Values other than the constants occur.
type OrderTransactionStatus string

// Values of [OrderTransactionStatus].
const (
	OrderTransactionStatusActive    OrderTransactionStatus = "active"
	OrderTransactionStatusCompleted OrderTransactionStatus = "completed"
	OrderTransactionStatusCancelled OrderTransactionStatus = "cancelled"
)

// OrderActivationType distinguishes orders that are processed from those that wait for their date.
// It is a filter of [ListOrdersParams]. An order is current if it has no ActivateBy or one before
// today, and scheduled if it has one after today; an order for today may be neither.
//
// Values other than the constants occur. Source: public API reference only.
type OrderActivationType string

// Values of [OrderActivationType].
const (
	OrderActivationTypeCurrent   OrderActivationType = "current"
	OrderActivationTypeScheduled OrderActivationType = "scheduled"
)

// OrderTopLevelStatus is the first part of an [OrderStatus], and the deprecated status of an
// [Order].
//
// Values other than the constants occur.
type OrderTopLevelStatus string

// Values of [OrderTopLevelStatus].
const (
	TopLevelReceived         OrderTopLevelStatus = "received"
	TopLevelCollectingSample OrderTopLevelStatus = "collecting_sample"
	TopLevelSampleWithLab    OrderTopLevelStatus = "sample_with_lab"
	TopLevelCompleted        OrderTopLevelStatus = "completed"
	TopLevelCancelled        OrderTopLevelStatus = "cancelled"
	TopLevelFailed           OrderTopLevelStatus = "failed"
)

// OrderLowLevelStatus is the last part of an [OrderStatus], the low_level_status of an
// [OrderInTransaction] and the status filter of [ListOrdersParams]. Most values are specific to
// some collection methods.
//
// Values other than the constants occur, such as "testkit_registered" instead of "registered".
type OrderLowLevelStatus string

// Values of [OrderLowLevelStatus].
const (
	LowLevelOrdered                    OrderLowLevelStatus = "ordered"
	LowLevelRequisitionCreated         OrderLowLevelStatus = "requisition_created"
	LowLevelRequisitionBypassed        OrderLowLevelStatus = "requisition_bypassed"
	LowLevelTransitCustomer            OrderLowLevelStatus = "transit_customer"
	LowLevelOutForDelivery             OrderLowLevelStatus = "out_for_delivery"
	LowLevelWithCustomer               OrderLowLevelStatus = "with_customer"
	LowLevelTransitLab                 OrderLowLevelStatus = "transit_lab"
	LowLevelDeliveredToLab             OrderLowLevelStatus = "delivered_to_lab"
	LowLevelCompleted                  OrderLowLevelStatus = "completed"
	LowLevelFailureToDeliverToLab      OrderLowLevelStatus = "failure_to_deliver_to_lab"
	LowLevelFailureToDeliverToCustomer OrderLowLevelStatus = "failure_to_deliver_to_customer"
	LowLevelProblemInTransitLab        OrderLowLevelStatus = "problem_in_transit_lab"
	LowLevelProblemInTransitCustomer   OrderLowLevelStatus = "problem_in_transit_customer"
	LowLevelSampleError                OrderLowLevelStatus = "sample_error"
	LowLevelAppointmentScheduled       OrderLowLevelStatus = "appointment_scheduled"
	LowLevelAppointmentCancelled       OrderLowLevelStatus = "appointment_cancelled"
	LowLevelAppointmentPending         OrderLowLevelStatus = "appointment_pending"
	LowLevelDrawCompleted              OrderLowLevelStatus = "draw_completed"
	LowLevelCancelled                  OrderLowLevelStatus = "cancelled"
	LowLevelLost                       OrderLowLevelStatus = "lost"
	LowLevelDoNotProcess               OrderLowLevelStatus = "do_not_process"
	LowLevelPartialResults             OrderLowLevelStatus = "partial_results"
	LowLevelAwaitingRegistration       OrderLowLevelStatus = "awaiting_registration"
	LowLevelRegistered                 OrderLowLevelStatus = "registered"
	LowLevelRedrawAvailable            OrderLowLevelStatus = "redraw_available"
	LowLevelCorrected                  OrderLowLevelStatus = "corrected"
	LowLevelLabProcessingBlocked       OrderLowLevelStatus = "lab_processing_blocked"
)

// OrderStatusDetail is the status_detail of an [OrderEvent]. It is descriptive only: the state of
// an order depends on its [OrderStatus] alone.
//
// Values other than the constants occur.
type OrderStatusDetail string

// Values of [OrderStatusDetail].
const (
	StatusDetailFulfillmentError                  OrderStatusDetail = "fulfillment_error"
	StatusDetailDateOfCollectionUnspecified       OrderStatusDetail = "date_of_collection_unspecified"
	StatusDetailDemographicInformationUnspecified OrderStatusDetail = "demographic_information_unspecified"
	StatusDetailDemographicInformationMismatch    OrderStatusDetail = "demographic_information_mismatch"
	StatusDetailSampleQuantityNotSufficient       OrderStatusDetail = "sample_quantity_not_sufficient"
	StatusDetailSampleContaminated                OrderStatusDetail = "sample_contaminated"
	StatusDetailSampleStabilityExceeded           OrderStatusDetail = "sample_stability_exceeded"
	StatusDetailSampleHemolyzed                   OrderStatusDetail = "sample_hemolyzed"
	StatusDetailSampleImproperCollection          OrderStatusDetail = "sample_improper_collection"
)

// OrderStatus is the status of an [OrderEvent]. Its form is top_level.collection_method.low_level;
// [OrderStatus.TopLevel], [OrderStatus.Method] and [OrderStatus.LowLevel] return the three parts.
// The transitions between statuses are not documented, and events may repeat a status.
//
// Values other than the constants occur. Where possible, compare the parts rather than whole
// values.
type OrderStatus string

// Statuses of a walk-in test.
const (
	OrderStatusReceivedWalkInTestOrdered                      OrderStatus = "received.walk_in_test.ordered"
	OrderStatusReceivedWalkInTestRequisitionCreated           OrderStatus = "received.walk_in_test.requisition_created"
	OrderStatusReceivedWalkInTestRequisitionBypassed          OrderStatus = "received.walk_in_test.requisition_bypassed"
	OrderStatusCollectingSampleWalkInTestAppointmentPending   OrderStatus = "collecting_sample.walk_in_test.appointment_pending"
	OrderStatusCollectingSampleWalkInTestAppointmentScheduled OrderStatus = "collecting_sample.walk_in_test.appointment_scheduled"
	OrderStatusCollectingSampleWalkInTestAppointmentCancelled OrderStatus = "collecting_sample.walk_in_test.appointment_cancelled"
	OrderStatusCollectingSampleWalkInTestRedrawAvailable      OrderStatus = "collecting_sample.walk_in_test.redraw_available"
	OrderStatusSampleWithLabWalkInTestPartialResults          OrderStatus = "sample_with_lab.walk_in_test.partial_results"
	OrderStatusCompletedWalkInTestCompleted                   OrderStatus = "completed.walk_in_test.completed"
	OrderStatusCompletedWalkInTestCorrected                   OrderStatus = "completed.walk_in_test.corrected"
	OrderStatusFailedWalkInTestSampleError                    OrderStatus = "failed.walk_in_test.sample_error"
	OrderStatusCancelledWalkInTestCancelled                   OrderStatus = "cancelled.walk_in_test.cancelled"
)

// Statuses of an at-home phlebotomy.
const (
	OrderStatusReceivedAtHomePhlebotomyOrdered                      OrderStatus = "received.at_home_phlebotomy.ordered"
	OrderStatusReceivedAtHomePhlebotomyRequisitionCreated           OrderStatus = "received.at_home_phlebotomy.requisition_created"
	OrderStatusReceivedAtHomePhlebotomyRequisitionBypassed          OrderStatus = "received.at_home_phlebotomy.requisition_bypassed"
	OrderStatusCollectingSampleAtHomePhlebotomyAppointmentPending   OrderStatus = "collecting_sample.at_home_phlebotomy.appointment_pending"
	OrderStatusCollectingSampleAtHomePhlebotomyAppointmentScheduled OrderStatus = "collecting_sample.at_home_phlebotomy.appointment_scheduled"
	OrderStatusCollectingSampleAtHomePhlebotomyDrawCompleted        OrderStatus = "collecting_sample.at_home_phlebotomy.draw_completed"
	OrderStatusCollectingSampleAtHomePhlebotomyAppointmentCancelled OrderStatus = "collecting_sample.at_home_phlebotomy.appointment_cancelled"
	OrderStatusSampleWithLabAtHomePhlebotomyPartialResults          OrderStatus = "sample_with_lab.at_home_phlebotomy.partial_results"
	OrderStatusCompletedAtHomePhlebotomyCompleted                   OrderStatus = "completed.at_home_phlebotomy.completed"
	OrderStatusCompletedAtHomePhlebotomyCorrected                   OrderStatus = "completed.at_home_phlebotomy.corrected"
	OrderStatusFailedAtHomePhlebotomySampleError                    OrderStatus = "failed.at_home_phlebotomy.sample_error"
	OrderStatusCancelledAtHomePhlebotomyCancelled                   OrderStatus = "cancelled.at_home_phlebotomy.cancelled"
)

// Statuses of a testkit.
const (
	OrderStatusReceivedTestkitOrdered              OrderStatus = "received.testkit.ordered"
	OrderStatusReceivedTestkitAwaitingRegistration OrderStatus = "received.testkit.awaiting_registration"
	OrderStatusReceivedTestkitRequisitionCreated   OrderStatus = "received.testkit.requisition_created"
	OrderStatusReceivedTestkitRequisitionBypassed  OrderStatus = "received.testkit.requisition_bypassed"
	// The value "received.testkit.testkit_registered" occurs too.
	OrderStatusReceivedTestkitRegistered                       OrderStatus = "received.testkit.registered"
	OrderStatusCollectingSampleTestkitTransitCustomer          OrderStatus = "collecting_sample.testkit.transit_customer"
	OrderStatusCollectingSampleTestkitOutForDelivery           OrderStatus = "collecting_sample.testkit.out_for_delivery"
	OrderStatusCollectingSampleTestkitWithCustomer             OrderStatus = "collecting_sample.testkit.with_customer"
	OrderStatusCollectingSampleTestkitTransitLab               OrderStatus = "collecting_sample.testkit.transit_lab"
	OrderStatusCollectingSampleTestkitProblemInTransitCustomer OrderStatus = "collecting_sample.testkit.problem_in_transit_customer"
	OrderStatusCollectingSampleTestkitProblemInTransitLab      OrderStatus = "collecting_sample.testkit.problem_in_transit_lab"
	OrderStatusSampleWithLabTestkitDeliveredToLab              OrderStatus = "sample_with_lab.testkit.delivered_to_lab"
	OrderStatusSampleWithLabTestkitLabProcessingBlocked        OrderStatus = "sample_with_lab.testkit.lab_processing_blocked"
	OrderStatusCompletedTestkitCompleted                       OrderStatus = "completed.testkit.completed"
	OrderStatusCompletedTestkitCorrected                       OrderStatus = "completed.testkit.corrected"
	OrderStatusFailedTestkitFailureToDeliverToCustomer         OrderStatus = "failed.testkit.failure_to_deliver_to_customer"
	OrderStatusFailedTestkitFailureToDeliverToLab              OrderStatus = "failed.testkit.failure_to_deliver_to_lab"
	OrderStatusFailedTestkitSampleError                        OrderStatus = "failed.testkit.sample_error"
	OrderStatusFailedTestkitLost                               OrderStatus = "failed.testkit.lost"
	OrderStatusCancelledTestkitCancelled                       OrderStatus = "cancelled.testkit.cancelled"
	OrderStatusCancelledTestkitDoNotProcess                    OrderStatus = "cancelled.testkit.do_not_process"
)

// Statuses of an on-site collection.
const (
	OrderStatusReceivedOnSiteCollectionOrdered             OrderStatus = "received.on_site_collection.ordered"
	OrderStatusReceivedOnSiteCollectionRequisitionCreated  OrderStatus = "received.on_site_collection.requisition_created"
	OrderStatusReceivedOnSiteCollectionRequisitionBypassed OrderStatus = "received.on_site_collection.requisition_bypassed"
	// The value "collecting_sample.on_site_collection.draw_completed" occurs too.
	OrderStatusSampleWithLabOnSiteCollectionDrawCompleted  OrderStatus = "sample_with_lab.on_site_collection.draw_completed"
	OrderStatusSampleWithLabOnSiteCollectionPartialResults OrderStatus = "sample_with_lab.on_site_collection.partial_results"
	OrderStatusCompletedOnSiteCollectionCompleted          OrderStatus = "completed.on_site_collection.completed"
	OrderStatusCompletedOnSiteCollectionCorrected          OrderStatus = "completed.on_site_collection.corrected"
	OrderStatusFailedOnSiteCollectionSampleError           OrderStatus = "failed.on_site_collection.sample_error"
	OrderStatusCancelledOnSiteCollectionCancelled          OrderStatus = "cancelled.on_site_collection.cancelled"
)

// TopLevel returns the part of the status before the first dot. It is empty if the status has fewer
// than three parts, because a single word could be any of them.
func (s OrderStatus) TopLevel() OrderTopLevelStatus {
	top, _, _ := s.parts()
	return OrderTopLevelStatus(top)
}

// Method returns the part of the status between the first two dots. It is empty if the status has
// fewer than three parts.
func (s OrderStatus) Method() LabTestCollectionMethod {
	_, method, _ := s.parts()
	return LabTestCollectionMethod(method)
}

// LowLevel returns the part of the status after the second dot, including any further dots. It is
// empty if the status has fewer than three parts.
func (s OrderStatus) LowLevel() OrderLowLevelStatus {
	_, _, low := s.parts()
	return OrderLowLevelStatus(low)
}

// Modifiable reports whether an order with this status can be updated (PATCH /v3/order/{order_id}):
// its low-level status is ordered or awaiting_registration. An order that was created without
// activate_by cannot be rescheduled in any status: see [Order.Reschedulable].
func (s OrderStatus) Modifiable() bool {
	switch s.LowLevel() {
	case LowLevelOrdered, LowLevelAwaitingRegistration:
		return true
	}
	return false
}

func (s OrderStatus) parts() (top, method, low string) {
	top, rest, _ := strings.Cut(string(s), ".")
	method, low, ok := strings.Cut(rest, ".")
	if !ok {
		return "", "", ""
	}
	return top, method, low
}

// AoEQuestionType is the kind of answer that an [AoEQuestion] requires. A choice or multi_choice
// question is answered with the code of an [AoEAnswerOption], a text question with free text, and a
// numeric question with the number as a string.
//
// Values other than the constants occur, such as "multiple_choice". Source: public API reference
// only.
type AoEQuestionType string

// Values of [AoEQuestionType].
const (
	AoEQuestionTypeChoice      AoEQuestionType = "choice"
	AoEQuestionTypeText        AoEQuestionType = "text"
	AoEQuestionTypeNumeric     AoEQuestionType = "numeric"
	AoEQuestionTypeMultiChoice AoEQuestionType = "multi_choice"
)

// ConsentType identifies what the patient agreed to. See [Consent].
//
// Values other than the constants occur. Source: public API reference only.
type ConsentType string

// Values of [ConsentType].
const (
	ConsentTermsOfUse                ConsentType = "terms-of-use"
	ConsentTelehealthInformedConsent ConsentType = "telehealth-informed-consent"
	ConsentMobileTermsAndConditions  ConsentType = "mobile-terms-and-conditions"
	ConsentNoticeOfPrivacyPractices  ConsentType = "notice-of-privacy-practices"
	ConsentPrivacyPolicy             ConsentType = "privacy-policy"
	ConsentHIPAAAuthorization        ConsentType = "hipaa-authorization"
)
