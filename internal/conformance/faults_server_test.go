package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// long reports whether the long forms of tests are wanted.
var long = os.Getenv("LABHEALTH_TEST_LONG") == "1"

// faultOrderID is the order that fault servers know.
var faultOrderID = uuid.MustParse("3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803")

// faultAnswer serves every operation: it is an order, the answer to an order placed, and an object.
var faultAnswer = fmt.Sprintf(`{"id":%q,"order":{"id":%[1]q},"status":"success","message":"done"}`, faultOrderID)

// faultImport is a valid import.
func faultImport() labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           uuid.MustParse("c1b7e0d4-58a2-4f9e-8d36-90f5b2a4e617"),
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{uuid.MustParse("5d2a8f31-b6c4-4e07-a9d8-13f7c05e6b42")}},
		CollectionMethod: labhealth.CollectionMethodOnSiteCollection,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		SampleID: "SAMPLE-1",
	}
}

// faultCalls are one call of each kind.
var faultCalls = []struct {
	method string
	call   func(*testing.T, *labhealth.Client, ...labhealth.CallOption) error
}{
	{"GET", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		_, err := c.Orders.Get(t.Context(), faultOrderID, opts...)
		return err
	}},
	{"POST", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		_, err := c.Orders.Import(t.Context(), faultImport(), opts...)
		return err
	}},
	{"PATCH", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		_, err := c.Orders.Release(t.Context(), faultOrderID, opts...)
		return err
	}},
	{"DELETE", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		var out map[string]any
		return c.Do(t.Context(), http.MethodDelete, "/v2/user/"+faultOrderID.String(), nil, &out, opts...)
	}},
}

// quick has no waits worth mentioning.
var quick = labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}

