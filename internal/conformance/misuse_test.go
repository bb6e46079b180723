package conformance

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/management"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// misusedFunctions are all exported functions, except for those that are listed in
// TestMisuseIsComplete.
var misusedFunctions = map[string]any{
	"bulk.CSV": bulk.CSV, "bulk.CSVColumns": bulk.CSVColumns, "bulk.JSONLines": bulk.JSONLines, "bulk.NewUsers": bulk.NewUsers, "bulk.OpenFile": bulk.OpenFile, "bulk.Run": bulk.Run,

	"labhealth.DateOf": labhealth.DateOf, "labhealth.FailureOf": labhealth.FailureOf, "labhealth.NewClient": labhealth.NewClient,
	"labhealth.Internals": labhealth.Internals, "labhealth.NewJPEG": labhealth.NewJPEG, "labhealth.NewPNG": labhealth.NewPNG,
	"labhealth.Null": labhealth.Null[string], "labhealth.Operation": labhealth.Operation, "labhealth.OutcomeOf": labhealth.OutcomeOf,
	"labhealth.ParseDate": labhealth.ParseDate, "labhealth.ParseEnvironment": labhealth.ParseEnvironment, "labhealth.Value": labhealth.Value[string], "labhealth.WithBaseURL": labhealth.WithBaseURL,
	"labhealth.WithBodyLimit": labhealth.WithBodyLimit, "labhealth.WithCallObserver": labhealth.WithCallObserver, "labhealth.WithCallRetry": labhealth.WithCallRetry,
	"labhealth.WithCredentials": labhealth.WithCredentials, "labhealth.WithDebug": labhealth.WithDebug, "labhealth.WithDefaultHeader": labhealth.WithDefaultHeader,
	"labhealth.WithRateLimit": labhealth.WithRateLimit, "labhealth.WithEnvironment": labhealth.WithEnvironment, "labhealth.WithHTTPClient": labhealth.WithHTTPClient, "labhealth.WithHeader": labhealth.WithHeader,
	"labhealth.WithIdempotencyKey": labhealth.WithIdempotencyKey, "labhealth.WithLogger": labhealth.WithLogger,
	"labhealth.WithPath": labhealth.WithPath, "labhealth.WithInsecureHTTP": labhealth.WithInsecureHTTP, "labhealth.WithQuery": labhealth.WithQuery, "labhealth.WithResponse": labhealth.WithResponse,
	"labhealth.WithRetry": labhealth.WithRetry, "labhealth.WithUserAgent": labhealth.WithUserAgent, "labhealth.WithoutValidation": labhealth.WithoutValidation,

	"labhealthtest.Operations": labhealthtest.Operations, "labhealthtest.WithMiddleware": labhealthtest.WithMiddleware,
	"labhealthtest.WithResponseLog": labhealthtest.WithResponseLog,
	"labhealthtest.FaultResponse":   labhealthtest.FaultResponse, "labhealthtest.FromSource": labhealthtest.FromSource, "labhealthtest.StartingAt": labhealthtest.StartingAt,
	"labhealthtest.Undelivered": labhealthtest.Undelivered, "labhealthtest.WithClock": labhealthtest.WithClock, "labhealthtest.WithDeliveryLog": labhealthtest.WithDeliveryLog, "labhealthtest.WithListener": labhealthtest.WithListener,
	"labhealthtest.WithNetworkConditions": labhealthtest.WithNetworkConditions, "labhealthtest.WithRetries": labhealthtest.WithRetries,
	"labhealthtest.WithSamplesPerPage": labhealthtest.WithSamplesPerPage, "labhealthtest.WithSeed": labhealthtest.WithSeed,
	"labhealthtest.WithSigningSecrets": labhealthtest.WithSigningSecrets, "labhealthtest.WithSourceShape": labhealthtest.WithSourceShape,
	"labhealthtest.WithTransport": labhealthtest.WithTransport,

	"management.NewClient": management.NewClient,

	"sqlstore.NewReceiver": sqlstore.NewReceiver, "sqlstore.Open": sqlstore.Open, "sqlstore.Schema": sqlstore.Schema,
	"sqlstore.Slot": sqlstore.Slot,

	"webhooks.DecodeSummary": webhooks.DecodeSummary, "webhooks.DeliveryID": webhooks.DeliveryID, "webhooks.DeliveryIDFrom": webhooks.DeliveryIDFrom, "webhooks.EventOfOrder": webhooks.EventOfOrder,
	"webhooks.EventTypes": webhooks.EventTypes, "webhooks.NewHandler": webhooks.NewHandler, "webhooks.NewRawHandler": webhooks.NewRawHandler,
	"webhooks.NewVerifier": webhooks.NewVerifier, "webhooks.Parse": webhooks.Parse, "webhooks.ParseEnvelope": webhooks.ParseEnvelope,
	"webhooks.ReadAll": webhooks.ReadAll, "webhooks.ReadOrders": webhooks.ReadOrders, "webhooks.ReadSamples": webhooks.ReadSamples, "webhooks.ReadSummaries": webhooks.ReadSummaries,
	"webhooks.WithBodyLimit": webhooks.WithBodyLimit, "webhooks.WithClock": webhooks.WithClock, "webhooks.WithDeadLetter": webhooks.WithDeadLetter,
	"webhooks.WithDeadline": webhooks.WithDeadline, "webhooks.WithDeliveryContext": webhooks.WithDeliveryContext,
	"webhooks.WithDeduplicator": webhooks.WithDeduplicator, "webhooks.WithDuplicateWindow": webhooks.WithDuplicateWindow,
	"webhooks.WithInFlightLimit": webhooks.WithInFlightLimit, "webhooks.WithLogger": webhooks.WithLogger, "webhooks.WithObserver": webhooks.WithObserver,
	"webhooks.WithWarnings": webhooks.WithWarnings,
}

