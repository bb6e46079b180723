package labhealthotel_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/labhealth/labhealth-go/labhealthotel"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// post returns the status code of a delivery.
func post(h http.Handler, method, id, body string, header ...string) int {
	r := httptest.NewRequest(method, "/hooks/canary-secret", strings.NewReader(body))
	r.Header.Set("Svix-Id", id)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func event(eventType string) string {
	return `{"event_type":"` + eventType + `","user_id":"1e9c0b37-54fd-43c6-9a5e-0c5e86d0a4de","client_user_id":"canary-user","data":{"note":"Canaryna"}}`
}

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTelemetry()
		tracer := r.tracer.Tracer("application")
		var children []trace.SpanContext
		h, err := webhooks.NewHandler(webhooks.Unsigned, func(ctx context.Context, e *webhooks.Event) error {
			_, span := tracer.Start(ctx, "work")
			span.End()
			children = append(children, trace.SpanContextFromContext(ctx))
			switch e.Type {
			case "fail":
				return errors.New("Canaryna")
			case "panic":
				panic("Canaryna")
			case "slow":
				time.Sleep(12 * time.Second)
			}
			return nil
		}, labhealthotel.Handler(r.options()...))
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("/hooks/{secret}", h)
		const order = "labtest.order.created"
		for _, d := range []struct {
			method, id, eventType string
			want                  int
		}{
			{"POST", "msg_1", order, 204},
			{"POST", "msg_1", order, 204},
			{"POST", "msg_2", "of.Canaryna", 204},
			{"POST", "msg_3", "fail", 503},
			{"POST", "msg_4", "panic", 503},
			{"POST", "msg_5", "slow", 503},
			{"GET", "Canaryna", order, 405},
			{"CANARY", "msg_6", order, 405},
		} {
			if got := post(mux, d.method, d.id, event(d.eventType)); got != d.want {
				t.Errorf("%s %s: %d, want %d", d.method, d.eventType, got, d.want)
			}
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		for _, s := range r.spans.Ended() {
			if s.Name() == "work" && !slices.ContainsFunc(children, func(c trace.SpanContext) bool { return c.SpanID() == s.Parent().SpanID() }) {
				t.Error("a span of the application has no parent")
			}
		}
		const post = "POST /hooks/{secret} (server) "
		const request = "http.request.method=POST http.response.status_code="
		const own = " http.route=/hooks/{secret} labhealth.webhook."
		compare(t, "spans", r.ended(t),
			"work (internal) ",
			post+request+"204"+own+"delivery_id=msg_1 labhealth.webhook.duplicate=false labhealth.webhook.event_type="+order+" labhealth.webhook.reason=applied url.scheme=http",
			post+request+"204"+own+"delivery_id=msg_1 labhealth.webhook.duplicate=true labhealth.webhook.reason=duplicate url.scheme=http",
			"work (internal) ",
			post+request+"204"+own+"delivery_id=msg_2 labhealth.webhook.duplicate=false labhealth.webhook.event_type=other labhealth.webhook.reason=applied url.scheme=http",
			"work (internal) ",
			post+"error.type=failed "+request+"503"+own+"delivery_id=msg_3 labhealth.webhook.duplicate=false labhealth.webhook.event_type=other labhealth.webhook.reason=failed url.scheme=http Error \"failed\"",
			"work (internal) ",
			post+"error.type=panicked "+request+"503"+own+"delivery_id=msg_4 labhealth.webhook.duplicate=false labhealth.webhook.event_type=other labhealth.webhook.reason=panicked url.scheme=http Error \"panicked\"",
			"  exception exception.stacktrace=* exception.type=string",
			"work (internal) ",
			post+"error.type=deadline "+request+"503"+own+"delivery_id=msg_5 labhealth.webhook.duplicate=false labhealth.webhook.event_type=other labhealth.webhook.reason=deadline url.scheme=http Error \"deadline\"",
			"GET /hooks/{secret} (server) http.request.method=GET http.response.status_code=405"+own+"duplicate=false labhealth.webhook.reason=method url.scheme=http",
			"HTTP /hooks/{secret} (server) http.request.method=_OTHER http.response.status_code=405"+own+"duplicate=false labhealth.webhook.reason=method url.scheme=http")

		const durations, counts = "http.server.request.duration [s] ", "labhealth.webhook.deliveries [{delivery}] "
		const late = "labhealth.webhook.late="
		const kind = " labhealth.webhook.event_type="
		const reason = " labhealth.webhook.reason="
		const once, again = "labhealth.webhook.duplicate=false", "labhealth.webhook.duplicate=true "
		compare(t, "metrics", r.metrics(t),
			durations+"error.type=deadline "+request+"503 http.route=/hooks/{secret} url.scheme=http: 1",
			durations+"error.type=failed "+request+"503 http.route=/hooks/{secret} url.scheme=http: 1",
			durations+"error.type=panicked "+request+"503 http.route=/hooks/{secret} url.scheme=http: 1",
			durations+"http.request.method=GET http.response.status_code=405 http.route=/hooks/{secret} url.scheme=http: 1",
			durations+request+"204 http.route=/hooks/{secret} url.scheme=http: 3",
			durations+"http.request.method=_OTHER http.response.status_code=405 http.route=/hooks/{secret} url.scheme=http: 1",
			counts+once+kind+order+" "+late+"false"+reason+"applied: 1",
			counts+once+kind+"other "+late+"false"+reason+"applied: 1",
			counts+once+kind+"other "+late+"false"+reason+"deadline: 1",
			counts+once+kind+"other "+late+"false"+reason+"failed: 1",
			counts+once+kind+"other "+late+"false"+reason+"panicked: 1",
			counts+once+kind+"other "+late+"true"+reason+"applied: 1",
			counts+once+" "+late+"false"+reason+"method: 2",
			counts+again+late+"false"+reason+"duplicate: 1")
	})
}

