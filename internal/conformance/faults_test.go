package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go"
)

const (
	unknown  = labhealth.OutcomeUnknown
	notSent  = labhealth.OutcomeNotSent
	rejected = labhealth.OutcomeRejected
	applied  = labhealth.OutcomeApplied
)

// came is what came of a call: how often it was tried, how often the server carried it out, and what the error says of it.
type came struct {
	attempts, commits int64
	outcome           labhealth.Outcome
}

func (c came) String() string {
	return fmt.Sprintf("%d tried, %d done, %v", c.attempts, c.commits, c.outcome)
}

// respond is a fault that is an answer.
func respond(status int, body string, header ...string) func(exchange) bool {
	return func(x exchange) bool {
		x.answer(status, body, header...)
		return status < 400 || status >= 500 || status == http.StatusRequestTimeout
	}
}

// cut sends half a 2xx answer and then ends the connection or waits.
func cut(end func(exchange)) func(exchange) bool {
	return func(x exchange) bool {
		x.Header().Set("Content-Type", "application/json")
		x.Header().Set("Content-Length", strconv.Itoa(len(faultAnswer)))
		io.WriteString(x, faultAnswer[:len(faultAnswer)/2])
		http.NewResponseController(x.ResponseWriter).Flush()
		end(x)
		return true
	}
}

func abort(exchange) { panic(http.ErrAbortHandler) }

// faultTable is what the package promises for each fault that a server can have after it has read a request. bad is how many
// requests the fault meets before the server is well, negative for all. Without protocol it holds for both.
var faultTable = []struct {
	fault    string
	protocol int
	bad      int64
	inject   func(exchange) bool
	get      came
	write    came
}{
	{"none", 0, 0, nil, came{1, 1, applied}, came{1, 1, applied}},

	{"closed", 0, 1, func(x exchange) bool { x.raw().Close(); return true }, came{2, 2, applied}, came{1, 1, unknown}},
	{"closed, always", 0, -1, func(x exchange) bool { x.raw().Close(); return true }, came{3, 3, unknown}, came{1, 1, unknown}},
	{"reset", 0, 1, func(x exchange) bool {
		c := x.raw()
		tcpOf(c).SetLinger(0)
		tcpOf(c).Close()
		return true
	}, came{2, 2, applied}, came{1, 1, unknown}},
	{"stream aborted", 2, 1, func(x exchange) bool { abort(x); return true }, came{2, 2, applied}, came{1, 1, unknown}},
	{"garbage", 0, 1, func(x exchange) bool {
		c := x.raw()
		io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\nand more that is no frame and no header\r\n")
		c.Close()
		return true
	}, came{2, 2, applied}, came{1, 1, unknown}},
	{"half a header", 1, 1, func(x exchange) bool {
		c := x.raw()
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Ty")
		c.Close()
		return true
	}, came{2, 2, applied}, came{1, 1, unknown}},
	{"half a header", 2, 1, func(x exchange) bool {
		c := x.raw()
		h2Stream{c, 1}.frame(h2Headers, h2EndHeaders, 1, 0x88, 0x0f, 0x10, 100, 'a')
		c.Close()
		return true
	}, came{2, 2, applied}, came{1, 1, unknown}},
	{"silence until the deadline", 0, 1, func(x exchange) bool { x.hang(); return true }, came{2, 2, applied}, came{1, 1, unknown}},
	{"truncated body", 0, 1, cut(abort), came{2, 2, applied}, came{1, 1, applied}},
	{"truncated body, always", 0, -1, cut(abort), came{3, 3, applied}, came{1, 1, applied}},
	{"slow body", 0, 1, cut(exchange.hang), came{2, 2, applied}, came{1, 1, applied}},
	{"truncated JSON, whole body", 0, 1, respond(200, faultAnswer[:40]), came{2, 2, applied}, came{1, 1, applied}},
	{"body beyond the cap", 0, 1, respond(200, `{"id":"`+strings.Repeat("x", 5000)+`"}`), came{1, 1, applied}, came{1, 1, applied}},
	{"HTML", 0, 1, respond(200, "<html>Welcome</html>", "Content-Type", "text/html"), came{1, 1, unknown}, came{1, 1, unknown}},
	{"empty", 0, 1, respond(200, ""), came{1, 1, unknown}, came{1, 1, unknown}},

	{"429", 0, 1, respond(429, `{}`), came{2, 1, applied}, came{2, 1, applied}},
	{"429, Retry-After: 0", 0, 1, respond(429, `{}`, "Retry-After", "0"), came{2, 1, applied}, came{2, 1, applied}},
	{"429, always", 0, -1, respond(429, `{}`), came{3, 0, rejected}, came{3, 0, rejected}},
	{"429, Retry-After beyond the cap", 0, 1, respond(429, `{}`, "Retry-After", "61"), came{1, 0, rejected}, came{1, 0, rejected}},
	{"429, Retry-After overflowing", 0, 1, respond(429, `{}`, "Retry-After", "99999999999999999999"), came{1, 0, rejected}, came{1, 0, rejected}},
	{"429, Retry-After negative", 0, 1, respond(429, `{}`, "Retry-After", "-1"), came{1, 0, rejected}, came{1, 0, rejected}},
	{"429, Retry-After in the past", 0, 1, respond(429, `{}`, "Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"), came{1, 0, rejected}, came{1, 0, rejected}},
	{"429, Retry-After in the year 9999", 0, 1, respond(429, `{}`, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), came{1, 0, rejected}, came{1, 0, rejected}},

	{"500", 0, 1, respond(500, "Internal Server Error"), came{2, 2, applied}, came{1, 1, unknown}},
	{"500, always", 0, -1, respond(500, "Internal Server Error"), came{3, 3, unknown}, came{1, 1, unknown}},
	{"501", 0, 1, respond(501, `{}`), came{1, 1, unknown}, came{1, 1, unknown}},
	{"502", 0, 1, respond(502, "<html>"), came{2, 2, applied}, came{1, 1, unknown}},
	{"503, Retry-After: 0", 0, 1, respond(503, `{}`, "Retry-After", "0"), came{2, 2, applied}, came{1, 1, unknown}},
	{"503, Retry-After beyond the cap", 0, 1, respond(503, `{}`, "Retry-After", "61"), came{1, 1, unknown}, came{1, 1, unknown}},
	{"504", 0, 1, respond(504, `{}`), came{2, 2, applied}, came{1, 1, unknown}},
	{"505", 0, 1, respond(505, `{}`), came{1, 1, unknown}, came{1, 1, unknown}},
	{"599", 0, 1, respond(599, `{}`), came{2, 2, applied}, came{1, 1, unknown}},
	{"503, slow body", 0, 1, func(x exchange) bool {
		x.answer(503, `{"detail":`)
		http.NewResponseController(x.ResponseWriter).Flush()
		x.hang()
		return true
	}, came{2, 2, applied}, came{1, 1, unknown}},
	{"408", 0, 1, respond(408, `{}`), came{2, 2, applied}, came{1, 1, unknown}},
	{"400", 0, 1, respond(400, `{}`), came{1, 0, rejected}, came{1, 0, rejected}},
	{"401", 0, 1, respond(401, `{}`), came{1, 0, rejected}, came{1, 0, rejected}},
	{"403", 0, 1, respond(403, `{}`), came{1, 0, rejected}, came{1, 0, rejected}},
	{"404", 0, 1, respond(404, `{}`), came{1, 0, rejected}, came{1, 0, rejected}},
	{"409", 0, 1, respond(409, `{}`), came{1, 0, rejected}, came{1, 0, rejected}},
	{"422", 0, 1, respond(422, `{}`), came{1, 0, rejected}, came{1, 0, rejected}},
	{"425", 0, 1, respond(425, `{}`), came{1, 0, rejected}, came{1, 0, rejected}},
	{"304", 0, 1, respond(304, ""), came{1, 1, unknown}, came{1, 1, unknown}},

	{"301 to the same origin", 0, 1, respond(301, "", "Location", "/elsewhere"), came{1, 2, applied}, came{1, 1, unknown}},
	{"302 to the same origin", 0, 1, respond(302, "", "Location", "/elsewhere"), came{1, 2, applied}, came{1, 1, unknown}},
	{"303 to the same origin", 0, 1, respond(303, "", "Location", "/elsewhere"), came{1, 2, applied}, came{1, 1, unknown}},
	{"307 to the same origin", 0, 1, respond(307, "", "Location", "/elsewhere"), came{1, 2, applied}, came{1, 1, unknown}},
	{"308 to the same origin", 0, 1, respond(308, "", "Location", "/elsewhere"), came{1, 2, applied}, came{1, 1, unknown}},
	{"302 to elsewhere", 0, 1, respond(302, "", "Location", "https://elsewhere.example.com/"), came{1, 1, unknown}, came{1, 1, unknown}},
	{"307 to elsewhere", 0, 1, respond(307, "", "Location", "https://elsewhere.example.com/"), came{1, 1, unknown}, came{1, 1, unknown}},
	{"302 to itself, always", 0, -1, respond(302, "", "Location", "/elsewhere"), came{1, 6, unknown}, came{1, 1, unknown}},
	{"302 without Location", 0, 1, respond(302, ""), came{1, 1, unknown}, came{1, 1, unknown}},
}

