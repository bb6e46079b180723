package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// testEvent is an event that no application has a reaction to. It is about no user.
const testEvent = `{"event_type":"labhealth.test","data":{}}`

// networkProblem returns the error of a connection without the URL, which may have a secret.
func networkProblem(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return "no response in time"
		}
		err = e.Err
	}
	return err.Error()
}

// testWebhook sends a signed event and reports the response.
func (a *app) testWebhook(ctx context.Context, endpoint string, verifier *webhooks.Verifier) error {
	status, took, err := a.probe(ctx, endpoint, verifier)
	if err != nil {
		return err
	}
	acknowledged := status/100 == 2
	if a.json {
		err = a.printJSON(struct {
			URL          string `json:"url"`
			Status       int    `json:"status"`
			Acknowledged bool   `json:"acknowledged"`
			Milliseconds int64  `json:"milliseconds"`
		}{withoutQuery(endpoint), status, acknowledged, took.Milliseconds()})
	} else if acknowledged {
		fmt.Fprintf(a.out, "acknowledged with %d in %v\n", status, took.Round(time.Millisecond))
	}
	if err == nil && !acknowledged {
		err = &exitError{exitFailed, signedProblem(status)}
	}
	return err
}

// signedProblem describes the response to a signed event other than 2xx.
func signedProblem(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusBadRequest:
		return fmt.Sprintf("the endpoint rejected a signed event with %d: check that it has the same secret, verifies the received bytes, and has the right time", status)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return fmt.Sprintf("the endpoint responded with %d: check the path of the URL", status)
	case status/100 == 3:
		return fmt.Sprintf("the endpoint redirects (%d), which senders do not follow: use the URL that it redirects to", status)
	case status/100 == 5:
		return fmt.Sprintf("the endpoint failed with %d: see its log", status)
	}
	return fmt.Sprintf("the endpoint responded with %d instead of 2xx", status)
}

// probe posts the test event, signed if there is a verifier, and returns the status code.
func (a *app) probe(ctx context.Context, endpoint string, verifier *webhooks.Verifier) (status int, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(a.timeout, 15*time.Second))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(testEvent))
	if err != nil {
		return 0, 0, usagef("the URL of the endpoint is invalid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "labhealth-cli/"+version())
	if verifier != nil {
		id, now := "msg_test_"+crand.Text(), time.Now()
		signature, err := verifier.Sign(id, now, []byte(testEvent))
		if err != nil {
			return 0, 0, err
		}
		req.Header.Set("svix-id", id)
		req.Header.Set("svix-timestamp", strconv.FormatInt(now.Unix(), 10))
		req.Header.Set("svix-signature", signature)
	}
	client := a.httpClient()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer client.CloseIdleConnections()
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, 0, &exitError{exitFailed, "the endpoint did not respond: " + networkProblem(err)}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, time.Since(start), nil
}
