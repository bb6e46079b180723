package console

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A rejected request was not processed, neither in the strip nor in the table.
func TestStripCountsProcessed(t *testing.T) {
	s := newCallsSite(t)
	body := s.importBody("SAMPLE-1")
	for _, want := range []int{200, 400} {
		if got := s.send("POST", "/v3/order/import", body, "X-Idempotency-Key", "key-1"); got != want {
			t.Fatalf("status %d, want %d", got, want)
		}
	}
	for range 3 {
		if got := s.send("POST", "/v3/order/import", `{"sample_id":"SAMPLE-2"}`); got != 422 {
			t.Fatalf("status %d", got)
		}
	}
	page := s.get("/console/faults")
	s.contains(page, `<span class="count">5 received, 1 processed</span>`, "5 requests were received within a minute, 1 were processed, 0 of them a second time")
}

// The counts of the chips are live.
func TestLiveChips(t *testing.T) {
	s := newCallsSite(t)
	if got := s.send("POST", "/v3/order/import", s.importBody("SAMPLE-1")); got != 200 {
		t.Fatal(got)
	}
	s.contains(s.get("/console/requests?is=writes"), `data-live="nav requests-counts requests-chips:writes"`)
	next := liveChanges(t, s.console.live, "requests-chips:writes")
	s.console.publishCalls()
	ch := next()
	if ch.ID != "chips" || !regexp.MustCompile(`aria-current="true">Writes <span class="n">1<`).MatchString(ch.HTML) {
		t.Errorf("got %+v", ch)
	}
}

// A lane of an open board says how many older orders there are, and keeps as many cards as a page
// that is loaded.
func TestLiveLaneOfManyOrders(t *testing.T) {
	s := newOrdersSite(t)
	var last uuid.UUID
	for range laneCards + 3 {
		last = s.order(s.srv.LabTests.WalkIn)
	}
	page := s.get("/console/orders", 200)
	s.contains(page, fmt.Sprintf(`id="received-cards" data-most="%d"`, laneCards), `id="received-older"><a class="link" href="/console/orders?from=50&amp;lane=received">3 older</a>`,
		`id="collecting-older" hidden>`)
	next := liveChanges(t, s.console.live, "orders")
	if _, err := s.srv.Advance(last); err != nil {
		t.Fatal(err)
	}
	s.console.orderChanged(t.Context(), last)
	for {
		if ch := next(); ch.ID == "received-older" || ch.ID == "collecting-older" {
			if ch.ID == "received-older" && !strings.Contains(ch.HTML, " older</a>") {
				t.Errorf("got %+v", ch)
			}
			return
		}
	}
}
