package management

import (
	"encoding/json"
	"go/ast"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// What the tables of the public API reference do not say about the management API.

// secretFields are the fields whose value gives access to something. In the tables they are
// strings.
var secretFields = []string{
	"ClientFacingManagementKeyUnhashed.key", "ClientFacingTeamAPIKey.value", "CreateTeamAccessTokenResponse.access_token",
	"CreateWebhookBody.secret", "RotateWebhookSecretBody.key", "WebhookSecretResponse.key",
	"UpdateWebhookHeadersBody.headers", "WebhookHeadersResponse.headers",
	"UpsertTeamCustomCredentialsBody.client_secret", "PolarTeamProviderDetails.webhook_secret",
	"FitbitMetadata.workout_verify_token", "FitbitMetadata.sleep_verify_token", "FitbitMetadata.body_verify_token", "FitbitMetadata.foods_verify_token",
	"GetLabsMetadata.webhook_secret_key", "GetLabsMetadata.webhook_secret_token", "PhlebFindersMetadata.webhook_token",
	"EventDestinationAzureAMQPAttributes-Input.connection_string", "EventDestinationAzureAMQPAttributes-Output.connection_string",
	"EventDestinationAzureBlobStorage.connection_string", "EventDestinationRabbitMQAttributes.uri",
}

// clearedFields are the fields of changes in which null clears a value, or may do so. In the others
// null means the same as absent.
var clearedFields = []string{
	"PatchWebhookBody.description", "PatchWebhookBody.rate_limit", "PatchWebhookBody.filter_types",
	"UpdateOrgTeamBody.integration_team_id", "UpdateOrgTeamBody.sandbox", "UpdateOrgTeamBody.production",
	"UpdateOrgTeamEnvironmentBody.critical_result_notification_email", "UpdateOrgTeamEnvironmentBody.brand_information",
	"UpdateOrgTeamEnvironmentBody.logo_url",
	"UpdateBrandInformationBody.company_name", "UpdateBrandInformationBody.company_website", "UpdateBrandInformationBody.support_email",
	"UpdateBrandInformationBody.support_contact", "UpdateBrandInformationBody.company_address", "UpdateBrandInformationBody.brand_color",
}

// Secrets have the type Secret, and fields that null clears are Nullable. There are no others.
func TestSecretsAndNulls(t *testing.T) {
	var secrets, cleared []string
	for name, value := range managementReference.Components {
		typ := reflect.TypeOf(value)
		component := strings.TrimPrefix(name, "management ")
		for f := range typ.Fields() {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			isOwn := slices.ContainsFunc(reference.Components()[name], func(of reference.Field) bool { return of.Name == field })
			if !isOwn {
				continue
			}
			if f.Type == reflect.TypeFor[labhealth.Secret]() || f.Type.Kind() == reflect.Map && f.Type.Elem() == reflect.TypeFor[labhealth.Secret]() {
				secrets = append(secrets, component+"."+field)
			}
			if strings.HasPrefix(f.Type.Name(), "Nullable[") {
				cleared = append(cleared, component+"."+field)
			}
		}
	}
	slices.Sort(secrets)
	slices.Sort(cleared)
	if diff := cmp.Diff(slices.Sorted(slices.Values(secretFields)), secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(clearedFields)), cleared); diff != "" {
		t.Errorf("fields that null clears (-want +got):\n%s", diff)
	}
}

// Absent settings have their defaults. Null has them too, if it has no meaning of its own.
func TestDefaults(t *testing.T) {
	no := new(false)
	for text, want := range map[string]TeamSettings{
		`{}`: {
			LabTestsPatientSMSCommunicationEnabled: true, LabTestsPatientEmailCommunicationEnabled: true,
			PartialWebhooksEnabled: no, MinorOrderingEnabled: no,
		},
		`{"lab_tests_patient_sms_communication_enabled":null,"partial_webhooks_enabled":null,"minor_ordering_enabled":null}`: {
			LabTestsPatientSMSCommunicationEnabled: true, LabTestsPatientEmailCommunicationEnabled: true,
		},
	} {
		var s TeamSettings
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// The variants of the creator of a key, which the tables have as constants, have Go constants.
func TestKeyCreators(t *testing.T) {
	want := map[string]bool{}
	for name, value := range managementReference.Components {
		for _, f := range reference.Components()[name] {
			if reflect.TypeOf(value) == reflect.TypeFor[KeyCreator]() && f.Name == "type" {
				want[strings.Trim(strings.TrimPrefix(f.Type, "const "), `"`)] = true
			}
		}
	}
	got := map[string]bool{}
	for _, creator := range []KeyCreatorType{
		KeyCreatorOrgMember, KeyCreatorRemovedOrgMember, KeyCreatorServiceStaff, KeyCreatorManagementKey,
	} {
		got[string(creator)] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every operation is one of the management API.
func TestOperationsTables(t *testing.T) {
	for _, op := range operations {
		if !strings.Contains(op, " /v1/org/{org_id}") {
			t.Errorf("%s is no operation of the management API", op)
		}
	}
	if got, want := len(operations), len(managementReference.Operations); got != want {
		t.Errorf("%d operations, the tables have %d", got, want)
	}
}

// Arguments are in the same order everywhere: context, team, environment, region, resource, what is
// sent, options.
func TestArgumentOrder(t *testing.T) {
	order := func(name string) int {
		switch name {
		case "ctx", "teamID", "env", "region":
			return slices.Index([]string{"ctx", "teamID", "env", "region"}, name)
		case "keyID", "webhookID", "accountID", "keyIDs", "credentialIDs":
			return 4
		case "opts":
			return 6
		}
		return 5
	}
	_, files := referencetest.ParsePackage(t)
	methods := 0
	for _, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			methods++
			last, name := -1, ""
			for _, field := range f.Type.Params.List {
				for _, param := range field.Names {
					if now := order(param.Name); now < last {
						t.Errorf("%s: %s comes after %s", f.Name.Name, param.Name, name)
					} else {
						last, name = now, param.Name
					}
				}
			}
		}
	}
	if methods < 50 {
		t.Errorf("only %d methods", methods)
	}
}
