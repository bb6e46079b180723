package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

const (
	managementURL = "https://manage.example.com"
	managementKey = "mk_test_0123456789"
	hidden        = "hunter2"
)

var (
	testOrg    = uuid.MustParse("6f1c9b1e-3d7a-4a55-9c0e-5b8f2d4e7a10")
	testTeam   = uuid.MustParse("c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40")
	secondTeam = uuid.MustParse("d3b8f6e5-1c20-4d4f-9e7b-0f8a2c3d4e51")
	testKeyID  = uuid.MustParse("e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62")
)

// managing returns a management client with a script.
func managing(t testing.TB, replies []reply, opts ...labhealth.Option) (*management.Client, *script) {
	t.Helper()
	s := &script{replies: replies}
	client, err := management.NewClient(testOrg, managementKey, append([]labhealth.Option{
		labhealth.WithBaseURL(managementURL),
		labhealth.WithHTTPClient(&http.Client{Transport: s}),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

func TestNewManagementClientErrors(t *testing.T) {
	base := labhealth.WithBaseURL(managementURL)
	for _, test := range []struct {
		name string
		org  uuid.UUID
		key  string
		opts []labhealth.Option
		want string
	}{
		{"nil organisation", uuid.Nil, managementKey, []labhealth.Option{base}, "labhealth: the organisation ID must not be the nil UUID"},
		{"empty key", testOrg, "", []labhealth.Option{base}, "labhealth: the API key is empty: is its environment variable set?"},
		{"no address", testOrg, managementKey, nil,
			`labhealth: no base URL: pass WithEnvironment(labhealth.SandboxUS, "https://…") or WithBaseURL`},
		{"http", testOrg, managementKey, []labhealth.Option{labhealth.WithBaseURL("http://manage.example.com")}, httpsOnly},
		{"nil observer", testOrg, managementKey, []labhealth.Option{base, labhealth.WithCallObserver(labhealth.CallObserver{})}, "labhealth: WithCallObserver needs Start, Attempt or End"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, err := management.NewClient(test.org, test.key, test.opts...)
			if client != nil || errorText(err) != test.want {
				t.Errorf("error %q\n want %q", errorText(err), test.want)
			}
		})
	}
}

// Each client has its own operations only.
func TestManagementWithPath(t *testing.T) {
	base := labhealth.WithBaseURL(managementURL)
	_, err := management.NewClient(testOrg, managementKey, base, labhealth.WithPath("GET /orders", "/v3/orders"))
	if want := `labhealth: WithPath: "GET /orders" is an operation of the other API`; errorText(err) != want {
		t.Errorf("error %q", errorText(err))
	}
	_, err = labhealth.NewClient(testKey, base, labhealth.WithPath("GET /v1/org/{org_id}", "/v2/org/{org_id}"))
	if want := `labhealth: WithPath: "GET /v1/org/{org_id}" is an operation of the other API`; errorText(err) != want {
		t.Errorf("error %q", errorText(err))
	}
	_, err = management.NewClient(testOrg, managementKey, base, labhealth.WithPath("GET /v1/org/{org_id}/teams", "/v2/org/{org_id}/teams"))
	if want := `labhealth: WithPath: unknown operation "GET /v1/org/{org_id}/teams": did you mean "GET /v1/org/{org_id}/team"?`; errorText(err) != want {
		t.Errorf("error %q", errorText(err))
	}
	const op = "POST /v1/org/{org_id}/team/{team_id}/create_api_access_token"
	client, s := managing(t, []reply{{status: 404, body: `{}`}}, labhealth.WithPath(op, "/v1/org/{org_id}/team/{team_id}/create_access_token"))
	_, err = client.Teams.CreateAccessToken(t.Context(), testTeam, labhealth.TeamEnvironmentSandbox)
	equal(t, "labhealth: "+op+": 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment)", errorText(err))
	equal(t, managementURL+"/v1/org/6f1c9b1e-3d7a-4a55-9c0e-5b8f2d4e7a10/team/c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40/create_access_token", s.only(t).URL)
}

func TestManagementClientShowsNoKey(t *testing.T) {
	client, _ := managing(t, nil)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{client, *client, client.Teams, *client.Webhooks} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, managementKey) || strings.Contains(text, fmt.Sprintf("%x", managementKey)) {
				t.Errorf("%s of %T shows the key", verb, v)
			}
		}
	}
}

