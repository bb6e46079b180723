package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

const doctorHelp = `Check what calls and webhooks depend on, and say in words what is wrong and what to do:

  settings   the base URL and the environment are set
  service    it can be reached by TLS, and how long a request takes
  key        the service accepts the team API key, and it is of the right region
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
			if send && webhook == "" {
				return usagef("--send needs --webhook URL")
			}
			if webhook != "" {
				if err := checkURL("--webhook", webhook); err != nil {
					return err
				}
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
	if err == nil {
		err = checkBaseURL(t.url)
	}
	switch {
	case err != nil:
		d.print("settings", checkFailed, errorText(err), "")
	case t.sandbox != nil:
		d.print("settings", checkOK, t.url+", the sandbox of this machine", "")
	case t.environment == "":
		d.print("settings", checkOK, t.url+", a service of this machine", "")
	default:
		d.print("settings", checkOK, fmt.Sprintf("%s, environment %s", withoutQuery(t.url), t.environment), "")
	}
	if err == nil {
		d.checkService(ctx, t)
	}
	if d.useSandbox && err != nil {
		return // the secret is that of the sandbox
	}
	verifier := d.checkSecret(ctx)
	if webhook != "" && ctx.Err() == nil {
		d.checkWebhook(ctx, webhook, verifier, send)
	}
}

// checkBaseURL returns an error for a base URL that no client accepts.
func checkBaseURL(base string) error {
	if checkURL("", base) != nil {
		return usagef("the base URL must be an https URL, such as https://api.example.com: correct LABHEALTH_URL or --base-url")
	}
	_, err := labhealth.NewClient("sk_us_key", labhealth.WithBaseURL(base))
	return invalid(err)
}

// checkService makes a request, and reports on the connection, the key and the clock. What is wrong
// with a connection is in the errors of the library.
func (d *doctor) checkService(ctx context.Context, t target) {
	key, err := d.apiKey(t)
	if err != nil {
		d.print("key", checkFailed, errorText(err), "")
		return
	}
	client, err := labhealth.NewClient(key, d.clientOptions(t)...)
	if err != nil {
		d.print("key", checkFailed, errorText(err), "")
		return
	}
	defer client.CloseIdleConnections()
	var resp labhealth.Response
	once := labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1})
	_, _ = client.Users.List(ctx, labhealth.ListUsersParams{Limit: 1}, once) // opens the connection
	start := time.Now()
	_, err = client.Users.List(ctx, labhealth.ListUsersParams{Limit: 1}, once, labhealth.WithResponse(&resp))
	if resp.StatusCode == 0 {
		d.print("service", checkFailed, errorText(err), "")
		d.print("key", checkSkipped, "the service cannot be reached", "")
		return
	}
	d.print("service", checkOK, fmt.Sprintf("responds in %v", max(time.Since(start), time.Millisecond).Round(time.Millisecond)), "")
	switch {
	case err == nil:
		d.checkRegion(t, key)
	case errors.Is(err, labhealth.ErrUnauthorized):
		d.print("key", checkFailed, "the service rejects the key", wrongKey(t, key))
	case errors.Is(err, labhealth.ErrForbidden):
		d.print("key", checkFailed, "the service accepts the key, but not for this team", "ask the service for access")
	default:
		d.print("key", checkFailed, errorText(err), "check that the base URL is that of the team API, without a path such as /v3")
	}
	d.checkClock(resp.Header.Get("Date"), time.Now())
}

// isOfOtherRegion reports whether a key of the form sk_us_… is of another region than the
// environment.
func isOfOtherRegion(t target, key string) bool {
	region := keyRegion(key)
	return region != "" && t.environment != "" && region != t.environment.Region()
}

// keyRegion returns the region that a key of the form sk_us_… is of, or "".
func keyRegion(key string) labhealth.Region {
	if parts := strings.Split(key, "_"); len(parts) > 2 && (parts[1] == "us" || parts[1] == "eu") {
		return labhealth.Region(parts[1])
	}
	return ""
}

// wrongKey returns what to do about a key that is rejected. It looks at its prefix only.
func wrongKey(t target, key string) string {
	const needs = ": LABHEALTH_API_KEY needs a key of the team, which labhealth keys create makes"
	switch {
	case strings.HasPrefix(key, "mk_"):
		return "this is a management key (mk_)" + needs
	case strings.HasPrefix(key, "whsec_"):
		return "this is a webhook secret (whsec_)" + needs
	case isOfOtherRegion(t, key):
		return fmt.Sprintf("the key is of the region %s, and the environment is %s: use the key, the base URL and the environment of one region", keyRegion(key), t.environment)
	}
	return "check that it is a team API key of this environment, and that it was not deleted; labhealth keys create makes a new one"
}

// checkRegion compares the region in the key, if it has one, with that of the environment.
func (d *doctor) checkRegion(t target, key string) {
	text := "the service accepts the key"
	if region := keyRegion(key); region != "" {
		text += ", which is of the region " + string(region)
	}
	if isOfOtherRegion(t, key) {
		d.print("key", checkWarning, fmt.Sprintf("%s, but the environment is %s", text, t.environment), "check the base URL and the environment: data must stay in its region")
		return
	}
	d.print("key", checkOK, text, "")
}

func (d *doctor) checkClock(date string, now time.Time) {
	sent, err := http.ParseTime(date)
	difference := now.Sub(sent).Round(time.Second).Abs()
	text := fmt.Sprintf("differs by %v from the service", difference)
	const advice = "correct the clock of this machine, for example by NTP"
	switch {
	case err != nil:
		d.print("clock", checkSkipped, "the response has no time", "")
	case difference >= 5*time.Minute:
		d.print("clock", checkFailed, text+": all webhooks will be rejected as too old or too new", advice)
	case difference > 30*time.Second:
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
		response := probe(ctx, endpoint, p.verifier)
		switch status := response.Forward.StatusCode; {
		case status/100 == 2:
			d.print("webhook", checkFailed, fmt.Sprintf("the endpoint accepts %s (%d)", p.what, status), "verify each delivery before anything else, in Go with webhooks.NewHandler: anyone who knows the URL can send events")
		case status/100 == 4 && status != http.StatusNotFound && status != http.StatusMethodNotAllowed:
			d.print("webhook", checkOK, fmt.Sprintf("the endpoint rejects %s (%d)", p.what, status), "")
		case status == 0:
			d.print("webhook", checkFailed, response.Finding(), "check the URL, and that the application runs and can be reached from here")
			return
		default:
			d.print("webhook", checkFailed, response.Finding(), "")
			return
		}
	}
	switch {
	case !send:
		d.print("webhook", checkSkipped, "no signed event was sent", "add --send if your endpoint may receive a test event")
		return
	case verifier == nil:
		d.print("webhook", checkFailed, "a signed event cannot be sent without the secret", "")
		return
	}
	response := probe(ctx, endpoint, verifier)
	if f := response.Forward; f.StatusCode/100 == 2 {
		d.print("webhook", checkOK, fmt.Sprintf("the endpoint acknowledges a signed event (%d in %v)", f.StatusCode, f.Took.Round(time.Millisecond)), "")
		return
	}
	d.print("webhook", checkFailed, response.Finding(), "")
}

// testEvent is an event that no application has a reaction to. It is about no user.
const testEvent = `{"event_type":"labhealth.test","data":{}}`

// probe posts the test event, signed if there is a verifier.
func probe(ctx context.Context, endpoint string, verifier *webhooks.Verifier) *inspect.Delivery {
	d := &inspect.Delivery{Size: len(testEvent)}
	if verifier != nil {
		d.Verdict = inspect.Verified
	}
	header, err := inspect.NewHeader(verifier, time.Now(), []byte(testEvent))
	if err != nil {
		d.Forward = &inspect.Forward{Err: errorText(err)}
		return d
	}
	header.Set("User-Agent", userAgent())
	d.Forward = inspect.Send(ctx, endpoint, header, []byte(testEvent))
	return d
}