// misusedTypes have a zero value of every type with methods that have a pointer receiver, except
// for the services of the clients and for types that only unmarshal themselves.
var misusedTypes = map[string]any{
	"bulk.File": bulk.File{}, "bulk.Memory": bulk.Memory{}, "bulk.RecordError": bulk.RecordError{}, "bulk.Report": bulk.Report{},
	"bulk.UnknownColumnsError": bulk.UnknownColumnsError{}, "bulk.Users": bulk.Users{},
	"labhealth.APIError": labhealth.APIError{}, "labhealth.Client": labhealth.Client{}, "labhealth.DecodeError": labhealth.DecodeError{},
	"labhealth.Order": labhealth.Order{}, "labhealth.OrderResults": labhealth.OrderResults{},
	"labhealth.RedirectError": labhealth.RedirectError{}, "labhealth.Result": labhealth.Result{}, "labhealth.TeamConflictError": labhealth.TeamConflictError{},
	"labhealth.TransportError": labhealth.TransportError{}, "labhealth.UserConflictError": labhealth.UserConflictError{},
	"labhealth.UserRefreshError": labhealth.UserRefreshError{}, "labhealth.ValidationError": labhealth.ValidationError{},
	"management.Client": management.Client{},
	"webhooks.Event":    webhooks.Event{}, "webhooks.Handler": webhooks.Handler{}, "webhooks.Latest": webhooks.Latest{}, "webhooks.ParseError": webhooks.ParseError{},
	"webhooks.ProviderConnection": webhooks.ProviderConnection{}, "webhooks.Summary": webhooks.Summary{}, "webhooks.Unknown": webhooks.Unknown{},
	"webhooks.Verifier": webhooks.Verifier{},
	"sqlstore.Error":    sqlstore.Error{}, "sqlstore.Store": sqlstore.Store{}, "sqlstore.Worker": sqlstore.Worker{},
	"sqlstore.Reconciler": sqlstore.Reconciler{}, "sqlstore.Reactor": sqlstore.Reactor{}, "sqlstore.Receiver": sqlstore.Receiver{},
}

// faultFunctions are called by the embedded service, with the request that they disturb.
var faultFunctions = regexp.MustCompile(`^labhealthtest\.Fault[A-Z]`)

