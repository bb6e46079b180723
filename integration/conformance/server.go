package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// server is the service of one case. It reads and writes bytes, and knows no client.
type server struct {
	testCase
	listener, other net.Listener
	certificate     tls.Certificate

	mu       sync.Mutex
	requests int
	commits  int
	orders   map[string]string // by idempotency key
	ids      []string          // of the orders that a response may name
	body     []byte            // of the first request
	changed  bool              // a later request had another body
	early    bool              // a request came before the time of Retry-After
	leaked   bytes.Buffer      // what another host received
	conns    map[net.Conn]bool

	notBefore time.Time // the time of the latest Retry-After

	running sync.WaitGroup
}

// maxRequests bounds a client that never stops.
const maxRequests = 200

// startServer starts the server of a case, and another host.
func startServer(c testCase) (*server, error) {
	s := &server{testCase: c, orders: map[string]string{}, conns: map[net.Conn]bool{}}
	if orderID := strings.TrimPrefix(c.suite.Calls["read"].Path, "/v3/order/"); c.call == "read" || c.call == "write" {
		s.ids = []string{orderID}
	}
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if s.other, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if c.Connect == "self-signed" {
		if s.certificate, err = selfSigned(); err != nil {
			return nil, err
		}
	}
	if c.Connect == "refused" {
		s.listener.Close()
	}
	s.running.Go(func() { s.accept(s.listener, s.serve) })
	s.running.Go(func() { s.accept(s.other, s.serveOther) })
	return s, nil
}

// url returns the base URL that the client gets.
func (s *server) url() string {
	if s.Connect == "" || s.Connect == "refused" {
		return "http://" + s.listener.Addr().String()
	}
	return "https://" + s.listener.Addr().String()
}

func (s *server) accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.running.Go(func() {
			serve(conn)
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// stop waits until the client has closed its connections, so that everything it sent is counted.
// After five seconds it closes those that the client has left open.
func (s *server) stop() {
	s.listener.Close()
	s.other.Close()
	force := time.AfterFunc(5*time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for conn := range s.conns {
			conn.Close()
		}
	})
	s.running.Wait()
	force.Stop()
}

func (s *server) serve(conn net.Conn) {
	switch s.Connect {
	case "closed in handshake":
		readByte(conn)
		return
	case "silent in handshake":
		discard(conn)
		return
	case "no tls":
		readByte(conn)
		io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		_ = conn.(*net.TCPConn).CloseWrite() // the client may have closed it
		discard(conn)
		return
	case "self-signed":
		config := &tls.Config{Certificates: []tls.Certificate{s.certificate}}
		conn = tls.Server(conn, config)
	}
	if first := s.next(false); first != nil && first.Read == "nothing" {
		s.next(true)
		s.end(conn, first.Then)
		return
	}
	for reader := bufio.NewReader(conn); s.exchange(conn, reader); {
	}
}

// next returns the fault of the next request, or nil. It counts the request if count is set.
func (s *server) next(count bool) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.requests
	if count {
		s.requests++
		s.early = s.early || time.Now().Before(s.notBefore)
	}
	if n := len(s.Network); s.Always && n > 0 {
		i = min(i, n-1)
	} else if i >= n {
		return nil
	}
	return &s.Network[i]
}

// exchange serves one request. It reports whether the connection can be used again.
func (s *server) exchange(conn net.Conn, reader *bufio.Reader) bool {
	if _, err := reader.Peek(1); err != nil {
		return false
	}
	if f := s.next(false); f != nil && f.Read == "byte" {
		s.next(true)
		s.end(conn, f.Then)
		return false
	}
	req, err := http.ReadRequest(reader)
	if err != nil {
		return false
	}
	if s.Warm && req.Method == http.MethodGet && req.URL.Path == s.suite.Warm {
		return s.send(conn, &response{Status: http.StatusOK}, "{}")
	}
	f := s.next(true)
	if f == nil {
		f = &fault{Commit: true, Send: &response{Status: http.StatusOK}}
	}
	if f.Read == "header" {
		return s.end(conn, f.Then)
	}
	return s.respond(conn, req, f)
}

