package main

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// body returns the body of a page of the process.
func (p *process) body(t testing.TB, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + p.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// appliedEvents returns the number of events that a process has applied, from its metrics.
func appliedEvents(metrics map[string]float64) float64 {
	return metrics["labhealth_applied_total"] + metrics["labhealth_worker_deliveries_total result=applied"]
}

// once runs the program in a role that ends by itself, on the stream of the place.
func (at *place) once(t testing.TB, args ...string) {
	t.Helper()
	cmd, out := at.command(args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// command returns the program with its output.
func (at *place) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0], append(args, "-stream", cmp.Or(at.stream, "events"))...)
	cmd.Env = append(os.Environ(), programVariable+"=yes")
	cmd.Stderr = &out
	return cmd, &out
}

// database is another database of a place: a schema of its own on the same server.
type database struct {
	postgres string
	db       *sql.DB
	store    *sqlstore.Store
}

func (at *place) another(t testing.TB) *database {
	t.Helper()
	name := fmt.Sprintf("pipeline_test_%016x", rand.Uint64())
	if _, err := at.db.Exec("create schema " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := at.db.Exec("drop schema " + name + " cascade"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(at.postgres)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	other := &place{postgres: u.String()}
	other.open(t, &settings{postgres: other.postgres, parallel: 2})
	return &database{other.postgres, other.db, other.store}
}

// onPage returns the commands of docs/scaling.md.
func onPage(t testing.TB) (commands []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(page), "```") {
		if i%2 == 0 {
			continue
		}
		_, block, _ = strings.Cut(block, "\n")
		for line := range strings.Lines(block) {
			if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
				commands = append(commands, strings.TrimSpace(line))
			}
		}
	}
	return commands
}

// guide executes the commands of docs/scaling.md, in their order.
type guide struct {
	*place
	variables   map[string]string
	rest        []string
	environment []string // of the processes
}

// next returns the arguments of the next command of the page, which must be the given one.
func (g *guide) next(t *testing.T, want string) []string {
	t.Helper()
	if len(g.rest) == 0 || g.rest[0] != want {
		t.Fatalf("the test executes %q; docs/scaling.md has %q", want, g.rest)
	}
	g.rest = g.rest[1:]
	args := strings.Fields(strings.TrimPrefix(want, "pipeline "))
	for i := range args {
		if value, ok := g.variables[args[i]]; ok {
			args[i] = value
		}
	}
	return args
}

// worker starts a worker with the next command. The other flags are those of the test.
func (g *guide) worker(t *testing.T, command string) *process {
	t.Helper()
	return launchWith(t, g.environment, append(g.next(t, command), "-admin", "127.0.0.1:0", "-stream", g.stream, "-ack-wait", g.ackWait)...)
}