func TestFaultTable(t *testing.T) {
	matrix := newMatrix(t)
	for _, row := range faultTable {
		for _, protocol := range []int{1, 2} {
			if row.protocol != 0 && row.protocol != protocol {
				continue
			}
			for _, kind := range faultCalls {
				t.Run(fmt.Sprintf("%s/%s/HTTP%d", row.fault, kind.method, protocol), func(t *testing.T) {
					want := row.write
					if kind.method == "GET" {
						want = row.get
					}
					srv := startFaults(t, protocol == 2, row.bad, row.inject)
					transport := srv.Client().Transport
					defer srv.Client().CloseIdleConnections()
					if protocol == 1 {
						transport = nil
					}
					client := faultClient(t, srv.URL, transport, labhealth.WithBodyLimit(4000))
					var r labhealth.Response
					opts := []labhealth.CallOption{labhealth.WithResponse(&r)}
					if strings.Contains(row.fault, "silence") || strings.Contains(row.fault, "slow") {
						// The connection is there already, so that making it takes none of the time.
						if err := client.Do(t.Context(), http.MethodHead, warmPath, nil, nil); err != nil {
							t.Fatal(err)
						}
						opts = append(opts, labhealth.WithCallRetry(labhealth.RetryPolicy{ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond}))
					}
					err := kind.call(t, client, opts...)
					got := came{int64(r.Attempts), srv.commits.Load(), labhealth.OutcomeOf(err)}
					matrix.add(row.fault, kind.method, fmt.Sprintf("HTTP/%d", protocol), got, err)
					if got != want {
						t.Errorf("%v, want %v: %v", got, want, err)
					}
				})
			}
		}
	}
}

// matrix collects what came of the cells of a table, to print it with -v.
type matrix struct {
	mu   sync.Mutex
	text strings.Builder
}

func newMatrix(t *testing.T) *matrix {
	m := &matrix{}
	t.Cleanup(func() { t.Log("\n" + m.text.String()) })
	return m
}

func (m *matrix) add(fault, method, protocol string, got came, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", err), "*labhealth."), "<nil>")
	fmt.Fprintf(&m.text, "%-36s %-7s %-6s %-28v %s\n", fault, method, protocol, got, kind)
}

// Faults before a server has read anything.
func TestFaultsBeforeSending(t *testing.T) {
	plain := startFaults(t, false, 0, nil)
	secure := startFaults(t, true, 0, nil)
	silent := silentListener(t)
	refused := closedAddress(t)
	dialing := func(err error) *http.Transport {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
	}
	short := labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1, ReadTimeout: 30 * time.Millisecond, WriteTimeout: 30 * time.Millisecond}
	for _, row := range []struct {
		fault     string
		url       string
		transport *http.Transport
		retry     labhealth.RetryPolicy
		attempts  int64
	}{
		{"refused", "http://" + refused, nil, quick, 3},
		{"refused by a proxy", "https://api.example.com", &http.Transport{Proxy: proxyAt("http://" + refused)}, quick, 3},
		{"temporary DNS failure", "https://api.example.com", dialing(&net.DNSError{IsTemporary: true}), quick, 3},
		{"DNS timeout", "https://api.example.com", dialing(&net.DNSError{IsTimeout: true}), quick, 3},
		{"unknown host", "https://api.example.com", dialing(&net.DNSError{IsNotFound: true}), quick, 1},
		{"unreachable", "https://api.example.com", dialing(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errors.New("unreachable"))}), quick, 3},
		{"TLS stalls", "https://" + silent.Addr().String(), &http.Transport{TLSHandshakeTimeout: 20 * time.Millisecond}, quick, 3},
		{"TLS stalls until the deadline", "https://" + silent.Addr().String(), nil, short, 3},
		{"proxy stalls until the deadline", "https://api.example.com", &http.Transport{Proxy: proxyAt("http://" + silent.Addr().String())}, short, 3},
		{"bad certificate", secure.URL, nil, quick, 1},
		{"certificate of another host", "https://localhost:" + portOf(secure.URL), &http.Transport{TLSClientConfig: otherName(secure)}, quick, 1},
		{"wrong scheme", strings.Replace(plain.URL, "http:", "https:", 1), nil, quick, 1},
		{"lost before the headers were written", "http://api.example.com", &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				c, _ := net.Pipe()
				return brokenConn{c}, nil
			},
		}, quick, 3},
	} {
		for _, kind := range faultCalls {
			t.Run(row.fault+"/"+kind.method, func(t *testing.T) {
				base := strings.Replace(row.url, "http://api.example.com", "http://localhost", 1)
				var transport http.RoundTripper
				if row.transport != nil {
					transport = row.transport
					defer row.transport.CloseIdleConnections()
				}
				client := faultClient(t, base, transport, labhealth.WithRetry(row.retry))
				var r labhealth.Response
				// A header that is larger than net/http's buffer is written before it is complete.
				err := kind.call(t, client, labhealth.WithResponse(&r), labhealth.WithHeader("X-Filler", strings.Repeat("x", 5000)))
				got := came{int64(r.Attempts), plain.commits.Load() + secure.commits.Load(), labhealth.OutcomeOf(err)}
				if want := (came{row.attempts, 0, notSent}); got != want {
					t.Errorf("%v, want %v: %v", got, want, err)
				}
			})
		}
	}
}

