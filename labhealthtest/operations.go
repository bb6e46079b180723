// The table of operations, and the routing of requests.

package labhealthtest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// operation is one operation of the server.
type operation struct {
	method string
	// pattern is a path. A segment in braces is a variable, which matches every segment that is
	// not empty. Paths are matched as sent: an escaped slash is part of its segment, and a
	// trailing slash makes another path.
	pattern string
	handle  handler
}

// A handler processes a valid request. It returns a *response, or the value to encode as the body
// of a 200 response. Its error is a *response too. It runs under Server.mu.
type handler func(*Server, *request) (any, error)

// A handlerOf processes a valid request for something that the server has.
type handlerOf[E any] func(*Server, *request, E) (any, error)

// on returns the handler of an operation on what find returns.
func on[E any](find func(*Server, *request) (E, error), handle handlerOf[E]) handler {
	return func(s *Server, r *request) (any, error) {
		found, err := find(s, r)
		if err != nil {
			return nil, err
		}
		return handle(s, r, found)
	}
}

// The operations on what the path identifies.

func onOrder(h handlerOf[*order]) handler               { return on((*Server).requestedOrder, h) }
func onResults(h handlerOf[*order]) handler             { return on((*Server).requestedResults, h) }
func onUser(h handlerOf[*user]) handler                 { return on((*Server).requestedUser, h) }
func onTest(h handlerOf[*labTest]) handler              { return on((*Server).requestedTest, h) }
func onTeam(h handlerOf[*team]) handler                 { return on((*Server).requestedTeam, h) }
func onOwnTeam(h handlerOf[*team]) handler              { return on((*Server).requestedOwnTeam, h) }
func onUnmatched(h handlerOf[*unmatchedResult]) handler { return on((*Server).requestedUnmatched, h) }

// orgPath is the prefix of all paths of the management API.
const orgPath = "/v1/org/{org_id}"

const (
	webhooksPath    = orgPath + "/team/{team_id}/{environment}/webhook"
	webhookPath     = webhooksPath + "/{webhook_id}"
	apiKeysPath     = orgPath + "/team_api_keys/{env}/{region}"
	credentialsPath = orgPath + "/team_custom_credentials/{env}/{region}"
	pipelinesPath   = orgPath + "/team_etl_pipelines/{env}/{region}"
	preferencesPath = orgPath + "/team_data_pull_preferences/{env}/{region}"
	scopesPath      = orgPath + "/team/{team_id}/scope_requirements"
	labAccountsPath = orgPath + "/lab_account/{env}/{region}"
)

const importPath = "/v3/order/import"

// operations are all operations of the server. The first one that matches a request handles it.
var operations = slices.Concat(teamOperations, orgOperations, managementOperations)

