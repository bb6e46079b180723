// What errors say about known messages and statuses of the service.

package labhealth

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Error messages do not quote the service, because its messages may quote the request. They say
// what this file says about a message or a status that is known.

// knownReasons are messages of the service, with what an error message says about them: what is
// wrong, and what to change if that is known. A message matches a phrase if both are equal without
// regard to case, white space and a final period. A * at the start or end of a phrase matches any
// text. The first match counts.
//
// The wording is that of responses that were observed, of the public API reference, or else of the
// embedded service, which is an inference.
var knownReasons = []struct {
	text    string
	phrases []string
}{
	// The key and the team.
	{"no key arrived: look for a proxy that removes headers", []string{"missing token", "missing management key", "not authenticated"}},
	{wrongKey, []string{"*invalid token*", "invalid management key", "*token is invalid*", "*token has expired*", "invalid api key"}},
	{"the management key does not permit this: check the organisation ID and the kind of the key", []string{"the management key has no permission for this"}},
	{"the team is not enabled for this closed beta: ask the service for access", []string{"*closed beta*"}},
	{"the team is not enabled for this: ask the service for access", []string{"*is not enabled for *"}},
	{"the team is in another region: change the region of the request", []string{"the team is in another region"}},

	// What is in front of the operations: routers, gateways, servers.
	{noPath, []string{"not found", "404 page not found", "*default backend - 404"}},
	{wrongMethod, []string{"method not allowed"}},
	{tooLarge, []string{"request body too large", "request entity too large", "payload too large"}},
	{"the body is not JSON that the service can read", []string{"there was an error parsing the body"}},
	{"the server expects HTTPS: the base URL must start with https", []string{"client sent an http request to an https server"}},
	{rateLimited, []string{"too many requests", "*rate limit exceeded*"}},
	{"the service failed", []string{"internal server error"}},
	{"a gateway did not reach the service", []string{"no healthy upstream", "upstream connect error*", "upstream request timeout", "bad gateway", "gateway timeout"}},

	// IDs.
	{"no such order: " + checkID, []string{"this order doesn't exist", "order not found", "order does not exist"}},
	{"no such order transaction: " + checkID, []string{"this order transaction doesn't exist"}},
	{"no such user: " + checkID, []string{"user not found", "user does not exist", "this user doesn't exist"}},
	{"no such lab account: " + checkID, []string{"lab account not found", "lab account does not exist"}},
	{"no such team: " + checkID, []string{"team not found"}},
	{"no such webhook: " + checkID, []string{"webhook not found"}},
	{"no such management key: " + checkID, []string{"management key not found"}},
	{"no such device: " + checkID, []string{"device not found"}},
	{"no such workout: " + checkID, []string{"workout not found"}},
	{"no such sleep: " + checkID, []string{"sleep not found"}},
	{"the cursor is invalid: start again with the first page", []string{"invalid cursor"}},

	// Users.
	{userExists, []string{"client user id already exists"}},
	{"the user is being deleted: Users.UndoDelete can undo it", []string{"*scheduled for deletion*"}},
	{"the body changes nothing: set a field", []string{"nothing to patch"}},
	{"the user has no such data yet", []string{"user info not found", "profile not found"}},
	{"the provider is not connected: see Users.ConnectedProviders", []string{"provider is not connected"}},
	{"another user has connected this account of the provider", []string{"duplicate_connection", "another user has connected this provider account"}},
	{"the demo provider is connected already", []string{"the demo provider is already connected"}},
	{nothingRefreshed, []string{"no source could be refreshed"}},
	{"a user can be refreshed 8 times per hour", []string{"a user can be refreshed 8 times per hour"}},
	{"one of the two IDs is required, and not both", []string{"exactly one of user_id and client_user_id is required"}},

	// Tests, markers, lab accounts.
	{"test does not exist: choose one of LabTests.All", []string{"test does not exist"}},
	{"test is not active: choose one of LabTests.All", []string{"test is not active"}},
	{"marker does not exist: choose one of LabTests.AllMarkers", []string{"marker does not exist"}},
	{"the tests belong to several labs: create one order for each lab", []string{"all tests of an order must belong to the same lab"}},
	{"the tests have different collection methods: set CollectionMethod", []string{"tests of an order have different collection methods, collection_method is required"}},
	{"an add-on needs a collection method", []string{"collection_method is required with an add_on"}},
	{"the lab does not offer this collection method: see Lab.CollectionMethods", []string{"cannot set collection_method to *"}},
	{"the order set needs LabTestIDs or an AddOn", []string{"order_set must contain lab_test_ids or an add_on"}},
	{"the add-on needs MarkerIDs or ProviderIDs", []string{"add_on must contain marker_ids or provider_ids"}},
	{"the add-on must not have both MarkerIDs and ProviderIDs", []string{"add_on must not contain both marker_ids and provider_ids"}},
	{"MarkerIDs or ProviderIDs is required", []string{"marker_ids or provider_ids are required"}},
	{"required questions are not answered: see LabTests.AllMarkersOfOrderSet", []string{"missing required questions*"}},
	{"the lab account belongs to another lab", []string{"lab account belongs to another lab"}},
	{"the lab account is suspended", []string{"lab account is suspended"}},
	{"the lab account requires a physician: set Physician", []string{"lab account requires a physician"}},
	{"the lab account does not allow this billing type in the patient's state", []string{"lab account does not allow *"}},

	// Orders.
	{"an order with this sample ID exists: find it with Orders.All", []string{"an order with this sample_id already exists"}},
	{"the phone number is not valid: write it with its country code", []string{"phone number is not correct"}},
	{"the date of birth is in the future", []string{"dob must not be in the future"}},
	{"the patient is a minor: MedicalProxy is required", []string{"medical_proxy is required for a minor"}},
	{"the date must be today or later", []string{"activate_by must be today or a future date"}},
	{"the order was created for immediate processing and has no date to change: see Order.Reschedulable", []string{"order was created for immediate processing and can not be rescheduled"}},
	{wrongStatus, []string{
		"order can not be modified in its current status", "order can not be cancelled in its current status",
		"order can not be simulated in its current status", "draw can not be completed in the current status of the order",
		"appointments can not be booked in the current status of the order", "testkit can not be registered in its current status",
	}},
	{"the order is not an on-site collection", []string{"order is not an on-site collection"}},
	{"the final status does not belong to the collection method of the order", []string{"final_status does not belong to the collection method of the order"}},
	{"the order is beyond this final status", []string{"order has already passed final_status"}},
	{"OrderIDs or a time range is required", []string{"order_ids or a time range is required"}},
	{"the time range must be at most 60 days", []string{"the time range must not exceed 60 days"}},
	{"test is not a test kit: choose one whose method is testkit", []string{"test is not a testkit"}},
	{"no test kit has this sample ID", []string{"no testkit with this sample_id exists"}},
	{"the test kit is registered already", []string{"testkit is already registered"}},
	{"the test kit belongs to another user", []string{"testkit belongs to another user"}},
	{noResultsYet, []string{"results are not available yet"}},
	{"the order has no requisition", []string{"requisition is not available"}},
	{"the order has no labels", []string{"labels are not available"}},
	{"the order has no ABN: see Order.HasABN", []string{"abn is not available"}},
	{"there are no instructions: see LabTest.HasCollectionInstructions", []string{"collection instructions are not available"}},

	// Appointments.
	{"the order has no appointment", []string{"this order has no appointment"}},
	{"the order has an appointment already: use Appointments.Reschedule", []string{"this order already has an appointment"}},
	{"the booking key is invalid or expired: get a new one from the availability", []string{"the booking key is invalid or has expired"}},
	{"the slot is taken: choose another one", []string{"the appointment slot is no longer available"}},
	{"the appointment cannot be rescheduled any more", []string{"this appointment can not be rescheduled"}},
	{"the appointment cannot be canceled any more", []string{"this appointment can not be cancelled"}},
	{"no such reason: see Appointments.CancellationReasons", []string{"the cancellation reason does not exist"}},
	{"nobody collects samples at this address: see Appointments.Area", []string{"the address is not served"}},
	{"the provider accepts no requests: use Appointments.Book", []string{"the provider does not accept appointment requests"}},
	{"the order has another kind of appointment: see LabTestCollectionMethod.AppointmentType", []string{"the collection method of this order is not *"}},
	{"the site belongs to another lab: see Appointments.OrderSites", []string{"the site belongs to another lab"}},
	{"the lab has no patient service centers", []string{"lab has no patient service centers"}},
	{"the order has no patient address", []string{"order has no patient address"}},
	{"a ZIP code or site codes are required", []string{"zip_code or site_codes is required"}},

	// Links.
	{"the link token is invalid, expired or used: create another with Link.CreateToken", []string{"invalid_token", "token_expired", "token_not_validated", "token_consumed"}},
	{"the provider rejected the user's name or password", []string{"provider_credential_error"}},
	{"the user must set a new password at the provider", []string{"provider_password_expired"}},
	{"the provider failed", []string{"provider_api_error"}},
	{"the provider is not available in the region", []string{"unsupported_region"}},
	{"the user did not grant the required scopes", []string{"required_scopes_not_granted"}},
	{"the code of the provider is wrong", []string{"incorrect_mfa_code"}},
	{"the user canceled", []string{"user_cancelled"}},

	// Insurance, unmatched results, lab reports.
	{"no such payor: choose one of Insurance.SearchPayors", []string{"payor does not exist"}},
	{"the user has no such insurance: see Users.CreateInsurance", []string{"insurance not found", "user has no primary insurance"}},
	{"no such result: " + checkID, []string{"unmatched result not found"}},
	{"the result does not wait for a decision: see UnmatchedResult.Status", []string{"this result does not wait for a decision"}},
	{"the order is no candidate: see UnmatchedResult.CandidateGroups", []string{"the order is not a candidate of this result"}},
	{"OrderID is required: the result has several candidates", []string{"order_id is required: there are several candidates"}},
	{"no such test run: " + checkID, []string{"test run not found"}},
	{"the idempotency key belongs to another body: use a new one", []string{"the idempotency key was used with another body"}},
	{"no such job: " + checkID, []string{"parsing job not found"}},

	// The management API.
	{"a pipeline needs a destination", []string{"a pipeline needs a destination"}},
	{"the team cannot be deleted", []string{"the team of the server cannot be deleted"}},
	{"the number of days is out of range", []string{"the number of days is out of range"}},
}

