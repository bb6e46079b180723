package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// seedClock is the clock of a sandbox. It can be set back while data of earlier days is added.
type seedClock struct{ behind atomic.Int64 }

// Now returns the time of the sandbox.
func (c *seedClock) Now() time.Time { return time.Now().Add(-time.Duration(c.behind.Load())) }

// setBack sets the clock to a time before the present, and 0 to the present.
func (c *seedClock) setBack(behind time.Duration) { c.behind.Store(int64(behind)) }

// historyDays is the number of days before the present that seeded data begins.
const historyDays = 14

// seeder adds invented data to a sandbox: users with sources and orders that look like the last two
// weeks of a small team.
type seeder struct {
	srv   *labhealthtest.Server
	clock *seedClock
	steps []seedStep
	tests []uuid.UUID
	// present is the time at which the history ends.
	present time.Time
}

// seedStep is something that happened some time ago.
type seedStep struct {
	ago time.Duration
	do  func() error
}

// seed adds users and orders. With the clock of the server, events are delivered at the times at
// which they happened, to the receivers that the server has. The data is the same for the same seed
// of the server.
func seed(ctx context.Context, srv *labhealthtest.Server, clock *seedClock, users, orders int) error {
	s := &seeder{srv: srv, clock: clock, present: time.Now().UTC().Truncate(5 * time.Minute)}
	if orders > 0 {
		if err := s.addTests(ctx); err != nil {
			return err
		}
	}
	ids := s.addUsers(users)
	if len(ids) == 0 && orders > 0 {
		ids = []uuid.UUID{srv.AddUser("user-1")}
	}
	for i, id := range ids {
		s.planUser(i, id)
	}
	for i, n := 0, 0; n < orders; i++ {
		n++
		redraw := isRedrawn(i) && n < orders
		if redraw {
			n++
		}
		s.planOrder(i, ids[i%len(ids)], redraw)
	}
	return s.run(ctx)
}

// at plans something that happened some time ago.
func (s *seeder) at(ago time.Duration, do func() error) {
	s.steps = append(s.steps, seedStep{max(0, ago), do})
}

// run does what was planned, the oldest first.
func (s *seeder) run(ctx context.Context) (err error) {
	slices.SortStableFunc(s.steps, func(a, b seedStep) int { return int(b.ago - a.ago) })
	defer s.clock.setBack(0)
	for i := 0; i < len(s.steps); {
		ago := s.steps[i].ago
		s.clock.setBack(ago)
		for ; i < len(s.steps) && s.steps[i].ago == ago; i++ {
			err = errors.Join(err, s.steps[i].do())
		}
		// Deliveries are signed with the time of the clock.
		if flushed := s.srv.Flush(ctx); flushed != nil {
			return errors.Join(err, flushed)
		}
	}
	return err
}

// addUsers adds the users. They exist from the start.
func (s *seeder) addUsers(n int) []uuid.UUID {
	s.clock.setBack((historyDays + 1) * 24 * time.Hour)
	defer s.clock.setBack(0)
	return s.srv.AddUsers(n)
}

// panels are the lab tests of the orders, beside those that every server has.
var panels = []labhealth.CreateLabTestBody{
	{Name: "Cardiometabolic Panel", Method: labhealth.CollectionMethodWalkInTest, Fasting: true,
		MarkerIDs: []int64{908, 901, 907, 902, 915, 909, 910, 911, 912, 913, 914}},
	{Name: "HbA1c Testkit", Method: labhealth.CollectionMethodTestkit, MarkerIDs: []int64{909, 915}},
	{Name: "Iron and Ferritin", Method: labhealth.CollectionMethodAtHomePhlebotomy, MarkerIDs: []int64{911, 910, 912, 909, 901}},
	{Name: "Employer Wellness Screen", Method: labhealth.CollectionMethodOnSiteCollection, MarkerIDs: []int64{901, 902, 907, 908, 915, 909, 910, 911, 912}},
	{Name: "Vitamin D, 25-OH", Method: labhealth.CollectionMethodTestkit, MarkerIDs: []int64{916, 911}},
	{Name: "Hormone Panel", Method: labhealth.CollectionMethodWalkInTest, MarkerIDs: []int64{917, 912, 911, 916}},
	{Name: "Thyroid Complete", Method: labhealth.CollectionMethodAtHomePhlebotomy, MarkerIDs: []int64{912, 911, 910, 913, 916, 909}},
}