// faultClient calls the service at url through transport, or through its own if that is nil.
func faultClient(t testing.TB, url string, transport http.RoundTripper, opts ...labhealth.Option) *labhealth.Client {
	t.Helper()
	opts = append([]labhealth.Option{labhealth.WithBaseURL(url), labhealth.WithRetry(quick)}, opts...)
	if transport != nil {
		opts = append(opts, labhealth.WithHTTPClient(&http.Client{Transport: transport}))
	}
	client, err := labhealth.NewClient(testKey, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// exchange is a request that a fault server has carried out and is to answer badly.
type exchange struct {
	http.ResponseWriter
	req  *http.Request
	conn net.Conn // under HTTP/2 shared with what net/http writes
	h2   bool
}

// raw returns the connection, to write on it what is no HTTP.
func (x exchange) raw() net.Conn {
	if x.h2 {
		return x.conn
	}
	c, _, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil {
		panic(err)
	}
	return c
}

// answer writes a whole answer; header holds names and values in turn.
func (x exchange) answer(status int, body string, header ...string) {
	h := x.Header()
	h.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	x.WriteHeader(status)
	io.WriteString(x, body)
}

// hang waits until the client has given up.
func (x exchange) hang() { <-x.req.Context().Done() }

// faultServer counts the requests that came in whole as commits, and answers badly first.
type faultServer struct {
	*httptest.Server
	commits, conns, ended atomic.Int64 // requests carried out; connections made and over
}

// settle waits until so many connections were made, and are over.
func (s *faultServer) settle(conns int64) {
	for s.conns.Load() < conns || s.ended.Load() < s.conns.Load() {
		runtime.Gosched()
	}
}

type connKey struct{}

// warmPath is answered by fault servers without further ado.
const warmPath = "/warm-up"

// startFaults answers the first bad requests with fault, all if bad is negative, and the others well. A fault with status 429 or
// 4xx is not carried out; fault says so by returning false.
func startFaults(t testing.TB, h2 bool, bad int64, fault func(exchange) (committed bool)) *faultServer {
	s := &faultServer{}
	var served atomic.Int64
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == warmPath {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || (r.ContentLength > 0 && int64(len(body)) != r.ContentLength) {
			return
		}
		n := served.Add(1)
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		x := exchange{w, r, conn, r.ProtoMajor == 2}
		if bad >= 0 && n > bad {
			s.commits.Add(1)
			x.answer(http.StatusOK, faultAnswer)
			return
		}
		s.commits.Add(1) // first, because what follows may end this goroutine
		if !fault(x) {
			s.commits.Add(-1)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.ended.Add(1)
		}
	}
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	if h2 {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// h2Server is an HTTP/2 server without TLS of as few frames as will do. It carries out each request that is complete, in act,
// which answers and says whether to go on with the connection.
type h2Server struct {
	url     string
	commits atomic.Int64
	conns   atomic.Int64
}

// h2Stream writes frames for one stream; stream 0 is the connection.
type h2Stream struct {
	io.Writer
	id uint32
}

const (
	h2Data     = 0x0
	h2Headers  = 0x1
	h2Reset    = 0x3
	h2Settings = 0x4
	h2Ping     = 0x6
	h2GoAway   = 0x7

	h2EndStream, h2Ack, h2EndHeaders = 0x1, 0x1, 0x4

	h2NoError, h2ProtocolError, h2RefusedStream = 0x0, 0x1, 0x7
)

func (s h2Stream) frame(kind, flags byte, id uint32, payload ...byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), id)
	s.Write(append(head, payload...))
}

// answer is 200 with a JSON body.
func (s h2Stream) answer(body string) {
	header := append([]byte{0x88 /* :status 200 */, 0x0f, 0x10 /* content-type */}, byte(len("application/json")))
	s.frame(h2Headers, h2EndHeaders, s.id, append(header, "application/json"...)...)
	s.frame(h2Data, h2EndStream, s.id, []byte(body)...)
}

// reset ends the stream with an error code.
func (s h2Stream) reset(code uint32) {
	s.frame(h2Reset, 0, s.id, binary.BigEndian.AppendUint32(nil, code)...)
}

// goAway says that streams after last were not and will not be carried out.
func (s h2Stream) goAway(last, code uint32) {
	s.frame(h2GoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code)...)
}

// startH2 starts an h2Server. greet is called for each connection, act for each request with the number of requests so far.
func startH2(t testing.TB, greet func(h2Stream), act func(n int64, s h2Stream)) *h2Server {
	s := &h2Server{}
	l := acceptAll(t, func(c net.Conn) {
		s.conns.Add(1)
		if _, err := io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		out := h2Stream{c, 0}
		out.frame(h2Settings, 0, 0)
		greet(out)
		for {
			var head [9]byte
			if _, err := io.ReadFull(c, head[:]); err != nil {
				return
			}
			first := binary.BigEndian.Uint32(head[:4])
			payload := make([]byte, first>>8)
			if _, err := io.ReadFull(c, payload); err != nil {
				return
			}
			kind, flags, id := byte(first), head[4], binary.BigEndian.Uint32(head[5:])
			switch {
			case kind == h2Settings && flags&h2Ack == 0:
				out.frame(h2Settings, h2Ack, 0)
			case kind == h2Ping && flags&h2Ack == 0:
				out.frame(h2Ping, h2Ack, 0, payload...)
			case (kind == h2Headers || kind == h2Data) && flags&h2EndStream != 0:
				act(s.commits.Add(1), h2Stream{c, id})
			}
		}
	})
	s.url = "http://" + l.Addr().String()
	return s
}

// acceptAll serves the connections of a listener of its own, until the test ends.
func acceptAll(t testing.TB, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			running.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return l
}

// h2Transport speaks HTTP/2 without TLS.
func h2Transport(t testing.TB) *http.Transport {
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// silentListener accepts and says nothing.
func silentListener(t testing.TB) net.Listener {
	return acceptAll(t, func(c net.Conn) { io.Copy(io.Discard, c) })
}

// closedAddress is where nobody listens.
func closedAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String()
}

// roundTripper is a function as a transport. It fires no hooks of net/http.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answerTo is an answer of a roundTripper.
func answerTo(r *http.Request, status int, body string, header ...string) *http.Response {
	sendOnce(r)
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// captureLog returns what the default logger writes until the test ends.
func captureLog(t testing.TB) *safeBuffer {
	out := &safeBuffer{}
	before := log.Writer()
	log.SetOutput(out)
	t.Cleanup(func() { log.SetOutput(before) })
	return out
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// tcpOf is the TCP connection below c.
func tcpOf(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*net.TCPConn)
}

// gzipOf returns b compressed.
func gzipOf(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}
