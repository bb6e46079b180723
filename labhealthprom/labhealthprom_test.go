package labhealthprom_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// series returns the series with their values, or counts for histograms. host is replaced.
func series(t *testing.T, g prometheus.Gatherer, host string) (lines []string) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetValue() != "" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			value := m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
				if h.GetSampleSum() < 0 || h.GetSampleSum() > 60 {
					t.Errorf("%s: %g s", f.GetName(), h.GetSampleSum())
				}
			}
			line := fmt.Sprintf("%s{%s} %g", f.GetName(), strings.Join(labels, ","), value)
			if host != "" {
				line = strings.ReplaceAll(line, host, "*")
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Two clients share a registry. The service rejects, delays and loses.
func TestClient(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	registry := prometheus.NewRegistry()
	var clients []*labhealth.Client
	for range 2 {
		client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealthprom.Client(registry),
			labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: time.Millisecond}))
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	ctx := t.Context()
	if err := srv.FailBefore("GET /v2/user/", 1, labhealthtest.FaultResponse(429, `{}`, "Retry-After", "0")); err != nil {
		t.Fatal(err)
	}
	for _, client := range clients {
		if _, err := client.Users.List(ctx, labhealth.ListUsersParams{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.FailAfter("POST /v2/user", 1, labhealthtest.FaultClosed); err != nil {
		t.Fatal(err)
	}
	clients[0].Users.Create(ctx, labhealth.CreateUserBody{ClientUserID: "canary"})
	clients[0].Orders.Get(ctx, uuid.New())
	clients[1].Orders.Import(ctx, labhealth.ImportOrderBody{})
	clients[1].Do(ctx, "GET", "/v9/"+srv.AddUser("canary-2").String(), nil, nil)
	const calls, requests = "labhealth_client_call_duration_seconds{", "labhealth_client_request_duration_seconds{"
	compare(t, series(t, registry, strings.TrimPrefix(srv.URL, "http://")),
		calls+"host=*,operation=GET /v2/user/,outcome=applied} 2",
		calls+"error=404,host=*,operation=GET (Do),outcome=rejected} 1",
		calls+"error=404,host=*,operation=GET /v3/order/{order_id},outcome=rejected} 1",
		calls+"error=connection_closed,host=*,operation=POST /v2/user,outcome=unknown} 1",
		calls+"error=invalid_request,host=*,operation=POST /v3/order/import,outcome=not sent} 1",
		requests+"error=connection_closed,host=*,operation=POST /v2/user} 1",
		requests+"code=200,host=*,operation=GET /v2/user/} 2",
		requests+"code=404,error=404,host=*,operation=GET (Do)} 1",
		requests+"code=404,error=404,host=*,operation=GET /v3/order/{order_id}} 1",
		requests+"code=429,error=429,host=*,operation=GET /v2/user/} 1")
}

// A host that cannot be a label does not break a call.
func TestHost(t *testing.T) {
	registry := prometheus.NewRegistry()
	client, err := labhealth.NewClient("sk_key", labhealth.WithBaseURL("https://\xff.example.com"), labhealthprom.Client(registry))
	if err != nil {
		t.Skip(err)
	}
	if _, err := client.Orders.Import(t.Context(), labhealth.ImportOrderBody{}); !errors.Is(err, labhealth.ErrValidation) {
		t.Error(err)
	}
	compare(t, series(t, registry, ""),
		"labhealth_client_call_duration_seconds{error=invalid_request,host=?.example.com,operation=POST /v3/order/import,outcome=not sent} 1")
}

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		named := prometheus.WrapRegistererWith(prometheus.Labels{"handler": "a"}, registry)
		for range 2 {
			h, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, e *webhooks.Event) error {
				switch e.Type {
				case "fail":
					return errors.New("canary")
				case "slow":
					time.Sleep(12 * time.Second)
				}
				return nil
			}, labhealthprom.Handler(named))
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"labtest.order.created", "labtest.order.created", "canary", "fail", "slow", ""} {
				id := "msg_" + strings.ReplaceAll(kind, ".", "_")
				r := httptest.NewRequest("POST", "/canary", strings.NewReader(`{"event_type":"`+kind+`","data":{}}`))
				r.Header.Set("Svix-Id", id)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/canary", nil))
			if err := h.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
		const deliveries, requests = "labhealth_webhook_deliveries_total{duplicate=", "labhealth_webhook_request_duration_seconds{"
		compare(t, series(t, registry, ""),
			deliveries+"false,handler=a,late=false,reason=applied} 2",
			deliveries+"false,handler=a,late=false,reason=method} 2",
			deliveries+"false,event_type=labtest.order.created,handler=a,late=false,reason=applied} 2",
			deliveries+"false,event_type=other,handler=a,late=false,reason=applied} 2",
			deliveries+"false,event_type=other,handler=a,late=false,reason=deadline} 2",
			deliveries+"false,event_type=other,handler=a,late=false,reason=failed} 2",
			deliveries+"false,event_type=other,handler=a,late=true,reason=applied} 2",
			deliveries+"true,handler=a,late=false,reason=duplicate} 2",
			requests+"code=204,handler=a} 8",
			requests+"code=405,handler=a} 2",
			requests+"code=503,handler=a} 4")
	})
}

// broken is a database whose errors quote the data.
type broken struct{}

func (broken) Connect(context.Context) (driver.Conn, error) { return nil, sqlState("canary") }
func (broken) Driver() driver.Driver                        { return nil }

type sqlState string

func (s sqlState) Error() string  { return string(s) }
func (sqlState) SQLState() string { return "53100" }

