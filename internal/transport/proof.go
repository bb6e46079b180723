// What the net/http/httptrace hooks prove about an attempt, and how a repeated write is stopped.

package transport

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"
)

// proof records the calls of net/http's hooks during one attempt. Error messages are not
// interpreted, and its result stays valid: a transport that continues after the attempt was judged,
// or that sends a write a second time, loses its connections before the request is complete.
type proof struct {
	write  bool         // the request is neither a GET nor a HEAD
	native bool         // the transport is net/http's, which hides nothing from the hooks
	ctx    proofContext // of the attempt
	cancel context.CancelFunc
	direct bool         // the transport uses conns
	body   *attemptBody // of a write
	proxy  *url.URL     // nil if the attempt goes through none
	target *url.URL     // of the attempt
	trace  httptrace.ClientTrace

	watched *conn // the last one; only HTTP/1 puts one back, and it uses one at a time

	mu       sync.Mutex
	lookups  int         // times a connection was requested
	hostPort string      // of the first connection requested, or of its proxy
	starts   int         // times the first header field was written
	host     string      // the first host in the headers
	wanted   string      // the host that the headers have if the transport does not change it
	wrote    int         // times the headers were written completely
	http2    bool        // HTTP/2 was used
	conns    []net.Conn  // connections obtained
	conn     [1]net.Conn // the array of conns, while there is one
	phase    Phase
	proxied  bool  // the attempt goes through a proxy
	judged   bool  // the attempt is over and its outcome decided
	expired  bool  // its deadline had passed when it was judged
	stopped  error // why it was canceled, if it continued when it must not
}

// Limits of how often net/http may send one attempt of a read again by itself. A write is sent
// once.
const (
	maxSent  = 2
	maxTaken = 4
)

// proofContext is the context of an attempt. One context for all values is one allocation less for
// each.
type proofContext struct {
	context.Context
	proof *proof
}

// Context keys of an attempt.
type (
	proofKey struct{} // its *proof
	proxyKey struct{} // the *url.URL of its proxy, nil for none
)

func (c *proofContext) Value(key any) any {
	switch key.(type) {
	case proofKey:
		return c.proof
	case proxyKey:
		return c.proof.proxy
	}
	return c.Context.Value(key)
}

// newProof returns the proof of an attempt that ends with ctx, and its hooks.
func newProof(ctx context.Context, cancel context.CancelFunc) *proof {
	p := &proof{cancel: cancel}
	p.ctx = proofContext{ctx, p}
	p.conns = p.conn[:0]
	p.trace = httptrace.ClientTrace{
		GetConn: p.getConn, GotConn: p.gotConn, TLSHandshakeStart: p.securing,
		WroteHeaderField: p.wroteHeaderField, WroteHeaders: p.wroteHeaders,
	}
	return p
}

func (p *proof) getConn(hostPort string) {
	_ = p.hook(func() error {
		p.phase = Connecting
		if p.lookups++; p.lookups == 1 {
			p.hostPort = hostPort
			if !p.native && len(p.conns) > 0 && !strings.EqualFold(p.target.Scheme+"://"+hostPort, origin(p.target)) {
				return ErrOtherHost // net/http does not report a connection that an earlier attempt dialed
			}
		}
		if hostPort != p.hostPort { // a transport that fails over need not change the Host header
			return ErrOtherHost
		}
		return p.checkRepeat(p.lookups)
	})
}

func (p *proof) gotConn(info httptrace.GotConnInfo) {
	if p.direct {
		p.acquireConn(info.Conn)
	}
	_ = p.hook(func() error {
		p.phase = Sending
		p.conns = append(p.conns, info.Conn)
		return p.checkRepeat(len(p.conns))
	})
}

func (p *proof) wroteHeaderField(name string, value []string) {
	if isFirstField(name) {
		p.startedRequest(name == ":authority", strings.Join(value, ""))
	}
}