// respond reads the rest of a request and does with it what a fault says. It reports whether the
// connection can be used again.
func (s *server) respond(conn net.Conn, req *http.Request, f *fault) bool {
	body, err := io.ReadAll(req.Body)
	if err != nil || s.count() > maxRequests {
		return false
	}
	usual := s.process(req, body, f.Commit)
	time.Sleep(milliseconds(f.DelayMS))
	s.mu.Lock()
	s.notBefore = time.Now().Add(milliseconds(f.WaitMS))
	s.mu.Unlock()
	send := f.Send
	if send == nil && f.Then == "" {
		send = &response{Status: http.StatusOK}
	}
	if send != nil && !s.send(conn, send, usual) && f.Then == "" {
		return false
	}
	return s.end(conn, f.Then)
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// process creates an order, if commit is set and the call creates one, and returns the usual
// response. A key that has created an order returns it.
func (s *server) process(req *http.Request, body []byte, commit bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body == nil {
		s.body = slices.Concat([]byte{}, body)
	}
	s.changed = s.changed || !bytes.Equal(s.body, body)
	id := ""
	if len(s.ids) > 0 {
		id = s.ids[len(s.ids)-1]
	}
	if commit && req.Method != http.MethodGet {
		key := ""
		if s.call == "create" {
			key = req.Header.Get("X-Idempotency-Key")
		}
		if known, ok := s.orders[key]; ok && key != "" {
			id = known
		} else {
			id = s.create(key)
		}
	}
	return fmt.Sprintf(`{"id":%q,"order":{"id":%[1]q},"status":"success","message":"done"}`, id)
}

// create counts a processed write and returns the ID of its order. The caller has locked the
// server.
func (s *server) create(key string) string {
	s.commits++
	if s.call == "write" {
		return s.ids[0]
	}
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", s.commits)
	s.ids = append(s.ids, id)
	s.orders[key] = id
	return id
}

// send writes a response. It reports whether the response is complete and leaves the connection
// usable.
func (s *server) send(conn net.Conn, r *response, usual string) bool {
	if r.Raw != "" {
		io.WriteString(conn, r.Raw)
		return false
	}
	io.WriteString(conn, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n", r.Hints))
	body := usual
	if r.Body != nil {
		body = *r.Body
	}
	status := fmt.Sprintf("HTTP/1.1 %d %s\r\n", r.Status, http.StatusText(r.Status))
	header := s.header(r, len(body))
	switch r.Stop {
	case "status":
		io.WriteString(conn, status[:len(status)/2])
		return false
	case "header":
		io.WriteString(conn, status+header[:len(header)-len(header)/3])
		return false
	case "body":
		sent := body[:len(body)/2]
		if r.Framing == "chunked" {
			sent = fmt.Sprintf("%x\r\n%s", len(body), sent)
		}
		io.WriteString(conn, status+header+sent)
		return false
	}
	if r.Framing == "chunked" {
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	_, err := io.WriteString(conn, status+header+body)
	return err == nil && r.Framing != "close"
}

// header returns the header of a response.
func (s *server) header(r *response, length int) string {
	h := http.Header{"Content-Type": {"application/json"}}
	hosts := strings.NewReplacer("{other}", "http://localhost:"+portOf(s.other), "{port}", "http://127.0.0.1:"+portOf(s.other))
	for name, value := range r.Headers {
		h.Set(name, hosts.Replace(value))
	}
	switch {
	case r.Status == http.StatusNoContent || r.Status == http.StatusNotModified:
		h.Del("Content-Type")
	case r.Framing == "chunked":
		h.Set("Transfer-Encoding", "chunked")
	case r.Framing == "close":
		h.Set("Connection", "close")
	default:
		h.Set("Content-Length", fmt.Sprint(length))
	}
	var b strings.Builder
	_ = h.Write(&b) // a strings.Builder does not fail
	return b.String() + "\r\n"
}

func portOf(l net.Listener) string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		panic(err) // the address of a TCP listener has a port
	}
	return port
}

// end does with a connection what a fault says. It reports whether the connection is kept.
func (s *server) end(conn net.Conn, then string) bool {
	switch then {
	case "reset":
		conn.(*net.TCPConn).SetLinger(0)
	case "stall":
		discard(conn)
	}
	return then == ""
}

// serveOther keeps what a redirect sends to another host, and responds.
func (s *server) serveOther(conn net.Conn) {
	reader := bufio.NewReader(io.TeeReader(conn, &leak{s}))
	req, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return
	}
	s.send(conn, &response{Status: http.StatusOK, Framing: "close"}, `{"status":"success"}`)
}

// leak keeps what another host receives.
type leak struct{ *server }

func (l *leak) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaked.Write(p)
}

// readByte waits for the first byte of a connection, after which the client has started to send.
func readByte(conn net.Conn) {
	var b [1]byte
	_, _ = conn.Read(b[:]) // the client may have closed it
}

// discard waits until the client has closed a connection.
func discard(conn net.Conn) {
	_, _ = io.Copy(io.Discard, conn) // nothing is expected
}

// selfSigned returns a certificate for 127.0.0.1 that nobody trusts.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, err
}
