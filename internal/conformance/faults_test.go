package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

// result is how often a call was attempted, how often the server processed it, and the outcome of
// its error.
type result struct {
	attempts, commits int64
	outcome           labhealth.Outcome
}

func (r result) String() string {
	return fmt.Sprintf("%d attempts, %d commits, %v", r.attempts, r.commits, r.outcome)
}

// respond is a fault that is a response. The server does not process a request that it responds to
// with a 4xx, 408 excepted.
func respond(status int, body string, header ...string) func(exchange) bool {
	return func(x exchange) bool {
		x.respond(status, body, header...)
		return status < 400 || status >= 500 || status == http.StatusRequestTimeout
	}
}

// cut sends half a 2xx response and then calls end.
func cut(end func(exchange)) func(exchange) bool {
	return func(x exchange) bool {
		x.Header().Set("Content-Type", "application/json")
		x.Header().Set("Content-Length", strconv.Itoa(len(faultResponse)))
		io.WriteString(x, faultResponse[:len(faultResponse)/2])
		http.NewResponseController(x.ResponseWriter).Flush()
		end(x)
		return true
	}
}

func abort(exchange) { panic(http.ErrAbortHandler) }

// faultRow is what the package promises for one fault of a server that has read a request.
type faultRow struct {
	fault    string
	protocol int   // 0 for both
	bad      int64 // how many requests meet the fault, negative for all
	inject   func(exchange) bool
	get      result
	write    result
}

