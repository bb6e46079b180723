package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// durations are the only part of a debug text that differs from run to run.
var durations = regexp.MustCompile(`, [0-9.]+(ns|µs|ms|s)\n`)

// debugOf returns what a call writes with WithDebug, without the durations.
func debugOf(t *testing.T, replies []reply, call func(*labhealth.Client) error, opts ...labhealth.Option) string {
	t.Helper()
	var b strings.Builder
	client, _ := scripted(t, replies, append([]labhealth.Option{labhealth.WithDebug(&b)}, opts...)...)
	_ = call(client)
	return durations.ReplaceAllString(b.String(), ", 1ms\n")
}

// The texts of attempts: each is one of those that a user sees.
func TestDebugForms(t *testing.T) {
	tests := []struct {
		name    string
		replies []reply
		call    func(*labhealth.Client) error
		want    string
	}{
		{
			"rejected", []reply{{status: 422, body: `{"detail":[{"type":"missing","loc":["body","patient_details","first_name","Ada"],
				"msg":"Field required","input":{"Ada":"1990-01-31"},"ctx":{}}]}`, header: []string{"Content-Type", "application/json", "X-Ada", "Example", "X-Request-Id", "req-1"}}},
			func(c *labhealth.Client) error {
				return c.Do(t.Context(), "POST", "/v3/order/import", json.RawMessage(`{"user_id":"11111111-2222-4333-8444-555555555555","billing_type":"client_bill",
					"patient_details":{"first_name":"Ada","gender":"female","dob":"1990-01-31","email":"","fasting":true},"lab_test_ids":[],"sample_id":"11111111-2222-4333-8444-555555555555",
					"note":"`+strings.Repeat("Ada ", 100)+`"}`), nil, labhealth.WithHeader("X-Note", "Ada"))
			},
			`--> POST https://api.example.com/v3/order/import (attempt 1)
    Accept: application/json
    Content-Type: application/json
    X-Service-Api-Key: <redacted>
    and 2 other headers

    {
      user_id: "11111111-2222-4333-8444-555555555555",
      billing_type: "client_bill",
      patient_details: {
        first_name: <string>,
        gender: <string>,
        dob: <date>,
        email: "",
        fasting: <boolean>
      },
      lab_test_ids: [],
      sample_id: <uuid>,
      note: <string, up to 512 bytes>
    }
<-- 422 Unprocessable Entity, outcome rejected, 1ms
    Content-Type: application/json
    X-Request-Id: req-1
    and 1 other header

    {
      detail: [
        {
          type: "missing",
          loc: ["body", "patient_details", "first_name", <string>],
          msg: <string>,
          input: {
            ?: <date>
          },
          ctx: {}
        }
      ]
    }

`,
		},
		{
			"a path and a query", []reply{{status: 404, body: "Ada Example has no results", header: []string{"Content-Type", "text/plain; name=Ada"}}},
			func(c *labhealth.Client) error {
				_, err := c.Users.Resolve(t.Context(), "ada-example", labhealth.WithQuery("Ada", "1990-01-31"), labhealth.WithQuery("page", "2"), labhealth.WithQuery("lab", "quest"))
				return err
			},
			`--> GET https://api.example.com/v2/user/resolve/{client_user_id}??=<date>&lab=quest&page=2 (attempt 1)
    Accept: application/json
    X-Service-Api-Key: <redacted>
    and 1 other header
<-- 404 Not Found, outcome rejected, 1ms
    Content-Type: text/plain

    <up to 64 bytes of text/plain, not JSON>

`,
		},
		{
			"a PDF, after a lost connection", []reply{{err: io.ErrUnexpectedEOF}, {status: 200, body: onePDF, header: []string{"Content-Type", "application/pdf"}}},
			func(c *labhealth.Client) error {
				_, err := c.Orders.ResultsPDF(t.Context(), orderID, io.Discard)
				return err
			},
			`--> GET https://api.example.com/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b/result/pdf (attempt 1)
    Accept: application/pdf
    X-Service-Api-Key: <redacted>
    and 1 other header
<-- the connection was closed while waiting for the response, outcome unknown, 1ms

--> GET https://api.example.com/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b/result/pdf (attempt 2)
    Accept: application/pdf
    X-Service-Api-Key: <redacted>
    and 1 other header
<-- 200 OK, outcome applied, 1ms
    Content-Type: application/pdf

    <up to 64 bytes of application/pdf, streamed>

`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := debugOf(t, test.replies, test.call, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// patientEnums are enumerations whose values describe a patient or a result.
var patientEnums = []string{"Ethnicity", "Gender", "GenderIdentity", "Interpretation", "Race", "ResponsibleRelationship", "ServiceSleepStage", "Sex", "SexualOrientation", "SleepType", "USState"}

// shownWords are the words that a redacted text may have: names of fields, and the values of
// enumerations that do not describe a patient.
var shownWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{"us": true, "eu": true}
	for _, f := range reference.Fields() {
		words[f.Name] = true
	}
	for name, values := range reference.Enumerations() {
		for _, value := range values {
			words[value] = words[value] || !slices.Contains(patientEnums, strings.TrimPrefix(name, "management "))
		}
	}
	return words
})

// leaves returns the texts and the numbers in a document.
func leaves(t testing.TB, document string) (list []string) {
	t.Helper()
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case string:
			list = append(list, v)
		case json.Number:
			list = append(list, v.String())
		}
	}
	walk(jsonData(t, document))
	return list
}

