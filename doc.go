// Package labhealth is a client for a health-data and lab-testing service. It imports, creates and
// tracks lab orders, books appointments, manages the users of your team and their connections to
// wearable providers, and reads wearable data.
//
// One call creates at most one order. Every error reports the outcome of the request: not sent,
// rejected, applied or unknown. Unknown fields, enum values and types survive decoding and
// re-encoding. Keys and patient data are sent only to the service: they do not appear in logs,
// error messages or the output of %v.
//
// # Quick start
//
//	client, err := labhealth.NewClient(apiKey, labhealth.WithEnvironment(labhealth.SandboxUS, baseURL))
//	if err != nil {
//		return err
//	}
//	resp, err := client.Orders.Import(ctx, labhealth.ImportOrderBody{…})
//	if err != nil {
//		return fmt.Errorf("outcome %s: %w", labhealth.OutcomeOf(err), err)
//	}
//	fmt.Println(resp.Order.ID, resp.Order.CurrentStatus())
//
// Ask the service for your API key and base URL. [OrdersService.Import], in closed beta, is for
// samples that already exist; [OrdersService.Create] places a new order. Create one [Client] and
// reuse it. Every method takes a context, the IDs in the path, a body or parameters by value, and
// options for the call ([CallOption]). If it returns an error, the result is nil.
//
// [OrdersService.List], [LabTestsService.Markers] and others return one page. Methods with All in
// their names, such as [OrdersService.All] or [LabTestsService.AllMarkers], iterate over all pages.
// A method that returns a slice, such as [LabTestsService.Labs], returns the complete list.
//
// Package [github.com/labhealth/labhealth-go/webhooks] receives the events of the service. Package
// [github.com/labhealth/labhealth-go/webhooks/sqlstore] stores orders and wearable data. Package
// [github.com/labhealth/labhealth-go/bulk] imports thousands of orders. Package
// [github.com/labhealth/labhealth-go/management] manages teams, keys and webhooks. Package
// [github.com/labhealth/labhealth-go/labhealthtest] provides an embedded imitation of the service,
// for development and tests.
//
// # Operations
//
// The methods belong to [OrdersService], [OrderTransactionsService], [LabTestsService],
// [AppointmentsService], [InsuranceService], [UnmatchedResultsService], [LabReportsService],
// [UsersService], [LinkService], [ProvidersService], [WearablesService], [WorkoutsService] and
// [TeamService].
//
//	POST   /v3/order/import                                        Client.Orders.Import (closed beta)
//	POST   /v3/order                                               Client.Orders.Create
//	PATCH  /v3/order/{order_id}                                    Client.Orders.Update, Reschedule, Release
//	GET    /v3/order/{order_id}                                    Client.Orders.Get
//	GET    /orders                                                 Client.Orders.List, All
//	POST   /v3/order/{order_id}/cancel                             Client.Orders.Cancel
//	POST   /v3/order/testkit                                       Client.Orders.CreateTestkit
//	POST   /v3/order/testkit/register                              Client.Orders.RegisterTestkit
//	PATCH  /v3/order/{order_id}/draw_completed                     Client.Orders.MarkDrawCompleted
//	POST   /v3/order/{order_id}/test                               Client.Orders.Simulate
//	POST   /v3/order/resend_events                                 Client.Orders.ResendEvents
//	GET    /v3/order/{order_id}/communication_settings             Client.Orders.CommunicationSettings
//	PATCH  /v3/order/{order_id}/communication_settings             Client.Orders.UpdateCommunicationSettings
//	GET    /v3/order/{order_id}/result                             Client.Orders.Results
//	GET    /v3/order/{order_id}/result/metadata                    Client.Orders.ResultsMetadata
//	GET    /v3/order/{order_id}/result/pdf                         Client.Orders.ResultsPDF
//	GET    /v3/order/{order_id}/requisition/pdf                    Client.Orders.RequisitionPDF
//	GET    /v3/order/{order_id}/labels/pdf                         Client.Orders.LabelsPDF
//	GET    /v3/order/{order_id}/abn_pdf                            Client.Orders.ABNPDF
//	GET    /v3/order/{order_id}/collection_instruction_pdf         Client.Orders.CollectionInstructionsPDF
//	GET    /v3/order_transaction/{transaction_id}                  Client.OrderTransactions.Get
//	GET    /v3/order_transaction/{transaction_id}/result           Client.OrderTransactions.Results
//	GET    /v3/order_transaction/{transaction_id}/result/pdf       Client.OrderTransactions.ResultsPDF
//	GET    /v3/lab_test                                            Client.LabTests.List, All
//	GET    /v3/lab_tests                                           Client.LabTests.ListDeprecated (deprecated)
//	POST   /v3/lab_tests                                           Client.LabTests.Create
//	GET    /v3/lab_tests/{lab_test_id}                             Client.LabTests.Get
//	PATCH  /v3/lab_tests/{lab_test_id}                             Client.LabTests.Update
//	GET    /v3/lab_test/{lab_test_id}/collection_instruction_pdf   Client.LabTests.CollectionInstructionsPDF
//	GET    /v3/lab_tests/markers                                   Client.LabTests.Markers, AllMarkers
//	GET    /v3/lab_tests/{lab_test_id}/markers                     Client.LabTests.MarkersOfTest, AllMarkersOfTest
//	POST   /v3/lab_tests/list_order_set_markers                    Client.LabTests.MarkersOfOrderSet, AllMarkersOfOrderSet
//	GET    /v3/lab_tests/{lab_id}/markers/{provider_id}            Client.LabTests.Marker
//	GET    /v3/lab_tests/labs                                      Client.LabTests.Labs
//	GET    /v3/lab_test/lab_account                                Client.LabTests.LabAccounts
//	GET    /v3/order/area/info                                     Client.Appointments.Area
//	GET    /v3/order/psc/info                                      Client.Appointments.Sites
//	GET    /v3/order/{order_id}/psc/info                           Client.Appointments.OrderSites
//	POST   /v3/order/phlebotomy/appointment/availability           Client.Appointments.AtHomeAvailability
//	POST   /v3/order/psc/appointment/availability                  Client.Appointments.WalkInAvailability
//	POST   /v3/order/{order_id}/phlebotomy/appointment/request     Client.Appointments.Request
//	POST   /v3/order/{order_id}/phlebotomy/appointment/book        Client.Appointments.Book
//	POST   /v3/order/{order_id}/psc/appointment/book               Client.Appointments.Book
//	PATCH  /v3/order/{order_id}/phlebotomy/appointment/reschedule  Client.Appointments.Reschedule
//	PATCH  /v3/order/{order_id}/psc/appointment/reschedule         Client.Appointments.Reschedule
//	PATCH  /v3/order/{order_id}/phlebotomy/appointment/cancel      Client.Appointments.Cancel
//	PATCH  /v3/order/{order_id}/psc/appointment/cancel             Client.Appointments.Cancel
//	GET    /v3/order/phlebotomy/appointment/cancellation-reasons   Client.Appointments.CancellationReasons
//	GET    /v3/order/psc/appointment/cancellation-reasons          Client.Appointments.CancellationReasons
//	GET    /v3/order/{order_id}/phlebotomy/appointment             Client.Appointments.Get
//	GET    /v3/order/{order_id}/psc/appointment                    Client.Appointments.Get
//	GET    /v3/insurance/search/payor                              Client.Insurance.SearchPayors
//	POST   /v3/insurance/search/payor                              Client.Insurance.SearchPayorsDeprecated (deprecated)
//	POST   /v3/payor                                               Client.Insurance.CreatePayor
//	GET    /v3/insurance/search/diagnosis                          Client.Insurance.SearchDiagnoses
//	POST   /v3/insurance/validate_icd_codes                        Client.Insurance.ValidateICDCodes
//	GET    /v3/unmatched_result                                    Client.UnmatchedResults.List, All
//	GET    /v3/unmatched_result/{raw_result_id}                    Client.UnmatchedResults.Get
//	POST   /v3/unmatched_result/{raw_result_id}/accept             Client.UnmatchedResults.Accept
//	POST   /v3/unmatched_result/{raw_result_id}/resolve            Client.UnmatchedResults.Resolve
//	GET    /v3/unmatched_result_test/case                          Client.UnmatchedResults.TestCases
//	POST   /v3/unmatched_result_test                               Client.UnmatchedResults.CreateTest
//	GET    /v3/unmatched_result_test/{run_id}                      Client.UnmatchedResults.Test
//	POST   /lab_report/v1/parser/job                               Client.LabReports.Create
//	GET    /lab_report/v1/parser/job/{job_id}                      Client.LabReports.Get
//	GET    /v2/user/                                               Client.Users.List, All
//	POST   /v2/user                                                Client.Users.Create, GetOrCreate
//	GET    /v2/user/{user_id}                                      Client.Users.Get
//	GET    /v2/user/resolve/{client_user_id}                       Client.Users.Resolve
//	DELETE /v2/user/{user_id}                                      Client.Users.Delete
//	POST   /v2/user/undo_delete                                    Client.Users.UndoDelete
//	PATCH  /v2/user/{user_id}                                      Client.Users.Update
//	GET    /v2/user/{user_id}/info/latest                          Client.Users.Info
//	PATCH  /v2/user/{user_id}/info                                 Client.Users.UpdateInfo
//	GET    /v2/user/{user_id}/device                               Client.Users.Devices
//	GET    /v2/user/{user_id}/device/{device_id}                   Client.Users.Device
//	GET    /v2/user/providers/{user_id}                            Client.Users.ConnectedProviders
//	DELETE /v2/user/{user_id}/{provider}                           Client.Users.Disconnect
//	POST   /v2/user/refresh/{user_id}                              Client.Users.Refresh
//	POST   /v2/user/{user_id}/insurance                            Client.Users.CreateInsurance
//	GET    /v2/user/{user_id}/insurance/latest                     Client.Users.LatestInsurance
//	POST   /v2/user/{user_id}/sign_in_token                        Client.Users.CreateSignInToken
//	GET    /v2/introspect/resources                                Client.Users.Resources, AllResources
//	GET    /v2/introspect/historical_pull                          Client.Users.HistoricalPulls, AllHistoricalPulls
//	POST   /v2/link/token                                          Client.Link.CreateToken
//	GET    /v2/link/provider/oauth/{oauth_provider}                Client.Link.OAuth
//	GET    /v2/link/providers                                      Client.Link.Providers
//	POST   /v2/link/connect/demo                                   Client.Link.ConnectDemo
//	POST   /v2/link/provider/password/{provider}                   Client.Link.ConnectPassword
//	POST   /v2/link/provider/password/{provider}/complete_mfa      Client.Link.CompletePasswordMFA
//	POST   /v2/link/provider/email/{provider}                      Client.Link.ConnectEmail
//	GET    /v2/providers                                           Client.Providers.List
//	GET    /v2/summary/{resource}/{user_id}                        Client.Wearables.Summaries
//	GET    /v2/timeseries/{user_id}/{resource}/grouped             Client.Wearables.Samples, SamplePages
//	GET    /v2/timeseries/sleep/{sleep_id}/stream                  Client.Wearables.SleepStream
//	GET    /v2/timeseries/workouts/{workout_id}/stream             Client.Workouts.Stream
//	GET    /v2/team/{team_id}                                      Client.Team.Get
//	GET    /v2/team/users/search                                   Client.Team.SearchUsers
//	GET    /v2/team/source/priorities                              Client.Team.SourcePriorities
//	PATCH  /v2/team/source/priorities                              Client.Team.UpdateSourcePriorities
//	GET    /v2/team/{team_id}/physicians                           Client.Team.Physicians
//	any other                                                      Client.Do
//
// The methods above call the team API. The management API has its own client, in package
// [github.com/labhealth/labhealth-go/management], so that no key ever reaches the other API.
//
// # Sources
//
// Two documents define what this package does. The interface specification (INTERFACE.md, which is
// not part of the module) describes this service, as of API version 0.4.545. Comments that name no
// other source follow it. The public API reference, as of version 0.4.687, fills the gaps. It
// describes a whole family of services: your deployment may differ from it.
//
// The interface specification has these operations: Orders.Import, Orders.Create, Orders.Update,
// Orders.Reschedule, Orders.Release, Orders.List, Orders.All, Orders.Results,
// Orders.RequisitionPDF, LabTests.List, LabTests.All, LabTests.ListDeprecated, Users.List,
// Users.All, Users.Create, Users.GetOrCreate, Users.Delete, Users.UndoDelete,
// Users.HistoricalPulls, Users.AllHistoricalPulls, Workouts.Stream. All others, and the types that
// only they use, are based on the reference alone. So is every statement that ends with "Source:
// public API reference only." The ending may name a part: "Source of the path: public API reference
// only." Where the two documents disagree, the client sends what the specification says and accepts
// both. Statements that neither of them supports are marked as inferences.
//
// # Environments
//
// The service has four environments: production and sandbox, in the US and in the EU. Each is a
// deployment of its own, with its base URL, keys and data. There is no default base URL: ask the
// service for yours, and pass it with [WithEnvironment]. [ParseEnvironment] parses a configured
// name. Base URLs must be https, except on the loopback interface and for the host of
// [WithInsecureHTTP]. If your deployment has an operation at another path, set it with [WithPath].
//
// # Credentials
//
// A [Client] uses a team API key; a client of package management uses a management key. To rotate
// keys or renew access tokens without a new client, replace the key with a function: see
// [WithCredentials], and Teams.Credentials of package management, which returns one.
//
// # Values
//
//   - A required field of a request is a plain value and is always sent. An optional field, or a
//     field of parameters, is omitted if zero. It is a pointer, such as new(v), or a slice, unless
//     its zero value, such as an empty string, can mean "not given". [Nullable] is for fields in
//     which null and omitted differ.
//   - A response field that may be null or absent is a pointer, nil in both cases. If a default is
//     documented, the field has the default instead.
//   - IDs are of type uuid.UUID, instants of type time.Time, and dates of type [Date]. Money is a
//     json.Number with the digits as received.
//   - Enumerations are strings with constants, such as [Billing]. Responses can have other values,
//     and requests accept them: a switch needs a default case.
//   - A field that can hold one of several types, such as [OrderDetails.Data], is an interface. A
//     further type holds values of unknown types.
//
// If the value of a field has the wrong type or format, the call succeeds: the field is zero,
// [RawObject.Malformed] names it, and [RawObject.RawJSON] has its JSON. Encoding a decoded value as
// JSON writes every received field, with your changes. Of a changed field that was received more
// than once, the last one remains. Elements of a changed list of numbers, strings or IDs are known
// by their value: a zero may be written as another element that was received as null or malformed.
//
// # Errors and outcomes
//
// [OutcomeOf] classifies a failed request: [OutcomeNotSent], [OutcomeRejected], [OutcomeApplied] or
// [OutcomeUnknown]. If the outcome of an import is unknown, look for the order before you import it
// again. The text of an error says what to change, if that is known. It never quotes the response,
// which may have patient data.
//
//   - *[ValidationError]: the request is invalid and was not sent; it lists every invalid field
//   - *[APIError]: the service reports an error. errors.Is tests its class: [ErrNotFound],
//     [ErrNoResults] and others. [APIError.Message] returns the service's own words, and
//     [APIError.Fields] returns the field errors of a 422 (HTTPValidationError)
//   - *[UserConflictError]: your own ID for the user is in use; the error has the existing user's
//   - *[UserRefreshError]: no data of the user could be refreshed; the error has the sources that
//     failed
//   - *[TeamConflictError]: the integration team ID is in use; the error has the existing team's ID
//   - *[DecodeError]: the response is 2xx but cannot be decoded
//   - *[TransportError]: there is no response. It wraps the cause, such as the context's error.
//     errors.As may also find an *APIError, of an earlier attempt or of the source of credentials:
//     call [OutcomeOf] first
//   - *[RedirectError]: the response is a redirect that is not followed
//
// # Retries
//
// A GET is retried after a lost connection, a timeout, 408, 429 and most 5xx. Any other request is
// retried only if it provably never reached the service, or after a 429, which is treated as "not
// processed". With an idempotency key ([WithIdempotencyKey] says how to choose one), also after a
// 5xx, a timeout or a lost connection. See [RetryPolicy] for the details. [WithRateLimit] keeps a
// client below the limit of the service.
//
// # Observability
//
// [WithCallObserver] reports every call and every attempt, and [WithLogger] logs them. [WithDebug]
// writes requests and responses without patient data. [FailureOf] classifies failures for metrics.
// Failures and error messages hold no ID of a patient and no text of net/http.
//
// Two modules are added with one option each: github.com/labhealth/labhealth-go/labhealthotel
// records OpenTelemetry traces and metrics, labhealthprom Prometheus metrics.
//
// # Redaction
//
// Values decoded from JSON of the service, and requests with patient data or secrets, print
// "{redacted}" under every verb of fmt and as a slog attribute. [Redacted] lists the exceptions.
// Some types add their IDs; catalogs, such as [LabTest], print their fields. JSON is not redacted.
// Logging a nil pointer to a redacted type is harmless, but slog writes that LogValue panicked.
//
// # Testing
//
// Start the embedded service with labhealthtest.NewServer, or pass [WithHTTPClient] a client with a
// mock transport (then failed writes have an unknown outcome). go-cmp needs no options to compare
// decoded values with literals: [RawObject] has an Equal method.
package labhealth
