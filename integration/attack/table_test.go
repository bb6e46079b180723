package attack

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

// patientCanary is part of the patient's data. No error may contain it.
const patientCanary = "Canaryada"

// arguments are valid values of the types of arguments. Of other types the zero value is valid.
var arguments = []any{
	anID, []uuid.UUID{anID}, "anything", int64(1), day, labhealth.Secret("whsec_" + patientCanary),
	labhealth.RegionUS, labhealth.TeamEnvironmentSandbox, labhealth.AppointmentWalkIn, labhealth.SummaryActivity,
	labhealth.SampleResource("heartrate"), labhealth.Provider("oura"), []labhealth.Provider{"oura"},
	map[string]labhealth.Secret{"X-Anything": patientCanary}, json.RawMessage(`[{"name":"` + patientCanary + `"}]`),

	labhealth.ImportOrderBody{
		UserID: anID, BillingType: labhealth.BillingClientBill, OrderSet: orderSet,
		CollectionMethod: labhealth.CollectionMethodWalkInTest, PatientDetails: patient, PatientAddress: address, SampleID: "SAMPLE-1",
	},
	labhealth.CreateOrderBody{UserID: anID, OrderSet: &orderSet, PatientDetails: patient, PatientAddress: checkedAddress},
	labhealth.UpdateOrderBody{ActivateBy: labhealth.Null[labhealth.Date]()},
	labhealth.CreateTestkitBody{UserID: anID, LabTestID: anID, ShippingDetails: labhealth.ShippingAddress{
		ReceiverName: patientCanary, FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		PhoneNumber: "+14155550123",
	}},
	labhealth.RegisterTestkitBody{SampleID: "SAMPLE-1", PatientDetails: patient, PatientAddress: checkedAddress},
	labhealth.ResendEventsBody{OrderIDs: []uuid.UUID{anID}},
	labhealth.LabelsPDFParams{CollectionDate: time.Date(2999, time.March, 4, 12, 0, 0, 0, time.UTC)},
	labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{anID}},
	usAddress,
	labhealth.WalkInAvailabilityParams{Lab: "quest", ZipCode: "94105"},
	labhealth.BookAppointmentBody{BookingKey: "key", AppointmentNotes: new(patientCanary)},
	labhealth.RequestAppointmentBody{Address: usAddress, Provider: "provider"},
	labhealth.RescheduleAppointmentBody{BookingKey: "key"},
	labhealth.CancelAppointmentBody{CancellationReasonID: anID, Notes: new(patientCanary)},
	labhealth.AreaParams{ZipCode: "94105"},
	labhealth.SitesParams{ZipCode: "94105", LabID: 1},
	labhealth.OrderSitesParams{},
	labhealth.CreateLabTestBody{Name: "Lipids", Method: labhealth.CollectionMethodWalkInTest, Description: "Lipids"},
	labhealth.UpdateLabTestBody{Name: new("Lipids")},

	labhealth.CreateUserBody{ClientUserID: patientCanary},
	labhealth.UpdateUserBody{ClientUserID: new(patientCanary)},
	labhealth.UpdateUserInfoBody{
		FirstName: patientCanary, LastName: "Example", Email: "canaryada@example.com", PhoneNumber: "+14155550123",
		Gender: labhealth.GenderFemale, DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
		Address: aPlace,
	},
	labhealth.UndoDeleteParams{UserID: anID},
	labhealth.CreateLinkTokenBody{UserID: anID},
	labhealth.ConnectDemoBody{UserID: anID, Provider: "oura"},
	labhealth.CreateInsuranceBody{
		PayorCode: "payor", MemberID: patientCanary, Relationship: labhealth.ResponsibleRelationshipSelf, Insured: labhealth.InsuredPerson{
			FirstName: patientCanary, LastName: "Example", Email: "canaryada@example.com", PhoneNumber: "+14155550123",
			Gender: labhealth.GenderFemale, DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31}, Address: aPlace,
		},
	},
	labhealth.SearchPayorsParams{InsuranceName: "Example"},
	labhealth.CreatePayorBody{Name: "Example", Address: aPlace},
	[]string{"E11.9"},
	labhealth.ResolveUnmatchedResultBody{Action: labhealth.MatchResolutionReject, Note: new(patientCanary)},
	labhealth.CreateUnmatchedResultTestBody{Case: labhealth.UnmatchedResultTestWrongLab, OrderSource: labhealth.UnmatchedResultTestProvided},
	labhealth.CreateParsingJobBody{UserID: anID, Files: []labhealth.LabReportFile{{Name: "report.txt", Content: []byte(patientCanary)}}},
	labhealth.ConnectPasswordBody{Username: patientCanary, Password: patientCanary},
	labhealth.ConnectEmailBody{Email: "canaryada@example.com"},
	labhealth.ListSamplesParams{StartDate: time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)},
	labhealth.ListSummariesParams{StartDate: day},

	management.UpdateOrganisationBody{Name: patientCanary},
	management.UpsertTeamCustomCredentialsBody{TeamID: anID, Provider: "oura"},
	management.UpsertTeamDataPullPreferencesBody{TeamIDs: []uuid.UUID{anID}, Providers: map[string]management.UpsertProviderDataPullPreferences{}},
	management.CreateKeyBody{Label: "CI", Role: management.KeyRoleTeamAdmin},
	management.UpsertETLPipelinesBody{TeamIDs: []uuid.UUID{anID}},
	management.CreateTeamAPIKeyBody{Label: "backend", TeamID: anID},
	management.CreateTeamBody{Name: "Clinic", Region: labhealth.RegionUS},
	management.CreateWebhookBody{URL: "https://app.example.com/events"},
}