// teamOperations are those of the team API.
var teamOperations = []operation{
	{"POST", importPath, (*Server).importOrder},
	{"POST", "/v3/order", (*Server).createOrder},
	{"PATCH", "/v3/order/{order_id}", onOrder((*Server).updateOrder)},
	{"GET", "/v3/order/{order_id}", (*Server).getOrder},
	// The interface specification has /orders, the public API reference has /v3/orders.
	{"GET", "/orders", (*Server).listOrders},
	{"GET", "/v3/orders", (*Server).listOrders},
	{"POST", "/v3/order/resend_events", (*Server).resendEvents},
	{"POST", "/v3/order/{order_id}/cancel", onOrder((*Server).cancelOrder)},
	{"POST", "/v3/order/{order_id}/test", onOrder((*Server).simulateOrder)},
	{"GET", "/v3/order/{order_id}/result", onResults((*Server).getResults)},
	{"GET", "/v3/order/{order_id}/result/metadata", onResults((*Server).getResultsMetadata)},
	{"GET", "/v3/order/{order_id}/result/pdf", onResults((*Server).getResultsPDF)},
	{"GET", "/v3/order/{order_id}/requisition/pdf", onOrder((*Server).getRequisition)},
	{"GET", "/v3/order/{order_id}/labels/pdf", onOrder((*Server).getLabels)},
	{"GET", "/v3/order/{order_id}/abn_pdf", onOrder((*Server).getABN)},
	{"GET", "/v3/order/{order_id}/collection_instruction_pdf", onOrder((*Server).getCollectionInstructions)},
	{"GET", "/v3/order/{order_id}/communication_settings", onOrder((*Server).getCommunicationSettings)},
	{"PATCH", "/v3/order/{order_id}/communication_settings", onOrder((*Server).patchCommunicationSettings)},
	{"PATCH", "/v3/order/{order_id}/draw_completed", onOrder((*Server).markDrawCompleted)},
	{"POST", "/v3/order/testkit", (*Server).createTestkit},
	{"POST", "/v3/order/testkit/register", (*Server).registerTestkit},

	{"GET", "/v3/order_transaction/{transaction_id}", on((*Server).requestedTransaction, (*Server).getTransaction)},
	{"GET", "/v3/order_transaction/{transaction_id}/result", on((*Server).requestedTransactionResults, (*Server).getTransactionResults)},
	{"GET", "/v3/order_transaction/{transaction_id}/result/pdf", on((*Server).requestedTransactionResults, (*Server).getTransactionResultsPDF)},

	{"GET", "/v3/order/area/info", (*Server).getAreaInfo},
	{"GET", "/v3/order/psc/info", (*Server).getPSCInfo},
	{"GET", "/v3/order/{order_id}/psc/info", onOrder((*Server).getOrderPSCInfo)},

	{"POST", "/v3/order/phlebotomy/appointment/availability", (*Server).offerAtHome},
	{"POST", "/v3/order/{order_id}/phlebotomy/appointment/request", (*Server).requestAppointment},
	{"POST", "/v3/order/{order_id}/phlebotomy/appointment/book", ofKind(atHome, (*Server).bookAppointment)},
	{"PATCH", "/v3/order/{order_id}/phlebotomy/appointment/reschedule", onAppointment(atHome, (*Server).rescheduleAppointment)},
	{"PATCH", "/v3/order/{order_id}/phlebotomy/appointment/cancel", onAppointment(atHome, (*Server).cancelAppointment)},
	{"GET", "/v3/order/phlebotomy/appointment/cancellation-reasons", ofKind(atHome, (*Server).listCancellationReasons)},
	{"GET", "/v3/order/{order_id}/phlebotomy/appointment", onAppointment(atHome, (*Server).getAppointment)},
	{"POST", "/v3/order/psc/appointment/availability", (*Server).offerWalkIn},
	{"POST", "/v3/order/{order_id}/psc/appointment/book", ofKind(walkIn, (*Server).bookAppointment)},
	{"PATCH", "/v3/order/{order_id}/psc/appointment/reschedule", onAppointment(walkIn, (*Server).rescheduleAppointment)},
	{"PATCH", "/v3/order/{order_id}/psc/appointment/cancel", onAppointment(walkIn, (*Server).cancelAppointment)},
	{"GET", "/v3/order/psc/appointment/cancellation-reasons", ofKind(walkIn, (*Server).listCancellationReasons)},
	{"GET", "/v3/order/{order_id}/psc/appointment", onAppointment(walkIn, (*Server).getAppointment)},

	{"GET", "/v3/lab_test", (*Server).listLabTests},
	{"GET", "/v3/lab_tests", (*Server).listAllLabTests},
	{"POST", "/v3/lab_tests", (*Server).createLabTest},
	{"GET", "/v3/lab_tests/labs", (*Server).listLabs},
	{"GET", "/v3/lab_tests/markers", (*Server).listMarkers},
	{"POST", "/v3/lab_tests/list_order_set_markers", (*Server).listOrderSetMarkers},
	{"GET", "/v3/lab_tests/{lab_test_id}", (*Server).getLabTest},
	{"PATCH", "/v3/lab_tests/{lab_test_id}", onTest((*Server).updateLabTest)},
	{"GET", "/v3/lab_tests/{lab_test_id}/markers", onTest((*Server).listMarkersOfTest)},
	{"GET", "/v3/lab_tests/{lab_id}/markers/{provider_id}", (*Server).getMarker},
	{"GET", "/v3/lab_test/lab_account", (*Server).listLabAccounts},
	{"GET", "/v3/lab_test/{lab_test_id}/collection_instruction_pdf", onTest((*Server).getLabTestInstructions)},

	// The interface specification has /v2/user/, the public API reference has /v2/user.
	{"GET", "/v2/user/", (*Server).listUsers},
	{"GET", "/v2/user", (*Server).listUsers},
	{"POST", "/v2/user/", (*Server).createUser},
	{"POST", "/v2/user", (*Server).createUser},
	{"GET", "/v2/user/resolve/{client_user_id}", (*Server).resolveUser},
	{"POST", "/v2/user/undo_delete", (*Server).undoDelete},
	{"GET", "/v2/user/{user_id}", (*Server).getUser},
	{"PATCH", "/v2/user/{user_id}", onUser((*Server).patchUser)},
	{"DELETE", "/v2/user/{user_id}", onUser((*Server).deleteUser)},

	{"GET", "/v2/user/{user_id}/info/latest", onUser((*Server).getUserInfo)},
	{"PATCH", "/v2/user/{user_id}/info", onUser((*Server).updateUserInfo)},
	{"GET", "/v2/user/{user_id}/device", onUser((*Server).listDevices)},
	{"GET", "/v2/user/{user_id}/device/{device_id}", onUser((*Server).getDevice)},
	{"GET", "/v2/user/providers/{user_id}", onUser((*Server).listConnectedProviders)},
	{"POST", "/v2/user/refresh/{user_id}", onUser((*Server).refreshUser)},
	{"DELETE", "/v2/user/{user_id}/{provider}", onUser((*Server).disconnect)},

	{"POST", "/v2/link/token", (*Server).createLinkToken},
	{"GET", "/v2/link/provider/oauth/{oauth_provider}", (*Server).getOAuthProvider},
	{"GET", "/v2/link/providers", (*Server).listLinkProviders},
	{"POST", "/v2/link/connect/demo", (*Server).connectDemo},
	{"POST", "/v2/link/provider/password/{provider}", (*Server).connectPassword},
	{"POST", "/v2/link/provider/password/{provider}/complete_mfa", (*Server).completeMFA},
	{"POST", "/v2/link/provider/email/{provider}", (*Server).connectEmail},
	{"GET", "/v2/providers", (*Server).listProviders},

	{"POST", "/v2/user/{user_id}/insurance", onUser((*Server).createInsurance)},
	{"GET", "/v2/user/{user_id}/insurance/latest", onUser((*Server).getLatestInsurance)},
	{"POST", "/v2/user/{user_id}/sign_in_token", onUser((*Server).createSignInToken)},
	{"GET", "/v3/insurance/search/payor", (*Server).searchPayors},
	{"POST", "/v3/insurance/search/payor", (*Server).searchPayorsDeprecated},
	{"POST", "/v3/payor", (*Server).createPayor},
	{"GET", "/v3/insurance/search/diagnosis", (*Server).searchDiagnoses},
	{"POST", "/v3/insurance/validate_icd_codes", (*Server).validateICDCodes},

	{"GET", "/v3/unmatched_result", (*Server).listUnmatchedResults},
	{"GET", "/v3/unmatched_result/{raw_result_id}", (*Server).getUnmatchedResult},
	{"POST", "/v3/unmatched_result/{raw_result_id}/accept", onUnmatched((*Server).acceptUnmatchedResult)},
	{"POST", "/v3/unmatched_result/{raw_result_id}/resolve", onUnmatched((*Server).resolveUnmatchedResult)},
	{"GET", "/v3/unmatched_result_test/case", (*Server).listTestCases},
	{"POST", "/v3/unmatched_result_test", (*Server).createTestRun},
	{"GET", "/v3/unmatched_result_test/{run_id}", (*Server).getTestRun},

	{"POST", "/lab_report/v1/parser/job", (*Server).createParsingJob},
	{"GET", "/lab_report/v1/parser/job/{job_id}", (*Server).getParsingJob},

	{"GET", "/v2/team/users/search", (*Server).searchUsers},
	{"GET", "/v2/team/source/priorities", (*Server).listPriorities},
	{"PATCH", "/v2/team/source/priorities", (*Server).patchPriorities},
	{"GET", "/v2/team/{team_id}", onOwnTeam((*Server).getOwnTeam)},
	{"GET", "/v2/team/{team_id}/physicians", onOwnTeam((*Server).listPhysicians)},

	{"GET", "/v2/introspect/resources", (*Server).listResources},
	{"GET", "/v2/introspect/historical_pull", (*Server).listHistoricalPulls},
	{"GET", "/v2/timeseries/workouts/{workout_id}/stream", (*Server).getWorkoutStream},
	{"GET", "/v2/timeseries/sleep/{sleep_id}/stream", (*Server).getSleepStream},
	{"GET", "/v2/timeseries/{user_id}/{resource}/grouped", onUser((*Server).listSamples)},
	{"GET", "/v2/summary/{resource}/{user_id}", onUser((*Server).listSummaries)},
}