// addTests adds the lab tests that the server does not have yet.
func (s *seeder) addTests(ctx context.Context) error {
	client, err := directClient(s.srv)
	if err != nil {
		return err
	}
	known := map[string]uuid.UUID{}
	for test, err := range client.LabTests.All(ctx, labhealth.ListLabTestsParams{}) {
		if err != nil {
			return err
		}
		known[test.Name] = test.ID
	}
	for _, body := range panels {
		id, ok := known[body.Name]
		if !ok {
			body.Description = body.Name
			test, err := client.LabTests.Create(ctx, body)
			if err != nil {
				return fmt.Errorf("add the lab test %s: %w", body.Name, err)
			}
			id = test.ID
		}
		s.tests = append(s.tests, id)
	}
	s.tests = append(s.tests, s.srv.LabTests.WalkIn)
	return nil
}

// planOrder plans an order. Each tenth has one of the ends and problems that occur.
// Another one repeats it if it is redrawn.
func (s *seeder) planOrder(i int, user uuid.UUID, redraw bool) {
	test := s.tests[(i*3)%len(s.tests)]
	// Most orders are a few days old; the spread is even and the same in each run.
	age := time.Duration((i*37)%(historyDays*24))*time.Hour + time.Duration((i*17)%60+1)*time.Minute
	if i < 5 {
		age = []time.Duration{40 * time.Second, 7 * time.Minute, 41 * time.Minute, 3 * time.Hour, 26 * time.Hour}[i]
	}
	var id uuid.UUID
	s.at(age, func() (err error) {
		id, err = s.srv.AddOrder(user, test)
		return err
	})
	end := s.planProblem(i, age, &id, redraw)
	// An order takes a step in about a day, and the first ones in minutes.
	waits := []time.Duration{9 * time.Minute, 5 * time.Hour, 31 * time.Hour, 20 * time.Hour, 27 * time.Hour, 16 * time.Hour, 44 * time.Hour}
	at := age
	for step, wait := range waits {
		wait += time.Duration((i*step*13)%50) * time.Minute
		if i >= 5 && i%9 == 4 && step == 2 {
			break // waits for someone
		}
		if at -= wait; at <= end {
			break
		}
		s.at(at, func() error {
			_, _ = s.srv.Advance(id) // at the end there is no next status
			return nil
		})
	}
}

// planProblem plans what happens to some orders, and returns until when they advance.
func (s *seeder) planProblem(i int, age time.Duration, id *uuid.UUID, redraw bool) (end time.Duration) {
	if i < 5 {
		return 0
	}
	// Before most orders are completed.
	end = max(age-30*time.Hour, 2*age/3)
	switch i % 10 {
	case 1:
		end = max(age-70*time.Hour, age/3)
		s.at(end, func() error { return s.problem(*id) })
	case 3:
		s.at(end, func() error {
			_ = s.srv.Cancel(*id) // it may already be completed
			return nil
		})
	case 5, 8:
		s.at(end, func() error { return s.results(*id, i, true) })
		if i%4 != 1 && end > 50*time.Hour {
			s.at(end-50*time.Hour, func() error {
				_, _ = s.srv.Advance(*id)
				return nil
			})
		}
	case 7:
		s.at(end, func() error { return s.fail(*id, i, redraw) })
	case 9, 2:
		s.at(0, func() error { return s.results(*id, i, false) })
		return 0
	default:
		return 0
	}
	return end
}

// problem stops a testkit on its way or at the lab.
func (s *seeder) problem(id uuid.UUID) error {
	state, _ := s.srv.OrderState(id)
	switch {
	case state.Method != "testkit":
		return nil
	case state.Status == "sample_with_lab.testkit.delivered_to_lab":
		return s.srv.SetStatus(id, "sample_with_lab.testkit.lab_processing_blocked")
	default:
		return s.srv.SetStatus(id, "collecting_sample.testkit.problem_in_transit_customer")
	}
}

// isRedrawn reports whether an order fails and can be drawn again.
func isRedrawn(i int) bool { return i%20 == 17 }

