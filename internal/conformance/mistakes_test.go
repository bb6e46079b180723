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
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/canarytest"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/management"
	"github.com/labhealth/labhealth-go/webhooks"
)

var updateMistakes = flag.Bool("update", false, "write testdata/mistakes.txt")

// mistakesFile has what a user sees of each mistake: the text of the error, its type and outcome,
// and what is logged at the level info.
const mistakesFile = "testdata/mistakes.txt"

// A mistake is something that a user does wrong.
type mistake struct {
	name string
	do   func(*mistakenUser) error
	want []string // what the text has, however it is worded
}

// mistakenUser makes a mistake, with the embedded service or a server of its own. Its key and
// patient are canaries.
type mistakenUser struct {
	*testing.T
	srv  *labhealthtest.Server
	user uuid.UUID
	logs bytes.Buffer
	also []string // other output, such as the rejections of an import
}

// TestMistakes makes every mistake, and compares what the user sees with mistakesFile. A text says
// what happened, whether the request was sent or applied, and what to change. Read a new text with
// these questions, then write the file with
//
//	go test ./internal/conformance -run TestMistakes -update
func TestMistakes(t *testing.T) {
	text, err := os.ReadFile(mistakesFile)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{} // by name
	for record := range strings.SplitAfterSeq(string(text), "\n\n") {
		name, _, _ := strings.Cut(record, "\n")
		want[name] = record
	}
	delete(want, "")
	var seen strings.Builder
	all := mistakes()
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			record := m.show(t)
			seen.WriteString(record)
			if !*updateMistakes {
				equal(t, want[m.name], record)
			}
		})
		delete(want, m.name)
	}
	if *updateMistakes {
		if err := os.WriteFile(mistakesFile, []byte(seen.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name := range want {
		t.Errorf("%s has %q, which nobody does", mistakesFile, name)
	}
	t.Logf("%d mistakes", len(all))
}

// variable is what differs from run to run.
var variable = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

// show makes a mistake, and returns its record.
func (m mistake) show(t *testing.T) string {
	srv := labhealthtest.NewServer(t)
	u := &mistakenUser{T: t, srv: srv, user: srv.AddUser(canaryUser)}
	err := m.try(u)
	if err == nil {
		t.Error("no error")
		return ""
	}
	for _, part := range m.want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	canarytest.New(t, srv.APIKey, srv.OrgKey, mistakeSecret).Error("error", err)
	logs := u.logs.String()
	check := canarytest.New(t, srv.APIKey, srv.OrgKey, mistakeSecret, u.user.String(), strings.TrimPrefix(srv.URL, "http://"), mistakeHost)
	check.Text("error", err.Error())
	check.Text("log", logs)
	var b strings.Builder
	text := strings.ReplaceAll(err.Error(), "\n", "\n\t     ")
	fmt.Fprintf(&b, "%s\n\ttext %s\n\ttype %T, outcome %v\n", m.name, text, err, labhealth.OutcomeOf(err))
	for line := range strings.Lines(logs) {
		b.WriteString("\tlog " + line)
	}
	for _, text := range u.also {
		check.Text("also", text)
		b.WriteString("\talso " + strings.ReplaceAll(text, "\n", "\n\t     ") + "\n")
	}
	return variable.ReplaceAllString(b.String(), "…") + "\n"
}

// try makes the mistake. A panic is an error of the test, and of its text.
func (m mistake) try(u *mistakenUser) (err error) {
	defer func() {
		if p := recover(); p != nil {
			u.Errorf("panic: %v", p)
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return m.do(u)
}

// logger logs what a program logs by default.
func (u *mistakenUser) logger() labhealth.Option {
	return labhealth.WithLogger(slog.New(slog.NewTextHandler(&u.logs, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "request_id" || a.Value.Kind() == slog.KindDuration {
				return slog.Attr{}
			}
			return a
		},
	})))
}

// newClient creates a client of base.
func (u *mistakenUser) newClient(key, base string, opts ...labhealth.Option) (*labhealth.Client, error) {
	client, err := labhealth.NewClient(key, append([]labhealth.Option{labhealth.WithBaseURL(base), labhealth.WithRetry(quick), u.logger()}, opts...)...)
	if err == nil {
		u.Cleanup(client.CloseIdleConnections)
	}
	return client, err
}

// under returns a client of the embedded service, with a path that it does not have.
func (u *mistakenUser) under(path string) *labhealth.Client {
	return must[*labhealth.Client](u)(u.newClient(u.srv.APIKey, u.srv.URL+path))
}

// at returns a client of base, with the canary as key.
func (u *mistakenUser) at(base string, opts ...labhealth.Option) *labhealth.Client {
	return must[*labhealth.Client](u)(u.newClient(canaryKey, base, opts...))
}

// service returns a client of the embedded service.
func (u *mistakenUser) service(opts ...labhealth.Option) *labhealth.Client {
	return must[*labhealth.Client](u)(u.newClient(u.srv.APIKey, u.srv.URL, opts...))
}

// failing returns a client of the embedded service, which processes all requests and then has a
// fault.
func (u *mistakenUser) failing(fault labhealthtest.Fault) *labhealth.Client {
	if err := u.srv.FailAfter("", -1, fault); err != nil {
		u.Fatal(err)
	}
	return u.service()
}

// page returns the URL of a server with one response.
func (u *mistakenUser) page(status int, contentType, body string, header ...string) string {
	return u.serve(func(w http.ResponseWriter, _ *http.Request) {
		exchange{ResponseWriter: w}.respond(status, body, append([]string{"Content-Type", contentType}, header...)...)
	})
}

func (u *mistakenUser) serve(h http.HandlerFunc) string {
	srv := httptest.NewServer(h)
	u.Cleanup(srv.Close)
	return srv.URL
}

// tlsServer returns the URL of a server with a certificate for host, and a pool that trusts it.
func (u *mistakenUser) tlsServer(host string, expires time.Duration) (string, *x509.CertPool) {
	u.Helper()
	key := must[*ecdsa.PrivateKey](u)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(expires), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, DNSNames: []string{host},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der := must[[]byte](u)(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	u.Cleanup(srv.Close)
	pool := x509.NewCertPool()
	pool.AddCert(must[*x509.Certificate](u)(x509.ParseCertificate(der)))
	return srv.URL, pool
}

// withTransport returns an option for a transport.
func withTransport(transport *http.Transport) labhealth.Option {
	return labhealth.WithHTTPClient(&http.Client{Transport: transport})
}

// withProxy returns an option for a proxy.
func withProxy(address string) labhealth.Option {
	return withTransport(&http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: strings.TrimPrefix(address, "http://")})})
}

