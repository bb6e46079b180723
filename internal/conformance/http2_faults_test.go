package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

// h2Server is a minimal HTTP/2 server without TLS.
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

func (s h2Stream) frame(kind, flags byte, id uint32, payload ...byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), id)
	s.Write(append(head, payload...))
}

// respond sends a 200 with a JSON body.
func (s h2Stream) respond(body string) {
	header := append([]byte{0x88 /* :status 200 */, 0x0f, 0x10 /* content-type */}, byte(len("application/json")))
	s.frame(h2Headers, h2EndHeaders, s.id, append(header, "application/json"...)...)
	s.frame(h2Data, h2EndStream, s.id, []byte(body)...)
}

// reset ends the stream with an error code.
func (s h2Stream) reset(code uint32) {
	s.frame(h2Reset, 0, s.id, binary.BigEndian.AppendUint32(nil, code)...)
}

// goAway sends that streams after last were not and will not be processed.
func (s h2Stream) goAway(last, code uint32) {
	s.frame(h2GoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code)...)
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

// startH2 starts an h2Server. It calls greet for each connection, and act for each complete request
// with the number of requests so far.
func startH2(t testing.TB, greet func(h2Stream), act func(n int64, s h2Stream)) *h2Server {
	s := &h2Server{}
	l := acceptAll(t, func(c net.Conn) {
		s.conns.Add(1)
		readH2(c, func() {
			h2Stream{c, 0}.frame(h2Settings, 0, 0)
			greet(h2Stream{c, 0})
		}, func(kind, flags byte, id uint32) {
			if (kind == h2Headers || kind == h2Data) && flags&h2EndStream != 0 {
				act(s.commits.Add(1), h2Stream{c, id})
			}
		})
	})
	s.url = "http://" + l.Addr().String()
	return s
}

// readH2 reads the frames of a client. It calls greet after the preface, which must send settings,
// and on for each frame other than those that it acknowledges.
func readH2(c io.ReadWriter, greet func(), on func(kind, flags byte, id uint32)) {
	if _, err := io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	out := h2Stream{c, 0}
	greet()
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
		default:
			on(kind, flags, id)
		}
	}
}

