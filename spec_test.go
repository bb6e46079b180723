package labhealth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// The text below is the interface specification, typed by hand and never from the
// Go code: the tests of this file hold one against the other, both ways.
//
// A heading gives a resource and whether it is sent, received, or both. A row
// gives a field as the specification does:
//
//	name | type | required | rules
//
// Types: uuid, string, integer, number, boolean, date, date-time, the name of
// a resource or of an enumeration, any (no fixed shape), "array of", "map of" or
// "one of" such a name, "array of maybe" where elements may be null, and a
// question mark after it where null may come; "or object" where an object may
// replace the array. Required is yes, no, or a dash where the specification
// marks nothing, which is treated as required. Rules, separated by commas:
//
//	default X       what an absent field means
//	service default X  the same, but not filled in: what was received is sent back as it was
//	length N to M   in characters
//	max length N    in characters
//	deprecated
//	money           a number whose digits are kept
//	null clears     null and absent differ
//	zero is absent  of a request: the zero value is left out
const specification = `
# ImportOrderBody: request
user_id                   | uuid                         | yes |
billing_type              | Billing                      | yes |
order_set                 | OrderSetRequest              | yes |
collection_method         | LabTestCollectionMethod      | yes |
physician                 | PhysicianCreateRequest?      | no  |
patient_details           | PatientDetailsWithValidation | yes |
patient_address           | PatientAddress               | yes |
sample_id                 | string                       | yes |
lab_account_id            | uuid?                        | no  |

# OrderSetRequest: request
lab_test_ids              | array of uuid?               | no  |
add_on                    | AddOnOrder?                  | no  |
lab_account_id            | uuid?                        | no  |

# AddOnOrder: request
marker_ids                | array of integer?            | no  |
provider_ids              | array of string?             | no  |

# PhysicianCreateRequest: request
first_name                | string                       | yes |
last_name                 | string                       | yes |
npi                       | string                       | yes |
email                     | string?                      | no  |
licensed_states           | array of string              | no  |
signature_image           | SignatureImage?              | no  |

# SignatureImage: request
content                   | string                       | yes |
content_type              | string                       | yes |

# PatientDetailsWithValidation: request
first_name                | string                       | yes | length 1 to 50
last_name                 | string                       | yes | length 1 to 50
dob                       | date                         | yes |
gender                    | Gender                       | yes |
phone_number              | string                       | yes |
email                     | string                       | yes |
medical_proxy             | GuarantorDetails?            | no  |
race                      | Race?                        | no  |
ethnicity                 | Ethnicity?                   | no  |
sexual_orientation        | SexualOrientation?           | no  |
gender_identity           | GenderIdentity?              | no  |
household_income          | integer?                     | no  |
household_size            | integer?                     | no  |

# GuarantorDetails: request, response
first_name                | string                       | yes |
last_name                 | string                       | yes |
address                   | Address                      | yes |
phone_number              | string                       | yes |
household_income          | integer?                     | no  |
household_size            | integer?                     | no  |
email                     | string?                      | no  |

# Address: request, response
first_line                | string                       | yes |
country                   | string                       | yes |
zip                       | string                       | yes |
city                      | string                       | yes |
state                     | string                       | yes |
second_line               | string?                      | no  | default ""
access_notes              | string?                      | no  | max length 1000

# PatientAddress: request
receiver_name             | string                       | yes |
first_line                | string                       | yes |
city                      | string                       | yes |
state                     | string                       | yes |
zip                       | string                       | yes |
country                   | string                       | yes |
second_line               | string?                      | no  |
access_notes              | string?                      | no  | max length 1000

# UpdateOrderBody: request
activate_by               | date?                        | no  | null clears

# PostOrderResponse: response
order                     | Order                        | yes |
status                    | string                       | yes |
message                   | string                       | yes |

# Order: response
id                        | uuid                         | yes |
user_id                   | uuid                         | yes |
team_id                   | uuid                         | yes |
patient_details           | OrderPatientDetails?         | yes |
patient_address           | OrderPatientAddress?         | yes |
lab_test                  | LabTest                      | yes |
details                   | OrderDetails                 | yes |
sample_id                 | string?                      | yes |
notes                     | string?                      | yes |
clinical_notes            | string?                      | no  |
created_at                | date-time                    | yes |
updated_at                | date-time                    | yes |
events                    | array of OrderEvent          | yes |
status                    | OrderTopLevelStatus?         | no  | deprecated
last_event                | OrderEvent                   | yes |
physician                 | OrderPhysician?              | no  |
health_insurance_id       | uuid?                        | yes |
requisition_form_url      | string?                      | yes | deprecated
priority                  | boolean                      | no  | default false
shipping_details          | ShippingAddress?             | yes |
activate_by               | date?                        | no  |
passthrough               | string?                      | no  |
billing_type              | Billing                      | no  | default client_bill
icd_codes                 | array of string?             | no  |
has_abn                   | boolean                      | yes |
interpretation            | Interpretation?              | no  |
has_missing_results       | boolean?                     | no  |
expected_result_by_date   | date?                        | no  |
worst_case_result_by_date | date?                        | no  |
origin                    | OrderOrigin?                 | no  |
order_transaction         | OrderTransaction?            | no  |

# OrderPhysician: response
first_name                | string                       | yes |
last_name                 | string                       | yes |
npi                       | string                       | yes |

# OrderPatientDetails: response
dob                       | date-time                    | yes |
gender                    | string                       | yes |
first_name                | string?                      | no  |
last_name                 | string?                      | no  |
phone_number              | string?                      | no  |
email                     | string?                      | no  |
medical_proxy             | GuarantorDetails?            | no  |
race                      | Race?                        | no  |
ethnicity                 | Ethnicity?                   | no  |
sexual_orientation        | SexualOrientation?           | no  |
gender_identity           | GenderIdentity?              | no  |

# OrderPatientAddress: response
first_line                | string                       | yes |
city                      | string                       | yes |
state                     | string                       | yes |
zip                       | string                       | yes |
country                   | string                       | yes |
receiver_name             | string                       | no  | default ""
second_line               | string?                      | no  |
access_notes              | string?                      | no  | max length 1000
phone_number              | string?                      | no  |

# ShippingAddress: response
receiver_name             | string                       | yes |
first_line                | string                       | yes |
city                      | string                       | yes |
state                     | string                       | yes |
zip                       | string                       | yes |
country                   | string                       | yes |
phone_number              | string                       | yes |
second_line               | string?                      | no  |

# OrderEvent: response
id                        | integer                      | yes |
created_at                | date-time                    | yes |
status                    | OrderStatus                  | yes |
status_detail             | OrderStatusDetail?           | no  |

# OrderDetails: response
type                      | LabTestCollectionMethod      | yes |
data                      | one of OrderDetailsData?     | yes |

# WalkInTestOrder: response
id                        | uuid                         | -   |
created_at                | date-time                    | -   |
updated_at                | date-time                    | -   |
appointment_id            | uuid?                        | -   |

# TestkitOrder: response
id                        | uuid                         | -   |
shipment                  | Shipment?                    | -   |
created_at                | date-time                    | -   |
updated_at                | date-time                    | -   |

# AtHomePhlebotomyOrder: response
id                        | uuid                         | -   |
appointment_id            | uuid?                        | -   |
created_at                | date-time                    | -   |
updated_at                | date-time                    | -   |

# OnSiteCollectionOrder: response
id                        | uuid                         | -   |
created_at                | date-time                    | -   |
updated_at                | date-time                    | -   |

# Shipment: response
id                        | uuid                         | -   |
outbound_tracking_number  | string?                      | -   |
outbound_tracking_url     | string?                      | -   |
inbound_tracking_number   | string?                      | -   |
inbound_tracking_url      | string?                      | -   |
outbound_courier          | string?                      | -   |
inbound_courier           | string?                      | -   |
notes                     | string?                      | -   |

# OrderTransaction: response
id                        | uuid                         | -   |
status                    | OrderTransactionStatus       | -   |
orders                    | array of OrderInTransaction  | -   |

# OrderInTransaction: response
id                        | uuid                         | -   |
created_at                | date-time                    | -   |
updated_at                | date-time                    | -   |
low_level_status          | OrderLowLevelStatus?         | -   |
low_level_status_created_at | date-time?                 | -   |
origin                    | OrderOrigin?                 | -   |
parent_id                 | uuid?                        | -   |

# LabTest: response
id                        | uuid                         | yes |
slug                      | string                       | yes |
name                      | string                       | yes |
sample_type               | LabTestSampleType            | yes |
method                    | LabTestCollectionMethod      | yes |
price                     | number                       | yes | money
is_active                 | boolean                      | yes | deprecated
status                    | LabTestStatus                | yes |
fasting                   | boolean                      | no  | default false
lab                       | Lab?                         | yes |
markers                   | array of Marker?             | yes |
is_delegated              | boolean                      | no  | deprecated, default false
auto_generated            | boolean                      | no  | default false
has_collection_instructions | boolean?                   | no  |
common_tat_days           | integer?                     | no  |
worst_case_tat_days       | integer?                     | no  |

# Lab: response
id                        | integer                      | yes |
slug                      | string                       | yes |
name                      | string                       | yes |
first_line_address        | string                       | yes |
city                      | string                       | yes |
zipcode                   | string                       | yes |
collection_methods        | array of LabTestCollectionMethod | yes |
sample_types              | array of LabTestSampleType   | yes |

# Marker: response
id                        | integer                      | yes |
name                      | string                       | yes |
slug                      | string                       | yes |
description               | string?                      | no  |
lab_id                    | integer?                     | no  |
provider_id               | string?                      | no  |
type                      | MarkerType?                  | no  |
unit                      | string?                      | no  |
price                     | string?                      | no  |
aoe                       | AoE?                         | no  |
a_la_carte_enabled        | boolean                      | no  | default false
common_tat_days           | integer?                     | no  |
worst_case_tat_days       | integer?                     | no  |
is_orderable              | boolean?                     | no  | default true

# AoE: response
questions                 | array of AoEQuestion         | yes |

# AoEQuestion: response
id                        | integer                      | -   |
code                      | string                       | -   |
value                     | string                       | -   |

# AoEAnswerOption: response
id                        | integer                      | -   |
code                      | string                       | -   |
value                     | string                       | -   |

# User: response
user_id                   | uuid                         | -   |
team_id                   | uuid                         | -   |
client_user_id            | string                       | -   |
created_on                | date-time                    | -   |
connected_sources         | array of ConnectedSource     | -   |
fallback_birth_date       | FallbackBirthDate            | -   |
fallback_time_zone        | FallbackTimeZone             | -   |

# ConnectedSource: response
created_on                | date-time                    | -   |
source                    | Source                       | -   |

# Source: response
name                      | string                       | -   |
slug                      | string                       | -   |
logo                      | string                       | -   |

# FallbackBirthDate: response
value                     | date                         | -   |
source_slug               | string                       | -   |
updated_at                | date-time                    | -   |

# FallbackTimeZone: response
id                        | string                       | -   |
source_slug               | string                       | -   |
updated_at                | date-time                    | -   |

# UserPage: response
users                     | array of User                | -   |
total                     | integer                      | -   |
offset                    | integer                      | -   |
limit                     | integer                      | -   |
`

