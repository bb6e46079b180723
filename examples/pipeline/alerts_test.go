package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// rules are the alerts and their expressions.
func rules(t *testing.T) map[string]string {
	t.Helper()
	text := readFile(t, "alerts.yml")
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: (.*)$`).FindAllStringSubmatch(text, -1) {
		found[m[1]] = m[2]
	}
	if n := strings.Count(text, "alert:"); n != len(found) || n == 0 {
		t.Fatalf("%d alerts, of which %d have an expression", n, len(found))
	}
	return found
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dashboard is the part of the dashboard that is checked.
type dashboard struct {
	Title, UID string
	Panels     []struct {
		ID          int
		Title, Type string
		Description string
		GridPos     struct{ X, Y, W, H int }
		Datasource  struct{ Type, UID string }
		FieldConfig struct{ Defaults struct{ Unit string } }
		Targets     []struct{ Expr, RefID string }
	}
}

var metricName = regexp.MustCompile(`\blabhealth_[a-z_]+`)

// Every metric of the dashboard and of the alerts is a metric of a running program.
func TestDashboard(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	one, at, book := newPlace(t, false), newPlace(t, true), newOrderBook(t, 3)
	all := launchWith(t, book.environment(), one.args("all", "-react", "transition")...)
	for _, p := range []*process{all, ready(t, at.args("receive")...), ready(t, at.args("work")...)} {
		client := newClient()
		if p.events != "" { // metrics with labels appear when there is something to count
			post(client, p.events, message{"msg_1", batch(uuid.New(), []int{1}, func(int) float64 { return 1 })})
		}
		client.CloseIdleConnections()
		wait(t, time.Minute, "metrics", func() bool {
			for series := range p.scrape(t) {
				exists[metricName.FindString(series)] = true
			}
			for _, name := range []string{"redelivered_total", "latency_seconds_count", "consumer_waiting_events", "worker_step_duration_seconds_count",
				"worker_deliveries_total", "worker_changes_total"} {
				if p.events == "" && !exists["labhealth_"+name] {
					return false
				}
			}
			for _, name := range []string{"reactor_call_duration_seconds_count", "reconciler_differences_total", "reconciler_failures_total",
				"reconciler_last_complete_timestamp_seconds"} {
				if p == all && !exists["labhealth_"+name] {
					return false
				}
			}
			return true
		})
	}
	if b, err := at.store.Backlog(t.Context()); err != nil {
		t.Fatal(err)
	} else if b.PartitionedUntil.IsZero() { // the tables have no partitions
		exists["labhealth_partitions_ahead_seconds"] = true
	}
	check := func(where, expression string) {
		names := metricName.FindAllString(expression, -1)
		if len(names) == 0 {
			t.Errorf("%s has no metric: %s", where, expression)
		}
		for _, name := range names {
			if !exists[name] {
				t.Errorf("%s: there is no metric %s", where, name)
			}
		}
	}
	for name, expression := range rules(t) {
		check(name, expression)
	}

	var d dashboard
	if err := json.Unmarshal([]byte(readFile(t, "grafana.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || len(d.Panels) == 0 {
		t.Errorf("%q, %q, %d panels", d.Title, d.UID, len(d.Panels))
	}
	ids, used := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" || p.Description == "" || p.Type == "" || p.Datasource.UID != "${datasource}" || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %d %q lacks something, or its ID is not its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := used[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q is outside or covers %q", p.Title, other)
				}
				used[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			check("panel "+p.Title, target.Expr)
			if target.RefID == "" {
				t.Errorf("panel %q: a query without refId", p.Title)
			}
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
	}
}

// The commands of the page that ask the database are valid.
func TestAlertsCommands(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	commands := regexp.MustCompile(`(?m)^psql "\$POSTGRES" -c "(.*?)"`).FindAllStringSubmatch(readFile(t, "ALERTS.md"), -1)
	if len(commands) < 10 {
		t.Errorf("%d commands", len(commands))
	}
	for _, m := range commands {
		if _, err := at.db.Exec(strings.ReplaceAll(m[1], "PID", "0")); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}

// Each alert has its section on the page, in the same order.
func TestAlertsPage(t *testing.T) {
	headings := func(file, pattern string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(readFile(t, file), -1) {
			names = append(names, m[1])
		}
		return names
	}
	if diff := cmp.Diff(headings("alerts.yml", `(?m)alert: (\w+)$`), headings("ALERTS.md", `(?m)^## (Labhealth\w+)$`)); diff != "" {
		t.Errorf("alerts.yml and ALERTS.md (-want +got):\n%s", diff)
	}
	for _, section := range strings.Split(readFile(t, "ALERTS.md"), "\n## Labhealth")[1:] {
		if !strings.Contains(section, "```") {
			t.Errorf("no command: %.60s", section)
		}
	}
}

