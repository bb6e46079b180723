// Package labhealthtest provides an embedded imitation of the service, for tests and examples: the
// order, user, webhook and management APIs in one process, in memory, on a loopback listener.
//
// In a test, [NewServer] starts a server that is closed when the test completes:
//
//	srv := labhealthtest.NewServer(t)
//	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
//
// Elsewhere, start and close it explicitly:
//
//	srv, err := labhealthtest.Start()
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//
// The command "labhealth sandbox", in the module cmd/labhealth, runs a server on a fixed port, with
// a console in the browser.
//
// # Operations
//
// The server has all operations of labhealth.Client and management.Client. It responds
// like the service: with the same bodies, limits, defaults and errors, and with orders that have
// all fields of the interface specification. It accepts paths in both forms that the specification
// and the public API reference use, such as /orders and /v3/orders.
//
// The interface specification describes the import, the update and the lists of orders. The other
// operations, the query parameters, the error messages and the statuses of an order follow the
// public API reference and observations of the service. A deployment may differ.
//
// The package has its own types and shares no code with the client, so that the client is tested
// against an independent implementation. It validates requests by its own reading of the
// specification and the reference. [Server.Requests] returns the requests that the server received,
// and [Server.RequestCount] their number.
//
// # Watching
//
// [Server.Watch] returns what happens in the server: requests, changes of orders and users, and
// attempts to deliver events. With the transport of [Server.Direct], a test reads and changes the
// server itself: faults do not affect these requests, and no log has them. [WithMiddleware] serves
// other paths on the port of the server, and [WithResponseLog] stores response bodies.
//
// # Orders and users
//
// [Server.AddUsers] and [Server.AddOrders] add many users and orders quickly, for example 100,000
// of each. [Server.AddLabTests] adds lab tests to the catalog. [Server.LabAccounts] are the team's
// accounts with labs. The status of an order changes only on request: [Server.Advance] moves it to
// the usual next status, [Server.SetStatus] sets any status, including unknown ones, and
// [Server.Cancel], [Server.Fail] and [Server.PartialResults] set statuses off the usual path.
// [Server.NextStatuses] returns the usual statuses that follow. Partial results send events only if
// [Server.SetPartialEvents] turns on this setting of the team. [Server.Redraw] adds an order that
// repeats another one, and [Server.DeleteOrder] deletes one.
//
// A testkit that is ordered without a patient (POST /v3/order/testkit) has an invented sample ID,
// with which a program registers it. Orders can be canceled (POST /v3/order/{order_id}/cancel) in
// the statuses in which the public API reference permits it. The appointment of a canceled walk-in
// order remains until it is canceled as well.
//
// A simulation (POST /v3/order/{order_id}/test) behaves as observed in the sandbox. The first one
// of a new order leads to requisition_created, whatever its final_status; a second one continues.
// An order at home then ignores simulations until an appointment is booked. A walk-in order is
// completed without partial results: use [Server.PartialResults]. A delay is in seconds. There is
// no timer: once the delay is over, the next read of orders, through the API or a method, changes
// the statuses. A simulation is rejected if the order is completed, canceled or failed, or has
// passed the final status.
//
// An order that is completed or has partial results has results for the markers of its lab test,
// until it is canceled. [Server.SetResults] and [Server.CorrectResult] change them without an
// event; [Server.SetInterpretation] and [Server.SetMissing] do too, and change updated_at of the
// order. An order has a requisition after the status requisition_created, and an Advanced
// Beneficiary Notice after [Server.SetABN]. [Server.SetHistoricalPull] changes the status of a
// historical pull.
//
// # Wearable data
//
// [Server.AddSummary] and [Server.AddSamples] add invented data of any resource, and
// [Server.AddWorkout] adds the stream of a workout. The API returns the data, and events deliver
// it. Options set the source ([FromSource], [WithSourceShape]) and the time ([StartingAt]), or omit
// the event, as if the delivery was lost ([Undelivered]).
//
// [Server.Connect] connects a user to a provider, and [Server.CompleteLink] does so with a link
// token, like the user on the page of the service. A connection has a device ([Server.AddDevice]
// adds others) and works until [Server.SetConnectionError] breaks it. Demographic data, refreshes,
// source priorities and the settings of the team are stored, and Users.Resources counts the events
// that were sent.
//
// Linking with the password "wrong" fails; user names that start with mfa need the code 123456. The
// link token in the header X-Link-Token determines the user; without the header, the last link
// token does. The service's name of the header is not documented.
//
// # Insurance, unmatched results, lab reports
//
// An order with commercial_insurance is rejected unless its user has a primary insurance. The
// server has a few payors and diagnosis codes. A test run (POST /v3/unmatched_result_test) makes an
// unmatched result with its orders and its event at once. Reading a job parses its lab report: a
// PDF, JPEG or PNG has two invented results, any other file fails.
//
// # Appointments
//
// Appointments are possible in the ZIP codes that start with 941, 895 or 787, where the invented
// patients live. Times are offered for seven days, four a day, at home and at the sites whose code
// ends in 1. A time can be booked once, and its booking key is valid for 15 minutes. The sites of
// quest (lab ID 27) and sonora_quest (31) accept the orders of their lab. At home, getlabs
// appointments are booked, phlebfinders ones requested. An appointment that is requested, or booked
// with async_confirmation, is pending until [Server.Advance] moves its order to
// appointment_scheduled. An order that gets this status without a booking has an invented
// appointment.
//
// # Events
//
// [Server.DeliverTo] sets a URL to which the server posts the events of orders, appointments,
// connections and wearable data, and events given to [Server.Send]. [Server.SendEvent] invents an
// event of any type. [Server.Flush] waits until all of them are delivered, and [Server.Deliveries]
// returns the result of each attempt. By default deliveries are reliable and unsigned.
// [WithSigningSecrets] signs them, [WithRetries] repeats failed ones on the schedule of the
// service, and [WithNetworkConditions] loses, duplicates, delays and reorders events and loses
// responses, which a receiver must tolerate:
//
//	err := srv.DeliverTo(receiver.URL,
//		labhealthtest.WithSigningSecrets(secret),
//		labhealthtest.WithRetries(),
//		labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{
//			Lose: 0.3, LoseResponse: 0.05, Duplicate: 0.2, Delay: 1, MaxDelay: time.Hour,
//		}))
//
// [Server.SetNetworkConditions] changes the network of all receivers. With 100,000 orders and more,
// limit the attempts that are kept: [WithDeliveryLog].
//
// # Faults
//
// [Server.FailAfter] and [Server.FailBefore] make requests fail, after or before the server
// processes them, with a [Fault] of the connection or the service. Use them to test what an
// application does when it cannot know whether an order was created:
//
//	err := srv.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultClosed)
//
// [Server.AddFault] adds a fault that can be removed individually. [Operations] returns the
// operations that can fail.
//
// # Management
//
// The management API has the same base URL. [Server.OrgID] is its organisation and [Server.OrgKey]
// the Org Management Key. [Server.AddTeamManagementKey] creates Team Management Keys.
//
// The server represents the sandbox of region us. A webhook of this environment receives the events
// of its team, signed with its secret, and repeated as by the service. In this environment, a team
// API key gives access to the team API until it is deleted, an access token for ten minutes.
// Webhooks, keys and tokens for production or another region have no effect. Each team has its own
// users, orders and events. [Server.Team] returns the server of another team.
//
// Data pull preferences set the length of the historical pulls of sources that are connected later.
// A lab account is visible to the teams in its allowlist. The delivery metric counts the attempts
// to deliver the events of a team.
//
// # Time and randomness
//
// The time of the server is that of the clock set with [WithClock], in UTC. Time affects only the
// following:
//
//   - A deletion can be undone for seven days.
//   - Idempotency keys expire after one day, after 14 days for bookings.
//   - Times of appointments, their booking keys, access tokens and rotated secrets expire.
//   - A user can be refreshed eight times per hour.
//   - Delays of simulations end.
//   - Deliveries are retried on a schedule, and the delivery metric counts them by the time of the
//     attempt.
//
// With [WithSeed] and a fixed clock, keys and IDs are the same in each run, for examples with a
// stable output.
//
// # Limitations
//
// The server has no billing. It accepts all consents and, without a lab account, all billing types
// except commercial_insurance (see Insurance). Created lab tests are active at once. It pushes
// nothing to ETL pipelines and does not verify custom credentials with providers. It is stricter
// than the service in one respect: it rejects a number or boolean that is sent as a string, which
// the service may convert.
package labhealthtest