// The trace in the headers of a delivery is continued only on request, and never in place of the
// span of a middleware.
func TestHandlerParent(t *testing.T) {
	const sent = "0af7651916cd43dd8448eb211c80319c"
	for _, test := range []struct {
		name       string
		options    []labhealthotel.Option
		middleware bool
		want       string // the trace ID; "middleware" for that of the middleware
	}{
		{"default", nil, false, "new"},
		{"opted in", []labhealthotel.Option{labhealthotel.WithPropagator(propagation.TraceContext{})}, false, sent},
		{"middleware", []labhealthotel.Option{labhealthotel.WithPropagator(propagation.TraceContext{})}, true, "middleware"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newTelemetry()
			apply := func(context.Context, *webhooks.Event) error { return nil }
			// The option twice, as a program may have it by mistake, ends all spans.
			h, err := webhooks.NewHandler(webhooks.Unsigned, apply, labhealthotel.Handler(r.options(test.options...)...),
				labhealthotel.Handler(r.options(test.options...)...))
			if err != nil {
				t.Fatal(err)
			}
			outer := ""
			handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if test.middleware {
					ctx, span := r.tracer.Tracer("middleware").Start(q.Context(), "middleware")
					defer span.End()
					outer, q = span.SpanContext().TraceID().String(), q.WithContext(ctx)
				}
				h.ServeHTTP(w, q)
			})
			post(handler, "POST", "msg_1", event("x.y"), "Traceparent", "00-"+sent+"-b7ad6b7169203331-01")
			got := r.spans.Ended()[0].SpanContext().TraceID().String()
			switch test.want {
			case "new":
				if got == sent {
					t.Error("the trace of the sender was continued")
				}
			case "middleware":
				if got != outer {
					t.Errorf("trace %s, want %s", got, outer)
				}
			default:
				if got != test.want {
					t.Errorf("trace %s, want %s", got, test.want)
				}
			}
			r.ended(t)
		})
	}
}

// broken is a database whose errors quote the data.
type broken struct{}

func (broken) Connect(context.Context) (driver.Conn, error) { return nil, sqlState("Canaryna") }
func (broken) Driver() driver.Driver                        { return nil }

type sqlState string