// arguments are the arguments of methods, by type. Other structs are zero.
var arguments = []any{
	testTeam, labhealth.TeamEnvironmentSandbox, labhealth.RegionUS, labhealth.Secret("whsec_"), []uuid.UUID{testKeyID},
	labhealth.ProviderOura, []labhealth.Provider{labhealth.ProviderOura},
	map[string]labhealth.Secret{"X-Test": "1"}, "text", int64(27),
	labhealth.Date{Year: 2999, Month: time.March, Day: 4},
	labhealth.UpdateOrderBody{ActivateBy: labhealth.Null[labhealth.Date]()},
	json.RawMessage(`[]`),
	labhealth.AppointmentWalkIn,
}

// forEachMethod calls f for each method of a client and its services that sends requests.
func forEachMethod(t *testing.T, client any, f func(name string, call func(client any, opts ...labhealth.CallOption))) {
	t.Helper()
	if _, ok := client.(interface {
		Do(context.Context, string, string, any, any, ...labhealth.CallOption) error
	}); !ok {
		t.Fatalf("%T has no Do", client)
	}
	f("Do", func(client any, opts ...labhealth.CallOption) {
		client.(interface {
			Do(context.Context, string, string, any, any, ...labhealth.CallOption) error
		}).Do(t.Context(), "GET", "/v1/anything", nil, nil, opts...)
	})
	typ := reflect.TypeOf(client).Elem()
	for i := range typ.NumField() {
		service := typ.Field(i)
		if !service.IsExported() || !strings.HasSuffix(service.Type.String(), "Service") {
			continue
		}
		for j := range service.Type.NumMethod() {
			method := service.Type.Method(j)
			f(service.Name+"."+method.Name, func(client any, opts ...labhealth.CallOption) {
				var in []reflect.Value
				for k := 1; k < method.Type.NumIn()-1; k++ { // without the receiver and the options
					in = append(in, argument(t, method.Name, method.Type.In(k)))
				}
				for _, o := range opts {
					in = append(in, reflect.ValueOf(o))
				}
				out := reflect.ValueOf(client).Elem().Field(i).Method(j).Call(in)
				if source, ok := out[0].Interface().(credentialSource); ok {
					source(t.Context())
				} else if out[0].Kind() == reflect.Func {
					for range out[0].Seq2() {
					}
				}
			})
		}
	}
}

func argument(t *testing.T, method string, typ reflect.Type) reflect.Value {
	switch {
	case typ == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(t.Context())
	case typ == reflect.TypeFor[io.Writer]():
		return reflect.ValueOf(io.Discard)
	}
	for _, a := range arguments {
		if reflect.TypeOf(a) == typ {
			return reflect.ValueOf(a)
		}
	}
	switch typ.Kind() {
	case reflect.Struct, reflect.Slice:
		return reflect.Zero(typ)
	case reflect.String: // an open enumeration
		return reflect.ValueOf("text").Convert(typ)
	}
	t.Fatalf("%s: nothing to call it with for %s", method, typ)
	return reflect.Value{}
}

// recorder is a server that records headers.
type recorder struct {
	*httptest.Server
	mu      sync.Mutex
	came    []http.Header
	respond func(w http.ResponseWriter, r *http.Request, n int)
}

func newRecorder(t *testing.T) *recorder {
	rec := &recorder{}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rec.mu.Lock()
		defer rec.mu.Unlock()
		h := r.Header.Clone()
		h.Set("The-Rest", r.Method+" "+r.RequestURI+" "+string(body)) // where a key might be too
		rec.came = append(rec.came, h)
		if rec.respond == nil {
			t.Errorf("a request to the wrong server")
			return
		}
		rec.respond(w, r, len(rec.came))
	}))
	t.Cleanup(rec.Close)
	return rec
}

