// The kinds of failures without a usable response, and what their texts name.

package labhealth

import (
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Failure is the kind of failure of an attempt that received no usable response. Its values are
// suitable as metric labels. Messages are more precise. Other values than the constants may be
// added.
type Failure string

// Values of [Failure].
const (
	FailureCanceled    Failure = "canceled"            // the context was canceled
	FailureTimeout     Failure = "timeout"             // an attempt or the context timed out
	FailureRateLimit   Failure = "client_rate_limit"   // see [WithRateLimit]
	FailureUnknownHost Failure = "unknown_host"        // the host of the base URL has no address
	FailureDNS         Failure = "dns"                 // the DNS lookup failed
	FailureRefused     Failure = "connection_refused"  // nothing listens at the address
	FailureUnreachable Failure = "unreachable"         // the network or a firewall is in the way
	FailureProxy       Failure = "proxy"               // the proxy cannot be used, or refuses to connect
	FailureScheme      Failure = "not_https"           // the server does not speak HTTPS
	FailureTLS         Failure = "tls"                 // the TLS handshake failed
	FailureCertificate Failure = "certificate"         // the server's certificate is not trusted
	FailureReset       Failure = "connection_reset"    // the connection was reset
	FailureClosed      Failure = "connection_closed"   // the connection ended before a response
	FailureRedirect    Failure = "redirect"            // a redirect was not followed
	FailureStopped     Failure = "stopped"             // see [WithHTTPClient]
	FailureTooLarge    Failure = "response_too_large"  // the body exceeds the limit
	FailureTruncated   Failure = "response_truncated"  // the body ended too early
	FailureUnreadable  Failure = "response_unreadable" // the body is not what it should be
	FailureCredentials Failure = "credentials"         // see [WithCredentials]
	FailureOther       Failure = "other"               // such as an error of a custom http.RoundTripper
)

// FailureOf returns the kind of failure behind an error of this package, or behind [Attempt.Err].
// It is empty if err is nil or has another cause: the request is invalid, or the service responded
// with an error, as in an *[APIError].
func FailureOf(err error) Failure {
	var attempt *attemptFailure
	var redirect *RedirectError
	var failed *TransportError
	var decode *DecodeError
	switch {
	case errors.As(err, &attempt):
		return attempt.kind
	case errors.As(err, &failed): // before others, which may be the cause of FailureCredentials
		return failed.failure.kind
	case errors.As(err, &redirect):
		return FailureRedirect
	case errors.As(err, &decode):
		return decode.failure
	}
	return ""
}

// failureKind is a kind of failures that have the same text. Its advice names what to change; it is
// empty if that is not known.
type failureKind struct {
	failure      Failure
	text, advice string
	matches      func(error, *transport.Fault) bool
}

const (
	checkHost     = "check the host and the port of the base URL"
	checkProxy    = "check the proxy settings"
	checkRedirect = "check the scheme, the host and the path of the base URL"
)

// decided are the failures that do not depend on when they happened.
var decided = []failureKind{
	{FailureStopped, "the http.RoundTripper was stopped before it sent the write a second time", "it must not repeat requests", isError(transport.ErrSentAgain)},
	{FailureStopped, "the http.RoundTripper was stopped before it sent the request to another host", "it must not follow redirects or fail over", isError(transport.ErrOtherHost)},
	{FailureRateLimit, "the rate limit leaves no time before the context's deadline", "raise the limit of WithRateLimit, or the deadline", isError(transport.ErrRateLimit)},
	{FailureTooLarge, "the response is larger than the limit", "raise it with WithBodyLimit", isError(transport.ErrTooLarge)},
	{FailureUnreadable, "the response is only a part, which was not requested", "", isError(transport.ErrPartial)},
	{FailureOther, "the URL is not valid", "check the base URL and WithPath", isError(transport.ErrURL)},
}

// timeouts are the ends of a context and of an attempt. The text that follows says when.
var timeouts = []failureKind{
	{FailureCanceled, "canceled", "", func(err error, f *transport.Fault) bool {
		return errors.Is(f.Context, context.Canceled) || f.Context == nil && errors.Is(err, context.Canceled)
	}},
	{FailureTimeout, "timed out", "", func(err error, f *transport.Fault) bool {
		var timeout net.Error
		return f.Context != nil || f.Limit != "" || errors.Is(err, context.DeadlineExceeded) ||
			errors.As(err, &timeout) && timeout.Timeout() && !isA[*net.DNSError](err)
	}},
}

// network are the failures of lookups, connections and responses, the first match first.
var network = []failureKind{
	{FailureUnknownHost, "unknown host", "check the base URL", func(err error, _ *transport.Fault) bool {
		dns, ok := errors.AsType[*net.DNSError](err)
		return ok && dns.IsNotFound
	}},
	{FailureDNS, "the DNS lookup failed", "check the network and its DNS server", is[*net.DNSError]},
	{FailureRefused, "connection refused", checkHost, isSystem(transport.Refused)},
	{FailureUnreachable, "the host is unreachable", "check the network and the base URL", isSystem(transport.Unreachable)},
	{FailureUnreachable, "this system does not allow the connection", "check its firewall", isSystem(transport.Forbidden)},
	{FailureOther, "too many open files", "use one client for all calls, or raise the limit of the process", isSystem(transport.OutOfFiles)},
	{FailureScheme, "the server does not speak HTTPS", "check the scheme and the port of the base URL", isScheme},
	{FailureCertificate, "the server's certificate is expired or not yet valid", "check the clock of this system, or renew the certificate", func(err error, _ *transport.Fault) bool {
		var invalid x509.CertificateInvalidError
		return errors.As(err, &invalid) && invalid.Reason == x509.Expired
	}},
	{FailureCertificate, "the server's certificate is for another host", "check the base URL", is[x509.HostnameError]},
	{FailureCertificate, "the server's certificate is from an unknown authority", "check whether a proxy intercepts TLS, and which root certificates this system trusts", is[x509.UnknownAuthorityError]},
	{FailureCertificate, "this system has no root certificates", "install them", is[x509.SystemRootsError]},
	{FailureCertificate, "the server's certificate is not trusted", "", func(err error, _ *transport.Fault) bool { return transport.IsCertificate(err) }},
	{FailureProxy, "the proxy requires a user and a password", checkProxy, isProxyStatus(http.StatusProxyAuthRequired)},
	{FailureProxy, "the proxy rejected the host of the base URL", "ask for access to it, or " + checkProxy, isProxyStatus(http.StatusForbidden)},
	{FailureProxy, "the proxy did not connect", checkProxy, is[*transport.ProxyError]},
	{FailureProxy, "the proxy did not connect", checkProxy, isOperation("socks connect")},
	{FailureProxy, "the proxy did not connect", checkProxy, func(_ error, f *transport.Fault) bool { return f.Proxied && f.Phase == transport.Connecting }},
	{FailureTLS, "the server ended the TLS handshake", "check which TLS versions and client certificates it requires", isOperation("remote error")},
	{FailureTLS, "the TLS handshake failed", "check the base URL, and whether a proxy or firewall intercepts TLS", func(_ error, f *transport.Fault) bool { return f.Phase == transport.Securing }},
	{FailureUnreadable, "the response is not valid gzip", "", isCompression},
	{FailureTruncated, "the response ended too early", "", func(err error, f *transport.Fault) bool { return f.Phase == transport.Reading && isEOF(err) }},
	{FailureReset, "the connection was reset", "", isSystem(transport.Reset)},
	{FailureClosed, "the connection was closed", "", func(err error, _ *transport.Fault) bool { return isEOF(err) }},
	{FailureOther, "the http.RoundTripper failed", "see TransportError.Cause", func(_ error, f *transport.Fault) bool { return f.Foreign }},
	{FailureOther, "the connection failed, or the response is not valid HTTP", checkHost, func(_ error, f *transport.Fault) bool { return f.Phase == transport.Waiting }},
	{FailureOther, "the connection failed", "", func(error, *transport.Fault) bool { return true }},
}

func isProxyStatus(code int) func(error, *transport.Fault) bool {
	return func(err error, _ *transport.Fault) bool {
		proxy, ok := errors.AsType[*transport.ProxyError](err)
		return ok && proxy.StatusCode == code
	}
}

func isError(target error) func(error, *transport.Fault) bool {
	return func(err error, _ *transport.Fault) bool { return errors.Is(err, target) }
}

func isSystem(kind transport.System) func(error, *transport.Fault) bool {
	return func(err error, _ *transport.Fault) bool { return transport.SystemOf(err) == kind }
}

// isOperation matches the outermost *net.OpError.
func isOperation(op string) func(error, *transport.Fault) bool {
	return func(err error, _ *transport.Fault) bool {
		operation, ok := errors.AsType[*net.OpError](err)
		return ok && operation.Op == op
	}
}

func is[E error](err error, _ *transport.Fault) bool { return isA[E](err) }

// isA uses errors.As, because the compiler generates errors.AsType for each type.
func isA[E error](err error) bool { return errors.As(err, new(E)) }

func isScheme(err error, _ *transport.Fault) bool {
	return errors.Is(err, http.ErrSchemeMismatch) || isA[tls.RecordHeaderError](err)
}

func isCompression(err error, _ *transport.Fault) bool {
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || isA[flate.CorruptInputError](err)
}

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, transport.ErrLost)
}

