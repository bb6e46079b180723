package conformance

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

// failureRow is a failure, and how it is shown.
type failureRow struct {
	name      string
	url       string
	transport http.RoundTripper
	failure   labhealth.Failure
	text      string
}

// check makes a read and a write, and compares what the observers and the log show.
func (row failureRow) check(t *testing.T) {
	t.Helper()
	row.checkCalls(t, faultCalls[:2])
}

func (row failureRow) checkCalls(t *testing.T, calls []faultCall) {
	t.Helper()
	var attempts []labhealth.Attempt
	var logged bytes.Buffer
	client := faultClient(t, row.url, row.transport,
		observing(func(_ context.Context, a labhealth.Attempt) { attempts = append(attempts, a) }),
		labhealth.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	for _, call := range calls {
		attempts = nil
		logged.Reset()
		err := call.do(t, client, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		if len(attempts) != 1 {
			t.Fatalf("%s: %d attempts", call.method, len(attempts))
		}
		if got := errorText(attempts[0].Err); got != row.text {
			t.Errorf("%s: the attempt shows %q, want %q (%v)", call.method, got, row.text, err)
		}
		equal(t, row.failure, labhealth.FailureOf(attempts[0].Err))
		equal(t, row.failure, labhealth.FailureOf(err))
		for part := range strings.SplitSeq(row.text, ": ") {
			if row.failure != labhealth.FailureRedirect && !strings.Contains(errorText(err), part) {
				t.Errorf("%s: %v, want %q in it", call.method, err, part)
			}
		}
		if want := " failure=" + string(row.failure) + " "; !strings.Contains(logged.String(), want) || !strings.Contains(logged.String(), "level=WARN") {
			t.Errorf("%s: %q is not in the log: %s", call.method, want, logged.String())
		}
	}
}

func TestFailuresBeforeSending(t *testing.T) {
	plain := startFaults(t, false, 0, nil)
	secure := startFaults(t, true, 0, nil)
	refused := closedAddress(t)
	dialing := func(err error) *http.Transport {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
	}
	system := func(errno syscall.Errno) *http.Transport {
		return dialing(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)})
	}
	closing := acceptAll(t, func(c net.Conn) { c.Read(make([]byte, 5)) })
	const network = "check the base URL, and whether a proxy or firewall intercepts TLS"
	for _, row := range []failureRow{
		{"refused", "http://" + refused, nil, labhealth.FailureRefused, "connection refused: check the host and the port of the base URL"},
		{"refused on Windows", testURL, system(10061), labhealth.FailureRefused, "connection refused: check the host and the port of the base URL"},
		{"unknown host", testURL, dialing(&net.DNSError{IsNotFound: true}), labhealth.FailureUnknownHost, "unknown host: check the base URL"},
		{"DNS failure", testURL, dialing(&net.DNSError{IsTemporary: true}), labhealth.FailureDNS, "the DNS lookup failed: check the network and its DNS server"},
		{"DNS timeout", testURL, dialing(&net.DNSError{IsTimeout: true}), labhealth.FailureDNS, "the DNS lookup failed: check the network and its DNS server"},
		{"no route", testURL, system(syscall.EHOSTUNREACH), labhealth.FailureUnreachable, "the host is unreachable: check the network and the base URL"},
		{"firewall", testURL, system(syscall.EPERM), labhealth.FailureUnreachable, "this system does not allow the connection: check its firewall"},
		{"too many files", testURL, system(syscall.EMFILE), labhealth.FailureOther, "too many open files: use one client for all calls, or raise the limit of the process"},
		{"connect timeout", testURL, system(syscall.ETIMEDOUT), labhealth.FailureTimeout, "timed out while connecting: check the base URL, the network and its firewall"},
		{"not HTTPS", strings.Replace(plain.URL, "http:", "https:", 1), nil, labhealth.FailureScheme, "the server does not speak HTTPS: check the scheme and the port of the base URL"},
		{"unknown authority", secure.URL, nil, labhealth.FailureCertificate, "the server's certificate is from an unknown authority: check whether a proxy intercepts TLS, and which root certificates this system trusts"},
		{"another host", "https://localhost:" + portOf(secure.URL), &http.Transport{TLSClientConfig: otherName(secure)}, labhealth.FailureCertificate, "the server's certificate is for another host: check the base URL"},
		{"expired", expiredServer(t), nil, labhealth.FailureCertificate, "the server's certificate is expired or not yet valid: check the clock of this system, or renew the certificate"},
		{"TLS version", tlsServer(t, &tls.Config{MinVersion: tls.VersionTLS13}), &http.Transport{TLSClientConfig: &tls.Config{MaxVersion: tls.VersionTLS12}}, labhealth.FailureTLS, "the server ended the TLS handshake: check which TLS versions and client certificates it requires"},
		{"closed in the TLS handshake", "https://" + closing.Addr().String(), nil, labhealth.FailureTLS, "the TLS handshake failed: " + network},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t) })
	}
}

