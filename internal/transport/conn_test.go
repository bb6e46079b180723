package transport

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go/internal/testform"
)

func TestMain(m *testing.M) {
	testform.Choose()
	Poison = true
	goleak.VerifyTestMain(m)
}

// patience limits what ends at once on a machine that is not busy.
const patience = time.Minute

const secret = "Ada Example, born 1990-01-31"

// lockedBuffer is a default logger's output.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// catchLog returns what the default logger writes during the test.
func catchLog(t *testing.T) *lockedBuffer {
	t.Helper()
	var out lockedBuffer
	before := log.Writer()
	log.SetOutput(&out)
	t.Cleanup(func() { log.SetOutput(before) })
	return &out
}

// script is a server that responds to the n-th request on a connection with responses(n) and counts
// connections.
type script struct {
	url   string
	conns atomic.Int32
	pool  *tls.Config // nil without TLS
}

func serve(t *testing.T, secure bool, response func(n int, c net.Conn, r *http.Request)) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{url: "http://" + l.Addr().String()}
	if secure {
		from := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(from.Close)
		s.pool = from.Client().Transport.(*http.Transport).TLSClientConfig
		l = tls.NewListener(l, &tls.Config{Certificates: from.TLS.Certificates})
		s.url = "https://" + l.Addr().String()
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			running.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := 1; ; n++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					response(n, c, r)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return s
}

// client returns a client that trusts s and goes through proxy, if that is not empty.
func (s *script) client(t *testing.T, proxy string) *Client {
	transport := ownTransport()
	transport.TLSClientConfig = s.pool
	transport.TLSHandshakeTimeout = patience
	transport.Proxy = through(proxy)
	c := NewClient(&http.Client{Transport: transport})
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// through is the Proxy of a transport whose proxy has this URL.
func through(proxy string) func(*http.Request) (*url.URL, error) {
	if proxy == "" {
		return nil
	}
	return func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
}

// connectProxy starts a proxy for CONNECT and returns its URL and the number of its tunnels.
func connectProxy(t *testing.T) (proxy string, tunnels *atomic.Int32) {
	t.Helper()
	tunnels = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnels.Add(1)
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		w.WriteHeader(http.StatusOK)
		from, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			io.Copy(to, in) // which may have the first byte already
			to.Close()
		})
		both.Go(func() {
			io.Copy(from, to)
			from.Close()
		})
		both.Wait()
	}))
	t.Cleanup(srv.Close)
	return srv.URL, tunnels
}

