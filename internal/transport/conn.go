package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
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

// connectTime is how long a connection and its TLS handshake may take.
const connectTime = 10 * time.Second

// watch makes t use conns. A connection with TLS is watched inside it, unless it speaks HTTP/2, which has no such messages. TLS
// through a proxy is made by net/http above a conn: there only what comes between requests is kept from it.
func watch(t *http.Transport) {
	dialer := &net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return newConn(c), nil
	}
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		config := &tls.Config{}
		if t.TLSClientConfig != nil {
			config = t.TLSClientConfig.Clone()
		}
		config.NextProtos = []string{"h2", "http/1.1"}
		c, err := (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if c.(*tls.Conn).ConnectionState().NegotiatedProtocol == "h2" {
			return c, nil
		}
		return newConn(c), nil
	}
}

// begin notes that a request has got c, a connection of whatever kind. It returns nil if that is not watched.
func begin(c net.Conn) *conn {
	w, direct := c.(*conn)
	if tunnel, ok := c.(*tls.Conn); ok {
		w, _ = tunnel.NetConn().(*conn)
	}
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.begun = true
		w.open++
		w.wrote = w.wrote && !direct
	}
	return w
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
