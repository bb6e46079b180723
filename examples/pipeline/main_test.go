package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// The tests run their own binary as the program, in other processes.
const programVariable = "LABHEALTH_PIPELINE"

func TestMain(m *testing.M) {
	switch os.Getenv(programVariable) {
	case "":
		code := m.Run()
		stopSharedServer()
		os.Exit(code)
	case "nats-server":
		os.Exit(runServer(os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// testSecret is an invented secret.
const testSecret = "whsec_cGlwZWxpbmUtdGVzdC1zZWNyZXQtMzItYnl0ZXMh"

var long = os.Getenv("LABHEALTH_TEST_LONG") != ""

// process is the program as it runs.
type process struct {
	args          []string
	cmd           *exec.Cmd
	log           *log
	events, admin string // addresses
	ended         chan struct{}
}

// log collects the output of a process, which has the addresses it listens on.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
	line chan struct{}
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.line <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var running = regexp.MustCompile(`msg=running role=\w+ events=(\S+) admin=(\S+)`)

// launch starts the program and waits until it listens. The end of the test kills it.
func launch(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{args: args}
	p.start(t)
	t.Cleanup(func() {
		p.kill()
		p.checkRaces(t)
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(args, " "), tail(p.log.String()))
		}
	})
	return p
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

func (p *process) start(t testing.TB) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.checkRaces(t)
	p.log = &log{line: make(chan struct{}, 1)}
	p.cmd = exec.Command(binary, p.args...)
	p.cmd.Env = append(os.Environ(), programVariable+"=yes", "LABHEALTH_WEBHOOK_SECRET="+testSecret)
	p.cmd.Stderr = p.log
	p.ended = make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	for {
		if m := running.FindStringSubmatch(p.log.String()); m != nil {
			p.events, p.admin = strings.Trim(m[1], `"`), m[2]
			return
		}
		select {
		case <-p.log.line:
		case <-p.ended:
			t.Fatalf("the program has ended:\n%s", p.log)
		case <-time.After(time.Minute):
			t.Fatalf("the program does not start:\n%s", p.log)
		}
	}
}

// checkRaces fails if the process has reported a data race before it was killed: with -race the
// tests run it with the detector too.
func (p *process) checkRaces(t testing.TB) {
	t.Helper()
	if p.log == nil {
		return
	}
	if _, report, found := strings.Cut(p.log.String(), "WARNING: DATA RACE"); found {
		t.Errorf("%s: data race:%s", strings.Join(p.args, " "), report[:min(len(report), 5000)])
	}
}

// ready starts the program and waits until it is ready.
func ready(t testing.TB, args ...string) *process {
	t.Helper()
	p := launch(t, args...)
	wait(t, time.Minute, "the program to be ready", func() bool { return p.status(t, "/readyz") == http.StatusOK })
	return p
}

// kill stops the process at once, at whatever point it is.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// terminate shuts the process down.
func (p *process) terminate(t testing.TB) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the program ended with %d:\n%s", code, tail(p.log.String()))
		}
	case <-time.After(time.Minute):
		t.Fatalf("the program does not end:\n%s", tail(p.log.String()))
	}
}

