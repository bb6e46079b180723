package labhealth

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The management API of the public API reference, in the form of spec_test.go, typed by hand and
// never from the Go code. The interface specification has its groups only. A fifth column has the
// Go type of a field that the rules there do not cover: a secret, a map, a value without a
// published shape, or one for which null and absent differ.
const managementSpecification = `
# Organisation: response
id                        | uuid                         | yes |
name                      | string                       | yes |
expires_at                | date-time?                   | no  |

# UpdateOrganisationBody: request
name                      | string                       | yes |

# Webhook: response
id                        | string                       | yes |
url                       | string                       | yes |
created_at                | date-time                    | yes |
updated_at                | date-time                    | yes |
description               | string?                      | no  |
rate_limit                | integer?                     | no  |
disabled                  | boolean?                     | no  |
filter_types              | array of string?             | no  |

# WebhookPage: response
data                      | array of Webhook             | yes |
next_cursor               | string?                      | yes |

# CreateWebhookBody: request
url                       | string                       | yes |
description               | string                       | no  |
rate_limit                | integer?                     | no  |
disabled                  | boolean                      | no  |
filter_types              | array of string?             | no  |
secret                    | string?                      | no  | | labhealth.Secret

# UpdateWebhookBody: request
url                       | string?                      | no  |
description               | string?                      | no  |
rate_limit                | integer?                     | no  | | labhealth.Nullable[int64]
disabled                  | boolean?                     | no  |
filter_types              | array of string?             | no  | | labhealth.Nullable[[]string]

# WebhookHeaders: response
headers                   | object                       | yes | | map[string]labhealth.Secret
sensitive                 | array of string              | yes |

# replaceWebhookHeadersBody: request
headers                   | object                       | yes | | map[string]labhealth.Secret

# WebhookSecret: response
key                       | string                       | yes | | labhealth.Secret

# rotateWebhookSecretBody: request
key                       | string?                      | no  | | labhealth.Secret

# ManagementKey: response
id                        | uuid                         | yes |
label                     | string                       | yes |
role                      | ManagementKeyRole            | yes |
team_role_bindings        | array of TeamRoleBinding     | no  |
creator                   | ManagementKeyCreator         | no  |
key                       | string                       | no  | | labhealth.Secret

# TeamRoleBinding: request, response
team_id                   | uuid                         | yes |

# ManagementKeyCreator: response
type                      | ManagementKeyCreatorType     | yes |

# ManagementKeyPage: response
data                      | array of ManagementKey       | yes |
next_cursor               | string?                      | yes |

# CreateManagementKeyBody: request
label                     | string                       | yes |
role                      | ManagementKeyRole            | yes |
team_role_bindings        | array of TeamRoleBinding?    | no  |

# UpdateManagementKeyBody: request
label                     | string?                      | no  |
team_role_bindings        | array of TeamRoleBinding?    | no  |

# Team: response
id                        | uuid                         | yes |
name                      | string                       | yes |
created_on                | date-time                    | yes |
region                    | Region                       | yes |
integration_team_id       | string?                      | no  |
environments              | array of TeamEnvironment     | yes |
sandbox                   | TeamSettings?                | no  |
production                | TeamSettings?                | no  |

# TeamSettings: response
lab_tests_patient_sms_communication_enabled   | boolean  | no  | default true
lab_tests_patient_email_communication_enabled | boolean  | no  | default true
critical_result_notification_email | string?             | no  |
brand_information         | BrandInformation?            | no  |
logo_url                  | string?                      | no  |
reject_duplicate_connection | boolean                    | no  | default false
sdk_per_device_activity_timeseries | boolean             | no  | default false
partial_webhooks_enabled  | boolean                      | no  | default false
minor_ordering_enabled    | boolean                      | no  | default false

# BrandInformation: request, response
company_name              | string                       | yes |
company_website           | string                       | no  | service default ""
support_email             | string                       | no  |
support_contact           | string?                      | no  | service default ""
company_address           | string                       | no  | service default ""
brand_color               | string                       | no  | service default ""

# TeamPage: response
teams                     | array of Team                | yes |
next_cursor               | string?                      | yes |

# CreateTeamBody: request
name                      | string                       | yes |
region                    | Region                       | yes |
integration_team_id       | string?                      | no  |
lab_tests_patient_sms_communication_enabled   | boolean  | no  | default true
lab_tests_patient_email_communication_enabled | boolean  | no  | default true
critical_result_notification_email | string?             | no  |
brand_information         | BrandInformation?            | no  |
logo_url                  | string?                      | no  |
reject_duplicate_connection | boolean                    | no  | default false
sdk_per_device_activity_timeseries | boolean             | no  | default false
partial_webhooks_enabled  | boolean                      | no  | default false
minor_ordering_enabled    | boolean                      | no  | default false

# UpdateTeamBody: request
name                      | string                       | no  |
integration_team_id       | string?                      | no  | | labhealth.Nullable[string]
sandbox                   | UpdateTeamSettings           | no  |
production                | UpdateTeamSettings           | no  |

# UpdateTeamSettings: request
lab_tests_patient_sms_communication_enabled   | boolean? | no  |
lab_tests_patient_email_communication_enabled | boolean? | no  |
critical_result_notification_email | string?             | no  | | labhealth.Nullable[string]
brand_information         | BrandInformation?            | no  | | labhealth.Nullable[github.com/labhealth/labhealth-go.BrandInformation]
logo_url                  | string?                      | no  | | labhealth.Nullable[string]
reject_duplicate_connection | boolean?                   | no  |
sdk_per_device_activity_timeseries | boolean?            | no  |
partial_webhooks_enabled  | boolean?                     | no  |
minor_ordering_enabled    | boolean?                     | no  |

# resolveTeamBody: request
integration_team_id       | string                       | yes |

# createAccessTokenBody: request
env                       | TeamEnvironment              | yes |

# AccessToken: response
access_token              | string                       | yes | | labhealth.Secret
expires_in                | integer                      | yes |

# TeamAPIKey: response
id                        | uuid                         | yes |
label                     | string                       | yes |
value                     | string                       | yes | | labhealth.Secret
team_id                   | uuid                         | yes |
created_at                | date-time                    | yes |

# TeamAPIKeyPage: response
api_keys                  | array of TeamAPIKey          | yes |
next_cursor               | string?                      | no  |

# CreateTeamAPIKeyBody: request
label                     | string                       | yes |
team_id                   | uuid                         | yes |

# BatchDeletion: response
success                   | array of uuid                | yes |
failure                   | array of uuid                | yes |
not_found                 | array of uuid                | yes |

# TeamCustomCredentials: response
id                        | uuid                         | yes |
team_id                   | uuid                         | yes |
source                    | string                       | yes |
created_at                | date-time                    | yes |
updated_at                | date-time                    | yes |
client_id                 | string?                      | no  |
client_secret_hash        | string?                      | no  |
details                   | object?                      | no  | | json.RawMessage
app_url                   | string?                      | no  |
redirect_url_override     | string?                      | no  |

# TeamCustomCredentialsPage: response
credentials               | array of TeamCustomCredentials | yes |
next_cursor               | string?                      | no  |

# UpsertTeamCustomCredentialsBody: request
team_id                   | uuid                         | yes |
provider                  | string                       | yes |
client_id                 | string?                      | no  |
client_secret             | string?                      | no  | | labhealth.Secret
details                   | object?                      | no  | | json.RawMessage
redirect_url_override     | string?                      | no  |

# prepareTeamCustomCredentialsBody: request
team_id                   | uuid                         | yes |
provider                  | string                       | yes |

# TeamCustomCredentialsPreparation: response
status                    | PreparationStatus            | yes |
preparation_steps         | array of PreparationStep     | yes |

# PreparationStep: response
type                      | string                       | yes |
key                       | string?                      | no  |
value                     | string                       | yes |
description               | string?                      | no  |

# ETLPipeline: response
team_id                   | uuid                         | yes |
preferences               | EventDestinationPreferences  | yes |
push_historical_data      | boolean                      | no  | default false
provider_raw_data         | boolean                      | no  | default false
cloud_pubsub              | CloudPubSub?                 | no  |
rabbitmq                  | RabbitMQ?                    | no  |
svix                      | Svix?                        | no  |
azure_amqp                | AzureAMQP?                   | no  |
event_type_prefixes       | array of string?             | no  |

# ETLPipelinePage: response
pipelines                 | array of ETLPipeline         | yes |
next_cursor               | string?                      | no  |

# UpsertETLPipelinesBody: request
team_ids                  | array of uuid                | yes |
preferences               | EventDestinationPreferences? | no  |
push_historical_data      | boolean?                     | no  |
provider_raw_data         | boolean?                     | no  |
cloud_pubsub              | CloudPubSub?                 | no  |
rabbitmq                  | RabbitMQ?                    | no  |
svix                      | Svix?                        | no  |
azure_amqp                | AzureAMQP?                   | no  |
event_type_prefixes       | array of string?             | no  |

# EventDestinationPreferences: request, response
preferred                 | EventDestination             | yes |
enabled                   | array of EventDestination    | yes |

# CloudPubSub: request, response
project                   | string                       | yes |
topic                     | string                       | yes |
message_ordering          | boolean                      | yes |

# RabbitMQ: request, response
uri                       | string                       | yes | | labhealth.Secret
exchange                  | string                       | yes |

# Svix: request, response
regional                  | boolean                      | no  | deprecated, default true

# AzureAMQP: request, response
connection_string         | string                       | yes | | labhealth.Secret
default_event_hub         | string                       | yes |
event_hub_matchers        | array of EventHubMatcher     | no  |
compression               | EventHubCompression          | no  | default auto

# EventHubMatcher: request, response
event_type_prefix         | string?                      | no  |
event_type_regex          | string?                      | no  |
event_hub                 | string?                      | no  |
blob_storage              | BlobStorage?                 | no  |

# BlobStorage: request, response
connection_string         | string                       | yes | | labhealth.Secret
container_name            | string                       | yes |
container                 | string                       | no  |
`