// withoutHosts returns an option for a network in which no host has an address.
func withoutHosts() labhealth.Option {
	return withTransport(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: canaryLast + ".example.com", IsNotFound: true}}
	}})
}

// order is an import that the service accepts, of the canary's patient.
func (u *mistakenUser) order(change func(*labhealth.ImportOrderBody)) labhealth.ImportOrderBody {
	body := canaryImport()
	body.UserID, body.OrderSet.LabTestIDs = u.user, []uuid.UUID{u.srv.LabTests.OnSite}
	if change != nil {
		change(&body)
	}
	return body
}

func (u *mistakenUser) imports(client *labhealth.Client, change func(*labhealth.ImportOrderBody)) error {
	_, err := client.Orders.Import(u.Context(), u.order(change))
	return err
}

// addOrder adds an order to the embedded service.
func (u *mistakenUser) addOrder() uuid.UUID {
	return must[uuid.UUID](u)(u.srv.AddOrder(u.user, u.srv.LabTests.WalkIn))
}

func listUsers(ctx context.Context, client *labhealth.Client) error {
	_, err := client.Users.List(ctx, labhealth.ListUsersParams{})
	return err
}

// reads returns the error of a read.
func (u *mistakenUser) reads(client *labhealth.Client) error { return listUsers(u.Context(), client) }

const mistakeHTML = "<!DOCTYPE html><html><head><title>Access blocked: " + canaryLast + "</title></head><body>" + canaryEmail + "</body></html>"

// mistakeHost is the host that redirects lead to.
const mistakeHost = "login.example.com"

// mistakeSecret is a webhook secret.
const mistakeSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// mistakes are the mistakes.
func mistakes() []mistake {
	var all []mistake
	for _, some := range [][]mistake{
		keyMistakes, baseURLMistakes, networkMistakes, proxyMistakes, contextMistakes, argumentMistakes, bodyMistakes, rejectionMistakes,
		responseMistakes, managementMistakes, webhookMistakes, bulkMistakes,
	} {
		all = append(all, some...)
	}
	return all
}

var keyMistakes = []mistake{
	{"wrong key, read", func(u *mistakenUser) error { return u.reads(u.at(u.srv.URL)) }, []string{"401 Unauthorized"}},
	{"wrong key, import", func(u *mistakenUser) error { return u.imports(u.at(u.srv.URL), nil) }, []string{"401 Unauthorized"}},
	{"key of another region", func(u *mistakenUser) error {
		return u.reads(must[*labhealth.Client](u)(u.newClient("sk_eu_"+canaryLast, u.srv.URL)))
	}, []string{"401 Unauthorized"}},
	{"key with a line break", func(u *mistakenUser) error { _, err := u.newClient(canaryKey+"\n", u.srv.URL); return err }, []string{"API key", "line break"}},
	{"key in quotes", func(u *mistakenUser) error { _, err := u.newClient(`"`+canaryKey+`"`, u.srv.URL); return err }, []string{"API key", "quotes"}},
	{"empty key", func(u *mistakenUser) error { _, err := u.newClient("", u.srv.URL); return err }, []string{"API key", "empty"}},
}

// newClientError is a mistake with NewClient.
func newClientError(base string, opts ...labhealth.Option) func(*mistakenUser) error {
	return func(u *mistakenUser) error { _, err := u.newClient(canaryKey, base, opts...); return err }
}

