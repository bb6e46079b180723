package attack

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// secureName is the host of the service behind TLS, and proxyAddress that of the proxy before it.
const (
	secureName   = "service.example.com"
	proxyAddress = "proxy.example.com:3128"
)

// networkPlan is what happens to a connection below HTTP.
type networkPlan struct {
	Certificate string      `json:",omitzero"` // of certificates; empty for a valid one
	ALPN        string      `json:",omitzero"` // what the server speaks in place of what it is asked for
	TLS12       bool        `json:",omitzero"`
	ClientCert  bool        `json:",omitzero"` // the server demands a certificate of the client
	Bytes       []byteFault `json:",omitzero"`
	Proxy       *proxyPlan  `json:",omitzero"`
}

// byteFault happens at one byte of a connection, of the handshake or later.
type byteFault struct {
	Sent bool   `json:",omitzero"` // by the server
	At   int    `json:",omitzero"`
	Do   string `json:",omitzero"` // endClose, endReset, endStall, or doFlip
}

const doFlip = "flip" // changes a bit

// proxyPlan is what a proxy does with a CONNECT.
type proxyPlan struct {
	Status   int           `json:",omitzero"` // 0 is 200
	Storm    int           `json:",omitzero"` // informational responses before
	Delay    time.Duration `json:",omitzero"`
	Written  int           `json:",omitzero"` // it writes Written-1 bytes of the response, and does End; 0 for all
	Stray    string        `json:",omitzero"` // bytes after the response
	Responds bool          `json:",omitzero"` // it responds in place of the service, without TLS
	End      string        `json:",omitzero"` // of ends, after the response; empty connects
}

// networkProtocols are those with TLS.
var networkProtocols = []protocol{
	{"TLS, http1", "https://" + secureName, secureName + ":443", secure(false, false), serveTLS, false},
	{"TLS, http2", "https://" + secureName, secureName + ":443", secure(true, false), serveTLS, true},
	{"CONNECT, http1", "https://" + secureName, proxyAddress, secure(false, true), serveCONNECT, false},
	{"CONNECT, http2", "https://" + secureName, proxyAddress, secure(true, true), serveCONNECT, true},
}

// secure returns what configures a transport with TLS, and with a proxy.
func secure(http2, proxy bool) func(*world, *http.Transport) {
	return func(_ *world, t *http.Transport) {
		t.TLSClientConfig = &tls.Config{RootCAs: theAuthority.pool}
		t.ForceAttemptHTTP2 = http2
		t.TLSHandshakeTimeout = 10 * time.Second
		if http2 {
			keepIdle(t)
		}
		if proxy {
			t.Proxy = func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: proxyAddress}, nil }
		}
	}
}

// authority is an invented authority, with certificates for the service.
type authority struct {
	pool         *x509.CertPool
	certificates map[string]tls.Certificate
}

// theAuthority is valid at the time of synctest bubbles, the year 2000, and today.
var theAuthority = newAuthority()

func newAuthority() *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Example Authority"}, NotBefore: year(1990), NotAfter: year(2200),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &authority{pool: x509.NewCertPool(), certificates: map[string]tls.Certificate{}}
	for _, row := range []struct {
		name, host string
		end        int
		own        bool // it is signed by itself
	}{
		{"", secureName, 2200, false}, {"another name", "other.example.com", 2200, false},
		{"expired", secureName, 1999, false}, {"unknown authority", secureName, 2200, true},
	} {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: row.host}, DNSNames: []string{row.host},
			NotBefore: year(1990), NotAfter: year(row.end), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		parent := root
		if row.own {
			parent = leaf
		}
		encoded, err := x509.CreateCertificate(rand.Reader, leaf, parent, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		a.certificates[row.name] = tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key}
	}
	encoded, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	parsed, err := x509.ParseCertificate(encoded)
	if err != nil {
		panic(err)
	}
	a.pool.AddCert(parsed)
	return a
}

// serveTLS serves one connection with TLS.
func serveTLS(c net.Conn, w *world, p *connPlan) {
	var plan networkPlan
	if p.Network != nil {
		plan = *p.Network
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{theAuthority.certificates[plan.Certificate]}, NextProtos: []string{"h2", "http/1.1"},
	}
	if plan.ALPN != "" {
		config.NextProtos = []string{plan.ALPN}
	}
	if plan.TLS12 {
		config.MaxVersion = tls.VersionTLS12
	}
	if plan.ClientCert {
		config.ClientAuth = tls.RequireAnyClientCert
	}
	secured := tls.Server(&faultyConn{Conn: c, world: w, faults: plan.Bytes}, config)
	ctx, cancel := context.WithTimeout(context.Background(), longStall)
	defer cancel()
	if secured.HandshakeContext(ctx) != nil {
		w.count("TLS handshake failed")
		return
	}
	defer secured.Close()
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		serveHTTP2(secured, w, p)
		return
	}
	serveHTTP1(secured, w, p)
}