func proxyAt(address string) func(*http.Request) (*url.URL, error) {
	return func(*http.Request) (*url.URL, error) { return url.Parse(address) }
}

func portOf(address string) string {
	u, _ := url.Parse(address)
	return u.Port()
}

// otherName trusts the server's certificate, which is for example.com and not for this name.
func otherName(s *faultServer) *tls.Config {
	c := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	c.ServerName = "api.example.org"
	return c
}

// brokenConn can be written to in vain.
type brokenConn struct{ net.Conn }

func (brokenConn) Write([]byte) (int, error) { return 0, errors.New("broken") }

// HTTP/2 refuses in ways of its own: by frames that say a request was not carried out, whether or not that is true. Here it is not
// true.
func TestFaultsOfHTTP2(t *testing.T) {
	refuse := func(s h2Stream) { s.reset(h2RefusedStream) }
	protocol := func(s h2Stream) { s.reset(h2ProtocolError) }
	goAway := func(s h2Stream) { s.goAway(0, h2NoError) }
	matrix := newMatrix(t)
	for _, row := range []struct {
		fault  string
		always bool
		inject func(h2Stream)
		get    came // attempts and commits are maxima: which faults net/http retries depends on the Go version
		write  came
	}{
		{"GOAWAY", false, goAway, came{3, 2, applied}, came{1, 1, unknown}},
		{"GOAWAY with an error", false, func(s h2Stream) { s.goAway(0, h2ProtocolError) }, came{3, 2, applied}, came{1, 1, unknown}},
		{"REFUSED_STREAM", false, refuse, came{3, 2, applied}, came{1, 1, unknown}},
		{"PROTOCOL_ERROR", false, protocol, came{3, 2, applied}, came{1, 1, unknown}},
		{"GOAWAY, always", true, goAway, came{3, 9, unknown}, came{1, 1, unknown}},
	} {
		for _, kind := range faultCalls {
			t.Run(row.fault+"/"+kind.method, func(t *testing.T) {
				srv := startH2(t, func(h2Stream) {}, func(n int64, s h2Stream) {
					if n == 1 || row.always {
						row.inject(s)
						return
					}
					s.answer(faultAnswer)
				})
				client := faultClient(t, srv.url, h2Transport(t))
				var r labhealth.Response
				err := kind.call(t, client, labhealth.WithResponse(&r))
				got := came{int64(r.Attempts), srv.commits.Load(), labhealth.OutcomeOf(err)}
				matrix.add(row.fault, kind.method, "HTTP/2", got, err)
				want := row.write
				if kind.method == "GET" {
					want = row.get
					want.attempts = min(want.attempts, got.attempts)
					want.commits = min(want.commits, got.commits)
				}
				if got != want {
					t.Errorf("%v, want %v: %v", got, want, err)
				}
				if n := srv.conns.Load(); n > 9 {
					t.Errorf("%d connections", n)
				}
				if errors.Is(err, context.Canceled) {
					t.Error("nobody has canceled")
				}
			})
		}
	}
}

// A server that refuses for ever is asked a bounded number of times, however long the caller's patience.
func TestRefusedForEver(t *testing.T) {
	patience := 300 * time.Millisecond
	if long {
		patience = 3 * time.Second
	}
	for name, inject := range map[string]func(h2Stream){
		"GOAWAY":         func(s h2Stream) { s.goAway(0, h2NoError) },
		"REFUSED_STREAM": func(s h2Stream) { s.reset(h2RefusedStream) },
		"PROTOCOL_ERROR": func(s h2Stream) { s.reset(h2ProtocolError) },
	} {
		for _, kind := range faultCalls {
			t.Run(name+"/"+kind.method, func(t *testing.T) {
				srv := startH2(t, func(h2Stream) {}, func(_ int64, s h2Stream) { inject(s) })
				policy := quick
				policy.ReadTimeout, policy.WriteTimeout = patience, patience
				client := faultClient(t, srv.url, h2Transport(t), labhealth.WithRetry(policy))
				start := time.Now()
				err := kind.call(t, client)
				most := int64(1)
				if kind.method == "GET" {
					most = 9 // three attempts, each of which net/http repeats until it is stopped
				}
				n := srv.commits.Load()
				t.Logf("%d requests in %v", n, time.Since(start).Round(time.Millisecond))
				if n > most || labhealth.OutcomeOf(err) != unknown {
					t.Errorf("%d requests, want at most %d; %v", n, most, err)
				}
			})
		}
	}
}

// A server that says GOAWAY before it has seen a request, and then takes one all the same or hangs up. How far the client gets
// depends on who is quicker.
func TestGoAwayAtOnce(t *testing.T) {
	for _, closes := range []bool{false, true} {
		for _, kind := range faultCalls {
			srv := startH2(t, func(s h2Stream) {
				s.goAway(0, h2NoError)
				if closes {
					s.Writer.(net.Conn).Close()
				}
			}, func(_ int64, s h2Stream) { s.goAway(0, h2NoError) })
			err := kind.call(t, faultClient(t, srv.url, h2Transport(t)))
			commits, outcome := srv.commits.Load(), labhealth.OutcomeOf(err)
			t.Logf("closes %v, %s: %d connections, %d done: %v", closes, kind.method, srv.conns.Load(), commits, err)
			if commits > 9 || (commits > 1 && kind.method != "GET") || (commits > 0 && outcome == notSent) || outcome == applied || srv.conns.Load() > 12 {
				t.Error("that is too much")
			}
		}
	}
}

