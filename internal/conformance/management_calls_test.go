//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

// The responses of the management API, written by hand: JSON and the Go value. Each has all fields
// of its type, and an unknown one.
const (
	organisationJSON = `{"id":"6f1c9b1e-3d7a-4a55-9c0e-5b8f2d4e7a10","name":"Example Clinics","expires_at":"2030-01-31T00:00:00+00:00","plan":"scale"}`
	webhookJSON      = `{"id":"ep_2aB","url":"https://app.example.com/events","created_at":"2025-05-06T07:08:09.123456+00:00",
		"updated_at":"2025-05-07T07:08:09Z","description":"main","rate_limit":10,"disabled":false,"filter_types":["labtest.order.created"],"channels":null}`
	keyJSON = `{"id":"e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62","label":"CI","role":"team_admin",
		"team_role_bindings":[{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"},{"team_id":"d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51","new":1}],
		"creator":{"type":"org_member","id":"d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51","name":"Ada Example","email":"ada@example.com",
		"avatar":"https://example.com/ada.png","new":1},"key":"mk_team_1","created_at":"2025-05-06T07:08:09+00:00","new":1}`
	settingsJSON = `{"lab_tests_patient_sms_communication_enabled":false,"lab_tests_patient_email_communication_enabled":false,
		"critical_result_notification_email":"lab@example.com","brand_information":{"company_name":"Example Clinics","company_website":"https://example.com",
		"support_email":"help@example.com","support_contact":"+14155550123","company_address":"1 Example Street","brand_color":"#00aa00","font":"serif"},
		"logo_url":"https://example.com/logo.png","reject_duplicate_connection":true,"sdk_per_device_activity_timeseries":true,
		"partial_webhooks_enabled":true,"minor_ordering_enabled":true,"unheard_of":{}}`
	teamJSON = `{"id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","name":"Clinic","created_on":"2025-05-06T07:08:09+00:00","region":"us",
		"integration_team_id":"clinic-1","environments":["sandbox","production"],"sandbox":` + settingsJSON + `,"production":{},"members":3}`
	apiKeyJSON = `{"id":"e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62","label":"backend","value":"sk_us_1","team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40",
		"created_at":"2025-05-06T07:08:09+00:00","scopes":[]}`
	deletionJSON = `{"success":["e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62"],"failure":["d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51"],
		"not_found":["c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"],"took":1}`
	credentialsJSON = `{"id":"e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62","team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","source":"oura","client_id":"c1",
		"client_secret_hash":"9f86d0","details":` + detailsJSON + `,"app_url":"https://example.com/app","redirect_url_override":"https://example.com/back",
		"created_at":"2025-05-06T07:08:09+00:00","updated_at":"2025-05-06T07:08:09Z","status":"ok"}`
	detailsJSON = `{"fitbit":{"is_hr_enabled":true,"workout_verify_token":"t1","sleep_verify_token":"t2","body_verify_token":"t3","foods_verify_token":"t4","new":1},
		"redirect_uri":"https://example.com/back","data_scopes":["sleep"],"project_number":"42","service_account_email":"service@example.com",
		"webhook_secret":"s1","client":"c1","getlabs":{"webhook_secret_key":"k1","webhook_secret_token":"k2","new":1},
		"phlebfinders":{"account_id":"a1","account_name":"Clinic","team_id":"p1","team_name":"North","webhook_token":"t5","email":"lab@example.com","new":1},
		"sub_account_id":"sub1","sub_account_name":"Sub","allowed_billing_types":["client_bill","patient_bill"],
		"disallowed_billing_states":{"patient_bill":["NY","NJ"]},"bioreference":{"a":[1]},"quest":{"b":1.50},"allowed_business_units":["NEL"],
		"labcorp":{"account_number":"0420","billing_method":"CM","new":1},"sending_facility":"f1","sending_application":"f2",
		"receiving_facility":"f3","receiving_application":"f4","new":1}`
	labAccountJSON = `{"id":"e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62","lab":"quest","org_id":"6f1c9b1e-3d7a-4a55-9c0e-5b8f2d4e7a10","status":"active",
		"delegated_flow":"not_delegated","provider_account_id":"97500001","account_name":"Clinic","default_clinical_notes":"fasting",
		"business_units":["NEL"],"allowed_billing":{"client_bill":["AZ","CA"]},"team_id_allowlist":["c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"],"new":1}`
	scopesJSON = `{"requirements":[{"user_must_grant":["daily"],"user_may_grant":["heartrate","email"],
		"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","provider":"oura","new":1}],"new":1}`
	metricJSON = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"status":"success"},
		"values":[[1741089600,"3"],[1741093200.5,"0.25"],["x"],[1,2]],"new":1}],"new":1},"new":1}`
	pullJSON = `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","providers":{"oura":{"default":{"historical_days_to_pull":30,
		"historical_days_to_pull_limit":180,"new":1},"resource_overrides":{"sleep":{"historical_days_to_pull":7,"historical_days_to_pull_limit":90}},
		"new":1},"fitbit":{"default":{"historical_days_to_pull":1,"historical_days_to_pull_limit":180}}},"new":1}`
	preparationJSON = `{"status":"preparations_required","preparation_steps":[
		{"type":"redirect_uri","key":"uri","value":"https://example.com/cb","description":"Allow it.","order":1}],"docs":"https://example.com"}`
	pipelineJSON = `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","preferences":{"preferred":"azure_amqp",
		"enabled":["azure_amqp","svix"],"since":"2025"},"push_historical_data":true,"provider_raw_data":true,
		"cloud_pubsub":{"project":"p","topic":"events","message_ordering":true,"region":"us"},
		"rabbitmq":{"uri":"amqps://user:pass@example.com","exchange":"events","vhost":"/"},"svix":{"a":[1, 2.50]},
		"azure_amqp":{"connection_string":"Endpoint=x","default_event_hub":"rest","compression":"auto","event_hub_matchers":[
			{"event_type_prefix":"daily.","event_hub":"daily","note":""},
			{"event_type_regex":"^labtest","blob_storage":{"connection_string":"Blob=x","container_name":"lab","tier":1}}],"sas":null},
		"event_type_prefixes":["daily.","labtest."],"state":"on"}`
)

var (
	madeAt   = time.Date(2025, 5, 6, 7, 8, 9, 0, time.UTC)
	webhook1 = management.Webhook{
		ID: "ep_2aB", URL: "https://app.example.com/events", CreatedAt: madeAt.Add(123456 * time.Microsecond), UpdatedAt: madeAt.AddDate(0, 0, 1),
		Description: new("main"), RateLimit: new(int64(10)), Disabled: new(false), FilterTypes: []string{"labtest.order.created"},
	}
	managementKey1 = management.Key{
		ID: testKeyID, Label: "CI", Role: management.KeyRoleTeamAdmin, CreatedAt: madeAt,
		TeamRoleBindings: []management.TeamRoleBinding{{TeamID: testTeam}, {TeamID: secondTeam}},
		Creator: management.KeyCreator{Type: management.KeyCreatorOrgMember, ID: new(secondTeam), Name: new("Ada Example"),
			Email: new("ada@example.com"), Avatar: new("https://example.com/ada.png")},
		Key: "mk_team_1",
	}
	team1 = management.Team{
		ID: testTeam, Name: "Clinic", CreatedOn: madeAt, Region: labhealth.RegionUS, IntegrationTeamID: new("clinic-1"),
		Environments: []labhealth.TeamEnvironment{labhealth.TeamEnvironmentSandbox, labhealth.TeamEnvironmentProduction},
		Sandbox: &management.TeamSettings{
			CriticalResultNotificationEmail: new("lab@example.com"), LogoURL: new("https://example.com/logo.png"),
			BrandInformation: &management.BrandInformation{
				CompanyName: "Example Clinics", CompanyWebsite: new("https://example.com"), SupportEmail: new("help@example.com"),
				SupportContact: new("+14155550123"), CompanyAddress: new("1 Example Street"), BrandColor: new("#00aa00"),
			},
			RejectDuplicateConnection: true, SDKPerDeviceActivityTimeseries: true, PartialWebhooksEnabled: new(true), MinorOrderingEnabled: new(true),
		},
		Production: &management.TeamSettings{LabTestsPatientSMSCommunicationEnabled: true, LabTestsPatientEmailCommunicationEnabled: true,
			PartialWebhooksEnabled: new(false), MinorOrderingEnabled: new(false)},
	}
	apiKey1      = management.TeamAPIKey{ID: testKeyID, Label: "backend", Value: "sk_us_1", TeamID: testTeam, CreatedAt: madeAt}
	deletion1    = management.BatchDeletion{Success: []uuid.UUID{testKeyID}, Failure: []uuid.UUID{secondTeam}, NotFound: []uuid.UUID{testTeam}}
	credentials1 = management.TeamCustomCredentials{
		ID: testKeyID, TeamID: testTeam, Source: "oura", CreatedAt: madeAt, UpdatedAt: madeAt, ClientID: new("c1"), ClientSecretHash: new("9f86d0"),
		Details: &details1, AppURL: new("https://example.com/app"),
		RedirectURLOverride: new("https://example.com/back"),
	}
	details1 = management.CustomCredentialsDetails{
		Fitbit:      &management.FitbitCredentials{IsHREnabled: new(true), WorkoutVerifyToken: "t1", SleepVerifyToken: "t2", BodyVerifyToken: "t3", FoodsVerifyToken: "t4"},
		RedirectURI: new("https://example.com/back"), DataScopes: []string{"sleep"},
		ProjectNumber: new("42"), ServiceAccountEmail: new("service@example.com"), WebhookSecret: "s1", Client: new("c1"),
		GetLabs: &management.GetLabsCredentials{WebhookSecretKey: "k1", WebhookSecretToken: "k2"},
		PhlebFinders: &management.PhlebFindersCredentials{AccountID: "a1", AccountName: "Clinic", TeamID: "p1", TeamName: "North",
			WebhookToken: "t5", Email: "lab@example.com"},
		SubAccountID: new("sub1"), SubAccountName: new("Sub"), AllowedBillingTypes: []labhealth.Billing{labhealth.BillingClientBill, labhealth.BillingPatientBill},
		DisallowedBillingStates: map[string][]string{"patient_bill": {"NY", "NJ"}},
		BioReference:            json.RawMessage(`{"a":[1]}`), Quest: json.RawMessage(`{"b":1.50}`), AllowedBusinessUnits: []string{"NEL"},
		LabCorp:         &management.LabCorpCredentials{AccountNumber: "0420", BillingMethod: management.LabCorpBillingMethodCM},
		SendingFacility: new("f1"), SendingApplication: new("f2"), ReceivingFacility: new("f3"), ReceivingApplication: new("f4"),
	}
	labAccount1 = labhealth.LabAccount{
		ID: testKeyID, Lab: "quest", OrgID: new(testOrg), Status: labhealth.LabAccountStatusActive, DelegatedFlow: labhealth.LabAccountNotDelegated,
		ProviderAccountID: "97500001", AccountName: new("Clinic"), DefaultClinicalNotes: new("fasting"), BusinessUnits: []string{"NEL"},
		AllowedBilling:  map[labhealth.Billing][]string{labhealth.BillingClientBill: {"AZ", "CA"}},
		TeamIDAllowlist: []uuid.UUID{testTeam},
	}
	pull1 = management.TeamDataPullPreferences{TeamID: testTeam, Providers: map[string]management.ProviderDataPullPreferences{
		"oura": {
			Default:           management.HistoricalDaysToPull{HistoricalDaysToPull: 30, HistoricalDaysToPullLimit: 180},
			ResourceOverrides: map[string]management.HistoricalDaysToPull{"sleep": {HistoricalDaysToPull: 7, HistoricalDaysToPullLimit: 90}},
		},
		"fitbit": {Default: management.HistoricalDaysToPull{HistoricalDaysToPull: 1, HistoricalDaysToPullLimit: 180}},
	}}
	pipeline1 = management.ETLPipeline{
		TeamID: testTeam, PushHistoricalData: true, ProviderRawData: true,
		Preferences: labhealth.EventDestinationPreferences{
			Preferred: labhealth.EventDestinationAzureAMQP,
			Enabled:   []labhealth.EventDestination{labhealth.EventDestinationAzureAMQP, labhealth.EventDestinationSvix},
		},
		CloudPubSub: &management.CloudPubSub{Project: "p", Topic: "events", MessageOrdering: true},
		RabbitMQ:    &management.RabbitMQ{URI: "amqps://user:pass@example.com", Exchange: "events"},
		Svix:        &management.Svix{Regional: new(true)},
		AzureAMQP: &management.AzureAMQP{
			ConnectionString: "Endpoint=x", DefaultEventHub: "rest", Compression: new(management.EventHubCompressionAuto),
			EventHubMatchers: []management.EventHubMatcher{
				{EventTypePrefix: new("daily."), EventHub: new("daily")},
				{EventTypeRegex: new("^labtest"), BlobStorage: &management.BlobStorage{ConnectionString: "Blob=x", ContainerName: "lab"}},
			},
		},
		EventTypePrefixes: []string{"daily.", "labtest."},
	}
)

func pageJSON(name, element string) string {
	return `{"` + name + `":[` + element + `],"next_cursor":"c2","total":7}`
}

// Every operation: the request, and the value of the response.
func TestManagementCalls(t *testing.T) {
	scopes := func(must, may management.OAuthScope) *management.ProviderScopeRequirements {
		return &management.ProviderScopeRequirements{UserMustGrant: []management.OAuthScope{must}, UserMayGrant: []management.OAuthScope{may}}
	}
	const us, sandbox, eu, production = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox, labhealth.RegionEU, labhealth.TeamEnvironmentProduction
	const org = "/v1/org/6f1c9b1e-3d7a-4a55-9c0e-5b8f2d4e7a10"
	const teamPath = org + "/team/c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"
	const hook = teamPath + "/sandbox/webhook"
	ctx := t.Context()
	organisation := &management.Organisation{ID: testOrg, Name: "Example Clinics", ExpiresAt: new(time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC))}
	body := management.UpsertETLPipelinesBody{
		TeamIDs: []uuid.UUID{testTeam, secondTeam}, Preferences: &pipeline1.Preferences, PushHistoricalData: new(true),
		AzureAMQP: pipeline1.AzureAMQP, EventTypePrefixes: []string{"daily."},
	}
	// Responses that have another form than their type.
	rewritten := map[string]bool{
		"Teams.Resolve to an id": true, "Teams.Resolve to a field": true, "Teams.ScopeRequirements": true, "LabAccounts.List": true,
	}
	for _, test := range []struct {
		name     string
		args     []any
		sent     string // method, path, query
		body     string
		response string
		want     any
	}{
		{"Organisation.Get", nil, "GET " + org, "", organisationJSON, organisation},
		{"Organisation.Update", []any{management.UpdateOrganisationBody{Name: "New 9"}}, "PATCH " + org, `{"name":"New 9"}`, organisationJSON, organisation},

		{"Teams.List", []any{management.ListTeamsParams{TeamID: testTeam, Region: []labhealth.Region{us, eu}, SearchQuery: "a b", NextCursor: "c1"}},
			"GET " + org + "/team?next_cursor=c1&region=us&region=eu&search_query=a+b&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40", "",
			pageJSON("teams", teamJSON), &management.TeamPage{Teams: []management.Team{team1}, NextCursor: new("c2")}},
		{"Teams.Create", []any{management.CreateTeamBody{Name: "Clinic", Region: us}}, "POST " + org + "/team", `{"name":"Clinic","region":"us"}`, teamJSON, &team1},
		{"Teams.Create with all", []any{management.CreateTeamBody{
			ID: new(testTeam), Name: "Clinic", Region: eu, IntegrationTeamID: new("clinic-1"),
			LabTestsPatientSMSCommunicationEnabled: new(false), LabTestsPatientEmailCommunicationEnabled: new(true), CriticalResultNotificationEmail: new("lab@example.com"),
			BrandInformation: &management.BrandInformation{CompanyName: "Example Clinics"}, LogoURL: new("https://example.com/l"),
			RejectDuplicateConnection: new(true), SDKPerDeviceActivityTimeseries: new(false), PartialWebhooksEnabled: new(true), MinorOrderingEnabled: new(false),
		}}, "POST " + org + "/team", `{"id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","name":"Clinic","region":"eu","integration_team_id":"clinic-1","lab_tests_patient_sms_communication_enabled":false,
			"lab_tests_patient_email_communication_enabled":true,"critical_result_notification_email":"lab@example.com",
			"brand_information":{"company_name":"Example Clinics"},"logo_url":"https://example.com/l","reject_duplicate_connection":true,
			"sdk_per_device_activity_timeseries":false,"partial_webhooks_enabled":true,"minor_ordering_enabled":false}`, teamJSON, &team1},
		{"Teams.Get", []any{testTeam, management.GetTeamParams{IncludeEnvironment: []labhealth.TeamEnvironment{sandbox, production}}},
			"GET " + teamPath + "?include_environment=sandbox&include_environment=production", "", teamJSON, &team1},
		{"Teams.Update with nothing", []any{testTeam, management.UpdateTeamBody{}},
			"PATCH " + teamPath, `{}`, teamJSON, &team1},
		{"Teams.Update with nulls", []any{testTeam, management.UpdateTeamBody{
			IntegrationTeamID: labhealth.Null[string](),
			Sandbox: labhealth.Value(management.UpdateTeamSettings{CriticalResultNotificationEmail: labhealth.Null[string](),
				BrandInformation: labhealth.Null[management.UpdateBrandInformationBody](), LogoURL: labhealth.Null[string]()}),
			Production: labhealth.Null[management.UpdateTeamSettings](),
		}}, "PATCH " + teamPath, `{"integration_team_id":null,"production":null,
			"sandbox":{"critical_result_notification_email":null,"brand_information":null,"logo_url":null}}`, teamJSON, &team1},
		{"Teams.Update with values", []any{testTeam, management.UpdateTeamBody{
			Name: new("Other"), IntegrationTeamID: labhealth.Value("clinic-2"),
			Sandbox: labhealth.Value(management.UpdateTeamSettings{}),
			Production: labhealth.Value(management.UpdateTeamSettings{
				LabTestsPatientSMSCommunicationEnabled: new(false), LabTestsPatientEmailCommunicationEnabled: new(true),
				CriticalResultNotificationEmail: labhealth.Value("lab@example.com"), LogoURL: labhealth.Value("https://example.com/l"),
				BrandInformation:          labhealth.Value(management.UpdateBrandInformationBody{SupportEmail: labhealth.Value("help@example.com")}),
				RejectDuplicateConnection: new(true), SDKPerDeviceActivityTimeseries: new(false), PartialWebhooksEnabled: new(true),
				MinorOrderingEnabled: new(false), PatientExperience: new(true),
			}),
		}}, "PATCH " + teamPath, `{"name":"Other","integration_team_id":"clinic-2","sandbox":{},"production":{"lab_tests_patient_sms_communication_enabled":false,
			"lab_tests_patient_email_communication_enabled":true,"critical_result_notification_email":"lab@example.com","logo_url":"https://example.com/l",
			"brand_information":{"support_email":"help@example.com"},"reject_duplicate_connection":true,"sdk_per_device_activity_timeseries":false,
			"partial_webhooks_enabled":true,"minor_ordering_enabled":false,"patient_experience":true}}`,
			teamJSON, &team1},
		{"Teams.UpdateBrandInformation", []any{testTeam, production, management.UpdateBrandInformationBody{
			CompanyName: labhealth.Value("Example Clinics"), SupportContact: labhealth.Null[string](), BrandColor: labhealth.Value(""),
		}}, "PATCH " + teamPath, `{"production":{"brand_information":{"company_name":"Example Clinics","support_contact":null,"brand_color":""}}}`, teamJSON, &team1},
		{"Teams.UpdateBrandInformation of all", []any{testTeam, sandbox, management.UpdateBrandInformationBody{
			CompanyName: labhealth.Null[string](), CompanyWebsite: labhealth.Value("https://example.com"), SupportEmail: labhealth.Null[string](),
			SupportContact: labhealth.Value("chat"), CompanyAddress: labhealth.Null[string](), BrandColor: labhealth.Null[string](),
		}}, "PATCH " + teamPath, `{"sandbox":{"brand_information":{"company_name":null,"company_website":"https://example.com","support_email":null,
			"support_contact":"chat","company_address":null,"brand_color":null}}}`, teamJSON, &team1},
		{"Teams.ScopeRequirements", []any{testTeam, management.ScopeRequirementsParams{Provider: labhealth.ProviderOura}},
			"GET " + teamPath + "/scope_requirements?provider=oura", "", scopesJSON, []management.TeamScopeRequirements{{
				UserMustGrant: []management.OAuthScope{management.OuraScopeDaily}, UserMayGrant: []management.OAuthScope{management.OuraScopeHeartRate, management.OuraScopeEmail},
				TeamID: testTeam, Provider: labhealth.ProviderOura}}},
		{"Teams.UpsertScopeRequirements", []any{testTeam, management.UpsertScopeRequirementsBody{
			Fitbit:         scopes(management.FitbitScopeHeartRate, management.FitbitScopeSleep),
			GoogleFit:      scopes(management.GoogleFitScopeOpenID, management.GoogleFitScopeHeartRate),
			GoogleHealth:   scopes(management.GoogleHealthScopeECG, management.GoogleHealthScopeMetrics),
			Oura:           scopes(management.OuraScopeDaily, management.OuraScopeEmail),
			Strava:         scopes(management.StravaScopeActivityReadAll, management.StravaScopeProfileReadAll),
			Withings:       scopes(management.WithingsScopeMetrics, management.WithingsScopeSleepEvents),
			Wahoo:          scopes(management.WahooScopeUserRead, management.WahooScopeOfflineData),
			WhoopV2:        scopes(management.WhoopScopeSleep, management.WhoopScopeOffline),
			MyFitnessPalV2: &management.ProviderScopeRequirements{},
		}}, "POST " + teamPath + "/scope_requirements", `{"fitbit":{"user_must_grant":["heartrate"],"user_may_grant":["sleep"]},
			"google_fit":{"user_must_grant":["openid"],"user_may_grant":["https://www.googleapis.com/auth/fitness.heart_rate.read"]},
			"google_health":{"user_must_grant":["https://www.googleapis.com/auth/googlehealth.ecg.readonly"],
				"user_may_grant":["https://www.googleapis.com/auth/googlehealth.health_metrics_and_measurements.readonly"]},
			"oura":{"user_must_grant":["daily"],"user_may_grant":["email"]},"strava":{"user_must_grant":["activity:read_all"],"user_may_grant":["profile:read_all"]},
			"withings":{"user_must_grant":["user.metrics"],"user_may_grant":["user.sleepevents"]},"wahoo":{"user_must_grant":["user_read"],"user_may_grant":["offline_data"]},
			"whoop_v2":{"user_must_grant":["read:sleep"],"user_may_grant":["offline"]},"my_fitness_pal_v2":{"user_must_grant":[],"user_may_grant":[]}}`, `{"ok":true}`, nil},
		{"Teams.Delete", []any{testTeam}, "DELETE " + teamPath, "", `{"success":true}`, nil},
		{"Teams.Resolve", []any{"clinic-1"},
			"POST " + org + "/resolve_team", `{"integration_team_id":"clinic-1"}`, teamJSON, &team1},
		{"Teams.Resolve to an id", []any{"clinic-1"},
			"POST " + org + "/resolve_team", `{"integration_team_id":"clinic-1"}`, `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"}`, &management.Team{ID: testTeam}},
		{"Teams.Resolve to a field", []any{"clinic-1"},
			"POST " + org + "/resolve_team", `{"integration_team_id":"clinic-1"}`, `{"team":` + teamJSON + `}`, &team1},
		{"Teams.CreateAccessToken", []any{testTeam, production},
			"POST " + teamPath + "/create_api_access_token", `{"env":"production"}`, `{"access_token":"at_1","expires_in":600,"new":1}`,
			&management.AccessToken{AccessToken: "at_1", ExpiresIn: 600}},

		{"Keys.List", []any{management.ListKeysParams{TeamID: testTeam, Role: management.KeyRoleTeamAdmin, NextCursor: "c1"}},
			"GET " + org + "/management_key?next_cursor=c1&role=team_admin&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40", "",
			pageJSON("data", keyJSON), &management.KeyPage{Data: []management.Key{managementKey1}, NextCursor: new("c2")}},
		{"Keys.Create", []any{management.CreateKeyBody{Label: "CI", Role: management.KeyRoleTeamAdmin,
			TeamRoleBindings: []management.TeamRoleBinding{{TeamID: testTeam}, {TeamID: secondTeam}}}}, "POST " + org + "/management_key", `{"label":"CI","role":"team_admin","team_role_bindings":[
			{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"},{"team_id":"d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51"}]}`, keyJSON, &managementKey1},
		{"Keys.Update", []any{testKeyID, management.UpdateKeyBody{Label: new("CI 2")}},
			"PATCH " + org + "/management_key/e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62", `{"label":"CI 2"}`, keyJSON, &managementKey1},
		{"Keys.Delete", []any{testKeyID},
			"DELETE " + org + "/management_key/e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62", "", `null`, nil},

		{"Webhooks.List", []any{testTeam, sandbox, management.ListWebhooksParams{NextCursor: "c1", Limit: 5}},
			"GET " + hook + "?limit=5&next_cursor=c1", "", pageJSON("data", webhookJSON), &management.WebhookPage{Data: []management.Webhook{webhook1}, NextCursor: new("c2")}},
		{"Webhooks.Create", []any{testTeam, sandbox, management.CreateWebhookBody{URL: "https://app.example.com/events"}},
			"POST " + hook, `{"url":"https://app.example.com/events"}`, webhookJSON, &webhook1},
		{"Webhooks.Create with all", []any{testTeam, production, management.CreateWebhookBody{URL: "https://app.example.com/events", Description: new("main"),
			RateLimit: new(int64(10)), Disabled: new(true), FilterTypes: []string{"a", "b"}, Secret: "whsec_1"}}, "POST " + teamPath + "/production/webhook", `{"url":"https://app.example.com/events","description":"main","rate_limit":10,"disabled":true,
			"filter_types":["a","b"],"secret":"whsec_1"}`, webhookJSON, &webhook1},
		{"Webhooks.Get", []any{testTeam, sandbox, "ep/2?a"}, "GET " + hook + "/ep%2F2%3Fa", "", webhookJSON, &webhook1},
		{"Webhooks.Update with nulls", []any{testTeam, sandbox, "ep_2aB", management.UpdateWebhookBody{Description: labhealth.Null[string](), RateLimit: labhealth.Null[int64](), FilterTypes: labhealth.Null[[]string]()}},
			"PATCH " + hook + "/ep_2aB", `{"description":null,"rate_limit":null,"filter_types":null}`, webhookJSON, &webhook1},
		{"Webhooks.Update with values", []any{testTeam, sandbox, "ep_2aB", management.UpdateWebhookBody{URL: new("https://b.example.com"), Description: labhealth.Value(""),
			RateLimit: labhealth.Value[int64](3), Disabled: new(false), FilterTypes: labhealth.Value([]string{"a"})}}, "PATCH " + hook + "/ep_2aB", `{"url":"https://b.example.com","description":"","rate_limit":3,"disabled":false,"filter_types":["a"]}`, webhookJSON, &webhook1},
		{"Webhooks.Delete", []any{testTeam, sandbox, "ep_2aB"}, "DELETE " + hook + "/ep_2aB", "", "", nil},
		{"Webhooks.Headers", []any{testTeam, sandbox, "ep_2aB"}, "GET " + hook + "/ep_2aB/headers", "",
			`{"headers":{"X-A":"1"},"sensitive":["Authorization"],"new":1}`,
			&management.WebhookHeaders{Headers: map[string]labhealth.Secret{"X-A": "1"}, Sensitive: []string{"Authorization"}}},
		{"Webhooks.ReplaceHeaders", []any{testTeam, sandbox, "ep_2aB", map[string]labhealth.Secret{"X-A": "1", "Authorization": "Bearer x"}},
			"PUT " + hook + "/ep_2aB/headers", `{"headers":{"X-A":"1","Authorization":"Bearer x"}}`, "", nil},
		{"Webhooks.ReplaceHeaders with none", []any{testTeam, sandbox, "ep_2aB", nil},
			"PUT " + hook + "/ep_2aB/headers", `{"headers":{}}`, "", nil},
		{"Webhooks.Secret", []any{testTeam, sandbox, "ep_2aB"}, "GET " + hook + "/ep_2aB/secret", "",
			`{"key":"whsec_1","new":1}`, &management.WebhookSecret{Key: "whsec_1"}},
		{"Webhooks.RotateSecret", []any{testTeam, sandbox, "ep_2aB", "whsec_2"},
			"POST " + hook + "/ep_2aB/secret/rotate", `{"key":"whsec_2"}`, "", nil},
		{"Webhooks.RotateSecret of the service", []any{testTeam, sandbox, "ep_2aB", ""},
			"POST " + hook + "/ep_2aB/secret/rotate", `{}`, "", nil},

		{"Webhooks.EventDeliveryMetric", []any{testTeam, sandbox, management.EventDeliveryMetricParams{Interval: management.MetricInterval15Minutes}},
			"GET " + teamPath + "/sandbox/event_delivery_metric?interval=15m", "", metricJSON, &management.PrometheusQueryResponse{
				Status: "success", Data: management.PrometheusQueryData{ResultType: "matrix", Result: []management.PrometheusQueryResult{{
					Metric: map[string]string{"status": "success"},
					Values: [][]json.RawMessage{{[]byte(`1741089600`), []byte(`"3"`)}, {[]byte(`1741093200.5`), []byte(`"0.25"`)}, {[]byte(`"x"`)}, {[]byte(`1`), []byte(`2`)}},
				}}}}},
		{"Webhooks.EventDeliveryMetric by default", []any{testTeam, production, management.EventDeliveryMetricParams{}},
			"GET " + teamPath + "/production/event_delivery_metric", "", `{"status":"success","data":{"resultType":"matrix","result":[]}}`,
			&management.PrometheusQueryResponse{Status: "success", Data: management.PrometheusQueryData{ResultType: "matrix", Result: []management.PrometheusQueryResult{}}}},

		{"LabAccounts.List", []any{sandbox, us, management.ListLabAccountsParams{LabAccountID: testKeyID, TeamID: testTeam, Status: labhealth.LabAccountStatusActive}},
			"GET " + org + "/lab_account/sandbox/us?lab_account_id=e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62&status=active&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40", "",
			`{"data":[` + labAccountJSON + `],"new":1}`, []labhealth.LabAccount{labAccount1}},
		{"LabAccounts.UpdateTeamIDAllowlist", []any{production, eu, testKeyID, []uuid.UUID{testTeam, secondTeam}},
			"PATCH " + org + "/lab_account/production/eu/e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62",
			`{"team_id_allowlist":["c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51"]}`,
			`{"lab_account":` + labAccountJSON + `,"new":1}`, &management.LabAccountResponse{LabAccount: &labAccount1}},
		{"LabAccounts.UpdateTeamIDAllowlist to none", []any{sandbox, us, testKeyID, nil},
			"PATCH " + org + "/lab_account/sandbox/us/e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62", `{"team_id_allowlist":[]}`, `{"lab_account":null}`, &management.LabAccountResponse{}},

		{"TeamAPIKeys.List", []any{production, eu, management.ListTeamAPIKeysParams{TeamID: testTeam, NextCursor: "c1"}},
			"GET " + org + "/team_api_keys/production/eu?next_cursor=c1&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40", "",
			pageJSON("api_keys", apiKeyJSON), &management.TeamAPIKeyPage{APIKeys: []management.TeamAPIKey{apiKey1}, NextCursor: new("c2")}},
		{"TeamAPIKeys.Create", []any{sandbox, us, management.CreateTeamAPIKeyBody{Label: "backend", TeamID: testTeam}},
			"POST " + org + "/team_api_keys/sandbox/us", `{"label":"backend","team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"}`, apiKeyJSON, &apiKey1},
		{"TeamAPIKeys.Delete", []any{sandbox, us, []uuid.UUID{testKeyID, testTeam}},
			"DELETE " + org + "/team_api_keys/sandbox/us?api_key_id=e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62&api_key_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40", "",
			deletionJSON, &deletion1},

		{"CustomCredentials.List", []any{sandbox, us, management.ListTeamCustomCredentialsParams{TeamID: []uuid.UUID{testTeam, secondTeam}, Provider: "quest", NextCursor: "c1"}},
			"GET " + org + "/team_custom_credentials/sandbox/us?next_cursor=c1&provider=quest&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40&team_id=d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51", "",
			pageJSON("credentials", credentialsJSON), &management.TeamCustomCredentialsPage{Credentials: []management.TeamCustomCredentials{credentials1}, NextCursor: new("c2")}},
		{"CustomCredentials.Upsert", []any{sandbox, us, management.UpsertTeamCustomCredentialsBody{TeamID: testTeam, Provider: "oura", ClientID: new("c1"),
			ClientSecret: "s1", Details: &management.CustomCredentialsDetails{WebhookSecret: "s2"}, RedirectURLOverride: new("https://example.com/back")}}, "POST " + org + "/team_custom_credentials/sandbox/us", `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","provider":"oura","client_id":"c1",
			"client_secret":"s1","details":{"webhook_secret":"s2"},"redirect_url_override":"https://example.com/back"}`, credentialsJSON, &credentials1},
		{"CustomCredentials.Upsert of details", []any{sandbox, us, management.UpsertTeamCustomCredentialsBody{TeamID: testTeam, Provider: labhealth.ProviderFitbit, Details: &details1}},
			"POST " + org + "/team_custom_credentials/sandbox/us", `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","provider":"fitbit","details":` +
				strings.ReplaceAll(detailsJSON, `,"new":1`, "") + `}`, credentialsJSON, &credentials1},
		{"CustomCredentials.Delete", []any{sandbox, us, []uuid.UUID{testKeyID}},
			"DELETE " + org + "/team_custom_credentials/sandbox/us?credential_id=e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62", "", deletionJSON, &deletion1},
		{"CustomCredentials.Prepare", []any{testTeam, sandbox, us, "oura"},
			"POST " + org + "/prepare_team_custom_credentials/sandbox/us", `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","provider":"oura"}`, preparationJSON,
			&management.TeamCustomCredentialsPreparation{Status: management.PreparationStatusPreparationsRequired, PreparationSteps: []management.PreparationStep{
				{Type: "redirect_uri", Key: new("uri"), Value: "https://example.com/cb", Description: new("Allow it.")}}}},

		{"Pipelines.List", []any{sandbox, us, management.ListETLPipelinesParams{TeamID: testTeam, NextCursor: "c1"}},
			"GET " + org + "/team_etl_pipelines/sandbox/us?next_cursor=c1&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40", "",
			pageJSON("pipelines", pipelineJSON), &management.ETLPipelinePage{Pipelines: []management.ETLPipeline{pipeline1}, NextCursor: new("c2")}},
		{"Pipelines.Upsert", []any{sandbox, us, body},
			"POST " + org + "/team_etl_pipelines/sandbox/us", `{"team_ids":["c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51"],
			"preferences":{"preferred":"azure_amqp","enabled":["azure_amqp","svix"]},"push_historical_data":true,"azure_amqp":{"connection_string":"Endpoint=x","default_event_hub":"rest","compression":"auto",
			"event_hub_matchers":[{"event_type_prefix":"daily.","event_hub":"daily"},
			{"event_type_regex":"^labtest","blob_storage":{"connection_string":"Blob=x","container_name":"lab"}}]},"event_type_prefixes":["daily."]}`,
			"[" + pipelineJSON + "," + pipelineJSON + "]", []management.ETLPipeline{pipeline1, pipeline1}},
		{"Pipelines.Upsert of other destinations", []any{sandbox, us, management.UpsertETLPipelinesBody{TeamIDs: []uuid.UUID{testTeam},
			CloudPubSub: &management.CloudPubSub{Project: "p", Topic: "events"}, Svix: &management.Svix{},
			RabbitMQ: &management.RabbitMQ{URI: "amqps://example.com", Exchange: "events"}}}, "POST " + org + "/team_etl_pipelines/sandbox/us", `{"team_ids":["c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"],
			"cloud_pubsub":{"project":"p","topic":"events","message_ordering":false},"svix":{},"rabbitmq":{"uri":"amqps://example.com","exchange":"events"}}`,
			"[]", []management.ETLPipeline{}},
		{"Pipelines.Delete", []any{sandbox, us, []uuid.UUID{testTeam, secondTeam}},
			"DELETE " + org + "/team_etl_pipelines/sandbox/us?team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40&team_id=d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51", "",
			"[" + pipelineJSON + "]", []management.ETLPipeline{pipeline1}},

		{"DataPullPreferences.List", []any{sandbox, us, management.ListTeamDataPullPreferencesParams{
			TeamID: []uuid.UUID{testTeam, secondTeam}, Provider: []labhealth.Provider{"oura", "fitbit"}, NextCursor: "c1", Limit: 2}}, "GET " + org + "/team_data_pull_preferences/sandbox/us?limit=2&next_cursor=c1&provider=oura&provider=fitbit" +
			"&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40&team_id=d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51", "", pageJSON("data_pull_preferences", pullJSON),
			&management.TeamDataPullPreferencesPage{DataPullPreferences: []management.TeamDataPullPreferences{pull1}, NextCursor: new("c2")}},
		{"DataPullPreferences.Upsert", []any{production, eu, management.UpsertTeamDataPullPreferencesBody{
			TeamIDs: []uuid.UUID{testTeam}, Providers: map[string]management.UpsertProviderDataPullPreferences{
				"oura": {
					Default:           management.UpsertHistoricalDaysToPull{HistoricalDaysToPull: 30},
					ResourceOverrides: map[string]management.UpsertHistoricalDaysToPull{"sleep": {HistoricalDaysToPull: 7}},
				},
				"fitbit": {},
			}}}, "POST " + org + "/team_data_pull_preferences/production/eu", `{"team_ids":["c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"],"providers":{
			"oura":{"default":{"historical_days_to_pull":30},"resource_overrides":{"sleep":{"historical_days_to_pull":7}}},
			"fitbit":{"default":{"historical_days_to_pull":0}}}}`, `{"data_pull_preferences":[` + pullJSON + `]}`,
			&management.TeamDataPullPreferencesPage{DataPullPreferences: []management.TeamDataPullPreferences{pull1}}},
		{"DataPullPreferences.Delete", []any{sandbox, us, []uuid.UUID{testTeam}, []labhealth.Provider{labhealth.ProviderOura, labhealth.ProviderFitbit}},
			"DELETE " + org + "/team_data_pull_preferences/sandbox/us?provider=oura&provider=fitbit&team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40", "", "{}", nil},
		{"DataPullPreferences.Delete of all providers", []any{sandbox, us, []uuid.UUID{testTeam, secondTeam}, nil},
			"DELETE " + org + "/team_data_pull_preferences/sandbox/us?team_id=c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40&team_id=d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51", "", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := 200
			if test.response == "" {
				status = 204
			}
			var debug strings.Builder
			c, s := managing(t, []reply{{status: status, body: test.response}}, labhealth.WithDebug(&debug))
			method, _, _ := strings.Cut(test.name, " ")
			got, err := callMethod(ctx, c, method, test.args)
			if err != nil {
				t.Fatal(err)
			}
			checkDebug(t, debug.String(), managementKey, test.body, test.response)
			r := s.only(t)
			equal(t, test.sent, r.Method+" "+strings.TrimPrefix(r.URL, managementURL))
			if test.body == "" {
				equal(t, "", r.Body)
			} else {
				equal(t, jsonData(t, test.body), jsonData(t, r.Body))
			}
			if test.want == nil {
				return
			}
			equal(t, test.want, got)
			if kept, ok := got.(interface{ Malformed() []labhealth.Malformed }); ok && kept.Malformed() != nil {
				t.Errorf("malformed: %v", kept.Malformed())
			}
			if !rewritten[test.name] { // What came is written again.
				equal(t, jsonData(t, test.response), jsonData(t, mustEncode(t, got)))
			}
		})
	}
}