// Rows that take the place of the specification's, in the same form, with the source as the last
// rule. Fields that only the public API reference has are not here: TestReferenceTypes compares
// them with its tables.
const amendments = `
# OrderPatientDetails: response
dob                       | date                         | yes | from answers that write a bare date

# AoEQuestion: response
required                  | boolean                      | no  | from reference
type                      | AoEQuestionType              | no  | from reference
sequence                  | integer                      | no  | from reference
answers                   | array of AoEAnswerOption     | no  | from reference

# User: response
fallback_birth_date       | FallbackBirthDate?           | no  | from reference
fallback_time_zone        | FallbackTimeZone?            | yes | from reference

# ConnectedSource: response
provider                  | Source                       | no  | from reference
`

// The enumerations of the specification: name: values.
const enumerations = `
Billing: client_bill, commercial_insurance, patient_bill_passthrough, patient_bill
LabTestCollectionMethod: testkit, walk_in_test, at_home_phlebotomy, on_site_collection
Gender: female, male, other, unknown
Race: african_american_or_black, asian, indigenous_native_american_alaska_native, other,
	pacific_islander_or_hawaiian, white_caucasian
Ethnicity: hispanic, non_hispanic, ashkenazi_jewish, other
SexualOrientation: lesbian_gay_or_homosexual, heterosexual_or_straight, bisexual, dont_know, other
GenderIdentity: male, female, female_to_male_ftm_transgender_male_trans_man,
	male_to_female_mtf_transgender_female_trans_woman, genderqueer, other
LabTestSampleType: dried_blood_spot, arm_collector, serum, saliva, urine, stool
LabTestStatus: active, pending_approval, inactive
MarkerType: biomarker, panel
Interpretation: normal, abnormal, critical, unknown
OrderOrigin: initial, redraw, recreation
OrderTransactionStatus: active, completed, cancelled
OrderTopLevelStatus: received, collecting_sample, sample_with_lab, completed, cancelled, failed
OrderStatusDetail: fulfillment_error, date_of_collection_unspecified, demographic_information_unspecified,
	demographic_information_mismatch, sample_quantity_not_sufficient, sample_contaminated,
	sample_stability_exceeded, sample_hemolyzed, sample_improper_collection
OrderStatus:
	received.walk_in_test.ordered,
	received.walk_in_test.requisition_created,
	received.walk_in_test.requisition_bypassed,
	collecting_sample.walk_in_test.appointment_pending,
	collecting_sample.walk_in_test.appointment_scheduled,
	collecting_sample.walk_in_test.appointment_cancelled,
	collecting_sample.walk_in_test.redraw_available,
	sample_with_lab.walk_in_test.partial_results,
	completed.walk_in_test.completed,
	completed.walk_in_test.corrected,
	failed.walk_in_test.sample_error,
	cancelled.walk_in_test.cancelled,
	received.at_home_phlebotomy.ordered,
	received.at_home_phlebotomy.requisition_created,
	received.at_home_phlebotomy.requisition_bypassed,
	collecting_sample.at_home_phlebotomy.appointment_pending,
	collecting_sample.at_home_phlebotomy.appointment_scheduled,
	collecting_sample.at_home_phlebotomy.draw_completed,
	collecting_sample.at_home_phlebotomy.appointment_cancelled,
	sample_with_lab.at_home_phlebotomy.partial_results,
	completed.at_home_phlebotomy.completed,
	completed.at_home_phlebotomy.corrected,
	failed.at_home_phlebotomy.sample_error,
	cancelled.at_home_phlebotomy.cancelled,
	received.testkit.ordered,
	received.testkit.awaiting_registration,
	received.testkit.requisition_created,
	received.testkit.requisition_bypassed,
	received.testkit.registered,
	collecting_sample.testkit.transit_customer,
	collecting_sample.testkit.out_for_delivery,
	collecting_sample.testkit.with_customer,
	collecting_sample.testkit.transit_lab,
	collecting_sample.testkit.problem_in_transit_customer,
	collecting_sample.testkit.problem_in_transit_lab,
	sample_with_lab.testkit.delivered_to_lab,
	sample_with_lab.testkit.lab_processing_blocked,
	completed.testkit.completed,
	completed.testkit.corrected,
	failed.testkit.failure_to_deliver_to_customer,
	failed.testkit.failure_to_deliver_to_lab,
	failed.testkit.sample_error,
	failed.testkit.lost,
	cancelled.testkit.cancelled,
	cancelled.testkit.do_not_process,
	received.on_site_collection.ordered,
	received.on_site_collection.requisition_created,
	received.on_site_collection.requisition_bypassed,
	sample_with_lab.on_site_collection.draw_completed,
	sample_with_lab.on_site_collection.partial_results,
	completed.on_site_collection.completed,
	completed.on_site_collection.corrected,
	failed.on_site_collection.sample_error,
	cancelled.on_site_collection.cancelled
OrderLowLevelStatus: ordered, requisition_created, requisition_bypassed, transit_customer, out_for_delivery,
	with_customer, transit_lab, delivered_to_lab, completed, failure_to_deliver_to_lab,
	failure_to_deliver_to_customer, problem_in_transit_lab, problem_in_transit_customer, sample_error,
	appointment_scheduled, appointment_cancelled, appointment_pending, draw_completed, cancelled, lost,
	do_not_process, partial_results, awaiting_registration, registered, redraw_available, corrected,
	lab_processing_blocked
`