// A transport without hooks that carries a request out and then fails proves nothing.
func TestTransportsWithoutHooks(t *testing.T) {
	srv := startFaults(t, false, -1, func(x exchange) bool { x.raw().Close(); return true })
	inner := &http.Transport{}
	defer inner.CloseIdleConnections()
	for name, transport := range map[string]http.RoundTripper{
		"mock": roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				io.Copy(io.Discard, r.Body)
			}
			srv.commits.Add(1)
			return nil, errors.New("connection refused")
		}),
		"mock of a refused connection": roundTripper(func(r *http.Request) (*http.Response, error) {
			srv.commits.Add(1)
			return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
		}),
		"context of its own": roundTripper(func(r *http.Request) (*http.Response, error) {
			return inner.RoundTrip(r.WithContext(context.Background()))
		}),
		"answer and error": roundTripper(func(r *http.Request) (*http.Response, error) {
			srv.commits.Add(1)
			return answerTo(r, 200, faultAnswer), errors.New("both")
		}),
	} {
		for _, kind := range faultCalls {
			t.Run(name+"/"+kind.method, func(t *testing.T) {
				out := captureLog(t)
				before := srv.commits.Load()
				var r labhealth.Response
				err := kind.call(t, faultClient(t, srv.URL, transport), labhealth.WithResponse(&r))
				got := came{int64(r.Attempts), srv.commits.Load() - before, labhealth.OutcomeOf(err)}
				want := came{1, 1, unknown}
				if kind.method == "GET" {
					want = came{3, 3, unknown}
				}
				if got != want {
					t.Errorf("%v, want %v: %v", got, want, err)
				}
				if text := out.String(); text != "" {
					t.Errorf("written to the default logger: %q", text)
				}
			})
		}
	}
}

// With a key, creating an order may be repeated: with the same key and the same bytes.
func TestIdempotencyKeyRepeats(t *testing.T) {
	for _, row := range []struct {
		fault   string
		inject  func(exchange) bool
		outcome labhealth.Outcome
	}{
		{"closed", func(x exchange) bool { x.raw().Close(); return true }, unknown},
		{"503", respond(503, `{}`), unknown},
		{"408", respond(408, `{}`), unknown},
		{"429", respond(429, `{}`), rejected},
	} {
		var mu sync.Mutex
		sent := map[string]int{}
		inject := func(x exchange) bool {
			mu.Lock()
			sent[x.req.Header.Get("X-Idempotency-Key")+" "+x.req.Header.Get("Content-Length")]++
			mu.Unlock()
			return row.inject(x)
		}
		srv := startFaults(t, false, -1, inject)
		var r labhealth.Response
		body := labhealth.CreateOrderBody{}
		_, err := faultClient(t, srv.URL, nil).Orders.Create(t.Context(), body, labhealth.WithoutValidation(), labhealth.WithIdempotencyKey("k-1"), labhealth.WithResponse(&r))
		mu.Lock()
		if r.Attempts != 3 || labhealth.OutcomeOf(err) != row.outcome || len(sent) != 1 {
			t.Errorf("%s: %d attempts, %v, sent %v", row.fault, r.Attempts, labhealth.OutcomeOf(err), sent)
		}
		mu.Unlock()
	}
}

// cutConn loses what is written after up bytes, and ends after down bytes were read.
type cutConn struct {
	net.Conn
	up, down *int // nil for no limit
}

func (c cutConn) Write(p []byte) (int, error) {
	if c.up == nil {
		return c.Conn.Write(p)
	}
	n := min(len(p), *c.up)
	c.Conn.Write(p[:n])
	*c.up -= n
	if *c.up == 0 {
		c.Conn.Close()
	}
	return len(p), nil // as far as the sender knows
}

func (c cutConn) Read(p []byte) (int, error) {
	if c.down == nil {
		return c.Conn.Read(p)
	}
	if *c.down == 0 {
		c.Conn.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p[:min(len(p), *c.down)])
	*c.down -= n
	return n, err
}

// The request cut after every byte, and the answer cut after every byte.
func TestCutAfterEveryByte(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		srv := startFaults(t, false, -1, func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			if chunked {
				io.WriteString(x, faultAnswer[:50])
				http.NewResponseController(x.ResponseWriter).Flush()
				io.WriteString(x, faultAnswer[50:])
				return true
			}
			io.WriteString(x, faultAnswer)
			return true
		})
		cases := 0
		seen := map[string]int{}
		dials := int64(0)
		// once makes one call on new connections and reports whether it was cut.
		once := func(up, down *int) bool {
			cases++
			conn := cutConn{up: up, down: down}
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if err == nil {
					dials++
				}
				conn.Conn = c
				return conn, err
			}}
			client := faultClient(t, srv.URL, transport)
			before := srv.commits.Load()
			_, err := client.Orders.Import(t.Context(), faultImport())
			client.CloseIdleConnections()
			srv.settle(dials)
			commits, outcome := srv.commits.Load()-before, labhealth.OutcomeOf(err)
			seen[fmt.Sprintf("%v, %d done", outcome, commits)]++
			if commits > 1 || (outcome == notSent && commits != 0) || (outcome == applied && commits != 1) || outcome == rejected {
				t.Errorf("%v, %d done: %v", outcome, commits, err)
			}
			return err != nil
		}
		for n := 0; !chunked; n++ {
			if up := n; !once(&up, nil) {
				break
			}
		}
		for n := 0; ; n++ {
			if down := n; !once(nil, &down) {
				break
			}
		}
		t.Logf("chunked %v, %d cases: %v", chunked, cases, seen)
		if cases < 800 && !chunked {
			t.Errorf("%d cases", cases)
		}
	}
}

// A connection that is kept dies: while nobody uses it, or when the next request, or the one after, has come in.
func TestReusedConnectionDies(t *testing.T) {
	for _, kind := range faultCalls {
		var dies atomic.Int64
		srv := startFaults(t, false, -1, func(x exchange) bool {
			if dies.Load() == 0 || dies.Add(1)%2 == 0 {
				x.answer(200, faultAnswer)
				return true
			}
			x.raw().Close()
			return true
		})
		seen := map[string]int{}
		for range 50 {
			client := faultClient(t, srv.URL, nil)
			dies.Store(0)
			if err := kind.call(t, client); err != nil {
				t.Fatal(err)
			}
			if rand.N(2) == 0 {
				dies.Store(1 + rand.N[int64](2))
			} else {
				srv.CloseClientConnections()
			}
			before := srv.commits.Load()
			err := kind.call(t, client)
			client.CloseIdleConnections()
			commits, outcome := srv.commits.Load()-before, labhealth.OutcomeOf(err)
			seen[fmt.Sprintf("%v, %d done", outcome, commits)]++
			if kind.method == "GET" && err != nil {
				t.Errorf("GET: %v", err)
			}
			if kind.method != "GET" && commits > 1 || (outcome == notSent && commits != 0) || (outcome == applied && commits == 0) {
				t.Errorf("%s: %v, %d done: %v", kind.method, outcome, commits, err)
			}
		}
		t.Logf("%s: %v", kind.method, seen)
	}
}

