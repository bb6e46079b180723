// Package labhealthtest is a service to try the client and to test against: the order, user and webhook interface in one process,
// in memory, behind a real listener on the loopback interface.
//
// In a test the server ends with the test:
//
//	srv := labhealthtest.NewServer(t)
//	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
//
// Anywhere else it is started and closed by hand:
//
//	srv, err := labhealthtest.Start()
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//
// The program labhealthd, in the directory cmd, runs a server on a port of its own.
//
// # What it answers
//
// It answers these operations as the service does: the same bodies, limits and defaults, the same shapes of refusal, and order
// objects that carry every member of the interface.
//
//	POST   /v3/order/import
//	POST   /v3/order
//	PATCH  /v3/order/{order_id}
//	GET    /v3/order/{order_id}
//	GET    /orders and /v3/orders
//	POST   /v3/order/resend_events
//	POST   /v3/order/{order_id}/cancel
//	POST   /v3/order/{order_id}/test (moves the order on)
//	GET    /v3/order/{order_id}/result
//	GET    /v3/order/{order_id}/result/metadata
//	GET    /v3/order/{order_id}/requisition/pdf
//	GET    /v3/lab_test
//	GET    /v3/lab_tests
//	GET    /v2/user/ and /v2/user
//	POST   /v2/user/ and /v2/user
//	POST   /v2/user/undo_delete
//	GET    /v2/user/{user_id}
//	PATCH  /v2/user/{user_id}
//	DELETE /v2/user/{user_id}
//	GET    /v2/user/resolve/{client_user_id}
//	GET    /v2/introspect/historical_pull
//	GET    /v2/timeseries/workouts/{workout_id}/stream
//
// The interface document describes the import, the update and the lists. The other operations, the query parameters, the texts
// and lists of refusals and the steps of an order are not in it: they follow the public reference of the service and what was
// seen of it, and a real deployment may differ.
//
// The package speaks the wire format with types of its own and shares no code with the client, so that a client that agrees with
// it has not merely agreed with itself. [Server.Requests] tells what a client really sent.
//
// # Orders and users
//
// [Server.AddUsers] and [Server.AddOrders] fill the server quickly, 100,000 of each if need be, and [Server.AddLabTests] makes
// the catalogue longer. An order stays where it was placed until the test moves it: [Server.Advance] takes the natural next step,
// [Server.SetStatus] sets any status, also one that does not exist yet, and [Server.Cancel], [Server.Fail] and
// [Server.PartialResults] leave the usual path.
//
// An order that is completed, or has partial results, has results for the markers of its lab test: [Server.SetInterpretation],
// [Server.SetMissing] and [Server.SetResults] change them. It has a requisition from requisition_created on. [Server.AddWorkout]
// records a workout and [Server.SetHistoricalPull] changes how the pull of a user's older data stands.
//
// # Events
//
// [Server.DeliverTo] names an address that is sent the events of orders and connections, and whatever [Server.Send] is given;
// [Server.Flush] waits until all of them were delivered, and [Server.Deliveries] tells how each attempt went. With the options
// [Signed], [Retried] and [Unreliable] events are signed, posted again by the service's schedule, lost, repeated and out of
// order, as a receiver will find them:
//
//	err := srv.DeliverTo(receiver.URL, labhealthtest.WithSigningSecrets(secret), labhealthtest.WithRetries(),
//		labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{LoseResponse: 0.05, Delay: 0.2, MaxDelay: time.Hour}))
//
// # Faults
//
// [Server.FailAfter] and [Server.FailBefore] make requests fail in every way in which a connection or a service can, after or
// before they are carried out, so that an application can test what it does when it does not know whether an order was made:
//
//	err := srv.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultClosed)
//
// # Management
//
// The management API is at the same address, for the organisation [Server.OrgID] and its Org Management Key [Server.OrgKey];
// [Server.AddTeamManagementKey] makes a key of the other kind. It answers every operation under /v1/org/{org_id} that
// labhealth.ManagementClient has: the organisation, teams, management keys, webhooks, team API keys, access tokens, custom
// credentials and ETL pipelines.
//
// The server is the sandbox of region us. A webhook of that environment is sent the events of its team, signed with its secret
// and repeated like those of [Retried]; a team API key of that environment opens the team API of its team. What is created for
// production or another region is kept and does nothing. Each team has users, orders and events of its own: [Server.Team] returns
// the server of another team.
//
// # Time and chance
//
// The server's time is the clock of [WithClock], in UTC, and nothing happens by the mere passing of time, but that a deletion
// cannot be undone after seven days, an idempotency key is forgotten after one, and an event waits for its next attempt
// ([Retried]). With [WithSeed] and a fixed clock the key and all ids are the same in every run, so that an example has a stable
// output.
//
// # What it does not do
//
// It knows no billing or laboratory accounts, and takes the consents, accounts and billing types it is given as they are. It
// pushes nothing to ETL pipelines and asks no provider about custom credentials. It is stricter than the service in one way: a
// number or a boolean sent as text is refused, where the service may convert it.
package labhealthtest