// Every exported function and method with a pointer receiver is part of TestMisuse.
func TestMisuseIsComplete(t *testing.T) {
	exported, err := os.ReadFile("../../api/exported.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(exported)) {
		if m := regexp.MustCompile(`^(\w+): func (\w+)`).FindStringSubmatch(line); m != nil {
			name := m[1] + "." + m[2]
			if misusedFunctions[name] == nil && !faultFunctions.MatchString(name) && name != "labhealthtest.NewServer" && name != "labhealthtest.Start" {
				t.Errorf("%s is missing", name)
			}
		}
		if m := regexp.MustCompile(`^(\w+): method \(\*(\w+)\) (\w+)`).FindStringSubmatch(line); m != nil {
			name := m[1] + "." + m[2]
			if misusedTypes[name] == nil && !strings.HasPrefix(m[3], "Unmarshal") && name != "labhealthtest.Server" && !strings.HasSuffix(name, "Service") {
				t.Errorf("%s is missing", name)
			}
		}
	}
}

// needNothing are the functions and methods that return no error for zero arguments, or for a
// receiver that is nil or zero, because these are valid.
var needNothing = regexp.MustCompile(`MarshalJSON$| (Unwrap|Cause)$|^webhooks.Event zero (Err|Keys)$|^bulk.Memory zero|^webhooks.Summary zero Fields$|` +
	`^bulk.File (nil|zero) Close$|^webhooks.Verifier unsigned`)

// dataTypes hold received data. Nil is no data, and a method that called a nil result normal would
// be worse than a panic.
var dataTypes = map[string]bool{
	"labhealth.Order": true, "labhealth.OrderResults": true, "labhealth.Result": true, "webhooks.ProviderConnection": true,
	"webhooks.Latest": true, "webhooks.Summary": true, "webhooks.Unknown": true,
}

// noContext is nil. It has a name, because linters report a nil that is passed as a context.
var noContext context.Context

// Nil and zero arguments and receivers never cause a panic, and cause an error where there can be
// one.
func TestMisuse(t *testing.T) {
	for name, f := range misusedFunctions {
		misuse{t, name, reflect.ValueOf(f)}.call(noContext)
	}
	for name, zero := range misusedTypes {
		typ := reflect.TypeOf(zero)
		if !dataTypes[name] {
			misuseMethods(noContext, t, name+" nil", reflect.Zero(reflect.PointerTo(typ)))
		}
		misuseMethods(noContext, t, name+" zero", reflect.New(typ))
		misuseMethods(t.Context(), t, name+" zero", reflect.New(typ))
	}
	for service := range services(labhealth.Client{}, management.Client{}) {
		name := service.Type().String()
		for _, text := range slices.Concat(
			misuseMethods(t.Context(), t, name+" nil", service), misuseMethods(t.Context(), t, name+" zero", reflect.New(service.Type().Elem())),
		) {
			if !strings.Contains(text, "client is nil or its zero value: create it with NewClient") && !otherArguments.MatchString(text) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// otherArguments matches the errors of methods that check other arguments first.
var otherArguments = regexp.MustCompile(`not sent: (kind must be|w must not be nil|body\.activate_by must be set|environment must be)`)

// services returns the services of clients.
func services(clients ...any) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for _, client := range clients {
			v := reflect.ValueOf(client)
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() && !yield(v.Field(i)) {
					return
				}
			}
		}
	}
}