// A total outage costs at most a hundred extra requests per thousand calls.
func TestOutage(t *testing.T) {
	srv := startFaults(t, false, -1, respond(503, `{}`))
	client := faultClient(t, srv.URL, nil)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			for range 100 {
				client.Orders.Get(t.Context(), faultOrderID)
			}
		})
	}
	calls.Wait()
	extra := srv.commits.Load() - 1000
	t.Logf("%d extra requests", extra)
	if extra < 50 || extra > 100 {
		t.Errorf("%d extra requests, want 50 to 100", extra)
	}
}

// A caller that cancels is told promptly, wherever the call is: each phase says itself when the client is there.
func TestCancelPromptly(t *testing.T) {
	hang := func(x exchange) { x.hang() }
	stalled := startFaults(t, false, -1, func(x exchange) bool { hang(x); return true })
	slow := startFaults(t, false, -1, cut(hang))
	slowError := startFaults(t, false, -1, func(x exchange) bool {
		x.answer(503, "{")
		http.NewResponseController(x.ResponseWriter).Flush()
		hang(x)
		return true
	})
	limited := startFaults(t, false, -1, respond(429, `{}`, "Retry-After", "59"))
	over := make(chan bool)
	defer close(over) // net/http leaves a connection that is being made to itself
	// watched is a client of url that calls there when it is at the phase. The call's context is to have the trace.
	type watched func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace)
	through := func(url string, transport http.RoundTripper) *labhealth.Client { return faultClient(t, url, transport) }
	connecting := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		return through(url, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			there()
			<-over
			return nil, errors.New("too late")
		}}), &httptrace.ClientTrace{}
	}
	handshake := func(_ string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		silent := acceptAll(t, func(c net.Conn) {
			c.Read(make([]byte, 1)) // of the client's hello
			there()
			io.Copy(io.Discard, c)
		})
		return through("https://"+silent.Addr().String(), nil), &httptrace.ClientTrace{}
	}
	sending := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) { // to a server that does not read
		return through(url, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			c, _ := net.Pipe()
			return watchedConn{c, there}, nil
		}}), &httptrace.ClientTrace{}
	}
	waiting := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		return through(url, nil), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { there() }}
	}
	reading := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		return through(url, roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			if err == nil {
				resp.Body = watchedBody{resp.Body, there}
			}
			return resp, err
		})), &httptrace.ClientTrace{}
	}
	retrying := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		return faultClient(t, url, nil, labhealth.WithObserver(func(context.Context, labhealth.Attempt) { there() })), &httptrace.ClientTrace{}
	}
	for _, phase := range []struct {
		name    string
		url     string
		client  watched
		outcome labhealth.Outcome // of a write
		joined  bool              // whether the last answer is joined
	}{
		{"connecting", "http://localhost", connecting, notSent, false},
		{"TLS handshake", "", handshake, notSent, false},
		{"sending", "http://localhost", sending, unknown, false},
		{"waiting for the answer", stalled.URL, waiting, unknown, false},
		{"reading the answer", slow.URL, reading, applied, false},
		{"reading an error", slowError.URL, reading, unknown, true},
		{"waiting to retry", limited.URL, retrying, rejected, true},
	} {
		var took []time.Duration
		for i := range 20 {
			kind := faultCalls[i%len(faultCalls)]
			ctx, cancel := context.WithCancel(t.Context())
			var at time.Time
			there := sync.OnceFunc(func() {
				go func() { // so that the client goes on
					at = time.Now()
					cancel()
				}()
			})
			client, trace := phase.client(phase.url, there)
			traced := httptrace.WithClientTrace(ctx, trace)
			var err error
			if kind.method == "GET" {
				_, err = client.Orders.Get(traced, faultOrderID)
			} else {
				_, err = client.Orders.Import(traced, faultImport())
			}
			<-ctx.Done()
			took = append(took, time.Since(at))
			var api *labhealth.APIError
			if !errors.Is(err, context.Canceled) || errors.As(err, &api) != phase.joined {
				t.Errorf("%s: %v", phase.name, err)
			}
			if got := labhealth.OutcomeOf(err); kind.method != "GET" && got != phase.outcome {
				t.Errorf("%s: %v, want %v", phase.name, got, phase.outcome)
			}
		}
		slices.Sort(took)
		t.Logf("%-24s median %v, most %v", phase.name, took[len(took)/2].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond))
		if took[len(took)/2] > 50*time.Millisecond {
			t.Errorf("%s: median %v", phase.name, took[len(took)/2])
		}
	}
}

// watchedConn and watchedBody call there when they are first used.
type watchedConn struct {
	net.Conn
	there func()
}

func (c watchedConn) Write(b []byte) (int, error) {
	c.there()
	return c.Conn.Write(b)
}

type watchedBody struct {
	io.ReadCloser
	there func()
}

func (b watchedBody) Read(p []byte) (int, error) {
	b.there()
	return b.ReadCloser.Read(p)
}

// The bytes are those of the moment of the call.
func TestRetrySendsTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := make(chan string)
		attempt := 0
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			bodies <- string(body)
			if attempt++; attempt == 1 {
				return answerTo(r, 429, `{}`, "Retry-After", "1"), nil
			}
			return answerTo(r, 200, faultAnswer), nil
		}))
		body := faultImport()
		raw := []byte(`{"note":"before"}`)
		for _, call := range []func() error{
			func() error { _, err := client.Orders.Import(t.Context(), body); return err },
			func() error { return client.Do(t.Context(), "POST", "/v2/any", raw, nil) },
		} {
			attempt = 0
			done := make(chan error)
			go func() { done <- call() }()
			was := <-bodies
			synctest.Wait() // the retry waits now
			body.OrderSet.LabTestIDs[0][0] ^= 0xff
			copy(raw, `{"note":"after!"}`)
			if is := <-bodies; was != is {
				t.Errorf("first %s\nthen %s", was, is)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// A cookie jar adds to the header of each attempt; attempts do not add up.
func TestRetrySendsTheSameHeader(t *testing.T) {
	var headers []http.Header
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		headers = append(headers, r.Header.Clone())
		return answerTo(r, 503, `{}`), nil
	})
	client := faultClient(t, testURL, nil, labhealth.WithHTTPClient(&http.Client{Transport: transport, Jar: oneCookie{}}))
	client.Orders.Get(t.Context(), faultOrderID)
	if len(headers) != 3 {
		t.Fatalf("%d attempts", len(headers))
	}
	equal(t, headers[0], headers[1])
	equal(t, headers[0], headers[2])
}

