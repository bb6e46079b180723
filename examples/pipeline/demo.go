package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// demoSecret is an invented secret.
const demoSecret = "whsec_bGFiaGVhbHRoLWRlbW8tc2VjcmV0LTI0"

// demonstrate runs the pipeline with a temporary database, so that invented events are not mixed
// with others.
func demonstrate(ctx context.Context, s *settings, log *slog.Logger) error {
	dir, err := os.MkdirTemp("", "labhealth-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.data = filepath.Join(dir, "pipeline.db")
	return start(ctx, s, log)
}

// play sends invented events from an embedded service: signed, delayed, lost and repeated like real
// ones. It returns nil when they are applied or the user stops the program.
func (p *pipeline) play(ctx context.Context, address string) error {
	err := p.playEvents(ctx, address)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (p *pipeline) playEvents(ctx context.Context, address string) error {
	service, err := labhealthtest.Start()
	if err != nil {
		return err
	}
	defer service.Close()
	err = service.DeliverTo("http://"+address+"/events",
		labhealthtest.WithSigningSecrets(demoSecret),
		labhealthtest.WithRetries(100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond, 800*time.Millisecond),
		labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{LoseResponse: 0.1, Duplicate: 0.1, Delay: 0.3, MaxDelay: 500 * time.Millisecond}))
	if err != nil {
		return err
	}
	if err := sendFor(ctx, service, p.length); err != nil {
		return err
	}
	if err := service.Flush(ctx); err != nil {
		return err
	}
	attempts, events := 0, map[string]bool{}
	for _, d := range service.Deliveries() {
		attempts++
		events[d.ID] = true
	}
	applied := func() float64 { return p.metrics.value("labhealth_worker_deliveries_total", "applied") }
	for p.store != nil && applied() < float64(len(events)) && ctx.Err() == nil {
		sleep(ctx, 20*time.Millisecond)
	}
	p.log.Info("the demo is over", "events", len(events), "attempts", attempts, "applied", applied())
	if p.store == nil {
		return nil
	}
	if err := p.logOrders(ctx); err != nil {
		return err
	}
	return p.countSamples(ctx)
}

// sendFor sends events of five users, and of an order, until the time has passed or ctx is done.
func sendFor(ctx context.Context, service *labhealthtest.Server, length time.Duration) error {
	users := service.AddUsers(5)
	order, err := service.AddOrder(users[0], service.LabTests.WalkIn)
	if err != nil {
		return err
	}
	morning := time.Now().UTC().Truncate(24 * time.Hour).Add(6 * time.Hour)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n, end := 0, time.After(length); ; n++ {
		// Twenty minutes of samples, of which the next batch for the user corrects ten.
		from := morning.Add(time.Duration(n/len(users)*10) * time.Minute)
		if err := service.Send(glucose(service.TeamID, users[n%len(users)], from, 20)); err != nil {
			return err
		}
		if n%5 == 4 {
			service.Advance(order) // or it is completed
		}
		select {
		case <-tick.C:
		case <-end:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// logOrders logs the orders in the database.
func (p *pipeline) logOrders(ctx context.Context) error {
	for stored, err := range p.store.Orders(ctx, sqlstore.OrderFilter{}) {
		if err != nil {
			return err
		}
		timeline, err := p.store.Timeline(ctx, stored.Order.ID)
		if err != nil {
			return err
		}
		p.log.Info("the database has an order", "order_id", stored.Order.ID, "status", string(stored.Status),
			"transitions", len(timeline), "results", string(stored.Results))
	}
	return nil
}

func (p *pipeline) countSamples(ctx context.Context) error {
	n := 0
	for _, err := range p.store.Samples(ctx) {
		if err != nil {
			return err
		}
		n++
	}
	p.log.Info("the database has the latest versions", "samples", n)
	return nil
}

// glucose returns an event with n samples, one a minute.
func glucose(team, user uuid.UUID, from time.Time, n int) []byte {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"timestamp":%q,"timezone_offset":0,"type":"automatic","unit":"mmol/L","value":%.1f}`,
			from.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), 4+4*rand.Float64()))
	}
	return fmt.Appendf(nil, `{"event_type":"daily.data.glucose.updated","data":{"user_id":%q,`+
		`"source":{"name":"Sensor","slug":"sensor","logo":"https://example.com/logos/sensor.png"},"data":[%s]},`+
		`"team_id":%q,"user_id":%[1]q,"client_user_id":"demo"}`, user, strings.Join(list, ","), team)
}