var baseURLMistakes = []mistake{
	{"no base URL", func(*mistakenUser) error { _, err := labhealth.NewClient(canaryKey); return err }, []string{"no base URL"}},
	{"empty base URL", newClientError(""), []string{"base URL is empty"}},
	{"base URL without a scheme", newClientError("api.example.com"), []string{"base URL", "https://"}},
	{"base URL with a line break", newClientError("https://" + canaryLast + ".example.com\n"), []string{"base URL", "line break"}},
	{"base URL in quotes", newClientError(`'https://` + canaryLast + `.example.com'`), []string{"base URL", "quotes"}},
	{"base URL with a password", newClientError("https://" + canaryFirst + ":" + canaryLast + "@example.com"), []string{"base URL"}},
	{"base URL with http", newClientError("http://" + canaryLast + ".example.com"), []string{"base URL", "https"}},
	{"two base URLs", newClientError("https://api.example.com", labhealth.WithBaseURL("https://"+canaryLast+".example.com")), []string{"base URL"}},
	{"base URL with another path, read", func(u *mistakenUser) error { return u.reads(u.under("/api")) }, []string{"404 Not Found"}},
	{"base URL with another path, import", func(u *mistakenUser) error { return u.imports(u.under("/api"), nil) }, []string{"404 Not Found"}},
	{"base URL with a version", func(u *mistakenUser) error {
		client, err := u.newClient(u.srv.APIKey, u.srv.URL+"/v3")
		if err != nil {
			return err
		}
		return u.reads(client)
	}, []string{"/v3"}},
	{"path of the orders", func(u *mistakenUser) error {
		_, err := u.service(labhealth.WithPath("GET /orders", "/v4/orders")).Orders.List(u.Context(), labhealth.ListOrdersParams{})
		return err
	}, []string{"404 Not Found"}},
	{"path of the results", func(u *mistakenUser) error {
		client := u.service(labhealth.WithPath("GET /v3/order/{order_id}/result", "/v3/order/{order_id}/results"))
		_, err := client.Orders.Results(u.Context(), u.addOrder())
		return err
	}, []string{"404 Not Found"}},
	{"WithPath of no operation", newClientError("https://api.example.com", labhealth.WithPath("GET /order", "/v3/orders")), []string{"GET /order"}},
	{"WithPath without its parameter", newClientError("https://api.example.com", labhealth.WithPath("GET /v3/order/{order_id}", "/order")), []string{"order_id"}},
}

var networkMistakes = []mistake{
	{"https of an http server", func(u *mistakenUser) error { return u.reads(u.at("https" + strings.TrimPrefix(u.srv.URL, "http"))) }, []string{"HTTPS", "not sent"}},
	{"http of an https server", func(u *mistakenUser) error {
		base, _ := u.tlsServer("127.0.0.1", time.Hour)
		return u.reads(u.at("http" + strings.TrimPrefix(base, "https")))
	}, []string{"400 Bad Request"}},
	{"wrong port, read", func(u *mistakenUser) error { return u.reads(u.at("http://" + closedAddress(u))) }, []string{"connection refused", "not sent"}},
	{"wrong port, import", func(u *mistakenUser) error { return u.imports(u.at("http://"+closedAddress(u)), nil) }, []string{"connection refused", "not sent"}},
	{"unknown host", func(u *mistakenUser) error {
		return u.reads(u.at("https://"+canaryLast+".example.com", withoutHosts()))
	}, []string{"unknown host", "not sent"}},
	{"unknown host, import", func(u *mistakenUser) error { return u.imports(u.at("https://api.example.com", withoutHosts()), nil) }, []string{"unknown host", "not sent"}},
	{"self-signed certificate", func(u *mistakenUser) error {
		base, _ := u.tlsServer("127.0.0.1", time.Hour)
		return u.reads(u.at(base))
	}, []string{"certificate", "not sent"}},
	{"expired certificate", func(u *mistakenUser) error {
		base, pool := u.tlsServer("127.0.0.1", -time.Hour)
		return u.reads(u.at(base, withTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}})))
	}, []string{"certificate", "not sent"}},
	{"certificate of another host", func(u *mistakenUser) error {
		base, pool := u.tlsServer(canaryLast+".example.com", time.Hour)
		return u.reads(u.at(base, withTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}})))
	}, []string{"certificate", "not sent"}},
	{"a server that is not HTTP", func(u *mistakenUser) error {
		l := acceptAll(u, func(c net.Conn) {
			c.Read(make([]byte, 1))
			io.WriteString(c, "SSH-2.0-"+canaryLast+"\r\n")
		})
		return u.reads(u.at("http://" + l.Addr().String()))
	}, []string{"the connection failed"}},
}