// Whatever a client does, each of its requests has its own key in its own header and nothing of the
// other API, and no other host gets a request.
func TestKeysStayApart(t *testing.T) {
	home, other := newRecorder(t), newRecorder(t)
	base := labhealth.WithBaseURL(home.URL)
	once := labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	fast := labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1})
	plain := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{}`)
	}
	modes := []struct {
		name    string
		least   int // requests for a method at least
		respond func(w http.ResponseWriter, r *http.Request, n int)
	}{
		{"successful", 1, func(w http.ResponseWriter, _ *http.Request, _ int) { plain(w) }},
		{"retried", 2, func(w http.ResponseWriter, _ *http.Request, n int) {
			if n == 1 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			plain(w)
		}},
		{"redirected", 1, func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 1 {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				return
			}
			plain(w)
		}},
		{"sent to another host", 1, func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, other.URL+"/v1/org", http.StatusTemporaryRedirect)
		}},
		{"rejected", 1, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusUnauthorized) }},
	}
	for _, side := range []struct {
		name, header, key string
		foreign           []string
		make              func() (any, error)
	}{
		{"team", "X-Service-Api-Key", testKey, []string{"X-Management-Key", "X-Service-Org-Key", "Authorization"},
			func() (any, error) { return labhealth.NewClient(testKey, base, once, fast) }},
		{"management", "X-Management-Key", managementKey, []string{"X-Service-Api-Key", "X-Service-Org-Key", "Authorization"},
			func() (any, error) { return management.NewClient(testOrg, managementKey, base, once, fast) }},
		{"team with a source of keys", "X-Service-Api-Key", testKey, []string{"X-Management-Key", "X-Service-Org-Key", "Authorization"},
			func() (any, error) {
				return labhealth.NewClient("", base, once, fast, labhealth.WithCredentials(returning(labhealth.Credentials{Key: testKey})))
			}},
		{"team with a source of tokens", "Authorization", "Bearer " + testKey, []string{"X-Service-Api-Key", "X-Management-Key", "X-Service-Org-Key"},
			func() (any, error) {
				return labhealth.NewClient("", base, once, fast, labhealth.WithCredentials(returning(labhealth.Credentials{Token: testKey})))
			}},
		{"management with a source", "X-Management-Key", managementKey, []string{"X-Service-Api-Key", "X-Service-Org-Key", "Authorization"},
			func() (any, error) {
				return management.NewClient(testOrg, "", base, once, fast, labhealth.WithCredentials(returning(labhealth.Credentials{Key: managementKey})))
			}},
	} {
		methods, requests := 0, 0
		forEachMethod(t, must[any](t)(side.make()), func(name string, call func(any, ...labhealth.CallOption)) {
			methods++
			for _, mode := range modes {
				t.Run(side.name+"/"+name+"/"+mode.name, func(t *testing.T) {
					home.mu.Lock()
					home.came, home.respond = nil, mode.respond
					home.mu.Unlock()
					call(must[any](t)(side.make()), labhealth.WithoutValidation()) // a new client has its retry budget
					if len(home.came) < mode.least {
						t.Errorf("%d requests, want at least %d", len(home.came), mode.least)
					}
					if strings.HasPrefix(home.came[0].Get("The-Rest"), "GET ") && mode.name == "redirected" && len(home.came) < 2 {
						t.Error("the redirect was not followed")
					}
					requests += len(home.came)
					for _, h := range home.came {
						if got := h[side.header]; !slices.Equal(got, []string{side.key}) {
							t.Errorf("%s is %q", side.header, got)
						}
						for _, foreign := range side.foreign {
							if _, ok := h[foreign]; ok {
								t.Errorf("%s was sent", foreign)
							}
						}
						h.Del(side.header)
						if text := fmt.Sprint(h); strings.Contains(text, testKey) || strings.Contains(text, managementKey) {
							t.Errorf("a key is somewhere else: %s", text)
						}
					}
					if len(other.came) > 0 {
						t.Error("another host got a request")
					}
				})
			}
		})
		t.Logf("%s: %d methods, %d requests", side.name, methods, requests)
	}
}

// The documentation of the client has every operation with a method that exists, and every method.
func TestManagementDocumentation(t *testing.T) {
	text := string(must[[]byte](t)(os.ReadFile("../../management/doc.go")))
	row := regexp.MustCompile(`(?m)^//\t([A-Z]+) +(/v1/org/\S+) +Client\.(.*)$`)
	documented := map[string]string{}
	ops := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		op := m[1] + " " + m[2]
		ops[op] = true
		service := ""
		for name := range strings.SplitSeq(m[3], ", ") {
			if before, after, ok := strings.Cut(name, "."); ok {
				service, name = before, after
			}
			documented[service+"."+name] = op
		}
	}
	client, _ := managing(t, nil)
	forEachMethod(t, client, func(name string, call func(any, ...labhealth.CallOption)) {
		if name == "Do" {
			return
		}
		var seen string
		observed, _ := managing(t, []reply{{status: 418}}, observing(func(_ context.Context, a labhealth.Attempt) { seen = a.Op }))
		call(observed, labhealth.WithoutValidation())
		if documented[name] != seen {
			t.Errorf("%s calls %q; the documentation has it at %q", name, seen, documented[name])
		}
		delete(documented, name)
	})
	for name := range documented {
		t.Errorf("%s is in the documentation and does not exist", name)
	}
	// The error of WithPath names all operations.
	_, err := management.NewClient(testOrg, managementKey, labhealth.WithBaseURL(managementURL), labhealth.WithPath("", ""))
	for _, quoted := range regexp.MustCompile(`"[A-Z]+ /[^"]*"`).FindAllString(errorText(err), -1) {
		if op := strings.Trim(quoted, `"`); !ops[op] {
			t.Errorf("%s is not in the package documentation", op)
		}
	}
	t.Logf("%d operations", len(ops))
}