type oneCookie struct{ http.CookieJar }

func (oneCookie) Cookies(*url.URL) []*http.Cookie     { return []*http.Cookie{{Name: "a", Value: "b"}} }
func (oneCookie) SetCookies(*url.URL, []*http.Cookie) {}

func TestRetryWaits(t *testing.T) {
	at := func(d time.Duration, layout string) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(layout) }
	}
	text := func(s string) func() string { return func() string { return s } }
	for _, row := range []struct {
		name    string
		after   func() string // nil for none
		waits   time.Duration // -1 for a back-off with jitter, -2 for returning at once
		carried func(time.Duration) bool
	}{
		{"none", nil, -1, func(d time.Duration) bool { return d == 0 }},
		{"seconds", text("7"), 7 * time.Second, nil},
		{"seconds with spaces", text(" 7 "), 7 * time.Second, nil},
		{"none at all", text("0"), 0, nil},
		{"the cap", text("60"), time.Minute, nil},
		{"beyond the cap", text("61"), -2, func(d time.Duration) bool { return d == 61*time.Second }},
		{"IMF-fixdate", at(30*time.Second, http.TimeFormat), 30 * time.Second, nil},
		{"RFC 850", at(30*time.Second, "Monday, 02-Jan-06 15:04:05 GMT"), 30 * time.Second, nil},
		{"asctime", at(30*time.Second, time.ANSIC), 30 * time.Second, nil},
		{"date beyond the cap", at(2*time.Minute, http.TimeFormat), -2, func(d time.Duration) bool { return d == 2*time.Minute }},
		{"date in the past", at(-time.Hour, http.TimeFormat), -2, func(d time.Duration) bool { return d < 0 }},
		{"year 9999", text("Fri, 31 Dec 9999 23:59:59 GMT"), -2, func(d time.Duration) bool { return d > 290*365*24*time.Hour }},
		{"negative", text("-5"), -2, func(d time.Duration) bool { return d < 0 }},
		{"overflow of a duration", text("9223372037"), -2, func(d time.Duration) bool { return d > 290*365*24*time.Hour }},
		{"overflow of 64 bits", text("99999999999999999999"), -2, func(d time.Duration) bool { return d > 290*365*24*time.Hour }},
		{"negative overflow", text("-99999999999999999999"), -2, func(d time.Duration) bool { return d < 0 }},
		{"fraction", text("1.5"), -1, nil},
		{"junk", text("soon"), -1, nil},
		{"date without zone", text("Fri, 31 Dec 2027 23:59:59"), -1, nil},
	} {
		for _, kind := range faultCalls {
			t.Run(row.name+"/"+kind.method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					header := []string{}
					if row.after != nil {
						header = []string{"Retry-After", row.after()}
					}
					attempts := 0
					client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
						if attempts++; attempts == 1 {
							return answerTo(r, 429, `{}`, header...), nil
						}
						return answerTo(r, 200, faultAnswer), nil
					}), labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 2 * time.Second, MaxWait: 3 * time.Second}))
					start := time.Now()
					err := kind.call(t, client)
					took := time.Since(start)
					var api *labhealth.APIError
					switch {
					case row.waits == -2:
						if !errors.As(err, &api) || took != 0 || attempts != 1 || !row.carried(api.RetryAfter) {
							t.Errorf("%d attempts, %v, %v", attempts, took, err)
						}
					case row.waits == -1:
						if err != nil || took >= 2*time.Second || attempts != 2 {
							t.Errorf("%d attempts, %v, %v", attempts, took, err)
						}
					case err != nil || took != row.waits || attempts != 2:
						t.Errorf("%d attempts, %v, %v", attempts, took, err)
					}
				})
			})
		}
	}
}

// The back-off grows to its bound, never beyond, and is spread over all of it.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits [6][]time.Duration
		for range 300 {
			var last time.Time
			n := 0
			client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				if n > 0 {
					waits[n-1] = append(waits[n-1], time.Since(last))
				}
				n++
				last = time.Now()
				return answerTo(r, 503, ``), nil
			}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 7, BaseWait: time.Second, MaxWait: 6 * time.Second}))
			client.Orders.Get(t.Context(), faultOrderID)
		}
		for i, most := range []time.Duration{1, 2, 4, 6, 6, 6} {
			most *= time.Second
			slices.Sort(waits[i])
			low, high := waits[i][0], waits[i][len(waits[i])-1]
			if high > most || high < most*9/10 || low > most/10 {
				t.Errorf("wait %d is from %v to %v, want 0 to %v", i+1, low, high, most)
			}
		}
		for _, p := range []labhealth.RetryPolicy{
			{BaseWait: 1<<63 - 1, MaxWait: 1<<63 - 1}, {BaseWait: 1 << 62, MaxWait: 1<<63 - 1, MaxAttempts: 100}, {BaseWait: time.Hour, MaxWait: 1},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) { return answerTo(r, 503, ``), nil }),
				labhealth.WithRetry(p)).Orders.Get(ctx, faultOrderID)
			cancel()
		}
	})
}