var proxyMistakes = []mistake{
	{"proxy that refuses connections", func(u *mistakenUser) error {
		return u.reads(u.at("https://api.example.com", withProxy(closedAddress(u))))
	}, []string{"not sent"}},
	{"proxy that wants a password", func(u *mistakenUser) error {
		return u.reads(u.at("https://api.example.com", withProxy(u.page(407, "text/html", mistakeHTML, "Proxy-Authenticate", "Basic realm="+canaryLast))))
	}, []string{"not sent"}},
	{"proxy that rejects the host", func(u *mistakenUser) error {
		return u.imports(u.at("https://api.example.com", withProxy(u.page(403, "text/html", mistakeHTML))), nil)
	}, []string{"not sent"}},
	{"page of a proxy, 200, read", func(u *mistakenUser) error { return u.reads(u.at(u.page(200, "text/html", mistakeHTML))) }, []string{"HTML"}},
	{"page of a proxy, 200, import", func(u *mistakenUser) error { return u.imports(u.at(u.page(200, "text/html", mistakeHTML)), nil) }, []string{"HTML"}},
	{"page of a proxy, 403, import", func(u *mistakenUser) error { return u.imports(u.at(u.page(403, "text/html", mistakeHTML)), nil) }, []string{"403 Forbidden"}},
	{"page of a proxy, 502, read", func(u *mistakenUser) error { return u.reads(u.at(u.page(502, "text/html", mistakeHTML))) }, []string{"502 Bad Gateway"}},
	{"page of a proxy, 502, import", func(u *mistakenUser) error { return u.imports(u.at(u.page(502, "text/html", mistakeHTML)), nil) }, []string{"502 Bad Gateway"}},
}

// inSilence makes calls that get no response, in fake time.
func inSilence(do func(context.Context, *mistakenUser, ...labhealth.Option) error, opts ...labhealth.Option) func(*mistakenUser) error {
	return func(u *mistakenUser) (err error) {
		synctest.Test(u.T, func(t *testing.T) {
			if opts == nil {
				opts = []labhealth.Option{labhealth.WithHTTPClient(&http.Client{Transport: silent{}})}
			}
			err = do(t.Context(), u, opts...)
		})
		return err
	}
}

// quietAt returns a client without a connection.
func (u *mistakenUser) quietAt(opts ...labhealth.Option) *labhealth.Client {
	opts = append([]labhealth.Option{labhealth.WithBaseURL("https://api.example.com"), u.logger()}, opts...)
	return must[*labhealth.Client](u)(labhealth.NewClient(canaryKey, opts...))
}

func silentImport(ctx context.Context, u *mistakenUser, opts ...labhealth.Option) error {
	_, err := u.quietAt(opts...).Orders.Import(ctx, u.order(nil))
	return err
}

func silentRead(ctx context.Context, u *mistakenUser, opts ...labhealth.Option) error {
	return listUsers(ctx, u.quietAt(opts...))
}

// nilContext is a context that a program has not set.
var nilContext context.Context

var contextMistakes = []mistake{
	{"timeout of the http.Client, read", inSilence(silentRead, labhealth.WithHTTPClient(&http.Client{Transport: silent{}, Timeout: time.Second})), []string{"timed out"}},
	{"timeout of the http.Client, import", inSilence(silentImport, labhealth.WithHTTPClient(&http.Client{Transport: silent{}, Timeout: time.Second})), []string{"timed out", "outcome unknown"}},
	{"WriteTimeout of the policy", inSilence(silentImport, labhealth.WithHTTPClient(&http.Client{Transport: silent{}}), labhealth.WithRetry(labhealth.RetryPolicy{WriteTimeout: time.Second})), []string{"timed out", "outcome unknown"}},
	{"deadline of the context", inSilence(func(ctx context.Context, u *mistakenUser, opts ...labhealth.Option) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return silentImport(ctx, u, opts...)
	}), []string{"timed out", "outcome unknown"}},
	{"deadline that has passed", func(u *mistakenUser) error {
		ctx, cancel := context.WithTimeout(u.Context(), -1)
		defer cancel()
		return listUsers(ctx, u.service())
	}, []string{"not sent"}},
	{"canceled before the call", func(u *mistakenUser) error {
		ctx, cancel := context.WithCancel(u.Context())
		cancel()
		return listUsers(ctx, u.service())
	}, []string{"canceled", "not sent"}},
	{"canceled during the call", inSilence(func(ctx context.Context, u *mistakenUser, opts ...labhealth.Option) error {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return silentImport(ctx, u, opts...)
	}), []string{"canceled", "outcome unknown"}},
	{"nil context, read", func(u *mistakenUser) error { return listUsers(nilContext, u.service()) }, []string{"not sent"}},
	{"nil context, import", func(u *mistakenUser) error { _, err := u.service().Orders.Import(nilContext, u.order(nil)); return err }, []string{"not sent"}},
	{"nil context, Do", func(u *mistakenUser) error { return u.service().Do(nilContext, "GET", "/v2/user/", nil, nil) }, []string{"not sent"}},
	{"nil context, iterator", func(u *mistakenUser) error {
		for _, err := range u.service().Users.All(nilContext, labhealth.ListUsersParams{}) {
			return err
		}
		return nil
	}, []string{"not sent"}},
}

// doWith is a mistake with Client.Do.
func doWith(method, path string, body, out any) func(*mistakenUser) error {
	return func(u *mistakenUser) error { return u.service().Do(u.Context(), method, path, body, out) }
}

