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
)

// demoSecret is an invented one.
const demoSecret = "whsec_bGFiaGVhbHRoLWRlbW8tc2VjcmV0LTI0"

// demonstrate keeps invented events apart from all others.
func demonstrate(ctx context.Context, s *settings, log *slog.Logger) error {
	dir, err := os.MkdirTemp("", "labhealth-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.data = filepath.Join(dir, "pipeline.db")
	return start(ctx, s, log)
}

// play has an embedded service send invented events, signed, late, lost and repeated as real ones are, and waits until they are
// applied.
func (p *pipeline) play(ctx context.Context, address string) error {
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
	users := service.AddUsers(5)
	morning := time.Now().UTC().Truncate(24 * time.Hour).Add(6 * time.Hour)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n, end := 0, time.After(p.length); ; n++ {
		// Twenty minutes of samples, of which ten come again, corrected, in the next batch for the same user.
		from := morning.Add(time.Duration(n/len(users)*10) * time.Minute)
		if err := service.Send(glucose(service.TeamID, users[n%len(users)], from, 20)); err != nil {
			return err
		}
		select {
		case <-tick.C:
			continue
		case <-end:
		case <-ctx.Done():
		}
		break
	}
	if err := service.Flush(ctx); err != nil {
		return ignoreCanceled(err)
	}

	attempts, events := 0, map[string]bool{}
	for _, d := range service.Deliveries() {
		attempts++
		events[d.ID] = true
	}
	for p.store != nil && p.metrics.value("labhealth_applied_total") < float64(len(events)) && ctx.Err() == nil {
		pause(ctx, 20*time.Millisecond)
	}
	p.log.Info("the demo is over", "events", len(events), "attempts", attempts,
		"applied", p.metrics.value("labhealth_applied_total"))
	if p.store == nil {
		return nil
	}
	kept := 0
	for _, err := range p.store.Samples(ctx) {
		if err != nil {
			return ignoreCanceled(err)
		}
		kept++
	}
	p.log.Info("the database keeps what is newest", "samples", kept)
	return nil
}

// ignoreCanceled is for what the user has ended.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// glucose writes an event with n samples, one a minute.
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
