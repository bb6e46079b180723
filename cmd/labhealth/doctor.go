package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

const doctorHelp = `Check what calls and webhooks depend on, and say in words what is wrong and what to do:

  settings   the base URL and the environment are set
  address    the host of the base URL resolves and accepts connections
  TLS        the certificate is valid, whose it is, and when it expires
  key        the service accepts the team API key, and it is of the right region
  service    how long a request takes
  clock      the time of this machine is that of the service: signatures expire after five minutes
  secret     the webhook secret is well-formed
  webhook    with --webhook URL, the endpoint rejects an unsigned event and one with a wrong signature,
             and with --send also acknowledges a signed event of the invented type labhealth.test

The exit code is 1 if something is wrong. With --json, each line is one check: name, status (ok,
warning, failed or skipped), text and advice.`

func newDoctor(a *app) *cobra.Command {
	var webhook string
	var send bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings, the connection, the key, the clock and the webhook",
		Long:  doctorHelp,
		Example: `  labhealth doctor
  labhealth doctor --webhook https://example.com/webhooks --send`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if webhook != "" {
				if _, err := parseURL("--webhook", webhook); err != nil {
					return err
				}
			}
			if send && webhook == "" {
				return usagef("--send needs --webhook URL")
			}
			d := doctor{app: a}
			d.run(cmd.Context(), webhook, send)
			if cmd.Context().Err() != nil {
				return &exitError{exitInterrupted, "interrupted"}
			}
			if d.failed > 0 {
				return &exitError{exitFailed, plural(d.failed, "check", "checks") + " failed"}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&webhook, "webhook", "", "URL of your endpoint, which gets two invalid deliveries")
	cmd.Flags().BoolVar(&send, "send", false, "also send a signed test event to --webhook")
	return cmd
}

// check is the result of a check.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warning, failed or skipped
	Text   string `json:"text"`
	Advice string `json:"advice,omitzero"` // what to do
}

const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
	checkSkipped = "skipped"
)

// doctor prints the checks.
type doctor struct {
	*app

	failed int
}

func (d *doctor) print(name, status, text, advice string) {
	if status == checkFailed {
		d.failed++
	}
	text, advice = clean(text), clean(advice)
	if d.json {
		_ = d.printJSON(check{name, status, text, advice})
		return
	}
	mark := map[string]string{
		checkOK: d.paint(green, "ok     "), checkWarning: d.paint(yellow, "warning"), checkFailed: d.paint(red, "failed "), checkSkipped: "-      ",
	}[status]
	fmt.Fprintf(d.out, "%s  %s  %s\n", mark, pad(name, 8), text)
	if advice != "" {
		fmt.Fprintf(d.out, "%s→ %s\n", strings.Repeat(" ", 19), advice)
	}
}

func (d *doctor) run(ctx context.Context, webhook string, send bool) {
	t, err := d.resolve(ctx)
	var u *url.URL
	if err == nil {
		u, err = parseBaseURL(t.url)
	}
	switch {
	case err != nil:
		d.print("settings", checkFailed, errorText(err), "")
	default:
		d.print("settings", checkOK, describeTarget(t), "")
		d.checkService(ctx, t, u)
	}
	if d.useSandbox && err != nil {
		return // the secret is that of the sandbox
	}
	verifier := d.checkSecret(ctx)
	if webhook != "" && ctx.Err() == nil {
		d.checkWebhook(ctx, webhook, verifier, send)
	}
}

func describeTarget(t target) string {
	switch {
	case t.sandbox != nil:
		return t.url + ", the sandbox of this machine"
	case t.environment == "":
		return t.url + ", a service of this machine"
	}
	return fmt.Sprintf("%s, environment %s", withoutQuery(t.url), t.environment)
}

// parseBaseURL parses a base URL as the client does.
func parseBaseURL(base string) (*url.URL, error) {
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("the base URL must be an https URL, such as https://api.example.com: correct LABHEALTH_URL or --base-url")
	}
	if _, err := labhealth.NewClient("sk_us_key", labhealth.WithBaseURL(base)); err != nil {
		return nil, usagef("%s", errorText(err))
	}
	return url.Parse(base)
}

// checkService checks everything from the address to the clock. Later checks are skipped if they
// would fail for the same reason.
func (d *doctor) checkService(ctx context.Context, t target, u *url.URL) {
	if d.checkAddress(ctx, u) && (u.Scheme != "https" || d.checkTLS(ctx, u)) {
		d.checkKey(ctx, t)
		return
	}
	d.print("key", checkSkipped, "the service cannot be reached", "")
}