const (
	checkID          = "check the ID and the environment"
	wrongKey         = "the key is invalid, expired, or of another region, environment or API"
	rateLimited      = "the rate limit is reached: see WithRateLimit"
	noPath           = "no such path: check the base URL, which must not repeat a version such as /v3, and WithPath"
	wrongMethod      = "the path has no such method: check the base URL and WithPath"
	tooLarge         = "the request is too large: send less at once"
	userExists       = "the client user ID belongs to a user: use Users.GetOrCreate"
	teamExists       = "the integration team ID belongs to another team"
	nothingRefreshed = "no source was refreshed: see UserRefreshError.FailedSources"
	wrongStatus      = "the status of the order does not permit this: see Order.CurrentStatus"
	noResultsYet     = "no results yet: see Order.HasResults"
	sentHTML         = "the response is HTML: a proxy sent it, or the base URL is wrong"
	seeMessage       = "APIError.Message has the service's text"
	lookFirst        = "check whether it took effect before you repeat it"
)

// statusReasons are what an error message says about a status without a known message. A row
// counts for operations that contain op; the first match counts. That 503 means that a feature is
// not enabled is documented for the appointments in patient service centers only.
var statusReasons = []struct {
	status   int
	op, text string
}{
	{http.StatusUnauthorized, "", "the key is missing, invalid, expired, or of another region, environment or API"},
	{http.StatusForbidden, "", "the team or the key has no access to this"},
	{http.StatusNotFound, "/result", "no such order, or no results yet: see Order.HasResults"},
	{http.StatusNotFound, "", "the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment"},
	{http.StatusMethodNotAllowed, "", wrongMethod},
	{http.StatusProxyAuthRequired, "", "the proxy requires a user and a password: " + checkProxy},
	{http.StatusRequestTimeout, "", "the service did not receive the request in time"},
	{http.StatusRequestEntityTooLarge, "", tooLarge},
	{http.StatusTooManyRequests, "", rateLimited},
	{http.StatusServiceUnavailable, "/psc/", "overloaded, or walk-in scheduling is not enabled for the team"},
	{http.StatusServiceUnavailable, "", "overloaded or under maintenance"},
}

