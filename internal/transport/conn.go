// Connections that discard bytes a server sends without a request, also through a proxy.

package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-cleanhttp"
)

// conn is an HTTP/1 connection that keeps unsolicited bytes from net/http, which writes them to the
// default logger: they may be the response to another request. It returns nothing from Read while
// no request is in flight, and closes the connection instead. And it returns data in chunks that
// never extend past the end of a response, so that nothing is left in net/http's buffer afterwards:
// a chunk ends with a line, as headers and chunked bodies do, or with a body of known length.
type conn struct {
	net.Conn
	in *bufio.Reader // of Conn

	// The fields below belong to the goroutine that reads.
	framing   framing
	line      []byte // the line so far, at most maxLine bytes of it
	truncated bool   // the line is longer
	rest      int64  // bytes of the body that are not read yet

	mu    sync.Mutex
	used  bool // a request has used the connection
	open  int  // requests that use it; briefly two when one follows another
	wrote bool // something was written since the last request got it
}

func newConn(c net.Conn) *conn { return &conn{Conn: c, in: bufio.NewReader(c)} }

// maxLine limits what a conn keeps of a line.
const maxLine = 256

// connectTime limits dialing, and the TLS handshake, of the client's own transport.
const connectTime = 10 * time.Second

// ownTransport returns the transport of a client without an http.Client from the caller.
func ownTransport() *http.Transport {
	t := cleanhttp.DefaultPooledTransport()
	t.DialContext = (&net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connectTime
	t.MaxIdleConnsPerHost = 64
	t.MaxResponseHeaderBytes = maxHeader
	// A silent connection is closed before the deadline of a read, so that its next attempt gets
	// another one.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second}
	return t
}

// watch returns two copies of t that never log a response. direct uses conns. tunnel is for TLS
// through a proxy, which net/http layers above any conn: its HTTP/1 connections serve one request
// each, so that they are never idle; HTTP/2, which has no such messages, keeps its connections.
// Both use the proxy in the context of the request.
func watch(t *http.Transport) (direct, tunnel *http.Transport) {
	tunnel = t.Clone() // which also has t decide on HTTP/2
	tunnel.Proxy = func(r *http.Request) (*url.URL, error) {
		proxy, _ := r.Context().Value(proxyKey{}).(*url.URL)
		return proxy, nil
	}
	if tunnel.TLSClientConfig == nil {
		tunnel.TLSClientConfig = &tls.Config{}
	}
	// A copy with its own TLS configuration or dialers would not speak the HTTP/2 that it offers.
	tunnel.ForceAttemptHTTP2 = slices.Contains(tunnel.TLSClientConfig.NextProtos, "h2")
	direct = tunnel.Clone()
	tunnel.MaxIdleConnsPerHost = -1
	reportProxy(tunnel)

	dial := dialerOf(t)
	dialTLS := tlsDialerOf(t, dial, direct)
	direct.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialTLS(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := handshake(ctx, c, t.TLSHandshakeTimeout); err != nil {
			return nil, err
		}
		if speaksHTTP2(c) {
			return c, nil
		}
		return newConn(c), nil
	}
	if p := t.Protocols; p != nil && p.UnencryptedHTTP2() && !p.HTTP1() {
		return direct, tunnel // without TLS it speaks HTTP/2
	}
	direct.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return newConn(c), nil
	}
	return direct, tunnel
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialerOf returns the dialer that t uses.
func dialerOf(t *http.Transport) dialFunc {
	//lint:ignore SA1019 net/http honors Dial
	deprecated := t.Dial
	switch {
	case t.DialContext != nil:
		return t.DialContext
	case deprecated != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return deprecated(network, addr) }
	}
	return (&net.Dialer{}).DialContext
}

// tlsDialerOf returns the TLS dialer that t uses, or one that adds to dial the TLS of its copy
// direct.
func tlsDialerOf(t *http.Transport, dial dialFunc, direct *http.Transport) dialFunc {
	//lint:ignore SA1019 net/http honors DialTLS
	deprecated := t.DialTLS
	switch {
	case t.DialTLSContext != nil:
		return t.DialTLSContext
	case deprecated != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return deprecated(network, addr) }
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		config := direct.TLSClientConfig.Clone() // net/http may have changed it since
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(addr)
		}
		return tls.Client(c, config), nil
	}
}

// handshake performs the TLS handshake of c within limit, if that is positive. It closes c on
// failure, and does nothing if c needs no handshake.
func handshake(ctx context.Context, c net.Conn, limit time.Duration) error {
	secure, ok := c.(interface{ HandshakeContext(context.Context) error })
	if !ok {
		return nil
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	if p, ok := ctx.Value(proofKey{}).(*proof); ok {
		p.securing()
	}
	err := secure.HandshakeContext(ctx)
	if err != nil {
		lowest(c).Close()
	}
	return err
}

// speaksHTTP2 reports whether HTTP/2 was negotiated on c. Since Go 1.27 net/http asks any
// connection that has a ConnectionState, not only a *tls.Conn.
func speaksHTTP2(c net.Conn) bool {
	secure, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
}

// acquireConn tells a conn that its request starts.
func (p *proof) acquireConn(c net.Conn) {
	if p.watched, _ = c.(*conn); p.watched != nil {
		p.watched.acquire()
	}
}

// releaseConn tells the conn that its request has ended.
func (p *proof) releaseConn(err error) {
	if err == nil && p.watched != nil {
		p.watched.release()
	}
}

// acquire records that a request has got c.
func (c *conn) acquire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
	c.open++
	c.wrote = false
}

// release records that the response was read. net/http calls it from the goroutine that reads next.
// By then the connection may have its next request already.
func (c *conn) release() {
	c.mu.Lock()
	c.open--
	c.mu.Unlock()
	c.rest, c.framing, c.line, c.truncated = 0, framing{}, c.line[:0], false
	if c.in.Buffered() > 0 {
		c.discard()
	}
}

// discard closes the connection and its buffered bytes.
func (c *conn) discard() {
	c.Conn.Close()
	c.in.Reset(c.Conn)
}

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.wrote = true
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *conn) Read(p []byte) (int, error) {
	if _, err := c.in.Peek(1); err != nil {
		return 0, err
	}
	c.mu.Lock()
	solicited := c.wrote && (c.open > 0 || !c.used)
	c.mu.Unlock()
	if !solicited {
		c.discard()
		return 0, net.ErrClosed
	}
	if c.rest > 0 {
		n, err := c.in.Read(p[:min(int64(len(p)), c.rest)])
		c.rest -= int64(n)
		return n, err
	}
	chunk, _ := c.in.Peek(min(len(p), c.in.Buffered()))
	if end := bytes.IndexByte(chunk, '\n') + 1; end > 0 {
		chunk = chunk[:end]
	}
	if err := c.readLine(chunk); err != nil {
		c.discard()
		return 0, err
	}
	n := copy(p, chunk)
	c.in.Discard(n)
	return n, nil
}

// readLine adds chunk to the line, and finds the length of the body when the header is complete.
func (c *conn) readLine(chunk []byte) (err error) {
	kept := min(len(chunk), maxLine-len(c.line))
	c.line = append(c.line, chunk[:kept]...)
	c.truncated = c.truncated || kept < len(chunk)
	if bytes.HasSuffix(chunk, []byte("\n")) {
		c.rest, err = c.framing.next(c.line, c.truncated)
		c.line, c.truncated = c.line[:0], false
	}
	return err
}
