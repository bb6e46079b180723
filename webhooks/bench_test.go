package webhooks

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/labhealth/labhealth-go/internal/plain"
)

// BenchmarkParse reads batches. They are compared with other libraries beside this module: see
// docs/speed.md.
func BenchmarkParse(b *testing.B) {
	for _, form := range []string{"uniform", "spaced", "mixed"} {
		for _, n := range []int{1, 100, 10000} {
			body := plain.EventJSON(n, form)
			b.Run(fmt.Sprintf("%s/%d", form, n), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if e, err := Parse(body); err != nil || len(e.Data.(*Samples).Data) != n {
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
		body := plain.EventJSON(n, "uniform")
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseEnvelope(body); err != nil {
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