func (d *doctor) checkAddress(ctx context.Context, u *url.URL) bool {
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
		d.print("address", checkSkipped, "requests go through the proxy "+proxy.Host+" (HTTPS_PROXY, HTTP_PROXY)", "")
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		d.print("address", checkFailed, "the name "+u.Hostname()+" does not resolve", "check the spelling of the base URL, and the name servers of this machine")
		return false
	}
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port(u)))
	if err != nil {
		d.print("address", checkFailed, u.Host+": "+networkProblem(err), "check the port of the base URL, firewalls, and whether the service runs")
		return false
	}
	connection.Close()
	d.print("address", checkOK, fmt.Sprintf("%s accepts connections (%s)", u.Host, addresses[0]), "")
	return true
}

func port(u *url.URL) string {
	if u.Port() != "" {
		return u.Port()
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// networkProblem describes an error of the network without quoting a URL.
func networkProblem(err error) string {
	var timeout net.Error
	text := err.Error()
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "proxyconnect" || strings.Contains(text, "Proxy Authentication Required") {
		return proxyProblem(text)
	}
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded):
		return "no response in time"
	case strings.Contains(text, "connection refused"):
		return "the connection is refused: nothing listens there"
	case strings.Contains(text, "no such host"):
		return "the name does not resolve"
	case strings.Contains(text, "reset by peer"), strings.HasSuffix(text, "EOF"):
		return "the connection was closed without a response"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "it speaks http, and not https"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return "it does not speak https"
	case strings.Contains(text, "malformed HTTP response"):
		return "it does not speak http: try https"
	case strings.Contains(text, "Forbidden"), strings.Contains(text, "Bad Gateway"), strings.Contains(text, "Service Unavailable"):
		return "the proxy does not connect to this host"
	}
	if problem, _ := certificateProblem(err); problem != "" {
		return problem
	}
	return "the connection failed"
}

// proxyProblem describes why a proxy does not forward a request.
func proxyProblem(text string) string {
	if strings.Contains(text, "Proxy Authentication Required") {
		return "the proxy asks for a user and a password (407)"
	}
	if strings.Contains(text, "connection refused") {
		return "the proxy cannot be reached: the connection is refused"
	}
	return "the proxy cannot be reached"
}

const proxyAdvice = "correct HTTPS_PROXY and HTTP_PROXY, such as http://user:password@proxy.example.com:3128, or exclude the host with NO_PROXY"

func (d *doctor) checkTLS(ctx context.Context, u *url.URL) bool {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return true
	}
	transport = transport.Clone()
	transport.DisableKeepAlives = true
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.Scheme+"://"+u.Host+"/", nil)
	if err != nil {
		d.print("TLS", checkFailed, "the base URL is invalid", "")
		return false
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		problem, advice := certificateProblem(err)
		if problem == "" {
			problem, advice = networkProblem(err), "check that the base URL is that of an https server, and its port"
			if strings.HasPrefix(problem, "the proxy") {
				advice = proxyAdvice
			}
		}
		d.print("TLS", checkFailed, problem, advice)
		return false
	}
	resp.Body.Close()
	d.describeTLS(resp.TLS)
	return true
}

func (d *doctor) describeTLS(state *tls.ConnectionState) {
	if state == nil || len(state.PeerCertificates) == 0 {
		d.print("TLS", checkWarning, "the connection has no certificate", "")
		return
	}
	leaf := state.PeerCertificates[0]
	text := fmt.Sprintf("%s, certificate by %s, valid until %s", tls.VersionName(state.Version), issuer(leaf), leaf.NotAfter.Format(time.DateOnly))
	if left := time.Until(leaf.NotAfter); left < 14*24*time.Hour {
		d.print("TLS", checkWarning, text, "it expires soon: tell who runs the server")
		return
	}
	d.print("TLS", checkOK, text, "if this issuer is a product of your company, it reads the traffic, with patient data and keys")
}

func issuer(c *x509.Certificate) string {
	if len(c.Issuer.Organization) > 0 {
		return strings.TrimSpace(c.Issuer.Organization[0] + " " + c.Issuer.CommonName)
	}
	return c.Issuer.CommonName
}