// faultTable has the faults that occur immediately.
var faultTable = []faultRow{
	{"none", 0, 0, nil, result{1, 1, applied}, result{1, 1, applied}},

	{"closed", 0, 1, func(x exchange) bool { x.raw().Close(); return true }, result{2, 2, applied}, result{1, 1, unknown}},
	{"closed, always", 0, -1, func(x exchange) bool { x.raw().Close(); return true }, result{3, 3, unknown}, result{1, 1, unknown}},
	{"reset", 0, 1, func(x exchange) bool {
		c := x.raw()
		tcpOf(c).SetLinger(0)
		tcpOf(c).Close()
		return true
	}, result{2, 2, applied}, result{1, 1, unknown}},
	{"stream aborted", 2, 1, func(x exchange) bool { abort(x); return true }, result{2, 2, applied}, result{1, 1, unknown}},
	{"garbage", 0, 1, func(x exchange) bool {
		c := x.raw()
		io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\nand more that is no frame and no header\r\n")
		c.Close()
		return true
	}, result{2, 2, applied}, result{1, 1, unknown}},
	{"half a header", 1, 1, func(x exchange) bool {
		c := x.raw()
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Ty")
		c.Close()
		return true
	}, result{2, 2, applied}, result{1, 1, unknown}},
	{"half a header", 2, 1, func(x exchange) bool {
		c := x.raw()
		h2Stream{c, 1}.frame(h2Headers, h2EndHeaders, 1, 0x88, 0x0f, 0x10, 100, 'a')
		c.Close()
		return true
	}, result{2, 2, applied}, result{1, 1, unknown}},
	{"truncated body", 0, 1, cut(abort), result{2, 2, applied}, result{1, 1, applied}},
	{"truncated body, always", 0, -1, cut(abort), result{3, 3, applied}, result{1, 1, applied}},
	{"truncated JSON, whole body", 0, 1, respond(200, faultResponse[:40]), result{2, 2, applied}, result{1, 1, applied}},
	{"body beyond the cap", 0, 1, respond(200, `{"id":"`+strings.Repeat("x", 5000)+`"}`), result{1, 1, applied}, result{1, 1, applied}},
	{"HTML", 0, 1, respond(200, "<html>Welcome</html>", "Content-Type", "text/html"), result{1, 1, unknown}, result{1, 1, unknown}},
	{"empty", 0, 1, respond(200, ""), result{1, 1, unknown}, result{1, 1, unknown}},

	{"429", 0, 1, respond(429, `{}`), result{2, 1, applied}, result{2, 1, applied}},
	{"429, Retry-After: 0", 0, 1, respond(429, `{}`, "Retry-After", "0"), result{2, 1, applied}, result{2, 1, applied}},
	{"429, always", 0, -1, respond(429, `{}`), result{3, 0, rejected}, result{3, 0, rejected}},
	{"429, Retry-After beyond the cap", 0, 1, respond(429, `{}`, "Retry-After", "61"), result{1, 0, rejected}, result{1, 0, rejected}},
	{"429, Retry-After overflowing", 0, 1, respond(429, `{}`, "Retry-After", "99999999999999999999"), result{1, 0, rejected}, result{1, 0, rejected}},
	{"429, Retry-After negative", 0, 1, respond(429, `{}`, "Retry-After", "-1"), result{1, 0, rejected}, result{1, 0, rejected}},
	{"429, Retry-After in the past", 0, 1, respond(429, `{}`, "Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"), result{2, 1, applied}, result{2, 1, applied}},
	{"429, Retry-After in the year 9999", 0, 1, respond(429, `{}`, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), result{1, 0, rejected}, result{1, 0, rejected}},

	{"500", 0, 1, respond(500, "Internal Server Error"), result{2, 2, applied}, result{1, 1, unknown}},
	{"500, always", 0, -1, respond(500, "Internal Server Error"), result{3, 3, unknown}, result{1, 1, unknown}},
	{"501", 0, 1, respond(501, `{}`), result{1, 1, unknown}, result{1, 1, unknown}},
	{"502", 0, 1, respond(502, "<html>"), result{2, 2, applied}, result{1, 1, unknown}},
	{"503, Retry-After: 0", 0, 1, respond(503, `{}`, "Retry-After", "0"), result{2, 2, applied}, result{1, 1, unknown}},
	{"503, Retry-After beyond the cap", 0, 1, respond(503, `{}`, "Retry-After", "61"), result{1, 1, unknown}, result{1, 1, unknown}},
	{"504", 0, 1, respond(504, `{}`), result{2, 2, applied}, result{1, 1, unknown}},
	{"505", 0, 1, respond(505, `{}`), result{1, 1, unknown}, result{1, 1, unknown}},
	{"599", 0, 1, respond(599, `{}`), result{2, 2, applied}, result{1, 1, unknown}},
	{"408", 0, 1, respond(408, `{}`), result{2, 2, applied}, result{1, 1, unknown}},
	{"400", 0, 1, respond(400, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
	{"401", 0, 1, respond(401, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
	{"403", 0, 1, respond(403, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
	{"404", 0, 1, respond(404, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
	{"409", 0, 1, respond(409, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
	{"422", 0, 1, respond(422, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
	{"425", 0, 1, respond(425, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
	{"304", 0, 1, respond(304, ""), result{1, 1, unknown}, result{1, 1, unknown}},

	{"301 to the same origin", 0, 1, respond(301, "", "Location", "/elsewhere"), result{1, 2, applied}, result{1, 1, unknown}},
	{"302 to the same origin", 0, 1, respond(302, "", "Location", "/elsewhere"), result{1, 2, applied}, result{1, 1, unknown}},
	{"303 to the same origin", 0, 1, respond(303, "", "Location", "/elsewhere"), result{1, 2, applied}, result{1, 1, unknown}},
	{"307 to the same origin", 0, 1, respond(307, "", "Location", "/elsewhere"), result{1, 2, applied}, result{1, 1, unknown}},
	{"308 to the same origin", 0, 1, respond(308, "", "Location", "/elsewhere"), result{1, 2, applied}, result{1, 1, unknown}},
	{"302 to elsewhere", 0, 1, respond(302, "", "Location", "https://elsewhere.example.com/"), result{1, 1, unknown}, result{1, 1, unknown}},
	{"307 to elsewhere", 0, 1, respond(307, "", "Location", "https://elsewhere.example.com/"), result{1, 1, unknown}, result{1, 1, unknown}},
	{"302 to itself, always", 0, -1, respond(302, "", "Location", "/elsewhere"), result{1, 6, unknown}, result{1, 1, unknown}},
	{"302 without Location", 0, 1, respond(302, ""), result{1, 1, unknown}, result{1, 1, unknown}},
}

// slowFaults has the faults that last until the deadline of an attempt.
var slowFaults = []faultRow{
	{"silence until the deadline", 0, 1, func(x exchange) bool { x.hang(); return true }, result{2, 2, applied}, result{1, 1, unknown}},
	{"slow body", 0, 1, cut(exchange.hang), result{2, 2, applied}, result{1, 1, applied}},
	{"503, slow body", 0, 1, func(x exchange) bool {
		x.respond(503, `{"detail":`)
		http.NewResponseController(x.ResponseWriter).Flush()
		x.hang()
		return true
	}, result{2, 2, applied}, result{1, 1, unknown}},
}

func TestFaultTable(t *testing.T) {
	matrix := newMatrix(t)
	run := func(row faultRow, f func(t *testing.T, protocol int, call faultCall)) {
		for _, protocol := range []int{1, 2} {
			if row.protocol != 0 && row.protocol != protocol {
				continue
			}
			for _, call := range faultCalls {
				t.Run(fmt.Sprintf("%s/%s/HTTP%d", row.fault, call.method, protocol), func(t *testing.T) { f(t, protocol, call) })
			}
		}
	}
	for _, row := range faultTable {
		run(row, func(t *testing.T, protocol int, call faultCall) {
			srv := startFaults(t, protocol == 2, row.bad, row.inject)
			transport := srv.Client().Transport
			defer srv.Client().CloseIdleConnections()
			if protocol == 1 {
				transport = nil
			}
			row.check(t, matrix, srv, protocol, call, faultClient(t, srv.URL, transport, labhealth.WithBodyLimit(4000)))
		})
	}
	for _, row := range slowFaults {
		run(row, func(t *testing.T, protocol int, call faultCall) {
			synctest.Test(t, func(t *testing.T) {
				l := newMemoryListener()
				srv := startFaultsOn(t, l, protocol == 2, row.bad, row.inject)
				transport := srv.Client().Transport.(*http.Transport)
				transport.DialContext = l.dial
				defer transport.CloseIdleConnections()
				row.check(t, matrix, srv, protocol, call, faultClient(t, srv.URL, transport))
			})
		})
	}
}

// check makes a call and compares its result with the row.
func (row faultRow) check(t *testing.T, matrix *matrix, srv *faultServer, protocol int, call faultCall, client *labhealth.Client) {
	t.Helper()
	want := row.write
	if call.method == "GET" {
		want = row.get
	}
	var r labhealth.Response
	err := call.do(t, client, labhealth.WithResponse(&r))
	got := result{int64(r.Attempts), srv.commits.Load(), labhealth.OutcomeOf(err)}
	matrix.add(row.fault, call.method, fmt.Sprintf("HTTP/%d", protocol), got, err)
	if got != want {
		t.Errorf("%v, want %v: %v", got, want, err)
	}
}

// matrix collects the results of a table, to print them with -v.
type matrix struct {
	mu   sync.Mutex
	text strings.Builder
}

func newMatrix(t *testing.T) *matrix {
	m := &matrix{}
	t.Cleanup(func() { t.Log("\n" + m.text.String()) })
	return m
}

func (m *matrix) add(fault, method, protocol string, got result, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", err), "*labhealth."), "<nil>")
	fmt.Fprintf(&m.text, "%-36s %-7s %-6s %-28v %s\n", fault, method, protocol, got, kind)
}

// Faults before a server has read anything.
func TestFaultsBeforeSending(t *testing.T) {
	plain := startFaults(t, false, 0, nil)
	secure := startFaults(t, true, 0, nil)
	refused := closedAddress(t)
	dialing := func(err error) *http.Transport {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
	}
	for _, row := range []struct {
		fault     string
		url       string
		transport *http.Transport
		attempts  int64
	}{
		{"refused", "http://" + refused, nil, 3},
		{"refused by a proxy", testURL, &http.Transport{Proxy: proxyAt("http://" + refused)}, 3},
		{"temporary DNS failure", testURL, dialing(&net.DNSError{IsTemporary: true}), 3},
		{"DNS timeout", testURL, dialing(&net.DNSError{IsTimeout: true}), 3},
		{"unknown host", testURL, dialing(&net.DNSError{IsNotFound: true}), 1},
		{"unreachable", testURL, dialing(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errors.New("unreachable"))}), 3},
		{"bad certificate", secure.URL, nil, 1},
		{"certificate of another host", "https://localhost:" + portOf(secure.URL), &http.Transport{TLSClientConfig: otherName(secure)}, 1},
		{"wrong scheme", strings.Replace(plain.URL, "http:", "https:", 1), nil, 1},
		{"lost before the headers were written", "http://localhost", &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				c, _ := net.Pipe()
				return brokenConn{c}, nil
			},
		}, 3},
	} {
		for _, call := range faultCalls {
			t.Run(row.fault+"/"+call.method, func(t *testing.T) {
				var transport http.RoundTripper
				if row.transport != nil {
					transport = row.transport
					defer row.transport.CloseIdleConnections()
				}
				checkNotSent(t, faultClient(t, row.url, transport), call, row.attempts)
			})
		}
	}
	if n := plain.commits.Load() + secure.commits.Load(); n != 0 {
		t.Errorf("%d commits", n)
	}
}

// Handshakes that a server or proxy leaves without a response.
func TestStalledHandshakes(t *testing.T) {
	for _, row := range []struct {
		fault     string
		transport *http.Transport
	}{
		{"TLS", &http.Transport{TLSHandshakeTimeout: time.Second}},
		{"TLS until the deadline", &http.Transport{}},
		{"proxy until the deadline", &http.Transport{Proxy: proxyAt("http://proxy.example.com")}},
	} {
		for _, call := range faultCalls {
			t.Run(row.fault+"/"+call.method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					transport := row.transport.Clone()
					transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
						client, silent := net.Pipe()
						go io.Copy(io.Discard, silent)
						return client, nil
					}
					checkNotSent(t, faultClient(t, testURL, transport), call, 3)
				})
			})
		}
	}
}

// checkNotSent makes a call of which nothing is sent.
func checkNotSent(t *testing.T, client *labhealth.Client, call faultCall, attempts int64) {
	t.Helper()
	var r labhealth.Response
	// Headers that are larger than net/http's buffer are written before they are complete.
	err := call.do(t, client, labhealth.WithResponse(&r), labhealth.WithHeader("X-Filler", strings.Repeat("x", 5000)))
	if got, want := int64(r.Attempts), attempts; got != want || labhealth.OutcomeOf(err) != notSent {
		t.Errorf("%d attempts, %v, want %d, %v: %v", got, labhealth.OutcomeOf(err), want, notSent, err)
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

// brokenConn fails to write.
type brokenConn struct{ net.Conn }

func (brokenConn) Write([]byte) (int, error) { return 0, errors.New("broken") }
