package labhealth

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/plain"
)

// The benchmarks beside encoding/json are fair only if both sides decode the same.
func TestPlainDecodesEverything(t *testing.T) {
	text := plain.OrderPageJSON(3)
	var page OrderPage
	if err := jsonread.Unmarshal(text, &page); err != nil || len(page.Malformed()) > 0 {
		t.Fatal(err, page.Malformed())
	}
	var bare plain.OrderPage
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&bare); err == nil || err.Error() != `json: unknown field "aoe"` {
		t.Fatal(err) // aoe is always null here, and so has no plain type
	}
	if err := json.Unmarshal(text, &bare); err != nil {
		t.Fatal(err)
	}
	for i := range page.Orders {
		var got, want any
		mustDecode(t, mustEncode(t, page.Orders[i]), &got)
		mustDecode(t, []byte(plain.OrderJSON(i)), &want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		a, b := &page.Orders[i], &bare.Orders[i]
		if a.ID != b.ID || *a.PatientDetails.Email != *b.PatientDetails.Email || !a.Events[3].CreatedAt.Equal(b.Events[3].CreatedAt) ||
			a.LabTest.Markers[1].Name != b.LabTest.Markers[1].Name || *a.Details.Data.(*TestkitOrder).Shipment.OutboundCourier != *b.Details.Data.Shipment.OutboundCourier {
			t.Error("the two readers disagree")
		}
	}
}

func mustDecode(t testing.TB, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

func mustEncode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkOrderPage(b *testing.B) {
	text := plain.OrderPageJSON(50)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var page OrderPage
		if err := jsonread.Unmarshal(text, &page); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOrderRetained reports the live heap of 1000 kept orders: with their raw bytes, and
// without for encoding/json.
func BenchmarkOrderRetained(b *testing.B) {
	const pages, size = 20, 50
	text := plain.OrderPageJSON(size)
	retained := func(b *testing.B, read func() any) {
		for b.Loop() {
			keep := make([]any, pages)
			before := liveHeap()
			for i := range keep {
				keep[i] = read()
			}
			b.ReportMetric(float64(liveHeap()-before)/(pages*size), "B/order")
			runtime.KeepAlive(keep)
		}
	}
	b.Run("jsonread", func(b *testing.B) {
		retained(b, func() any {
			var page OrderPage
			if err := jsonread.Unmarshal(text, &page); err != nil {
				b.Fatal(err)
			}
			return page.Orders
		})
	})
	b.Run("encoding_json", func(b *testing.B) {
		retained(b, func() any {
			var page plain.OrderPage
			if err := json.Unmarshal(text, &page); err != nil {
				b.Fatal(err)
			}
			return page.Orders
		})
	})
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkOrderMarshal measures encoding: of a new value, of a received one, and of a changed one.
func BenchmarkOrderMarshal(b *testing.B) {
	var kept, made Order
	text := []byte(plain.OrderJSON(1))
	if err := jsonread.Unmarshal(text, &kept); err != nil {
		b.Fatal(err)
	}
	changed := kept
	changed.Notes = new("changed")
	made = kept
	made.RawObject = RawObject{}
	for name, order := range map[string]Order{"made": made, "unchanged": kept, "changed": changed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := order.MarshalJSON(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