// Constants start with the name of their type, except for these.
var constantPrefixes = map[string]string{
	"LabTestCollectionMethod": "CollectionMethod",
	"LabTestSampleType":       "SampleType",
	"OrderTopLevelStatus":     "TopLevel",
	"OrderLowLevelStatus":     "LowLevel",
	"OrderStatusDetail":       "StatusDetail",
}

// zeroRequests are the fields that the zero value of a request sends.
var zeroRequests = map[string]string{
	"ImportOrderBody":              "user_id billing_type order_set collection_method patient_details patient_address sample_id",
	"OrderSetRequest":              "",
	"AddOnOrder":                   "",
	"PhysicianCreateRequest":       "first_name last_name npi",
	"SignatureImage":               "content content_type",
	"PatientDetailsWithValidation": "first_name last_name dob gender phone_number email",
	"GuarantorDetails":             "first_name last_name address phone_number",
	"Address":                      "first_line country zip city state",
	"PatientAddress":               "receiver_name first_line city state zip country",
	"UpdateOrderBody":              "",
}

// resourceTypes are the Go types of the resources.
var resourceTypes = map[string]reflect.Type{
	"ImportOrderBody":              reflect.TypeFor[ImportOrderBody](),
	"OrderSetRequest":              reflect.TypeFor[OrderSetRequest](),
	"AddOnOrder":                   reflect.TypeFor[AddOnOrder](),
	"PhysicianCreateRequest":       reflect.TypeFor[PhysicianCreateRequest](),
	"SignatureImage":               reflect.TypeFor[SignatureImage](),
	"PatientDetailsWithValidation": reflect.TypeFor[PatientDetailsWithValidation](),
	"GuarantorDetails":             reflect.TypeFor[GuarantorDetails](),
	"Address":                      reflect.TypeFor[Address](),
	"PatientAddress":               reflect.TypeFor[PatientAddress](),
	"UpdateOrderBody":              reflect.TypeFor[UpdateOrderBody](),
	"PostOrderResponse":            reflect.TypeFor[PostOrderResponse](),
	"Order":                        reflect.TypeFor[Order](),
	"OrderPhysician":               reflect.TypeFor[OrderPhysician](),
	"OrderPatientDetails":          reflect.TypeFor[OrderPatientDetails](),
	"OrderPatientAddress":          reflect.TypeFor[OrderPatientAddress](),
	"ShippingAddress":              reflect.TypeFor[ShippingAddress](),
	"OrderEvent":                   reflect.TypeFor[OrderEvent](),
	"OrderDetails":                 reflect.TypeFor[OrderDetails](),
	"WalkInTestOrder":              reflect.TypeFor[WalkInTestOrder](),
	"TestkitOrder":                 reflect.TypeFor[TestkitOrder](),
	"AtHomePhlebotomyOrder":        reflect.TypeFor[AtHomePhlebotomyOrder](),
	"OnSiteCollectionOrder":        reflect.TypeFor[OnSiteCollectionOrder](),
	"Shipment":                     reflect.TypeFor[Shipment](),
	"OrderTransaction":             reflect.TypeFor[OrderTransaction](),
	"OrderInTransaction":           reflect.TypeFor[OrderInTransaction](),
	"LabTest":                      reflect.TypeFor[LabTest](),
	"Lab":                          reflect.TypeFor[Lab](),
	"Marker":                       reflect.TypeFor[Marker](),
	"AoE":                          reflect.TypeFor[AoE](),
	"AoEQuestion":                  reflect.TypeFor[AoEQuestion](),
	"AoEAnswerOption":              reflect.TypeFor[AoEAnswerOption](),
	"User":                         reflect.TypeFor[User](),
	"ConnectedSource":              reflect.TypeFor[ConnectedSource](),
	"Source":                       reflect.TypeFor[Source](),
	"FallbackBirthDate":            reflect.TypeFor[FallbackBirthDate](),
	"FallbackTimeZone":             reflect.TypeFor[FallbackTimeZone](),
	"UserPage":                     reflect.TypeFor[UserPage](),
}