// metrics returns the metrics of the process by name and labels: values of counters and gauges,
// counts of histograms.
func (p *process) metrics(t testing.TB) map[string]float64 {
	t.Helper()
	values, err := p.readMetrics()
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func (p *process) readMetrics() (map[string]float64, error) {
	resp, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := strings.Join(append([]string{name}, labels...), " ")
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				values[key] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				values[key] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				values[key] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return values, nil
}

// failedBatches returns the number of batches that were not applied.
func failedBatches(metrics map[string]float64) (n float64) {
	for name, v := range metrics {
		if code, ok := strings.CutPrefix(name, "labhealth_worker_step_duration_seconds error="); ok && code != "" {
			n += v
		}
	}
	return n
}

// status is that of a page of the process.
func (p *process) status(t testing.TB, page string) int {
	t.Helper()
	code, _ := p.page(t, page)
	return code
}

// page returns the status and the text of a page of the process.
func (p *process) page(t testing.TB, page string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + p.admin + page)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

// place holds the data of one test.
type place struct {
	postgres string // empty with SQLite
	sqlite   string
	nats     string
	stream   string
	db       *sql.DB
	store    *sqlstore.Store
	js       jetstream.JetStream
	ackWait  string
}

var databases = map[string]func(testing.TB) *place{"SQLite": newSQLitePlace, "PostgreSQL": newPlace}

// onDatabases runs a test with each database.
func onDatabases(t *testing.T, test func(t *testing.T, at *place)) {
	t.Parallel()
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// newSQLitePlace returns a place with SQLite and the broker of the tests.
func newSQLitePlace(t testing.TB) *place {
	t.Helper()
	p := &place{sqlite: filepath.Join(t.TempDir(), "pipeline.db"), stream: randomName(), ackWait: "3s"}
	p.open(t, &settings{sqlite: p.sqlite})
	p.useBroker(t, sharedServer(t))
	return p
}

// newPlace returns a place with PostgreSQL and the broker of the tests.
func newPlace(t testing.TB) *place {
	t.Helper()
	return newPlaceOn(t, sharedServer(t))
}

func randomName() string { return fmt.Sprintf("pipeline_test_%016x", rand.Uint64()) }

// newPlaceOn returns a place with PostgreSQL and the broker at the address.
func newPlaceOn(t testing.TB, broker string) *place {
	t.Helper()
	p := &place{postgres: os.Getenv("LABHEALTH_TEST_POSTGRES"), stream: randomName(), ackWait: "3s"}
	if p.postgres == "" {
		t.Skip("LABHEALTH_TEST_POSTGRES is not set: eval \"$(.ci/services)\" starts what is needed")
	}
	admin, err := sql.Open("pgx", p.postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	if _, err := admin.Exec("create schema " + p.stream); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec("drop schema " + p.stream + " cascade"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(p.postgres)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", p.stream)
	q.Set("application_name", p.stream)
	u.RawQuery = q.Encode()
	p.postgres = u.String()
	p.open(t, &settings{postgres: p.postgres, parallel: 2})
	p.useBroker(t, broker)
	return p
}

// useBroker connects to the broker, and removes the stream at the end of the test.
func (p *place) useBroker(t testing.TB, address string) {
	t.Helper()
	conn, err := nats.Connect(address, nats.RetryOnFailedConnect(true), nats.ReconnectWait(50*time.Millisecond), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	p.nats, p.js = address, js
	t.Cleanup(func() {
		if err := js.DeleteStream(context.Background(), p.stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Error(err)
		}
	})
}

func (p *place) open(t testing.TB, s *settings) {
	t.Helper()
	var err error
	if p.db, p.store, err = open(s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.db.Close() })
	if err := p.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// args returns the flags of a process that uses the place.
func (p *place) args(role string, more ...string) []string {
	args := []string{"-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0", "-role", role, "-nats", p.nats, "-stream", p.stream}
	switch {
	case role == "receive":
	case p.postgres != "":
		args = append(args, "-ack-wait", p.ackWait, "-postgres", p.postgres)
	default:
		args = append(args, "-ack-wait", p.ackWait, "-sqlite", p.sqlite)
	}
	return append(args, more...)
}

// pending returns the number of deliveries that are not processed yet.
func (p *place) pending(t testing.TB) int {
	t.Helper()
	stream, err := p.js.Stream(t.Context(), p.stream)
	if err != nil {
		t.Fatalf("the stream: %v", err)
	}
	return int(stream.CachedInfo().State.Msgs) + p.inbox(t) // what is acknowledged is removed
}

// inbox returns the number of deliveries in the inbox.
func (p *place) inbox(t testing.TB) (n int) {
	t.Helper()
	if err := p.db.QueryRow("select count(*) from labhealth_inbox").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// deadLetters returns the IDs of the dead letters, in order.
func (p *place) deadLetters(t testing.TB) (ids []string) {
	t.Helper()
	for d, err := range p.store.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.Delivery.ID)
	}
	slices.Sort(ids)
	return ids
}

// drained waits until nothing is pending.
func (p *place) drained(t testing.TB) {
	t.Helper()
	wait(t, time.Minute, "all deliveries to be applied", func() bool { return p.pending(t) == 0 })
}

// wait waits for a condition.
func wait(t testing.TB, most time.Duration, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); {
		if time.Since(began) > most {
			t.Fatalf("waited %v for %s", most, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// freePort returns an address on which nothing listens, outside of the range of outgoing
// connections, so that a test can reuse it.
func freePort(t testing.TB) string {
	t.Helper()
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
}

// message is an event to deliver.
type message struct {
	id   string
	body []byte
}

var verifier, _ = webhooks.NewVerifier(testSecret)

// post makes one attempt to deliver a message and returns the status, 0 without a response.
func post(client *http.Client, address string, m message) int {
	now := time.Now()
	signature, err := verifier.Sign(m.id, now, m.body)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+address+"/events", bytes.NewReader(m.body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Svix-Id", m.id)
	req.Header.Set("Svix-Timestamp", fmt.Sprint(now.Unix()))
	req.Header.Set("Svix-Signature", signature)
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// deliver posts a message to any of the addresses until it is acknowledged, as the service does,
// but with less delay.
func deliver(ctx context.Context, client *http.Client, addresses []string, m message) (attempts int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for pause := 5 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 200*time.Millisecond) {
		attempts++
		if status := post(client, addresses[rand.IntN(len(addresses))], m); status >= 200 && status <= 299 {
			return attempts, nil
		}
		time.Sleep(time.Duration(rand.Int64N(int64(pause))))
	}
	return attempts, ctx.Err()
}

func newClient() *http.Client {
	return &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

// batch returns an event with samples of glucose: values by minutes after the start of 2026.
func batch(user uuid.UUID, minutes []int, value func(i int) float64) []byte {
	var list []string
	for i, minute := range minutes {
		list = append(list, fmt.Sprintf(`{"timestamp":%q,"timezone_offset":0,"type":"automatic","unit":"mmol/L","value":%g}`,
			day.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339), value(i)))
	}
	return fmt.Appendf(nil, `{"event_type":"daily.data.glucose.updated","data":{"user_id":%q,`+
		`"source":{"name":"Sensor","slug":"sensor","logo":"https://example.com/logos/sensor.png"},"data":[%s]},`+
		`"team_id":"3b1c6b1e-4f52-4d3a-9d5e-0a4f0f4d8c11","user_id":%[1]q,"client_user_id":"test"}`, user, strings.Join(list, ","))
}

var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