// scrape returns the metrics of the program by series, as Prometheus reads them.
func (p *process) scrape(t testing.TB) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, value, ok := cutLast(lines.Text())
		if !strings.HasPrefix(series, "labhealth_") || !ok {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		values[series] = v
	}
	return values
}

// scrapeUp returns the metrics when no service is missed but those whose alerts are wanted: on a
// busy machine, one that is there may be too late for a scrape.
func (p *process) scrapeUp(t testing.TB, want []string) (values map[string]float64) {
	t.Helper()
	wait(t, time.Minute, "the services to be in time for a scrape", func() bool {
		values = p.scrape(t)
		for series, alert := range map[string]string{"labhealth_store_up": "LabhealthStoreDown", "labhealth_broker_up": "LabhealthBrokerDown"} {
			if up, ok := values[series]; ok && up == 0 && !slices.Contains(want, alert) {
				return false
			}
		}
		return true
	})
	return values
}

func cutLast(line string) (before, after string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// promtool returns the program that evaluates rules. Debian has it in the package prometheus.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("the alerts are not evaluated: there is no promtool on this machine")
	}
	return path
}

// history has what several processes show before and during a condition.
type history struct {
	processes []*process
	before    []map[string]float64
	more      map[string]float64 // of no process
}

func watch(t testing.TB, processes ...*process) *history {
	h := &history{processes: processes}
	for _, p := range processes {
		h.before = append(h.before, p.scrape(t))
	}
	return h
}

// alerts compares the alerts that fire if the condition lasts two hours with those that are wanted.
// The counters go on as they did since watch, once a minute, and the other values stay.
func (h *history) alerts(t *testing.T, want ...string) {
	t.Helper()
	tool := promtool(t)
	if tool == "" {
		return
	}
	var file strings.Builder
	path, err := filepath.Abs("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&file, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n", path)
	for series, v := range h.more {
		fmt.Fprintf(&file, "  - series: '%s'\n    values: '%vx120'\n", series, v)
	}
	for i, p := range h.processes {
		after := p.scrapeUp(t, want)
		for _, series := range slices.Sorted(maps.Keys(after)) {
			v, increase := after[series], 0.0
			name := metricName.FindString(series)
			if before, ok := h.before[i][series]; strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_count") {
				increase = v - before
				if !ok {
					increase = v
				}
			}
			if math.IsInf(v, 0) {
				continue // no number of the test's language
			}
			labels := strings.TrimSuffix(strings.TrimPrefix(series, name), "}")
			labels = strings.TrimPrefix(labels, "{")
			if labels != "" {
				labels += ","
			}
			fmt.Fprintf(&file, "  - series: '%s{%sinstance=\"%d\"}'\n    values: '%s'\n", name, labels, i,
				strconv.FormatFloat(v, 'f', -1, 64)+"+"+strconv.FormatFloat(increase, 'f', -1, 64)+"x120")
		}
	}
	fmt.Fprint(&file, "  promql_expr_test:\n")
	for _, name := range slices.Sorted(maps.Keys(rules(t))) {
		fmt.Fprintf(&file, "  - expr: 'count(ALERTS{alertname=\"%s\",alertstate=\"firing\"})'\n    eval_time: 2h\n", name)
		if slices.Contains(want, name) {
			fmt.Fprint(&file, "    exp_samples: [{labels: '{}', value: 1}]\n")
		}
	}
	test := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(test, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "test", "rules", test).CombinedOutput(); err != nil {
		t.Errorf("want the alerts %v: %v\n%s", want, err, out)
	}
}