// noPaths are what an error message says in place of noPath about operations that some deployments
// have at another path, or not for every team. Source of the paths: public API reference only.
var noPaths = map[string]string{
	opListOrders:  `no such path: try WithPath("GET /orders", "/v3/orders"), or check the base URL`,
	opListUsers:   `no such path: try WithPath("GET /v2/user/", "/v2/user"), or check the base URL`,
	opImportOrder: "no such path: check the base URL and WithPath, and whether the team is enabled for this closed beta",
}

// maxPhrase is the length from which on a message is not one of knownReasons. Those that match a
// phrase with a * may be longer than the phrase.
const maxPhrase = 400

// knownReason returns what knownReasons says about a message of the service, "" if it is unknown.
func knownReason(message string) string {
	if message == "" || len(message) > maxPhrase {
		return ""
	}
	message = normalize(message)
	for _, reason := range knownReasons {
		for _, phrase := range reason.phrases {
			if matchesPhrase(message, phrase) {
				return reason.text
			}
		}
	}
	return ""
}

// normalize returns message in lower case, with single spaces, without a final period, and without
// the prefix that messages about values have.
func normalize(message string) string {
	message = strings.ToLower(strings.Join(strings.Fields(message), " "))
	message = strings.ReplaceAll(strings.TrimRight(message, "."), "’", "'")
	return strings.TrimPrefix(message, "value error, ")
}