var argumentMistakes = []mistake{
	{"client without NewClient", func(u *mistakenUser) error { return u.reads(new(labhealth.Client)) }, []string{"NewClient"}},
	{"nil client, Do", func(u *mistakenUser) error {
		return (*labhealth.Client)(nil).Do(u.Context(), "GET", "/v2/user/", nil, nil)
	}, []string{"NewClient"}},
	{"nil http.Client", newClientError("https://api.example.com", labhealth.WithHTTPClient(nil)), []string{"WithHTTPClient"}},
	{"nil logger", newClientError("https://api.example.com", labhealth.WithLogger(nil)), []string{"WithLogger"}},
	{"negative retries", newClientError("https://api.example.com", labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: -1})), []string{"RetryPolicy.MaxAttempts"}},
	{"out that is no pointer", doWith("GET", "/v2/user/", nil, struct{}{}), []string{"not sent", "out", "pointer"}},
	{"out that is a nil pointer", doWith("GET", "/v2/user/", nil, (*labhealth.UserPage)(nil)), []string{"not sent", "out", "pointer"}},
	{"URL as path", doWith("GET", "https://"+canaryLast+".example.com/v2/user/", nil, nil), []string{"not sent", "path"}},
	{"query in the path", doWith("GET", "/v2/user/?name="+canaryLast, nil, nil), []string{"not sent", "WithQuery"}},
	{"method in lower case", doWith("get", "/v2/user/", nil, nil), []string{"not sent", "GET"}},
	{"body that is not JSON", doWith("POST", "/v2/user", map[string]any{canaryLast: make(chan int)}, nil), []string{"not sent", "JSON"}},
	{"ID that was not set", func(u *mistakenUser) error { _, err := u.service().Orders.Get(u.Context(), uuid.Nil); return err }, []string{"not sent", "order_id"}},
	{"limit that is too large", func(u *mistakenUser) error {
		_, err := u.service().Users.List(u.Context(), labhealth.ListUsersParams{Limit: 1000})
		return err
	}, []string{"not sent", "limit", "500"}},
	{"nil writer", func(u *mistakenUser) error {
		_, err := u.service().Orders.ResultsPDF(u.Context(), u.user, nil)
		return err
	}, []string{"not sent", "w "}},
	{"idempotency key of an import", func(u *mistakenUser) error {
		_, err := u.service().Orders.Import(u.Context(), u.order(nil), labhealth.WithIdempotencyKey(canarySample))
		return err
	}, []string{"not sent", "WithIdempotencyKey"}},
	{"key in a header", func(u *mistakenUser) error {
		_, err := u.service().Orders.List(u.Context(), labhealth.ListOrdersParams{}, labhealth.WithHeader("X-Service-API-Key", canaryKey))
		return err
	}, []string{"not sent", "header"}},
	{"date of the US", func(*mistakenUser) error { _, err := labhealth.ParseDate("11/23/1957"); return err }, []string{"YYYY-MM-DD"}},
}

// importWith is a mistake with Orders.Import.
func importWith(change func(*labhealth.ImportOrderBody)) func(*mistakenUser) error {
	return func(u *mistakenUser) error { return u.imports(u.service(), change) }
}

var bodyMistakes = []mistake{
	{"empty body", func(u *mistakenUser) error {
		_, err := u.service().Orders.Import(u.Context(), labhealth.ImportOrderBody{})
		return err
	}, []string{"not sent", "body.user_id", "body.sample_id"}},
	{"no phone number", importWith(func(b *labhealth.ImportOrderBody) { b.PatientDetails.PhoneNumber = "" }), []string{"not sent", "body.patient_details.phone_number"}},
	{"two email addresses", importWith(func(b *labhealth.ImportOrderBody) { b.PatientDetails.Email += ", " + canaryEmail }), []string{"not sent", "body.patient_details.email"}},
	{"date that does not exist", importWith(func(b *labhealth.ImportOrderBody) {
		b.PatientDetails.DOB = labhealth.Date{Year: 1957, Month: time.February, Day: 30}
	}), []string{"not sent", "body.patient_details.dob"}},
	{"date of birth in the future", importWith(func(b *labhealth.ImportOrderBody) { b.PatientDetails.DOB.Year = 2957 }), []string{"body.patient_details.dob"}},
	{"billing type that does not exist", importWith(func(b *labhealth.ImportOrderBody) { b.BillingType = canaryLast }), []string{"body.billing_type"}},
	{"collection method that does not exist", importWith(func(b *labhealth.ImportOrderBody) { b.CollectionMethod = canaryLast }), []string{"body.collection_method"}},
	{"update that changes nothing", func(u *mistakenUser) error {
		_, err := u.service().Orders.Update(u.Context(), u.user, labhealth.UpdateOrderBody{})
		return err
	}, []string{"not sent", "body.activate_by"}},
	{"date that has passed", func(u *mistakenUser) error {
		_, err := u.service().Orders.Reschedule(u.Context(), u.user, labhealth.Date{Year: 1957, Month: time.November, Day: 23})
		return err
	}, []string{"not sent", "body.activate_by", "today"}},
}

// closedBeta is an import of a team that is not enabled.
func closedBeta(status int, body string) func(*mistakenUser) error {
	return func(u *mistakenUser) error {
		u.srv.RejectImports(status, body)
		return u.imports(u.service(), nil)
	}
}