// fail fails an order, and draws it again.
func (s *seeder) fail(id uuid.UUID, i int, redraw bool) error {
	state, _ := s.srv.OrderState(id)
	if state.Method == "testkit" && i%20 == 7 {
		return s.srv.SetStatus(id, "failed.testkit.lost")
	}
	details := []string{"sample_hemolyzed", "sample_quantity_not_sufficient", "sample_contaminated"}
	if err := s.srv.Fail(id, details[i/10%len(details)]); err != nil || !redraw {
		return err
	}
	_, err := s.srv.Redraw(id)
	return err
}

// results makes the results of an order partial, abnormal or critical.
func (s *seeder) results(id uuid.UUID, i int, partial bool) error {
	state, _ := s.srv.OrderState(id)
	if partial {
		if state.Method == "testkit" {
			return s.srv.SetStatus(id, "sample_with_lab.testkit.delivered_to_lab")
		}
		if err := s.srv.PartialResults(id); err != nil {
			return err
		}
	}
	switch i % 3 {
	case 0:
		return s.srv.SetInterpretation(id, "abnormal")
	case 1:
		if err := s.srv.SetInterpretation(id, "critical"); err != nil {
			return err
		}
	}
	if !partial {
		// The order may not have this marker, or no results.
		_ = s.srv.SetMissing(id, 914, "quantity_not_sufficient_failure")
		_ = s.srv.CorrectResult(id, 911, "11")
		_ = s.srv.CorrectResult(id, 907, "131")
	}
	return nil
}

// planUser plans the sources of a user and, for a few, two weeks of data.
func (s *seeder) planUser(i int, user uuid.UUID) {
	const start = historyDays * 24 * time.Hour
	provider := []string{"oura", "apple_health_kit", "fitbit"}[i%3]
	if i%4 != 3 {
		s.at(start, func() error { return s.srv.Connect(user, provider) })
	}
	switch i {
	case 0:
		s.planDays(user, "oura", "ring", []string{"heartrate", "steps"}, []string{"activity", "sleep"})
		s.planDays(user, "freestyle_libre", "cgm", []string{"glucose"}, nil)
		s.at(start, func() error { return s.srv.Connect(user, "freestyle_libre") })
	case 1:
		s.planDays(user, "apple_health_kit", "watch", []string{"heartrate"}, []string{"activity", "sleep", "body"})
	case 2:
		s.planDays(user, "fitbit", "watch", []string{"heartrate", "steps"}, []string{"activity", "sleep", "workouts"})
	case 4:
		s.at(24*time.Hour, func() error { return s.srv.SetConnectionError(user, provider, "token_refresh_failed") })
	case 5:
		s.at(20*time.Hour, func() error {
			return s.srv.SetHistoricalPull(user, provider, "sleep", "retrying", "provider_unavailable")
		})
	}
}

// planDays plans the samples and summaries of the days until now. A day has a gap, as when a watch
// is charged, and one day is missing.
func (s *seeder) planDays(user uuid.UUID, provider, kind string, resources, summaries []string) {
	present := s.present
	source := labhealthtest.FromSource(provider, kind)
	for d := historyDays; d > 0; d-- {
		// Days start at the time of the present, so that each run plans the same.
		day := present.AddDate(0, 0, -d)
		if d == 9 {
			continue
		}
		// Two pieces, with a gap between them.
		gap := day.Add(time.Duration(6+d%3) * time.Hour)
		for _, resource := range resources {
			s.planSamples(user, resource, day, gap, source)
			s.planSamples(user, resource, gap.Add(time.Duration(50+20*(d%4))*time.Minute), day.Add(24*time.Hour), source)
		}
		for _, resource := range summaries {
			s.at(present.Sub(day.Add(23*time.Hour)), func() error {
				_, err := s.srv.AddSummary(user, resource, source, labhealthtest.StartingAt(day))
				return err
			})
		}
	}
}

// planSamples plans the samples of a time, which arrive at its end.
func (s *seeder) planSamples(user uuid.UUID, resource string, from, to time.Time, source labhealthtest.DataOption) {
	const interval = 5 * time.Minute
	n := int(to.Sub(from) / interval)
	s.at(s.present.Sub(to), func() error {
		return s.srv.AddSamples(user, resource, n, source, labhealthtest.StartingAt(from))
	})
}