// The rules can be parsed, and nothing fires while all is well.
func TestAlertsAreSilent(t *testing.T) {
	t.Parallel()
	if tool := promtool(t); tool != "" {
		if out, err := exec.Command(tool, "check", "rules", "alerts.yml").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	at := newPlace(t, true)
	receiver, worker := ready(t, at.args("receive")...), ready(t, at.args("work")...)
	h := watch(t, receiver, worker)
	h.alerts(t) // idle
	(&history{more: map[string]float64{"labhealth_partitions_ahead_seconds": 3600}}).alerts(t, "LabhealthPartitionsEnd")
	at.publish(t, receiver, 20, 1)
	at.drained(t)
	wait(t, time.Minute, "the metrics of the empty stream", func() bool {
		return worker.scrape(t)["labhealth_stream_events"] == 0 && receiver.scrape(t)["labhealth_stream_events"] == 0
	})
	h.alerts(t)
}

// A receiver that cannot store says why: on its page, in its log and by alerts.
func TestAlertsOfReceiver(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	receiver := ready(t, at.args("receive")...)
	client := newClient()
	defer client.CloseIdleConnections()
	h := watch(t, receiver)
	for range 20 {
		resp, err := client.Post("http://"+receiver.events+"/events", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	wait(t, time.Minute, "the deliveries to be counted", func() bool {
		return receiver.metrics(t)["labhealth_webhook_request_duration_seconds code=401"] == 20
	})
	h.alerts(t, "LabhealthDeliveriesUnverified")
	if n := strings.Count(receiver.log.String(), "a delivery was refused"); n != 1 {
		t.Errorf("%d records of 20 deliveries that were refused for the same reason", n)
	}

	const most = 50_000
	at.limitStream(t, most)
	h = watch(t, receiver)
	large := make([]int, 100)
	id, status := "", 204
	for n := 0; n < 1000 && status == 204; n++ {
		id = "msg_" + strconv.Itoa(n)
		status = post(client, receiver.events, message{id, batch(uuid.New(), large, func(int) float64 { return 1 })})
	}
	if code, text := receiver.page(t, "/readyz/receive"); status != 503 || code != 503 || !strings.Contains(text, "full") {
		t.Errorf("%d, and the page is %d %s", status, code, text)
	}
	record := regexp.MustCompile(`msg="a delivery was refused" delivery_id=` + id + ` status=503 reason=failed cause="failed: the broker rejected it, .* \(error \d+\)"`)
	wait(t, time.Minute, "the record "+record.String(), func() bool { return record.MatchString(receiver.log.String()) })
	wait(t, time.Minute, "the size of the stream", func() bool { return receiver.metrics(t)["labhealth_stream_bytes"] > 0.8*most })
	h.alerts(t, "LabhealthDeliveriesRefused", "LabhealthStreamFull", "LabhealthNothingApplied")
	at.limitStream(t, -1)
	if status := post(client, receiver.events, message{id, batch(uuid.New(), large, func(int) float64 { return 1 })}); status != 204 {
		t.Errorf("%d with room", status)
	}
	if code, text := receiver.page(t, "/readyz/receive"); code != 200 {
		t.Errorf("with room: %d %s", code, text)
	}
}

// Without the database or the broker, a scrape has a response. A receiver does not depend on the
// database.
func TestAlertsOfOutages(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	broker, database := newRoad(t, hostOf(t, at.nats)), newRoad(t, hostOf(t, at.postgres))
	direct := *at
	at.nats, at.postgres = broker.through(t, at.nats), database.through(t, at.postgres)
	receiver, worker := ready(t, direct.args("receive")...), ready(t, at.args("all")...)
	database.set(true)
	wait(t, time.Minute, "the database to be missed", func() bool { return worker.metrics(t)["labhealth_store_up"] == 0 })
	watch(t, receiver, worker).alerts(t, "LabhealthStoreDown", "LabhealthWorkerNotReady")
	for page, want := range map[string]string{"/readyz": "the database is unavailable", "/readyz/work": "the database is unavailable", "/readyz/receive": "ready"} {
		if _, text := worker.page(t, page); text != want {
			t.Errorf("%s: %s, want %s", page, text, want)
		}
	}
	broker.set(true)
	wait(t, time.Minute, "the broker to be missed", func() bool { return worker.metrics(t)["labhealth_broker_up"] == 0 })
	watch(t, receiver, worker).alerts(t, "LabhealthStoreDown", "LabhealthBrokerDown", "LabhealthWorkerNotReady")
	if code, text := receiver.page(t, "/readyz"); code != 200 {
		t.Errorf("the other receiver: %d %s", code, text)
	}
}

// A worker whose database is read-only is not ready, and its receiver is.
func TestAlertsOfReadOnly(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	receiver := ready(t, at.args("receive")...)
	at.publish(t, receiver, 3, 1)
	at.postgres += "&default_transaction_read_only=on"
	worker := launch(t, at.args("work")...)
	if code, text := worker.page(t, "/readyz"); code != 503 || text != "the database is read-only" {
		t.Errorf("%d %s", code, text)
	}
	if code, text := receiver.page(t, "/readyz"); code != 200 {
		t.Errorf("the receiver: %d %s", code, text)
	}
	h := watch(t, receiver, worker)
	before := worker.metrics(t)
	wait(t, time.Minute, "the batches to fail", func() bool {
		m := worker.metrics(t)
		return m["labhealth_stream_events"] == 3 && m["labhealth_redelivered_total"] > before["labhealth_redelivered_total"] && failedBatches(m) > failedBatches(before)
	})
	h.alerts(t, "LabhealthWorkerNotReady", "LabhealthNothingApplied", "LabhealthBatchesFail", "LabhealthRedelivered")
	if m := worker.metrics(t); m["labhealth_worker_step_duration_seconds error=25006"] == 0 || m["labhealth_batch_limit_events"] != 100 {
		t.Errorf("%v batches failed with 25006, and the next one takes %v events", m["labhealth_worker_step_duration_seconds error=25006"], m["labhealth_batch_limit_events"])
	}
}