// expiredServer returns the URL of a server whose certificate has expired.
func expiredServer(t *testing.T) string {
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return tlsServer(t, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
}

// tlsServer returns the URL of a server that only performs TLS handshakes.
func tlsServer(t *testing.T, config *tls.Config) string {
	l := acceptAll(t, func(c net.Conn) { _ = tls.Server(c, config).Handshake() })
	return "https://" + l.Addr().String()
}

func TestFailuresOfProxies(t *testing.T) {
	responding := func(response string) string {
		return "http://" + acceptAll(t, func(c net.Conn) {
			c.Read(make([]byte, 1024))
			io.WriteString(c, response)
		}).Addr().String()
	}
	through := func(proxy string) *http.Transport { return &http.Transport{Proxy: proxyAt(proxy)} }
	unknown := through("http://proxy.example.com")
	unknown.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Name: "proxy.example.com", IsNotFound: true}
	}
	for _, row := range []failureRow{
		{"refused", testURL, through("http://" + closedAddress(t)), labhealth.FailureProxy, "the proxy cannot be used: connection refused: check the proxy settings"},
		{"unknown host", testURL, unknown, labhealth.FailureProxy, "the proxy cannot be used: unknown host: check the proxy settings"},
		{"not HTTPS", testURL, through(strings.Replace(responding("HTTP/1.1 200 OK\r\n\r\n"), "http", "https", 1)), labhealth.FailureProxy, "the proxy cannot be used: the proxy does not speak HTTPS: check the proxy settings"},
		{"407", testURL, through(responding("HTTP/1.1 407 Ada Example\r\nContent-Length: 0\r\n\r\n")), labhealth.FailureProxy, "the proxy requires a user and a password: check the proxy settings"},
		{"403", testURL, through(responding("HTTP/1.1 403 Ada Example\r\nContent-Length: 0\r\n\r\n")), labhealth.FailureProxy, "the proxy rejected the host of the base URL: ask for access to it, or check the proxy settings"},
		{"no HTTP", testURL, through(responding("Ada Example")), labhealth.FailureProxy, "the proxy did not connect: check the proxy settings"},
		{"closed", testURL, through(responding("")), labhealth.FailureProxy, "the proxy did not connect: check the proxy settings"},
		{"setting", testURL, &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("Ada Example") }}, labhealth.FailureProxy, "the proxy did not connect: check the proxy settings"},
		{"SOCKS", testURL, through(strings.Replace(responding("\x05\xff"), "http", "socks5", 1)), labhealth.FailureProxy, "the proxy did not connect: check the proxy settings"},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t) })
	}
}