func (s sqlState) Error() string  { return string(s) }
func (sqlState) SQLState() string { return "53100" }

func TestWorker(t *testing.T) {
	r := newTelemetry()
	observe := labhealthotel.Worker(r.options()...)
	ctx := observe.Start(t.Context())
	_, child := r.tracer.Tracer("application").Start(ctx, "apply")
	child.End()
	if got := r.spans.Ended()[0].Parent().SpanID(); got != trace.SpanContextFromContext(ctx).SpanID() {
		t.Error("the span of Apply is not a child of the step's")
	}
	observe.End(ctx, sqlstore.Step{Applied: 3, Delayed: 2, Dead: 1, Changes: webhooks.Changes{Added: 7, Same: 1, Keyless: 2}}, nil)
	observe.End(observe.Start(t.Context()), sqlstore.Step{}, errors.New("Canaryna"))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	observe.End(observe.Start(canceled), sqlstore.Step{}, context.Canceled)
	observe.End(observe.Start(t.Context()), sqlstore.Step{}, context.DeadlineExceeded)

	db := sql.OpenDB(broken{})
	defer db.Close()
	store, err := sqlstore.Open(db, sqlstore.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	worker := sqlstore.Worker{Store: store, Observe: observe}
	if _, err := worker.Step(t.Context()); err == nil {
		t.Error("no error")
	}
	const step = "labhealth.worker.step (internal) "
	const nothing = "labhealth.worker.applied=0 labhealth.worker.dead=0 labhealth.worker.delayed=0 "
	compare(t, "spans", r.ended(t),
		"apply (internal) ",
		step+"labhealth.worker.applied=3 labhealth.worker.dead=1 labhealth.worker.delayed=2",
		step+"error.type=_OTHER "+nothing+`Error ""`,
		step+"error.type=canceled "+nothing+`Error ""`,
		step+"error.type=deadline "+nothing+`Error ""`,
		step+"error.type=53100 "+nothing+`Error "sqlstore: step: the database failed (SQLSTATE 53100)"`)
	compare(t, "metrics", r.metrics(t),
		"labhealth.worker.changes [{change}] labhealth.worker.change=added: 7",
		"labhealth.worker.changes [{change}] labhealth.worker.change=keyless: 2",
		"labhealth.worker.changes [{change}] labhealth.worker.change=same: 1",
		"labhealth.worker.deliveries [{delivery}] labhealth.worker.result=applied: 3",
		"labhealth.worker.deliveries [{delivery}] labhealth.worker.result=dead: 1",
		"labhealth.worker.deliveries [{delivery}] labhealth.worker.result=delayed: 2",
		"labhealth.worker.step.duration [s] : 1",
		"labhealth.worker.step.duration [s] error.type=53100: 1",
		"labhealth.worker.step.duration [s] error.type=_OTHER: 1",
		"labhealth.worker.step.duration [s] error.type=canceled: 1",
		"labhealth.worker.step.duration [s] error.type=deadline: 1")
}

func TestReactor(t *testing.T) {
	r := newTelemetry()
	o := labhealthotel.Reactor(r.options()...)
	of := sqlstore.Reaction{Kind: sqlstore.ReactSummary, Attempt: 2}
	o.End(o.Start(t.Context(), of), of, sqlstore.ReactionDone, nil)
	o.End(o.Start(t.Context(), of), of, sqlstore.ReactionDelayed, errors.New("Canaryna"))
	o.Fail(t.Context(), context.DeadlineExceeded)
	const call = "labhealth.reactor.call (internal) labhealth.reaction.attempt=2 labhealth.reaction.id=00000000-0000-0000-0000-000000000000 " +
		"labhealth.reaction.kind=summary labhealth.reaction.result="
	compare(t, "spans", r.ended(t), call+"done", call+`delayed Error ""`)
	const metric = "labhealth.reactor.call.duration [s] labhealth.reaction.kind=summary labhealth.reaction.result="
	compare(t, "metrics", r.metrics(t), metric+"delayed: 1", metric+"done: 1", "labhealth.reactor.errors [{error}] error.type=deadline: 1")
}
