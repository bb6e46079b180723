package conformance

import (
	"encoding/json"

	"github.com/labhealth/labhealth-go"
)

const (
	teamDetailsJSON = `{"id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "org_id": "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31", "name": "Example Team",
		"svix_app_id": "app_1", "client_id": "client-1", "client_secret": "secret-1", "airtable_api_key": "key-1", "airtable_base_id": "base-1",
		"webhook_secret": "whsec_1", "api_key": "sk_us_1",
		"api_keys": [{"label": "Default", "value": "sk_us_1", "team_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
			"id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", "created_at": "2025-03-04T12:00:00+00:00", "deleted_at": "2025-03-05T12:00:00+00:00"}],
		"configuration": {"libreview": {"practice_id": {"us": 12}, "strip_tz": true}, "texts_enabled": true, "push_historical_data": true,
			"provider_raw_data": true, "reject_duplicate_connection": true, "sdk_per_device_activity_timeseries": true,
			"partial_webhooks_enabled": true, "minor_ordering_enabled": true,
			"eds_preferences": {"preferred": "svix", "enabled": ["svix", "rabbitmq"]}, "event_type_prefixes": ["labtest."]},
		"testkits_texts_enabled": true, "lab_tests_patient_communication_enabled": true, "lab_tests_patient_sms_communication_enabled": true,
		"lab_tests_patient_email_communication_enabled": true, "logo_url": "https://example.com/logo.png",
		"delegated_flow": "order_and_results_with_customer_physician_network", "critical_result_notification_email": "labs@example.com"}`
	prioritiesJSON = `[{"data_type": "sleep", "sources": ["oura", "fitbit"]}, {"data_type": "body"}]`
	linkSourceJSON = `{"id": 7, "name": "Oura", "slug": "oura", "description": "Sleep and activity.", "logo": "https://example.com/oura.png",
		"group": "rings", "oauth_url": "https://oauth.example.com/oura?state=1", "auth_type": "team_oauth", "source_type": "provider",
		"is_active": false, "backfill_num_days": 90}`
	linkTokenJSON = `{"link_token": "lt_1", "link_web_url": "https://link.example.com/?token=lt_1"}`
)

// teamAPICalls are calls of operations on the team, on providers and on the links of users to them.
var teamAPICalls = []apiCall{
	{
		method: "Team.Get", op: "GET /v2/team/{team_id}",
		url:      "/v2/team/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
		response: teamDetailsJSON,
		args:     []any{teamID},
	},
	{
		method: "Team.SearchUsers", op: "GET /v2/team/users/search",
		url:      "/v2/team/users/search?query_id=a%26b",
		response: "[" + userJSON + "]",
		args:     []any{labhealth.SearchUsersParams{QueryID: "a&b"}},
	},
	{
		method: "Team.SearchUsers", op: "GET /v2/team/users/search",
		url:      "/v2/team/users/search",
		response: `[]`,
		args:     []any{labhealth.SearchUsersParams{}},
	},
	{
		method: "Team.SourcePriorities", op: "GET /v2/team/source/priorities",
		url:      "/v2/team/source/priorities?data_type=sleep",
		response: prioritiesJSON,
		args:     []any{labhealth.SourcePrioritiesParams{DataType: labhealth.PriorityResourceSleep}},
	},
	{
		method: "Team.UpdateSourcePriorities", op: "PATCH /v2/team/source/priorities",
		url:      "/v2/team/source/priorities",
		body:     prioritiesJSON,
		response: prioritiesJSON,
		args:     []any{json.RawMessage(prioritiesJSON)},
	},
	{
		method: "Team.Physicians", op: "GET /v2/team/{team_id}/physicians",
		url:      "/v2/team/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/physicians",
		response: `[{"first_name": "Jane", "last_name": "Doctor", "npi": "1234567893"}]`,
		args:     []any{teamID},
	},
	{
		method: "Link.CreateToken", op: "POST /v2/link/token",
		url: "/v2/link/token",
		body: `{"user_id": "11111111-2222-4333-8444-555555555555", "provider": "oura", "redirect_url": "https://example.com/back",
			"filter_on_providers": ["oura", "new"], "on_error": "redirect", "on_close": "redirect"}`,
		response: linkTokenJSON,
		args: []any{labhealth.CreateLinkTokenBody{
			UserID: userID, Provider: new(labhealth.ProviderOura), RedirectURL: new("https://example.com/back"),
			FilterOnProviders: []labhealth.Provider{labhealth.ProviderOura, "new"}, OnError: new("redirect"), OnClose: new("redirect"),
		}},
	},
	{
		method: "Link.CreateToken", op: "POST /v2/link/token",
		url:      "/v2/link/token",
		body:     `{"user_id": "11111111-2222-4333-8444-555555555555"}`,
		response: linkTokenJSON,
		args:     []any{labhealth.CreateLinkTokenBody{UserID: userID}},
	},
	{
		method: "Link.OAuth", op: "GET /v2/link/provider/oauth/{oauth_provider}",
		url:      "/v2/link/provider/oauth/oura",
		response: linkSourceJSON,
		args:     []any{labhealth.ProviderOura},
	},
	{
		method: "Link.Providers", op: "GET /v2/link/providers",
		url: "/v2/link/providers",
		response: `[{"id": 7, "name": "Whoop", "slug": "whoop", "description": "Recovery.", "logo": "https://example.com/whoop.png",
			"oauth_url": "https://oauth.example.com/whoop", "auth_type": "password", "form_components": {"username": {"label": "Email"}}}]`,
	},
	{
		method: "Link.ConnectDemo", op: "POST /v2/link/connect/demo",
		url:      "/v2/link/connect/demo",
		body:     `{"user_id": "11111111-2222-4333-8444-555555555555", "provider": "fitbit"}`,
		response: `{"success": true, "detail": "The demo provider is connected"}`,
		args:     []any{labhealth.ConnectDemoBody{UserID: userID, Provider: labhealth.ProviderFitbit}},
	},
	{
		method: "Providers.List", op: "GET /v2/providers",
		url: "/v2/providers?source_type=ble",
		response: `[{"name": "Omron", "slug": "omron_ble", "description": "Cuffs.", "logo": null, "auth_type": "", "supported_resources": ["blood_pressure"]},
			{"name": "Oura", "slug": "oura", "description": "Rings.", "logo": "https://example.com/oura.png", "auth_type": "oauth", "supported_resources": []}]`,
		args: []any{labhealth.ListProvidersParams{SourceType: labhealth.SourceTypeBLE}},
	},
}
