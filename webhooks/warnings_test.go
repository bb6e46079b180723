package webhooks_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// logged replaces the default logger during a test.
func logged(t *testing.T) *lockedBuffer {
	written := new(lockedBuffer)
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(written, nil)))
	return written
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Without any option, each kind of failure is written to the default logger once, in words that
// name what to change, without a word of the delivery or of the program's errors.
func TestHandlerWarns(t *testing.T) {
	failing := errors.New("order of Kanarie failed")
	for _, test := range []struct {
		name string
		do   func(context.Context, *webhooks.Event) error
		opt  webhooks.HandlerOption
		body string
		sign bool // verify signatures, of which the delivery has none
		want string
	}{
		{name: "the function fails", do: func(context.Context, *webhooks.Event) error { return failing },
			want: `msg="webhooks: the function returned an error: the sender delivers the event again, and disables an endpoint that fails for days" error_type=*errors.errorString`},
		{name: "the function fails for good", do: func(context.Context, *webhooks.Event) error { return webhooks.ErrPermanent },
			want: `msg="webhooks: the function returned an error that matches ErrPermanent: keep such bodies with WithDeadLetter" error_type=*errors.errorString`},
		{name: "the function panics", do: func(context.Context, *webhooks.Event) error { panic("Kanarie") },
			want: `msg="webhooks: the function or the Deduplicator panicked" panic="string\n`},
		{name: "the function hangs", do: func(ctx context.Context, _ *webhooks.Event) error { return wait(ctx, time.Hour) },
			want: `msg="webhooks: the function did not return before the deadline: is what it waits for, such as a database, locked or overloaded? See NewRawHandler and WithDeadline"`},
		{name: "no event", body: "Kanarie",
			want: `msg="webhooks: a delivery is no event and was rejected: keep such bodies with WithDeadLetter" error="webhooks: `},
		{name: "no signature", sign: true,
			want: `msg="webhooks: a request has no valid signature headers: does a proxy remove or change them?"`},
		{name: "the deduplicator fails", opt: webhooks.WithDeduplicator(brokenDeduplicator{seen: failing}),
			want: `msg="webhooks: the Deduplicator returned an error: deliveries are rejected until it works" error_type=*errors.errorString`},
		{name: "the deduplicator does not store", opt: webhooks.WithDeduplicator(brokenDeduplicator{mark: failing}),
			want: `msg="webhooks: the Deduplicator did not store an ID: its event may be processed again" error_type=*errors.errorString`},
		{name: "too large", opt: webhooks.WithBodyLimit(10), want: `msg="webhooks: a delivery is larger than WithBodyLimit allows"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				written := logged(t)
				verifier := webhooks.Unsigned
				if test.sign {
					verifier, _ = webhooks.NewVerifier("whsec_" + strings.Repeat("QUFB", 8))
				}
				do := test.do
				if do == nil {
					do = func(context.Context, *webhooks.Event) error { return nil }
				}
				h, err := webhooks.NewHandler(verifier, do, test.opt)
				if err != nil {
					t.Fatal(err)
				}
				for range 20 {
					body := test.body
					if body == "" {
						body = `{"event_type":"Kanarie"}`
					}
					deliver(h, delivery("msg_1", body))
				}
				shutDown(t, h)
				log := written.String()
				if lines := strings.Count(log, "\n"); lines > 3 || !strings.Contains(log, "level=WARN "+test.want) {
					t.Errorf("%d lines:\n%s", lines, log)
				}
				if strings.Contains(log, "Kanarie") {
					t.Error("the log quotes the delivery")
				}
			})
		})
	}
}

type brokenDeduplicator struct{ seen, mark error }

func (d brokenDeduplicator) Seen(context.Context, string) (bool, error) { return false, d.seen }
func (d brokenDeduplicator) MarkSeen(context.Context, string) error     { return d.mark }

// A logger of the program replaces the warnings, and can silence them.
func TestLoggerReplacesWarnings(t *testing.T) {
	written := logged(t)
	h, err := webhooks.NewHandler(webhooks.Unsigned, func(context.Context, *webhooks.Event) error { return errors.New("a") },
		webhooks.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if status := deliver(h, delivery("msg_1", "{}")); status != http.StatusServiceUnavailable {
		t.Error(status)
	}
	shutDown(t, h)
	if log := written.String(); log != "" {
		t.Error(log)
	}
}