// orgOperations are those of the management API that Team Management Keys cannot use.
var orgOperations = []operation{
	{"GET", orgPath, (*Server).getOrganisation},
	{"PATCH", orgPath, (*Server).patchOrganisation},
	{"GET", orgPath + "/management_key", (*Server).listManagementKeys},
	{"POST", orgPath + "/management_key", (*Server).createManagementKey},
	{"PATCH", orgPath + "/management_key/{key_id}", on((*Server).requestedKey, (*Server).patchManagementKey)},
	{"DELETE", orgPath + "/management_key/{key_id}", on((*Server).requestedKey, (*Server).deleteManagementKey)},
	{"POST", orgPath + "/team", (*Server).createTeam},
	{"DELETE", orgPath + "/team/{team_id}", onTeam((*Server).deleteTeam)},
	{"GET", labAccountsPath, (*Server).listOrgLabAccounts},
	{"PATCH", labAccountsPath + "/{account_id}", (*Server).patchLabAccount},
}

// managementOperations are the others of the management API.
var managementOperations = []operation{
	{"GET", orgPath + "/team", (*Server).listTeams},
	{"GET", orgPath + "/team/{team_id}", onTeam((*Server).getTeam)},
	{"PATCH", orgPath + "/team/{team_id}", onTeam((*Server).patchTeam)},
	{"GET", scopesPath, onTeam((*Server).listScopes)},
	{"POST", scopesPath, onTeam((*Server).upsertScopes)},
	{"POST", orgPath + "/resolve_team", (*Server).resolveTeam},
	// The public API reference has both paths.
	{"POST", orgPath + "/team/{team_id}/create_api_access_token", onTeam((*Server).createToken)},
	{"POST", orgPath + "/team/{team_id}/create_access_token", onTeam((*Server).createToken)},

	{"GET", webhooksPath, onTeam((*Server).listWebhooks)},
	{"POST", webhooksPath, onTeam((*Server).createWebhook)},
	{"GET", webhookPath, onWebhook((*Server).getWebhook)},
	{"PATCH", webhookPath, onWebhook((*Server).patchWebhook)},
	{"DELETE", webhookPath, onWebhook((*Server).deleteWebhook)},
	{"GET", webhookPath + "/headers", onWebhook((*Server).getWebhookHeaders)},
	{"PUT", webhookPath + "/headers", onWebhook((*Server).putWebhookHeaders)},
	{"GET", webhookPath + "/secret", onWebhook((*Server).getWebhookSecret)},
	{"POST", webhookPath + "/secret/rotate", onWebhook((*Server).rotateWebhookSecret)},

	{"GET", orgPath + "/team/{team_id}/{environment}/event_delivery_metric", onTeam((*Server).getDeliveryMetric)},

	{"GET", apiKeysPath, apiKeys.list},
	{"POST", apiKeysPath, (*Server).createAPIKey},
	{"DELETE", apiKeysPath, apiKeys.delete("api_key_id")},
	{"GET", credentialsPath, allCredentials.list},
	{"POST", credentialsPath, (*Server).upsertCredentials},
	{"DELETE", credentialsPath, allCredentials.delete("credential_id")},
	{"POST", orgPath + "/prepare_team_custom_credentials/{env}/{region}", (*Server).prepareCredentials},
	{"GET", pipelinesPath, pipelines.list},
	{"POST", pipelinesPath, (*Server).upsertPipelines},
	{"DELETE", pipelinesPath, (*Server).deletePipelines},
	{"GET", preferencesPath, (*Server).listPreferences},
	{"POST", preferencesPath, (*Server).upsertPreferences},
	{"DELETE", preferencesPath, (*Server).deletePreferences},
}