// Every method of a client that can be used names a context that is nil, before anything is sent.
func TestNilContext(t *testing.T) {
	transport := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("a request without a context is sent")
		return nil, io.EOF
	})}
	client, err := labhealth.NewClient("key", labhealth.WithBaseURL("https://api.example.com"), labhealth.WithHTTPClient(transport))
	if err != nil {
		t.Fatal(err)
	}
	admin, err := management.NewClient(orderID, "key", labhealth.WithBaseURL("https://api.example.com"), labhealth.WithHTTPClient(transport))
	if err != nil {
		t.Fatal(err)
	}
	const want = "ctx must not be nil: use context.Background() if there is no other"
	check := func(name string, err error) {
		if err == nil || !strings.Contains(err.Error(), want) || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent {
			t.Errorf("%s: %v", name, err)
		}
	}
	for service := range services(*client, *admin) {
		for _, text := range misuseMethods(noContext, t, service.Type().String(), service) {
			if !strings.Contains(text, want) && !otherArguments.MatchString(text) {
				t.Errorf("%s: %s", service.Type(), text)
			}
		}
	}
	check("Do", client.Do(noContext, "GET", "/v2/providers", nil, nil))
	check("Do", admin.Do(noContext, "GET", "/v1/org", nil, nil))
	_, err = client.Orders.RequisitionPDF(noContext, orderID, io.Discard)
	check("RequisitionPDF", err)
	_, err = client.Appointments.Get(noContext, labhealth.AppointmentWalkIn, orderID)
	check("Appointments.Get", err)
	for _, err := range webhooks.ReadAll(noContext, client, orderID, webhooks.ReadAllParams{StartDate: time.Unix(0, 0)}) {
		check("ReadAll", err)
	}
	for _, err := range webhooks.ReadSamples(noContext, client, orderID, "steps", labhealth.ListSamplesParams{}) {
		check("ReadSamples", err)
	}
	for _, err := range webhooks.ReadSummaries(noContext, client, orderID, labhealth.SummaryProfile, labhealth.ListSummariesParams{}) {
		check("ReadSummaries", err)
	}
}

// Misuse of values that are valid otherwise.
func TestMisuseOfOthers(t *testing.T) {
	client, err := labhealth.NewClient("key", labhealth.WithBaseURL("https://api.example.com"), nil)
	if err != nil {
		t.Fatal(err)
	}
	source := bulk.JSONLines(strings.NewReader(""))
	noop := func(context.Context, *webhooks.Event) error { return nil }
	handler, err := webhooks.NewHandler(webhooks.Unsigned, noop, nil)
	if err != nil {
		t.Fatal(err)
	}
	runError := func(_ *bulk.Report, err error) error { return err }
	srv := labhealthtest.NewServer(t)
	const needs = "bulk: Run needs a context, a client of labhealth.NewClient, a source and a journal"
	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"Run, context", needs, runError(bulk.Run(noContext, client, source, new(bulk.Memory), bulk.Options{}))},
		{"Run, client", needs, runError(bulk.Run(t.Context(), nil, source, new(bulk.Memory), bulk.Options{}))},
		{"Run, zero client", needs, runError(bulk.Run(t.Context(), new(labhealth.Client), source, new(bulk.Memory), bulk.Options{}))},
		{"Run, source", needs, runError(bulk.Run(t.Context(), client, nil, new(bulk.Memory), bulk.Options{}))},
		{"Run, journal", needs, runError(bulk.Run(t.Context(), client, source, nil, bulk.Options{}))},
		{"Run, nil file", "bulk: the journal is a File that is nil or its zero value: create it with OpenFile",
			runError(bulk.Run(t.Context(), client, source, (*bulk.File)(nil), bulk.Options{}))},
		{"Run, nil reader", "bulk: the source cannot be read: bulk: the source needs a reader that is not nil",
			runError(bulk.Run(t.Context(), client, bulk.CSV(nil, bulk.CSVOptions{}), new(bulk.Memory), bulk.Options{}))},
		{"Run, nil pointer as reader", "bulk: the source cannot be read: bulk: the source needs a reader that is not nil",
			runError(bulk.Run(t.Context(), client, bulk.JSONLines((*strings.Reader)(nil)), new(bulk.Memory), bulk.Options{}))},
		{"Shutdown", "webhooks: ctx must not be nil: use context.Background() if there is no other", handler.Shutdown(noContext)},
		{"zero handler", "webhooks: the Handler is nil or its zero value: create it with NewHandler or NewRawHandler", new(webhooks.Handler).Shutdown(t.Context())},
		{"nil Latest", "webhooks: Apply needs a Latest that is not nil", second((*webhooks.Latest)(nil).Apply(webhooks.Delivery{Event: &webhooks.Event{}}))},
		{"nil event", "webhooks: the delivery has no event", (*webhooks.Event)(nil).Err()},
		{"zero store", "sqlstore: the Store is nil or its zero value: create it with Open", new(sqlstore.Store).Migrate(t.Context())},
		{"nil file as writer", "labhealth: GET /v3/order/{order_id}/requisition/pdf: not sent: w must not be nil",
			second(client.Orders.RequisitionPDF(t.Context(), orderID, (*os.File)(nil)))},
		{"nil client", "labhealth: GET (Do): not sent: client is nil or its zero value: create it with NewClient",
			(*labhealth.Client)(nil).Do(t.Context(), "GET", "/v2/providers", nil, nil)},
		{"Elapse", "labhealthtest: ctx must not be nil: use context.Background() if there is no other", srv.Elapse(noContext, func(time.Time) {})},
		{"Flush", "labhealthtest: ctx must not be nil: use context.Background() if there is no other", srv.Flush(noContext)},
	} {
		equal(t, test.name+": "+test.want, test.name+": "+errorText(test.err))
	}
	recorder := httptest.NewRecorder()
	new(webhooks.Handler).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", nil))
	equal(t, http.StatusInternalServerError, recorder.Code)
	equal(t, "the run could not start", (*bulk.Report)(nil).String())
	(*labhealth.Client)(nil).CloseIdleConnections()
	new(management.Client).CloseIdleConnections()

	started, err := labhealthtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	misuseMethods(noContext, t, "labhealthtest.Server", reflect.ValueOf(started))
}

