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
	"time"

	"github.com/labhealth/labhealth-go"
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
		x.respond(status, body, header...)
		return status < 400 || status >= 500 || status == http.StatusRequestTimeout
	}
}

// cut sends half a 2xx answer and then ends the connection or waits.
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
	{"truncated JSON, whole body", 0, 1, respond(200, faultResponse[:40]), came{2, 2, applied}, came{1, 1, applied}},
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
		x.respond(503, `{"detail":`)
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