// String returns the name of the operation, such as "GET /v2/user/{user_id}".
func (o operation) String() string { return o.method + " " + o.pattern }

// isOfOrders reports whether the operation may read orders or their appointments and transactions.
func (o operation) isOfOrders() bool {
	return strings.HasPrefix(o.pattern, "/v3/order") || o.pattern == "/orders"
}

// find returns the operation that handles a request, with the variables of its path, or nil and the
// methods with which the path has operations.
func find(method, path string) (o *operation, vars map[string]string, allowed []string) {
	for i := range operations {
		o := &operations[i]
		vars, ok := match(o.pattern, path)
		switch {
		case ok && o.method == method:
			return o, vars, nil
		case ok:
			allowed = append(allowed, o.method)
		}
	}
	return nil, nil, allowed
}

// route returns the operation of a request and validates the variables of its path.
func route(r *request) (*operation, error) {
	o, vars, allowed := find(r.method, r.path)
	switch {
	case o != nil:
		r.vars, r.rules = vars, rulesOf(strings.Replace(o.String(), "{resource}", vars["resource"], 1))
		if r.rules == nil {
			return nil, notFound // no such resource
		}
		r.validate("path")
		return o, nil
	case allowed == nil:
		return nil, notFound
	}
	return nil, &response{
		statusCode: http.StatusMethodNotAllowed,
		body:       encode(map[string]string{"detail": "Method Not Allowed"}),
		allow:      strings.Join(allowed, ", "),
	}
}

// Operations returns the method and the path of each operation of a [Server], such as
// "PATCH /v3/order/{order_id}". [Server.FailAfter] accepts them, and [Request] has them.
func Operations() []string {
	names := make([]string, len(operations))
	for i, o := range operations {
		names[i] = o.String()
	}
	return names
}

// operationOf returns the name of the operation that handles a request, or "" if there is none.
func operationOf(method, path string) string {
	if o, _, _ := find(method, path); o != nil {
		return o.String()
	}
	return ""
}

// match reports whether an escaped path matches a pattern, and returns the unescaped variables.
func match(pattern, path string) (vars map[string]string, ok bool) {
	for {
		want, patternRest, morePattern := strings.Cut(pattern, "/")
		got, pathRest, morePath := strings.Cut(path, "/")
		switch {
		case morePattern != morePath:
			return nil, false
		case strings.HasPrefix(want, "{"):
			value, err := url.PathUnescape(got)
			if err != nil || value == "" {
				return nil, false
			}
			if vars == nil {
				vars = map[string]string{}
			}
			vars[strings.Trim(want, "{}")] = value
		case want != got:
			return nil, false
		}
		if !morePattern {
			return vars, true
		}
		pattern, path = patternRest, pathRest
	}
}