// phases say when an attempt ended, after "timed out" and the like, and what to check if it was too
// early to blame the service.
var phases = [...]struct{ text, advice string }{
	transport.Starting:   {"", ""},
	transport.Connecting: {" while connecting", "check the base URL, the network and its firewall"},
	transport.Securing:   {" during the TLS handshake", "check the base URL, the network and its firewall"},
	transport.Sending:    {" while sending the request", ""},
	transport.Waiting:    {" while waiting for the response", ""},
	transport.Reading:    {" while reading the response", ""},
	transport.Unsent:     {" before the request was sent", ""},
	transport.Between:    {" before another attempt", ""},
}

// failure describes a failure. Its advice names what to change; it is empty if that is not known.
type failure struct {
	kind         Failure
	text, advice string
}

// String returns the text and the advice.
func (f failure) String() string {
	if f.advice == "" {
		return f.text
	}
	return f.text + ": " + f.advice
}

// describe describes a failure. The message of err is not used, because it may quote sent or
// received bytes, or the addresses of the network.
func describe(err error, f transport.Fault) failure {
	if unauthorized, ok := errors.AsType[*credentialsError](err); ok { // its cause may be anything
		return failure{FailureCredentials, unauthorized.reason, ""}
	}
	if errors.As(err, new(*transport.RedirectError)) {
		return failure{FailureRedirect, "the redirect was not followed", checkRedirect}
	}
	if u, ok := errors.AsType[*unreadable](err); ok {
		if u.cause == nil || u.failure != "" {
			return failure{u.kind(), "the response could not be read", u.reason}
		}
		err = u.cause
	}
	if k := find(decided, err, &f); k != nil {
		return failure{k.failure, k.text, k.advice}
	}
	phase := phases[f.Phase]
	if f.Proxied && f.Phase == transport.Connecting {
		phase.text, phase.advice = " while connecting through the proxy", "check the proxy settings and the base URL"
	}
	if k := find(timeouts, err, &f); k != nil {
		text := k.text + phase.text
		switch {
		case k.failure == FailureCanceled:
			return failure{k.failure, text, ""}
		case f.Context != nil:
			return failure{k.failure, text + " (the context's deadline)", cmp.Or(phase.advice, "give it more time")}
		case f.Limit != "":
			text += fmt.Sprintf(" (%s, %s)", f.Limit, f.Timeout)
			phase.advice = cmp.Or(phase.advice, "raise it")
		}
		return failure{k.failure, text, phase.advice}
	}
	k := find(network, err, &f)
	switch {
	case isOperation("proxyconnect")(err, nil):
		return failure{FailureProxy, "the proxy cannot be used: " + strings.Replace(k.text, "server", "proxy", 1), checkProxy}
	case k.failure == FailureReset, k.failure == FailureClosed, k.text == "the connection failed":
		return failure{k.failure, k.text + phase.text, phase.advice}
	}
	return failure{k.failure, k.text, k.advice}
}

