// How an attempt failed, as far as it is known.

package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Phase is what an attempt was doing when it ended.
type Phase uint8

const (
	Starting   Phase = iota // nothing is known, as with a transport that calls no hooks
	Connecting              // looking up the host, dialing, or waiting for the proxy
	Securing                // the TLS handshake
	Sending                 // writing the header of the request
	Waiting                 // writing the body, or waiting for the response
	Reading                 // reading the response
	Unsent                  // nothing was tried yet
	Between                 // waiting for the next attempt
)

// System is the kind of a system error.
type System uint8

const (
	Refused     System = iota + 1 // nothing listens at the address
	Reset                         // the peer closed the connection, and data was lost
	Unreachable                   // there is no route to the address
	Forbidden                     // the system does not allow the connection
	OutOfFiles                    // too many files or sockets are open
)

// Fault describes the end of an attempt that failed.
type Fault struct {
	Phase   Phase
	Context error         // the context of the call had ended
	Limit   string        // the setting whose timeout had ended the attempt; empty for none
	Timeout time.Duration // of Limit
	Foreign bool          // the http.RoundTripper is not an *http.Transport
	Proxied bool          // the attempt goes through a proxy, as far as is known
}

// fault describes the attempt that has just ended.
func (c *call) fault(ctx context.Context, responded bool) Fault {
	f := Fault{Context: ctx.Err(), Foreign: c.client.direct == nil}
	if p := c.proof; p != nil {
		p.mu.Lock()
		f.Phase, f.Proxied = p.phase, p.proxied
		p.mu.Unlock()
		if f.Context == nil && errors.Is(p.ctx.Err(), context.DeadlineExceeded) {
			f.Limit, f.Timeout = c.limit, c.timeout
		}
	}
	if responded {
		f.Phase = Reading
	}
	return f
}

// securing records that the TLS handshake has started. It may be that of a connection that the
// attempt no longer waits for.
func (p *proof) securing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == Connecting {
		p.phase = Securing
	}
}

// ProxyError reports a proxy that cannot be used.
type ProxyError struct {
	StatusCode int // of its response to CONNECT; 0 without one
	cause      func() error
}

func (e *ProxyError) Error() string {
	if e.StatusCode != 0 {
		return "the proxy responded with status " + strconv.Itoa(e.StatusCode)
	}
	return "the proxy is not configured correctly"
}

// Unwrap returns the cause, whose message may quote the URL of the proxy.
func (e *ProxyError) Unwrap() error {
	if e.cause == nil {
		return nil
	}
	return e.cause()
}

// reportProxy has t return a *ProxyError if a proxy does not accept a CONNECT. net/http's own error
// is the text of the status line.
func reportProxy(t *http.Transport) {
	next := t.OnProxyConnectResponse
	t.OnProxyConnectResponse = func(ctx context.Context, proxy *url.URL, connect *http.Request, resp *http.Response) error {
		if next != nil {
			if err := next(ctx, proxy, connect, resp); err != nil {
				return err
			}
		}
		if resp.StatusCode != http.StatusOK {
			return &ProxyError{StatusCode: resp.StatusCode}
		}
		return nil
	}
}

// failure is an error of net/http without its message, which may quote URLs and received bytes.
// errors.Is and errors.As find the cause. It is behind a function because fmt prints unexported
// fields.
type failure struct {
	message string
	cause   func() error
}

func newFailure(message string, err error) *failure {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return &failure{message, func() error { return err }}
}

func (f *failure) Error() string        { return f.message }
func (f *failure) Is(target error) bool { return errors.Is(f.cause(), target) }
func (f *failure) As(target any) bool   { return errors.As(f.cause(), target) }

// Cause returns the error behind a failure, with its own message; err itself if there is none.
func Cause(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.cause()
	}
	return err
}

// IsCertificate reports whether the server's certificate is invalid or missing.
func IsCertificate(err error) bool {
	var (
		record    tls.RecordHeaderError
		chain     *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	return errors.As(err, &record) || errors.As(err, &chain) || errors.As(err, &authority) ||
		errors.As(err, &name) || errors.As(err, &invalid)
}