func TestSecret(t *testing.T) {
	type outer struct {
		Plain  labhealth.Secret
		List   []labhealth.Secret
		ByName map[string]labhealth.Secret
	}
	s := labhealth.Secret(hidden)
	for _, v := range []any{s, &s, []labhealth.Secret{s}, map[string]labhealth.Secret{"a": s}, outer{s, []labhealth.Secret{s}, nil}, &outer{Plain: s, ByName: map[string]labhealth.Secret{"a": s}}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%z"} {
			text := fmt.Sprintf(verb, v)
			if strings.Contains(text, hidden) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", hidden)) {
				t.Errorf("%s of %T: %s", verb, v, text)
			}
		}
	}
	equal(t, "[redacted]", fmt.Sprint(s))
	equal(t, "[redacted] [redacted]", fmt.Sprintf("%#v %q", s, &s))
	equal(t, hidden, string(s))
	equal(t, `{"Plain":"hunter2","List":null,"ByName":null}`, mustEncode(t, outer{Plain: s}))
	for _, handler := range []func(io.Writer) slog.Handler{
		func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	} {
		var log bytes.Buffer
		slog.New(handler(&log)).Info("made", "key", s)
		if text := log.String(); strings.Contains(text, hidden) || !strings.Contains(text, "[redacted]") {
			t.Error(text)
		}
	}
}

// A value that holds a secret does not show it when printed or logged as an attribute.
func TestManagementRedaction(t *testing.T) {
	s := labhealth.Secret(hidden)
	hub := management.AzureAMQP{ConnectionString: s, EventHubMatchers: []management.EventHubMatcher{{BlobStorage: &management.BlobStorage{ConnectionString: s}}}}
	details := &management.CustomCredentialsDetails{WebhookSecret: s}
	queue := management.RabbitMQ{URI: s, Exchange: "events"}
	for _, v := range []any{
		management.Key{Key: s}, management.KeyPage{Data: []management.Key{{Key: s}}},
		management.TeamAPIKey{Value: s}, management.TeamAPIKeyPage{APIKeys: []management.TeamAPIKey{{Value: s}}},
		management.CreateWebhookBody{Secret: s}, management.WebhookHeaders{Headers: map[string]labhealth.Secret{"a": s}},
		management.WebhookSecret{Key: s}, management.AccessToken{AccessToken: s},
		management.UpsertTeamCustomCredentialsBody{ClientSecret: s, Details: details}, management.TeamCustomCredentials{Details: details},
		management.TeamCustomCredentialsPage{Credentials: []management.TeamCustomCredentials{{Details: details}}}, *details,
		management.FitbitCredentials{BodyVerifyToken: s}, management.GetLabsCredentials{WebhookSecretKey: s},
		management.PhlebFindersCredentials{WebhookToken: s}, management.KeyCreator{Email: new(hidden)},
		hub, hub.EventHubMatchers[0], *hub.EventHubMatchers[0].BlobStorage, queue,
		management.EventHubDestination{BlobStorage: hub.EventHubMatchers[0].BlobStorage},
		management.ETLPipeline{AzureAMQP: &hub}, management.ETLPipelinePage{Pipelines: []management.ETLPipeline{{RabbitMQ: &queue}}},
		management.UpsertETLPipelinesBody{AzureAMQP: &hub}, management.UpsertETLPipelinesBody{RabbitMQ: &queue},
	} {
		pointer := reflect.New(reflect.TypeOf(v))
		pointer.Elem().Set(reflect.ValueOf(v))
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("got", "value", v, "pointer", pointer.Interface())
		slog.New(slog.NewTextHandler(&log, nil)).Info("got", "value", v, "pointer", pointer.Interface())
		text := log.String()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			for _, w := range []any{v, pointer.Interface(), []any{v}, map[string]any{"a": v}, struct{ Exported any }{v}} {
				text += fmt.Sprintf(verb, w)
			}
		}
		for _, bad := range []string{hidden, fmt.Sprintf("%x", hidden), strings.Trim(fmt.Sprint([]byte(hidden)), "[]")} {
			if strings.Contains(text, bad) {
				t.Errorf("%T shows %q", v, bad)
			}
		}
		encoded := must[[]byte](t)(json.Marshal(v))
		if _, plain := v.(management.EventHubDestination); !plain && !strings.Contains(string(encoded), hidden) {
			t.Errorf("%T: JSON is not complete: %s", v, encoded)
		}
	}
	key := management.Key{ID: testKeyID, Key: s}
	equal(t, "management.Key{e4c9a7f6-2d31-4e5a-af8c-1a9b3d4e5f62, redacted}", fmt.Sprint(key))
}

