// The JSON of an appointment, and how it follows its order.

package labhealthtest

import (
	"time"

	"github.com/google/uuid"
)

// The objects of an appointment, with the JSON names and the field order of the service.

type appointment struct {
	ID                 uuid.UUID          `json:"id"`
	UserID             uuid.UUID          `json:"user_id"`
	OrderID            uuid.UUID          `json:"order_id"`
	OrderTransactionID uuid.UUID          `json:"order_transaction_id"`
	Address            usAddress          `json:"address"`
	Location           lngLat             `json:"location"`
	StartAt            *localTimestamp    `json:"start_at"`
	EndAt              *localTimestamp    `json:"end_at"`
	IANATimezone       *string            `json:"iana_timezone"`
	Type               string             `json:"type"`
	Provider           string             `json:"provider"`
	Status             string             `json:"status"`
	ProviderID         string             `json:"provider_id"`
	ExternalID         *string            `json:"external_id"`
	CanReschedule      bool               `json:"can_reschedule"`
	AppointmentNotes   *string            `json:"appointment_notes"`
	EventStatus        string             `json:"event_status"`
	EventData          any                `json:"event_data"`
	Events             []appointmentEvent `json:"events"`

	slot slotID // zero if the appointment has no time
}

type appointmentEvent struct {
	CreatedAt timestamp `json:"created_at"`
	Status    string    `json:"status"`
	Data      any       `json:"data"`
}

type usAddress struct {
	FirstLine   string  `json:"first_line"`
	SecondLine  *string `json:"second_line"`
	City        string  `json:"city"`
	State       string  `json:"state"`
	ZipCode     string  `json:"zip_code"`
	Unit        *string `json:"unit"`
	AccessNotes *string `json:"access_notes"`
}

type lngLat struct {
	Lng float64 `json:"lng"`
	Lat float64 `json:"lat"`
}

// isOpen reports whether the appointment can still take place.
func (a *appointment) isOpen() bool {
	return a != nil && a.Status != "cancelled" && a.Status != "completed"
}

// newAppointment replaces the appointment of an order. It has no event yet.
func (s *Server) newAppointment(o *order, kind *appointmentKind) *appointment {
	id := s.newID()
	a := &appointment{
		ID: id, UserID: o.UserID, OrderID: o.ID, OrderTransactionID: o.Transaction.ID, Type: kind.name,
		ProviderID: "APPT-" + id.String()[:8],
	}
	o.appointment = a
	o.Details.Data.(*appointmentData).AppointmentID = &a.ID
	return a
}

// addAppointmentEvent changes the status of the appointment and sends its event.
func (s *Server) addAppointmentEvent(o *order, status string, data any, now time.Time) {
	a := o.appointment
	a.Events = append(a.Events, appointmentEvent{timestamp(now), status, data})
	a.EventStatus, a.EventData, a.Status = status, data, status
	if status == "scheduled" {
		a.Status = "confirmed"
	}
	a.CanReschedule = a.Status == "confirmed"
	if status == "cancelled" {
		delete(s.takenSlots, a.slot)
	}
	eventType := "labtest.appointment.updated"
	if len(a.Events) == 1 {
		eventType = "labtest.appointment.created"
	}
	s.emit(s.userByID[o.UserID], eventType, a)
}

// followOrder changes the appointment of an order whose status was set otherwise than by booking,
// such as by [Server.Advance]. It invents an appointment for the status appointment_scheduled.
func (s *Server) followOrder(o *order, low string, now time.Time) {
	a := o.appointment
	switch low {
	case "appointment_scheduled":
		switch {
		case !a.isOpen():
			s.inventAppointment(o, now)
		case a.StartAt == nil:
			a.setTime(a.slot, inventedStart(now))
			s.addAppointmentEvent(o, "scheduled", nil, now)
		case a.Status == "pending":
			s.addAppointmentEvent(o, "scheduled", nil, now)
		}
	case "appointment_cancelled", "cancelled":
		// The cancellation of a walk-in order leaves its appointment as it is.
		if a.isOpen() && (low == "appointment_cancelled" || a.Type == atHome.name) {
			s.addAppointmentEvent(o, "cancelled", nil, now)
		}
	case "draw_completed", "partial_results", "completed", "corrected", "sample_error", "redraw_available": // after a draw
		if a.isOpen() {
			s.addAppointmentEvent(o, "completed", nil, now)
		}
	}
}

// inventAppointment adds an appointment for the day after now, at the patient's address.
func (s *Server) inventAppointment(o *order, now time.Time) {
	kind, p := kindOfOrder(o), o.PatientAddress
	if kind == nil || p == nil {
		return
	}
	a := s.newAppointment(o, kind)
	a.Address = usAddress{FirstLine: p.FirstLine, SecondLine: p.SecondLine, City: p.City, State: p.State, ZipCode: p.Zip, AccessNotes: p.AccessNotes}
	a.Provider = kind.provider
	if area := areaOf(p.Zip); area != nil {
		a.Location, a.IANATimezone = area.location, &area.timezone
	}
	a.setTime(slotID{}, inventedStart(now))
	s.addAppointmentEvent(o, "scheduled", nil, now)
}

func inventedStart(now time.Time) time.Time {
	return now.Truncate(24*time.Hour).AddDate(0, 0, 1).Add(slotHours[0] * time.Hour)
}

func (a *appointment) setTime(slot slotID, start time.Time) {
	a.slot = slot
	a.StartAt, a.EndAt = new(localTimestamp(start)), new(localTimestamp(start.Add(time.Hour)))
}
