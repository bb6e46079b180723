package attack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go/integration/internal/mutate"
)

// mutant is a defect that is planted in the library. The attack must find it.
type mutant struct {
	name  string // what is broken
	edits []edit
}

// edit is a mutate.Edit.
type edit struct{ File, Old, New string }

const (
	transportFile = "internal/transport/transport.go"
	retryFile     = "internal/transport/retry.go"
	proofFile     = "internal/transport/proof.go"
	connFile      = "internal/transport/conn.go"
	callFile      = "call.go"
	optionsFile   = "call_options.go"
	encodeFile    = "encode.go"
	callErrorFile = "call_error.go"
	errorsFile    = "errors.go"
	bufferFile    = "internal/transport/buffer.go"
	readFile      = "internal/transport/read.go"
	budgetFile    = "internal/transport/budget.go"
)

// The checks of the hooks against a second send of a write. net/http is stopped by any of them, so
// that mutants of what comes before them have no effect alone.
var (
	noStartCheck  = edit{proofFile, "case p.write && p.starts > 1:", "case false && p.starts > 1:"}
	noRepeatCheck = edit{proofFile, "case p.write && (p.starts > 0 || p.wrote > 0):", "case false && (p.starts > 0 || p.wrote > 0):"}
)

// mutants are defects that this library had, or could have had.
var mutants = []mutant{
	{"a write is repeated after a 5xx", []edit{{retryFile, "return Unknown, !write || c.request.Repeatable\n\tcase write", "return Unknown, true\n\tcase write"}}},
	{"a 5xx is a rejection", []edit{{retryFile, "return Unknown, !write || c.request.Repeatable\n\tcase write", "return Rejected, !write || c.request.Repeatable\n\tcase write"}}},
	{"a write is repeated after a lost connection", []edit{{retryFile, "(!c.request.isWrite() || v.outcome == NotSent || c.request.Repeatable)", "true"}}},
	{"every call is repeatable", []edit{{encodeFile, `Repeatable: cfg.idempotencyKey != "", Complete`, `Repeatable: true, Complete`}}},
	{"the idempotency key is sent in another header", []edit{{encodeFile, `h.Set("X-Idempotency-Key"`, `h.Set("Idempotency-Key"`}}},
	{"a lost connection means not sent", []edit{{retryFile, "c.proof != nil && c.proof.notSent() && !c.redirected", "c.proof != nil"}}},
	{"without hooks, nothing was sent", []edit{{proofFile, "return p.lookups > 0 && p.wrote == 0 && !read", "return p.wrote == 0"}}},
	{"a body that was read was not sent", []edit{{proofFile, "return p.lookups > 0 && p.wrote == 0 && !read", "return p.lookups > 0 && p.wrote == 0"}}},
	{"the proof is read at a later hook", []edit{{proofFile, "WroteHeaders: p.wroteHeaders,", "GotFirstResponseByte: p.wroteHeaders,"}}},
	{"the deadline within the header means not sent, and HTTP/2 as HTTP/1", []edit{{proofFile, "return p.wrote == 0 && !p.http2 && !p.expired", "return p.wrote == 0"}}},
	{"a transport may send a write twice", []edit{noStartCheck, noRepeatCheck}},
	{"a transport may send two at once", []edit{noStartCheck}},
	{"net/http may replay a write", []edit{noStartCheck, noRepeatCheck,
		{transportFile, "\treq.GetBody = nil\n", "\treq.GetBody = func() (io.ReadCloser, error) { return &attemptBody{r: bytes.NewReader(own)}, nil }\n"}}},
	{"net/http may replay a write without a body", []edit{noStartCheck, noRepeatCheck,
		{transportFile, "\tif !q.isWrite() {\n\t\treturn nil\n\t}\n\town", "\tif !q.isWrite() || len(q.Body) == 0 {\n\t\treturn nil\n\t}\n\town"}}},
	{"a late send is not stopped", []edit{{proofFile, "case p.judged:\n\t\t\treturn errLate", "case false:\n\t\t\treturn errLate"},
		{proofFile, "case p.judged && !p.http2:", "case false:"}}},
	{"the connection of a stopped write stays open", []edit{{proofFile, "c.Close()\n\t\t}\n\t}\n}", "_ = c\n\t\t}\n\t}\n}"}}},
	{"a transport may take the key to another host", []edit{{proofFile, "case host != p.host:", "case false:"},
		{proofFile, "if hostPort != p.hostPort {", "if false {"}}},
	{"a 4xx after a hidden send is a rejection", []edit{{retryFile, "case write && !c.proof.sentOnce(resp):", "case false:"}}},
	{"a write follows redirects", []edit{{transportFile, "if c.request.isWrite() || len(via)", "if len(via)"}}},
	{"a read follows redirects to other hosts", []edit{{transportFile, " || origin(req.URL) != origin(via[0].URL) {", " {"}}},
	{"a redirect of a write is a rejection", []edit{{retryFile, "\tif r.StatusCode < 400 {\n", "\tif r.StatusCode < 400 {\n\t\tv.outcome = Rejected\n"}}},
	{"a truncated 2xx is a rejection", []edit{{retryFile, "return verdict{outcome: Applied, retryable: r.truncated && !write}", "return verdict{outcome: Rejected, retryable: r.truncated && !write}"}}},
	{"a write is repeated after a truncated 2xx", []edit{{retryFile, "retryable: r.truncated && !write}", "retryable: r.truncated}"}}},
	{"the page of a proxy means applied", []edit{{retryFile, "return verdict{outcome: Unknown, retryable: r.truncated &&", "return verdict{outcome: Applied, retryable: r.truncated &&"}}},
	{"an unknown attempt is forgotten", []edit{{retryFile, "case before == Unknown: //", "case false: //"}}},
	{"a processed read is forgotten", []edit{{retryFile, "case before == Applied: //", "case false: //"}}},
	{"an attempt has no deadline", []edit{{proofFile, "context.WithDeadline(req.Context(), c.started.Add(c.timeout))", "context.WithCancel(req.Context())"}}},
	{"the budget is not applied", []edit{{retryFile, "return c.client.budget.withdraw()", "return true"}}},
	{"the number of attempts is not limited", []edit{{retryFile, "v.retryable && r.Attempts < c.request.Policy.Attempts &&", "v.retryable && r.Attempts < 100 &&"}}},
	{"a Retry-After has no limit", []edit{{retryFile, "v.retryAfter < 0 || v.retryAfter > p.RetryAfterCap", "v.retryAfter < 0"}}},
	{"an error without a response means not sent", []edit{{callErrorFile, "Attempts: result.Attempts, outcome: Outcome(result.Outcome), causes", "Attempts: result.Attempts, outcome: OutcomeNotSent, causes"}}},
	{"an unreadable response means applied", []edit{{callErrorFile, "outcome: Outcome(result.Outcome), received: &received{body: resp.Body},", "outcome: OutcomeApplied, received: &received{body: resp.Body},"}}},
	{"a redirect means rejected", []edit{{errorsFile, "func (*RedirectError) requestOutcome() Outcome { return OutcomeUnknown }", "func (*RedirectError) requestOutcome() Outcome { return OutcomeRejected }"}}},
	{"bytes after a response are logged", []edit{{connFile, "solicited := c.wrote && (c.open > 0 || !c.used)", "solicited := true"},
		{connFile, "if c.in.Buffered() > 0 {\n\t\tc.discard()", "if false {\n\t\tc.discard()"}}},
	{"a stalled write over HTTP/2 never ends", []edit{{readFile, "if resp.ProtoMajor == 2 && c.request.isWrite() {", "if false {"}}},
	{"a Retry-After is read as milliseconds", []edit{{retryFile, "return time.Duration(n) * time.Second, true", "return time.Duration(n) * time.Millisecond, true"}}},
	{"the rate limit is not applied to retries", []edit{{transportFile, "\treturn c.admit(r)\n", "\treturn c.authorize(r)\n"}}},
	{"the headers of a call stay for the next one", []edit{{optionsFile, "\tcfg.header = c.headers(o, cfg.header)\n", "\tcfg.header = c.headers(o, cfg.header)\n\tc.header = cfg.header\n"}}},
	{"the idempotency key is not repeated", []edit{{transportFile, "\treturn c.admit(r)\n", "\tr.Header.Del(\"X-Idempotency-Key\")\n\treturn c.admit(r)\n"}}},
	{"the body of WithResponse is reused", []edit{{optionsFile, "bytes.Clone(r.Body), r.RequestID", "bytes.TrimPrefix(r.Body, nil), r.RequestID"}}},
	{"the body of a truncated response is reused", []edit{{bufferFile, "\t\t\treturn b.data[:n:n], nil, err\n", "\t\t\tb.release()\n\t\t\treturn b.data[:n:n], nil, err\n"}}},
	{"a body is reused before the call returns", []edit{{readFile, "if err == nil {\n\t\t\tr.buffer = read", "if true {\n\t\t\tread.release()"}}},
	{"the body limit of a call is ignored", []edit{{readFile, "readAll(resp, q.MaxBody)", "readAll(resp, max(q.MaxBody, 64<<20))"}}},
	{"the body of an error has another limit", []edit{{retryFile, "io.LimitReader(resp.Body, MaxErrorBody)", "io.LimitReader(resp.Body, MaxErrorBody*64)"}}},
	{"a body is not closed", []edit{{retryFile, "if r.open == nil {", "if false {"}}},
	{"the context of an attempt is not canceled", []edit{{retryFile, "\tif c.proof != nil {\n\t\tc.proof.cancel()\n\t}\n\tr.Outcome", "\tr.Outcome"}}},
	{"an attempt is observed twice", []edit{{retryFile, "\tc.observe(responded, repeat)\n", "\tc.observe(responded, repeat)\n\tif repeat {\n\t\tc.observe(responded, repeat)\n\t}\n"}}},
	{"a proof is used by the next attempt too", []edit{{proofFile, "\tp := newProof(ctx, cancel)\n\tp.write",
		"\tp := c.proof\n\tif p == nil {\n\t\tp = newProof(ctx, cancel)\n\t}\n\tp.ctx.Context, p.cancel, p.judged = ctx, cancel, false\n\tp.write"}}},
	{"the next attempt has the deadline of the first", []edit{{retryFile, "c.started, c.redirected = time.Time{}, false", "c.redirected = false"}}},
	{"the next attempt reads on in the body", []edit{{transportFile, "func() (io.Reader, error) { return &attemptBody{r: bytes.NewReader(own)}, nil })",
		"func(b *attemptBody) func() (io.Reader, error) {\n\t\treturn func() (io.Reader, error) { return b, nil }\n\t}(&attemptBody{r: bytes.NewReader(own)}))"}}},
	{"a read follows redirects to subdomains", []edit{{transportFile, "origin(req.URL) != origin(via[0].URL) {",
		"req.URL.Port() != via[0].URL.Port() || !strings.HasSuffix(req.URL.Hostname(), via[0].URL.Hostname()) {"}}},
	{"a write is repeated after a 401", []edit{{retryFile, "if c.responded(r.StatusCode) && !c.request.isWrite() {", "if c.responded(r.StatusCode) {"}}},
	{"a strict policy is not strict", []edit{{retryFile, "return Rejected, !write || !c.request.Policy.Strict", "return Rejected, true"}}},
	{"HTTP/2 is not recorded", []edit{{proofFile, "p.http2 = p.http2 || http2", "p.http2 = false"}}},
	{"a transport without hooks has sent nothing", []edit{{proofFile, "return p.lookups > 0 && p.wrote == 0 && !read", "return p.wrote == 0 && !read"}}},
	{"a wrapper that read the body has sent nothing", []edit{{proofFile, "(p.native || !read)", "true"}}},
	{"a 4xx to a hidden request is a rejection", []edit{{proofFile,
		"if resp.Request == nil || resp.Request.Context().Value(proofKey{}) != p {", "if false {"}}},
	{"only the first connection of a stopped write is closed", []edit{{proofFile, "conns := p.conns\n", "conns := p.conns[:1]\n"}}},
	{"a write is repeated after a 429 to a hidden request", []edit{{retryFile,
		"code == http.StatusTooManyRequests && c.request.Repeatable\n", "code == http.StatusTooManyRequests\n"}}},
	{"a 408 is a rejection", []edit{{retryFile, "case code >= 500, code == http.StatusRequestTimeout:", "case code >= 500:"}}},
	{"a rejection follows an unknown attempt", []edit{{retryFile, "latest == Rejected && !c.request.isWrite():", "latest == Rejected:"}}},
	{"a rejected attempt is forgotten", []edit{{retryFile, "case before == Rejected && latest == NotSent: //", "case false: //"}}},
	{"a cut page of a proxy means applied", []edit{{retryFile, "if r.isJSON() && (r.truncated || errors.Is(err, ErrTooLarge)) {",
		"if r.truncated || errors.Is(err, ErrTooLarge) {"}}},
	{"a write is repeated after a cut page of a proxy", []edit{{retryFile,
		"retryable: r.truncated && (!write || c.request.Repeatable)}", "retryable: r.truncated}"}}},
	{"a Retry-After that has passed is waited for", []edit{{retryFile, "if v.retryAfter < 0 || v.retryAfter >", "if v.retryAfter >"}}},
	{"a date in a Retry-After is ignored", []edit{{retryFile, "return wait, wait > 0", "return wait, false"}}},
	{"a wait does not end before the context", []edit{{retryFile, "ok && time.Until(deadline) <= *wait {", "ok && time.Until(deadline) <= 0 {"}}},
	{"a request after a redirect was not sent", []edit{{retryFile, "c.proof.notSent() && !c.redirected {", "c.proof.notSent() {"}}},
	{"a redirect starts the deadline again", []edit{{proofFile, "if c.started.IsZero() {", "if true {"}}},
	{"a read follows redirects to another scheme", []edit{{transportFile, `return u.Scheme + "://" + net`, "return net"}}},
	{"the timeout of the http.Client is ignored", []edit{{transportFile, "limit > 0 && limit < call.timeout {", "limit > 0 && limit < 0 {"}}},
	{"bytes after a response through a proxy are logged", []edit{{connFile, "\ttunnel.MaxIdleConnsPerHost = -1\n", ""}}},
	{"the budget grows without an outage", []edit{{budgetFile, "min(b.tokens+tokensPerCall, maxTokens)", "b.tokens + tokensPerCall"}}},
}