func send(c *Client, method, url string) *Result {
	return c.Do(context.Background(), &Request{
		Method: method, URL: url, Header: http.Header{}, MaxBody: 1 << 20,
		Policy: Policy{Attempts: 1, ReadTimeout: patience, WriteTimeout: patience},
	}, accept)
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// responses are complete ones of every framing that keeps the connection, and the body they carry.
var responses = []struct{ name, text, body string }{
	{"length", "HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n{\"note\":\n\"a\\nb\", \"x\":12}", "{\"note\":\n\"a\\nb\", \"x\":12}"},
	{"length, odd header", "HTTP/1.1 200 OK\ncontent-LENGTH :7\nContent-Length:\t 2\n\n{}", ""},
	{"length, long header", "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 9000) + "\r\ncontent-length: 2\r\n\r\n{}", "{}"},
	{"length, long body", "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("x\n", 4500), strings.Repeat("x\n", 4500)},
	{"no body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", ""},
	{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab\ncd\r\n1\r\n\n\r\n0\r\n\r\n", "ab\ncd\n"},
	{"chunked, trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\n{}\r\n0\r\nX-T: 1\r\n\r\n", "{}"},
	{"chunked, large", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2328\r\n" + strings.Repeat("y", 9000) + "\r\n0\r\n\r\n", strings.Repeat("y", 9000)},
	{"gzip, length", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(gzipped("{}")), gzipped("{}")), "{}"},
	{"continue", "HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "{}"},
	{"chunked, with a length", "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "{}"},
	{"chunked, like a header", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n19\r\n\nContent-Length: 3000\n\n{}\r\n0\r\n\r\n", "\nContent-Length: 3000\n\n{}"},
	{"continue, then chunked", "HTTP/1.1 103 Early Hints\r\nContent-Length: 3000\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "{}"},
	{"folded header", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Folded: a\r\n Content-Length: 3000\r\n\r\n{}", "{}"},
	{"refused", "HTTP/1.1 422 Unprocessable\r\nContent-Length: 2\r\n\r\n{}", "{}"},
}

// Requests to an ordinary server share one connection, whatever the framing of the responses and
// however their bytes are split.
func TestConnectionsAreKept(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, a := range responses {
			if a.name == "length, odd header" {
				continue // net/http refuses it
			}
			for _, step := range []int{1, 7, 1 << 20} {
				if step == 1 && len(a.text) > 1000 {
					continue
				}
				// net/http waits 50 ms for the goroutine that wrote the request, or gives up the
				// connection: a busy machine may need some tries.
				conns := int32(0)
				for try := 0; try < 10 && conns != 1; try++ {
					s := serve(t, secure, func(_ int, c net.Conn, _ *http.Request) {
						for text := a.text; text != ""; {
							n := min(step, len(text))
							io.WriteString(c, text[:n])
							text = text[n:]
						}
					})
					c := s.client(t, "")
					for range 5 {
						r := send(c, "GET", s.url)
						if r.Err != nil || string(r.Response.Body) != a.body {
							t.Errorf("tls %v, %s, %d bytes at a time: %v, %q", secure, a.name, step, r.Err, r.Response.Body)
						}
					}
					conns = s.conns.Load()
					c.CloseIdleConnections()
				}
				if conns != 1 {
					t.Errorf("tls %v, %s, %d bytes at a time: %d connections", secure, a.name, step, conns)
				}
			}
		}
	}
}

// Bytes that follow a response, with its end or later, are not written to the default logger, close
// the connection and are no response to another request.
func TestUnaskedBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	proxy, _ := connectProxy(t)
	stray := "HTTP/1.1 200 OK\r\nContent-Length: " + fmt.Sprint(len(secret)) + "\r\n\r\n" + secret
	for _, extra := range []string{secret, "\n" + secret, stray, "\r\n" + stray} {
		for _, way := range []struct {
			secure bool
			proxy  string
		}{{false, ""}, {true, ""}, {true, proxy}} {
			secure := way.secure
			for _, a := range responses {
				for _, how := range []string{"with the end", "right after", "later"} {
					name := fmt.Sprintf("%q after %s, %s, tls %v, proxy %q", extra[:min(len(extra), 8)], a.name, how, secure, way.proxy)
					out := catchLog(t)
					later, ended := make(chan bool), make(chan bool)
					s := serve(t, secure, func(_ int, c net.Conn, r *http.Request) {
						switch {
						case r.URL.Path == "/next":
							io.WriteString(c, a.text)
							return
						case how == "with the end":
							io.WriteString(c, a.text+extra)
						case how == "right after":
							io.WriteString(c, a.text)
							io.WriteString(c, extra)
						default:
							io.WriteString(c, a.text)
							<-later
							io.WriteString(c, extra)
						}
						c.SetReadDeadline(time.Now().Add(patience))
						if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
							t.Error(name + ": the connection was kept")
						}
						close(ended)
						c.Close()
					})
					c := s.client(t, way.proxy)
					send(c, "GET", s.url)
					close(later)
					if how != "with the end" || len(a.text) > 1000 {
						<-ended // else they look like the response to a request that is quick enough
					}
					r := send(c, "GET", s.url+"/next") // a GET, because it may still meet the connection that ends
					if r.Response != nil && strings.Contains(string(r.Response.Body), secret) {
						t.Error(name + ": the stray bytes were taken for an response")
					}
					if a.body != "" && (r.Response == nil || string(r.Response.Body) != a.body) {
						t.Errorf("%s: the next call failed: %v, %+v", name, r.Err, r.Fault)
					}
					<-ended
					c.CloseIdleConnections()
					if text := out.String(); text != "" {
						t.Errorf("%s: written to the default logger: %q", name, text)
					}
				}
			}
		}
	}
}

// Bytes that arrive after a request got the connection, and before it is written, are not its
// response.
func TestBytesBeforeRequest(t *testing.T) {
	client, server := net.Pipe()
	var served sync.WaitGroup
	served.Go(func() {
		defer server.Close()
		io.ReadFull(server, make([]byte, 3))
		io.WriteString(server, "HTTP/1.1 204 No Content\r\n\r\n")
		io.WriteString(server, secret)
	})
	c, line := newConn(client), make([]byte, 100)
	c.acquire()
	io.WriteString(c, "GET")
	for range 2 {
		if _, err := c.Read(line); err != nil {
			t.Fatal(err)
		}
	}
	c.release()
	c.acquire()
	if n, err := c.Read(line); n > 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%q, %v", line[:n], err)
	}
	served.Wait()
}

// A length that net/http may read otherwise ends the connection, and nothing of the response is
// logged.
func TestInvalidLengths(t *testing.T) {
	for name, header := range map[string]string{
		"long":      "Content-Length:" + strings.Repeat(" ", 300) + "2\r\n",
		"folded":    "Content-Length:\r\n 2\r\n",
		"different": "Content-Length: 2\r\nContent-Length: 3000\r\n",
		"empty":     "Content-Length:\r\n",
		"signed":    "Content-Length: +2\r\n",
		"too large": "Content-Length: 99999999999999999999\r\n",
	} {
		out := catchLog(t)
		s := serve(t, false, func(_ int, c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+header+"\r\n{}"+secret)
			c.Close()
		})
		c := s.client(t, "")
		if r := send(c, "POST", s.url); r.Err == nil || r.Outcome != Unknown {
			t.Errorf("%s: %v, outcome %v", name, r.Err, r.Outcome)
		}
		c.CloseIdleConnections()
		if text := out.String(); text != "" {
			t.Errorf("%s: written to the default logger: %q", name, text)
		}
	}
}

// net/http alone writes them, or else the test above shows nothing.
func TestNetHTTPWritesUnaskedBytes(t *testing.T) {
	out := catchLog(t)
	ended := make(chan bool)
	s := serve(t, false, func(_ int, c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"+secret)
		c.Read(make([]byte, 1))
		close(ended)
	})
	c := &http.Client{Transport: &http.Transport{}}
	if resp, err := c.Get(s.url); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	<-ended
	if !strings.Contains(out.String(), secret) {
		t.Errorf("net/http wrote %q: if it has stopped doing so, conn can go", out)
	}
}

// A server that speaks first is not quoted either.
func TestGreeting(t *testing.T) {
	out := catchLog(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, secret+"\r\n")
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	c := NewClient(nil)
	for range 50 {
		if r := send(c, "GET", "http://"+l.Addr().String()); r.Err == nil {
			t.Error("no error")
		}
	}
	c.CloseIdleConnections()
	l.Close()
	<-done
	if text := out.String(); text != "" {
		t.Errorf("written to the default logger: %q", text)
	}
}

// The connection of a TLS handshake that fails is closed.
func TestFailedHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		go io.Copy(io.Discard, server)
		go io.WriteString(server, "HTTP/1.1 400 Bad Request\r\n\r\n")
		err := handshake(t.Context(), tls.Client(client, &tls.Config{ServerName: "example.com"}), patience)
		if !IsCertificate(err) {
			t.Error(err)
		}
		client.SetReadDeadline(time.Now().Add(patience))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the connection is open: %v", err)
		}
	})
}

