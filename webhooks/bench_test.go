package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The plain structs beside which Parse is measured: the same members, nothing kept.
type plainEnvelope struct {
	EventType    string          `json:"event_type"`
	Data         json.RawMessage `json:"data"`
	TeamID       uuid.UUID       `json:"team_id"`
	UserID       uuid.UUID       `json:"user_id"`
	ClientUserID string          `json:"client_user_id"`
}

type plainBatch struct {
	UserID uuid.UUID `json:"user_id"`
	Source struct {
		Name string `json:"name"`
		Slug string `json:"slug"`
		Logo string `json:"logo"`
	} `json:"source"`
	SourceID int           `json:"source_id"`
	Data     []plainSample `json:"data"`
}

type plainSample struct {
	Timestamp      time.Time `json:"timestamp"`
	Start          time.Time `json:"start"`
	End            time.Time `json:"end"`
	TimezoneOffset *int      `json:"timezone_offset"`
	Type           *string   `json:"type"`
	Unit           string    `json:"unit"`
	Value          float64   `json:"value"`
}

func twoSteps(body []byte) (plainBatch, error) {
	var e plainEnvelope
	var b plainBatch
	if err := json.Unmarshal(body, &e); err != nil {
		return b, err
	}
	err := json.Unmarshal(e.Data, &b)
	return b, err
}

// batchBody writes an event with n samples: "uniform" ones differ in time and value only; "mixed" ones are intervals with
// alternating types and values of 17 digits; "spaced" is uniform with a space behind each comma and colon.
func batchBody(n int, form string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"event_type":"daily.data.glucose.created","data":{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","source_id":7,` +
		`"source":{"name":"Example Sensor","slug":"example_sensor","logo":"https://example.com/logo.png"},"data":[`)
	start := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		t := start.Add(time.Duration(i) * time.Minute)
		switch form {
		case "uniform":
			fmt.Fprintf(&b, `{"timestamp":"%s","timezone_offset":3600,"type":"automatic","unit":"mmol/L","value":%.1f}`,
				t.Format("2006-01-02T15:04:05+00:00"), 4+float64(i%50)/10)
		case "spaced":
			fmt.Fprintf(&b, `{"timestamp": "%s", "timezone_offset": 3600, "type": "automatic", "unit": "mmol/L", "value": %.1f}`,
				t.Format("2006-01-02T15:04:05+00:00"), 4+float64(i%50)/10)
		case "mixed":
			const micros = "2006-01-02T15:04:05.123456-07:00"
			kind := [...]string{`"automatic"`, `null`, `"manual_scan"`}[i%3]
			fmt.Fprintf(&b, `{"id":null,"timestamp":"%s","start":"%s","end":"%s","timezone_offset":null,"type":%s,"unit":"mmol/L","value":%v}`,
				t.Format(micros), t.Format(micros), t.Add(time.Minute).Format(micros), kind, 39.518054167148996+float64(i)/7)
		}
	}
	b.WriteString(`]},"team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","client_user_id":"user-42"}`)
	return b.Bytes()
}

func BenchmarkParse(b *testing.B) {
	for _, form := range []string{"uniform", "spaced", "mixed"} {
		for _, n := range []int{1, 100, 10000} {
			body := batchBody(n, form)
			b.Run(fmt.Sprintf("%s/%d/webhooks", form, n), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if e, err := Parse(body); err != nil || len(e.Data.(*Samples).Data) != n {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("%s/%d/encoding", form, n), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if batch, err := twoSteps(body); err != nil || len(batch.Data) != n {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkParseEnvelope reads type and ids only.
func BenchmarkParseEnvelope(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		body := batchBody(n, "uniform")
		b.Run(fmt.Sprintf("%d/webhooks", n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseEnvelope(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/encoding", n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var e plainEnvelope
				if err := json.Unmarshal(body, &e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseSummary reads an event that is no batch.
func BenchmarkParseSummary(b *testing.B) {
	body := []byte(`{"event_type":"daily.data.activity.created","data":{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","steps":1}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