// A part of a received value does not show a secret of the whole, although it keeps its raw bytes.
func TestManagementRedactionOfParts(t *testing.T) {
	var key management.Key
	text := strings.Replace(keyJSON, "mk_team_1", hidden, 1)
	if err := json.Unmarshal([]byte(text), &key); err != nil || key.Key != hidden {
		t.Fatal(err, string(key.Key))
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%z"} {
		for _, part := range []any{key.TeamRoleBindings, key.TeamRoleBindings[0], key.Creator, key.RawObject} {
			shown := fmt.Sprintf(verb, part)
			for _, bad := range []string{hidden, fmt.Sprintf("%x", hidden), strings.Trim(fmt.Sprint([]byte(hidden)), "[]")} {
				if strings.Contains(shown, bad) {
					t.Errorf("%s of %T shows the key", verb, part)
				}
			}
		}
	}
}

// Errors of the management API in all shapes that occur.
func TestManagementErrors(t *testing.T) {
	const op = "POST /v1/org/{org_id}/team"
	create := func(r reply) error {
		client, _ := managing(t, []reply{r})
		_, err := client.Teams.Create(t.Context(), management.CreateTeamBody{Name: "Clinic", Region: labhealth.RegionUS})
		return err
	}
	for _, test := range []struct {
		name  string
		reply reply
		want  string
		is    error
		out   labhealth.Outcome
	}{
		{"text", reply{status: 403, body: `{"detail":"no permission hunter2"}`}, "403 Forbidden: rejected (the team or the key has no access to this; APIError.Message has the service's text)", labhealth.ErrForbidden, labhealth.OutcomeRejected},
		{"object", reply{status: 400, body: `{"detail":{"error_type":"x","error_message":"hunter2"}}`}, "400 Bad Request: rejected (APIError.Message has the service's text)", nil, labhealth.OutcomeRejected},
		{"list", reply{status: 422, body: `{"detail":[{"type":"missing","loc":["body","region"],"msg":"Field required","input":"hunter2"}]}`},
			"422 Unprocessable Entity: rejected: body.region (missing)", labhealth.ErrValidation, labhealth.OutcomeRejected},
		{"flat", reply{status: 401, body: `{"error":"hunter2","message":"m","status_code":401}`}, "401 Unauthorized: rejected (the key is missing, invalid, expired, or of another region, environment or API; APIError.Message has the service's text)", labhealth.ErrUnauthorized, labhealth.OutcomeRejected},
		{"no JSON", reply{status: 500, body: "Internal Server Error", header: []string{"Content-Type", "text/plain"}}, "500 Internal Server Error: outcome unknown (the service failed; check whether it took effect before you repeat it)",
			labhealth.ErrServer, labhealth.OutcomeUnknown},
		{"nothing", reply{status: 404}, "404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment)", labhealth.ErrNotFound, labhealth.OutcomeRejected},
		{"conflict without a team", reply{status: 409, body: `{"detail":"taken"}`}, "409 Conflict: rejected (APIError.Message has the service's text)", labhealth.ErrConflict, labhealth.OutcomeRejected},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := create(test.reply)
			equal(t, "labhealth: "+op+": "+test.want, errorText(err))
			equal(t, test.out, labhealth.OutcomeOf(err))
			apiError(t, err)
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("is not %v", test.is)
			}
			if conflict := (*labhealth.TeamConflictError)(nil); errors.As(err, &conflict) {
				t.Error("is a TeamConflictError")
			}
		})
	}
	for _, body := range []string{
		`{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"}`,
		`{"detail":{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","x":"hunter2"}}`,
	} {
		client, _ := managing(t, []reply{{status: 409, body: body}})
		_, updated := client.Teams.Update(t.Context(), secondTeam, management.UpdateTeamBody{IntegrationTeamID: labhealth.Value("clinic-1")})
		for _, err := range []error{create(reply{status: 409, body: body}), updated} {
			var conflict *labhealth.TeamConflictError
			if !errors.As(err, &conflict) || !errors.Is(err, labhealth.ErrConflict) {
				t.Fatal(err)
			}
			equal(t, testTeam, conflict.TeamID)
			equal(t, body, string(apiError(t, err).Body()))
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
			if text := fmt.Sprintf("%v %#v %+v", err, err, *conflict); strings.Contains(text, hidden) || !strings.HasSuffix(text, "rejected (the integration team ID belongs to another team)") {
				t.Error(text)
			}
		}
	}
	// Other operations have no team conflicts.
	client, _ := managing(t, []reply{{status: 409, body: `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40"}`}})
	_, err := client.Organisation.Get(t.Context())
	if conflict := (*labhealth.TeamConflictError)(nil); errors.As(err, &conflict) {
		t.Error("a TeamConflictError of another operation")
	}
}

