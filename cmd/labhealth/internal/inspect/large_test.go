package inspect

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// fillLarge stores n deliveries as if they had been received, with bodies of 1 to 10 kB, half of
// them glucose, a quarter orders, and the rest summaries, of 1,000 users.
func fillLarge(t testing.TB, i *Inspector, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	users := make([]uuid.UUID, 1000)
	for u := range users {
		users[u] = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, u))
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Svix-Webhooks/1.62.0"}}
	start := time.Now().Add(-6 * 24 * time.Hour)
	from, err := i.Count(t.Context(), Filter{}) // of an earlier run
	if err != nil {
		t.Fatal(err)
	}
	for ; from < n; from += 1000 {
		err := i.writer.write(func(ctx context.Context, tx *sql.Tx) error {
			for k := from; k < min(n, from+1000); k++ {
				user := users[random.IntN(len(users))]
				body := largeBody(random, user, k)
				d := record{Delivery: Delivery{ID: fmt.Sprintf("msg_%d", k), ReceivedAt: start.Add(time.Duration(k) * 5 * time.Second), Size: len(body),
					Verdict: Verified, Body: []byte(body), StatusCode: 204, Checks: []Check{{true, "invented"}}}}
				if k%50 == 0 {
					d.Verdict, d.Reason = Rejected, "no signature matches"
				}
				d.describe(d.Body)
				if err := d.relate(ctx, tx); err != nil {
					return err
				}
				d.pending = false
				rev, err := nextRev(ctx, tx)
				if err != nil {
					return err
				}
				if err := d.insert(ctx, tx, rev, fmt.Appendf(nil, `{"Content-Type":[%q],"Svix-Id":[%q]}`, header.Get("Content-Type"), d.ID)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func largeBody(random *rand.Rand, user uuid.UUID, k int) string {
	var body string
	switch k % 4 {
	case 0, 1:
		var samples []string
		for s := range 10 + random.IntN(60) {
			samples = append(samples, fmt.Sprintf(`{"timestamp":"2026-11-20T%02d:%02d:00+00:00","value":%.1f,"unit":"mmol/L","type":"automatic"}`, s/60, s%60, 4+3*random.Float64()))
		}
		body = fmt.Sprintf(`{"event_type":"daily.data.glucose.created","user_id":%q,"client_user_id":"patient-%d","data":{"source":{"provider":"freestyle_libre","type":"automatic"},"data":[%s]}}`,
			user, k%1000, strings.Join(samples, ","))
	case 2:
		order := uuid.NewSHA1(user, fmt.Append(nil, k/40))
		body = fmt.Sprintf(`{"event_type":"labtest.order.updated","user_id":%q,"data":{"id":%q,"user_id":%q,"notes":%q,
			"last_event":{"id":%d,"created_at":"2026-11-20T10:00:00+00:00","status":"collecting_sample.testkit.transit_customer"}}}`,
			user, order, user, strings.Repeat("invented ", 100+random.IntN(900)), k)
	default:
		body = fmt.Sprintf(`{"event_type":"daily.data.sleep.updated","user_id":%q,"data":{"id":%q,"user_id":%q,"source":{"provider":"oura"},"note":%q}}`,
			user, uuid.NewSHA1(user, fmt.Append(nil, "sleep", k/400)), user, strings.Repeat("invented ", 80+random.IntN(500)))
	}
	return body
}

// With 100,000 deliveries stored, a search takes at most 100 ms and the latest page 50 ms
// (medians).
// LABHEALTH_TEST_LONG=1 measures that; by default the same is done with few deliveries. A file that
// is named by LABHEALTH_TEST_FILE is kept for the next run.
func TestLarge(t *testing.T) {
	n := 2000
	if long() {
		n = 100_000
	}
	if text := os.Getenv("LABHEALTH_TEST_DELIVERIES"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	file := filepath.Join(t.TempDir(), "d.db")
	if kept := os.Getenv("LABHEALTH_TEST_FILE"); kept != "" {
		file = kept
	}
	i := open(t, Config{File: file, Keep: KeepAll})
	began := time.Now()
	fillLarge(t, i, n)
	t.Logf("%d deliveries in %.1f s, %d MB", n, time.Since(began).Seconds(), fileSize(t, file)>>20)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	user := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, 7))
	since := time.Now().Add(-24 * time.Hour)
	for _, c := range []struct {
		name  string
		f     Filter
		limit time.Duration
	}{
		{"latest", Filter{}, 50 * time.Millisecond},
		{"older page", Filter{Before: int64(n / 2)}, 50 * time.Millisecond},
		{"glucose", Filter{Query: "glucose"}, 100 * time.Millisecond},
		{"g", Filter{Query: "g"}, 100 * time.Millisecond},
		{"d (all but orders)", Filter{Query: "d"}, 100 * time.Millisecond},
		{"type:daily.data", Filter{Query: "type:daily.data"}, 100 * time.Millisecond},
		{"type:sleep oura", Filter{Query: "type:sleep oura"}, 100 * time.Millisecond},
		{"user: prefix", Filter{Query: "user:" + user.String()[:6]}, 100 * time.Millisecond},
		{"user: whole", Filter{Query: "user:" + user.String()}, 100 * time.Millisecond},
		{"user: client", Filter{Query: "user:patient-17"}, 100 * time.Millisecond},
		{"order: 2 characters", Filter{Query: "order:b1"}, 100 * time.Millisecond},
		{"id: prefix", Filter{Query: "id:msg_77"}, 100 * time.Millisecond},
		{"msg", Filter{Query: "msg"}, 100 * time.Millisecond},
		{"nothing", Filter{Query: "zebra"}, 100 * time.Millisecond},
		{"glucose is:rejected", Filter{Query: "glucose is:rejected"}, 100 * time.Millisecond},
		{"is:rejected", Filter{Is: "rejected"}, 100 * time.Millisecond},
		{"is:failed", Filter{Is: "failed"}, 100 * time.Millisecond},
		{"is:verified", Filter{Is: "verified"}, 100 * time.Millisecond},
		{"UserID", Filter{UserID: user}, 100 * time.Millisecond},
		{"From", Filter{From: since}, 100 * time.Millisecond},
		{"From glucose", Filter{From: since, Query: "glucose"}, 100 * time.Millisecond},
	} {
		list := median(t, func() error { _, err := i.List(t.Context(), c.f, 50); return err })
		found := 0
		count := median(t, func() (err error) { found, err = i.Count(t.Context(), c.f); return err })
		t.Logf("%-20s list %7.1f ms, count %7.1f ms, %d", c.name, ms(list), ms(count), found)
		if long() && (list > c.limit || count > 2*c.limit) {
			t.Errorf("%s: too slow", c.name)
		}
	}
	t.Logf("%-20s %.1f ms", "histogram of a day", ms(median(t, func() error { _, err := i.Histogram(t.Context(), since, 30*time.Minute); return err })))
	t.Logf("%-20s %.1f ms", "get", ms(median(t, func() error { _, _, err := i.Get(t.Context(), int64(n/2)); return err })))
	t.Logf("%-20s %.1f ms", "previous", ms(median(t, func() error { _, _, err := i.Previous(t.Context(), int64(n)); return err })))
	t.Logf("%-20s %.1f ms", "receive", ms(median(t, func() error { deliver(i, request(t, uuid.NewString(), glucoseBody(user, time.Now(), 5))); return nil })))
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("heap %d MB before, %d MB after, %d MB from the system", before.HeapAlloc>>20, after.HeapAlloc>>20, after.Sys>>20)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(t *testing.T, f func() error) time.Duration {
	t.Helper()
	var all []time.Duration
	for range 5 {
		start := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
