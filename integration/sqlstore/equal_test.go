package sqlstore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Parameters of the receiver processes of TestEqualToService.
const (
	childServiceURL = "LABHEALTH_TEST_CHILD_SERVICE"
	childServiceKey = "LABHEALTH_TEST_CHILD_KEY"
	childReacted    = "LABHEALTH_TEST_CHILD_REACTED" // file to which the application writes
)

// equalSize is the size of TestEqualToService.
type equalSize struct {
	orders, users, samples int // samples of each user
	kills                  int
}

// equalSizeOf returns the short size, or that of LABHEALTH_TEST_EQUAL, a number of orders such as
// 100000.
func equalSizeOf(t *testing.T) equalSize {
	t.Helper()
	text := os.Getenv("LABHEALTH_TEST_EQUAL")
	if text == "" {
		return equalSize{orders: 300, users: 10, samples: 200, kills: 3}
	}
	orders, err := strconv.Atoi(text)
	if err != nil || orders < 2000 {
		t.Fatal("LABHEALTH_TEST_EQUAL is a number of orders, at least 2000")
	}
	return equalSize{orders: orders, users: orders / 100, samples: 1000, kills: 20}
}

// 30 % of the deliveries are lost, 20 % doubled, and all arrive in random order at a receiver that
// is killed again and again. After one pass of a Reconciler, the store equals the service in every
// order, transition, result, summary and sample, and the application has been called for every
// transition.
func TestEqualToService(t *testing.T) {
	size := equalSizeOf(t)
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		service := startService(t, 7, size.users)
		receiver := &receiver{d: d, service: service, reacted: filepath.Join(t.TempDir(), "reacted")}
		started := time.Now()
		receiver.start(t, "receive and reconcile")
		for wave := range size.kills + 1 {
			job := "receive"
			if wave < size.kills/2 { // what is lost later is left to the pass at the end
				job = "receive and reconcile"
			}
			waveDone := make(chan struct{})
			var killer sync.WaitGroup
			if wave > 0 {
				killer.Go(func() { receiver.killAt(t, waveDone, int64(rand.IntN(4*size.orders/(size.kills+1))), job) })
			}
			service.wave(t, wave, size.orders/(size.kills+1), size.samples/(size.kills+1))
			close(waveDone)
			killer.Wait()
		}
		service.delete(t)
		db := d.open(t)
		within(t, 30*time.Minute, "an empty inbox", func() bool { return isEmpty(t, db, "labhealth_inbox") })
		receiver.kill()
		t.Logf("%d events received in %s", service.network.posted.Load(), time.Since(started).Round(time.Second))

		pass := receiver.reconcile(t)
		t.Logf("the pass: %d requests, %.1f s, peak %d MiB, read %+v, differences %+v", pass.served, pass.Seconds, pass.PeakBytes>>20, pass.Read, pass.Differences)

		receiver.start(t, "receive")
		within(t, 30*time.Minute, "all reactions", func() bool { return isEmpty(t, db, "labhealth_reactions") })
		receiver.kill()
		if n := count(t, db, "labhealth_dead_letters"); n != 0 {
			t.Errorf("%d dead letters", n)
		}
		compareAll(t, store, service)
		compareReactions(t, store, receiver.reacted)
		compareDeleted(t, store, service, pass)
	})
}

// within polls until a condition holds.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout: ", what)
		}
	}
}

// receiver is the process that receives, and is killed.
type receiver struct {
	d       database
	service *busyService
	reacted string
	cmd     *exec.Cmd
}

func (r *receiver) command(t *testing.T, job string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := child(t.Context(), r.d, job, 0)
	cmd.Env = append(cmd.Env, childServiceURL+"="+r.service.URL, childServiceKey+"="+r.service.APIKey, childReacted+"="+r.reacted)
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe() // closed when this process ends
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return cmd, bufio.NewScanner(strings.NewReader(""))
	}
	return cmd, bufio.NewScanner(out)
}

// start starts a process and waits until it receives.
func (r *receiver) start(t *testing.T, job string) {
	t.Helper()
	cmd, lines := r.command(t, job)
	r.cmd = cmd
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "receiving at "); ok {
			r.service.network.receiver.Store(&url)
			go func() {
				for lines.Scan() { // so that the process never waits for a reader
				}
			}()
			return
		}
	}
	t.Error("the receiver stopped")
}

