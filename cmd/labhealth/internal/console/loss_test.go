package console

import (
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

// A lane says how many older orders there are.
func TestLiveLaneOfManyOrders(t *testing.T) {
	s := newOrdersSite(t)
	var last uuid.UUID
	for range laneCards + 3 {
		last = s.order(s.srv.LabTests.WalkIn)
	}
	page := s.get("/console/orders", 200)
	s.contains(page, `id="received-cards">`, `id="received-older"><a class="link" href="/console/orders?from=50&amp;lane=received">3 older</a>`,
		`id="collecting-older" hidden>`)
	if _, err := s.srv.Advance(last); err != nil {
		t.Fatal(err)
	}
	s.contains(s.get("/console/orders", 200), `>3 older</a>`)
}