var (
	day      = labhealth.Date{Year: 2999, Month: time.March, Day: 4}
	orderSet = labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{anID}}
	patient  = labhealth.PatientDetailsWithValidation{
		FirstName: patientCanary, LastName: "Example", DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
		Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "canaryada@example.com",
	}
	address = labhealth.PatientAddress{
		ReceiverName: patientCanary, FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
	}
	checkedAddress = labhealth.PatientAddressWithValidation{
		FirstLine: patientCanary, City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
	}
	aPlace    = labhealth.Address{FirstLine: "1 Main Street", Country: "US", Zip: "94105", City: "San Francisco", State: "CA"}
	usAddress = labhealth.USAddress{FirstLine: patientCanary, City: "San Francisco", State: "CA", ZipCode: "94105"}
)

// Responses that several methods have in common.
const (
	object = `{"id":"$ID","mark":"$MARK"}`
	list   = `[` + object + `]`
	order  = `{"order":{"id":"$ID","mark":"$MARK"},"status":"success","message":"done"}`
	pdf    = "%PDF-1.4\n$MARK\n%%EOF\n"

	data        = `{"data":` + list + `,"next_cursor":null}`
	orders      = `{"orders":` + list + `,"total":1,"page":1,"size":50}`
	markers     = `{"markers":[{"id":1,"name":"$MARK"}],"total":1,"page":1,"size":50,"pages":1}`
	users       = `{"users":[{"user_id":"$ID","client_user_id":"$MARK"}],"total":1,"offset":0,"limit":50}`
	teams       = `{"teams":` + list + `,"next_cursor":null}`
	apiKeys     = `{"api_keys":` + list + `}`
	credentials = `{"credentials":` + list + `}`
	pipelines   = `{"pipelines":` + list + `}`
	pulls       = `{"data_pull_preferences":` + list + `}`

	user   = `{"user_id":"$ID","client_user_id":"$MARK"}`
	marked = `{"success":true,"mark":"$MARK"}`
)

