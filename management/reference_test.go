package management

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

var managementReference = referencetest.Area{
	Components: map[string]any{
		"management ClientFacingOrg": Organisation{},
		"management UpdateOrgBody":   UpdateOrganisationBody{},

		"management ClientFacingOrgTeam":             Team{},
		"management ClientFacingOrgTeamListItem":     Team{},
		"management ResolveTeamResponse":             Team{},
		"management ClientFacingOrgTeamListResponse": TeamPage{},
		"management ClientFacingOrgTeamEnvironment":  TeamSettings{},
		"management BrandInformation":                BrandInformation{},
		"management CreateOrgTeamBody":               CreateTeamBody{},
		"management UpdateOrgTeamBody":               UpdateTeamBody{},
		"management UpdateOrgTeamEnvironmentBody":    UpdateTeamSettings{},
		"management UpdateBrandInformationBody":      UpdateBrandInformationBody{},
		"management ResolveTeamBody":                 resolveTeamBody{},
		"management CreateAccessTokenBody":           createAccessTokenBody{},
		"management CreateTeamAccessTokenResponse":   AccessToken{},

		"management TeamScopeRequirements":                        TeamScopeRequirements{},
		"management UpsertTeamScopeRequirementsBody":              UpsertScopeRequirementsBody{},
		"management TeamScopeRequirementsBase_FitbitScope_":       ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_GoogleFitScope_":    ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_GoogleHealthScope_": ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_MyFitnessPalScope_": ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_OuraScope_":         ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_StravaScope_":       ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_WahooScope_":        ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_WhoopScope_":        ProviderScopeRequirements{},
		"management TeamScopeRequirementsBase_WithingsScope_":     ProviderScopeRequirements{},

		"management ClientFacingManagementKey":         Key{},
		"management ClientFacingManagementKeyUnhashed": Key{},
		"management ClientFacingManagementKeyResponse": KeyPage{},
		"management CreatorOrgMember":                  KeyCreator{},
		"management CreatorOrgMemberRemoved":           KeyCreator{},
		"management CreatorServiceStaff":               KeyCreator{},
		"management CreatorManagementKey":              KeyCreator{},
		"management TeamRoleBinding":                   TeamRoleBinding{},
		"management CreateManagementKeyBody":           CreateKeyBody{},
		"management PatchManagementKeyBody":            UpdateKeyBody{},

		"management Webhook":                  Webhook{},
		"management WebhookListResponse":      WebhookPage{},
		"management CreateWebhookBody":        CreateWebhookBody{},
		"management PatchWebhookBody":         UpdateWebhookBody{},
		"management WebhookHeadersResponse":   WebhookHeaders{},
		"management UpdateWebhookHeadersBody": replaceWebhookHeadersBody{},
		"management WebhookSecretResponse":    WebhookSecret{},
		"management RotateWebhookSecretBody":  rotateWebhookSecretBody{},
		"management PrometheusQueryResponse":  PrometheusQueryResponse{},
		"management PrometheusQueryData":      PrometheusQueryData{},
		"management PrometheusQueryResult":    PrometheusQueryResult{},

		"management ClientFacingTeamAPIKey":              TeamAPIKey{},
		"management ClientFacingTeamAPIKeyResponse":      TeamAPIKeyPage{},
		"management CreateTeamAPIKeyBody":                CreateTeamAPIKeyBody{},
		"management DeleteTeamApiKeysResponse":           BatchDeletion{},
		"management DeleteTeamCustomCredentialsResponse": BatchDeletion{},

		"management ClientFacingTeamProviderCredentials":  TeamCustomCredentials{},
		"management CustomCredentialsResponse":            TeamCustomCredentialsPage{},
		"management UpsertTeamCustomCredentialsBody":      UpsertTeamCustomCredentialsBody{},
		"management PrepareTeamCustomCredentialsBody":     prepareTeamCustomCredentialsBody{},
		"management PrepareTeamCustomCredentialsResponse": TeamCustomCredentialsPreparation{},
		"management CustomCredentialPreparationStep":      PreparationStep{},
		"management FitbitTeamProviderDetails":            CustomCredentialsDetails{},
		"management GoogleFitTeamProviderDetails":         CustomCredentialsDetails{},
		"management GoogleHealthTeamProviderDetails":      CustomCredentialsDetails{},
		"management BioReferenceProviderDetails":          CustomCredentialsDetails{},
		"management LabCorpTeamProviderDetails":           CustomCredentialsDetails{},
		"management QuestProviderDetails":                 CustomCredentialsDetails{},
		"management PolarTeamProviderDetails":             CustomCredentialsDetails{},
		"management GetLabsTeamProviderDetails":           CustomCredentialsDetails{},
		"management PhlebFindersTeamProviderDetails":      CustomCredentialsDetails{},
		"management LabcorpProviderDetails":               CustomCredentialsDetails{},
		"management MyFitnessPalV2TeamProviderDetails":    CustomCredentialsDetails{},
		"management FitbitMetadata":                       FitbitCredentials{},
		"management GetLabsMetadata":                      GetLabsCredentials{},
		"management LabCorpMetadata":                      LabCorpCredentials{},
		"management PhlebFindersMetadata":                 PhlebFindersCredentials{},

		"management ClientFacingETLPipeline":                    ETLPipeline{},
		"management TeamETLPipelinesResponse":                   ETLPipelinePage{},
		"management UpsertTeamETLPipelinesBody":                 UpsertETLPipelinesBody{},
		"management EventDestinationPreferences":                labhealth.EventDestinationPreferences{},
		"management EventDestinationCloudPubSubAttributes":      CloudPubSub{},
		"management EventDestinationRabbitMQAttributes":         RabbitMQ{},
		"management EventDestinationSvixAttributes":             Svix{},
		"management EventDestinationAzureAMQPAttributes-Input":  AzureAMQP{},
		"management EventDestinationAzureAMQPAttributes-Output": AzureAMQP{},
		"management EventDestinationEventHubMatcher":            EventHubMatcher{},
		"management EventDestinationAzureBlobStorage":           BlobStorage{},

		"management TeamDataPullPreferencesResponse":            TeamDataPullPreferencesPage{},
		"management TeamDataPullPreferencesWithLimit":           TeamDataPullPreferences{},
		"management SingleProviderDataPullPreferencesWithLimit": ProviderDataPullPreferences{},
		"management DefaultConfigurationWithLimit":              HistoricalDaysToPull{},
		"management SingleResourceOverrideWithLimit":            HistoricalDaysToPull{},
		"management UpsertTeamDataPullPreferencesBody":          UpsertTeamDataPullPreferencesBody{},
		"management SingleProviderDataPullPreferences":          UpsertProviderDataPullPreferences{},
		"management DefaultConfiguration":                       UpsertHistoricalDaysToPull{},
		"management SingleResourceOverride":                     UpsertHistoricalDaysToPull{},

		"management ClientFacingLabAccount":              labhealth.LabAccount{},
		"management LabAccountTeamIdAllowlistUpdateBody": updateLabAccountBody{},
		"management LabAccountResponse":                  LabAccountResponse{},
	},
	Enums: map[string]any{
		"management Env":                        labhealth.TeamEnvironment(""),
		"management ClientFacingOrgTeam.region": labhealth.Region(""),

		"management ClientFacingManagementKey.role": KeyRole(""),

		"management FitbitScope":       OAuthScope(""),
		"management GoogleFitScope":    OAuthScope(""),
		"management GoogleHealthScope": OAuthScope(""),
		"management MyFitnessPalScope": OAuthScope(""),
		"management OuraScope":         OAuthScope(""),
		"management StravaScope":       OAuthScope(""),
		"management WahooScope":        OAuthScope(""),
		"management WhoopScope":        OAuthScope(""),
		"management WithingsScope":     OAuthScope(""),

		"management Providers":      labhealth.Provider(""),
		"management OAuthProviders": labhealth.Provider(""),

		"management PrepareTeamCustomCredentialsResponse.status":            PreparationStatus(""),
		"management CustomCredentialPreparationStep.type":                   PreparationStepType(""),
		"management LabCorpMetadata.billing_method":                         LabCorpBillingMethod(""),
		"management LabCorpTeamProviderDetails.allowed_billing_types":       labhealth.Billing(""),
		"management EventDestinationPreferences.preferred":                  labhealth.EventDestination(""),
		"management EventDestinationAzureAMQPAttributes-Output.compression": EventHubCompression(""),
		"management LabAccountStatus":                                       labhealth.LabAccountStatus(""),
		"management LabAccountDelegatedFlow":                                labhealth.LabAccountDelegatedFlow(""),
	},
	Operations: map[string]string{
		"GET /v1/org/{org_id}":   "Organisation.Get",
		"PATCH /v1/org/{org_id}": "Organisation.Update",

		"GET /v1/org/{org_id}/team":                                    "Teams.List",
		"POST /v1/org/{org_id}/team":                                   "Teams.Create",
		"GET /v1/org/{org_id}/team/{team_id}":                          "Teams.Get",
		"PATCH /v1/org/{org_id}/team/{team_id}":                        "Teams.Update",
		"DELETE /v1/org/{org_id}/team/{team_id}":                       "Teams.Delete",
		"POST /v1/org/{org_id}/resolve_team":                           "Teams.Resolve",
		"POST /v1/org/{org_id}/team/{team_id}/create_api_access_token": "Teams.CreateAccessToken",
		"GET /v1/org/{org_id}/team/{team_id}/scope_requirements":       "Teams.ScopeRequirements",
		"POST /v1/org/{org_id}/team/{team_id}/scope_requirements":      "Teams.UpsertScopeRequirements",

		"GET /v1/org/{org_id}/management_key":             "Keys.List",
		"POST /v1/org/{org_id}/management_key":            "Keys.Create",
		"PATCH /v1/org/{org_id}/management_key/{key_id}":  "Keys.Update",
		"DELETE /v1/org/{org_id}/management_key/{key_id}": "Keys.Delete",

		"GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook":                             "Webhooks.List",
		"POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook":                            "Webhooks.Create",
		"GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}":                "Webhooks.Get",
		"PATCH /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}":              "Webhooks.Update",
		"DELETE /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}":             "Webhooks.Delete",
		"GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers":        "Webhooks.Headers",
		"PUT /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers":        "Webhooks.ReplaceHeaders",
		"GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret":         "Webhooks.Secret",
		"POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret/rotate": "Webhooks.RotateSecret",
		"GET /v1/org/{org_id}/team/{team_id}/{environment}/event_delivery_metric":               "Webhooks.EventDeliveryMetric",

		"GET /v1/org/{org_id}/lab_account/{env}/{region}":                "LabAccounts.List",
		"PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}": "LabAccounts.UpdateTeamIDAllowlist",

		"GET /v1/org/{org_id}/team_api_keys/{env}/{region}":    "TeamAPIKeys.List",
		"POST /v1/org/{org_id}/team_api_keys/{env}/{region}":   "TeamAPIKeys.Create",
		"DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}": "TeamAPIKeys.Delete",

		"GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}":          "CustomCredentials.List",
		"POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}":         "CustomCredentials.Upsert",
		"DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}":       "CustomCredentials.Delete",
		"POST /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}": "CustomCredentials.Prepare",

		"GET /v1/org/{org_id}/team_etl_pipelines/{env}/{region}":    "Pipelines.List",
		"POST /v1/org/{org_id}/team_etl_pipelines/{env}/{region}":   "Pipelines.Upsert",
		"DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}": "Pipelines.Delete",

		"GET /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}":    "DataPullPreferences.List",
		"POST /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}":   "DataPullPreferences.Upsert",
		"DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}": "DataPullPreferences.Delete",
	},
	Exceptions: map[string]string{
		"management Labs":                "a lab is identified by the slug of LabTests.Labs, of which the service adds more",
		"management LabsProviders":       "the provider of custom credentials is a Provider or any other slug",
		"management AppointmentProvider": "the provider of custom credentials is a Provider or any other slug",
		"management USState":             "a state is its postal code, as in addresses",

		"management BioReferenceProviderDetails.webhook_secret": "an empty Secret is none",
		"management FitbitMetadata.foods_verify_token":          "an empty Secret is none",
		"management ClientFacingManagementKey.key":              "an empty Secret is none",

		"management UpsertTeamETLPipelinesBody.team_ids": "at least one team is required, because an empty list may mean all",

		"management TeamScopeRequirementsResponse":                        "it has only a list, which Teams.ScopeRequirements returns",
		"GET /v1/org/{org_id}/team/{team_id}/scope_requirements.response": "Teams.ScopeRequirements returns the list that the response has",
		"management LabAccountsResponse":                                  "it has only a list, which LabAccounts.List returns",
		"GET /v1/org/{org_id}/lab_account/{env}/{region}.response":        "LabAccounts.List returns the list that the response has",
		"GET /v1/org/{org_id}/management_key.next_cursor":                 "the response has the cursor of the next page",
	},
}

