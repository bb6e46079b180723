package webhooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// vector is a delivery of testdata/signatures.json, with what a verifier must decide about it. Its
// signatures were made by a program that knows nothing of this package.
type vector struct {
	Name    string      `json:"name"`
	Secrets []string    `json:"secrets"`
	Now     string      `json:"now"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
	Valid   bool        `json:"valid"`
	Reason  string      `json:"reason"`
	ID      string      `json:"id"`
}

func TestSignatureVectors(t *testing.T) {
	encoded, err := os.ReadFile("testdata/signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Vectors []vector }
	if err := json.Unmarshal(encoded, &document); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, v := range document.Vectors {
		counts[v.Reason]++
		t.Run(v.Name, v.check)
	}
	t.Logf("%d vectors by reason: %v", len(document.Vectors), counts)
	for _, reason := range []string{"", "secret", "headers", "timestamp", "signature"} {
		if counts[reason] < 20 {
			t.Errorf("%d vectors with reason %q", counts[reason], reason)
		}
	}
	if len(document.Vectors) < 409 {
		t.Errorf("only %d vectors", len(document.Vectors))
	}
}

func (v vector) check(t *testing.T) {
	if v.Valid != (v.Reason == "") || v.Valid != (v.ID != "") {
		t.Fatal("the vector contradicts itself")
	}
	// A gateway's adapter may copy the names as it received them.
	canonical, received := http.Header{}, http.Header{}
	for _, line := range v.Headers {
		canonical.Add(line[0], line[1])
		received[line[0]] = append(received[line[0]], line[1])
	}
	for name, header := range map[string]http.Header{"canonical": canonical, "as received": received} {
		reason, err := v.verify(t, header)
		if reason != v.Reason {
			t.Errorf("%s: reason %q, want %q: %v", name, reason, v.Reason, err)
		}
		if reason != "secret" {
			v.receive(t, name, header)
		}
		if id := webhooks.DeliveryID(header); v.Valid && id != v.ID && id != "" {
			t.Errorf("%s: DeliveryID is %q, want %q or none", name, id, v.ID)
		}
	}
}

// receive passes the delivery to a handler, which must identify it by the ID that was signed.
func (v vector) receive(t *testing.T, name string, header http.Header) {
	verifier, err := webhooks.NewVerifier(v.Secrets...)
	if err != nil {
		t.Fatal(err)
	}
	stored := ""
	h, err := webhooks.NewRawHandler(verifier, func(ctx context.Context, d webhooks.RawDelivery) error {
		if stored = d.ID; webhooks.DeliveryIDFrom(ctx) != d.ID || !bytes.Equal(d.Body, v.Body) {
			t.Errorf("%s: DeliveryIDFrom is %q, and the ID %q", name, webhooks.DeliveryIDFrom(ctx), d.ID)
		}
		return nil
	}, webhooks.WithClock(func() time.Time { return timeOf(t, v.Now) }))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/events", bytes.NewReader(v.Body))
	r.Header = header
	want := http.StatusUnauthorized
	if v.Valid {
		want = http.StatusNoContent
	}
	if code := deliver(h, r); code != want || stored != v.ID {
		t.Errorf("%s: the handler responds with %d and stores %q, want %d and %q", name, code, stored, want, v.ID)
	}
}

// verify returns the reason for which the delivery is not valid.
func (v vector) verify(t *testing.T, header http.Header) (string, error) {
	verifier, err := webhooks.NewVerifier(v.Secrets...)
	if err != nil {
		return "secret", err
	}
	err = verifier.VerifyAt(v.Body, header, timeOf(t, v.Now))
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, webhooks.ErrHeaders):
		return "headers", err
	case errors.Is(err, webhooks.ErrTimestamp):
		return "timestamp", err
	case errors.Is(err, webhooks.ErrSignature):
		return "signature", err
	}
	return "unknown", err
}

// timeOf reads seconds since 1970, with or without a fraction.
func timeOf(t *testing.T, text string) time.Time {
	t.Helper()
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	nanoseconds, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(seconds, nanoseconds)
}