// The Go types of the management API.
var managementTypes = []reflect.Type{
	reflect.TypeFor[Organisation](), reflect.TypeFor[UpdateOrganisationBody](),
	reflect.TypeFor[Webhook](), reflect.TypeFor[WebhookPage](), reflect.TypeFor[CreateWebhookBody](), reflect.TypeFor[UpdateWebhookBody](),
	reflect.TypeFor[WebhookHeaders](), reflect.TypeFor[replaceWebhookHeadersBody](), reflect.TypeFor[WebhookSecret](),
	reflect.TypeFor[rotateWebhookSecretBody](),
	reflect.TypeFor[ManagementKey](), reflect.TypeFor[TeamRoleBinding](), reflect.TypeFor[ManagementKeyCreator](),
	reflect.TypeFor[ManagementKeyPage](), reflect.TypeFor[CreateManagementKeyBody](), reflect.TypeFor[UpdateManagementKeyBody](),
	reflect.TypeFor[Team](), reflect.TypeFor[TeamSettings](), reflect.TypeFor[BrandInformation](), reflect.TypeFor[TeamPage](),
	reflect.TypeFor[CreateTeamBody](), reflect.TypeFor[UpdateTeamBody](), reflect.TypeFor[UpdateTeamSettings](),
	reflect.TypeFor[resolveTeamBody](), reflect.TypeFor[createAccessTokenBody](), reflect.TypeFor[AccessToken](),
	reflect.TypeFor[TeamAPIKey](), reflect.TypeFor[TeamAPIKeyPage](), reflect.TypeFor[CreateTeamAPIKeyBody](), reflect.TypeFor[BatchDeletion](),
	reflect.TypeFor[TeamCustomCredentials](), reflect.TypeFor[TeamCustomCredentialsPage](), reflect.TypeFor[UpsertTeamCustomCredentialsBody](),
	reflect.TypeFor[prepareTeamCustomCredentialsBody](), reflect.TypeFor[TeamCustomCredentialsPreparation](), reflect.TypeFor[PreparationStep](),
	reflect.TypeFor[ETLPipeline](), reflect.TypeFor[ETLPipelinePage](), reflect.TypeFor[UpsertETLPipelinesBody](),
	reflect.TypeFor[EventDestinationPreferences](), reflect.TypeFor[CloudPubSub](), reflect.TypeFor[RabbitMQ](), reflect.TypeFor[Svix](),
	reflect.TypeFor[AzureAMQP](), reflect.TypeFor[EventHubMatcher](), reflect.TypeFor[BlobStorage](),
}

