// Package labhealthtest is a service to try the SDK and to test against: the
// order, user and webhook interface in one process, in memory, behind a real
// listener on the loopback interface.
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
// # What it does
//
// It answers these operations as the service does: the same bodies, limits and
// defaults, the same shapes of refusal, and order objects that carry every member
// of the interface.
//
//	POST  /v3/order/import
//	POST  /v3/order
//	PATCH /v3/order/{order_id}
//	GET   /v3/order/{order_id}
//	GET   /orders and /v3/orders
//	GET   /v2/user/ and /v2/user
//	POST  /v2/user/ and /v2/user
//	GET   /v2/user/{user_id}
//	GET   /v2/user/resolve/{client_user_id}
//
// The interface document describes the import, the update and the lists. The other
// operations, the query parameters, the texts and lists of refusals and the steps
// of an order are not in it: they follow the public reference of the service and
// what was seen of it, and a real deployment may differ.
//
// The package speaks the wire format with types of its own and shares no code with
// the client, so that a client that agrees with it has not merely agreed with
// itself.
//
// An order stays where it was placed until the test moves it: [Server.Advance]
// takes the natural next step, [Server.SetStatus] sets any status, also one
// that does not exist yet, and [Server.Cancel], [Server.Fail] and
// [Server.PartialResults] leave the usual path. [Server.AddUsers] and
// [Server.AddOrders] fill the server quickly, 100,000 of each if need be.
//
// [Server.DeliverTo] names an address that is sent the events of orders and
// connections, and whatever [Server.Send] is given; [Server.Flush] waits until
// all of them were delivered.
//
// [Server.Requests] tells what a client really sent.
//
// # Time and chance
//
// The server's time is the clock of [WithClock], in UTC, and nothing happens by
// the mere passing of time. With [WithSeed] and a fixed clock the key and all
// ids are the same in every run, so that an example has a stable output.
//
// # What it does not do
//
// It holds no two teams, knows no billing or laboratory accounts, and takes the
// consents, accounts and billing types it is given as they are. It is stricter
// than the service in one way: a number or a boolean sent as text is refused,
// where the service may convert it.
package labhealthtest