// serveCONNECT serves one connection to a proxy.
func serveCONNECT(c net.Conn, w *world, p *connPlan) {
	var plan proxyPlan
	if p.Network != nil && p.Network.Proxy != nil {
		plan = *p.Network.Proxy
	}
	r, err := (&http1Conn{Conn: c, limit: -1}).readHeader()
	if err != nil {
		return
	}
	if r.method == http.MethodConnect || w.wrapper() == nil || r.header("Host") != secureName {
		w.mu.Lock()
		w.foreign = fmt.Append(w.foreign, r.method, r.path, r.fields) // a proxy gets no key
		w.mu.Unlock()
	}
	if target, _, _ := strings.Cut(r.path, " "); r.method != http.MethodConnect || target != secureName+":443" {
		return // such as the request of a wrapper that takes it to another host without TLS, but keeps its name
	}
	if plan.Delay > 0 {
		w.stall(plan.Delay)
	}
	status := plan.Status
	if status == 0 {
		status = http.StatusOK
	}
	var response []byte
	for range plan.Storm {
		response = append(response, "HTTP/1.1 103 Early\r\n\r\n"...)
	}
	response = fmt.Appendf(response, "HTTP/1.1 %d %s\r\n\r\n%s", status, patientCanary, plan.Stray)
	if plan.Written > 0 {
		response = response[:min(plan.Written-1, len(response))]
	}
	if _, err := c.Write(response); err != nil {
		return
	}
	w.count(fmt.Sprintf("CONNECT %d", status))
	switch {
	case plan.End == endReset:
		resetConn(c)
	case plan.End == endStall:
		w.stall(0)
	case plan.End != "" || plan.Written > 0 || status != http.StatusOK:
	case plan.Responds:
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		_, _ = io.CopyN(io.Discard, c, 1)
	default:
		serveTLS(c, w, p)
	}
}

// faultyConn has faults at bytes.
type faultyConn struct {
	net.Conn
	world          *world
	faults         []byteFault
	received, sent int
}

// overhear records bytes that a client sent below TLS, as another host gets them.
func (w *world) overhear(sent []byte) {
	if bytes.Contains(sent, []byte(keyCanary)) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.foreign = append(w.foreign, sent...)
	}
}

// NetConn returns the connection below.
func (c *faultyConn) NetConn() net.Conn { return c.Conn }

// next returns the fault of a direction at or after byte n, if there is one.
func (c *faultyConn) next(sent bool, n int) *byteFault {
	for i, f := range c.faults {
		if f.Sent == sent && f.At >= n {
			return &c.faults[i]
		}
	}
	return nil
}

func (c *faultyConn) Read(p []byte) (int, error) {
	f := c.next(false, c.received)
	if f == nil {
		n, err := c.Conn.Read(p)
		c.world.overhear(p[:n])
		return n, err
	}
	if f.At == c.received && f.Do != doFlip {
		return 0, c.end(f)
	}
	n, err := c.Conn.Read(p[:min(len(p), max(1, f.At-c.received))])
	c.world.overhear(p[:n])
	if f.At == c.received && n > 0 {
		p[0] ^= 1
	}
	c.received += n
	return n, err
}

func (c *faultyConn) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		part := p
		if f := c.next(true, c.sent); f != nil {
			if f.At == c.sent && f.Do != doFlip {
				return written, c.end(f)
			}
			part = slices.Clone(p[:min(len(p), max(1, f.At-c.sent))])
			if f.At == c.sent {
				part[0] ^= 1
			}
		}
		n, err := c.Conn.Write(part)
		c.sent, written, p = c.sent+n, written+n, p[n:]
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// end ends the connection.
func (c *faultyConn) end(f *byteFault) error {
	c.world.count("TLS " + f.Do)
	switch f.Do {
	case endReset:
		resetConn(c.Conn)
	case endStall:
		c.world.stall(0)
	}
	_ = c.Conn.Close()
	return net.ErrClosed
}

// randomNetwork adds faults below HTTP to a connection.
func randomNetwork(r *mathrand.Rand, p *connPlan) {
	p.Window, p.Linger = 0, 0 // the locks of package tls are none that a bubble waits for
	if oneIn(r, 2) {
		return
	}
	p.Network = &networkPlan{TLS12: oneIn(r, 4), ClientCert: oneIn(r, 16)}
	if oneIn(r, 8) {
		p.Network.Certificate = pick(r, "another name", "expired", "unknown authority")
	}
	if oneIn(r, 8) {
		p.Network.ALPN = pick(r, "h2", "http/1.1", "unknown")
	}
	for range r.IntN(3) {
		f := byteFault{Sent: oneIn(r, 2), At: pickLow(r, 3000), Do: pick(r, endClose, endReset, endStall, doFlip)}
		p.Network.Bytes = append(p.Network.Bytes, f)
	}
	if oneIn(r, 2) {
		p.Network.Proxy = randomProxy(r)
	}
}

func randomProxy(r *mathrand.Rand) *proxyPlan {
	p := &proxyPlan{Responds: oneIn(r, 8)}
	if oneIn(r, 3) {
		p.Status = pick(r, 101, 201, 204, 302, 400, 403, 407, 429, 500, 502, 503, 504)
	}
	if oneIn(r, 6) {
		p.Storm = pick(r, 1, 3, 100)
	}
	if oneIn(r, 6) {
		p.Delay = randomTime(r, 8)
	}
	if oneIn(r, 6) {
		p.Written = 1 + r.IntN(40)
	}
	if oneIn(r, 6) {
		p.Stray = pick(r, "\r\n", "garbage", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "\x15\x03\x01\x00\x02\x02\x28")
	}
	p.End = pick(r, "", "", "", endClose, endReset, endStall)
	return p
}

// maxWriteWait is how long net/http waits for the end of a write after the end of its response.
const maxWriteWait = 50 * time.Millisecond

// lingers reports whether writes return late.
func (s *schedule) lingers() bool {
	return slices.ContainsFunc(s.Conns, func(p connPlan) bool { return p.Linger > 0 })
}

// linger makes the writes of a client return late, as those of a process that the system suspends.
func linger(c net.Conn, d time.Duration) {
	if c, ok := c.(*pipeConn); ok {
		c.out.linger = d
	}
}

// open ends what delays the writes of a client of the server's connection c.
func open(c net.Conn) {
	switch c := c.(type) {
	case *pipeConn:
		c.in.mu.Lock()
		c.in.window, c.in.linger = 0, 0
		c.in.mu.Unlock()
		c.in.wake()
	case interface{ NetConn() net.Conn }:
		open(c.NetConn())
	}
}