func second[T any](_ T, err error) error { return err }

// misuseMethods calls every method of a receiver, and returns the texts of the errors.
func misuseMethods(ctx context.Context, t *testing.T, name string, receiver reflect.Value) (texts []string) {
	for i := range receiver.NumMethod() {
		method := receiver.Type().Method(i).Name
		if _, byValue := receiver.Type().Elem().MethodByName(method); byValue && receiver.IsNil() {
			continue // Go panics before it calls the method
		}
		if text := (misuse{t, name + " " + method, receiver.Method(i)}).call(ctx); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// misuse is a call of a function.
type misuse struct {
	t    *testing.T
	name string
	f    reflect.Value
}

// call calls the function with ctx and otherwise zero arguments, and returns the text of its error.
func (m misuse) call(ctx context.Context) (text string) {
	defer func() {
		if p := recover(); p != nil {
			m.t.Errorf("%s panics: %v", m.name, p)
		}
	}()
	var args []reflect.Value
	typ := m.f.Type()
	for i := range typ.NumIn() {
		switch in := typ.In(i); {
		case typ.IsVariadic() && i == typ.NumIn()-1:
			args = append(args, reflect.Zero(in.Elem()))
		case in == reflect.TypeFor[context.Context]() && ctx != nil:
			args = append(args, reflect.ValueOf(ctx))
		case in == reflect.TypeFor[fmt.State]():
			return "" // only package fmt calls it
		case in == reflect.TypeFor[http.ResponseWriter]():
			args = append(args, reflect.ValueOf(httptest.NewRecorder()))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	for _, out := range m.f.Call(args) {
		if typ := out.Type(); typ.Kind() == reflect.Func && typ.CanSeq2() && typ.In(0).In(1) == reflect.TypeFor[error]() {
			out = lastOf(out)
		}
		if out.Type() != reflect.TypeFor[error]() {
			continue
		}
		switch err, _ := out.Interface().(error); {
		case err != nil:
			text = err.Error()
		case !needNothing.MatchString(m.name) && !strings.HasPrefix(m.name, "labhealthtest.Server"):
			m.t.Errorf("%s returns no error", m.name)
		}
	}
	return text
}

// lastOf returns the error with which an iterator ends.
func lastOf(iterator reflect.Value) reflect.Value {
	var last error
	for _, second := range iterator.Seq2() {
		last, _ = second.Interface().(error)
	}
	return reflect.ValueOf(&last).Elem()
}
