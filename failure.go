package labhealth

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Failure is the kind of failure of an attempt that received no usable response. Its values are
// suitable as metric labels. Other values than the constants may be added.
type Failure string

// Values of [Failure].
const (
	FailureCanceled    Failure = "canceled"            // the context was canceled
	FailureTimeout     Failure = "timeout"             // an attempt or the context timed out
	FailureUnknownHost Failure = "unknown_host"        // the host of the base URL has no address
	FailureDNS         Failure = "dns"                 // the DNS lookup failed
	FailureRefused     Failure = "connection_refused"  // nothing listens at the address
	FailureReset       Failure = "connection_reset"    // the connection was reset
	FailureClosed      Failure = "connection_closed"   // the connection ended too early
	FailureScheme      Failure = "not_https"           // the server does not speak HTTPS
	FailureCertificate Failure = "certificate"         // the server's certificate is not trusted
	FailureRedirect    Failure = "redirect"            // a redirect was not followed
	FailureStopped     Failure = "stopped"             // see [WithHTTPClient]
	FailureTooLarge    Failure = "response_too_large"  // the body exceeds the limit
	FailureTruncated   Failure = "response_truncated"  // the body ended too early
	FailureUnreadable  Failure = "response_unreadable" // the body is not what it should be
	FailureCredentials Failure = "credentials"         // see [WithCredentials]
	FailureOther       Failure = "other"               // any other failure
)

// failures are the kinds of failures with their descriptions, the first match first.
var failures = []struct {
	failure Failure
	reason  string
	matches func(error) bool
}{
	{FailureStopped, "the http.RoundTripper was stopped before it sent the write a second time", isError(transport.ErrSentAgain)},
	{FailureStopped, "the http.RoundTripper was stopped before it sent the request to another host", isError(transport.ErrOtherHost)},
	{FailureCanceled, "canceled", isError(context.Canceled)},
	{FailureUnknownHost, "unknown host", func(err error) bool {
		var dns *net.DNSError
		return errors.As(err, &dns) && dns.IsNotFound
	}},
	{FailureDNS, "the DNS lookup failed", func(err error) bool {
		var dns *net.DNSError
		return errors.As(err, &dns)
	}},
	{FailureRefused, "connection refused", isError(syscall.ECONNREFUSED)},
	{FailureScheme, "the server does not speak HTTPS", isError(http.ErrSchemeMismatch)},
	{FailureTimeout, "timed out", func(err error) bool {
		var timeout net.Error
		return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
	}},
	{FailureCertificate, "the server's certificate is not trusted", transport.IsCertificate},
	{FailureTooLarge, "the response is larger than the limit", isError(transport.ErrTooLarge)},
	{FailureTruncated, "the response ended too early", isError(transport.ErrTruncated)},
	{FailureUnreadable, "the response could not be read", func(err error) bool {
		var u *unreadable
		return errors.As(err, &u)
	}},
	{FailureReset, "the connection was reset", isError(syscall.ECONNRESET)},
	{FailureClosed, "the connection was closed", func(err error) bool {
		return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}},
	{FailureOther, "the connection failed", func(error) bool { return true }},
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// FailureOf returns the kind of failure behind an error of this package, or behind [Attempt.Err].
// It is empty if err is nil, or if there was a response that could be used, such as that of an
// *[APIError].
func FailureOf(err error) Failure {
	var attempt *attemptFailure
	var redirect *RedirectError
	var failed *TransportError
	var decode *DecodeError
	switch {
	case errors.As(err, &attempt):
		return attempt.failure
	case errors.As(err, &failed): // before others, which may be the cause of FailureCredentials
		return failed.failure
	case errors.As(err, &redirect):
		return FailureRedirect
	case errors.As(err, &decode):
		return decode.failure
	}
	return ""
}

// attemptFailure is the error of an attempt, without the causes.
type attemptFailure struct {
	failure Failure
	reason  string
}

func (e *attemptFailure) Error() string { return e.reason }

// attemptError returns the error of an attempt for an observer.
func attemptError(err error) error {
	var redirect *transport.RedirectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &redirect):
		return &attemptFailure{FailureRedirect, "the redirect was not followed"}
	}
	failure, reason := classify(err)
	return &attemptFailure{failure, reason}
}

// classify returns the kind of a failure and its description. The message of err is not used,
// because it may quote sent or received bytes.
func classify(err error) (Failure, string) {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var unauthorized *credentialsError
	if errors.As(err, &unauthorized) {
		return FailureCredentials, unauthorized.reason
	}
	for _, f := range failures {
		if f.matches(err) {
			return f.failure, f.reason
		}
	}
	return "", ""
}