func matchesPhrase(message, phrase string) bool {
	middle, anyEnd := strings.CutSuffix(phrase, "*")
	middle, anyStart := strings.CutPrefix(middle, "*")
	switch {
	case anyStart && anyEnd:
		return strings.Contains(message, middle)
	case anyStart:
		return strings.HasSuffix(message, middle)
	case anyEnd:
		return strings.HasPrefix(message, middle)
	}
	return message == middle
}

// why returns why the service rejected the request, and what to change, as far as it is known.
// Nothing of it comes from the response except for RetryAfter.
func (e *APIError) why() string {
	message := e.Message()
	parts := []string{e.knownReason(message)}
	if parts[0] == "" {
		parts[0] = e.statusReason()
		switch {
		case len(e.Fields()) > 0:
		case message != "":
			parts = append(parts, seeMessage)
		case parts[0] == "" && e.StatusCode < 500:
			parts[0] = "no reason given"
			if len(e.document()) > 0 {
				parts[0] = "see APIError.Body"
			}
		}
	}
	if parts[0] == noPath {
		parts[0] = cmp.Or(noPaths[e.Op], noPath)
	}
	next := nextStep(e.outcome, e.Op)
	switch {
	case next != "":
		parts = append(parts, next)
	case e.StatusCode == http.StatusTooManyRequests && e.RetryAfter > 0:
		parts = append(parts, "try again in "+e.RetryAfter.Round(time.Second).String())
	case e.StatusCode == http.StatusTooManyRequests, e.StatusCode >= 500:
		parts = append(parts, "try again later")
	}
	return joinParts(parts)
}

// lookUps are operations that change nothing although their method is POST. Errors do not warn of
// repeating them. For the transport they are writes, because that is certain only for a GET.
var lookUps = []string{
	opAtHomeAvailability, opWalkInAvailability, opListMarkersOfOrderSet, opSearchPayorsDeprecated, opValidateICDCodes,
	"POST /v1/org/{org_id}/resolve_team",
}

// isLookUp reports whether an operation changes nothing.
func isLookUp(op string) bool { return !isWrite(op) || slices.Contains(lookUps, op) }

// nextStep returns what to do after a write of this outcome, before it is repeated.
func nextStep(outcome Outcome, op string) string {
	switch {
	case isLookUp(op):
		return ""
	case outcome == OutcomeUnknown:
		return lookFirst
	case outcome == OutcomeApplied:
		return "it took effect: do not repeat it"
	}
	return ""
}

// joinParts joins the parts that are not empty.
func joinParts(parts []string) string {
	var b strings.Builder
	for _, part := range parts {
		if b.Len() > 0 && part != "" {
			b.WriteString("; ")
		}
		b.WriteString(part)
	}
	return b.String()
}

// knownReason returns what is known about the message or the error type of the response.
func (e *APIError) knownReason(message string) string {
	switch {
	case e.reason != "":
		return e.reason
	case e.lacksResults(message):
		return noResultsYet
	}
	// The type comes first: what a message says about a token may be about that of a link.
	if reason := knownReason(e.errorType()); reason != "" {
		return reason
	}
	return knownReason(message)
}

// statusReason returns what is known about the status.
func (e *APIError) statusReason() string {
	if e.isHTML() {
		return sentHTML
	}
	for _, reason := range statusReasons {
		if reason.status == e.StatusCode && strings.Contains(e.Op, reason.op) {
			return reason.text
		}
	}
	if e.StatusCode >= 300 && e.StatusCode <= 399 {
		return "it is a redirect: " + checkRedirect
	}
	return ""
}

// lacksResults reports whether the response means that an order has no results. An unknown order
// and a wrong path have other messages. No document has the message: any message about results is
// taken for it, which is an inference.
func (e *APIError) lacksResults(message string) bool {
	if e.StatusCode != http.StatusNotFound || !strings.Contains(e.Op, "/result") || len(message) > maxPhrase || e.isHTML() {
		return false
	}
	reason := knownReason(message)
	return (reason == "" || reason == noResultsYet) && strings.Contains(normalize(message), "result")
}

// isWrite reports whether an operation may change something.
func isWrite(op string) bool {
	return !strings.HasPrefix(op, http.MethodGet+" ") && !strings.HasPrefix(op, http.MethodHead+" ")
}