func TestFailuresOfResponses(t *testing.T) {
	raw := func(text string) func(exchange) bool {
		return func(x exchange) bool {
			c := x.raw()
			io.WriteString(c, text)
			c.Close()
			return true
		}
	}
	for _, row := range []struct {
		name    string
		fault   func(exchange) bool
		failure labhealth.Failure
		text    string
	}{
		{"closed", raw(""), labhealth.FailureClosed, "the connection was closed while waiting for the response"},
		{"half a header", raw("HTTP/1.1 200 OK\r\nX-Na"), labhealth.FailureOther, "the connection failed, or the response is not valid HTTP: check the host and the port of the base URL"},
		{"reset", func(x exchange) bool {
			c := tcpOf(x.raw())
			c.SetLinger(0)
			c.Close()
			return true
		}, labhealth.FailureReset, "the connection was reset while waiting for the response"},
		{"no HTTP", raw("Ada Example\r\n\r\n"), labhealth.FailureOther, "the connection failed, or the response is not valid HTTP: check the host and the port of the base URL"},
		{"truncated", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"), labhealth.FailureTruncated, "the response ended too early"},
		{"truncated JSON", respond(200, `{"id":`), labhealth.FailureTruncated, "the response could not be read: it is not valid JSON at byte 6: unexpected end of JSON"},
		{"too large", respond(200, strings.Repeat(" ", 9<<20)), labhealth.FailureTooLarge, "the response is larger than the limit: raise it with WithBodyLimit"},
		{"no gzip", respond(200, "Ada Example", "Content-Encoding", "gzip"), labhealth.FailureUnreadable, "the response is not valid gzip"},
		{"HTML", respond(200, "<html>Ada Example", "Content-Type", "text/html"), labhealth.FailureUnreadable, "the response could not be read: it is HTML, not JSON: a proxy sent it, or the base URL is wrong"},
		{"empty", respond(200, " "), labhealth.FailureUnreadable, "the response could not be read: it is empty"},
		{"no JSON", respond(200, "Ada Example"), labhealth.FailureUnreadable, "the response could not be read: it is not valid JSON at byte 0: unexpected character"},
		{"no object", respond(200, `["Ada Example"]`), labhealth.FailureUnreadable, "the response could not be read: it is not a JSON object"},
		{"no ID", respond(200, `{"order":{"name":"Ada Example"}}`), labhealth.FailureUnreadable, "the response could not be read: it has no readable order id"},
		{"redirect", respond(301, "", "Location", "https://ada.example.com/"), labhealth.FailureRedirect, "the redirect was not followed: check the scheme, the host and the path of the base URL"},
	} {
		t.Run(row.name, func(t *testing.T) {
			srv := startFaults(t, false, -1, row.fault)
			failureRow{url: srv.URL, failure: row.failure, text: row.text}.check(t)
		})
	}
}

func TestFailuresOfRoundTrippers(t *testing.T) {
	failing := func(err error) http.RoundTripper {
		return roundTripper(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	for _, row := range []failureRow{
		{"unknown", testURL, failing(errors.New("Ada Example")), labhealth.FailureOther, "the http.RoundTripper failed: see TransportError.Cause"},
		{"refused", testURL, failing(syscall.ECONNREFUSED), labhealth.FailureRefused, "connection refused: check the host and the port of the base URL"},
		{"closed", testURL, failing(io.EOF), labhealth.FailureClosed, "the connection was closed"},
		{"timed out by itself", testURL, failing(os.ErrDeadlineExceeded), labhealth.FailureTimeout, "timed out"},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t) })
	}
}

// The error of a program's own transport is to be had from Cause, and from nothing that is printed.
func TestCause(t *testing.T) {
	own := errors.New("Ada Example at 10.0.0.1")
	transport := roundTripper(func(*http.Request) (*http.Response, error) { return nil, own })
	client, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Orders.Import(t.Context(), importBody())
	var failed *labhealth.TransportError
	if !errors.As(err, &failed) || failed.Cause() != own || !errors.Is(err, own) {
		t.Fatal(err)
	}
	for _, e := range append(failed.Unwrap(), err) {
		for _, verb := range []string{"%v", "%+v", "%#v", "%q", "%x"} {
			if out := fmt.Sprintf(verb, e); strings.Contains(out, "Ada") {
				t.Errorf("%s of %T prints %s", verb, e, out)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.Orders.Import(ctx, importBody())
	if !errors.As(err, &failed) || failed.Cause() != nil {
		t.Error(err, failed.Cause())
	}
}

// A transport may report the end of an attempt with any error.
func TestFailureOfTimeInRoundTripper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, errors.New("Ada Example")
		})
		failureRow{url: testURL, transport: transport, failure: labhealth.FailureTimeout, text: "timed out (RetryPolicy.ReadTimeout, 10s): raise it"}.checkCalls(t, faultCalls[:1])
	})
}