// killed runs the next command, which it kills at random points until it ends by itself.
func (g *guide) killed(t *testing.T, command string, kills int) {
	t.Helper()
	args := g.next(t, command)
	for n := 0; ; n++ {
		cmd, out := g.place.command(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() })
		if n < kills {
			timer.Reset(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		}
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			t.Logf("%s: completed after %d kills:%s", command, n, out)
			return
		}
		if n >= kills {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}

// A running pipeline is divided into 2 and 4 partitions, and half of the users are moved to another
// database, by the commands of docs/scaling.md, while deliveries arrive and workers and the mover
// are killed. Nothing is lost, and nothing is in two places.
func TestReshape(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	other := at.another(t)
	book := newOrderBook(t, 40)
	g := &guide{place: at, rest: onPage(t), variables: map[string]string{"$NATS": at.nats, "$OLD": at.postgres, "$NEW": other.postgres}, environment: book.environment()}

	receiver := ready(t, at.args("receive")...)
	l := startReshapeLoad(t, receiver.events)
	l.sendOrders(t, book, receiver.events)
	more := func() { // time passes under load
		t.Helper()
		n := l.count() + 60
		if long {
			n += 1000
		}
		wait(t, time.Minute, "deliveries", func() bool { return l.count() >= n })
	}
	isReady := func(p *process) {
		t.Helper()
		wait(t, time.Minute, "the worker to be ready", func() bool { return p.status(t, "/readyz") == http.StatusOK })
	}
	waits := func(p *process) {
		t.Helper()
		wait(t, time.Minute, "the worker to wait for its partition", func() bool {
			return strings.Contains(p.body(t, "/readyz"), "the stream is not partitioned for -partition")
		})
	}

	// From one consumer to two.
	all := g.worker(t, "pipeline -role work -nats $NATS -postgres $OLD")
	isReady(all)
	more()
	low := g.worker(t, "pipeline -role work -nats $NATS -postgres $OLD -partition 0-127")
	high := g.worker(t, "pipeline -role work -nats $NATS -postgres $OLD -partition 128-255")
	waits(low)
	waits(high)
	at.once(t, g.next(t, "pipeline -role repartition -nats $NATS -partition 0-127,128-255")...)
	isReady(low)
	isReady(high)
	waits(all)
	more()
	all.terminate(t)

	// Half of the users go to another database.
	target := g.worker(t, "pipeline -role work -nats $NATS -postgres $NEW -partition 128-255")
	isReady(target)
	more()
	high.kill()
	g.killed(t, "pipeline -role copy -postgres $OLD -to $NEW -partition 128-255", 2)
	target.kill()
	target.start(t)
	g.killed(t, "pipeline -role move -postgres $OLD -to $NEW -partition 128-255", 3)
	more()

	// From two consumers to four, back to three, with workers killed.
	at.once(t, g.next(t, "pipeline -role repartition -nats $NATS -partition 0-63,64-127,128-255")...)
	waits(low)
	first := g.worker(t, "pipeline -role work -nats $NATS -postgres $OLD -partition 0-63")
	second := g.worker(t, "pipeline -role work -nats $NATS -postgres $OLD -partition 64-127")
	isReady(first)
	isReady(second)
	low.kill()
	at.once(t, "-role", "repartition", "-nats", at.nats, "-partition", "0-63,64-127,128-191,192-255")
	third := launch(t, "-role", "work", "-nats", at.nats, "-postgres", other.postgres, "-partition", "128-191", "-admin", "127.0.0.1:0", "-stream", at.stream, "-ack-wait", at.ackWait)
	fourth := launch(t, "-role", "work", "-nats", at.nats, "-postgres", other.postgres, "-partition", "192-255", "-admin", "127.0.0.1:0", "-stream", at.stream, "-ack-wait", at.ackWait)
	isReady(third)
	isReady(fourth)
	waits(target)
	more()
	for _, p := range []*process{first, third} {
		p.kill()
		p.start(t)
	}
	more()
	l.stop()
	at.drained(t)

	// Each database is compared with the service.
	g.worker(t, "pipeline -role reconcile -postgres $OLD -partition 0-127")
	g.worker(t, "pipeline -role reconcile -postgres $NEW -partition 128-255")
	book.check(t, at.store, other.store)
	for i, store := range []*sqlstore.Store{at.store, other.store} {
		for order, err := range store.Orders(t.Context(), sqlstore.OrderFilter{}) {
			if err != nil || sqlstore.Slot(order.UserID)/128 != i {
				t.Errorf("database %d has an order of slot %d, %v", i, sqlstore.Slot(order.UserID), err)
			}
		}
	}
	if len(g.rest) > 0 {
		t.Errorf("docs/scaling.md has commands that no test executes: %q", g.rest)
	}
	l.checkSpread(t, at.store, other.store)
	redelivered := 0.0
	for _, p := range []*process{first, second, third, fourth} {
		redelivered += p.metrics(t)["labhealth_redelivered_total"]
	}
	t.Logf("%d deliveries in %d attempts, %v redelivered", l.count(), l.attempts, redelivered)
}

// startReshapeLoad delivers for many users, so that each partition has some.
func startReshapeLoad(t testing.TB, addresses ...string) *load {
	l := startLoad(t, addresses...)
	for range 4 {
		users := make([]uuid.UUID, 25)
		for i := range users {
			users[i] = uuid.New()
		}
		l.done.Go(func() {
			for n := 0; l.ctx.Err() == nil; n++ {
				minute := n / len(users) * 2
				l.send(t, addresses, message{"msg_" + uuid.NewString(), batch(users[n%len(users)], []int{minute, minute + 1}, func(int) float64 { return float64(n) })})
			}
		})
	}
	return l
}

// sendOrders delivers the events of orders, except one of five, which is lost.
func (l *load) sendOrders(t testing.TB, book *orderBook, addresses ...string) {
	l.done.Go(func() {
		for n, event := range book.events {
			if n%5 > 0 && l.ctx.Err() == nil {
				l.send(t, addresses, message{"msg_" + uuid.NewString(), event})
			}
		}
	})
}

// checkSpread compares what two databases have together with what was acknowledged. Slots up to 127
// are in the first one, and the others in the second.
func (l *load) checkSpread(t *testing.T, stores ...*sqlstore.Store) {
	t.Helper()
	var want webhooks.Latest
	for _, m := range l.messages {
		d, err := webhooks.RawDelivery{ID: m.id, Body: m.body}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := want.Apply(d); err != nil {
			t.Fatal(err)
		}
	}
	expected, got := map[webhooks.SampleKey]webhooks.Sample{}, map[webhooks.SampleKey]webhooks.Sample{}
	for k, s := range want.Samples() {
		expected[k] = s
	}
	for i, store := range stores {
		n := 0
		for s, err := range store.Samples(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if sqlstore.Slot(s.Key.UserID)/128 != i {
				t.Fatalf("a user of slot %d is in database %d", sqlstore.Slot(s.Key.UserID), i)
			}
			got[s.Key] = s.Sample
			n++
		}
		b, err := store.Backlog(t.Context())
		if err != nil || b.DeadLetters+b.Waiting+b.Delayed > 0 {
			t.Errorf("database %d: %+v, %v", i, b, err)
		}
		t.Logf("database %d: %d samples", i, n)
		if n < 100 {
			t.Errorf("too few samples")
		}
	}
	if diff := diffSamples(expected, got); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}
}

// A user that grows out of SQLite moves to PostgreSQL with everything.
func TestMoveFromSQLite(t *testing.T) {
	t.Parallel()
	at, to := newPlace(t, false), newPlace(t, true)
	p := ready(t, at.args("all")...)
	l := startLoad(t, p.events)
	wait(t, time.Minute, "deliveries", func() bool { return l.count() > 50 })
	l.stop()
	at.drained(t)
	p.terminate(t)
	cmd, out := to.command("-role", "move", "-data", at.data, "-to", to.postgres)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.check(t, to)
	if n := len(stored(t, at)); n != 0 {
		t.Errorf("%d samples are left", n)
	}
}