type specResource struct {
	name              string
	request, response bool
	fields            []specField
}

type specField struct {
	name       string
	typ        string // without "array of", "one of" and the question mark
	array      bool
	maybe      bool // elements may be null
	object     bool // "map of"
	union      bool // "one of"
	nullable   bool
	required   bool
	value      string // the default, as it stands in the rules
	hasDefault bool
	min, max   int
	deprecated bool
	money      bool
	nullClears bool
	zeroAbsent bool
	orObject   bool   // an object may stand in for the array
	source     string // of an addition
}

// readSpecification parses the specification and the amendments.
func readSpecification(t *testing.T) []specResource {
	t.Helper()
	resources := readResources(t, specification)
	for _, extra := range readResources(t, amendments) {
		i := slices.IndexFunc(resources, func(r specResource) bool { return r.name == extra.name })
		if i < 0 {
			t.Fatalf("amendments to %s, which the specification does not have", extra.name)
		}
		for _, f := range extra.fields {
			if f.source == "" {
				t.Fatalf("%s.%s: an amendment without a source", extra.name, f.name)
			}
			j := slices.IndexFunc(resources[i].fields, func(g specField) bool { return g.name == f.name })
			if j < 0 {
				resources[i].fields = append(resources[i].fields, f)
			} else {
				resources[i].fields[j] = f
			}
		}
	}
	return resources
}