func TestWorker(t *testing.T) {
	registry := prometheus.NewRegistry()
	db := sql.OpenDB(broken{})
	defer db.Close()
	store, err := sqlstore.Open(db, sqlstore.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	var worker *sqlstore.Worker
	for range 2 {
		worker = &sqlstore.Worker{Store: store}
		if worker.Observe, err = labhealthprom.Worker(registry); err != nil {
			t.Fatal(err)
		}
		if _, err := worker.Step(t.Context()); err == nil {
			t.Error("no error")
		}
	}
	o := worker.Observe
	o.End(o.Start(t.Context()), sqlstore.Step{Applied: 3, Delayed: 2, Dead: 1, Changes: webhooks.Changes{Added: 7, Same: 1, Keyless: 2}}, nil)
	o.End(o.Start(t.Context()), sqlstore.Step{}, errors.New("canary"))
	o.End(o.Start(t.Context()), sqlstore.Step{}, context.Canceled)
	o.End(o.Start(t.Context()), sqlstore.Step{}, context.DeadlineExceeded)
	const changes, deliveries, steps = "labhealth_worker_changes_total{change=", "labhealth_worker_deliveries_total{result=", "labhealth_worker_step_duration_seconds{"
	if families, err := registry.Gather(); err != nil {
		t.Fatal(err)
	} else {
		for _, f := range families {
			if at := f.Metric[0].GetGauge().GetValue(); f.GetName() == "labhealth_worker_last_success_timestamp_seconds" && time.Since(time.Unix(int64(at), 0)) > time.Hour {
				t.Errorf("the last success was at %v", at)
			}
		}
	}
	compare(t, series(t, registry, ""),
		changes+"added} 7", changes+"keyless} 2", changes+"older} 0", changes+"repeated} 0", changes+"same} 1", changes+"updated} 0",
		deliveries+"applied} 3", deliveries+"dead} 1", deliveries+"delayed} 2",
		"labhealth_worker_last_success_timestamp_seconds{} 0", // series has no gauges
		steps+"} 1", steps+"error=53100} 2", steps+"error=canceled} 1", steps+"error=deadline} 1", steps+"error=other} 1")
}

func TestReactor(t *testing.T) {
	registry := prometheus.NewRegistry()
	o, err := labhealthprom.Reactor(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range []sqlstore.ReactionResult{sqlstore.ReactionDone, sqlstore.ReactionDone, sqlstore.ReactionFailed} {
		r := sqlstore.Reaction{Kind: sqlstore.ReactResults}
		o.End(o.Start(t.Context(), r), r, result, errors.New("canary"))
	}
	o.Fail(t.Context(), context.DeadlineExceeded)
	compare(t, series(t, registry, ""),
		"labhealth_reactor_call_duration_seconds{kind=results,result=done} 2", "labhealth_reactor_call_duration_seconds{kind=results,result=failed} 1",
		"labhealth_reactor_errors_total{error=deadline} 1")
}

// What cannot be registered is an error of the constructor.
func TestErrors(t *testing.T) {
	taken := prometheus.NewRegistry()
	for _, name := range []string{"labhealth_client_call_duration_seconds", "labhealth_webhook_deliveries_total", "labhealth_worker_changes_total", "labhealth_store_up"} {
		taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "another"}))
	}
	for _, test := range []struct {
		registerer prometheus.Registerer
		want       string
	}{
		{nil, "labhealthprom: a Registerer is missing, such as prometheus.DefaultRegisterer"},
		{taken, "labhealthprom: a previously registered descriptor with the same fully-qualified name"},
	} {
		_, client := labhealth.NewClient("sk_key", labhealth.WithBaseURL("https://api.example.com"), labhealthprom.Client(test.registerer))
		_, handler := webhooks.NewHandler(webhooks.Unsigned, func(context.Context, *webhooks.Event) error { return nil }, labhealthprom.Handler(test.registerer))
		_, worker := labhealthprom.Worker(test.registerer)
		store, err := sqlstore.Open(sql.OpenDB(broken{}), sqlstore.PostgreSQL)
		if err != nil {
			t.Fatal(err)
		}
		backlog := labhealthprom.Backlog(test.registerer, store)
		for name, err := range map[string]error{"Client": client, "Handler": handler, "Worker": worker, "Backlog": backlog} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %s", name, err, test.want)
			}
		}
	}
}

// A server that invents status codes does not create a series for each.
func TestStatusCodes(t *testing.T) {
	registry, status := prometheus.NewRegistry(), 0
	client, err := labhealth.NewClient("key", labhealth.WithBaseURL("https://api.example.com"), labhealthprom.Client(registry),
		labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})}))
	if err != nil {
		t.Fatal(err)
	}
	for _, status = range []int{404, 520, 600, 601, 777, 999} {
		client.Do(t.Context(), http.MethodPost, "/x", nil, nil)
	}
	compare(t, series(t, registry, ""),
		"labhealth_client_call_duration_seconds{error=404,host=api.example.com,operation=POST (Do),outcome=unknown} 1",
		"labhealth_client_call_duration_seconds{error=520,host=api.example.com,operation=POST (Do),outcome=unknown} 1",
		"labhealth_client_call_duration_seconds{error=other,host=api.example.com,operation=POST (Do),outcome=unknown} 4",
		"labhealth_client_request_duration_seconds{code=404,error=404,host=api.example.com,operation=POST (Do)} 1",
		"labhealth_client_request_duration_seconds{code=520,error=520,host=api.example.com,operation=POST (Do)} 1",
		"labhealth_client_request_duration_seconds{code=other,error=other,host=api.example.com,operation=POST (Do)} 4")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
