// Cancellation, draws, communication settings and resent events.

package labhealthtest

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// maxResendRange is the longest time range whose events can be resent.
const maxResendRange = 60 * 24 * time.Hour

// isCancelable reports whether the public API reference permits the cancellation of the order in
// its current status. A testkit that its user has registered is with the customer.
func (o *order) isCancelable() bool {
	switch o.lowLevelStatus() {
	case "ordered", "awaiting_registration", "requisition_bypassed",
		"appointment_pending", "appointment_scheduled", "appointment_cancelled":
		return true
	case "requisition_created":
		return !o.isRegistrable()
	case "draw_completed":
		return o.Details.Type == atHome.method
	}
	return false
}

// cancelOrder rejects requests in a format that no other operation has.
func (s *Server) cancelOrder(r *request, o *order) (any, error) {
	if !o.isCancelable() {
		return nil, &response{statusCode: http.StatusBadRequest, body: encode(struct {
			Error      string `json:"error"`
			Message    string `json:"message"`
			StatusCode int    `json:"status_code"`
		}{"Bad Request", "Order can not be cancelled in its current status", http.StatusBadRequest})}
	}
	s.setStatus(o, "cancelled."+o.Details.Type+".cancelled", "", r.now)
	s.emitOrder(o)
	return orderResponse{o, "success", "order cancelled"}, nil
}

// resendEvents sends the latest event of the named orders and of those that changed in a time
// range.
func (s *Server) resendEvents(r *request) (any, error) {
	var body struct {
		OrderIDs []uuid.UUID `json:"order_ids"`
		StartAt  *string     `json:"start_at"`
		EndAt    *string     `json:"end_at"`
	}
	r.decode(&body)
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

// markDrawCompleted reports that the sample of an on-site collection was drawn. An order that waits
// for its date is not ready for a draw.
func (s *Server) markDrawCompleted(r *request, o *order) (any, error) {
	low := o.lowLevelStatus()
	isWaiting := low == "ordered" && o.ActivateBy != nil
	switch {
	case o.Details.Type != "on_site_collection":
		return nil, reject(http.StatusBadRequest, "Order is not an on-site collection")
	case isWaiting || low != "ordered" && low != "requisition_created" && low != "requisition_bypassed":
		return nil, reject(http.StatusBadRequest, "Draw can not be completed in the current status of the order")
	}
	s.setStatus(o, "sample_with_lab.on_site_collection.draw_completed", "", r.now)
	s.emitOrder(o)
	return orderResponse{o, "success", "order updated"}, nil
}

// communicationSettings is the response of the operations on communication settings.
type communicationSettings struct {
	OrderID    uuid.UUID `json:"order_id"`
	SMSEnabled bool      `json:"sms_enabled"`
}

func (s *Server) getCommunicationSettings(_ *request, o *order) (any, error) {
	return communicationSettings{o.ID, !o.withoutSMS}, nil
}

func (s *Server) patchCommunicationSettings(r *request, o *order) (any, error) {
	var body struct {
		SMSEnabled bool `json:"sms_enabled"`
	}
	r.decode(&body)
	o.withoutSMS = !body.SMSEnabled
	s.reportOrder(o)
	return communicationSettings{o.ID, body.SMSEnabled}, nil
}