// referenceFields returns the JSON names of the fields of a type that the tables of the public API
// reference have.
func referenceFields(typ reflect.Type) map[string]bool {
	names := map[string]bool{}
	for _, area := range referenceAreas {
		for component, value := range area.components {
			if reflect.TypeOf(value) == typ {
				for _, f := range reference.Components()[component] {
					names[f.Name] = true
				}
			}
		}
	}
	return names
}

func readResources(t *testing.T, text string) []specResource {
	t.Helper()
	var resources []specResource
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			name, direction, _ := strings.Cut(heading, ": ")
			r := specResource{
				name:     name,
				request:  strings.Contains(direction, "request"),
				response: strings.Contains(direction, "response"),
			}
			if !r.request && !r.response {
				t.Fatalf("heading %q: neither request nor response", line)
			}
			resources = append(resources, r)
			continue
		}
		r := &resources[len(resources)-1]
		f := readField(t, line)
		if slices.ContainsFunc(r.fields, func(g specField) bool { return g.name == f.name }) {
			t.Fatalf("%s.%s is there twice", r.name, f.name)
		}
		r.fields = append(r.fields, f)
	}
	return resources
}

func readField(t *testing.T, row string) specField {
	t.Helper()
	columns := strings.Split(row, "|")
	if len(columns) != 4 {
		t.Fatalf("row %q: %d columns", row, len(columns))
	}
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	f := specField{name: columns[0], typ: columns[1]}
	f.typ, f.orObject = strings.CutSuffix(f.typ, " or object")
	f.typ, f.nullable = strings.CutSuffix(f.typ, "?")
	f.typ, f.array = strings.CutPrefix(f.typ, "array of ")
	f.typ, f.maybe = strings.CutPrefix(f.typ, "maybe ")
	f.typ, f.object = strings.CutPrefix(f.typ, "map of ")
	f.typ, f.union = strings.CutPrefix(f.typ, "one of ")
	switch columns[2] {
	case "yes", "-":
		f.required = true
	case "no":
	default:
		t.Fatalf("row %q: required is %q", row, columns[2])
	}
	for rule := range strings.SplitSeq(columns[3], ", ") {
		switch {
		case rule == "", strings.HasPrefix(rule, "service default "):
		case rule == "deprecated":
			f.deprecated = true
		case rule == "money":
			f.money = true
		case rule == "null clears":
			f.nullClears = true
		case rule == "zero is absent":
			f.zeroAbsent = true
		case strings.HasPrefix(rule, "from "):
			f.source = rule
		case strings.HasPrefix(rule, "default "):
			f.value, f.hasDefault = strings.TrimPrefix(rule, "default "), true
			if f.value == `""` {
				f.value = ""
			}
		default:
			if _, err := fmt.Sscanf(rule, "length %d to %d", &f.min, &f.max); err == nil {
				continue
			}
			if _, err := fmt.Sscanf(rule, "max length %d", &f.max); err != nil {
				t.Fatalf("row %q: unknown rule %q", row, rule)
			}
		}
	}
	return f
}

// goField returns the type and the tag of a field in Go.
func (f specField) goField(r specResource) (typ, tag string) {
	basic := map[string]string{
		"uuid":      "uuid.UUID",
		"string":    "string",
		"integer":   "int64",
		"number":    "float64",
		"boolean":   "bool",
		"date":      "labhealth.Date",
		"date-time": "time.Time",
		"any":       "json.RawMessage",
	}
	typ, ok := basic[f.typ]
	if !ok {
		typ = "labhealth." + f.typ
	}
	if f.money {
		typ = "json.Number"
	}
	// A request omits fields with a default, and so does a resource that is both sent and received.
	// A received one has the default.
	filled := f.hasDefault && !r.request
	switch {
	case f.nullClears:
		typ = "labhealth.Nullable[github.com/labhealth/labhealth-go." + strings.TrimPrefix(typ, "labhealth.") + "]"
	case f.maybe:
		typ = "[]*" + typ
	case f.array:
		typ = "[]" + typ
	case f.object:
		typ = "map[string]" + typ
	case f.typ == "any", f.zeroAbsent:
		// Nil, or the zero value, for absent.
	case f.union:
		// An interface, nil for null.
	case f.nullable, !f.required && !filled:
		typ = "*" + typ
	}
	tag = fmt.Sprintf(`json:"%s"`, f.name)
	if !f.required && !filled {
		tag = fmt.Sprintf(`json:"%s,omitzero"`, f.name)
	}
	// An absent string is empty and an absent number is 0 without a default.
	if filled && f.value != "" && f.value != "0" || f.hasDefault && r.request && r.response {
		tag += fmt.Sprintf(` default:"%s"`, f.value)
	}
	if f.array && f.nullable && f.required {
		tag += ` jsonread:"nullable"`
	}
	if f.orObject {
		tag += ` jsonread:"object"`
	}
	return typ, tag
}