var rejectionMistakes = []mistake{
	{"unknown lab test, import", importWith(func(b *labhealth.ImportOrderBody) { b.OrderSet.LabTestIDs[0] = faultOrderID }), []string{"400 Bad Request"}},
	{"unknown lab test", func(u *mistakenUser) error {
		_, err := u.service().LabTests.Get(u.Context(), faultOrderID, labhealth.GetLabTestParams{})
		return err
	}, []string{"404 Not Found"}},
	{"inactive lab test", func(u *mistakenUser) error {
		return u.imports(u.service(), func(b *labhealth.ImportOrderBody) { b.OrderSet.LabTestIDs[0] = u.srv.LabTests.Inactive })
	}, []string{"400 Bad Request"}},
	{"unknown user, import", importWith(func(b *labhealth.ImportOrderBody) { b.UserID = faultOrderID }), []string{"404 Not Found"}},
	{"unknown user", func(u *mistakenUser) error { _, err := u.service().Users.Resolve(u.Context(), canaryLast); return err }, []string{"404 Not Found"}},
	{"unknown order", func(u *mistakenUser) error { _, err := u.service().Orders.Get(u.Context(), faultOrderID); return err }, []string{"404 Not Found"}},
	{"closed beta, 403", closedBeta(403, `{"detail":"This feature is in closed beta"}`), []string{"403 Forbidden"}},
	{"closed beta, 400", closedBeta(400, `{"detail":"Order import is not enabled for this team."}`), []string{"400 Bad Request"}},
	{"closed beta, plain text", closedBeta(400, "Order import is not enabled for "+canaryLast), []string{"400 Bad Request"}},
	{"closed beta, 404", closedBeta(404, `{"detail":"Not Found"}`), []string{"404 Not Found"}},
	{"no results yet", func(u *mistakenUser) error {
		_, err := u.service().Orders.Results(u.Context(), u.addOrder())
		return err
	}, []string{"404 Not Found"}},
	{"no results yet, PDF", func(u *mistakenUser) error {
		_, err := u.service().Orders.ResultsPDF(u.Context(), u.addOrder(), io.Discard)
		return err
	}, []string{"404 Not Found"}},
	{"order that cannot be changed", func(u *mistakenUser) error {
		_, err := u.service().Orders.Reschedule(u.Context(), u.addOrder(), labhealth.DateOf(time.Now().AddDate(0, 0, 9)))
		return err
	}, []string{"400 Bad Request"}},
	{"order that is canceled", func(u *mistakenUser) error {
		id := u.addOrder()
		if err := u.srv.Cancel(id); err != nil {
			return nil
		}
		_, err := u.service().Orders.Cancel(u.Context(), id)
		return err
	}, []string{"400 Bad Request"}},
	{"sample ID that is taken", func(u *mistakenUser) error {
		client := u.service()
		if err := u.imports(client, nil); err != nil {
			u.Fatal(err)
		}
		return u.imports(client, nil)
	}, []string{"400 Bad Request"}},
	{"user that exists", func(u *mistakenUser) error {
		_, err := u.service().Users.Create(u.Context(), labhealth.CreateUserBody{ClientUserID: canaryUser})
		return err
	}, []string{"400 Bad Request", "client user "}},
	{"too many requests, import", func(u *mistakenUser) error {
		return u.imports(u.failing(labhealthtest.FaultResponse(429, `{"detail":"Too Many Requests"}`, "Retry-After", "3600")), nil)
	}, []string{"429 Too Many Requests"}},
	{"too many requests, read", func(u *mistakenUser) error {
		return u.reads(u.failing(labhealthtest.FaultResponse(429, `{"detail":"Too Many Requests"}`, "Retry-After", "3600")))
	}, []string{"429 Too Many Requests"}},
}

// fails is a call to the embedded service, which has a fault.
func fails(call func(*mistakenUser, *labhealth.Client) error, fault labhealthtest.Fault) func(*mistakenUser) error {
	return func(u *mistakenUser) error { return call(u, u.failing(fault)) }
}

// importOnce imports an order.
func importOnce(u *mistakenUser, client *labhealth.Client) error { return u.imports(client, nil) }

// redirects is a call to a server that redirects.
func redirects(call func(*mistakenUser, *labhealth.Client) error, status int) func(*mistakenUser) error {
	return func(u *mistakenUser) error {
		return call(u, u.at(u.page(status, "text/html", mistakeHTML, "Location", "https://"+mistakeHost+"/"+canaryLast+"?user="+canaryUser)))
	}
}