// leaked returns the values that out has although it must not, and how many were searched.
func leaked(out string, values []string) (found []string, searched int) {
	out = regexp.MustCompile(`(?m)^    Traceresponse: .*$|attempt [0-9]|(limit|offset|page|size)=[0-9]+|up to [0-9]+ (bytes|KiB)|[0-9]+ (more|other)|^<-- [0-9]{3} |, [0-9.]+(µ|m|n)?s$`).ReplaceAllString(out, "")
	for _, value := range values {
		if _, err := uuid.Parse(value); err == nil || value == "" || shownWords()[value] {
			continue
		}
		searched++
		at := strings.Index(out, value)
		for at >= 0 && len(value) < 12 && !alone(out, at, len(value)) { // a short text is part of others
			next := strings.Index(out[at+1:], value)
			if at += 1 + next; next < 0 {
				at = -1
			}
		}
		if at >= 0 {
			found = append(found, value)
		}
	}
	return found, searched
}

// alone reports whether the text at a position is a word.
func alone(out string, at, length int) bool {
	isPart := func(i int) bool {
		return i >= 0 && i < len(out) && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/", rune(out[i]))
	}
	return !isPart(at-1) && !isPart(at+length)
}

// No call of the team API shows a value of its request or its response.
func TestDebugRedactsCalls(t *testing.T) {
	searched, bytes := 0, 0
	forEachCall(t, func(t *testing.T, c apiCall) {
		var b strings.Builder
		client, _ := scripted(t, []reply{{status: 200, body: c.response}}, labhealth.WithDebug(&b))
		if _, err := c.call(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		searched += checkDebug(t, b.String(), testKey, c.body, c.response, queryValues(t, c.url))
		bytes += b.Len()
	})
	if searched < 1000 {
		t.Errorf("only %d values", searched)
	}
	t.Logf("%d values sought in %d bytes", searched, bytes)
}

// queryValues returns the values in a query, except numbers of pages, as JSON.
func queryValues(t *testing.T, address string) string {
	query := must[*url.URL](t)(url.Parse(address)).Query()
	for _, name := range []string{"limit", "offset", "page", "size"} {
		query.Del(name)
	}
	return mustEncode(t, query)
}

// checkDebug searches a redacted text for the key and for the values in documents, and returns the
// number of values.
func checkDebug(t *testing.T, out, key string, documents ...string) int {
	t.Helper()
	values := []string{key}
	for _, document := range documents {
		if document != "" && !strings.HasPrefix(document, "%PDF") {
			values = append(values, leaves(t, document)...)
		}
	}
	found, searched := leaked(out, values)
	if len(found) > 0 || !strings.HasPrefix(out, "--> ") {
		t.Errorf("%q is shown in\n%s", found, out)
	}
	return searched
}

// The search finds values.
func TestLeaked(t *testing.T) {
	found, searched := leaked(`--> GET /?a=<date> (attempt 1) first_name: "Ada", 42, "female"`, []string{"Ada", "42", "1", "female", "testkit", "first", "Example", orderID.String()})
	equal(t, []string{"Ada", "42", "female"}, found)
	equal(t, 6, searched)
}

// The embedded service proves itself, and its attempts are written in full. Those of any other
// service, also one that sends back what it gets, are not.
func TestDebugInFull(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	user := srv.AddUsers(1)[0]
	echo := func(header func(http.Header, *http.Request)) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			for name, values := range r.Header {
				w.Header()[name] = values
			}
			w.Header().Set("Content-Type", "application/json")
			header(w.Header(), r)
			w.Write(body)
		}))
	}
	set := func(values ...string) func(http.Header, *http.Request) {
		return func(h http.Header, _ *http.Request) { h["X-Labhealthtest-Proof"] = values }
	}
	token := srv.DebugToken
	tests := map[string]struct {
		header func(http.Header, *http.Request) // nil for the embedded service
		tokens []string
		key    string
		full   bool
	}{
		"embedded":                       {nil, []string{token}, srv.APIKey, true},
		"embedded, the key is wrong":     {nil, []string{token}, "sk_us_wrong", true},
		"embedded, second token":         {nil, []string{strings.Repeat("x", 52), token}, srv.APIKey, true},
		"embedded, no token":             {nil, nil, srv.APIKey, false},
		"embedded, token of another":     {nil, []string{strings.Repeat("x", 52)}, srv.APIKey, false},
		"embedded, in lower case":        {nil, []string{strings.ToLower(token)}, srv.APIKey, false},
		"echo":                           {func(http.Header, *http.Request) {}, []string{token}, "sk_us_echo", false},
		"echo, empty":                    {set(""), []string{token}, "sk_us_echo", false},
		"echo, without a value":          {set(), []string{token}, "sk_us_echo", false},
		"echo, two values":               {set("x", token), []string{token}, "sk_us_echo", false},
		"echo, the first of two":         {set(token, "x"), []string{token}, "sk_us_echo", false},
		"echo, a list":                   {set(token + "," + token), []string{token}, "sk_us_echo", false},
		"echo, cut":                      {set(token[:len(token)-1]), []string{token}, "sk_us_echo", false},
		"echo, as a trailer":             {func(h http.Header, _ *http.Request) { h.Set(http.TrailerPrefix+"X-Labhealthtest-Proof", token) }, []string{token}, "sk_us_echo", false},
		"another embedded service":       {set(labhealthtest.NewServer(t).DebugToken), []string{token}, "sk_us_echo", false},
		"proof, but the key is in it":    {set(token), []string{token}, "Ada", false},
		"proof, the key is escaped":      {set(token), []string{token}, "Escaped/<&", false},
		"proof, the key is in the query": {set(token), []string{token}, "a=b", false},
		"proof":                          {set(token), []string{token}, "sk_us_echo", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base := srv.URL
			if test.header != nil {
				other := echo(test.header)
				defer other.Close()
				base = other.URL
			}
			var b strings.Builder
			client := must[*labhealth.Client](t)(labhealth.NewClient(test.key, labhealth.WithBaseURL(base), labhealth.WithDebug(&b, test.tokens...)))
			defer client.CloseIdleConnections()
			_ = client.Do(t.Context(), "PATCH", "/v2/user/"+user.String(), json.RawMessage(`{"client_user_id":"Ada Example","x":"E\u0073caped\/\u003c\u0026"}`), nil,
				labhealth.WithQuery("q", "a=b"), labhealth.WithHeader("X-Note", "Grace"))
			out := b.String()
			if full := strings.Contains(out, `"Ada Example"`) && strings.Contains(out, "?q=a%3Db"); full != test.full || !full && strings.Contains(out, "Ada") {
				t.Errorf("in full: %v, want %v:\n%s", full, test.full, out)
			}
			for _, secret := range []string{test.key, token, "Grace"} {
				if secret != "Ada" && strings.Contains(out, secret) {
					t.Errorf("%s is shown in\n%s", secret, out)
				}
			}
		})
	}
}