// goName returns the name of a field or an enumeration value in Go's spelling.
func goName(name string) string {
	words := map[string]string{
		"id": "ID", "ids": "IDs", "url": "URL", "npi": "NPI", "dob": "DOB", "icd": "ICD", "abn": "ABN", "aoe": "AoE",
		"tat": "TAT", "ftm": "FTM", "mtf": "MTF", "hipaa": "HIPAA", "clia": "CLIA", "loinc": "LOINC", "sms": "SMS",
	}
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(c rune) bool { return strings.ContainsRune("_.-#", c) }) {
		if w, ok := words[word]; ok {
			b.WriteString(w)
		} else {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func TestSpecFields(t *testing.T) {
	resources := readSpecification(t)
	names, fields, added := map[string]bool{}, 0, 0
	for _, r := range resources {
		names[r.name] = true
		typ, ok := resourceTypes[r.name]
		if !ok {
			t.Errorf("%s: no Go type", r.name)
			continue
		}
		t.Run(r.name, func(t *testing.T) { checkFields(t, r, typ, goName, nil) })
		for _, f := range r.fields {
			fields++
			if f.source != "" {
				added++
			}
		}
	}
	for name := range resourceTypes {
		if !names[name] {
			t.Errorf("%s: not in the specification", name)
		}
	}
	t.Logf("%d resources, %d fields, of which %d added or amended", len(resources), fields, added)
}

// typeName returns the name of a type in the source. Since Go 1.27 json.RawMessage is an alias, and
// reflect returns the name of its target.
func typeName(typ reflect.Type) string {
	rawMessage := reflect.TypeFor[json.RawMessage]().String()
	return strings.ReplaceAll(typ.String(), rawMessage, "json.RawMessage")
}

// checkFields compares a struct with its resource. overrides has the Go types of "Resource.field"
// that do not follow from the type in the specification.
func checkFields(t *testing.T, r specResource, typ reflect.Type, goName func(string) string, overrides map[string]string) {
	if typ.Name() != r.name {
		t.Errorf("the Go type is named %s", typ.Name())
	}
	members := map[string]reflect.StructField{}
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-", field.Name == "Redacted":
		case name == "":
			t.Errorf("%s has no json tag", field.Name)
		case members[name].Name != "":
			t.Errorf("%s is there twice", name)
		default:
			members[name] = field
		}
	}
	for _, f := range r.fields {
		field, ok := members[f.name]
		if !ok {
			t.Errorf("%s is missing", f.name)
			continue
		}
		delete(members, f.name)
		if want := goName(f.name); field.Name != want {
			t.Errorf("%s is named %s, want %s", f.name, field.Name, want)
		}
		wantType, wantTag := f.goField(r)
		if override := overrides[r.name+"."+f.name]; override != "" {
			wantType, wantTag = override, `json:"`+f.name+`"`
			if !f.required {
				wantTag = `json:"` + f.name + `,omitzero"`
			}
		}
		if got := typeName(field.Type); got != wantType {
			t.Errorf("%s has the type %s, want %s", f.name, got, wantType)
		}
		// How a list keeps its raw bytes is not in the specification.
		got := strings.TrimSuffix(string(field.Tag), ` wrapper:"lab_test"`)
		if got = strings.TrimSuffix(got, ` jsonread:"own"`); got != wantTag {
			t.Errorf("%s has the tag %s, want %s", f.name, got, wantTag)
		}
	}
	inReference := referenceFields(typ)
	for name, field := range members {
		if !inReference[name] {
			t.Errorf("%s %s is in neither the specification nor the reference", name, field.Type)
		}
	}
	if r.response {
		last := typ.Field(typ.NumField() - 1)
		_, reads := reflect.New(typ).Interface().(json.Unmarshaler)
		_, writes := reflect.Zero(typ).Interface().(json.Marshaler)
		if !reads || !writes {
			t.Errorf("UnmarshalJSON: %v, MarshalJSON: %v, want both", reads, writes)
		}
		if !last.Anonymous || last.Name != "RawObject" || last.Tag != `json:"-"` {
			t.Errorf("the last field is %s %s, want an embedded RawObject with the tag json:\"-\"", last.Name, last.Tag)
		}
	}
}

// The zero value of a request sends its required fields only.
func TestSpecZeroRequests(t *testing.T) {
	for _, r := range readSpecification(t) {
		if !r.request {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			want, ok := zeroRequests[r.name]
			if !ok {
				t.Fatal("no list of fields")
			}
			if got := marshalledNames(t, reflect.Zero(resourceTypes[r.name]).Interface()); got != want {
				t.Errorf("sends  %s\nwant   %s", got, want)
			}
		})
	}
}

// The zero value of a response encodes its required fields and those with a default. An array that
// may not be null is empty.
func TestSpecZeroResponses(t *testing.T) {
	for _, r := range readSpecification(t) {
		if !r.response {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			encoded, err := json.Marshal(reflect.Zero(resourceTypes[r.name]).Interface())
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			for _, f := range r.fields {
				value, ok := got[f.name]
				delete(got, f.name)
				if want := f.required || f.hasDefault && !r.request; ok != want {
					t.Errorf("%s: sent %v, want %v", f.name, ok, want)
				}
				if !ok {
					continue
				}
				// The zero Date is not a day, and encodes to null.
				if null := string(value) == "null"; null != (f.nullable || f.object || f.typ == "date") {
					t.Errorf("%s: is %s", f.name, value)
				}
				if f.array && !f.nullable && string(value) != "[]" {
					t.Errorf("%s: is %s, want []", f.name, value)
				}
			}
			inReference := referenceFields(resourceTypes[r.name])
			for name := range got {
				if !inReference[name] {
					t.Errorf("%s: is in neither the specification nor the reference", name)
				}
			}
		})
	}
}

