package webhooks_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// mebibyte returns an event of slightly more than 1 MiB, either of samples or with one long string.
func mebibyte(samples bool) []byte {
	var data bytes.Buffer
	kind := "glucose"
	if samples {
		data.WriteString(`"source_id":7,"data":[`)
		at := time.Date(2025, time.March, 4, 0, 0, 0, 0, time.UTC)
		for data.Len() < 1<<20 {
			fmt.Fprintf(&data, `{"timestamp":%q,"timezone_offset":3600,"type":"automatic","unit":"mmol/L","value":5.5},`, at.Format(time.RFC3339))
			at = at.Add(time.Minute)
		}
		data.Truncate(data.Len() - 1)
		data.WriteString("]")
	} else {
		kind = "sleep"
		fmt.Fprintf(&data, `"id":"2f0e6a53-9c3e-4c57-8a2b-7d1f0b9c8e21","sleep_stream":%q`, strings.Repeat("x", 1<<20))
	}
	return fmt.Appendf(nil, `{"event_type":"daily.data.%s.created","data":{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",`+
		`"source":{"name":"Oura","slug":"oura","logo":""},%s},"team_id":"8f0cd2c5-6b4e-4d0a-9a55-2f1f3f0f6c11",`+
		`"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","client_user_id":"ada"}`, kind, &data)
}

// BenchmarkReceive receives deliveries of 1 MiB. Compare B/op with the size of the body. Parsing
// samples allocates them in addition to the copy of the body, so the event with one long string
// shows the copies alone.
func BenchmarkReceive(b *testing.B) {
	for _, shape := range []struct {
		name    string
		samples bool
	}{{"samples", true}, {"one-text", false}} {
		body := mebibyte(shape.samples)
		v := newVerifier(b, secretA)
		header := signedHeader("svix", "msg_1", "1700000000", sign(b, v, "msg_1", time.Unix(1_700_000_000, 0), string(body)))
		now := time.Unix(1_700_000_000, 0)
		b.Run(shape.name+"/verify", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := v.VerifyAt(body, header, now); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(shape.name+"/verify-and-parse", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := v.VerifyAt(body, header, now); err != nil {
					b.Fatal(err)
				}
				if _, err := webhooks.Parse(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(shape.name+"/handler", func(b *testing.B) {
			h, err := webhooks.NewHandler(v, func(context.Context, *webhooks.Event) error { return nil },
				webhooks.WithClock(func() time.Time { return now }), webhooks.WithDeduplicator(forgetful{}))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
				r.Header = header
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 204 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// BenchmarkDuplicate receives a delivery that was processed before. It includes the cost of
// httptest.
func BenchmarkDuplicate(b *testing.B) {
	h, err := webhooks.NewHandler(webhooks.Unsigned, func(context.Context, *webhooks.Event) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if status := deliver(h, delivery("msg_1", glucoseEvent)); status != 204 {
			b.Fatal(status)
		}
	}
}
