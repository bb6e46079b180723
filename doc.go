// Package labhealth is a client for the lab-order, user-listing and webhook interface of a health-data and lab-testing
// service. It imports and follows lab orders, lists the team's users, and reads what the service sends.
//
// Three promises set it apart. Nothing is done twice: one call creates at most one order, whatever the network does, and every
// error says what became of the request. Nothing is lost: values this version does not know, and values that do not fit, keep
// the bytes they came as. Nothing leaks: the key and the patient's data reach the service and nobody else, and no log, error
// text or %v shows them.
//
//	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL("https://…"))
//	if err != nil {
//		return err
//	}
//	resp, err := client.Orders.Import(ctx, labhealth.ImportOrderBody{…})
//
// # Operations
//
//	POST   /v3/order/import                              Client.Orders.Import (closed beta)
//	POST   /v3/order                                     Client.Orders.Create
//	PATCH  /v3/order/{order_id}                          Client.Orders.Update, Reschedule, Release
//	GET    /v3/order/{order_id}                          Client.Orders.Get
//	GET    /orders                                       Client.Orders.List, All
//	GET    /v3/order/{order_id}/result                   Client.Orders.Results
//	GET    /v3/order/{order_id}/requisition/pdf          Client.Orders.RequisitionPDF
//	GET    /v3/lab_test                                  Client.LabTests.List, All
//	GET    /v3/lab_tests                                 Client.LabTests.ListDeprecated (deprecated)
//	GET    /v2/user/                                     Client.Users.List, All
//	POST   /v2/user                                      Client.Users.Create, GetOrCreate
//	GET    /v2/user/{user_id}                            Client.Users.Get
//	GET    /v2/user/resolve/{client_user_id}             Client.Users.Resolve
//	DELETE /v2/user/{user_id}                            Client.Users.Delete
//	POST   /v2/user/undo_delete                          Client.Users.UndoDelete
//	GET    /v2/introspect/historical_pull                Client.Users.HistoricalPulls, AllHistoricalPulls
//	GET    /v2/timeseries/workouts/{workout_id}/stream   Client.Workouts.Stream
//	any other                                            Client.Do
//
// The webhook events are read by package webhooks, thousands of orders are imported by package bulk, and package labhealthtest is an
// embedded service to try and to test against.
//
// # Management
//
// [ManagementClient] is a client of its own for the management API: its keys and those of the team API never meet. See
// [NewManagementClient] for its kinds of key. It is on the Scale plan. The interface document names the groups of its operations;
// paths and members are from the public reference.
//
//	GET    /v1/org/{org_id}                                                              ManagementClient.Organisation.Get
//	PATCH  /v1/org/{org_id}                                                              ManagementClient.Organisation.Update
//	GET    /v1/org/{org_id}/team                                                         ManagementClient.Teams.List, All
//	POST   /v1/org/{org_id}/team                                                         ManagementClient.Teams.Create
//	GET    /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Get
//	PATCH  /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Update, SetBrandInformation
//	DELETE /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Delete
//	POST   /v1/org/{org_id}/resolve_team                                                 ManagementClient.Teams.Resolve
//	POST   /v1/org/{org_id}/team/{team_id}/create_api_access_token                       ManagementClient.Teams.CreateAccessToken
//	GET    /v1/org/{org_id}/management_key                                               ManagementClient.Keys.List, All
//	POST   /v1/org/{org_id}/management_key                                               ManagementClient.Keys.Create
//	PATCH  /v1/org/{org_id}/management_key/{key_id}                                      ManagementClient.Keys.Update
//	DELETE /v1/org/{org_id}/management_key/{key_id}                                      ManagementClient.Keys.Delete
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook                         ManagementClient.Webhooks.List, All
//	POST   /v1/org/{org_id}/team/{team_id}/{environment}/webhook                         ManagementClient.Webhooks.Create
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            ManagementClient.Webhooks.Get
//	PATCH  /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            ManagementClient.Webhooks.Update
//	DELETE /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            ManagementClient.Webhooks.Delete
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers    ManagementClient.Webhooks.Headers
//	PUT    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers    ManagementClient.Webhooks.ReplaceHeaders
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret     ManagementClient.Webhooks.Secret
//	POST   /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret/rotate   ManagementClient.Webhooks.RotateSecret
//	GET    /v1/org/{org_id}/team_api_keys/{env}/{region}                                 ManagementClient.TeamAPIKeys.List, All
//	POST   /v1/org/{org_id}/team_api_keys/{env}/{region}                                 ManagementClient.TeamAPIKeys.Create
//	DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}                                 ManagementClient.TeamAPIKeys.Delete
//	GET    /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       ManagementClient.CustomCredentials.List, All
//	POST   /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       ManagementClient.CustomCredentials.Upsert
//	DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       ManagementClient.CustomCredentials.Delete
//	POST   /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}               ManagementClient.CustomCredentials.Prepare
//	GET    /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            ManagementClient.Pipelines.List, All
//	POST   /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            ManagementClient.Pipelines.Upsert
//	DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            ManagementClient.Pipelines.Delete
//	any other                                                                            ManagementClient.Do
//
// Keys, signing secrets, tokens and connection strings are [Secret]: printed, they are "[redacted]".
//
// # Environments
//
// The service has four addresses: production and sandbox, in the US and in the EU. None is published, and none is the default:
// name yours with [WithBaseURL], or all of them once and one by name with [WithEnvironment]. Addresses must be https; http is
// for loopback addresses. A deployment that has an operation at another path is told so with [WithPath].
//
// # Values
//
// In a request a required member is a plain value and always sent. An optional one is a pointer (see [Ptr]) or a slice and left
// out if nil. Where leaving out and null differ there is [Nullable]. In an answer a member that may be null or absent is a
// pointer, nil for both, unless the document gives a default: then the default is filled in. Dates without a time are [Date];
// money keeps its digits in a json.Number. Enumerations are strings with constants; other values occur and pass in both
// directions.
//
// A member whose value does not fit its type never fails the answer: it is left zero, [Kept.Malformed] names it, and
// [Kept.RawJSON] has its bytes. Encoding a decoded value to JSON writes every member that came, with the changes made since.
//
// # Errors and outcomes
//
// [OutcomeOf] says what became of a failed request: not sent, rejected, applied, or unknown. Only a write whose outcome is
// unknown needs care: look whether the order is there before you import it again.
//
//	*ValidationError     refused here, before anything was sent; names all members that are wrong
//	*APIError            an answer that is not 2xx; errors.Is with ErrNotFound and its like tells the class
//	*UserConflictError   the client user id belongs to a user already; holds that user's id
//	*TeamConflictError   the integration team id belongs to a team already; holds that team's id
//	*DecodeError         a 2xx answer that could not be read
//	*TransportError      no answer; wraps the context's error and the cause
//	*RedirectError       a redirect that is not followed
//
// # Retries
//
// A GET is repeated after a lost connection, a timeout, 408, 429 and most 5xx. Every other method is repeated only if the
// request provably never reached the service, or after a 429, which is taken as "not carried out": never after a 5xx, a timeout or
// a lost connection, unless it carries an idempotency key. See [RetryPolicy].
//
// # Redaction
//
// Types that hold patient data print a short form under every verb of fmt and as slog attributes. Two ways around that no type
// can prevent: fmt prints the content of unexported fields of a caller's own struct, and slog's JSON handler encodes values
// that sit inside structs and slices, because encoding to JSON is always complete. A nil pointer to such a type is safe to log, but
// slog reports it as a panic of LogValue.
//
// # Testing
//
// Start the embedded service with labhealthtest.NewServer, or give [WithHTTPClient] a client whose transport answers from a
// script. go-cmp compares decoded values with literals without options, because [Kept] has an Equal method.
package labhealth
