// The statuses of an order and how it moves through them.

package labhealthtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// nextStatus is the usual next status of each status, from the diagrams of the public API
// reference. requisition_bypassed continues like requisition_created.
var nextStatus = map[string]string{
	"received.testkit.ordered":                              "received.testkit.requisition_created",
	"received.testkit.awaiting_registration":                "collecting_sample.testkit.transit_customer",
	"received.testkit.requisition_created":                  "collecting_sample.testkit.transit_customer",
	"received.testkit.requisition_bypassed":                 "collecting_sample.testkit.transit_customer",
	"received.testkit.registered":                           "received.testkit.requisition_created",
	"collecting_sample.testkit.transit_customer":            "collecting_sample.testkit.out_for_delivery",
	"collecting_sample.testkit.problem_in_transit_customer": "collecting_sample.testkit.out_for_delivery",
	"collecting_sample.testkit.out_for_delivery":            "collecting_sample.testkit.with_customer",
	"collecting_sample.testkit.with_customer":               "collecting_sample.testkit.transit_lab",
	"collecting_sample.testkit.transit_lab":                 "sample_with_lab.testkit.delivered_to_lab",
	"collecting_sample.testkit.problem_in_transit_lab":      "sample_with_lab.testkit.delivered_to_lab",
	"sample_with_lab.testkit.delivered_to_lab":              "completed.testkit.completed",
	"sample_with_lab.testkit.lab_processing_blocked":        "completed.testkit.completed",

	"received.walk_in_test.ordered":                        "received.walk_in_test.requisition_created",
	"received.walk_in_test.requisition_created":            "collecting_sample.walk_in_test.appointment_pending",
	"received.walk_in_test.requisition_bypassed":           "collecting_sample.walk_in_test.appointment_pending",
	"collecting_sample.walk_in_test.appointment_pending":   "collecting_sample.walk_in_test.appointment_scheduled",
	"collecting_sample.walk_in_test.appointment_cancelled": "collecting_sample.walk_in_test.appointment_pending",
	"collecting_sample.walk_in_test.redraw_available":      "collecting_sample.walk_in_test.appointment_pending",
	"collecting_sample.walk_in_test.appointment_scheduled": "completed.walk_in_test.completed",
	"sample_with_lab.walk_in_test.partial_results":         "completed.walk_in_test.completed",

	"received.at_home_phlebotomy.ordered":                        "received.at_home_phlebotomy.requisition_created",
	"received.at_home_phlebotomy.requisition_created":            "collecting_sample.at_home_phlebotomy.appointment_pending",
	"received.at_home_phlebotomy.requisition_bypassed":           "collecting_sample.at_home_phlebotomy.appointment_pending",
	"collecting_sample.at_home_phlebotomy.appointment_pending":   "collecting_sample.at_home_phlebotomy.appointment_scheduled",
	"collecting_sample.at_home_phlebotomy.appointment_cancelled": "collecting_sample.at_home_phlebotomy.appointment_pending",
	"collecting_sample.at_home_phlebotomy.appointment_scheduled": "collecting_sample.at_home_phlebotomy.draw_completed",
	"collecting_sample.at_home_phlebotomy.draw_completed":        "completed.at_home_phlebotomy.completed",
	"sample_with_lab.at_home_phlebotomy.partial_results":         "completed.at_home_phlebotomy.completed",

	"received.on_site_collection.ordered":                "received.on_site_collection.requisition_created",
	"received.on_site_collection.requisition_created":    "sample_with_lab.on_site_collection.draw_completed",
	"received.on_site_collection.requisition_bypassed":   "sample_with_lab.on_site_collection.draw_completed",
	"sample_with_lab.on_site_collection.draw_completed":  "completed.on_site_collection.completed",
	"sample_with_lab.on_site_collection.partial_results": "completed.on_site_collection.completed",
}

// nextStatusOfRegistered replaces entries of nextStatus for a testkit that its user registers. Its
// requisition is created after the user has received the kit.
var nextStatusOfRegistered = map[string]string{
	"collecting_sample.testkit.with_customer": "received.testkit.registered",
	"received.testkit.requisition_created":    "collecting_sample.testkit.transit_lab",
}