// readManagementSpecification parses the specification, and its fifth column by resource and field.
func readManagementSpecification(t *testing.T) (resources []specResource, goTypes map[string]string) {
	t.Helper()
	goTypes = map[string]string{}
	var rows []string
	var resource string
	for line := range strings.Lines(managementSpecification) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			resource, _, _ = strings.Cut(heading, ":")
		}
		if columns := strings.Split(line, "|"); len(columns) == 5 {
			goTypes[resource+"."+strings.TrimSpace(columns[0])] = strings.TrimSpace(columns[4])
			line = strings.Join(columns[:4], "|")
		}
		rows = append(rows, line)
	}
	return readResources(t, strings.Join(rows, "\n")), goTypes
}

// initialisms are names that goName does not have.
var initialisms = strings.NewReplacer("Sms", "SMS", "Sdk", "SDK", "ApiKeys", "APIKeys", "CloudPubsub", "CloudPubSub", "Rabbitmq", "RabbitMQ", "Amqp", "AMQP",
	"Uri", "URI", "AppUrl", "AppURL")

func TestManagementFields(t *testing.T) {
	resources, goTypes := readManagementSpecification(t)
	types := map[string]reflect.Type{}
	for _, typ := range managementTypes {
		types[typ.Name()] = typ
	}
	fields := 0
	for _, r := range resources {
		typ, ok := types[r.name]
		if !ok {
			t.Errorf("%s: no Go type", r.name)
			continue
		}
		delete(types, r.name)
		fields += len(r.fields)
		t.Run(r.name, func(t *testing.T) {
			checkFields(t, r, typ, func(name string) string { return initialisms.Replace(goName(name)) }, goTypes)
		})
	}
	for name := range types {
		t.Errorf("%s: not in the reference", name)
	}
	t.Logf("%d resources, %d fields", len(resources), fields)
}

