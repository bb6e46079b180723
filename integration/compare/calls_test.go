package compare

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/plain"
	"github.com/labhealth/labhealth-go/webhooks"
)

// BenchmarkCall gets an order from a local service in its own process.
func BenchmarkCall(b *testing.B) {
	for _, d := range callers(b) {
		b.Run(d.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.decode(nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// callers get an order, with one call each.
func callers(b *testing.B) []decoder {
	baseURL := startService(b, 0, 0)
	client, plainClient := clients(b, baseURL)
	var want plain.Order
	if err := get(plainClient, baseURL+"/v3/order/x", &want, json.Unmarshal); err != nil {
		b.Fatal(err)
	}
	path := baseURL + "/v3/order/" + want.ID.String()
	decoders := []decoder{
		{"encoding", func([]byte) (any, error) {
			v := new(plain.Order)
			return v, get(plainClient, path, v, json.Unmarshal)
		}},
		{"ours", func([]byte) (any, error) { return client.Orders.Get(b.Context(), want.ID) }},
	}
	for _, d := range decoders {
		if got, err := d.decode(nil); err != nil || !reflect.DeepEqual(content(b, got), content(b, want)) {
			b.Fatal(d.name, err)
		}
	}
	return decoders
}

// BenchmarkGoroutines distributes 256 operations over a number of goroutines: parsing a batch of
// 100 samples, and getting an order.
func BenchmarkGoroutines(b *testing.B) {
	const operations = 256
	document := plain.EventJSON(100, "uniform")
	for _, work := range []struct {
		name     string
		decoders func(*testing.B) []decoder
	}{
		{"parse", func(*testing.B) []decoder {
			return []decoder{{"ours", func([]byte) (any, error) { return webhooks.Parse(document) }}}
		}},
		{"call", callers},
	} {
		b.Run(work.name, func(b *testing.B) {
			decoders := work.decoders(b)
			for goroutines := 1; goroutines <= 64; goroutines *= 2 {
				for _, d := range decoders {
					b.Run(fmt.Sprintf("%d/%s", goroutines, d.name), func(b *testing.B) {
						for b.Loop() {
							var all sync.WaitGroup
							for range goroutines {
								all.Go(func() {
									for range operations / goroutines {
										if _, err := d.decode(nil); err != nil {
											b.Error(err)
											return
										}
									}
								})
							}
							all.Wait()
						}
						b.ReportMetric(float64(b.N)*operations/b.Elapsed().Seconds(), "turns/s")
					})
				}
			}
		})
	}
}

// BenchmarkUsers lists all users of a local service in its own process, in pages of 500, with
// Users.All and with a plain loop. It reports the growth of the heap, with and without garbage.
func BenchmarkUsers(b *testing.B) {
	for _, total := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			baseURL := startService(b, total, 0)
			client, plainClient := clients(b, baseURL)
			for _, r := range []struct {
				name string
				all  func(visit func(uuid.UUID)) error
			}{
				{"encoding", func(visit func(uuid.UUID)) error { return listUsers(plainClient, baseURL, visit) }},
				{"ours", func(visit func(uuid.UUID)) error {
					for user, err := range client.Users.All(b.Context(), labhealth.ListUsersParams{Limit: maxUsers}) {
						if err != nil {
							return err
						}
						visit(user.UserID)
					}
					return nil
				}},
			} {
				b.Run(r.name, func(b *testing.B) {
					b.ReportAllocs()
					var peak heapSize
					for b.Loop() {
						runtime.GC()
						before, n, sum := readHeap(), 0, 0
						err := r.all(func(id uuid.UUID) {
							sum += int(id[13])<<16 + int(id[14])<<8 + int(id[15])
							if n++; n%1000 == 0 {
								peak = peak.max(readHeap().minus(before))
							}
						})
						if want := sumOfIDs(total); err != nil || n != total || sum != want {
							b.Fatalf("%d users, %d, want %d: %v", n, sum, want, err)
						}
					}
					b.ReportMetric(peak.objects/(1<<20), "MiB")
					b.ReportMetric(peak.live/(1<<20), "MiB-live")
				})
			}
		})
	}
}

// listUsers lists all users with net/http and encoding/json.
func listUsers(plainClient *http.Client, baseURL string, visit func(uuid.UUID)) error {
	for offset := 0; ; {
		var page plain.UserPage
		if err := get(plainClient, fmt.Sprintf("%s/v2/user/?offset=%d&limit=%d", baseURL, offset, maxUsers), &page, json.Unmarshal); err != nil {
			return err
		}
		for i := range page.Users {
			visit(page.Users[i].UserID)
		}
		if offset += len(page.Users); len(page.Users) == 0 || offset >= int(page.Total) {
			return nil
		}
	}
}

// sumOfIDs returns the sum of the last three bytes of the IDs of the first n users, whose digits
// are decimal.
func sumOfIDs(n int) (sum int) {
	for i := range n {
		for shift := 0; shift < 24; shift += 4 {
			sum += i % 10 << shift
			i /= 10
		}
	}
	return sum
}

// heapSize is the size of the heap in bytes: all objects, and those that the last collection kept.
type heapSize struct{ objects, live float64 }

func readHeap() heapSize {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return heapSize{float64(s[0].Value.Uint64()), float64(s[1].Value.Uint64())}
}

func (h heapSize) minus(before heapSize) heapSize {
	return heapSize{h.objects - before.objects, h.live - before.live}
}

func (h heapSize) max(other heapSize) heapSize {
	return heapSize{max(h.objects, other.objects), max(h.live, other.live)}
}