// Through a proxy, HTTP/1.1 over TLS uses one connection per request and logs nothing, and HTTP/2
// uses one for all.
func TestTunnel(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
		srv.EnableHTTP2 = h2
		closed := make(chan bool, 10)
		srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- true
			}
		}
		srv.StartTLS()
		proxy, tunnels := connectProxy(t)
		want, proto := int32(10), "HTTP/1.1"
		if h2 {
			want, proto = 1, "HTTP/2.0"
		}
		transport := ownTransport()
		transport.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
		transport.Proxy = through(proxy)
		c := NewClient(&http.Client{Transport: transport})
		for range 10 {
			if r := send(c, "GET", srv.URL); r.Err != nil || string(r.Response.Body) != proto {
				t.Errorf("%v, %q, want %s", r.Err, r.Response.Body, proto)
			}
		}
		if n := tunnels.Load(); n != want {
			t.Errorf("%s: %d connections, want %d", proto, n, want)
		}
		c.CloseIdleConnections()
		for range want {
			select {
			case <-closed:
			case <-time.After(patience):
				t.Errorf("%s: a connection is still open", proto)
			}
		}
		srv.Close()
	}
}

// A client speaks the version of HTTP that net/http would speak with the same transport, directly
// and through a proxy.
func TestHTTPVersion(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	trusted := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	proxy, _ := connectProxy(t)
	protocols := func(http1, http2 bool) *http.Protocols {
		p := new(http.Protocols)
		p.SetHTTP1(http1)
		p.SetHTTP2(http2)
		return p
	}
	handshake := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&tls.Dialer{Config: &tls.Config{RootCAs: trusted, NextProtos: []string{"h2", "http/1.1"}}}).DialContext(ctx, network, addr)
	}
	for _, row := range []struct {
		name, godebug string
		make          func() *http.Transport
		want          string
	}{
		{"own", "", ownTransport, "HTTP/2.0"},
		{"own", "http2client=0", ownTransport, "HTTP/1.1"},
		{"zero", "", func() *http.Transport { return &http.Transport{} }, "HTTP/2.0"},
		{"zero", "http2client=0", func() *http.Transport { return &http.Transport{} }, "HTTP/1.1"},
		{"with a configuration", "", func() *http.Transport { return &http.Transport{TLSClientConfig: &tls.Config{}} }, "HTTP/1.1"},
		{"with a dialer", "", func() *http.Transport {
			return &http.Transport{DialContext: (&net.Dialer{}).DialContext}
		}, "HTTP/1.1"},
		{"with a dialer, forced", "", func() *http.Transport {
			return &http.Transport{DialContext: (&net.Dialer{}).DialContext, ForceAttemptHTTP2: true}
		}, "HTTP/2.0"},
		{"with a TLS dialer, forced", "", func() *http.Transport {
			return &http.Transport{DialTLSContext: handshake, ForceAttemptHTTP2: true}
		}, "HTTP/2.0"},
		{"HTTP/1 only", "", func() *http.Transport { return &http.Transport{Protocols: protocols(true, false)} }, "HTTP/1.1"},
		{"HTTP/2 only", "", func() *http.Transport { return &http.Transport{Protocols: protocols(false, true)} }, "HTTP/2.0"},
		{"turned off", "", func() *http.Transport {
			return &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
		}, "HTTP/1.1"},
	} {
		for _, through := range []func(*http.Request) (*url.URL, error){nil, through(proxy)} {
			t.Run(fmt.Sprintf("%s/%s/proxy %v", row.name, row.godebug, through != nil), func(t *testing.T) {
				t.Setenv("GODEBUG", row.godebug)
				transport := row.make()
				transport.Proxy = through
				transport.Clone() // after this the configuration of TLS does not decide on the version any more
				if transport.TLSClientConfig == nil {
					transport.TLSClientConfig = &tls.Config{}
				}
				transport.TLSClientConfig.RootCAs = trusted
				original := http.Client{Transport: transport}
				defer original.CloseIdleConnections()
				if resp, err := original.Get(srv.URL); err != nil || resp.Proto != row.want {
					t.Fatalf("net/http: %v, %v, want %s", resp, err, row.want)
				} else {
					resp.Body.Close()
				}
				c := NewClient(&original)
				defer c.CloseIdleConnections()
				for range 3 {
					if r := send(c, "GET", srv.URL); r.Err != nil || string(r.Response.Body) != row.want {
						t.Errorf("%v, %+v, want %s", r.Err, r.Response, row.want)
					}
				}
			})
		}
	}
}

