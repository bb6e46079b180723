package management

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/canarytest"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// redactedTypes are the types that can hold keys, or names and addresses of people.
var redactedTypes = []any{
	AccessToken{}, AzureAMQP{}, BlobStorage{}, CreateWebhookBody{}, CustomCredentialsDetails{}, ETLPipeline{}, ETLPipelinePage{},
	EventHubDestination{}, EventHubMatcher{}, FitbitCredentials{}, GetLabsCredentials{}, Key{}, KeyCreator{},
	KeyPage{}, PhlebFindersCredentials{}, RabbitMQ{}, TeamAPIKey{}, TeamAPIKeyPage{},
	TeamCustomCredentials{}, TeamCustomCredentialsPage{}, UpdateWebhookBody{}, UpsertETLPipelinesBody{}, UpsertTeamCustomCredentialsBody{},
	Webhook{}, WebhookHeaders{}, WebhookPage{}, WebhookSecret{},
}

func TestRedaction(t *testing.T) {
	outputs := 0
	for _, example := range redactedTypes {
		outputs += canarytest.Redacted(t, reflect.TypeOf(example), canarytest.Filler{}, nil)
	}
	t.Logf("%d types, %d outputs", len(redactedTypes), outputs)
}

func TestEveryResponsePrints(t *testing.T) {
	printed := canarytest.Printed(t, referencetest.Types(managementReference), nil)
	if printed < 800 {
		t.Errorf("only %d outputs", printed)
	}
	t.Logf("%d outputs", printed)
}

// A value without keys and personal data prints its fields: pointers are dereferenced and absent
// fields are left out.
func TestPrintedForms(t *testing.T) {
	const printedID = "c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"
	id := uuid.MustParse(printedID)
	at := time.Date(2025, 5, 6, 7, 8, 9, 0, time.UTC)
	team := Team{
		ID: id, Name: "North \"Clinic\"\n", CreatedOn: at, Region: labhealth.RegionUS, IntegrationTeamID: new("clinic-1"),
		Environments: []labhealth.TeamEnvironment{labhealth.TeamEnvironmentSandbox}, Sandbox: &TeamSettings{PartialWebhooksEnabled: new(false)},
	}
	for _, test := range []struct {
		v    any
		want string
	}{
		{Organisation{}, "management.Organisation{}"},
		{&Organisation{ID: id, Name: "Example", ExpiresAt: &at}, "management.Organisation{ID: " + printedID + `, Name: "Example", ExpiresAt: 2025-05-06T07:08:09Z}`},
		{(*Organisation)(nil), "<nil>"},
		{&team, "management.Team{ID: " + printedID + `, Name: "North \"Clinic\"\n", CreatedOn: 2025-05-06T07:08:09Z, Region: "us", IntegrationTeamID: "clinic-1", ` +
			`Environments: ["sandbox"], Sandbox: management.TeamSettings{LabTestsPatientSMSCommunicationEnabled: false, ` +
			`LabTestsPatientEmailCommunicationEnabled: false, RejectDuplicateConnection: false, SDKPerDeviceActivityTimeseries: false, PartialWebhooksEnabled: false}}`},
		{[]*BatchDeletion{{Success: []uuid.UUID{}, Failure: []uuid.UUID{id}}}, "[management.BatchDeletion{Success: [], Failure: [" + printedID + "]}]"},
		{TeamAPIKey{Value: "sk_us_1"}, "management.TeamAPIKey{00000000-0000-0000-0000-000000000000, redacted}"},
	} {
		for _, verb := range []string{"%v", "%+v", "%s"} {
			got := fmt.Sprintf(verb, test.v)
			if verb == "%s" && test.want == "<nil>" {
				continue // fmt's own text
			}
			if got != test.want {
				t.Errorf("%s of %T:\n got %s\nwant %s", verb, test.v, got, test.want)
			}
		}
	}
}

// Malformed entries of a map stay beside a changed one.
func TestChangedMapKeepsOtherEntries(t *testing.T) {
	var h WebhookHeaders
	if err := json.Unmarshal([]byte(`{"headers":{"X-B":5,"X-A":"1","X-C":{"a":1},"X-D":"4"},"new":1}`), &h); err != nil {
		t.Fatal(err)
	}
	h.Headers["X-A"] = "2"
	delete(h.Headers, "X-D")
	b, err := json.Marshal(h)
	if want := `{"headers":{"X-A":"2","X-B":5,"X-C":{"a":1}},"new":1}`; err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}
