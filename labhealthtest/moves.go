package labhealthtest

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// maxResend is the longest time whose events are sent again.
const maxResend = 60 * 24 * time.Hour

// cancelOrder refuses with a shape of its own.
func (s *Server) cancelOrder(r *request) answer {
	id := r.pathUUID("order_id")
	if a, bad := r.invalid(); bad {
		return a
	}
	o := s.orderByID[id]
	if o == nil {
		return noOrder
	}
	if err := s.cancel(o, r.now); err != nil {
		return answer{status: http.StatusBadRequest, body: encode(struct {
			Error      string `json:"error"`
			Message    string `json:"message"`
			StatusCode int    `json:"status_code"`
		}{"Bad Request", "Order can not be cancelled in its current status", http.StatusBadRequest})}
	}
	s.emitOrder(o)
	return reply(placed{o, "success", "order cancelled"})
}

func (s *Server) cancel(o *order, now time.Time) error {
	if o.Status == "completed" || o.Status == "cancelled" {
		return fmt.Errorf("labhealthtest: the order is %s already", o.Status)
	}
	s.step(o, "cancelled."+o.Details.Type+".cancelled", "", now)
	return nil
}

// resendEvents sends the latest event of the orders that are named, and of those that changed within a time.
func (s *Server) resendEvents(r *request) answer {
	var body struct {
		OrderIDs []uuid.UUID `json:"order_ids"`
		StartAt  *string     `json:"start_at"`
		EndAt    *string     `json:"end_at"`
	}
	r.decode(resendBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	within := func(*order) bool { return false }
	if body.StartAt != nil || body.EndAt != nil {
		start, end := r.now.Add(-maxResend), r.now
		if body.StartAt != nil {
			start, _, _ = parseTime(*body.StartAt) // Its form was checked.
		}
		if body.EndAt != nil {
			end, _, _ = parseTime(*body.EndAt)
		}
		if end.Sub(start) > maxResend {
			return refuse(http.StatusBadRequest, "The time range must not exceed 60 days")
		}
		within = func(o *order) bool {
			return !time.Time(o.UpdatedAt).Before(start) && !time.Time(o.UpdatedAt).After(end)
		}
	} else if len(body.OrderIDs) == 0 {
		return refuse(http.StatusBadRequest, "order_ids or a time range is required")
	}
	sent := []uuid.UUID{}
	for _, o := range s.orders {
		if slices.Contains(body.OrderIDs, o.ID) || within(o) {
			s.emitOrder(o)
			sent = append(sent, o.ID)
		}
	}
	return reply(map[string]any{"order_ids": sent})
}

// simulateOrder moves an order on as the sandbox does: step by step to final_status, or to its end. A status that no step leads
// to is set at once. The delay of the sandbox is accepted, and there is none.
func (s *Server) simulateOrder(r *request) answer {
	id := r.pathUUID("order_id")
	final, named := r.queryLast("final_status")
	r.queryInt("delay", 0)
	if a, bad := r.invalid(); bad {
		return a
	}
	o := s.orderByID[id]
	if o == nil {
		return noOrder
	}
	var steps []string
	for status := o.following(o.LastEvent.Status); status != "" && !slices.Contains(steps, final); status = o.following(status) {
		steps = append(steps, status)
	}
	if named && !slices.Contains(steps, final) {
		steps = []string{final}
	}
	for _, status := range steps {
		s.step(o, status, "", r.now)
		s.emitOrder(o)
	}
	return reply("Success")
}

// following is the natural next status after from, empty where none is known.
func (o *order) following(from string) string {
	registrable := slices.ContainsFunc(o.Events, func(e orderEvent) bool {
		return e.Status == "received.testkit.awaiting_registration"
	})
	if to := nextOfRegistrable[from]; registrable && to != "" {
		return to
	}
	return next[from]
}