// Every server has its own token, which the seed does not determine.
func TestDebugTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 10 {
		token := labhealthtest.NewServer(t, labhealthtest.WithSeed(1)).DebugToken
		if seen[token] || len(token) < 32 {
			t.Errorf("token %q", token)
		}
		seen[token] = true
	}
}

func TestDebugOptions(t *testing.T) {
	for want, opt := range map[string]labhealth.Option{
		"labhealth: WithDebug needs a writer":                                              labhealth.WithDebug(nil),
		"labhealth: WithDebug needs the DebugToken of a labhealthtest.Server, or no token": labhealth.WithDebug(io.Discard, ""),
	} {
		_, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), opt)
		equal(t, want, errorText(err))
	}
}

// A writer that fails changes nothing, and calls at the same time write one attempt each.
func TestDebugWrites(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	ids := srv.AddUsers(20)
	var writes []string // guarded by the option
	client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithDebug(writer(func(p []byte) (int, error) {
		writes = append(writes, string(p))
		return 0, io.ErrClosedPipe
	}))))
	defer client.CloseIdleConnections()
	var running sync.WaitGroup
	for _, id := range ids {
		running.Go(func() {
			if _, err := client.Users.Get(context.Background(), id); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	equal(t, len(ids), len(writes))
	for _, text := range writes {
		if strings.Count(text, "--> ") != 1 || strings.Count(text, "<-- 200 OK") != 1 || !strings.HasSuffix(text, "}\n\n") {
			t.Errorf("one write is\n%s", text)
		}
	}
}

// A writer that blocks holds no call beyond the end of its context, and none without a deadline for
// more than ten seconds. What it misses is counted.
func TestDebugWriterBlocks(t *testing.T) {
	const fromThere = "(2 attempts are missing here: the writer was blocked)\n\n--> GET"
	for _, test := range []struct {
		name     string
		deadline time.Duration // of the context; 0 for none
		takes    time.Duration // the call
		want     time.Duration
	}{
		{"deadline", 3 * time.Second, time.Second, 3 * time.Second},
		{"deadline that the call exceeds", 3 * time.Second, time.Hour, 3*time.Second + 50*time.Millisecond},
		{"no deadline", 0, time.Second, 11 * time.Second},
		{"a later deadline", time.Hour, time.Second, 11 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				block := make(chan struct{})
				var writes []string
				takes := test.takes
				client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
					select {
					case <-time.After(takes):
						return responseTo(r, 200, `{}`), nil
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1, ReadTimeout: time.Hour}), labhealth.WithDebug(writer(func(p []byte) (int, error) {
					<-block
					writes = append(writes, string(p))
					return len(p), nil
				})))
				get := func() time.Duration {
					ctx := t.Context()
					if test.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, test.deadline)
						defer cancel()
					}
					start := time.Now()
					err := client.Do(ctx, "GET", "/v2/x", nil, nil)
					equal(t, test.takes < time.Hour || takes == 0, err == nil)
					return time.Since(start)
				}
				equal(t, test.want, get())
				takes = 0
				equal(t, []time.Duration{0, 0}, []time.Duration{get(), get()}) // the writer is blocked still
				close(block)
				synctest.Wait()
				equal(t, 0, int(get()))
				equal(t, []bool{true, true}, []bool{len(writes) == 2, strings.HasPrefix(writes[1], fromThere)})
				equal(t, 0, int(get()))
				equal(t, true, strings.HasPrefix(writes[2], "--> GET"))
			})
		})
	}
	t.Run("canceled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			block := make(chan struct{})
			client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) { return responseTo(r, 200, `{}`), nil }),
				labhealth.WithDebug(writer(func([]byte) (int, error) { <-block; return 0, nil })))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			equal(t, "", errorText(client.Do(ctx, "GET", "/v2/x", nil, nil)))
			equal(t, time.Second, time.Since(start))
			close(block)
		})
	})
	t.Run("a panic", func(t *testing.T) {
		defer func() { equal(t, any("writer"), recover()) }()
		panicking, _ := scripted(t, []reply{{status: 200, body: `{}`}}, labhealth.WithDebug(writer(func([]byte) (int, error) { panic("writer") })))
		_ = panicking.Do(t.Context(), "GET", "/v2/x", nil, nil)
		t.Error("no panic")
	})
}