// lossy is a connection whose peer is gone, without a word, once lost is true.
type lossy struct {
	net.Conn
	lost *atomic.Bool
}

func (l lossy) Write(p []byte) (int, error) {
	if l.lost.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

// pipes is a listener for connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error { return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A read gives up an HTTP/2 connection from which nothing comes, and succeeds on another.
func TestDeadHTTP2Connection(t *testing.T) {
	certificates := httptest.NewTLSServer(http.NotFoundHandler())
	defer certificates.Close()
	synctest.Test(t, func(t *testing.T) {
		arrived := make(pipes)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Error(r.Proto)
			}
		}), TLSConfig: &tls.Config{Certificates: certificates.TLS.Certificates}, ErrorLog: log.New(io.Discard, "", 0)}
		go srv.ServeTLS(arrived, "", "")
		var lost []*atomic.Bool
		transport := ownTransport()
		transport.Proxy = nil
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			arrived <- there
			lost = append(lost, new(atomic.Bool))
			return lossy{here, lost[len(lost)-1]}, nil
		}
		c := NewClient(&http.Client{Transport: transport})
		for _, attempts := range []int{1, 2} {
			r := c.Do(t.Context(), &Request{
				Method: "GET", URL: "https://example.com/", Header: http.Header{}, MaxBody: 1 << 20,
				Policy: Policy{Attempts: 3, BaseWait: 1, MaxWait: 1, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute},
			}, accept)
			if r.Outcome != Applied || r.Attempts != attempts || len(lost) != attempts {
				t.Errorf("%d attempts, %d connections: %v", r.Attempts, len(lost), r.Err)
			}
			lost[0].Store(true)
		}
		c.CloseIdleConnections()
		close(arrived)
		srv.Close()
	})
}
