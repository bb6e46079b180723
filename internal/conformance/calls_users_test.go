package conformance

import (
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

var deviceID = uuid.MustParse("7c9d6a10-5b1f-4c3e-9a55-3d2e1f0a9b8c")

const (
	deviceJSON = `{"id": "7c9d6a10-5b1f-4c3e-9a55-3d2e1f0a9b8c", "user_id": "11111111-2222-4333-8444-555555555555", "provider": "apple_health_kit",
		"source_type": "watch", "app_id": "com.example.health", "device_manufacturer": "Example", "device_model": "Watch 9",
		"device_version": "9.1", "device_id": "serial-1"}`
	userInfoJSON = `{"first_name": "Ada", "last_name": "Example", "email": "ada@example.com", "phone_number": "+14155550123", "gender": "female",
		"dob": "1990-01-31", "address": {"first_line": "1 Example St", "second_line": "Apt 2", "country": "US", "zip": "94105",
			"city": "San Francisco", "state": "CA", "access_notes": "Ring twice"},
		"medical_proxy": {"first_name": "Jane", "last_name": "Example", "address": {"first_line": "2 Example St", "second_line": "", "country": "US",
			"zip": "94105", "city": "San Francisco", "state": "CA", "access_notes": "Ring once"}, "phone_number": "+14155550124",
			"household_income": 50000, "household_size": 3, "email": "jane@example.com"},
		"race": "other", "ethnicity": "non_hispanic", "sexual_orientation": "dont_know", "gender_identity": "female"}`
	connectedJSON = `{"providers": [{"name": "Fitbit", "slug": "fitbit", "logo": "https://example.com/fitbit.png",
		"created_on": "2025-03-04T12:00:00+00:00", "status": "error", "external_user_id": "external-1",
		"error_details": {"error_type": "token_refresh_failed", "error_message": "The token has expired.", "errored_at": "2025-03-05T12:00:00Z"},
		"resource_availability": {"sleep": {"status": "unavailable", "scope_requirements": {
			"user_granted": {"required": ["profile"], "optional": []}, "user_denied": {"required": ["sleep"], "optional": ["heartrate"]}}}}}]}`
	resourcesJSON = `[{"user_id": "11111111-2222-4333-8444-555555555555", "provider": {"oura": {
		"sleep": {"last_attempt": {"timestamp": "2025-03-04T12:00:00+00:00", "status": "success"}, "oldest_data": "2024-12-04T00:00:00+00:00",
			"newest_data": "2025-03-04T12:00:00.123456+00:00", "sent_count": 12},
		"body": {"last_attempt": null, "oldest_data": null, "newest_data": null, "sent_count": null}}, "fitbit": {}}}]`
)

// userCalls are calls of operations on users.
var userCalls = []apiCall{
	{
		method: "Users.Create", op: "POST /v2/user", url: "/v2/user", body: `{"client_user_id":"ada"}`, response: userJSON,
		args: []any{labhealth.CreateUserBody{ClientUserID: "ada"}},
	},
	{
		method: "Users.Create", op: "POST /v2/user", url: "/v2/user", response: userJSON,
		body: `{"client_user_id":"ada","fallback_time_zone":"Europe/London",
			"fallback_birth_date":"1950-01-31","ingestion_start":"2025-03-04","ingestion_end":"2999-12-31"}`,
		args: []any{labhealth.CreateUserBody{
			ClientUserID: "ada", FallbackTimeZone: new("Europe/London"), FallbackBirthDate: &labhealth.Date{Year: 1950, Month: time.January, Day: 31},
			IngestionStart: &labhealth.Date{Year: 2025, Month: time.March, Day: 4}, IngestionEnd: &future,
		}},
	},
	usersListed("", labhealth.ListUsersParams{}),
	usersListed("?offset=200", labhealth.ListUsersParams{Offset: 200}),
	usersListed("?limit=500", labhealth.ListUsersParams{Limit: 500}),
	usersListed("?limit=1&offset=1", labhealth.ListUsersParams{Offset: 1, Limit: 1}),
	{
		method: "Users.Update", op: "PATCH /v2/user/{user_id}",
		url: "/v2/user/11111111-2222-4333-8444-555555555555",
		body: `{"client_user_id": "grete", "fallback_time_zone": "Europe/London", "fallback_birth_date": "1990-01-31",
			"ingestion_start": null, "ingestion_end": "2999-12-31"}`,
		args: []any{userID, labhealth.UpdateUserBody{
			ClientUserID: new("grete"), FallbackTimeZone: labhealth.Value("Europe/London"),
			FallbackBirthDate: labhealth.Value(labhealth.Date{Year: 1990, Month: time.January, Day: 31}),
			IngestionStart:    labhealth.Null[labhealth.Date](), IngestionEnd: labhealth.Value(future),
		}},
	},
	{
		method: "Users.Update", op: "PATCH /v2/user/{user_id}",
		url:  "/v2/user/11111111-2222-4333-8444-555555555555",
		body: `{"fallback_time_zone": null}`,
		args: []any{userID, labhealth.UpdateUserBody{FallbackTimeZone: labhealth.Null[string]()}},
	},
	{
		method: "Users.Info", op: "GET /v2/user/{user_id}/info/latest",
		url:      "/v2/user/11111111-2222-4333-8444-555555555555/info/latest",
		response: userInfoJSON,
		args:     []any{userID},
	},
	{
		method: "Users.UpdateInfo", op: "PATCH /v2/user/{user_id}/info",
		url:      "/v2/user/11111111-2222-4333-8444-555555555555/info",
		body:     userInfoJSON,
		response: userInfoJSON,
		args: []any{userID, labhealth.UpdateUserInfoBody{
			FirstName: "Ada", LastName: "Example", Email: "ada@example.com", PhoneNumber: "+14155550123", Gender: labhealth.GenderFemale,
			DOB: labhealth.Date{Year: 1990, Month: time.January, Day: 31},
			Address: labhealth.Address{
				FirstLine: "1 Example St", SecondLine: new("Apt 2"), Country: "US", Zip: "94105", City: "San Francisco", State: "CA",
				AccessNotes: new("Ring twice"),
			},
			MedicalProxy: labhealth.Value(labhealth.GuarantorDetails{
				FirstName: "Jane", LastName: "Example", PhoneNumber: "+14155550124", HouseholdIncome: new(int64(50000)),
				HouseholdSize: new(int64(3)), Email: new("jane@example.com"),
				Address: labhealth.Address{
					FirstLine: "2 Example St", SecondLine: new(""), Country: "US", Zip: "94105", City: "San Francisco", State: "CA",
					AccessNotes: new("Ring once"),
				},
			}),
			Race: labhealth.Value(labhealth.RaceOther), Ethnicity: labhealth.Value(labhealth.EthnicityNonHispanic),
			SexualOrientation: labhealth.Value(labhealth.SexualOrientationDontKnow),
			GenderIdentity:    labhealth.Value(labhealth.GenderIdentityFemale),
		}},
	},
	{
		method: "Users.UpdateInfo", op: "PATCH /v2/user/{user_id}/info",
		url: "/v2/user/11111111-2222-4333-8444-555555555555/info",
		body: `{"first_name": "A", "last_name": "B", "email": "a@example.com", "phone_number": "1", "gender": "x", "dob": "1990-05-01",
			"address": {"first_line": "1", "country": "US", "zip": "2", "city": "C", "state": "S"}, "race": null, "medical_proxy": null}`,
		response: userInfoJSON,
		args: []any{userID, labhealth.UpdateUserInfoBody{
			FirstName: "A", LastName: "B", Email: "a@example.com", PhoneNumber: "1", Gender: "x", DOB: labhealth.Date{Year: 1990, Month: time.May, Day: 1},
			Address: labhealth.Address{FirstLine: "1", Country: "US", Zip: "2", City: "C", State: "S"},
			Race:    labhealth.Null[labhealth.Race](), MedicalProxy: labhealth.Null[labhealth.GuarantorDetails](),
		}},
	},
	{
		method: "Users.Devices", op: "GET /v2/user/{user_id}/device",
		url:      "/v2/user/11111111-2222-4333-8444-555555555555/device",
		response: "[" + deviceJSON + "]",
		args:     []any{userID},
	},
	{
		method: "Users.Device", op: "GET /v2/user/{user_id}/device/{device_id}",
		url:      "/v2/user/11111111-2222-4333-8444-555555555555/device/7c9d6a10-5b1f-4c3e-9a55-3d2e1f0a9b8c",
		response: deviceJSON,
		args:     []any{userID, deviceID},
	},
	{
		method: "Users.ConnectedProviders", op: "GET /v2/user/providers/{user_id}",
		url:      "/v2/user/providers/11111111-2222-4333-8444-555555555555",
		response: connectedJSON,
		args:     []any{userID},
	},
	{
		method: "Users.Disconnect", op: "DELETE /v2/user/{user_id}/{provider}",
		url:      "/v2/user/11111111-2222-4333-8444-555555555555/a%2Fb",
		response: `{"success": true}`,
		args:     []any{userID, "a/b"},
	},
	{
		method: "Users.Refresh", op: "POST /v2/user/refresh/{user_id}",
		url: "/v2/user/refresh/11111111-2222-4333-8444-555555555555?timeout=12.5",
		response: `{"success": true, "user_id": "11111111-2222-4333-8444-555555555555", "refreshed_sources": ["Withings/workouts"],
			"in_progress_sources": ["oura/sleep"], "failed_sources": ["fitbit/sleep", "fitbit/activity"]}`,
		args: []any{userID, labhealth.RefreshUserParams{Timeout: 12500 * time.Millisecond}},
	},
	{
		method: "Users.Refresh", op: "POST /v2/user/refresh/{user_id}",
		url:      "/v2/user/refresh/11111111-2222-4333-8444-555555555555",
		response: `{"success": true, "user_id": "11111111-2222-4333-8444-555555555555", "refreshed_sources": [], "in_progress_sources": [], "failed_sources": []}`,
		args:     []any{userID, labhealth.RefreshUserParams{}},
	},
	{
		method: "Users.Resources", op: "GET /v2/introspect/resources",
		url:      "/v2/introspect/resources?next_cursor=a%2Bb&provider=oura&user_id=11111111-2222-4333-8444-555555555555&user_limit=5",
		response: `{"data": ` + resourcesJSON + `, "next": "c", "next_cursor": "c"}`,
		args: []any{labhealth.ListUserResourcesParams{
			UserID: userID, Provider: labhealth.ProviderOura, UserLimit: 5, NextCursor: "a+b",
		}},
	},
	{
		method: "Users.AllResources", op: "GET /v2/introspect/resources",
		url:      "/v2/introspect/resources",
		response: `{"data": ` + resourcesJSON + `, "next": null, "next_cursor": null}`,
		want:     resourcesJSON,
		args:     []any{labhealth.ListUserResourcesParams{}},
	},
	{
		method: "Users.HistoricalPulls", op: "GET /v2/introspect/historical_pull",
		url:      "/v2/introspect/historical_pull",
		response: `{"data": [], "next": "c", "next_cursor": "c"}`,
		args:     []any{labhealth.ListHistoricalPullsParams{}},
	},
}

// usersListed is a list of users with a query.
func usersListed(query string, params labhealth.ListUsersParams) apiCall {
	return apiCall{
		method: "Users.List", op: "GET /v2/user/", url: "/v2/user/" + query, response: `{"users":[` + userJSON + `],"total":301,"offset":200,"limit":100}`,
		args: []any{params},
	}
}
