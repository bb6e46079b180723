// An embedded service that sends events to the receiver.

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// demoSecret is an invented signing secret.
const demoSecret = "whsec_bGFiaGVhbHRoLWRlbW8tc2VjcmV0LTI0"

// play makes the embedded service deliver invented events to a receiver: batches of samples, some
// of which correct earlier ones, a growing summary, and orders whose status changes.
func play(ctx context.Context, length time.Duration) error {
	service, err := labhealthtest.Start()
	if err != nil {
		return err
	}
	defer service.Close()
	verifier, err := webhooks.NewVerifier(demoSecret)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r := new(receiver)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(serving, listener, verifier, r) }()

	// The network is very unreliable. The service waits longer between attempts.
	err = service.DeliverTo("http://"+listener.Addr().String()+"/events",
		labhealthtest.WithSigningSecrets(demoSecret),
		labhealthtest.WithRetries(100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond),
		labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{
			LoseResponse: 0.1, Duplicate: 0.1, Delay: 0.3, MaxDelay: 500 * time.Millisecond,
		}))
	if err == nil {
		err = sendEvents(ctx, service, length)
	}
	if err == nil {
		err = service.Flush(ctx)
	}
	stop()
	err = errors.Join(err, <-served)
	if errors.Is(err, context.Canceled) {
		err = nil // interrupted by the user
	}
	r.printState()
	printDeliveries(service)
	return err
}

// sendEvents sends an event every quarter of a second.
func sendEvents(ctx context.Context, service *labhealthtest.Server, length time.Duration) error {
	ada, grace := service.AddUser("ada"), service.AddUser("grace")
	names := map[uuid.UUID]string{ada: "ada", grace: "grace"}
	send := func(user uuid.UUID, kind string, data ...string) error {
		return service.Send(event(service.TeamID, user, names[user], kind, data...))
	}
	if err := service.Connect(ada, "oura"); err != nil {
		return err
	}
	testkit, err := service.AddOrder(ada, service.LabTests.Testkit)
	if err != nil {
		return err
	}
	morning := time.Now().UTC().Truncate(24 * time.Hour).Add(6 * time.Hour)
	summary := uuid.New()
	end := time.After(length)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		user := []uuid.UUID{ada, grace}[n/4%2]
		switch n % 4 {
		case 0: // Ten minutes of samples. The next batch of the user repeats five of them.
			err = send(user, "daily.data.glucose.updated", "data", samples(morning.Add(time.Duration(n/8*5)*time.Minute), 10))
		case 1: // The growing summary of the day.
			err = send(ada, "daily.data.activity.updated", "id", fmt.Sprintf("%q", summary),
				"calendar_date", morning.Format(`"2006-01-02"`), "steps", fmt.Sprint(500*n))
		case 2: // An order, until it is completed.
			if _, done := service.Advance(testkit); done != nil {
				testkit, err = service.AddOrder(grace, service.LabTests.OnSite)
			}
		case 3: // An event type that the receiver does not know.
			err = send(user, "moon.phase.changed", "phase", `"full"`)
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// event returns the JSON of an event. data are the names and the JSON of its data fields in turn.
func event(team, user uuid.UUID, name, kind string, data ...string) []byte {
	var fields strings.Builder
	for i := 0; i+1 < len(data); i += 2 {
		fmt.Fprintf(&fields, `,%q:%s`, data[i], data[i+1])
	}
	const source = `{"name":"Oura","slug":"oura","logo":"https://example.com/logos/oura.png"}`
	return fmt.Appendf(nil, `{"event_type":%q,"data":{"user_id":%q,"source":`+source+`%s},`+
		`"team_id":%q,"user_id":%q,"client_user_id":%q}`, kind, user, &fields, team, user, name)
}

// samples returns the JSON of n samples, one per minute.
func samples(from time.Time, n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"timestamp":%q,"timezone_offset":0,"type":"automatic","unit":"mmol/L","value":%.1f}`,
			from.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), 4+4*rand.Float64()))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func printDeliveries(service *labhealthtest.Server) {
	attempts, lost, repeated := 0, 0, 0
	for _, d := range service.Deliveries() {
		attempts++
		if d.Lost {
			lost++
		}
		if d.Duplicate {
			repeated++
		}
	}
	log.Printf("the service made %d attempts; %d responses were lost, %d acknowledged events were repeated", attempts, lost, repeated)
}