var responseMistakes = []mistake{
	{"500, import", fails(importOnce, labhealthtest.FaultResponse(500, "Internal Server Error", "Content-Type", "text/plain")), []string{"500 Internal Server Error"}},
	{"500, read", fails((*mistakenUser).reads, labhealthtest.FaultResponse(500, "Internal Server Error", "Content-Type", "text/plain")), []string{"500 Internal Server Error"}},
	{"503, import", fails(importOnce, labhealthtest.FaultResponse(503, "", "Retry-After", "1")), []string{"503 Service Unavailable"}},
	{"too large, import", fails(importOnce, labhealthtest.FaultTooLarge), []string{"limit"}},
	{"too large, read", fails((*mistakenUser).reads, labhealthtest.FaultTooLarge), []string{"limit"}},
	{"truncated, import", fails(importOnce, labhealthtest.FaultHalfBody), []string{"ended too early"}},
	{"truncated, read", fails((*mistakenUser).reads, labhealthtest.FaultHalfBody), []string{"ended too early"}},
	{"closed, import", fails(importOnce, labhealthtest.FaultClosed), []string{"outcome unknown"}},
	{"reset, import", fails(importOnce, labhealthtest.FaultReset), []string{"outcome unknown"}},
	{"not JSON, import", fails(importOnce, labhealthtest.FaultResponse(200, canaryLast)), []string{"JSON"}},
	{"empty, read", fails((*mistakenUser).reads, labhealthtest.FaultResponse(200, "")), []string{"empty"}},
	{"no order ID, import", fails(importOnce, labhealthtest.FaultResponse(200, `{"order":{},"status":"","message":""}`)), []string{"order id"}},
	{"redirect, import", redirects(importOnce, 307), []string{"redirect"}},
	{"redirect, read", redirects((*mistakenUser).reads, 302), []string{"redirect"}},
}

// listTeams lists the teams of an organisation.
func listTeams(u *mistakenUser, org uuid.UUID, key string) error {
	client, err := management.NewClient(org, key, labhealth.WithBaseURL(u.srv.URL), u.logger())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	_, err = client.Teams.List(u.Context(), management.ListTeamsParams{})
	return err
}

var managementMistakes = []mistake{
	{"management key for the team API", func(u *mistakenUser) error {
		return u.reads(must[*labhealth.Client](u)(u.newClient(u.srv.OrgKey, u.srv.URL)))
	}, []string{"401 Unauthorized"}},
	{"team key for the management API", func(u *mistakenUser) error { return listTeams(u, u.srv.OrgID, u.srv.APIKey) }, []string{"401 Unauthorized"}},
	{"ID of another organisation", func(u *mistakenUser) error { return listTeams(u, faultOrderID, u.srv.OrgKey) }, []string{"403 Forbidden"}},
	{"no ID of the organisation", func(u *mistakenUser) error { return listTeams(u, uuid.Nil, u.srv.OrgKey) }, []string{"organisation ID"}},
}

// newVerifier is a mistake with NewVerifier.
func newVerifier(secrets ...string) func(*mistakenUser) error {
	return func(*mistakenUser) error { _, err := webhooks.NewVerifier(secrets...); return err }
}

// verifyDelivery is a delivery that the embedded service signs with secret, if it is not empty, on
// a clock that is slow by late. The error is that of a verifier with mistakeSecret.
func verifyDelivery(secret string, late time.Duration) func(*mistakenUser) error {
	return func(u *mistakenUser) error {
		verifier := must[*webhooks.Verifier](u)(webhooks.NewVerifier(mistakeSecret))
		result := make(chan error, 1)
		receiver := u.serve(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			result <- verifier.Verify(body, r.Header)
		})
		srv := labhealthtest.NewServer(u, labhealthtest.WithClock(func() time.Time { return time.Now().Add(-late) }))
		var opts []labhealthtest.DeliveryOption
		if secret != "" {
			opts = append(opts, labhealthtest.WithSigningSecrets(secret))
		}
		if err := srv.DeliverTo(receiver, opts...); err != nil {
			u.Fatal(err)
		}
		if err := srv.Send([]byte(`{"event_type":"` + canaryLast + `"}`)); err != nil {
			u.Fatal(err)
		}
		return <-result
	}
}

// parseEvent is a mistake with Parse.
func parseEvent(body string) func(*mistakenUser) error {
	return func(*mistakenUser) error { _, err := webhooks.Parse([]byte(body)); return err }
}