// Responses without their required field are errors.
func TestManagementUnreadable(t *testing.T) {
	us, sandbox := labhealth.RegionUS, labhealth.TeamEnvironmentSandbox
	for _, test := range []struct {
		method string
		args   []any
		want   string
	}{
		{"Organisation.Get", nil, "it has no readable organisation id"},
		{"Teams.Get", []any{testTeam, management.GetTeamParams{}}, "it has no readable team id"},
		{"Teams.Resolve", []any{"x"}, "it has no readable team id"},
		{"Teams.CreateAccessToken", []any{testTeam, sandbox}, "it has no readable access token"},
		{"Keys.Update", []any{testKeyID, management.UpdateKeyBody{}}, "it has no readable key id"},
		{"Webhooks.Get", []any{testTeam, sandbox, "ep_1"}, "it has no readable webhook id"},
		{"Webhooks.Secret", []any{testTeam, sandbox, "ep_1"}, "it has no readable key"},
		{"TeamAPIKeys.Create", []any{sandbox, us, management.CreateTeamAPIKeyBody{Label: "x", TeamID: testTeam}}, "it has no readable key id"},
	} {
		client, _ := managing(t, []reply{{status: 200, body: `{"other":"hunter2"}`}})
		_, err := callMethod(t.Context(), client, test.method, test.args)
		var bad *labhealth.DecodeError
		if !errors.As(err, &bad) || bad.Reason != test.want || strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: %v", test.method, err)
		}
	}
}

// An empty response is a 204 or another 2xx without HTML, which may come from a proxy.
func TestManagementNoContent(t *testing.T) {
	sandbox := labhealth.TeamEnvironmentSandbox
	for name, args := range map[string][]any{
		"Webhooks.Delete":         {testTeam, sandbox, "ep_1"},
		"Webhooks.ReplaceHeaders": {testTeam, sandbox, "ep_1", nil},
		"Webhooks.RotateSecret":   {testTeam, sandbox, "ep_1", ""},
		"Keys.Delete":             {testKeyID},
		"Teams.Delete":            {testTeam},
	} {
		call := func(client *management.Client) error {
			_, err := callMethod(t.Context(), client, name, args)
			return err
		}
		for _, r := range []reply{{status: 204}, {status: 200}, {status: 200, body: "null"}, {status: 200, body: `{"id":"x"}`}} {
			client, _ := managing(t, []reply{r})
			if err := call(client); err != nil {
				t.Errorf("%s, %d %s: %v", name, r.status, r.body, err)
			}
		}
		for _, r := range []reply{
			{status: 200, body: "<html>hunter2</html>", header: []string{"Content-Type", "text/html"}},
			{status: 502}, {status: 307, header: []string{"Location", "/elsewhere"}},
		} {
			client, _ := managing(t, []reply{r})
			err := call(client)
			if err == nil || strings.Contains(err.Error(), hidden) {
				t.Errorf("%s, %d %s: %v", name, r.status, r.body, err)
			}
			if out := labhealth.OutcomeOf(err); out != labhealth.OutcomeUnknown {
				t.Errorf("%s, %d %s: outcome %s", name, r.status, r.body, out)
			}
		}
		client, _ := managing(t, []reply{{status: 200, body: `{"id":`}})
		if err := call(client); err == nil || labhealth.OutcomeOf(err) != labhealth.OutcomeApplied {
			t.Errorf("%s, cut short: %v, outcome %s", name, err, labhealth.OutcomeOf(err))
		}
	}
}