// An absent field has its default. So has a null, unless null is allowed or the field is a pointer
// because the resource is sent too.
func TestSpecDefaults(t *testing.T) {
	count := 0
	for _, r := range readSpecification(t) {
		if !r.response {
			continue
		}
		for _, f := range r.fields {
			if !f.hasDefault {
				continue
			}
			count++
			whenNull := f.value
			if f.nullable || r.request {
				whenNull = "<nil>"
			}
			for text, want := range map[string]string{
				"{}":                      f.value,
				`{"` + f.name + `":null}`: whenNull,
			} {
				t.Run(r.name+text, func(t *testing.T) {
					decoded := reflect.New(resourceTypes[r.name])
					if err := json.Unmarshal([]byte(text), decoded.Interface()); err != nil {
						t.Fatal(err)
					}
					value := decoded.Elem().FieldByName(goName(f.name))
					if value.Kind() == reflect.Pointer && !value.IsNil() {
						value = value.Elem()
					}
					if got := fmt.Sprint(value); got != want {
						t.Errorf("%s = %s, want %s", f.name, got, want)
					}
				})
			}
		}
	}
	t.Logf("%d defaults", count)
}

func marshalledNames(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(names, " ")
}

// The types of the details of an order.
func TestSpecDetails(t *testing.T) {
	tests := map[string]any{
		"walk_in_test":       &WalkInTestOrder{},
		"testkit":            &TestkitOrder{},
		"at_home_phlebotomy": &AtHomePhlebotomyOrder{},
		"on_site_collection": &OnSiteCollectionOrder{},
		"courier_pickup":     &UnknownOrderDetails{},
	}
	for kind, want := range tests {
		t.Run(kind, func(t *testing.T) {
			var details OrderDetails
			if err := json.Unmarshal([]byte(`{"type":"`+kind+`","data":{"id":"5d7c1f0e-92b4-4c3a-8a51-0f6e2b7d9c10"}}`), &details); err != nil {
				t.Fatal(err)
			}
			if string(details.Type) != kind {
				t.Errorf("Type = %q", details.Type)
			}
			if got, want := reflect.TypeOf(details.Data), reflect.TypeOf(want); got != want {
				t.Errorf("Data is %v, want %v", got, want)
			}
			if err := json.Unmarshal([]byte(`{"type":"`+kind+`","data":null}`), &details); err != nil {
				t.Fatal(err)
			}
			if details.Data != nil {
				t.Errorf("Data of null is %T, want nil", details.Data)
			}
		})
	}
}

func TestSpecEnumerations(t *testing.T) {
	declared := readConstants(t, "enums.go")
	enums, values := 0, 0
	text := strings.ReplaceAll(strings.TrimSpace(enumerations), "\n\t", " ")
	for line := range strings.SplitSeq(text, "\n") {
		name, list, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("line %q has no colon", line)
		}
		enums++
		t.Run(name, func(t *testing.T) {
			prefix, ok := constantPrefixes[name]
			if !ok {
				prefix = name
			}
			want := map[string]string{}
			for value := range strings.SplitSeq(strings.TrimSpace(list), ", ") {
				values++
				want[prefix+goName(value)] = value
			}
			if diff := cmp.Diff(want, declared[name]); diff != "" {
				t.Errorf("constants (-document +Go):\n%s", diff)
			}
		})
		delete(declared, name)
	}
	for _, area := range referenceAreas {
		for _, value := range area.enums {
			delete(declared, reflect.TypeOf(value).Name())
		}
	}
	for name := range declared {
		t.Errorf("%s: constants of an enumeration that is in neither the specification nor the reference", name)
	}
	t.Logf("%d enumerations, %d values", enums, values)
}

// readConstants returns the constants of each enumeration that is declared in one of the files.
func readConstants(t *testing.T, declaredIn ...string) map[string]map[string]string {
	t.Helper()
	fset, files := referencetest.ParsePackage(t)
	// Imports are not followed: no constant depends on one.
	config := types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := config.Check("labhealth", fset, files, nil)
	constants := map[string]map[string]string{}
	for _, name := range pkg.Scope().Names() {
		object, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if ok && object.Type().Underlying() == types.Typ[types.String] && slices.Contains(declaredIn, fset.Position(object.Pos()).Filename) {
			constants[name] = map[string]string{}
		}
	}
	for _, name := range pkg.Scope().Names() {
		object, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		if named, ok := object.Type().(*types.Named); ok && constants[named.Obj().Name()] != nil {
			constants[named.Obj().Name()][name] = constant.StringVal(object.Val())
		}
	}
	return constants
}

