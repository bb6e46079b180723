// The simulation of an order in the sandbox.

package labhealthtest

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// simulationFlags describes the results of a simulated order.
type simulationFlags struct {
	Interpretation    string   `json:"interpretation"`
	ResultTypes       []string `json:"result_types"`
	HasMissingResults *bool    `json:"has_missing_results"`
}

// simulation is a simulation of an order, which is run at once or after its delay.
type simulation struct {
	orderID uuid.UUID
	final   string // empty for the last status
	flags   simulationFlags
	due     time.Time
}

// maxDelay is the longest delay of a simulation, in seconds: 68 years.
const maxDelay = math.MaxInt32

// simulateOrder simulates an order as observations of the sandbox show it: the first simulation
// creates the requisition, whatever final_status is. Later ones lead to final_status or to the end,
// but never back. A status that no diagram of the public API reference has is set directly.
func (s *Server) simulateOrder(r *request, o *order) (any, error) {
	v := simulation{final: r.queryOne("final_status"), flags: simulationFlags{Interpretation: "normal"}}
	delay := r.queryInt("delay")
	r.decode(&v.flags)
	if err := o.checkSimulation(v.final); err != nil {
		return nil, err
	}
	v.orderID = o.ID
	if delay <= 0 {
		s.simulate(v, r.now)
		return "Success", nil
	}
	v.due = r.now.Add(time.Duration(min(delay, maxDelay)) * time.Second)
	s.delayed = append(s.delayed, v)
	slices.SortStableFunc(s.delayed, func(a, b simulation) int { return a.due.Compare(b.due) })
	return "Success", nil
}

// checkSimulation returns why an order cannot be simulated, or nil.
func (o *order) checkSimulation(final string) error {
	switch {
	case slices.Contains([]string{"completed", "cancelled", "failed"}, o.Status):
		return reject(http.StatusBadRequest, "Order can not be simulated in its current status")
	case o.isNew() || o.needsBooking():
		return nil // whatever final is
	case final != "" && strings.Split(final, ".")[1] != o.Details.Type:
		return reject(http.StatusBadRequest, "final_status does not belong to the collection method of the order")
	case o.hasPassed(final):
		return reject(http.StatusBadRequest, "Order has already passed final_status")
	}
	return nil
}

// simulate runs a simulation. It does nothing if the order has changed so that it cannot be
// simulated anymore.
func (s *Server) simulate(v simulation, now time.Time) {
	o := s.orderByID[v.orderID]
	if o == nil || o.checkSimulation(v.final) != nil {
		return
	}
	for _, status := range o.simulatedStatuses(v.final) {
		s.setStatus(o, status, "", now)
		if o.hasResults() {
			o.setSimulatedResults(v.flags)
		}
		s.emitOrder(o)
	}
}

// simulateDelayed runs the simulations whose delay is over. Everything that reads orders calls it,
// because simulations have no timer.
func (s *Server) simulateDelayed(now time.Time) {
	for len(s.delayed) > 0 && !s.delayed[0].due.After(now) {
		v := s.delayed[0]
		s.delayed = s.delayed[1:]
		s.simulate(v, now)
	}
}

func (o *order) isNew() bool { return o.lowLevelStatus() == "ordered" }

// needsBooking reports whether an order at home waits for the booking of an appointment. Until then
// simulations have no effect.
func (o *order) needsBooking() bool {
	switch o.LastEvent.Status {
	case "received.at_home_phlebotomy.requisition_created", "received.at_home_phlebotomy.requisition_bypassed",
		"collecting_sample.at_home_phlebotomy.appointment_pending", "collecting_sample.at_home_phlebotomy.appointment_cancelled":
		return !o.appointment.isOpen() || o.appointment.StartAt == nil
	}
	return false
}

// hasPassed reports whether a simulation up to final would lead back. A status that follows the
// current one does not, even if its first part is an earlier one, as that of a testkit that is
// registered after its delivery. Appointments can be canceled again.
func (o *order) hasPassed(final string) bool {
	if final == "" || len(o.simulatedStatuses(final)) > 1 || o.statusAfter(o.LastEvent.Status) == final {
		return false
	}
	steps := []string{"received", "collecting_sample", "sample_with_lab"}
	top, low := final[:strings.IndexByte(final, '.')], final[strings.LastIndexByte(final, '.')+1:]
	if slices.Contains(steps, top) && slices.Index(steps, top) < slices.Index(steps, o.Status) {
		return true
	}
	return low != "appointment_cancelled" && slices.ContainsFunc(o.Events, func(e orderEvent) bool { return e.Status == final })
}

// branchAfter has the statuses that the diagrams of the public API reference have beside the usual
// path, and which status of the path they follow.
var branchAfter = map[string]string{
	"collecting_sample.walk_in_test.appointment_cancelled": "collecting_sample.walk_in_test.appointment_scheduled",
	"failed.testkit.failure_to_deliver_to_customer":        "collecting_sample.testkit.out_for_delivery",
	"failed.testkit.failure_to_deliver_to_lab":             "collecting_sample.testkit.transit_lab",
	"failed.testkit.sample_error":                          "sample_with_lab.testkit.delivered_to_lab",
	"sample_with_lab.at_home_phlebotomy.partial_results":   "collecting_sample.at_home_phlebotomy.draw_completed",
	"sample_with_lab.on_site_collection.partial_results":   "sample_with_lab.on_site_collection.draw_completed",
}

// simulatedStatuses returns the statuses that follow the current one up to final, or up to the last
// one if final is empty. A testkit that is not registered stays with the customer, unless it is
// canceled or lost, and a walk-in order has no partial results.
func (o *order) simulatedStatuses(final string) []string {
	switch {
	case o.isNew():
		return []string{"received." + o.Details.Type + ".requisition_created"}
	case o.needsBooking():
		return nil
	case final == "sample_with_lab.walk_in_test.partial_results":
		final = ""
	}
	var statuses []string
	for status := o.statusAfter(o.LastEvent.Status); status != ""; status = o.statusAfter(status) {
		statuses = append(statuses, status)
		switch status {
		case final:
			return statuses
		case branchAfter[final]:
			return append(statuses, final)
		}
	}
	isLost := strings.HasPrefix(final, "cancelled.") || strings.HasPrefix(final, "failed.") && branchAfter[final] == ""
	isUnregistered := o.isRegistrable() && o.PatientDetails == nil
	if final == "" || isUnregistered && !isLost {
		return statuses
	}
	return []string{final}
}

func (o *order) setSimulatedResults(flags simulationFlags) {
	o.Interpretation = &flags.Interpretation
	o.resultTypes = flags.ResultTypes
	if flags.HasMissingResults == nil {
		return
	}
	o.HasMissingResults, o.missing = flags.HasMissingResults, nil
	if markers := o.LabTest.Markers; *flags.HasMissingResults && len(markers) > 0 {
		o.missing = map[int64]string{markers[len(markers)-1].ID: "quantity_not_sufficient_failure"}
	}
}
