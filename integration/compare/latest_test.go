package compare

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// BenchmarkSeries applies deliveries of a single sample each, shuffled, to an empty store: one or
// four for each of a million series.
func BenchmarkSeries(b *testing.B) {
	for _, each := range []int{1, 4} {
		b.Run(fmt.Sprint(each), func(b *testing.B) { applySeries(b, 1_000_000, each) })
	}
}

func applySeries(b *testing.B, series, each int) {
	start := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	events := make([]*webhooks.Event, each)
	for i := range events {
		e, err := webhooks.Parse(fmt.Appendf(nil, `{"event_type":"daily.data.glucose.created","data":{"source":{"slug":"example_sensor"},"data":[`+
			`{"timestamp":%q,"timezone_offset":3600,"type":"automatic","unit":"mmol/L","value":4.2}]}}`, start.Add(time.Duration(i)*time.Minute).Format(time.RFC3339)))
		if err != nil {
			b.Fatal(err)
		}
		events[i] = e
	}
	turns := rand.New(rand.NewPCG(1, 2)).Perm(series * each)
	for b.Loop() {
		latest := new(webhooks.Latest)
		for n, turn := range turns {
			event := *events[turn%each]
			event.UserID, event.ReceivedAt = userID(turn/each), start.Add(time.Duration(n))
			if c, err := latest.Apply(webhooks.Delivery{Event: &event}); err != nil || c.Added != 1 {
				b.Fatal(c, err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(turns))/b.Elapsed().Seconds()/1e6, "Msamples/s")
}

// userID returns the ID of the n-th user, with the bits of n all over it as in a random ID.
func userID(n int) (id uuid.UUID) {
	r := rand.NewPCG(uint64(n), 7)
	binary.BigEndian.PutUint64(id[:8], r.Uint64())
	binary.BigEndian.PutUint64(id[8:], r.Uint64())
	return id
}