// The public API reference makes the list of lab accounts optional.
func TestManagementNoLabAccounts(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: "", " { } ": "", `{"data":[]}`: "",
		`{"error":"e"}`: "it has no list", `{"data":"x"}`: "it has no list", `[]`: "it is not a JSON object",
	} {
		client, _ := managing(t, []reply{{status: 200, body: body}})
		got, err := client.LabAccounts.List(t.Context(), labhealth.TeamEnvironmentSandbox, labhealth.RegionUS, management.ListLabAccountsParams{})
		if len(got) > 0 || (err == nil) != (want == "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

// Do verifies the types of both packages as their methods do.
func TestManagementDoVerifies(t *testing.T) {
	const id = `"6f1c9b1e-3d7a-4a55-9c0e-5b8f2d4e7a11"`
	for _, test := range []struct {
		out  any
		body string
		want string
	}{
		{new(management.Team), `["a"]`, "it is not a JSON object"},
		{new(management.BatchDeletion), `null`, "it is not a JSON object"},
		{new(management.Team), `{}`, "it has no readable team id"},
		{new(management.TeamPage), `{"detail":"broken"}`, "it has no list"},
		{new(labhealth.User), `{}`, "it has no readable user id"},
		{new(labhealth.OrderPage), `[{"id":` + id + `}]`, ""},
		{new(management.ETLPipelinePage), `[{"team_id":` + id + `}]`, ""},
		{new(management.BatchDeletion), `{}`, ""},
		{new([]management.Team), `[{},{"id":` + id + `}]`, ""},
		{new(json.RawMessage), ` 5`, ""},
	} {
		client, _ := managing(t, []reply{{status: 200, body: test.body}})
		err := client.Do(t.Context(), "GET", "/v1/org/x/anything", nil, test.out)
		want := ""
		if test.want != "" {
			want = unreadableText("GET (Do)", test.want, err)
		}
		if errorText(err) != want {
			t.Errorf("%T from %s: %v, want %q", test.out, test.body, err, want)
		}
		if encoded, _ := json.Marshal(test.out); err == nil && strings.HasPrefix(test.body, "{") && string(encoded) != test.body {
			t.Errorf("%T from %s is %s", test.out, test.body, encoded)
		}
	}
	for _, out := range []any{management.Team{}, (*management.Team)(nil), map[string]any{}, 5} {
		client, s := managing(t, nil)
		err := client.Do(t.Context(), "POST", "/v1/org/x/anything", nil, out)
		if errorText(err) != "labhealth: POST (Do): not sent: out must be nil or a pointer that is not nil" || len(s.sent) > 0 {
			t.Errorf("%T: %v, %d requests", out, err, len(s.sent))
		}
	}
}

// A call cannot set the headers of keys.
func TestManagementReservedHeaders(t *testing.T) {
	client, s := managing(t, nil)
	for _, name := range []string{"X-Service-Api-Key", "X-Management-Key", "X-Service-Org-Key", "Authorization"} {
		if _, err := client.Organisation.Get(t.Context(), labhealth.WithHeader(name, hidden)); !errors.Is(err, labhealth.ErrValidation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.Organisation.Get(t.Context(), labhealth.WithIdempotencyKey("1")); !errors.Is(err, labhealth.ErrValidation) {
		t.Error(err)
	}
	equal(t, 0, len(s.sent))
}

// eventHub returns a pipeline to an event hub.
func eventHub(matchers []management.EventHubMatcher, byDefault string, prefixes ...string) management.UpsertETLPipelinesBody {
	return management.UpsertETLPipelinesBody{
		AzureAMQP:         &management.AzureAMQP{EventHubMatchers: matchers, DefaultEventHub: byDefault},
		EventTypePrefixes: prefixes,
	}
}

func TestEventHubDestination(t *testing.T) {
	blob := &management.BlobStorage{ConnectionString: hidden, ContainerName: "sleep"}
	matchers := []management.EventHubMatcher{
		{EventTypePrefix: new("daily.data.sleep."), BlobStorage: blob},
		{EventTypePrefix: new("daily.data."), EventHub: new("daily")},
		{EventTypeRegex: new(`^labtest\.(order|appointment)\.`), EventHub: new("lab")},
		{EventTypeRegex: new(`created$`), EventHub: new("created")},
		{EventTypePrefix: new("both."), EventTypeRegex: new(`\.either$`), EventHub: new("both")},
		{EventHub: new("never")},
		{EventTypePrefix: new("nowhere.")},
	}
	destination := func(hub string, blob *management.BlobStorage, matcher int) management.EventHubDestination {
		return management.EventHubDestination{EventHub: hub, BlobStorage: blob, Matcher: matcher}
	}
	for _, test := range []struct {
		event string
		want  management.EventHubDestination
		ok    bool
	}{
		{"daily.data.sleep.created", destination("", blob, 0), true},
		{"daily.data.steps.created", destination("daily", nil, 1), true},
		{"labtest.order.created", destination("lab", nil, 2), true},
		{"provider.connection.created", destination("created", nil, 3), true},
		{"both.one", destination("both", nil, 4), true},
		{"some.either", destination("both", nil, 4), true},
		{"nowhere.updated", destination("", nil, 6), false},
		{"provider.connection.error", destination("rest", nil, -1), true},
		{"", destination("rest", nil, -1), true},
	} {
		body := eventHub(matchers, "rest")
		response := management.ETLPipeline{AzureAMQP: body.AzureAMQP}
		got, ok, err := body.EventHubDestination(test.event)
		again, okAgain, errAgain := response.EventHubDestination(test.event)
		if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok || err != nil {
			t.Errorf("%s: ok %v, error %v (-want +got):\n%s", test.event, ok, err, diff)
		}
		if !cmp.Equal(got, again) || ok != okAgain || errAgain != nil {
			t.Errorf("%s: a response gives %v, %v, %v", test.event, again, okAgain, errAgain)
		}
	}
	if got, ok, err := eventHub(nil, "").EventHubDestination("a"); ok || err != nil || got.Matcher != -1 {
		t.Errorf("nothing fits and there is no default: %v, %v, %v", got, ok, err)
	}
	if _, ok, err := (management.ETLPipeline{}).EventHubDestination("a"); ok || err != nil {
		t.Errorf("no event hub: %v, %v", ok, err)
	}
	limited := eventHub(matchers, "rest", "labtest.", "provider.")
	if _, ok, _ := limited.EventHubDestination("daily.data.steps.created"); ok {
		t.Error("the prefixes of the pipeline do not count")
	}
	if got, ok, _ := limited.EventHubDestination("provider.connection.error"); !ok || got.EventHub != "rest" {
		t.Error("the prefixes of the pipeline exclude too much")
	}
	broken := eventHub(append(slices.Clone(matchers), management.EventHubMatcher{EventTypeRegex: new("(")}), "rest")
	_, ok, err := broken.EventHubDestination("daily.data.steps.created")
	equal(t, "labhealth: event_hub_matchers.7.event_type_regex is not a valid regular expression: error parsing regexp: missing closing ): `(`", errorText(err))
	equal(t, false, ok)
}

// A decoded brand and decoded details are sent without unknown fields.
func TestReceivedValuesAreSentWithoutUnknownFields(t *testing.T) {
	var brand management.BrandInformation
	mustDecode(t, `{"company_name":"Example","new_field":1}`, &brand)
	var details management.CustomCredentialsDetails
	mustDecode(t, `{"labcorp":{"account_number":"1","billing_method":"CM","new_field":1},"new_field":1}`, &details)
	client, s := managing(t, []reply{{status: 400}, {status: 400}})
	_, _ = client.Teams.Create(t.Context(), management.CreateTeamBody{Name: "a", Region: labhealth.RegionUS, BrandInformation: &brand})
	_, _ = client.CustomCredentials.Upsert(t.Context(), labhealth.TeamEnvironmentSandbox, labhealth.RegionUS,
		management.UpsertTeamCustomCredentialsBody{TeamID: testTeam, Provider: "labcorp", Details: &details})
	equal(t, 2, len(s.sent))
	equal(t, `{"name":"a","region":"us","brand_information":{"company_name":"Example"}}`, s.sent[0].Body)
	equal(t, `{"team_id":"c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40","provider":"labcorp","details":{"labcorp":{"account_number":"1","billing_method":"CM"}}}`, s.sent[1].Body)
	if brand.RawJSON() == nil || details.RawJSON() == nil {
		t.Error("the caller's value was changed")
	}
}

// Samples are the pairs of a time and a number. Others are skipped.
func TestMetricSamples(t *testing.T) {
	var series management.PrometheusQueryResult
	mustDecode(t, `{"metric":{},"values":[[1741089600,"3"],[1741093200.5,"0.25"],["x","1"],[1],[1,2],[1,"x"],[1,"2","3"],[2,"NaN"]]}`, &series)
	var got []string
	for at, n := range series.Samples() {
		got = append(got, fmt.Sprint(at.Format(time.RFC3339Nano), " ", n))
	}
	equal(t, []string{"2025-03-04T12:00:00Z 3", "2025-03-04T13:00:00.5Z 0.25", "1970-01-01T00:00:02Z NaN"}, got)
	for range series.Samples() {
		break
	}
}