// calls has a row for every method of both clients, and for each HTTP method of Do.
var calls = []call{
	{"Orders.Import", "POST", order},
	{"Orders.Create", "POST", order},
	{"Orders.Update", "PATCH", order},
	{"Orders.Reschedule", "PATCH", order},
	{"Orders.Release", "PATCH", order},
	{"Orders.Get", "GET", object},
	{"Orders.List", "GET", orders},
	{"Orders.All", "GET", orders},
	{"Orders.Cancel", "POST", order},
	{"Orders.MarkDrawCompleted", "PATCH", order},
	{"Orders.ResendEvents", "POST", `{"order_ids":["$ID"],"mark":"$MARK"}`},
	{"Orders.CommunicationSettings", "GET", `{"order_id":"$ID","sms_enabled":true,"mark":"$MARK"}`},
	{"Orders.UpdateCommunicationSettings", "PATCH", `{"order_id":"$ID","sms_enabled":true,"mark":"$MARK"}`},
	{"Orders.Simulate", "POST", `{}`},
	{"Orders.CreateTestkit", "POST", order},
	{"Orders.RegisterTestkit", "POST", order},
	{"Orders.Results", "GET", `{"metadata":{"patient":"$MARK"},"results":[],"missing_results":null}`},
	{"Orders.ResultsMetadata", "GET", `{"patient":"$MARK"}`},
	{"Orders.RequisitionPDF", "GET", pdf},
	{"Orders.ResultsPDF", "GET", pdf},
	{"Orders.LabelsPDF", "GET", pdf},
	{"Orders.ABNPDF", "GET", pdf},
	{"Orders.CollectionInstructionsPDF", "GET", pdf},
	{"OrderTransactions.Get", "GET", object},
	{"OrderTransactions.Results", "GET", `{"metadata":{"patient":"$MARK"},"results":[],"missing_results":null}`},
	{"OrderTransactions.ResultsPDF", "GET", pdf},

	{"LabTests.List", "GET", data},
	{"LabTests.All", "GET", data},
	{"LabTests.ListDeprecated", "GET", list},
	{"LabTests.Get", "GET", object},
	{"LabTests.Create", "POST", object},
	{"LabTests.Update", "PATCH", object},
	{"LabTests.Labs", "GET", `[{"id":1,"name":"$MARK"}]`},
	{"LabTests.CollectionInstructionsPDF", "GET", pdf},
	{"LabTests.LabAccounts", "GET", data},
	{"LabTests.Markers", "GET", markers},
	{"LabTests.AllMarkers", "GET", markers},
	{"LabTests.MarkersOfTest", "GET", markers},
	{"LabTests.AllMarkersOfTest", "GET", markers},
	{"LabTests.MarkersOfOrderSet", "POST", markers},
	{"LabTests.AllMarkersOfOrderSet", "POST", markers},
	{"LabTests.Marker", "GET", `{"id":1,"name":"$MARK"}`},

	{"Appointments.AtHomeAvailability", "POST", `{"slots":[],"timezone":"$MARK"}`},
	{"Appointments.WalkInAvailability", "POST", `{"slots":[],"timezone":"$MARK"}`},
	{"Appointments.Book", "POST", object},
	{"Appointments.Request", "POST", object},
	{"Appointments.Reschedule", "PATCH", object},
	{"Appointments.Cancel", "PATCH", object},
	{"Appointments.CancellationReasons", "GET", list},
	{"Appointments.Get", "GET", object},
	{"Appointments.Area", "GET", `{"zip_code":"94105","mark":"$MARK"}`},
	{"Appointments.Sites", "GET", `{"lab_id":1,"slug":"$MARK","patient_service_centers":[]}`},
	{"Appointments.OrderSites", "GET", `{"lab_id":1,"slug":"$MARK","patient_service_centers":[]}`},

	{"Users.List", "GET", users},
	{"Users.All", "GET", users},
	{"Users.Get", "GET", user},
	{"Users.Resolve", "GET", user},
	{"Users.Create", "POST", user},
	{"Users.GetOrCreate", "POST", user},
	{"Users.Update", "PATCH", ``},
	{"Users.CreateInsurance", "POST", `{"payor_code":"payor","member_id":"$MARK"}`},
	{"Users.LatestInsurance", "GET", `{"payor_code":"payor","member_id":"$MARK"}`},
	{"Users.CreateSignInToken", "POST", `{"user_id":"$ID","sign_in_token":"$MARK"}`},
	{"Users.Delete", "DELETE", marked},
	{"Users.UndoDelete", "POST", marked},
	{"Users.ConnectedProviders", "GET", `{"$MARK":[]}`},
	{"Users.Disconnect", "DELETE", marked},
	{"Users.Devices", "GET", list},
	{"Users.Device", "GET", object},
	{"Users.HistoricalPulls", "GET", data},
	{"Users.AllHistoricalPulls", "GET", data},
	{"Users.Info", "GET", `{"first_name":"$MARK"}`},
	{"Users.UpdateInfo", "PATCH", `{"first_name":"$MARK"}`},
	{"Users.Refresh", "POST", `{"success":true,"user_id":"$ID","refreshed_sources":["$MARK"]}`},
	{"Users.Resources", "GET", data},
	{"Users.AllResources", "GET", data},

	{"Link.CreateToken", "POST", `{"link_token":"$MARK","link_web_url":"https://link.example.com/"}`},
	{"Link.ConnectPassword", "POST", `{"state":"success","redirect_url":"$MARK"}`},
	{"Link.CompletePasswordMFA", "POST", `{"state":"success","redirect_url":"$MARK"}`},
	{"Link.ConnectEmail", "POST", ``},
	{"Link.OAuth", "GET", `{"id":1,"slug":"oura","name":"$MARK"}`},
	{"Link.Providers", "GET", `[{"name":"$MARK","slug":"oura"}]`},
	{"Link.ConnectDemo", "POST", `{"success":true,"detail":"$MARK"}`},
	{"Providers.List", "GET", `[{"name":"$MARK","slug":"oura"}]`},
	{"Wearables.Summaries", "GET", `{"activity":` + list + `}`},
	{"Wearables.Samples", "GET", `{"groups":{"oura":[{"mark":"$MARK"}]},"next_cursor":null}`},
	{"Wearables.SamplePages", "GET", `{"groups":{"oura":[{"mark":"$MARK"}]},"next_cursor":null}`},
	{"Wearables.SleepStream", "GET", `{"mark":"$MARK"}`},
	{"Workouts.Stream", "GET", `{"mark":"$MARK"}`},
	{"Insurance.SearchPayors", "GET", `[{"payor_code":"$MARK"}]`},
	{"Insurance.SearchPayorsDeprecated", "POST", `[{"code":"$MARK"}]`},
	{"Insurance.CreatePayor", "POST", `{"payor_code":"$MARK"}`},
	{"Insurance.SearchDiagnoses", "GET", `[{"diagnosis_code":"$MARK"}]`},
	{"Insurance.ValidateICDCodes", "POST", `{"valid":true,"errors":["$MARK"]}`},
	{"UnmatchedResults.List", "GET", data},
	{"UnmatchedResults.All", "GET", data},
	{"UnmatchedResults.Get", "GET", object},
	{"UnmatchedResults.Accept", "POST", object},
	{"UnmatchedResults.Resolve", "POST", object},
	{"UnmatchedResults.TestCases", "GET", `{"data":[{"case":"$MARK"}]}`},
	{"UnmatchedResults.CreateTest", "POST", `{"run_id":"$ID","mark":"$MARK"}`},
	{"UnmatchedResults.Test", "GET", `{"run_id":"$ID","mark":"$MARK"}`},
	{"LabReports.Create", "POST", object},
	{"LabReports.Get", "GET", object},
	{"Team.Get", "GET", object},
	{"Team.SearchUsers", "GET", `[` + user + `]`},
	{"Team.SourcePriorities", "GET", list},
	{"Team.UpdateSourcePriorities", "PATCH", list},
	{"Team.Physicians", "GET", `[{"first_name":"$MARK"}]`},

	{"Organisation.Get", "GET", object},
	{"Organisation.Update", "PATCH", object},
	{"Teams.List", "GET", teams},
	{"Teams.All", "GET", teams},
	{"Teams.Create", "POST", object},
	{"Teams.Get", "GET", object},
	{"Teams.Update", "PATCH", object},
	{"Teams.UpdateBrandInformation", "PATCH", object},
	{"Teams.Delete", "DELETE", ``},
	{"Teams.Resolve", "POST", object},
	{"Teams.CreateAccessToken", "POST", `{"access_token":"$MARK","expires_in":600}`},
	{"Teams.Credentials", "POST", `{"access_token":"$MARK","expires_in":600}`},
	{"Teams.ScopeRequirements", "GET", `{"requirements":[{"team_id":"$ID","provider":"$MARK"}]}`},
	{"Teams.UpsertScopeRequirements", "POST", ``},
	{"Keys.List", "GET", data},
	{"Keys.All", "GET", data},
	{"Keys.Create", "POST", object},
	{"Keys.Update", "PATCH", object},
	{"Keys.Delete", "DELETE", ``},
	{"Webhooks.List", "GET", data},
	{"Webhooks.All", "GET", data},
	{"Webhooks.Create", "POST", object},
	{"Webhooks.Get", "GET", object},
	{"Webhooks.Update", "PATCH", object},
	{"Webhooks.Delete", "DELETE", ``},
	{"Webhooks.Headers", "GET", `{"headers":{"X-Anything":"$MARK"},"sensitive":[]}`},
	{"Webhooks.ReplaceHeaders", "PUT", ``},
	{"Webhooks.Secret", "GET", `{"key":"$MARK"}`},
	{"Webhooks.RotateSecret", "POST", ``},
	{"Webhooks.EventDeliveryMetric", "GET", `{"status":"success","data":{"resultType":"$MARK","result":[]}}`},
	{"TeamAPIKeys.List", "GET", apiKeys},
	{"TeamAPIKeys.All", "GET", apiKeys},
	{"TeamAPIKeys.Create", "POST", object},
	{"TeamAPIKeys.Delete", "DELETE", `{"success":["$ID"],"mark":"$MARK"}`},
	{"CustomCredentials.List", "GET", credentials},
	{"CustomCredentials.All", "GET", credentials},
	{"CustomCredentials.Upsert", "POST", object},
	{"CustomCredentials.Delete", "DELETE", `{"success":["$ID"],"mark":"$MARK"}`},
	{"CustomCredentials.Prepare", "POST", `{"status":"$MARK"}`},
	{"Pipelines.List", "GET", pipelines},
	{"Pipelines.All", "GET", pipelines},
	{"Pipelines.Upsert", "POST", list},
	{"Pipelines.Delete", "DELETE", list},
	{"DataPullPreferences.List", "GET", pulls},
	{"DataPullPreferences.All", "GET", pulls},
	{"DataPullPreferences.Upsert", "POST", pulls},
	{"DataPullPreferences.Delete", "DELETE", ``},
	{"LabAccounts.List", "GET", data},
	{"LabAccounts.UpdateTeamIDAllowlist", "PATCH", `{"lab_account":` + object + `}`},

	{"Do GET", "GET", object},
	{"Do HEAD", "HEAD", ``},
	{"Do POST", "POST", object},
	{"Do PUT", "PUT", object},
	{"Do PATCH", "PATCH", object},
	{"Do DELETE", "DELETE", object},
	{"management Do GET", "GET", object},
	{"management Do POST", "POST", object},
	{"management Do DELETE", "DELETE", object},
}