// Lists are read page by page, and a cursor that does not advance is an error.
func TestManagementAll(t *testing.T) {
	ctx := t.Context()
	const sandbox, us = labhealth.TeamEnvironmentSandbox, labhealth.RegionUS
	for name, test := range map[string]struct {
		member string
		all    func(*management.Client) (int, error)
		first  string
	}{
		"teams": {"teams", func(c *management.Client) (int, error) {
			return count(c.Teams.All(ctx, management.ListTeamsParams{}))
		}, teamJSON},
		"keys": {"data", func(c *management.Client) (int, error) {
			return count(c.Keys.All(ctx, management.ListKeysParams{}))
		}, keyJSON},
		"webhooks": {"data", func(c *management.Client) (int, error) {
			return count(c.Webhooks.All(ctx, testTeam, sandbox, management.ListWebhooksParams{}))
		}, webhookJSON},
		"team API keys": {"api_keys", func(c *management.Client) (int, error) {
			return count(c.TeamAPIKeys.All(ctx, sandbox, us, management.ListTeamAPIKeysParams{}))
		}, apiKeyJSON},
		"credentials": {"credentials", func(c *management.Client) (int, error) {
			return count(c.CustomCredentials.All(ctx, sandbox, us, management.ListTeamCustomCredentialsParams{}))
		}, credentialsJSON},
		"pipelines": {"pipelines", func(c *management.Client) (int, error) {
			return count(c.Pipelines.All(ctx, sandbox, us, management.ListETLPipelinesParams{}))
		}, pipelineJSON},
		"data pull preferences": {"data_pull_preferences", func(c *management.Client) (int, error) {
			return count(c.DataPullPreferences.All(ctx, sandbox, us, management.ListTeamDataPullPreferencesParams{}))
		}, pullJSON},
	} {
		t.Run(name, func(t *testing.T) {
			second := strings.NewReplacer("c2a7e5d4-0b1f", "c2a7e5d4-0000", "e4c9a7f6-2d31", "e4c9a7f6-0000", "ep_2aB", "ep_3").Replace(test.first)
			last := strings.Replace(pageJSON(test.member, second), `"c2"`, "null", 1)
			client, s := managing(t, []reply{{status: 200, body: pageJSON(test.member, test.first)}, {status: 200, body: last}})
			n, err := test.all(client)
			if n != 2 || err != nil {
				t.Errorf("%d elements, %v", n, err)
			}
			if len(s.sent) != 2 || !strings.HasSuffix(s.sent[1].URL, "next_cursor=c2") {
				t.Errorf("%v", s.sent)
			}
			client, _ = managing(t, []reply{{status: 200, body: pageJSON(test.member, test.first)}, {status: 200, body: pageJSON(test.member, second)}})
			n, err = test.all(client)
			var bad *labhealth.DecodeError
			if n != 1 || !errors.As(err, &bad) || bad.Reason != "it leads back to a page before it" {
				t.Errorf("a cursor that does not advance: %d elements, %v", n, err)
			}
			client, _ = managing(t, []reply{{status: 200, body: pageJSON(test.member, test.first)}, {status: 403, body: `{}`}})
			if n, err = test.all(client); n != 1 || !errors.Is(err, labhealth.ErrForbidden) {
				t.Errorf("a rejected page: %d elements, %v", n, err)
			}
		})
	}
}