// find returns the first kind that matches, or nil.
func find(kinds []failureKind, err error, f *transport.Fault) *failureKind {
	for i := range kinds {
		if kinds[i].matches(err, f) {
			return &kinds[i]
		}
	}
	return nil
}

// describeResult describes the failure of a call without a usable response.
func describeResult(result *transport.Result) failure {
	ended := result.ContextErr
	switch {
	case ended == nil, result.Attempts > 0 && !result.Waiting, result.Fault.Context != nil && result.Err != nil:
		return describe(cmp.Or(result.Err, ended), result.Fault)
	}
	f := transport.Fault{Phase: transport.Between, Context: ended}
	if result.Attempts == 0 {
		f.Phase = transport.Unsent
	}
	d := describe(ended, f)
	switch {
	case result.Attempts == 0:
	case result.Err != nil:
		last := describe(result.Err, result.Fault)
		d.text, d.advice = d.text+"; the last one failed: "+last.text, last.advice
	default:
		d.text += fmt.Sprintf("; the last response had status %d", result.Response.StatusCode)
	}
	return d
}

// attemptFailure is the error of an attempt, without the causes.
type attemptFailure struct{ failure }

func (e *attemptFailure) Error() string { return e.String() }

// MarshalText returns the message, so that encoders of the attempt have it.
func (e *attemptFailure) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// attemptError returns the error of an attempt for an observer.
func attemptError(a *transport.Attempt) error {
	if a.Err == nil {
		return nil
	}
	return &attemptFailure{describe(a.Err, a.Fault)}
}