// statusAfter returns the usual next status of the order, or "" if there is none.
func (o *order) statusAfter(status string) string {
	next := nextStatusOfRegistered[status]
	switch {
	case next == "" || !o.isRegistrable():
		return nextStatus[status]
	case next == "received.testkit.registered" && o.PatientDetails == nil:
		return "" // only the registration of the patient continues
	}
	return next
}

// isRegistrable reports whether the order is a testkit that its user registers.
func (o *order) isRegistrable() bool {
	return slices.ContainsFunc(o.Events, func(e orderEvent) bool {
		return e.Status == "received.testkit.awaiting_registration"
	})
}

// lowLevelStatus returns the last part of the current status.
func (o *order) lowLevelStatus() string {
	status := o.LastEvent.Status
	return status[strings.LastIndexByte(status, '.')+1:]
}

// statusOf returns the status of a collection method with this last part.
func statusOf(method, low string) string {
	status, _ := first(reference.Enumerations()["OrderStatus"], func(s string) bool { return strings.HasSuffix(s, "."+method+"."+low) })
	return status
}

// Advance moves an order to the usual next status of its collection method and returns the new
// status. A testkit is shipped to the customer and to the lab, other orders have an appointment or
// a draw. A testkit whose status was set to received.testkit.awaiting_registration is registered
// before it is shipped to the lab. Advance returns an error if the order does not exist or its
// status has no next one: at the end, after unknown statuses set with [Server.SetStatus], and if a
// testkit waits for POST /v3/order/testkit/register.
func (s *Server) Advance(orderID uuid.UUID) (status string, err error) {
	err = s.changeOrder(orderID, func(o *order, now time.Time) error {
		status = o.statusAfter(o.LastEvent.Status)
		if status == "" {
			return fmt.Errorf("labhealthtest: no step follows %q", o.LastEvent.Status)
		}
		s.setStatus(o, status, "", now)
		return nil
	})
	return status, err
}

// NextStatuses returns the usual statuses that follow the current one of an order, up to the last:
// those to which calls of [Server.Advance] move the order. The list is empty if no status follows.
// NextStatuses returns an error if the order does not exist.
func (s *Server) NextStatuses(orderID uuid.UUID) ([]string, error) {
	var next []string
	err := s.withOrder(orderID, func(o *order) error {
		next = o.nextStatuses()
		return nil
	})
	return next, err
}

func (o *order) nextStatuses() (next []string) {
	for status := o.statusAfter(o.LastEvent.Status); status != "" && !slices.Contains(next, status); status = o.statusAfter(status) {
		next = append(next, status)
	}
	return next
}

// SetStatus adds an event with any status to an order, such as
// "collecting_sample.testkit.with_customer" or one that the interface specification does not have.
// It does not check the transition. It returns an error if the order does not exist.
func (s *Server) SetStatus(orderID uuid.UUID, status string) error {
	return s.changeOrder(orderID, func(o *order, now time.Time) error {
		s.setStatus(o, status, "", now)
		return nil
	})
}

// PartialResults sets the status of an order to partial_results. Each call adds an event to the
// order, but none is delivered unless [Server.SetPartialEvents] enables it. PartialResults returns
// an error for testkits, which do not have this status.
func (s *Server) PartialResults(orderID uuid.UUID) error {
	return s.changeOrder(orderID, func(o *order, now time.Time) error {
		if o.Details.Type == "testkit" {
			return errors.New("labhealthtest: testkit orders have no partial results")
		}
		s.setStatus(o, "sample_with_lab."+o.Details.Type+".partial_results", "", now)
		return nil
	})
}

// SetPartialEvents changes the setting partial_webhooks_enabled of the team, which the management
// API changes as well: whether events are delivered when orders reach the status partial_results.
// The default is false, as at the service.
func (s *Server) SetPartialEvents(enabled bool) {
	organisation := s.organisationServer()
	organisation.mu.Lock()
	defer organisation.mu.Unlock()
	if t := s.ownTeam(); t != nil {
		t.Sandbox.Partial = enabled
		s.partialEvents.Store(enabled)
	}
}