// Large and deep bodies are cut.
func TestDebugCuts(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want string
	}{
		"long list":     {`{"data":[` + strings.TrimSuffix(strings.Repeat(`{"id":1},`, 1000), ",") + `]}`, "… 997 more"},
		"long row":      {`{"data":[` + strings.TrimSuffix(strings.Repeat(`1,`, 1000), ",") + `]}`, "data: [<number>, <number>, <number>, <number>, <number>, <number>, <number>, <number>, … 992 more]"},
		"many fields":   {`{"a":1` + strings.Repeat(`,"b":1`, 1000) + `}`, "… 801 more fields"},
		"deep":          {strings.Repeat(`{"data":`, 60) + "1" + strings.Repeat("}", 60), "?: {…}"},
		"deep list":     {strings.Repeat(`[`, 60) + strings.Repeat("]", 60), "[…]"},
		"wide and deep": {`{"data":` + wide(150, 6) + `}`, "… cut at 64 KiB"},
	} {
		out := debugOf(t, []reply{{status: 200, body: test.body}}, func(c *labhealth.Client) error { return c.Do(t.Context(), "GET", "/v2/x", nil, nil) })
		if !strings.Contains(out, test.want) || len(out) > 200_000 {
			t.Errorf("%s: %d bytes: %.300s", name, len(out), out)
		}
	}
}

// wide returns an object with n fields in each of several levels.
func wide(n, levels int) string {
	if levels == 0 {
		return `"x"`
	}
	inner := wide(3, levels-1)
	var fields []string
	for i := range n {
		fields = append(fields, strconv.Quote(fmt.Sprint("data", i))+":"+inner)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
