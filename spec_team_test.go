package labhealth

import (
	"maps"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The resources of the team API that the interface specification names without fields, in the form
// of spec_test.go. Rows are from the public API reference unless they are marked.
const teamSpecification = `
# CreateOrderBody: request
user_id                   | uuid                         | yes |
patient_details           | PatientDetailsWithValidation | yes |
patient_address           | PatientAddressWithValidation | yes |
order_set                 | OrderSetRequest?             | no  | from the document
lab_test_id               | uuid?                        | no  | deprecated, from the document
collection_method         | LabTestCollectionMethod?     | no  | zero is absent
physician                 | PhysicianCreateRequest?      | no  |
priority                  | boolean                      | no  | default false, zero is absent
billing_type              | Billing                      | no  | default client_bill, zero is absent
icd_codes                 | array of string?             | no  |
consents                  | array of Consent?            | no  |
health_insurance          | HealthInsuranceCreateRequest? | no | deprecated
activate_by               | date?                        | no  |
aoe_answers               | array of AoEAnswer?          | no  |
passthrough               | string?                      | no  |
clinical_notes            | string?                      | no  |
lab_account_id            | uuid?                        | no  |
creator_member_id         | uuid?                        | no  |

# Consent: request
consentType               | ConsentType                  | yes |
version                   | string                       | no  | default 1.0, zero is absent
timeOfConsent             | date-time?                   | no  |

# AoEAnswer: request
marker_id                 | integer                      | yes |
question_id               | integer                      | yes |
answer                    | string                       | yes |

# CreateUserBody: request
client_user_id            | string                       | yes | from the document
fallback_time_zone        | string?                      | no  |
fallback_birth_date       | date?                        | no  |
ingestion_start           | date?                        | no  |
ingestion_end             | date?                        | no  |

# OrderPage: response
orders                    | array of Order               | yes |
total                     | integer?                     | no  |
page                      | integer?                     | no  |
size                      | integer?                     | no  |

# LabTestPage: response
data                      | array of LabTest             | yes |
next_cursor               | string?                      | yes | from the document
pricing                   | any?                         | no  |

# OrderResults: response
metadata                  | ResultsMetadata              | yes |
results                   | array of Result or object    | yes |
missing_results           | array of MissingResult?      | no  |
sample_information        | map of SampleData?           | no  |
order_transaction         | OrderTransaction?            | no  |

# ResultsMetadata: response
age                       | string                       | yes |
dob                       | string                       | yes |
patient                   | string                       | yes |
date_reported             | string                       | yes | deprecated
specimen_number           | string                       | yes |
clia_#                    | string?                      | no  |
provider                  | string?                      | no  |
laboratory                | string?                      | no  |
date_collected            | string?                      | no  | deprecated
date_received             | string?                      | no  | deprecated
status                    | ResultsStatus                | no  | default final
interpretation            | Interpretation?              | no  |
patient_id                | string?                      | no  |
account_id                | string?                      | no  |

# Result: response
name                      | string                       | yes |
slug                      | string                       | no  | default ""
result                    | string                       | yes | from the document
result_type               | ResultType?                  | no  | from the document
type                      | ResultType?                  | no  |
value                     | number?                      | no  | deprecated, money, from the document
unit                      | string?                      | no  |
timestamp                 | date-time?                   | no  |
notes                     | string?                      | no  |
reference_range           | string?                      | no  |
min_range_value           | number?                      | no  |
max_range_value           | number?                      | no  |
is_above_max_range        | boolean?                     | no  |
is_below_min_range        | boolean?                     | no  |
interpretation            | Interpretation               | no  | default normal
source_interpretation     | string                       | no  | default ""
loinc                     | string?                      | no  |
loinc_slug                | string?                      | no  |
provider_id               | string?                      | no  |
source_markers            | array of SourceMarker?       | no  |
performing_laboratory     | string?                      | no  |
source_sample_id          | string?                      | no  |

# MissingResult: response
name                      | string                       | yes |
slug                      | string                       | yes |
inferred_failure_type     | FailureType                  | yes |
note                      | string?                      | no  |
loinc                     | string?                      | no  |
loinc_slug                | string?                      | no  |
provider_id               | string?                      | no  |
source_markers            | array of SourceMarker?       | no  |

# SourceMarker: response
marker_id                 | integer                      | yes |
name                      | string                       | yes |
slug                      | string                       | yes |
provider_id               | string?                      | no  |

# CreateTestkitBody: request
user_id                   | uuid                         | yes |
lab_test_id               | uuid                         | yes |
shipping_details          | ShippingAddress              | yes |
passthrough               | string?                      | no  |
lab_account_id            | uuid?                        | no  |

# RegisterTestkitBody: request
user_id                   | uuid?                        | no  |
sample_id                 | string                       | yes |
patient_details           | PatientDetailsWithValidation | yes |
patient_address           | PatientAddressWithValidation | yes |
physician                 | PhysicianCreateRequestBase?  | no  |
health_insurance          | HealthInsuranceCreateRequest? | no |
consents                  | array of Consent             | no  |

# PhysicianCreateRequestBase: request
first_name                | string                       | yes |
last_name                 | string                       | yes |
npi                       | string                       | yes |
email                     | string?                      | no  |
licensed_states           | array of string              | no  |

# HealthInsuranceCreateRequest: request
front_image               | SignatureImage?              | no  |
back_image                | SignatureImage?              | no  |
patient_signature_image   | SignatureImage?              | no  |
subjective                | string?                      | no  |
assessment_plan           | string?                      | no  |
payor_code                | string?                      | no  |
insurance_id              | string?                      | no  |
responsible_relationship  | ResponsibleRelationship?     | no  |
responsible_details       | PersonDetails?               | no  |
diagnosis_codes           | array of string?             | no  |

# PersonDetails: request
first_name                | string                       | yes |
last_name                 | string                       | yes |
address                   | Address                      | yes |
phone_number              | string                       | yes |
phone_type                | string                       | no  | default Mobile, zero is absent

# ResendEventsBody: request
order_ids                 | array of uuid?               | no  |
start_at                  | date-time?                   | no  |
end_at                    | date-time?                   | no  |

# UpdateCommunicationSettingsBody: request
sms_enabled               | boolean                      | yes |

# SimulationFlags: request
interpretation            | Interpretation               | no  | default normal, zero is absent
result_types              | array of ResultType?         | no  |
has_missing_results       | boolean?                     | no  |

# ResendEventsResponse: response
order_ids                 | array of uuid                | yes |

# CommunicationSettings: response
order_id                  | uuid                         | yes |
sms_enabled               | boolean                      | yes |

# OrderTransactionDetails: response
id                        | uuid                         | yes |
team_id                   | uuid                         | yes |
status                    | OrderTransactionStatus       | yes |
orders                    | array of OrderSummary        | no  |

# OrderSummary: response
id                        | uuid                         | yes |
origin                    | OrderOrigin?                 | no  |
parent_id                 | uuid?                        | no  |
last_status               | OrderLowLevelStatus          | yes |
last_status_created_at    | date-time                    | yes |
updated_at                | date-time                    | yes |
created_at                | date-time                    | yes |

# SampleData: response
sample_id                 | string?                      | no  |
control_number            | string?                      | no  |
date_collected            | SampleTime?                  | no  |
date_received             | SampleTime?                  | no  |
date_reported             | SampleTime?                  | no  |
performing_laboratories   | map of PerformingLaboratory? | no  |
clinical_information      | ClinicalInformation?         | no  |

# PerformingLaboratory: response
name                      | string                       | yes |
phone_number              | string?                      | no  |
medical_director          | string?                      | no  |
address                   | Address?                     | no  |

# ClinicalInformation: response
fasting                   | boolean                      | no  | default false
notes                     | string?                      | no  |
information               | string?                      | no  |
total_volume              | string?                      | no  |

# WorkoutStream: response
time                      | array of integer?            | no  |
heartrate                 | array of maybe integer?      | no  |
cadence                   | array of maybe number?       | no  |
altitude                  | array of maybe number?       | no  |
velocity_smooth           | array of maybe number?       | no  |
lat                       | array of maybe number?       | no  |
lng                       | array of maybe number?       | no  |
distance                  | array of maybe number?       | no  |
power                     | array of maybe number?       | no  |
resistance                | array of maybe number?       | no  |
temperature               | array of maybe number?       | no  |

# UserDeletion: response
success                   | boolean                      | yes |

# HistoricalPullPage: response
data                      | array of UserHistoricalPulls | yes |
next_cursor               | string?                      | no  |

# UserHistoricalPulls: response
user_id                   | uuid                         | yes |
provider                  | map of ProviderHistoricalPulls | yes |

# ProviderHistoricalPulls: response
pulled                    | map of HistoricalPull        | yes |
not_pulled                | array of string              | yes |

# HistoricalPull: response
status                    | HistoricalPullStatus         | yes |
timeline                  | HistoricalPullTimeline       | yes |
release                   | string                       | yes |
range_start               | date-time?                   | no  |
range_end                 | date-time?                   | no  |
days_with_data            | integer                      | no  | default 0
trace_id                  | string?                      | no  |
error_details             | any?                         | no  | from the document

# HistoricalPullTimeline: response
scheduled_at              | date-time                    | yes |
started_at                | date-time?                   | no  |
ended_at                  | date-time?                   | no  |
`

func init() {
	maps.Copy(resourceTypes, map[string]reflect.Type{
		"CreateOrderBody":                 reflect.TypeFor[CreateOrderBody](),
		"Consent":                         reflect.TypeFor[Consent](),
		"AoEAnswer":                       reflect.TypeFor[AoEAnswer](),
		"CreateUserBody":                  reflect.TypeFor[CreateUserBody](),
		"OrderPage":                       reflect.TypeFor[OrderPage](),
		"LabTestPage":                     reflect.TypeFor[LabTestPage](),
		"OrderResults":                    reflect.TypeFor[OrderResults](),
		"ResultsMetadata":                 reflect.TypeFor[ResultsMetadata](),
		"Result":                          reflect.TypeFor[Result](),
		"MissingResult":                   reflect.TypeFor[MissingResult](),
		"SourceMarker":                    reflect.TypeFor[SourceMarker](),
		"CreateTestkitBody":               reflect.TypeFor[CreateTestkitBody](),
		"RegisterTestkitBody":             reflect.TypeFor[RegisterTestkitBody](),
		"PhysicianCreateRequestBase":      reflect.TypeFor[PhysicianCreateRequestBase](),
		"HealthInsuranceCreateRequest":    reflect.TypeFor[HealthInsuranceCreateRequest](),
		"PersonDetails":                   reflect.TypeFor[PersonDetails](),
		"ResendEventsBody":                reflect.TypeFor[ResendEventsBody](),
		"UpdateCommunicationSettingsBody": reflect.TypeFor[UpdateCommunicationSettingsBody](),
		"SimulationFlags":                 reflect.TypeFor[SimulationFlags](),
		"ResendEventsResponse":            reflect.TypeFor[ResendEventsResponse](),
		"CommunicationSettings":           reflect.TypeFor[CommunicationSettings](),
		"OrderTransactionDetails":         reflect.TypeFor[OrderTransactionDetails](),
		"OrderSummary":                    reflect.TypeFor[OrderSummary](),
		"SampleData":                      reflect.TypeFor[SampleData](),
		"PerformingLaboratory":            reflect.TypeFor[PerformingLaboratory](),
		"ClinicalInformation":             reflect.TypeFor[ClinicalInformation](),
		"WorkoutStream":                   reflect.TypeFor[WorkoutStream](),
		"UserDeletion":                    reflect.TypeFor[UserDeletion](),
		"HistoricalPullPage":              reflect.TypeFor[HistoricalPullPage](),
		"UserHistoricalPulls":             reflect.TypeFor[UserHistoricalPulls](),
		"ProviderHistoricalPulls":         reflect.TypeFor[ProviderHistoricalPulls](),
		"HistoricalPull":                  reflect.TypeFor[HistoricalPull](),
		"HistoricalPullTimeline":          reflect.TypeFor[HistoricalPullTimeline](),
	})
	maps.Copy(zeroRequests, map[string]string{
		"CreateOrderBody":                 "user_id patient_details patient_address",
		"Consent":                         "consentType",
		"AoEAnswer":                       "marker_id question_id answer",
		"CreateUserBody":                  "client_user_id",
		"CreateTestkitBody":               "user_id lab_test_id shipping_details",
		"RegisterTestkitBody":             "sample_id patient_details patient_address",
		"PhysicianCreateRequestBase":      "first_name last_name npi",
		"HealthInsuranceCreateRequest":    "",
		"PersonDetails":                   "first_name last_name address phone_number",
		"ResendEventsBody":                "",
		"UpdateCommunicationSettingsBody": "sms_enabled",
		"SimulationFlags":                 "",
	})
}

// The enumerations of these resources, by the names of their constants. The interface specification
// has only the state retrying.
func TestSpecTeamEnumerations(t *testing.T) {
	want := map[string]map[string]string{
		"ResultType": {
			"ResultTypeNumeric":    "numeric",
			"ResultTypeRange":      "range",
			"ResultTypeComment":    "comment",
			"ResultTypeCodedValue": "coded_value",
		},
		"ResultsStatus": {
			"ResultsStatusFinal":   "final",
			"ResultsStatusPartial": "partial",
		},
		"FailureType": {
			"FailureTypeQuantityNotSufficient": "quantity_not_sufficient_failure",
			"FailureTypeCollectionProcess":     "collection_process_failure",
			"FailureTypeDropOff":               "drop_off_failure",
			"FailureTypeInternalLab":           "internal_lab_failure",
			"FailureTypeOrderEntry":            "order_entry_failure",
			"FailureTypeNone":                  "non_failure",
			"FailureTypeUnknown":               "unknown_failure",
			"FailureTypePatientCondition":      "patient_condition_failure",
			"FailureTypeMissingResultCalc":     "missing_result_calc_failure",
			"FailureTypeMissingDemoAoECalc":    "missing_demo_aoe_calc_failure",
			"FailureTypeInsufficientVolume":    "insufficient_volume",
		},
		"HistoricalPullStatus": {
			"HistoricalPullSuccess":    "success",
			"HistoricalPullFailure":    "failure",
			"HistoricalPullInProgress": "in_progress",
			"HistoricalPullScheduled":  "scheduled",
			"HistoricalPullRetrying":   "retrying",
		},
	}
	if diff := cmp.Diff(want, readConstants(t, "results.go", "historical.go", "lab_tests.go", "users.go", "workouts.go")); diff != "" {
		t.Errorf("constants (-reference +Go):\n%s", diff)
	}
}