// Nothing waits past the deadline, and the answer that asked for the wait comes back at once.
func TestNoWaitPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			return answerTo(r, 429, `{}`, "Retry-After", "20"), nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		_, err := client.Orders.Import(ctx, faultImport())
		if time.Since(start) != 0 || !errors.Is(err, labhealth.ErrRateLimited) || labhealth.OutcomeOf(err) != rejected {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Retries are switched off for a client, for a call, and for writes after a 429.
func TestRetryOff(t *testing.T) {
	for _, row := range []struct {
		name   string
		client labhealth.RetryPolicy
		call   labhealth.RetryPolicy
		get    int
		write  int
	}{
		{"off for the client", labhealth.RetryPolicy{MaxAttempts: 1}, labhealth.RetryPolicy{}, 1, 1},
		{"off for the call", labhealth.RetryPolicy{}, labhealth.RetryPolicy{MaxAttempts: 1}, 1, 1},
		{"strict", labhealth.RetryPolicy{Strict: true}, labhealth.RetryPolicy{}, 3, 1},
		{"strict for the call", labhealth.RetryPolicy{}, labhealth.RetryPolicy{Strict: true}, 3, 1},
		{"two", labhealth.RetryPolicy{MaxAttempts: 2}, labhealth.RetryPolicy{}, 2, 2},
	} {
		for _, kind := range faultCalls {
			row.client.BaseWait, row.client.MaxWait = 1, 1
			srv := startFaults(t, false, -1, respond(429, `{}`))
			var r labhealth.Response
			err := kind.call(t, faultClient(t, srv.URL, nil, labhealth.WithRetry(row.client)), labhealth.WithCallRetry(row.call), labhealth.WithResponse(&r))
			want := row.write
			if kind.method == "GET" {
				want = row.get
			}
			if r.Attempts != want || labhealth.OutcomeOf(err) != rejected {
				t.Errorf("%s, %s: %d attempts, want %d: %v", row.name, kind.method, r.Attempts, want, err)
			}
		}
	}
}

// An attempt after an unknown one changes what is known only if it succeeds.
func TestOutcomeOverAttempts(t *testing.T) {
	refused := func(r *http.Request) (*http.Response, error) {
		return (&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("refused")
		}}).RoundTrip(r)
	}
	status := func(n int) roundTripper {
		return func(r *http.Request) (*http.Response, error) { return answerTo(r, n, `{}`), nil }
	}
	for _, row := range []struct {
		name  string
		steps [2]roundTripper
		get   labhealth.Outcome
		write labhealth.Outcome
	}{
		{"429, then refused", [2]roundTripper{status(429), refused}, rejected, rejected},
		{"429, then 500", [2]roundTripper{status(429), status(500)}, unknown, unknown},
		{"refused, then 422", [2]roundTripper{refused, status(422)}, rejected, rejected},
		{"refused, then refused", [2]roundTripper{refused, refused}, notSent, notSent},
		{"503, then 404", [2]roundTripper{status(503), status(404)}, rejected, unknown},
		{"503, then refused", [2]roundTripper{status(503), refused}, unknown, unknown},
	} {
		for _, write := range []bool{false, true} {
			n := -1
			client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				n++
				return row.steps[n](r)
			}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2}))
			want := row.get
			var err error
			if write {
				want = row.write
				_, err = client.Orders.Create(t.Context(), labhealth.CreateOrderBody{}, labhealth.WithoutValidation(), labhealth.WithIdempotencyKey("k"))
			} else {
				_, err = client.Orders.Get(t.Context(), faultOrderID)
			}
			if got := labhealth.OutcomeOf(err); got != want || n != 1 {
				t.Errorf("%s, write %v: %v after %d attempts, want %v", row.name, write, got, n+1, want)
			}
		}
	}
}

func TestRedirects(t *testing.T) {
	var touched atomic.Int64
	target := acceptAll(t, func(net.Conn) { touched.Add(1) })
	_, port, _ := net.SplitHostPort(target.Addr().String())
	var location atomic.Value
	var keys atomic.Int64
	statuses := []int{301, 302, 303, 307, 308}
	var status atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Service-Api-Key") == testKey {
			keys.Add(1)
		}
		hop, isHop := strings.CutPrefix(r.URL.Path, "/hop/")
		n, _ := strconv.Atoi(hop)
		switch {
		case isHop && n > 0:
			w.Header().Set("Location", fmt.Sprintf("/hop/%d", n-1))
			w.WriteHeader(int(status.Load()))
		case isHop || r.URL.Path == "/there":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, faultAnswer)
		default:
			w.Header().Set("Location", strings.NewReplacer("SELF", r.Host, "PORT", port).Replace(location.Load().(string)))
			w.WriteHeader(int(status.Load()))
		}
	}))
	defer srv.Close()
	self := strings.TrimPrefix(srv.URL, "http://")
	for _, row := range []struct {
		name, location string
		host           string // in the error; empty if a GET follows
		requests       int64  // of a GET to the service
	}{
		{"path", "/there", "", 2},
		{"relative path", "../../there", "", 2},
		{"same origin", "http://SELF/there", "", 2},
		{"same origin in capitals", "HTTP://SELF/there", "", 2},
		{"no scheme, same host", "//SELF/there", "", 2},
		{"five hops", "/hop/4", "", 6},
		{"six hops", "/hop/5", self, 6},
		{"other port", "http://127.0.0.1:PORT/there", "127.0.0.1:" + port, 1},
		{"other host", "http://localhost:PORT/there", "localhost:" + port, 1},
		{"same host by another name", "http://localhost:" + portOf(srv.URL) + "/there", "localhost:" + portOf(srv.URL), 1},
		{"other scheme", "https://SELF/there", self, 1},
		{"no scheme, other host", "//127.0.0.1:PORT/there", "127.0.0.1:" + port, 1},
		{"user info", "http://ada:secret@SELF/there", self, 1},
		{"user info that looks like the host", "http://SELF@127.0.0.1:PORT/there", "127.0.0.1:" + port, 1},
		{"strange scheme", "ftp://SELF/there", self, 1},
	} {
		for _, code := range statuses {
			for _, kind := range faultCalls {
				location.Store(row.location)
				status.Store(int64(code))
				keys.Store(0)
				var r labhealth.Response
				err := kind.call(t, faultClient(t, srv.URL, nil), labhealth.WithResponse(&r))
				name := fmt.Sprintf("%s, %d, %s", row.name, code, kind.method)
				requests, host := row.requests, row.host
				if kind.method != "GET" {
					requests = 1
					if host == "" || strings.Contains(row.name, "hops") {
						host = self
					}
				}
				if keys.Load() != requests {
					t.Errorf("%s: %d requests, want %d", name, keys.Load(), requests)
				}
				if host == "" {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				var refused *labhealth.RedirectError
				if !errors.As(err, &refused) || refused.StatusCode != code || refused.Host != host || labhealth.OutcomeOf(err) != unknown {
					t.Errorf("%s: %v (%T), want a redirect to %s", name, err, err, host)
				}
				if r.StatusCode != code || r.Attempts != 1 {
					t.Errorf("%s: response %d after %d attempts", name, r.StatusCode, r.Attempts)
				}
			}
		}
	}
	// A location that is no address is not shown either.
	location.Store("http://[Ada Example/")
	for _, kind := range faultCalls {
		if err := kind.call(t, faultClient(t, srv.URL, nil)); err == nil || strings.Contains(fmt.Sprintf("%+v", err), "Ada") {
			t.Errorf("%s: %v", kind.method, err)
		}
	}
	if n := touched.Load(); n != 0 {
		t.Errorf("the target was touched %d times", n)
	}
}

// peakHeap runs f and returns by how much the heap grew meanwhile.
func peakHeap(f func()) int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	done := make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return int64(peak - before)
		case <-tick.C:
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
}