// Fields that the specification deprecates have a Deprecated paragraph. No others have, except for
// those of types that TestReferenceTypes compares with the tables.
func TestSpecDeprecated(t *testing.T) {
	// Deprecated under Versioning, in resources that the specification does not list.
	want := map[string]bool{"CreateOrderBody.LabTestID": true, "Result.Value": true}
	for _, r := range readSpecification(t) {
		for _, f := range r.fields {
			if f.deprecated {
				want[r.name+"."+goName(f.name)] = true
			}
		}
	}
	tabled := map[string]bool{}
	for _, typ := range referenceTypes() {
		tabled[typ.Name()] = true
	}
	_, files := referencetest.ParsePackage(t)
	got := map[string]bool{}
	for name := range deprecatedFields(files) {
		typ, _, _ := strings.Cut(name, ".")
		if want[name] || !tabled[typ] {
			got[name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deprecated fields (-specification +Go):\n%s", diff)
	}
	t.Logf("%d deprecated fields", len(want))
}

// deprecatedFields returns the fields with a Deprecated paragraph, as "Type.Field".
func deprecatedFields(files []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			for i := 0; ok && i < len(fields.Fields.List); i++ {
				for _, name := range fields.Fields.List[i].Names {
					if isDeprecated(fields.Fields.List[i].Doc) {
						names[spec.Name.Name+"."+name.Name] = true
					}
				}
			}
			return false
		})
	}
	return names
}

func isDeprecated(doc *ast.CommentGroup) bool {
	for paragraph := range strings.SplitSeq(doc.Text(), "\n\n") {
		if strings.HasPrefix(paragraph, "Deprecated: ") {
			return true
		}
	}
	return false
}

// The limits of request fields, each with its path in an import order and
// the way to set it there. Characters are counted, not bytes.
func TestSpecLimits(t *testing.T) {
	members := map[string]struct {
		path string
		set  func(*ImportOrderBody, string)
	}{
		"PatientDetailsWithValidation.first_name": {
			"body.patient_details.first_name",
			func(b *ImportOrderBody, s string) { b.PatientDetails.FirstName = s },
		},
		"PatientDetailsWithValidation.last_name": {
			"body.patient_details.last_name",
			func(b *ImportOrderBody, s string) { b.PatientDetails.LastName = s },
		},
		"Address.access_notes": {
			"body.patient_details.medical_proxy.address.access_notes",
			func(b *ImportOrderBody, s string) { b.PatientDetails.MedicalProxy.Address.AccessNotes = &s },
		},
		"PatientAddress.access_notes": {
			"body.patient_address.access_notes",
			func(b *ImportOrderBody, s string) { b.PatientAddress.AccessNotes = &s },
		},
	}
	count := 0
	for _, r := range readSpecification(t) {
		for _, f := range r.fields {
			if !r.request || f.max == 0 {
				continue
			}
			count++
			name := r.name + "." + f.name
			t.Run(name, func(t *testing.T) {
				member, ok := members[name]
				if !ok {
					t.Fatal("no way to set it")
				}
				for _, letter := range []string{"a", "é", "語", "🩸"} {
					for length, accepted := range map[int]bool{
						f.min - 1: false,
						f.min:     true,
						f.max:     true,
						f.max + 1: false,
					} {
						if length < 0 {
							continue
						}
						body := validImportOrderBody()
						member.set(&body, strings.Repeat(letter, length))
						want := []string{member.path}
						if accepted {
							want = nil
						}
						if diff := cmp.Diff(want, invalidPaths(t, body.Validate())); diff != "" {
							t.Errorf("%d times %s: invalid paths (-want +got):\n%s", length, letter, diff)
						}
					}
				}
			})
		}
	}
	if count != len(members) {
		t.Errorf("%d limits in the specification, %d here", count, len(members))
	}
	t.Logf("%d limits", count)
}

// Limits apply to requests. A response decodes whatever its length.
func TestSpecLimitsOfResponses(t *testing.T) {
	notes := strings.Repeat("é", 1001)
	var address OrderPatientAddress
	if err := json.Unmarshal([]byte(`{"access_notes":"`+notes+`"}`), &address); err != nil {
		t.Fatal(err)
	}
	if address.AccessNotes == nil || *address.AccessNotes != notes {
		t.Error("access_notes of 1001 characters were not read")
	}
	if got := address.Malformed(); len(got) != 0 {
		t.Errorf("Malformed() = %v", got)
	}
}

func invalidPaths(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("the error is a %T, want a *ValidationError", err)
	}
	var paths []string
	for _, field := range invalid.Fields {
		paths = append(paths, field.Path())
	}
	return paths
}

func validImportOrderBody() ImportOrderBody {
	return ImportOrderBody{
		UserID:           uuid.MustParse("0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"),
		BillingType:      BillingClientBill,
		OrderSet:         OrderSetRequest{LabTestIDs: []uuid.UUID{uuid.MustParse("7c1e9a44-3d55-4b0f-8b7a-5e2f6d9c0a12")}},
		CollectionMethod: CollectionMethodTestkit,
		PatientDetails: PatientDetailsWithValidation{
			FirstName:   "Ada",
			LastName:    "Example",
			DOB:         Date{Year: 1980, Month: time.May, Day: 17},
			Gender:      GenderFemale,
			PhoneNumber: "+14155550123",
			Email:       "ada@example.com",
			MedicalProxy: &GuarantorDetails{
				FirstName:   "Grace",
				LastName:    "Example",
				PhoneNumber: "+14155550124",
				Address: Address{
					FirstLine: "1 Example Street",
					Country:   "US",
					Zip:       "94105",
					City:      "San Francisco",
					State:     "CA",
				},
			},
		},
		PatientAddress: PatientAddress{
			ReceiverName: "Ada Example",
			FirstLine:    "1 Example Street",
			City:         "San Francisco",
			State:        "CA",
			Zip:          "94105",
			Country:      "US",
		},
		SampleID: "SAMPLE-0001",
	}
}