// mutantTime is how long a mutant is attacked.
const mutantTime = time.Minute

// The attack finds every planted defect within a minute. The short form only checks that each can
// be planted.
//
//	LABHEALTH_TEST_LONG=1 go test -C integration -v -run 'TestMutants/budget' ./attack
func TestMutants(t *testing.T) {
	var table strings.Builder
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			var edits []mutate.Edit
			for _, e := range m.edits {
				edits = append(edits, mutate.Edit(e))
			}
			files := mutate.Apply(t, edits...)
			if os.Getenv("LABHEALTH_TEST_LONG") == "" {
				return
			}
			caught, took := attackMutant(t, mutate.Build(t, files))
			if caught == "" {
				t.Errorf("not found in %v", took)
				caught = "NOT FOUND"
			}
			fmt.Fprintf(&table, "| %s | %.1f s | %s |\n", m.name, took.Seconds(), caught)
			t.Logf("%v: %s", took.Round(100*time.Millisecond), caught)
		})
	}
	if table.Len() > 0 {
		t.Logf("\n| defect | found after | invariant |\n|---|---|---|\n%s", table.String())
	}
}

// firstLine matches what the attack reports about the first schedule that violates an invariant.
var firstLine = regexp.MustCompile(`(?m)violates an invariant:\s+.*$|\d+ attempts, the limit of an outage.*$|\d+ bytes are logged|(?:certain|ends)_test\.go:\d+: .*$|^panic: .*$`)