var webhookMistakes = []mistake{
	{"no webhook secret", newVerifier(), []string{"secret", "Unsigned"}},
	{"empty webhook secret", newVerifier(""), []string{"secret 1 of 1", "empty"}},
	{"API key as webhook secret", newVerifier(canaryKey), []string{"secret 1 of 1"}},
	{"webhook secret with a line break", newVerifier(mistakeSecret + "\n"), []string{"secret 1 of 1", "line break"}},
	{"nil verifier", func(*mistakenUser) error {
		_, err := webhooks.NewHandler(nil, func(context.Context, *webhooks.Event) error { return nil })
		return err
	}, []string{"NewVerifier", "webhooks.Unsigned"}},
	{"nil function of a handler", func(*mistakenUser) error { _, err := webhooks.NewHandler(webhooks.Unsigned, nil); return err }, []string{"function"}},
	{"other webhook secret", verifyDelivery("whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 0), []string{"signature"}},
	{"webhook without a signature", verifyDelivery("", 0), []string{"signature", "headers"}},
	{"webhook of another time", verifyDelivery(mistakeSecret, 10*time.Minute), []string{"timestamp"}},
	{"event that is not JSON", parseEvent("name=" + canaryLast), []string{"not an event"}},
	{"event that is compressed", parseEvent(string(gzipOf([]byte(`{"event_type":"a.b"}`)))), []string{"not an event"}},
	{"empty event", parseEvent(""), []string{"not an event"}},
}

// csv is a file with one order.
func (u *mistakenUser) csv(dob string) string {
	return "sample_id,user_id,collection_method,billing_type,order_set.lab_test_ids,patient_details.first_name,patient_details.last_name," +
		"patient_details.dob,patient_details.gender,patient_details.phone_number,patient_details.email,patient_address.receiver_name," +
		"patient_address.first_line,patient_address.city,patient_address.state,patient_address.zip,patient_address.country\n" +
		strings.Join([]string{canarySample, u.user.String(), "walk_in_test,client_bill", u.srv.LabTests.WalkIn.String(), canaryFirst, canaryLast, dob,
			"female", canaryPhone, canaryEmail, canaryFirst, canaryStreet, canaryCity, "CA", canaryZip, "US"}, ",") + "\n"
}

// run imports a source. Rejected records are an error of the user, and have the text of the
// rejection, which has the sample ID for the program.
func (u *mistakenUser) run(client *labhealth.Client, source bulk.Source, journal bulk.Journal, opts bulk.Options) error {
	var rejections bytes.Buffer
	opts.Rejections = &rejections
	report, err := bulk.Run(u.Context(), client, source, journal, opts)
	if rejections.Len() > 0 {
		u.also = append(u.also, strings.ReplaceAll(strings.TrimSpace(rejections.String()), canarySample, "…"))
	}
	if report != nil {
		u.also = append(u.also, report.String())
	}
	if err == nil && rejections.Len() > 0 {
		err, u.also = errors.New(strings.Join(u.also, "\n")), nil
	}
	return err
}

// csvSource reads a CSV file.
func csvSource(content string) bulk.Source {
	return bulk.CSV(strings.NewReader(content), bulk.CSVOptions{})
}

// importFile imports a CSV file.
func importFile(content func(*mistakenUser) string) func(*mistakenUser) error {
	return func(u *mistakenUser) error {
		return u.run(u.service(), csvSource(content(u)), new(bulk.Memory), bulk.Options{})
	}
}

// fileOf returns content.
func fileOf(content string) func(*mistakenUser) string {
	return func(*mistakenUser) string { return content }
}

var bulkMistakes = []mistake{
	{"file with an unknown column", importFile(fileOf("sample_id,First name\nS1,Ada\n")), []string{"2 (B)", "First name"}},
	{"file with semicolons", importFile(fileOf("sample_id;user_id\nS1;Ada\n")), []string{"semicolons", "CSVOptions.Comma"}},
	{"empty file", importFile(fileOf("")), []string{"empty"}},
	{"file with dates of the US", importFile(func(u *mistakenUser) string { return u.csv("11/23/1957") }), []string{"body.patient_details.dob"}},
	{"file with another user ID", importFile(func(u *mistakenUser) string { return strings.Replace(u.csv(canaryDOB), u.user.String(), "57", 1) }), []string{"body.user_id"}},
	{"file with a short row", importFile(func(u *mistakenUser) string { return u.csv(canaryDOB) + canaryLast + "\n" }), []string{"cells"}},
	{"file with an open quote", importFile(func(u *mistakenUser) string { return u.csv(canaryDOB) + `"` + canaryLast + "\n" }), []string{"line 3"}},
	{"file that is not UTF-8", importFile(func(u *mistakenUser) string { return strings.Replace(u.csv(canaryDOB), canaryFirst, "Jos\xe9", 1) }), []string{"UTF-8"}},
	{"JSON list instead of lines", func(u *mistakenUser) error {
		return u.run(u.service(), bulk.JSONLines(strings.NewReader("[\n]\n")), new(bulk.Memory), bulk.Options{})
	}, []string{"JSON"}},
	{"journal of another target", func(u *mistakenUser) error {
		journal, source := new(bulk.Memory), csvSource(u.csv(canaryDOB))
		if err := u.run(u.service(), source, journal, bulk.Options{Target: "sandbox"}); err != nil {
			u.Fatal(err)
		}
		return u.run(u.service(), source, journal, bulk.Options{Target: "production"})
	}, []string{"sandbox", "production"}},
	{"import with a wrong key", func(u *mistakenUser) error {
		return u.run(u.at(u.srv.URL), csvSource(u.csv(canaryDOB)), new(bulk.Memory), bulk.Options{})
	}, []string{"401 Unauthorized"}},
	{"import with a wrong base URL", func(u *mistakenUser) error {
		return u.run(u.under("/api"), csvSource(u.csv(canaryDOB)), new(bulk.Memory), bulk.Options{})
	}, []string{"404", "base URL"}},
	{"import without a client", func(u *mistakenUser) error {
		return u.run(nil, bulk.JSONLines(strings.NewReader("")), new(bulk.Memory), bulk.Options{})
	}, []string{"client"}},
	{"import without a context", func(u *mistakenUser) error {
		_, err := bulk.Run(nilContext, u.service(), bulk.JSONLines(strings.NewReader("")), new(bulk.Memory), bulk.Options{})
		return err
	}, []string{"context"}},
}
