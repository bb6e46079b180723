package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-cleanhttp"
)

// net/http writes bytes that no request has asked for to the default logger, and they may be the answer to somebody else. conn
// keeps such bytes from it, on HTTP/1 connections. It has two means. It hands out nothing while no request is under way, and
// ends the connection instead. And it hands out what comes in pieces that never reach beyond the end of an answer, so that
// nothing is left in net/http's buffer when the answer is over: pieces end with a line, as do headers and chunked bodies, or
// with the body if a header tells its length.
type conn struct {
	net.Conn
	in *bufio.Reader // of Conn

	// What follows belongs to the one who reads.
	line   []byte // the line so far, at most 64 bytes of it
	length int64  // what the header so far says of the body's length
	rest   int64  // bytes of the body that are still to come

	mu    sync.Mutex
	begun bool // a request has had the connection
	open  int  // requests that have it; for a moment one that ends and one that begins
	wrote bool // something was written since the last request got it
}

func newConn(c net.Conn) *conn { return &conn{Conn: c, in: bufio.NewReader(c)} }

// connectTime is how long a connection of the client's own transport may take to be made, and its
// TLS handshake.
const connectTime = 10 * time.Second

// ownTransport returns the transport of a client that was given none.
func ownTransport() *http.Transport {
	t := cleanhttp.DefaultPooledTransport()
	t.DialContext = (&net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connectTime
	t.MaxIdleConnsPerHost = 64
	t.MaxResponseHeaderBytes = maxHeader
	// A connection from which nothing comes is given up before a read's time is over, so that its
	// next attempt does not meet it again.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second}
	return t
}

// watch returns two copies of t that leave nothing of a response to the default logger. direct uses
// conns. tunnel is for TLS through a proxy, which net/http puts above any conn: its HTTP/1
// connections serve one request each, so that they are never idle; HTTP/2, which has no such
// messages, is kept. Both go through the proxy that stands in the context of the request.
func watch(t *http.Transport) (direct, tunnel *http.Transport) {
	tunnel = t.Clone() // which also has t decide on HTTP/2
	tunnel.Proxy = func(r *http.Request) (*url.URL, error) {
		proxy, _ := r.Context().Value(proxyKey{}).(*url.URL)
		return proxy, nil
	}
	if tunnel.TLSClientConfig == nil {
		tunnel.TLSClientConfig = &tls.Config{}
	}
	// A copy with a TLS configuration or dialers of its own would not speak the HTTP/2 that it
	// offers.
	tunnel.ForceAttemptHTTP2 = slices.Contains(tunnel.TLSClientConfig.NextProtos, "h2")
	direct = tunnel.Clone()
	tunnel.MaxIdleConnsPerHost = -1

	dial := t.DialContext
	switch {
	case dial != nil:
	//lint:ignore SA1019 net/http honors it
	case t.Dial != nil:
		//lint:ignore SA1019 net/http honors it
		dial = func(_ context.Context, network, addr string) (net.Conn, error) { return t.Dial(network, addr) }
	default:
		dial = (&net.Dialer{}).DialContext
	}
	dialTLS := t.DialTLSContext
	switch {
	case dialTLS != nil:
	//lint:ignore SA1019 net/http honors it
	case t.DialTLS != nil:
		//lint:ignore SA1019 net/http honors it
		dialTLS = func(_ context.Context, network, addr string) (net.Conn, error) { return t.DialTLS(network, addr) }
	default:
		dialTLS = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			config := direct.TLSClientConfig.Clone()
			if config.ServerName == "" {
				config.ServerName, _, _ = net.SplitHostPort(addr)
			}
			return tls.Client(c, config), nil
		}
	}
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

// handshake does the TLS handshake of c within limit, if that is positive. If it fails, c is
// closed. A c that has its TLS behind it, or none, is left as it is.
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
	err := secure.HandshakeContext(ctx)
	if err != nil {
		lowest(c).Close()
	}
	return err
}

// speaksHTTP2 reports whether c was negotiated to speak HTTP/2. Since Go 1.27 net/http asks so any
// connection that can tell, not only a *tls.Conn.
func speaksHTTP2(c net.Conn) bool {
	secure, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
}

// watchConn adds hooks to trace that tell the conn of a request when the request begins and ends.
func watchConn(trace *httptrace.ClientTrace) {
	var watched *conn // the last; only HTTP/1 gives one back, and there one connection follows the other
	got := trace.GotConn
	trace.GotConn = func(info httptrace.GotConnInfo) {
		if watched, _ = info.Conn.(*conn); watched != nil {
			watched.begin()
		}
		got(info)
	}
	trace.PutIdleConn = func(err error) {
		if err == nil && watched != nil {
			watched.end()
		}
	}
}

// begin notes that a request has got c.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
	c.open++
	c.wrote = false
}

// end notes that the answer was read. net/http calls it from the goroutine that reads next, but the connection may have got its
// next request already.
func (c *conn) end() {
	c.mu.Lock()
	c.open--
	c.mu.Unlock()
	c.rest, c.length, c.line = 0, 0, c.line[:0]
	if c.in.Buffered() > 0 {
		c.drop()
	}
}

// drop ends the connection and forgets what came.
func (c *conn) drop() {
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
	asked := c.wrote && (c.open > 0 || !c.begun)
	c.mu.Unlock()
	if !asked {
		c.drop()
		return 0, net.ErrClosed
	}
	if c.rest > 0 {
		n, err := c.in.Read(p[:min(int64(len(p)), c.rest)])
		c.rest -= int64(n)
		return n, err
	}
	piece, _ := c.in.Peek(min(len(p), c.in.Buffered()))
	whole := bytes.IndexByte(piece, '\n') + 1
	if whole > 0 {
		piece = piece[:whole]
	}
	c.line = append(c.line, piece[:min(len(piece), 64-len(c.line))]...)
	if whole > 0 {
		c.readLine()
	}
	n := copy(p, piece)
	c.in.Discard(n)
	return n, nil
}

// readLine looks for the length of the body. It may be misled by lines of a body: then pieces are longer than they should be,
// and nothing else happens.
func (c *conn) readLine() {
	line := bytes.TrimSpace(c.line)
	c.line = c.line[:0]
	if len(line) == 0 {
		c.rest, c.length = c.length, 0
		return
	}
	if name, value, ok := bytes.Cut(line, []byte(":")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err == nil && n > 0 {
			c.length = n
		}
	}
}