// attackMutant runs the attack until an invariant is violated. It returns how, and after what time.
func attackMutant(t *testing.T, program string) (caught string, took time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), mutantTime+30*time.Second)
	defer cancel()
	start := time.Now()
	var out []byte
	var err error
	for _, test := range []string{"TestOutage", "TestPages", "TestCertainOutcomes", "TestEnds", "TestNothingIsLogged", "TestAttack"} {
		run := exec.CommandContext(ctx, program, "-test.run", "^"+test+"$")
		run.Env = append(os.Environ(), "LABHEALTH_TEST_LONG=", "LABHEALTH_ATTACK_FIRST=1", "LABHEALTH_ATTACK_FROM=1", "LABHEALTH_ATTACK_TIME="+mutantTime.String())
		if out, err = run.CombinedOutput(); err != nil {
			break
		}
	}
	took = time.Since(start)
	switch {
	case ctx.Err() != nil: // no schedule was found, but something waits
		t.Logf("the attack did not end: %s", out)
		return "", took
	case err == nil:
		return "", took
	}
	caught = strings.TrimPrefix(firstLine.FindString(string(out)), "violates an invariant:")
	return cmp.Or(strings.TrimSpace(caught), "the test failed: "+string(out)), took
}

// Calls that all fail are repeated at most once for each ten of them, however many calls succeeded
// before.
func TestOutage(t *testing.T) {
	const before, calls = 300, 300
	s := &schedule{Client: clientPlan{NoKeepAlives: true}}
	for range before + calls {
		s.Calls = append(s.Calls, callPlan{Method: "Do GET"})
	}
	s.Conns = make([]connPlan, before)
	for range 3 * calls {
		s.Conns = append(s.Conns, connPlan{Dial: dialRefused})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(s)
		if _, broken := w.run(); len(broken) > 0 {
			t.Error(broken)
		}
		if attempts, limit := w.dialed-before, calls+10+calls/10; attempts > limit {
			t.Errorf("%d attempts, the limit of an outage is %d", attempts, limit)
		}
	})
}