// isFirstField reports whether a header field is the first one of a request that the hooks report:
// that of HTTP/1 or of HTTP/2.
func isFirstField(name string) bool { return name == "Host" || name == ":authority" }

// startedRequest records that the headers of a request are being written.
func (p *proof) startedRequest(http2 bool, host string) {
	err := p.hook(func() error {
		if p.starts++; p.starts == 1 {
			p.host = host
			// Behind a proxy, a connection that failed before may have been one to another host.
			if !p.native && p.lookups > 1 && !strings.EqualFold(host, p.wanted) {
				return ErrOtherHost
			}
		}
		p.http2 = p.http2 || http2
		switch {
		case p.stopped != nil: // the connection was ready before the transport noticed
			return p.stopped
		case host != p.host: // a transport that follows redirects would take the key with it
			return ErrOtherHost
		case p.write && p.starts > 1:
			return ErrSentAgain
		case p.judged:
			return errLate
		}
		return nil
	})
	if err != nil && (p.write || errors.Is(err, ErrOtherHost)) {
		p.disconnect()
	}
}

// wroteHeaders records that the headers of a request were written. HTTP/2 may fire the hook after
// the response: such an attempt is never judged as not sent, and other calls share the connection.
func (p *proof) wroteHeaders() {
	err := p.hook(func() error {
		p.wrote++
		p.phase = Waiting
		switch {
		case p.wrote > maxSent:
			return ErrLost
		case p.judged && !p.http2:
			return errLate
		}
		return nil
	})
	if err != nil && p.write {
		p.disconnect()
	}
}

// hook runs f under the lock and cancels the attempt if f returns an error.
func (p *proof) hook(f func() error) error {
	p.mu.Lock()
	err := f()
	if p.stopped == nil {
		p.stopped = err
	}
	p.mu.Unlock()
	if err != nil {
		p.cancel()
	}
	return err
}

// checkRepeat returns why the attempt must stop when it requests or gets a connection for the n-th
// time.
func (p *proof) checkRepeat(n int) error {
	switch {
	case p.write && (p.starts > 0 || p.wrote > 0):
		return ErrSentAgain
	case n > maxTaken:
		return ErrLost
	}
	return nil
}

// disconnect closes the connections of a request that must not be sent, because a transport may
// ignore the canceled context. It does not hold the lock: closing may take time.
func (p *proof) disconnect() {
	p.mu.Lock()
	conns := p.conns
	p.mu.Unlock()
	for _, c := range conns {
		if c = lowest(c); c != nil { // a transport that is not net/http's may leave it out
			c.Close()
		}
	}
}

// closeAtEnd closes the body of resp, the response to an HTTP/2 request with a body, when the
// attempt ends, unless stop was called before. net/http itself does not notice the end while the
// server does not take all of the request.
func (p *proof) closeAtEnd(resp *http.Response) (stop func() bool) {
	body, uncompressed := resp.Body, resp.Uncompressed // the call may replace them meanwhile
	return context.AfterFunc(&p.ctx, func() {
		if uncompressed { // in Go 1.26, Close waits for a Read that waits for the start of the body
			p.disconnect()
		}
		body.Close()
	})
}

// lowest returns the connection below TLS. The Close of a TLS connection would wait until its last
// message is written. An HTTPS proxy adds a second layer of TLS.
func lowest(c net.Conn) net.Conn {
	for {
		switch upper := c.(type) {
		case *conn:
			c = upper.Conn
		case interface{ NetConn() net.Conn }: // such as *tls.Conn
			c = upper.NetConn()
		default:
			return c
		}
	}
}

// judge ends the attempt: from now on it must not be sent. It returns why the attempt was stopped,
// if it was.
func (p *proof) judge() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged, p.expired = true, p.expired || p.ctx.Err() != nil
	return p.stopped
}