// h2Transport speaks HTTP/2 without TLS.
func h2Transport(t testing.TB) *http.Transport {
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// mostConnections is how many connections a read can dial: each of three attempts may ask for four,
// and net/http may have begun to dial for the fifth request, which ends the attempt.
const mostConnections = 3 * 5

// Frames of HTTP/2 can say that a request was not processed. In this test that is false.
func TestFaultsOfHTTP2(t *testing.T) {
	refuse := func(s h2Stream) { s.reset(h2RefusedStream) }
	protocol := func(s h2Stream) { s.reset(h2ProtocolError) }
	goAway := func(s h2Stream) { s.goAway(0, h2NoError) }
	matrix := newMatrix(t)
	for _, row := range []struct {
		fault  string
		always bool
		inject func(h2Stream)
		get    result // attempts and commits are maxima: which faults net/http retries depends on the Go version
		write  result
	}{
		{"GOAWAY", false, goAway, result{3, 2, applied}, result{1, 1, unknown}},
		{"GOAWAY with an error", false, func(s h2Stream) { s.goAway(0, h2ProtocolError) }, result{3, 2, applied}, result{1, 1, unknown}},
		{"REFUSED_STREAM", false, refuse, result{3, 2, applied}, result{1, 1, unknown}},
		{"PROTOCOL_ERROR", false, protocol, result{3, 2, applied}, result{1, 1, unknown}},
		{"GOAWAY, always", true, goAway, result{3, 9, unknown}, result{1, 1, unknown}},
	} {
		for _, call := range faultCalls {
			t.Run(row.fault+"/"+call.method, func(t *testing.T) {
				srv := startH2(t, func(h2Stream) {}, func(n int64, s h2Stream) {
					if n == 1 || row.always {
						row.inject(s)
						return
					}
					s.respond(faultResponse)
				})
				client := faultClient(t, srv.url, h2Transport(t))
				var r labhealth.Response
				err := call.do(t, client, labhealth.WithResponse(&r))
				got := result{int64(r.Attempts), srv.commits.Load(), labhealth.OutcomeOf(err)}
				matrix.add(row.fault, call.method, "HTTP/2", got, err)
				want := row.write
				if call.method == "GET" {
					want = row.get
					want.attempts = min(want.attempts, got.attempts)
					want.commits = min(want.commits, got.commits)
				}
				if got != want {
					t.Errorf("%v, want %v: %v", got, want, err)
				}
				most := int64(9)
				if row.always && call.method == "GET" {
					most = mostConnections
				}
				if n := srv.conns.Load(); n > most {
					t.Errorf("%d connections, want at most %d", n, most)
				}
				if errors.Is(err, context.Canceled) {
					t.Error("nobody has canceled")
				}
			})
		}
	}
}

// The number of requests to a server that refuses all is bounded, however long the timeout.
func TestRefusedForever(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	patience := 300 * time.Millisecond
	if long {
		patience = 3 * time.Second
	}
	for name, inject := range map[string]func(h2Stream){
		"GOAWAY":         func(s h2Stream) { s.goAway(0, h2NoError) },
		"REFUSED_STREAM": func(s h2Stream) { s.reset(h2RefusedStream) },
		"PROTOCOL_ERROR": func(s h2Stream) { s.reset(h2ProtocolError) },
	} {
		for _, call := range faultCalls {
			t.Run(name+"/"+call.method, func(t *testing.T) {
				srv := startH2(t, func(h2Stream) {}, func(_ int64, s h2Stream) { inject(s) })
				policy := quick
				policy.ReadTimeout, policy.WriteTimeout = patience, patience
				client := faultClient(t, srv.url, h2Transport(t), labhealth.WithRetry(policy))
				start := time.Now()
				err := call.do(t, client)
				most := int64(1)
				if call.method == "GET" {
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

// A server sends GOAWAY before it has received a request, and then processes one or closes. How far
// the client gets depends on timing.
func TestImmediateGoAway(t *testing.T) {
	for _, closes := range []bool{false, true} {
		for _, call := range faultCalls {
			srv := startH2(t, func(s h2Stream) {
				s.goAway(0, h2NoError)
				if closes {
					s.Writer.(net.Conn).Close()
				}
			}, func(_ int64, s h2Stream) { s.goAway(0, h2NoError) })
			err := call.do(t, faultClient(t, srv.url, h2Transport(t)))
			commits, outcome := srv.commits.Load(), labhealth.OutcomeOf(err)
			t.Logf("closes %v, %s: %d connections, %d done: %v", closes, call.method, srv.conns.Load(), commits, err)
			if commits > 9 || (commits > 1 && call.method != "GET") || (commits > 0 && outcome == notSent) || outcome == applied || srv.conns.Load() > mostConnections {
				t.Error("that is too much")
			}
		}
	}
}

// earlyResponse is a server that takes no body of a request, and starts a response that it does not
// end.
type earlyResponse struct {
	net.Conn
	frames         chan []byte // to be written, so that reading never waits for the client
	status         byte        // the index of the status in the static table of HPACK
	encoding, body string
}

func (s *earlyResponse) Write(p []byte) (int, error) {
	s.frames <- bytes.Clone(p)
	return len(p), nil
}

func (s *earlyResponse) serve() {
	go func() {
		for frame := range s.frames {
			s.Conn.Write(frame)
		}
	}()
	defer close(s.frames)
	warm := false
	readH2(s, func() {
		h2Stream{s, 0}.frame(h2Settings, 0, 0, 0, 4 /* SETTINGS_INITIAL_WINDOW_SIZE */, 0, 0, 0, 0)
	}, func(kind, _ byte, id uint32) {
		switch stream := (h2Stream{s, id}); {
		case kind != h2Headers:
		case !warm: // the client has the settings when it has the response
			warm = true
			stream.respond(faultResponse)
		default:
			header := []byte{0x80 | s.status, 0x0f, 0x10 /* content-type */, byte(len("application/json"))}
			header = append(header, "application/json"...)
			if s.encoding != "" {
				header = append(header, 0x0f, 0x0b /* content-encoding */, byte(len(s.encoding)))
				header = append(header, s.encoding...)
			}
			stream.frame(h2Headers, h2EndHeaders, id, header...)
			stream.frame(h2Data, 0, id, []byte(s.body)...)
		}
	})
}

// A call ends with its deadline if the response has started, and the server neither ends it nor
// takes the body of the request. net/http waits for the latter without a limit.
func TestEarlyResponseStalls(t *testing.T) {
	const ok, internalServerError = 8, 14
	for _, row := range []struct {
		name           string
		status         byte
		encoding, body string
		want           error
	}{
		{"no body", ok, "", "", context.DeadlineExceeded},
		{"half a body", ok, "", faultResponse[:20], context.DeadlineExceeded},
		{"no compressed body", ok, "gzip", "", context.DeadlineExceeded},
		{"no body of an error", internalServerError, "", "", labhealth.ErrServer},
		{"half the body of an error", internalServerError, "", faultResponse[:20], labhealth.ErrServer},
		{"no compressed body of an error", internalServerError, "gzip", "", labhealth.ErrServer},
	} {
		for _, call := range faultCalls {
			t.Run(row.name+"/"+call.method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					transport := h2Transport(t)
					transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
						client, server := net.Pipe()
						t.Cleanup(func() { server.Close() })
						s := &earlyResponse{server, make(chan []byte, 100), row.status, row.encoding, row.body}
						go s.serve()
						return client, nil
					}
					client := faultClient(t, "http://127.0.0.1", transport)
					if err := client.Do(t.Context(), http.MethodGet, warmPath, nil, nil); err != nil {
						t.Fatal(err)
					}
					err := call.do(t, client)
					if labhealth.OutcomeOf(err) == notSent || labhealth.OutcomeOf(err) == rejected || !errors.Is(err, row.want) {
						t.Errorf("%v: %v", labhealth.OutcomeOf(err), err)
					}
				})
			})
		}
	}
}
