// Package labhealth is a client for the lab-order, user-listing and webhook interface of a health-data and lab-testing
// service. It imports and follows lab orders, lists the team's users, and reads what the service sends.
//
// Three promises set it apart. Nothing is done twice: one call creates at most one order, whatever the network does, and every
// error says what became of the request. Nothing is lost: values this version does not know, and values that do not fit, keep
// the bytes they came as. Nothing leaks: the key and the patient's data reach the service and nobody else, and no log, error
// text or %v shows them.
//
// # Quick start
//
//	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL("https://…"))
//	if err != nil {
//		return err
//	}
//	resp, err := client.Orders.Import(ctx, labhealth.ImportOrderBody{…})
//	if err != nil {
//		return err // labhealth.OutcomeOf(err) says what became of the order
//	}
//	fmt.Println(resp.Order.ID, resp.Order.CurrentStatus())
//
// Make one [Client] and keep it. Every method takes a context, the ids in the path, a body or parameters by value, and options of
// the call ([CallOption]); it returns nil with every error. Lists have List for one page and All to range over.
//
// The events of the service are read by package [github.com/labhealth/labhealth-go/webhooks]. Package
// [github.com/labhealth/labhealth-go/bulk] imports thousands of orders. Package [github.com/labhealth/labhealth-go/labhealthtest]
// is an embedded service to try and to test against.
//
// # Operations
//
// The methods are those of [OrdersService], [LabTestsService], [UsersService] and [WorkoutsService].
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
// The management API has a client of its own, [ManagementClient], so that its keys and those of the team API never meet.
//
// # Sources
//
// The documentation rests on two sources. The interface specification (INTERFACE.md) describes this service, as of the declared API
// version 0.4.545: what is said without a source rests on it. The public API reference describes the family of services that this one
// belongs to, as of version 0.4.687. It fills the gaps that the specification leaves, and a deployment may differ from it. What rests
// on it alone ends with "Source: public API reference only.", or names a part of it, such as "Source of the path: public API
// reference only.": operations, types, fields, units and deprecations. Where the two
// disagree the client sends what the specification says and reads both. An inference is neither, and is called one.
//
// # Environments
//
// The service has four addresses: production and sandbox, in the US and in the EU. None is published, and none is the default:
// name yours with [WithBaseURL], or all of them once and one by name with [WithEnvironment]. Addresses must be https; http is
// for loopback addresses. A deployment that has an operation at another path is told so with [WithPath].
//
// # Values
//
//   - A required member of a request is a plain value and always sent. An optional one is a pointer (new(v) makes one) or a slice and left
//     out if nil. Where leaving out and null differ there is [Nullable].
//   - A field of a response that may be null or absent is a pointer, nil for both, unless a default is documented: then the
//     default is filled in.
//   - Ids are uuid.UUID, moments time.Time. Days without a time are [Date]; money keeps its digits in a json.Number.
//   - Enumerations are strings with constants, such as [Billing]. Other values occur and pass in both directions, so that a switch
//     needs a default case.
//   - What comes in several kinds is an interface with a type for each kind and one for kinds that are not known, such as
//     [OrderDetails.Data].
//
// A member whose value does not fit its type never fails the answer: it is left zero, [RawObject.Malformed] names it, and
// [RawObject.RawJSON] has its bytes. Encoding a decoded value to JSON writes every member that came, with the changes made since.
//
// # Errors and outcomes
//
// [OutcomeOf] says what became of a failed request: [OutcomeNotSent], [OutcomeRejected], [OutcomeApplied] or [OutcomeUnknown]. Only a
// write whose outcome is unknown needs care: look whether the order is there before you import it again.
//
//   - *[ValidationError]: refused here, before anything was sent; names all members that are wrong
//   - *[APIError]: an answer that is not 2xx; errors.Is with [ErrNotFound] and its like tells the class
//   - *[UserConflictError]: the client user id belongs to a user already; holds that user's id
//   - *[TeamConflictError]: the integration team id belongs to a team already; holds that team's id
//   - *[DecodeError]: a 2xx answer that could not be read
//   - *[TransportError]: no answer; wraps the context's error and the cause
//   - *[RedirectError]: a redirect that is not followed
//
// # Retries
//
// A GET is repeated after a lost connection, a timeout, 408, 429 and most 5xx. Every other method is repeated only if the
// request provably never reached the service, or after a 429, which is taken as "not carried out": never after a 5xx, a timeout or
// a lost connection, unless it carries an idempotency key. See [RetryPolicy]. [WithObserver] and [WithLogger] tell of each attempt.
//
// # Redaction
//
// Types that hold patient data print a short form under every verb of fmt and as slog attributes; keys and secrets are of type
// [Secret]. Two ways around that no type can prevent: fmt prints the content of unexported fields of a caller's own struct, and
// slog's JSON handler encodes values that sit inside structs and slices, because encoding to JSON is always complete. A nil
// pointer to such a type is safe to log, but slog reports it as a panic of LogValue.
//
// # Testing
//
// Start the embedded service with labhealthtest.NewServer, or give [WithHTTPClient] a client whose transport answers from a
// script. go-cmp compares decoded values with literals without options, because [RawObject] has an Equal method.
package labhealth
