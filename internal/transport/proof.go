package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// proof is what net/http's own hooks saw of one attempt. "Not sent" is proven by them, never guessed from an error's text.
type proof struct {
	looked  atomic.Int32 // times a connection was looked for
	got     atomic.Int32 // connections obtained
	wrote   atomic.Int32 // times the request's headers were written in full
	stopped atomic.Bool  // one of these happened too often
	ended   bool         // the attempt's time was over when it failed, or it was stopped
	cancel  context.CancelFunc
}

// notSent reports whether the service cannot have received the request. A transport that fires no hooks proves nothing. When
// the time is over, net/http may still be writing while we look, so that only the lack of a connection is a proof.
func (p *proof) notSent() bool {
	if p.looked.Load() == 0 {
		return false
	}
	return p.got.Load() == 0 || (!p.ended && p.wrote.Load() == 0)
}

// errStopped says that net/http went on sending an attempt again by itself.
var errStopped = errors.New("the connection was lost too often")

// RoundTrip makes call the http.RoundTripper of its own http.Client. It does not offer CloseIdleConnections, which
// go-retryablehttp would use to close the connections of other calls.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.proof != nil {
		c.proof.cancel() // of the attempt or the redirect before
	}
	if c.started.IsZero() {
		c.started = time.Now()
	}
	p := &proof{}
	c.proof = p
	ctx, cancel := context.WithCancel(req.Context())
	p.cancel = cancel
	count := func(n *atomic.Int32, most int32) {
		if n.Add(1) > most {
			p.stopped.Store(true)
			cancel()
		}
	}
	var watched *conn // the last; only HTTP/1 gives one back, and there one connection follows the other
	resp, err := c.client.http.Transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { count(&p.looked, maxTaken) },
		GotConn: func(info httptrace.GotConnInfo) {
			count(&p.got, maxTaken)
			if c.client.own != nil {
				watched = begin(info.Conn)
			}
		},
		WroteHeaders: func() { count(&p.wrote, maxSent) },
		PutIdleConn: func(err error) {
			if err == nil && watched != nil {
				watched.end()
			}
		},
	})))
	if err == nil {
		return resp, nil
	}
	p.ended = ctx.Err() != nil
	if p.stopped.Load() {
		err = errStopped
	}
	if resp != nil && resp.Body != nil {
		resp.Body.Close() // net/http would complain of both on the default logger
	}
	return nil, err
}

// permanent reports whether another attempt would fail in the same way.
func permanent(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	return errors.Is(err, http.ErrSchemeMismatch) || IsCertificate(err)
}

// IsCertificate reports whether the server's certificate was refused, or was none.
func IsCertificate(err error) bool {
	var (
		record    tls.RecordHeaderError
		chain     *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	return errors.As(err, &record) || errors.As(err, &chain) || errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid)
}
