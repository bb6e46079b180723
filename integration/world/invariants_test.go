package world

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// checkOrders checks the first invariant: there is at most one order for each import, and neither
// the journal nor an outcome claims what is false.
func (w *world) checkOrders() {
	for _, r := range w.plan.records {
		n := w.service.count(r.SampleID)
		isRejected := strings.HasPrefix(r.SampleID, "R")
		switch {
		case n > 1:
			w.report(fmt.Sprintf("%d orders for %s", n, r.SampleID))
		case n == 0 && !isRejected:
			w.report("no order for " + r.SampleID)
		}
	}
	rejected := int64(0)
	for _, r := range w.plan.records {
		if strings.HasPrefix(r.SampleID, "R") {
			rejected++
		}
	}
	if r := w.finalReport; r == nil || r.Rejected != rejected || r.Applied != int64(len(w.plan.records))-rejected {
		w.report(fmt.Sprintf("the report is %v", r))
	}
	w.checkOutcomes()
	w.checkJournal()
}

// checkOutcomes checks that no call that was not sent or was rejected has created an order, and
// that each one that was applied has.
func (w *world) checkOutcomes() {
	for call, outcome := range w.claims {
		created := w.service.created[call]
		switch outcome {
		case labhealth.OutcomeNotSent, labhealth.OutcomeRejected:
			if created {
				w.report(fmt.Sprintf("call %s has created an order, but its outcome is %v", call, outcome))
			}
		case labhealth.OutcomeApplied:
			if !created {
				w.report(fmt.Sprintf("call %s has created no order, but its outcome is %v", call, outcome))
			}
		}
	}
}

// checkJournal checks that the orders that the journal has are those of the service.
func (w *world) checkJournal() {
	p := w.importer.start()
	defer p.kill(false)
	journal, err := openJournal(p)
	if err != nil {
		w.report("the journal cannot be opened: " + err.Error())
		return
	}
	defer journal.Close()
	for e, err := range journal.Entries() {
		switch {
		case err != nil:
			w.report("the journal cannot be read: " + err.Error())
			return
		case e.Step == bulk.StepApplied && w.service.count(e.SampleID) == 0,
			e.Step == bulk.StepApplied && e.OrderID != uuid.Nil && !w.service.has(e.OrderID, e.SampleID):
			w.report("the journal has an order that does not exist: " + e.SampleID)
		case e.Step == bulk.StepRejected && w.service.count(e.SampleID) > 0:
			w.report("the journal has a rejection of an order that exists: " + e.SampleID)
		}
	}
}

func (s *service) has(id uuid.UUID, sampleID string) bool {
	return slices.ContainsFunc(s.orders, func(o *serviceOrder) bool { return o.ID == id && o.SampleID == sampleID })
}

// checkStore checks the second invariant: the store has what a sequential reference has after the
// deliveries that were applied, among which are all that were accepted.
func (w *world) checkStore(r *receiver) {
	applied, err := r.applied()
	if err != nil {
		w.report("the store cannot be read: " + err.Error())
		return
	}
	for id := range w.accepted {
		if len(applied[id]) == 0 {
			w.report("an accepted delivery is lost: " + id)
		}
	}
	for id := range w.service.acked {
		if len(applied[id]) == 0 {
			w.report("an acknowledged delivery is lost: " + id)
		}
	}
	for id, times := range applied {
		if len(times) != 1 {
			w.report("a delivery was applied twice: " + id)
		}
		if !slices.ContainsFunc(w.receipts[id], times[0].Equal) {
			w.report("a delivery was applied that was not received: " + id)
		}
	}
	w.checkSamples(r, applied)
	w.checkStoredOrders(r)
}

// applied returns when the applied deliveries were received.
func (r *receiver) applied() (map[string][]time.Time, error) {
	all := map[string][]time.Time{}
	rows, err := r.db.Query(`SELECT id, received FROM world_applied`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var received int64
		if err := rows.Scan(&id, &received); err != nil {
			return nil, err
		}
		all[id] = append(all[id], time.Unix(0, received))
	}
	return all, rows.Err()
}

// sampleKey identifies a sample of the schedule.
type sampleKey struct {
	user uuid.UUID
	at   int64
}

// sampleVersion is a version of a sample.
type sampleVersion struct {
	received time.Time
	value    float64
}

// checkSamples compares the samples with those of the deliveries: the latest receipt wins.
func (w *world) checkSamples(r *receiver, applied map[string][]time.Time) {
	want := map[sampleKey]sampleVersion{}
	for id, times := range applied {
		if !strings.HasPrefix(id, "samples-") {
			continue
		}
		var event struct {
			UserID uuid.UUID `json:"user_id"`
			Data   struct {
				Data []struct {
					Timestamp time.Time `json:"timestamp"`
					Value     float64   `json:"value"`
				} `json:"data"`
			} `json:"data"`
		}
		if err := json.Unmarshal(w.service.sent[id], &event); err != nil {
			panic(err)
		}
		for _, s := range event.Data.Data {
			key := sampleKey{event.UserID, s.Timestamp.UnixNano()}
			if old, found := want[key]; !found || times[0].After(old.received) {
				want[key] = sampleVersion{times[0], s.Value}
			}
		}
	}
	found := 0
	for _, user := range users {
		for s, err := range r.store.UserSamples(r.process.ctx, user, "heartrate", sampleStart, time.Time{}) {
			if err != nil {
				w.report("the samples cannot be read: " + err.Error())
				return
			}
			found++
			key := sampleKey{user, s.Sample.Timestamp.UnixNano()}
			if version, ok := want[key]; !ok || version.value != s.Sample.Value {
				w.report(fmt.Sprintf("a sample is %v, want %v", s.Sample.Value, version.value))
			}
		}
	}
	if found != len(want) {
		w.report(fmt.Sprintf("%d samples are stored, want %d", found, len(want)))
	}
}

// checkStoredOrders compares the orders with those of the service.
func (w *world) checkStoredOrders(r *receiver) {
	found := 0
	for stored, err := range r.store.Orders(r.process.ctx, sqlstore.OrderFilter{}) {
		if err != nil {
			w.report("the orders cannot be read: " + err.Error())
			return
		}
		found++
		i := slices.IndexFunc(w.service.orders, func(o *serviceOrder) bool { return o.ID == stored.Order.ID })
		if i < 0 {
			w.report("an order is stored that does not exist")
			continue
		}
		o := w.service.orders[i]
		timeline, err := r.store.Timeline(r.process.ctx, o.ID)
		if err != nil {
			w.report("the timeline cannot be read: " + err.Error())
			return
		}
		if stored.Status != labhealth.OrderStatus(o.LastEvent.Status) || !stored.Order.UpdatedAt.Equal(o.UpdatedAt) || len(timeline) != len(o.Events) {
			w.report(fmt.Sprintf("order %s has status %s and %d transitions, want %s and %d", o.SampleID, stored.Status, len(timeline), o.LastEvent.Status, len(o.Events)))
		}
	}
	if found != len(w.service.orders) {
		w.report(fmt.Sprintf("%d orders are stored, want %d", found, len(w.service.orders)))
	}
}