// certificateProblem describes why a certificate is not accepted, or returns "".
func certificateProblem(err error) (problem, advice string) {
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		by := "an unknown authority"
		if e.Cert != nil {
			by = issuer(e.Cert)
		}
		return "the certificate is by " + by + ", which this machine does not trust",
			"if a proxy of your company reads the traffic, add its certificate to the system (or to SSL_CERT_FILE) or make an exception for this host; otherwise someone else responds"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is for another host than " + e.Host, "check the base URL, and whether a proxy responds instead"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			text := "the certificate is expired or not valid yet"
			if e.Cert != nil {
				text = fmt.Sprintf("the certificate is valid from %s to %s, and this machine has %s",
					e.Cert.NotBefore.Format(time.DateOnly), e.Cert.NotAfter.Format(time.DateOnly), time.Now().UTC().Format(time.DateOnly))
			}
			return text, "check the clock of this machine; otherwise tell who runs the server"
		}
		return "the certificate is invalid", "tell who runs the server"
	}
	return "", ""
}

// checkKey makes one request, and reports on the key, the service and the clock.
func (d *doctor) checkKey(ctx context.Context, t target) {
	client, _, err := d.client(ctx)
	if err != nil {
		d.print("key", checkFailed, errorText(err), "")
		return
	}
	var resp labhealth.Response
	once := labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1})
	_, _ = client.Users.List(ctx, labhealth.ListUsersParams{Limit: 1}, once) // opens the connection
	start := time.Now()
	_, err = client.Users.List(ctx, labhealth.ListUsersParams{Limit: 1}, once, labhealth.WithResponse(&resp))
	took := time.Since(start)
	switch {
	case err == nil:
		d.checkRegion(t)
	case errors.Is(err, labhealth.ErrUnauthorized):
		d.print("key", checkFailed, "the service rejects the key", d.wrongKey(t))
	case errors.Is(err, labhealth.ErrForbidden):
		d.print("key", checkFailed, "the service accepts the key, but not for this team", "ask the service for access")
	default:
		d.print("key", checkFailed, errorText(err), serviceAdvice(err, t))
	}
	if resp.StatusCode == 0 {
		return
	}
	status := checkOK
	if took > 2*time.Second {
		status = checkWarning
	}
	text := fmt.Sprintf("responds in %v", max(took, time.Millisecond).Round(time.Millisecond))
	if server := resp.Header.Get("Server"); server != "" {
		text += " (" + server + ")"
	}
	d.print("service", status, text, "")
	d.checkClock(resp.Header.Get("Date"), time.Now())
}

// wrongKey returns what to do about a key that is rejected. It looks at its prefix only.
func (d *doctor) wrongKey(t target) string {
	key, _ := d.secret("LABHEALTH_API_KEY")
	prefix, rest, _ := strings.Cut(key, "_")
	region, _, _ := strings.Cut(rest, "_")
	switch {
	case t.sandbox != nil:
	case prefix == "mk":
		return "this is a management key (mk_): LABHEALTH_API_KEY needs a key of the team, which labhealth keys create makes"
	case prefix == "whsec":
		return "this is a webhook secret (whsec_): LABHEALTH_API_KEY needs a key of the team, which labhealth keys create makes"
	case t.environment != "" && (region == "us" || region == "eu") && labhealth.Region(region) != t.environment.Region():
		return fmt.Sprintf("the key is of the region %s, and the environment is %s: use the key, the base URL and the environment of one region", region, t.environment)
	}
	return "check that it is a team API key of this environment, and that it was not deleted; labhealth keys create makes a new one"
}

// serviceAdvice returns what to do about a request that failed.
func serviceAdvice(err error, t target) string {
	failure := labhealth.FailureOf(err)
	apiErr, ok := errors.AsType[*labhealth.APIError](err)
	switch {
	case strings.Contains(err.Error(), "must start with https"):
		return "" // the message has it
	case failure == labhealth.FailureProxy:
		return proxyAdvice
	case failure == labhealth.FailureTimeout:
		return "try again with a longer --timeout; if that does not help, tell who runs the service"
	case ok && apiErr.StatusCode == http.StatusTooManyRequests:
		return "wait: other programs with this key use the rate limit"
	case ok && apiErr.StatusCode >= 500:
		return "try again later; if it lasts, tell who runs the service, or the proxy"
	case failure == labhealth.FailureRedirect:
		return "use the base URL of the service itself: a login page or another host responds"
	case strings.HasPrefix(t.url, "http://") && !ok && labhealth.OutcomeOf(err) != labhealth.OutcomeApplied:
		return "check that the base URL is that of the team API, and whether it must begin with https"
	}
	return "check that the base URL is that of the team API, without a path such as /v3"
}