// A timeout says what the attempt waited for, and which setting or deadline has ended it.
func TestFailuresOfTime(t *testing.T) {
	const connecting = ": check the base URL, the network and its firewall"
	silent := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go io.Copy(io.Discard, server)
		return client, nil
	}
	stuck := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	header := func(x exchange) bool {
		x.respond(200, "{", "Content-Length", "100")
		x.ResponseWriter.(http.Flusher).Flush()
		x.hang()
		return true
	}
	hang := func(x exchange) bool { x.hang(); return true }
	for _, row := range []struct {
		name, url   string
		transport   *http.Transport
		clientLimit time.Duration
		fault       func(exchange) bool
		deadline    time.Duration // of the context; 0 for none
		get, post   string
	}{
		{name: "connecting", url: testURL, transport: &http.Transport{DialContext: stuck},
			get:  "timed out while connecting (RetryPolicy.ReadTimeout, 7s)" + connecting,
			post: "timed out while connecting (RetryPolicy.WriteTimeout, 9s)" + connecting},
		{name: "connecting until the deadline", url: testURL, transport: &http.Transport{DialContext: stuck}, deadline: time.Second,
			get: "timed out while connecting (the context's deadline)" + connecting, post: "timed out while connecting (the context's deadline)" + connecting},
		{name: "TLS", url: testURL, transport: &http.Transport{DialContext: silent},
			get:  "timed out during the TLS handshake (RetryPolicy.ReadTimeout, 7s)" + connecting,
			post: "timed out during the TLS handshake (RetryPolicy.WriteTimeout, 9s)" + connecting},
		{name: "TLS, limited by the transport", url: testURL, transport: &http.Transport{DialContext: silent, TLSHandshakeTimeout: time.Second},
			get: "timed out during the TLS handshake" + connecting, post: "timed out during the TLS handshake" + connecting},
		{name: "proxy", url: testURL, transport: &http.Transport{DialContext: silent, Proxy: proxyAt("http://proxy.example.com")},
			get:  "timed out while connecting through the proxy (RetryPolicy.ReadTimeout, 7s): check the proxy settings and the base URL",
			post: "timed out while connecting through the proxy (RetryPolicy.WriteTimeout, 9s): check the proxy settings and the base URL"},
		{name: "response", fault: hang,
			get:  "timed out while waiting for the response (RetryPolicy.ReadTimeout, 7s): raise it",
			post: "timed out while waiting for the response (RetryPolicy.WriteTimeout, 9s): raise it"},
		{name: "http.Client", fault: hang, clientLimit: 3 * time.Second,
			get: "timed out while waiting for the response (http.Client.Timeout, 3s): raise it", post: "timed out while waiting for the response (http.Client.Timeout, 3s): raise it"},
		{name: "response until the deadline", fault: hang, deadline: time.Second,
			get: "timed out while waiting for the response (the context's deadline): give it more time", post: "timed out while waiting for the response (the context's deadline): give it more time"},
		{name: "response header, limited by the transport", fault: hang, transport: &http.Transport{ResponseHeaderTimeout: time.Second},
			get: "timed out while waiting for the response", post: "timed out while waiting for the response"},
		{name: "body", fault: header,
			get:  "timed out while reading the response (RetryPolicy.ReadTimeout, 7s): raise it",
			post: "timed out while reading the response (RetryPolicy.WriteTimeout, 9s): raise it"},
		{name: "body until the deadline", fault: header, deadline: time.Second,
			get: "timed out while reading the response (the context's deadline): give it more time", post: "timed out while reading the response (the context's deadline): give it more time"},
	} {
		for i, want := range []string{row.get, row.post} {
			call := faultCalls[i]
			t.Run(row.name+"/"+call.method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					transport, target := &http.Transport{}, row.url
					if row.transport != nil {
						transport = row.transport.Clone()
					}
					if row.fault != nil {
						l := newMemoryListener()
						target, transport.DialContext = startFaultsOn(t, l, false, -1, row.fault).URL, l.dial
					}
					var attempts []error
					client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(target),
						labhealth.WithHTTPClient(&http.Client{Transport: transport, Timeout: row.clientLimit}),
						labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1, ReadTimeout: 7 * time.Second, WriteTimeout: 9 * time.Second}),
						observing(func(_ context.Context, a labhealth.Attempt) { attempts = append(attempts, a.Err) })))
					defer client.CloseIdleConnections()
					ctx := t.Context()
					if row.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, row.deadline)
						defer cancel()
					}
					var err error
					if call.method == "GET" {
						_, err = client.Orders.Get(ctx, faultOrderID)
					} else {
						_, err = client.Orders.Import(ctx, faultImport())
					}
					equal(t, want, errorText(errors.Join(attempts...)))
					equal(t, labhealth.FailureTimeout, labhealth.FailureOf(err))
					for part := range strings.SplitSeq(want, ": ") {
						if !strings.Contains(errorText(err), part) {
							t.Errorf("%v, want %q in it", err, part)
						}
					}
				})
			})
		}
	}
}