func count[E any](all iter.Seq2[*E, error]) (n int, err error) {
	for _, err = range all {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Invalid requests are not sent.
func TestManagementValidation(t *testing.T) {
	const us, sandbox = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox
	ctx := t.Context()
	for name, test := range map[string]struct {
		method string
		args   []any
		want   string
	}{
		"organisation": {"Organisation.Update", []any{management.UpdateOrganisationBody{}}, "PATCH /v1/org/{org_id}: not sent: body.name is required"},
		"team": {"Teams.Create", []any{management.CreateTeamBody{}},
			"POST /v1/org/{org_id}/team: not sent: body.name is required; body.region is required"},
		"nil team": {"Teams.Delete", []any{uuid.Nil},
			"DELETE /v1/org/{org_id}/team/{team_id}: not sent: path.team_id must not be the nil UUID"},
		"new team": {"Teams.Create", []any{management.CreateTeamBody{ID: &uuid.Nil, Name: "a;b", Region: us, IntegrationTeamID: new(strings.Repeat("é", 257)),
			LogoURL: new(""), BrandInformation: &management.BrandInformation{}}}, "POST /v1/org/{org_id}/team: not sent: body.id must be left out or be a UUID that is not nil; " +
			"body.name must hold only letters, digits, spaces and (),/:'|&_-’; body.integration_team_id must have at most 256 characters; " +
			"body.logo_url is required: 1 to 2083 characters; body.brand_information.company_name is required"},
		"changed team": {"Teams.Update", []any{testTeam, management.UpdateTeamBody{Name: new(strings.Repeat("é", 81)), IntegrationTeamID: labhealth.Value(strings.Repeat("a", 257)),
			Sandbox:    labhealth.Value(management.UpdateTeamSettings{LogoURL: labhealth.Value("")}),
			Production: labhealth.Value(management.UpdateTeamSettings{LogoURL: labhealth.Value(strings.Repeat("a", 2084))})}}, "PATCH /v1/org/{org_id}/team/{team_id}: not sent: body.name must have at most 80 characters; " +
			"body.integration_team_id must have at most 256 characters; body.sandbox.logo_url is required: 1 to 2083 characters; " +
			"body.production.logo_url must have at most 2083 characters"},
		"search": {"Teams.List", []any{management.ListTeamsParams{SearchQuery: "a;b×"}},
			"GET /v1/org/{org_id}/team: not sent: query.search_query must hold only letters, digits, spaces and (),/:'|&_-’"},
		"brand of no environment": {"Teams.UpdateBrandInformation", []any{testTeam, "", management.UpdateBrandInformationBody{}},
			"PATCH /v1/org/{org_id}/team/{team_id}: not sent: environment must be production or sandbox"},
		"reference": {"Teams.Resolve", []any{""},
			"POST /v1/org/{org_id}/resolve_team: not sent: body.integration_team_id is required"},
		"token": {"Teams.CreateAccessToken", []any{testTeam, ""},
			"POST /v1/org/{org_id}/team/{team_id}/create_api_access_token: not sent: body.env is required"},
		"key": {"Keys.Create", []any{management.CreateKeyBody{TeamRoleBindings: []management.TeamRoleBinding{{TeamID: testTeam}, {}}}},
			"POST /v1/org/{org_id}/management_key: not sent: body.label is required; body.role is required; " +
				"body.team_role_bindings.1.team_id is required: a UUID that is not nil"},
		"webhook": {"Webhooks.Create", []any{testTeam, sandbox, management.CreateWebhookBody{}},
			"POST /v1/org/{org_id}/team/{team_id}/{environment}/webhook: not sent: body.url is required"},
		"webhook of no environment": {"Webhooks.Get", []any{testTeam, "", "ep_1"},
			"GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}: not sent: path.environment must not be empty, or hold dot segments or control characters"},
		"webhook page": {"Webhooks.List", []any{testTeam, sandbox, management.ListWebhooksParams{Limit: -1}},
			"GET /v1/org/{org_id}/team/{team_id}/{environment}/webhook: not sent: query.limit must be at least 0"},
		"team API key": {"TeamAPIKeys.Create", []any{sandbox, us, management.CreateTeamAPIKeyBody{}},
			"POST /v1/org/{org_id}/team_api_keys/{env}/{region}: not sent: body.label is required; body.team_id is required: a UUID that is not nil"},
		"no keys to delete": {"TeamAPIKeys.Delete", []any{sandbox, us, nil},
			"DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}: not sent: query.api_key_id is required: at least one id"},
		"nil credentials to delete": {"CustomCredentials.Delete", []any{sandbox, us, []uuid.UUID{testKeyID, uuid.Nil}},
			"DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}: not sent: query.credential_id.1 is required: a UUID that is not nil"},
		"credentials": {"CustomCredentials.Upsert", []any{sandbox, us, management.UpsertTeamCustomCredentialsBody{}},
			"POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}: not sent: body.team_id is required: a UUID that is not nil; body.provider is required"},
		"details": {"CustomCredentials.Upsert", []any{sandbox, us, management.UpsertTeamCustomCredentialsBody{TeamID: testTeam, Provider: "fitbit",
			Details: &management.CustomCredentialsDetails{
				Fitbit: &management.FitbitCredentials{}, GetLabs: &management.GetLabsCredentials{}, LabCorp: &management.LabCorpCredentials{},
				PhlebFinders: &management.PhlebFindersCredentials{}, RedirectURI: new("x"), ProjectNumber: new("1"), ReceivingFacility: new("f"),
			}}}, "POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}: not sent: body.details.data_scopes is required; " +
			"body.details.service_account_email is required; body.details.sending_facility is required; body.details.sending_application is required; " +
			"body.details.receiving_application is required; body.details.fitbit.workout_verify_token is required; " +
			"body.details.fitbit.sleep_verify_token is required; body.details.fitbit.body_verify_token is required; " +
			"body.details.getlabs.webhook_secret_key is required; body.details.getlabs.webhook_secret_token is required; " +
			"body.details.labcorp.account_number is required; body.details.labcorp.billing_method is required; " +
			"body.details.phlebfinders.account_id is required; body.details.phlebfinders.account_name is required; " +
			"body.details.phlebfinders.team_id is required; body.details.phlebfinders.team_name is required; " +
			"body.details.phlebfinders.webhook_token is required; body.details.phlebfinders.email is required"},
		"preferences": {"DataPullPreferences.Upsert", []any{sandbox, us, management.UpsertTeamDataPullPreferencesBody{}},
			"POST /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}: not sent: body.team_ids is required: at least one team; body.providers is required"},
		"preferences page": {"DataPullPreferences.List", []any{sandbox, us, management.ListTeamDataPullPreferencesParams{Limit: -1}},
			"GET /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}: not sent: query.limit must be at least 0"},
		"no preferences to delete": {"DataPullPreferences.Delete", []any{sandbox, us, nil, nil},
			"DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}: not sent: query.team_id is required: at least one team"},
		"preferences of no provider": {"DataPullPreferences.Delete", []any{sandbox, us, []uuid.UUID{testTeam}, []labhealth.Provider{}},
			"DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}: not sent: query.provider must be nil for all providers, or have at least one provider"},
		"preferences of a provider without a name": {"DataPullPreferences.Delete", []any{sandbox, us, []uuid.UUID{testTeam}, []labhealth.Provider{"oura", ""}},
			"DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}: not sent: query.provider.1 is required"},
		"preferences of a nil team": {"DataPullPreferences.List", []any{sandbox, us, management.ListTeamDataPullPreferencesParams{TeamID: []uuid.UUID{uuid.Nil}}},
			"GET /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}: not sent: query.team_id.0 is required: a UUID that is not nil"},
		"credentials of a nil team": {"CustomCredentials.List", []any{sandbox, us, management.ListTeamCustomCredentialsParams{TeamID: []uuid.UUID{uuid.Nil}}},
			"GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}: not sent: query.team_id.0 is required: a UUID that is not nil"},
		"lab account": {"LabAccounts.UpdateTeamIDAllowlist", []any{sandbox, us, testKeyID, []uuid.UUID{testTeam, uuid.Nil}},
			"PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}: not sent: body.team_id_allowlist.1 is required: a UUID that is not nil"},
		"pipelines": {"Pipelines.Upsert", []any{sandbox, us, management.UpsertETLPipelinesBody{}},
			"POST /v1/org/{org_id}/team_etl_pipelines/{env}/{region}: not sent: body.team_ids is required: at least one team"},
		"destinations": {"Pipelines.Upsert", []any{sandbox, us, management.UpsertETLPipelinesBody{
			TeamIDs: []uuid.UUID{testTeam, uuid.Nil}, Preferences: &labhealth.EventDestinationPreferences{}, CloudPubSub: &management.CloudPubSub{},
			RabbitMQ: &management.RabbitMQ{}, AzureAMQP: &management.AzureAMQP{},
		}}, "POST /v1/org/{org_id}/team_etl_pipelines/{env}/{region}: not sent: body.team_ids.1 is required: a UUID that is not nil; " +
			"body.preferences.preferred is required; body.cloud_pubsub.project is required; body.cloud_pubsub.topic is required; " +
			"body.rabbitmq.uri is required; body.rabbitmq.exchange is required; body.azure_amqp.connection_string is required; " +
			"body.azure_amqp.default_event_hub is required"},
		"no pipelines to delete": {"Pipelines.Delete", []any{sandbox, us, nil},
			"DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}: not sent: query.team_id is required: at least one id"},
	} {
		c, s := managing(t, nil)
		_, err := callMethod(ctx, c, test.method, test.args)
		if diff := cmp.Diff("labhealth: "+test.want, errorText(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(s.sent) > 0 || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent {
			t.Errorf("%s: %d requests, outcome %s", name, len(s.sent), labhealth.OutcomeOf(err))
		}
	}
}