// The zero value encodes its required fields and, in a response, those with a default.
func TestManagementZeroValues(t *testing.T) {
	resources, _ := readManagementSpecification(t)
	for _, typ := range managementTypes {
		for _, r := range resources {
			if r.name != typ.Name() {
				continue
			}
			want := []string{}
			for _, f := range r.fields {
				if f.required || f.hasDefault && !r.request {
					want = append(want, f.name)
				}
			}
			got := strings.Fields(marshalledNames(t, reflect.Zero(typ).Interface()))
			if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" {
				t.Errorf("%s (-reference +sent):\n%s", r.name, diff)
			}
		}
	}
}

// Absent and null settings have their defaults.
func TestManagementDefaults(t *testing.T) {
	for _, text := range []string{"{}", `{"lab_tests_patient_sms_communication_enabled":null,"lab_tests_patient_email_communication_enabled":null,"minor_ordering_enabled":null}`} {
		var s TeamSettings
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		want := TeamSettings{LabTestsPatientSMSCommunicationEnabled: true, LabTestsPatientEmailCommunicationEnabled: true}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestManagementEnumerations(t *testing.T) {
	for constant, want := range map[any]string{
		TeamEnvironmentProduction: "production", TeamEnvironmentSandbox: "sandbox",
		RegionUS: "us", RegionEU: "eu",
		ManagementKeyRoleOrgAdmin: "org_admin", ManagementKeyRoleTeamAdmin: "team_admin",
		ManagementKeyCreatorOrgMember: "org_member", ManagementKeyCreatorRemovedOrgMember: "removed_org_member",
		ManagementKeyCreatorServiceStaff: "service_staff", ManagementKeyCreatorManagementKey: "management_key",
		PreparationStatusNoActionNeeded: "no_action_needed", PreparationStatusPreparationsRequired: "preparations_required",
		EventDestinationCloudPubSub: "cloud_pubsub", EventDestinationRabbitMQ: "rabbitmq", EventDestinationSvix: "svix",
		EventDestinationAzureAMQP: "azure_amqp",
		EventHubCompressionAuto:   "auto", EventHubCompressionAlways: "always",
	} {
		if got := reflect.ValueOf(constant).String(); got != want {
			t.Errorf("%T is %q, want %q", constant, got, want)
		}
	}
}

// Every management operation has a row in the documentation of ManagementClient, and none in the
// table of the team API.
func TestManagementOperationsTables(t *testing.T) {
	for _, op := range managementOperations {
		if !strings.Contains(op, " /v1/org/{org_id}") {
			t.Errorf("%s is no operation of the management API", op)
		}
	}
	for _, op := range teamOperations {
		if strings.Contains(op, "/v1/org/") {
			t.Errorf("%s is in the table of the team API", op)
		}
	}
	if len(managementOperations) != 32 {
		t.Errorf("%d operations", len(managementOperations))
	}
}