func (r *receiver) kill() {
	r.service.network.receiver.Store(nil)
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// killAt kills the process when it has received n more events, or all of a wave, and starts the
// next one.
func (r *receiver) killAt(t *testing.T, done <-chan struct{}, n int64, job string) {
	n += r.service.network.posted.Load()
	for isDone := false; !isDone && r.service.network.posted.Load() < n; time.Sleep(time.Millisecond) {
		select {
		case <-done:
			isDone = true
		case <-t.Context().Done():
			return
		default:
		}
	}
	r.kill()
	r.start(t, job)
}

// passResult is what a process prints after a pass.
type passResult struct {
	sqlstore.Reconciled
	Seconds   float64
	PeakBytes int64
	served    int // requests that the service counted
}

// reconcile runs one pass in a process of its own.
func (r *receiver) reconcile(t *testing.T) (result passResult) {
	t.Helper()
	before := r.service.RequestCount()
	cmd, lines := r.command(t, "compare")
	lines.Buffer(nil, 1<<20)
	var output string
	for lines.Scan() {
		output += lines.Text() + "\n"
		if text, ok := strings.CutPrefix(lines.Text(), "reconciled "); ok {
			if err := json.Unmarshal([]byte(text), &result); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the pass failed: %v\n%s", err, output)
	}
	if result.served = r.service.RequestCount() - before; result.served != result.Requests {
		t.Errorf("the pass counted %d requests, the service %d", result.Requests, result.served)
	}
	return result
}

// runReceiver is a receiver process until it is killed.
func runReceiver(t *testing.T, d database, job string) {
	ctx := t.Context()
	go func() { // do not outlive the test
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	store := d.store(t)
	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults}
	client, err := labhealth.NewClient(os.Getenv(childServiceKey), labhealth.WithBaseURL(os.Getenv(childServiceURL)))
	if err != nil {
		t.Fatal(err)
	}
	if job == "compare" {
		reconcileOnce(t, &sqlstore.Reconciler{Store: store, Client: client})
		return
	}
	handler, err := webhooks.NewRawHandler(webhooks.Unsigned, store.Receive)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(os.Getenv(childReacted), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	go (&sqlstore.Worker{Store: store, Poll: 10 * time.Millisecond}).Run(ctx)
	go (&sqlstore.Reactor{Store: store, React: reactTo(file), Delay: time.Millisecond, Timeout: time.Second, Poll: 10 * time.Millisecond}).Run(ctx)
	if strings.HasSuffix(job, "reconcile") {
		go (&sqlstore.Reconciler{Store: store, Client: client, Interval: time.Second, Rate: 50}).Run(ctx)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("receiving at http://%s/\n", listener.Addr())
	http.Serve(listener, handler)
}

// reactTo returns a function of an application, which fails now and then before or after it has
// written the reaction.
func reactTo(file *os.File) func(context.Context, sqlstore.Reaction) error {
	return func(_ context.Context, r sqlstore.Reaction) error {
		failure := rand.IntN(40)
		if failure == 0 {
			return errors.New("not now")
		}
		if _, err := fmt.Fprintf(file, "%s %s %s %s\n", r.Kind, r.ID, r.OrderID, r.Transition.ID); err != nil {
			return err
		}
		if failure == 1 {
			return errors.New("too late")
		}
		return nil
	}
}

func reconcileOnce(t *testing.T, r *sqlstore.Reconciler) {
	started := time.Now()
	found, err := r.Since(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(passResult{Reconciled: found, Seconds: time.Since(started).Seconds(), PeakBytes: peakMemory()})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("reconciled %s\n", line)
}

// peakMemory returns the peak memory of the process, 0 if unknown.
func peakMemory() (bytes int64) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); n == 1 {
			return bytes << 10
		}
	}
	return 0
}

// serviceOrder is an order of the service, as far as the comparison uses it.
type serviceOrder struct {
	ID     uuid.UUID
	UserID uuid.UUID `json:"user_id"`
	Events []serviceEvent
	Last   serviceEvent `json:"last_event"`
}

type serviceEvent struct {
	ID        int64
	CreatedAt time.Time `json:"created_at"`
	Status    string
	Detail    string `json:"status_detail"`
}

// compareAll compares the store with what the service returns.
func compareAll(t *testing.T, store *sqlstore.Store, s *busyService) {
	t.Helper()
	orders := 0
	for page := 1; ; page++ {
		list, _ := get[struct{ Orders []json.RawMessage }](t, s, fmt.Sprintf("/v3/orders?size=100&order_direction=asc&page=%d", page))
		for _, document := range list.Orders {
			orders++
			compareOrder(t, store, s, document)
		}
		if len(list.Orders) == 0 {
			break
		}
	}
	stored := 0
	for order, err := range store.Orders(t.Context(), sqlstore.OrderFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if order.MissingSince.IsZero() {
			stored++
		}
	}
	if stored != orders || orders != len(s.Orders()) {
		t.Errorf("%d orders are stored, the service has %d and lists %d", stored, len(s.Orders()), orders)
	}
	compareWearables(t, store, s)
}

func compareOrder(t *testing.T, store *sqlstore.Store, s *busyService, document json.RawMessage) {
	t.Helper()
	var want serviceOrder
	if err := json.Unmarshal(document, &want); err != nil {
		t.Fatal(err)
	}
	stored, ok, err := store.Order(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Errorf("order %s is not stored", want.ID)
		return
	}
	if got, want := canonical(t, stored.Order.RawJSON()), canonical(t, document); got != want {
		t.Errorf("stored order\n%s, the service has\n%s", got, want)
	}
	if string(stored.Status) != want.Last.Status || stored.UserID != want.UserID || !stored.Since.Equal(want.Last.CreatedAt) || !stored.MissingSince.IsZero() {
		t.Errorf("order %s has the status %s of user %s since %s, missing since %s, the service has %+v",
			want.ID, stored.Status, stored.UserID, stored.Since, stored.MissingSince, want)
	}
	timeline, err := store.Timeline(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	var gotEvents []serviceEvent
	for _, e := range timeline {
		id, _ := strconv.ParseInt(e.ID, 10, 64)
		gotEvents = append(gotEvents, serviceEvent{id, e.At.UTC(), string(e.Status), string(e.Detail)})
	}
	if got, want := fmt.Sprint(gotEvents), fmt.Sprint(inUTC(want.Events)); got != want {
		t.Errorf("timeline\n%s, the service has\n%s", got, want)
	}
	compareResults(t, store, s, stored)
}

func inUTC(events []serviceEvent) []serviceEvent {
	for i := range events {
		events[i].CreatedAt = events[i].CreatedAt.UTC()
	}
	return events
}

func compareResults(t *testing.T, store *sqlstore.Store, s *busyService, order sqlstore.StoredOrder) {
	t.Helper()
	id := order.Order.ID
	document := s.request(t, http.MethodGet, "/v3/order/"+id.String()+"/result")
	results, ok, err := store.OrderResults(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if document == nil {
		if ok || order.Results != sqlstore.ResultsNone {
			t.Errorf("order %s has results, %s: the service has none", id, order.Results)
		}
		return
	}
	if !ok {
		t.Errorf("order %s has no results, %s: the service has some", id, order.Results)
		return
	}
	if got, want := canonical(t, results.RawJSON()), canonical(t, document); got != want {
		t.Errorf("results of order %s\n%s, the service has\n%s", id, got, want)
	}
	want := sqlstore.ResultsFinal
	switch {
	case strings.HasSuffix(string(order.Status), ".corrected"):
		want = sqlstore.ResultsCorrected
	case strings.HasSuffix(string(order.Status), ".partial_results"):
		want = sqlstore.ResultsPartial
	}
	if order.Results != want {
		t.Errorf("results of order %s are %s, want %s", id, order.Results, want)
	}
}

// sampleText is the content of a sample.
func sampleText(user uuid.UUID, resource string, at, start, end time.Time, value float64, kind, unit string) string {
	return fmt.Sprint(user, resource, at.UnixNano(), start.UnixNano(), end.UnixNano(), value, kind, unit)
}

// compareWearables compares the summaries and samples of the users that the service has.
func compareWearables(t *testing.T, store *sqlstore.Store, s *busyService) {
	t.Helper()
	differences := map[string]int{} // by content: how often the service has it more often than the store
	for _, id := range s.users[1:] {
		addServiceData(t, s, id, differences)
	}
	n := len(differences)
	for of, err := range store.Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if v := of.Sample; of.Key.UserID != s.users[0] {
			differences[sampleText(of.Key.UserID, of.Key.Resource, v.Timestamp, v.Start, v.End, v.Value, v.Type, v.Unit)]--
		}
	}
	for of, err := range store.Summaries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if of.Key.UserID != s.users[0] {
			document, _ := of.Data.MarshalJSON()
			differences[of.Key.Resource+canonical(t, document)]--
		}
	}
	wrong := 0
	for text, more := range differences {
		if more == 0 {
			continue
		}
		if wrong++; wrong < 10 {
			t.Errorf("the service has this %d times more than the store: %s", more, text)
		}
	}
	t.Logf("%d summaries and samples compared, %d differences", n, wrong)
}

// addServiceData adds the summaries and samples of a user.
func addServiceData(t *testing.T, s *busyService, id uuid.UUID, all map[string]int) {
	t.Helper()
	period := "?start_date=" + s.start.AddDate(0, 0, -2).Format(time.DateOnly)
	for _, resource := range sampleResources {
		for cursor := ""; ; {
			page, _ := get[struct {
				Groups map[string][]struct {
					Data []struct {
						Timestamp, Start, End time.Time
						Value                 float64
						Type, Unit            string
					}
				}
				Next string
			}](t, s, "/v2/timeseries/"+id.String()+"/"+resource+"/grouped"+period+cursor)
			for _, groups := range page.Groups {
				for _, group := range groups {
					for _, v := range group.Data {
						all[sampleText(id, resource, v.Timestamp, v.Start, v.End, v.Value, v.Type, v.Unit)]++
					}
				}
			}
			if page.Next == "" {
				break
			}
			cursor = "&next_cursor=" + page.Next
		}
	}
	for _, resource := range summaryResources {
		list, _ := get[map[string][]json.RawMessage](t, s, "/v2/summary/"+resource+"/"+id.String()+period)
		for _, document := range list[resource] {
			all[resource+canonical(t, document)]++
		}
	}
}

// compareReactions checks that the application was called for every stored transition, with one ID
// for each.
func compareReactions(t *testing.T, store *sqlstore.Store, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	idOf, transitionOf := map[string]string{}, map[string]string{}
	calls, results := 0, map[string]bool{}
	for line := range strings.Lines(string(content)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		id, transition, _ := strings.Cut(rest, " ")
		if kind == string(sqlstore.ReactResults) {
			results[strings.TrimSpace(transition)] = true
			continue
		}
		calls++
		if other, ok := idOf[transition]; ok && other != id {
			t.Errorf("transition %s has the IDs %s and %s", transition, other, id)
		}
		if other, ok := transitionOf[id]; ok && other != transition {
			t.Errorf("%s is the ID of the transitions %s and %s", id, other, transition)
		}
		idOf[transition], transitionOf[id] = id, transition
	}
	transitions, without, withoutResults := 0, 0, 0
	for order, err := range store.Orders(t.Context(), sqlstore.OrderFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		timeline, err := store.Timeline(t.Context(), order.Order.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range timeline {
			transitions++
			if idOf[e.OrderID.String()+" "+e.ID] == "" {
				without++
			}
		}
		if hasResults := order.Results != sqlstore.ResultsNone; hasResults && order.MissingSince.IsZero() && !results[order.Order.ID.String()] {
			withoutResults++
		}
	}
	if len(idOf) != transitions || without+withoutResults > 0 {
		t.Errorf("the calls were for %d transitions, %d are stored; there was none for %d transitions and for the results of %d orders",
			len(idOf), transitions, without, withoutResults)
	}
	t.Logf("%d calls for %d transitions, and for the results of %d orders", calls, transitions, len(results))
}

// compareDeleted checks that what was deleted at the service is stored, and reported as missing.
func compareDeleted(t *testing.T, store *sqlstore.Store, s *busyService, pass passResult) {
	t.Helper()
	stored := 0
	for _, id := range s.deleted {
		order, ok, err := store.Order(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !ok { // all of its events were lost
			continue
		}
		if stored++; order.MissingSince.IsZero() {
			t.Errorf("order %s was deleted, and is not reported as missing", id)
		}
	}
	if pass.MissingOrders != stored || pass.MissingUsers != 1 {
		t.Errorf("the pass reports %d missing orders and %d missing users, want %d and 1", pass.MissingOrders, pass.MissingUsers, stored)
	}
}