// What a hostile server sends costs at most four times the cap.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 8 << 20 // the default
	bomb := gzipOf(make([]byte, 1<<20))
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	nested := bytes.Repeat([]byte("["), limit-1)
	objects := bytes.Repeat([]byte(`{"a":`), (limit-1)/5)
	header := []byte("X-Filler: " + strings.Repeat("x", 4000) + "\r\n")
	hints := []byte("HTTP/1.1 103 Early Hints\r\n" + string(header) + "\r\n")
	for _, row := range []struct {
		name   string
		most   int64
		inject func(exchange) bool
	}{
		{"gzip bomb of 1 GiB", 4 * limit, func(x exchange) bool {
			x.Header().Set("Content-Encoding", "gzip")
			x.Header().Set("Content-Type", "application/json")
			for range 1 << 10 {
				if _, err := x.Write(bomb); err != nil {
					break
				}
			}
			return true
		}},
		{"gzip bomb in an error", 1 << 20, func(x exchange) bool {
			x.Header().Set("Content-Encoding", "gzip")
			x.WriteHeader(422)
			for range 1 << 10 {
				if _, err := x.Write(bomb); err != nil {
					break
				}
			}
			return true
		}},
		{"endless body", 4 * limit, func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			for {
				if _, err := x.Write(chunk); err != nil {
					return true
				}
			}
		}},
		{"endless body of a length", 4 * limit, func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			x.Header().Set("Content-Length", "1000000000000")
			for {
				if _, err := x.Write(chunk); err != nil {
					return true
				}
			}
		}},
		{"endless error", 1 << 20, func(x exchange) bool {
			x.WriteHeader(404)
			for {
				if _, err := x.Write(chunk); err != nil {
					return true
				}
			}
		}},
		{"20 MB of headers", 1 << 20, func(x exchange) bool {
			c := x.raw()
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for range 5000 {
				if _, err := c.Write(header); err != nil {
					return true
				}
			}
			io.WriteString(c, "\r\n")
			return true
		}},
		{"20 MB of interim answers", 1 << 20, func(x exchange) bool {
			c := x.raw()
			defer c.Close()
			for range 5000 {
				if _, err := c.Write(hints); err != nil {
					return true
				}
			}
			return true
		}},
		{"deep arrays", 4 * limit, func(x exchange) bool { x.answer(200, ""); x.Write(nested); return true }},
		{"deep objects", 4 * limit, func(x exchange) bool { x.answer(200, ""); x.Write(objects); return true }},
	} {
		srv := startFaults(t, false, -1, row.inject)
		client := faultClient(t, srv.URL, nil, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		var err error
		grown := peakHeap(func() { _, err = client.Orders.Get(t.Context(), faultOrderID) })
		t.Logf("%-26s %6.2f MiB: %v", row.name, float64(grown)/(1<<20), err)
		if err == nil || grown > row.most {
			t.Errorf("%s: the heap grew by %d bytes, want at most %d: %v", row.name, grown, row.most, err)
		}
		client.CloseIdleConnections()
		srv.Close()
	}
}

// openFiles is how many file descriptors the process has, -1 where that cannot be told.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(list)
}

// Failing calls leave nothing behind.
func TestFailuresLeaveNothing(t *testing.T) {
	calls := 1_000
	if long {
		calls = 10_000
	}
	faults := []func(exchange) bool{
		respond(200, faultAnswer), respond(500, "x"), respond(422, `{}`), respond(429, `{}`, "Retry-After", "100"),
		respond(200, "<html>"), cut(abort), func(x exchange) bool { x.raw().Close(); return true },
		respond(302, "", "Location", "https://elsewhere.example.com"), respond(302, "", "Location", "/self"),
		respond(200, strings.Repeat(" ", 5000)), respond(404, strings.Repeat("x", 100_000)), respond(204, ""),
		func(x exchange) bool { x.hang(); return true },
		func(x exchange) bool {
			c := x.raw()
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n")
			c.Close()
			return true
		},
	}
	var n atomic.Int64
	srv := startFaults(t, false, -1, func(x exchange) bool { return faults[n.Add(1)%int64(len(faults))](x) })
	refused := "http://" + closedAddress(t)
	policy := labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1, ReadTimeout: 20 * time.Millisecond, WriteTimeout: 20 * time.Millisecond}
	run := func(calls int) {
		client := faultClient(t, srv.URL, nil, labhealth.WithRetry(policy), labhealth.WithBodyLimit(4000))
		nobody := faultClient(t, refused, nil, labhealth.WithRetry(policy))
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range calls / 8 {
					switch {
					case i%50 == 7:
						faultCalls[w%4].call(t, nobody)
					case i%20 == 3:
						ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
						client.Orders.Import(ctx, faultImport())
						cancel()
					default:
						faultCalls[(w+i)%4].call(t, client)
					}
				}
			})
		}
		all.Wait()
		client.CloseIdleConnections()
		nobody.CloseIdleConnections()
	}
	state := func() (goroutines, files int, heap int64) {
		srv.CloseClientConnections()
		srv.settle(0)
		for range 200 {
			goroutines = runtime.NumGoroutine()
			runtime.Gosched()
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return goroutines, openFiles(), int64(m.HeapAlloc)
	}
	ignore := goleak.IgnoreCurrent()
	run(400) // pools, caches
	goroutines, files, heap := state()
	run(calls)
	if err := goleak.Find(ignore); err != nil {
		t.Error(err)
	}
	goroutines2, files2, heap2 := state()
	t.Logf("after %d calls: goroutines %d to %d, files %d to %d, heap %d to %d KiB", calls, goroutines, goroutines2, files, files2, heap>>10, heap2>>10)
	if goroutines2 > goroutines+2 || files2 > files+2 || heap2 > heap+512<<10 {
		t.Error("something was left behind")
	}
}

// The connections of other calls survive a call that fails or is canceled.
func TestOthersKeepTheirConnections(t *testing.T) {
	const warm = 20
	gate := make(chan bool)
	srv := startFaults(t, false, -1, func(x exchange) bool {
		switch x.req.URL.Path {
		case "/warm":
			<-gate
			x.answer(200, `{}`)
		case "/hang":
			x.hang()
		case "/close":
			x.raw().Close()
		default:
			x.answer(500, `{}`)
		}
		return true
	})
	client := faultClient(t, srv.URL, nil)
	// together makes calls that are all under way when meanwhile is called.
	together := func(meanwhile func()) {
		var all sync.WaitGroup
		before := srv.commits.Load()
		for range warm {
			all.Go(func() {
				if err := client.Do(t.Context(), "GET", "/warm", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		for srv.commits.Load() < before+warm {
			runtime.Gosched()
		}
		meanwhile()
		for range warm {
			gate <- true
		}
		all.Wait()
	}
	together(func() {
		for _, path := range []string{"/fail", "/close", "/hang"} {
			for _, method := range []string{"GET", "POST"} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				if err := client.Do(ctx, method, path, nil, nil); err == nil {
					t.Error("no error")
				}
				cancel()
			}
		}
	})
	before := srv.conns.Load()
	together(func() {})
	client.Do(t.Context(), "GET", "/fail", nil, nil)
	together(func() {})
	if anew := srv.conns.Load() - before; anew != 0 {
		t.Errorf("%d connections of others were made anew", anew)
	}
}