// checkRegion compares the region in the key, if it has one, with that of the environment.
func (d *doctor) checkRegion(t target) {
	key, _ := d.secret("LABHEALTH_API_KEY")
	if t.sandbox != nil {
		key = t.sandbox.APIKey
	}
	region := labhealth.Region("")
	if parts := strings.Split(key, "_"); len(parts) > 2 && (parts[1] == "us" || parts[1] == "eu") {
		region = labhealth.Region(parts[1])
	}
	switch {
	case region == "":
		d.print("key", checkOK, "the service accepts the key", "")
	case t.environment != "" && region != t.environment.Region():
		d.print("key", checkWarning, fmt.Sprintf("the service accepts the key, which is of the region %s, but the environment is %s", region, t.environment), "check the base URL and the environment: data must stay in its region")
	default:
		d.print("key", checkOK, "the service accepts the key, which is of the region "+string(region), "")
	}
}

func (d *doctor) checkClock(date string, now time.Time) {
	sent, err := http.ParseTime(date)
	if err != nil {
		d.print("clock", checkSkipped, "the response has no time", "")
		return
	}
	difference := now.Sub(sent).Round(time.Second)
	text := fmt.Sprintf("differs by %v from the service", difference.Abs())
	const advice = "correct the clock of this machine, for example by NTP"
	switch {
	case difference.Abs() >= 5*time.Minute:
		d.print("clock", checkFailed, text+": all webhooks will be rejected as too old or too new", advice)
	case difference.Abs() > 30*time.Second:
		d.print("clock", checkWarning, text, advice)
	default:
		d.print("clock", checkOK, text, "")
	}
}

// checkSecret returns the verifier, or nil.
func (d *doctor) checkSecret(ctx context.Context) *webhooks.Verifier {
	secrets, err := d.webhookSecrets(ctx)
	if err == nil && len(secrets) == 0 {
		d.print("secret", checkSkipped, "no webhook secret is set", "set LABHEALTH_WEBHOOK_SECRET or LABHEALTH_WEBHOOK_SECRET_FILE to check it")
		return nil
	}
	var verifier *webhooks.Verifier
	if err == nil {
		verifier, err = webhooks.NewVerifier(secrets...)
	}
	if err != nil {
		d.print("secret", checkFailed, errorText(err), "copy it again from the dashboard, or with labhealth webhooks secret")
		return nil
	}
	d.print("secret", checkOK, plural(len(secrets), "secret is", "secrets are")+" well-formed", "")
	return verifier
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprint(n, " ", one)
	}
	return fmt.Sprint(n, " ", many)
}

// checkWebhook posts deliveries to the endpoint that it must reject, and with send one that it must
// acknowledge.
func (d *doctor) checkWebhook(ctx context.Context, endpoint string, verifier *webhooks.Verifier, send bool) {
	wrong, err := webhooks.NewVerifier("whsec_bGFiaGVhbHRoIGRvY3RvcjogYSB3cm9uZyBzZWNyZXQ=")
	if err != nil {
		panic(err) // it is a constant
	}
	for _, p := range []struct {
		what     string
		verifier *webhooks.Verifier
	}{{"an unsigned event", nil}, {"an event with a wrong signature", wrong}} {
		status, _, err := d.probe(ctx, endpoint, p.verifier)
		switch {
		case err != nil:
			d.print("webhook", checkFailed, errorText(err), "check the URL, and that the application runs and can be reached from here")
			return
		case status/100 == 2:
			d.print("webhook", checkFailed, fmt.Sprintf("the endpoint accepts %s (%d)", p.what, status), "verify each delivery before anything else, in Go with webhooks.NewHandler: anyone who knows the URL can send events")
		case status/100 == 4 && status != http.StatusNotFound && status != http.StatusMethodNotAllowed:
			d.print("webhook", checkOK, fmt.Sprintf("the endpoint rejects %s (%d)", p.what, status), "")
		default:
			d.print("webhook", checkFailed, signedProblem(status), "")
			return
		}
	}
	if !send {
		d.print("webhook", checkSkipped, "no signed event was sent", "add --send if your endpoint may receive a test event")
		return
	}
	if verifier == nil {
		d.print("webhook", checkFailed, "a signed event cannot be sent without the secret", "")
		return
	}
	status, took, err := d.probe(ctx, endpoint, verifier)
	switch {
	case err != nil:
		d.print("webhook", checkFailed, errorText(err), "")
	case status/100 == 2:
		d.print("webhook", checkOK, fmt.Sprintf("the endpoint acknowledges a signed event (%d in %v)", status, took.Round(time.Millisecond)), "")
	default:
		d.print("webhook", checkFailed, signedProblem(status), "")
	}
}