// DeleteOrder deletes an order without an event: neither lists nor its transaction have it anymore,
// requests for it get a 404 response, and its sample ID can be used again. Events that were sent
// before still arrive. The public API reference has no such operation. It returns an error if the
// order does not exist.
func (s *Server) DeleteOrder(orderID uuid.UUID) error {
	return s.editOrder(orderID, func(o *order) error {
		isDeleted := func(other *order) bool { return other == o }
		s.orders = slices.DeleteFunc(s.orders, isDeleted)
		s.ordersOf[o.UserID] = slices.DeleteFunc(s.ordersOf[o.UserID], isDeleted)
		delete(s.orderByID, orderID)
		if o.SampleID != nil {
			delete(s.sampleIDs, *o.SampleID)
		}
		t := o.Transaction
		t.Orders = slices.DeleteFunc(t.Orders, func(e transactionOrder) bool { return e.ID == orderID })
		t.updateStatus()
		return nil
	})
}

// Fail sets the status of an order to sample_error with a status detail, such as
// "sample_hemolyzed". An empty detail is sent as null. For other failures, use [Server.SetStatus].
func (s *Server) Fail(orderID uuid.UUID, detail string) error {
	return s.changeOrder(orderID, func(o *order, now time.Time) error {
		s.setStatus(o, "failed."+o.Details.Type+".sample_error", detail, now)
		return nil
	})
}

// Cancel cancels an order, as the lab or the service may do in any status, and its transaction if
// all other orders of it are canceled too. It returns an error if the order is already completed or
// canceled.
func (s *Server) Cancel(orderID uuid.UUID) error {
	return s.changeOrder(orderID, func(o *order, now time.Time) error {
		if o.Status == "completed" || o.Status == "cancelled" {
			return fmt.Errorf("labhealthtest: the order is %s already", o.Status)
		}
		s.setStatus(o, "cancelled."+o.Details.Type+".cancelled", "", now)
		return nil
	})
}

// changeOrder calls change with an order and sends the event of the order if change succeeds.
func (s *Server) changeOrder(orderID uuid.UUID, change func(o *order, now time.Time) error) error {
	return s.withOrder(orderID, func(o *order) error {
		if err := change(o, s.now()); err != nil {
			return err
		}
		s.emitOrder(o)
		return nil
	})
}

// editOrder calls edit with an order and reports the change if edit succeeds, without an event.
func (s *Server) editOrder(orderID uuid.UUID, edit func(*order) error) error {
	return s.withOrder(orderID, func(o *order) error {
		if err := edit(o); err != nil {
			return err
		}
		s.reportOrder(o)
		return nil
	})
}

// withOrder calls f with an order.
func (s *Server) withOrder(orderID uuid.UUID, f func(*order) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.simulateDelayed(s.now())
	if o := s.orderByID[orderID]; o != nil {
		return f(o)
	}
	return errNoOrder
}

// setStatus adds an event to an order, updates the fields that depend on it and reports the change.
func (s *Server) setStatus(o *order, status, detail string, now time.Time) {
	s.lastEventID++
	o.LastEvent = orderEvent{ID: s.lastEventID, CreatedAt: timestamp(now), Status: status}
	if detail != "" {
		o.LastEvent.StatusDetail = &detail
	}
	o.Events = append(o.Events, o.LastEvent)
	o.Status, _, _ = strings.Cut(status, ".")
	o.UpdatedAt = timestamp(now)
	o.Transaction.update(o, now)
	low := o.lowLevelStatus()

	o.Details.Data.(interface{ setUpdatedAt(time.Time) }).setUpdatedAt(now)
	switch data := o.Details.Data.(type) {
	case *testkitData:
		s.setTracking(data, low)
	case *appointmentData:
		s.followOrder(o, low, now)
	}
	s.reportOrder(o)
}

// setTracking sets the tracking number of a testkit that is shipped to the customer or to the lab.
func (s *Server) setTracking(data *testkitData, low string) {
	if low != "transit_customer" && low != "transit_lab" {
		return
	}
	if data.Shipment == nil {
		data.Shipment = &shipment{ID: s.newID()}
	}
	number := fmt.Sprintf("1Z%09d", s.lastEventID)
	url := "https://example.com/track/" + number
	switch low {
	case "transit_customer":
		data.Shipment.OutboundTrackingNumber, data.Shipment.OutboundTrackingURL = &number, &url
		data.Shipment.OutboundCourier = new("usps")
	case "transit_lab":
		data.Shipment.InboundTrackingNumber, data.Shipment.InboundTrackingURL = &number, &url
		data.Shipment.InboundCourier = new("usps")
	}
}
