package conformance

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go"
)

// A service that echoes the request in the ID of the request shows neither the key nor an ID that
// the caller sent: the ID is in errors, logs, traces and the debug text.
func TestEchoedRequestID(t *testing.T) {
	const secret, user = "sk-0af7651916cd43dd8448eb211c80319c", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	for _, name := range []string{"X-Request-Id", "Traceresponse"} {
		for _, echo := range []string{secret, user, "sk-0af7651916cd43dd8448eb", "a0-" + secret, user[:18]} {
			for _, asToken := range []bool{false, true} {
				var out bytes.Buffer
				opts := []labhealth.Option{
					labhealth.WithBaseURL("https://api.example.com"), labhealth.WithDebug(&out), labhealth.WithLogger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))),
					labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
						return &http.Response{StatusCode: 404, Header: http.Header{name: {echo}}, Body: http.NoBody, Request: r}, nil
					})}),
				}
				key := secret
				if asToken {
					key = ""
					opts = append(opts, labhealth.WithCredentials(func(context.Context) (labhealth.Credentials, error) {
						return labhealth.Credentials{Token: secret}, nil
					}))
				}
				client, err := labhealth.NewClient(key, opts...)
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.Users.Resolve(t.Context(), user)
				out.WriteString(err.Error())
				if strings.Contains(out.String(), echo) {
					t.Errorf("%s: %s in\n%s", name, echo, &out)
				}
			}
		}
	}
}