func methods() referencetest.Methods {
	return referencetest.Methods{
		API: "management", Areas: []referencetest.Area{managementReference},
		Client: func(h *http.Client) (any, error) {
			return NewClient(uuid.New(), "key", labhealth.WithBaseURL("https://api.example.com"), labhealth.WithHTTPClient(h),
				labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		},
		WithoutValidation: labhealth.WithoutValidation(),
		ThreeAttempts:     labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 3, BaseWait: 1, MaxWait: 1}),
	}
}

// The types have every field of the tables with its type, nullability and default, and every
// enumeration has its values. There are no others.
func TestReferenceTypes(t *testing.T) {
	s := referencetest.Check(t, managementReference)
	t.Logf("%d components, %d fields, %d enumerations, %d values", s.Components, s.Fields, s.Enums, s.Values)
}

func TestReferenceComplete(t *testing.T)   { methods().Complete(t) }
func TestReferenceOperations(t *testing.T) { methods().Operations(t) }
func TestReferenceRepeats(t *testing.T)    { methods().Repeats(t) }
func TestReferenceDocuments(t *testing.T)  { methods().Documents(t) }

func TestResponsesAreLosslessAndSpecified(t *testing.T) {
	referencetest.Lossless(t, referencetest.Types(managementReference))
}

func TestEveryResponseRoundTrips(t *testing.T) {
	if n := referencetest.RoundTrips(t, referencetest.Types(managementReference)); n < 40 {
		t.Errorf("only %d types", n)
	}
}
