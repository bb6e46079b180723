package labhealthtest

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// maxResendRange is the longest time range whose events can be resent.
const maxResendRange = 60 * 24 * time.Hour

// cancelOrder rejects requests in a format that no other operation has.
func (s *Server) cancelOrder(r *request) (any, error) {
	o, err := s.requestedOrder(r)
	if err != nil {
		return nil, err
	}
	if err := s.cancel(o, r.now); err != nil {
		return nil, &response{statusCode: http.StatusBadRequest, body: encode(struct {
			Error      string `json:"error"`
			Message    string `json:"message"`
			StatusCode int    `json:"status_code"`
		}{"Bad Request", "Order can not be cancelled in its current status", http.StatusBadRequest})}
	}
	s.emitOrder(o)
	return orderResponse{o, "success", "order cancelled"}, nil
}

var resendEventsSchema = object(
	nullable("order_ids", arrayOf(uuidSchema)),
	nullable("start_at", dateTimeSchema),
	nullable("end_at", dateTimeSchema),
)

// resendEvents sends the latest event of the named orders and of those that changed in a time
// range.
func (s *Server) resendEvents(r *request) (any, error) {
	var body struct {
		OrderIDs []uuid.UUID `json:"order_ids"`
		StartAt  *string     `json:"start_at"`
		EndAt    *string     `json:"end_at"`
	}
	r.decode(resendEventsSchema, &body)
	if err := r.err(); err != nil {
		return nil, err
	}
	inRange := func(*order) bool { return false }
	switch {
	case body.StartAt != nil || body.EndAt != nil:
		start := timeOr(body.StartAt, r.now.Add(-maxResendRange))
		end := timeOr(body.EndAt, r.now)
		if end.Sub(start) > maxResendRange {
			return nil, reject(http.StatusBadRequest, "The time range must not exceed 60 days")
		}
		inRange = func(o *order) bool { return !updatedAt(o).Before(start) && !updatedAt(o).After(end) }
	case len(body.OrderIDs) == 0:
		return nil, reject(http.StatusBadRequest, "order_ids or a time range is required")
	}
	sent := []uuid.UUID{}
	for _, o := range s.orders {
		if slices.Contains(body.OrderIDs, o.ID) || inRange(o) {
			s.emitOrder(o)
			sent = append(sent, o.ID)
		}
	}
	return map[string]any{"order_ids": sent}, nil
}

// timeOr returns the time of a valid date-time, or missing if there is none.
func timeOr(dateTime *string, missing time.Time) time.Time {
	if dateTime == nil {
		return missing
	}
	t, _, _ := parseTime(*dateTime)
	return t
}

// simulateOrder advances an order like the sandbox, to final_status or to the end. A status that
// Advance does not reach is set directly. The server accepts a delay but does not wait.
func (s *Server) simulateOrder(r *request) (any, error) {
	final, hasFinal := r.queryLast("final_status")
	r.queryInt("delay", 0)
	o, err := s.requestedOrder(r)
	if err != nil {
		return nil, err
	}
	var steps []string
	for status := o.statusAfter(o.LastEvent.Status); status != ""; status = o.statusAfter(status) {
		steps = append(steps, status)
		if status == final {
			break
		}
	}
	if hasFinal && !slices.Contains(steps, final) {
		steps = []string{final}
	}
	for _, status := range steps {
		s.setStatus(o, status, "", r.now)
		s.emitOrder(o)
	}
	return "Success", nil
}