// notSent reports whether the service cannot have received the request. HTTP/1 buffers the end of
// the headers until all are written; HTTP/2 sends them before it fires the hook. Nothing is proven
// if the deadline passes while they are written, by a transport that fires no hooks, or by one that
// reads the body without writing the headers: it may have sent them in another way.
func (p *proof) notSent() bool {
	read := p.body.wasRead()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.starts == 0 {
		return p.lookups > 0 && p.wrote == 0 && !read
	}
	// net/http itself reads ahead to see whether a body is empty.
	return p.wrote == 0 && !p.http2 && !p.expired && (p.native || !read)
}

// sentOnce reports whether resp is the response to the only request that this attempt sent, so that
// its status determines the outcome.
func (p *proof) sentOnce(resp *http.Response) bool {
	if resp.Request == nil || resp.Request.Context().Value(proofKey{}) != p {
		return false // the response to a request that no hook saw
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped == nil && p.lookups > 0 && max(p.starts, p.wrote) == 1
}

// Reasons for stopping an attempt.
var (
	errLate = errors.New("the request was about to be sent after its deadline")
	// ErrLost reports a connection that was lost too often.
	ErrLost = errors.New("the connection was lost too often")
	// ErrSentAgain reports a transport that was about to send a write a second time.
	ErrSentAgain = errors.New("the request was about to be sent a second time")
	// ErrOtherHost reports a transport that was about to send the request to another host.
	ErrOtherHost = errors.New("the request was about to be sent to another host")
)

// sendHookKey is the context key of the function of [WithSendHook].
type sendHookKey struct{}

// WithSendHook returns a context for calls that call f when a request is about to be written to its
// connection. If the transport is not net/http's, which need not report that, they call f before it
// gets the request too. If f returns an error, nothing is sent.
func WithSendHook(ctx context.Context, f func() error) context.Context {
	return context.WithValue(ctx, sendHookKey{}, f)
}

// addSendHook adds the function of [WithSendHook], if any, to the hooks of an attempt.
func (p *proof) addSendHook() error {
	f, _ := p.ctx.Value(sendHookKey{}).(func() error)
	if f == nil {
		return nil
	}
	p.trace.WroteHeaderField = func(name string, value []string) {
		if isFirstField(name) {
			err := f() // may take time, so it is called without the lock
			if p.hook(func() error { return err }) != nil {
				p.disconnect() // while the request is incomplete
			}
		}
		p.wroteHeaderField(name, value)
	}
	if p.native {
		return nil
	}
	return f()
}

// RoundTrip starts an attempt, or follows its redirect.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.proof != nil {
		c.proof.cancel() // of the previous attempt or redirect
	}
	if c.started.IsZero() {
		c.started = time.Now()
	}
	// The attempt's only deadline. That of http.Client would also close Request.Cancel, which may
	// end an attempt before its context ends.
	ctx, cancel := context.WithDeadline(req.Context(), c.started.Add(c.timeout))
	p := newProof(ctx, cancel)
	p.write, p.native = c.request.isWrite(), c.client.direct != nil
	p.body, _ = req.Body.(*attemptBody)
	p.wanted, p.target = cmp.Or(req.Host, req.URL.Host), req.URL
	c.proof = p
	transport := c.client.http.Transport
	if c.client.direct != nil {
		proxy, err := c.client.proxy(req)
		if err != nil {
			p.lookups++ // without a result
			return nil, &ProxyError{cause: func() error { return err }}
		}
		p.proxy, p.proxied = proxy, proxy != nil
		if proxy != nil && req.URL.Scheme == "https" {
			transport = c.client.tunnel
		} else {
			transport = c.client.direct
			p.direct, p.trace.PutIdleConn = true, p.releaseConn
		}
	}
	if err := p.addSendHook(); err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(&p.ctx, &p.trace)))
	if err == nil {
		return resp, nil
	}
	if stopped := p.judge(); stopped != nil {
		err = stopped
	}
	if resp != nil && resp.Body != nil {
		resp.Body.Close() // net/http would log a response beside an error
	}
	return nil, err
}
