package compare

import (
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

// BenchmarkCall reads one order from a service on this machine, in a process of its own.
func BenchmarkCall(b *testing.B) {
	for _, r := range callers(b) {
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.read(nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// callers read an order, with a call each.
func callers(b *testing.B) []reader {
	address := startService(b, 0)
	client, bare := clients(b, address)
	var want plain.Order
	if err := get(bare, address+"/v3/order/x", &want); err != nil {
		b.Fatal(err)
	}
	path := address + "/v3/order/" + want.ID.String()
	readers := []reader{
		{"encoding", func([]byte) (any, error) {
			v := new(plain.Order)
			return v, get(bare, path, v)
		}},
		{"ours", func([]byte) (any, error) { return client.Orders.Get(b.Context(), want.ID) }},
	}
	for _, r := range readers {
		if got, err := r.read(nil); err != nil || !reflect.DeepEqual(content(b, got), content(b, want)) {
			b.Fatal(r.name, err)
		}
	}
	return readers
}

// BenchmarkGoroutines does 256 times the same on a number of goroutines: parse a batch of 100 samples, and read an order.
func BenchmarkGoroutines(b *testing.B) {
	const turns = 256
	text := plain.EventText(100, "uniform")
	for _, work := range []struct {
		name    string
		readers func(*testing.B) []reader
	}{
		{"parse", func(*testing.B) []reader {
			return []reader{{"ours", func([]byte) (any, error) { return webhooks.Parse(text) }}}
		}},
		{"call", callers},
	} {
		b.Run(work.name, func(b *testing.B) {
			readers := work.readers(b)
			for goroutines := 1; goroutines <= 64; goroutines *= 2 {
				for _, r := range readers {
					b.Run(fmt.Sprintf("%d/%s", goroutines, r.name), func(b *testing.B) {
						for b.Loop() {
							var all sync.WaitGroup
							for range goroutines {
								all.Go(func() {
									for range turns / goroutines {
										if _, err := r.read(nil); err != nil {
											b.Error(err)
											return
										}
									}
								})
							}
							all.Wait()
						}
						b.ReportMetric(float64(b.N)*turns/b.Elapsed().Seconds(), "turns/s")
					})
				}
			}
		})
	}
}

// BenchmarkUsers goes over all users of a service on this machine, in a process of its own, in pages of 500: with Users.All and
// with a bare loop. It states how far the heap grew over what it was before, garbage included, and what of it was alive.
func BenchmarkUsers(b *testing.B) {
	for _, total := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			address := startService(b, total)
			client, bare := clients(b, address)
			for _, r := range []struct {
				name string
				all  func(see func(uuid.UUID)) error
			}{
				{"encoding", func(see func(uuid.UUID)) error { return bareUsers(bare, address, see) }},
				{"ours", func(see func(uuid.UUID)) error {
					for user, err := range client.Users.All(b.Context(), labhealth.ListUsersParams{Limit: userCap}) {
						if err != nil {
							return err
						}
						see(user.UserID)
					}
					return nil
				}},
			} {
				b.Run(r.name, func(b *testing.B) {
					b.ReportAllocs()
					var most heap
					for b.Loop() {
						runtime.GC()
						before, n, sum := heapNow(), 0, 0
						err := r.all(func(id uuid.UUID) {
							sum += int(id[13])<<16 + int(id[14])<<8 + int(id[15])
							if n++; n%1000 == 0 {
								most = most.max(heapNow().over(before))
							}
						})
						if want := sumOfIDs(total); err != nil || n != total || sum != want {
							b.Fatalf("%d users, %d, want %d: %v", n, sum, want, err)
						}
					}
					b.ReportMetric(most.objects/(1<<20), "MiB")
					b.ReportMetric(most.live/(1<<20), "MiB-live")
				})
			}
		})
	}
}

func bareUsers(bare *http.Client, address string, see func(uuid.UUID)) error {
	for offset := 0; ; {
		var page plain.UserPage
		if err := get(bare, fmt.Sprintf("%s/v2/user/?offset=%d&limit=%d", address, offset, userCap), &page); err != nil {
			return err
		}
		for i := range page.Users {
			see(page.Users[i].UserID)
		}
		if offset += len(page.Users); len(page.Users) == 0 || offset >= int(page.Total) {
			return nil
		}
	}
}

// sumOfIDs is the sum of the last three bytes of the ids of the first n users, whose digits are decimal.
func sumOfIDs(n int) (sum int) {
	for i := range n {
		for shift := 0; shift < 24; shift += 4 {
			sum += i % 10 << shift
			i /= 10
		}
	}
	return sum
}

// heap is the bytes of the heap: all objects, and those that the last collection found alive.
type heap struct{ objects, live float64 }

func heapNow() heap {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return heap{float64(s[0].Value.Uint64()), float64(s[1].Value.Uint64())}
}

func (h heap) over(before heap) heap { return heap{h.objects - before.objects, h.live - before.live} }

func (h heap) max(other heap) heap {
	return heap{max(h.objects, other.objects), max(h.live, other.live)}
}
