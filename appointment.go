// Appointment, the times that can be booked, and the addresses of both.

package labhealth

// Source of this file: public API reference only.

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// AppointmentType is the kind of an [Appointment]: where the sample is collected.
//
// Values other than the constants occur in responses.
type AppointmentType string

// Values of [AppointmentType].
const (
	// AppointmentAtHome is the visit of a phlebotomist to the patient, for orders with the
	// collection method at_home_phlebotomy.
	AppointmentAtHome AppointmentType = "phlebotomy"
	// AppointmentWalkIn is the visit of the patient to a patient service center (PSC) of a lab, for
	// orders with the collection method walk_in_test.
	AppointmentWalkIn AppointmentType = "patient_service_center"
)

// AppointmentStatus is the state of an [Appointment].
//
// Values other than the constants occur.
type AppointmentStatus string

// Values of [AppointmentStatus].
const (
	AppointmentStatusConfirmed  AppointmentStatus = "confirmed"
	AppointmentStatusPending    AppointmentStatus = "pending"
	AppointmentStatusReserved   AppointmentStatus = "reserved"
	AppointmentStatusInProgress AppointmentStatus = "in_progress"
	AppointmentStatusCompleted  AppointmentStatus = "completed"
	AppointmentStatusCancelled  AppointmentStatus = "cancelled"
)

// AppointmentEventStatus is the status of an [AppointmentEvent]. A confirmed appointment has the
// event status scheduled.
//
// Values other than the constants occur.
type AppointmentEventStatus string

// Values of [AppointmentEventStatus].
const (
	AppointmentEventPending    AppointmentEventStatus = "pending"
	AppointmentEventReserved   AppointmentEventStatus = "reserved"
	AppointmentEventScheduled  AppointmentEventStatus = "scheduled"
	AppointmentEventCompleted  AppointmentEventStatus = "completed"
	AppointmentEventCancelled  AppointmentEventStatus = "cancelled"
	AppointmentEventInProgress AppointmentEventStatus = "in_progress"
)

// AppointmentProvider is the company that collects the sample.
//
// Values other than the constants occur.
type AppointmentProvider string

// Values of [AppointmentProvider].
const (
	AppointmentProviderGetlabs      AppointmentProvider = "getlabs"
	AppointmentProviderPhlebfinders AppointmentProvider = "phlebfinders"
	AppointmentProviderQuest        AppointmentProvider = "quest"
	AppointmentProviderSonoraQuest  AppointmentProvider = "sonora_quest"
)

// Appointment is an appointment to collect the sample of an order.
//
// Printed or logged, it shows only its ID and status. Its JSON encoding is not redacted.
type Appointment struct {
	ID      uuid.UUID `json:"id"`       // appointment ID
	UserID  uuid.UUID `json:"user_id"`  // the service's ID of the user
	OrderID uuid.UUID `json:"order_id"` // ID of the order
	// OrderTransactionID is the ID of the order's transaction, nil if unknown.
	OrderTransactionID *uuid.UUID `json:"order_transaction_id,omitzero"`
	// Address is where the sample is collected: the patient's address for an appointment at home,
	// that of the patient service center otherwise.
	Address  USAddress `json:"address"`
	Location LngLat    `json:"location"` // position of Address
	// StartAt is nil until the time is fixed. The service sends it without an offset: it is in UTC.
	StartAt *time.Time `json:"start_at"`
	// EndAt is nil until the time is fixed. The service sends it without an offset: it is in UTC.
	EndAt *time.Time `json:"end_at"`
	// IANATimezone is the time zone of Address, such as America/New_York, nil if unknown.
	IANATimezone *string             `json:"iana_timezone,omitzero"`
	Type         AppointmentType     `json:"type"`                 // at home or walk-in
	Provider     AppointmentProvider `json:"provider"`             // who collects the sample
	Status       AppointmentStatus   `json:"status"`               // current state
	ProviderID   string              `json:"provider_id"`          // the provider's ID of the appointment
	ExternalID   *string             `json:"external_id,omitzero"` // a further ID, nil if there is none
	// CanReschedule reports whether [AppointmentsService.Reschedule] is possible.
	CanReschedule bool `json:"can_reschedule"`
	// AppointmentNotes are the notes of the booking, nil if there are none.
	AppointmentNotes *string `json:"appointment_notes,omitzero"`
	// EventStatus is the status of the latest event.
	EventStatus AppointmentEventStatus `json:"event_status"`
	// EventData is the data of the latest event: an object without a fixed shape, nil if there is
	// none.
	EventData json.RawMessage `json:"event_data,omitzero"`
	// Events is the appointment's history.
	Events []AppointmentEvent `json:"events"`

	RawObject `json:"-"`
}

// LogValue returns the ID and the status of the appointment.
func (v Appointment) LogValue() slog.Value {
	status := "?" // the service may send any string, also a name
	switch v.Status {
	case "", AppointmentStatusConfirmed, AppointmentStatusPending, AppointmentStatusReserved,
		AppointmentStatusInProgress, AppointmentStatusCompleted, AppointmentStatusCancelled:
		status = string(v.Status)
	}
	return slog.StringValue("labhealth.Appointment{" + v.ID.String() + " " + status + ", redacted}")
}

func (a *Appointment) verify() error { return requireID(a.ID, "appointment") }

// AppointmentEvent is an entry in the history of an [Appointment].
type AppointmentEvent struct {
	CreatedAt time.Time              `json:"created_at"` // when it happened
	Status    AppointmentEventStatus `json:"status"`     // status after the event
	// Data is an object without a fixed shape, nil if there is none. It can hold patient data.
	Data json.RawMessage `json:"data,omitzero"`

	RawObject `json:"-"`
}

// USAddress is an address in the United States, in requests and in responses.
type USAddress struct {
	FirstLine  string  `json:"first_line"`           // street and number
	SecondLine *string `json:"second_line,omitzero"` // nil if there is none
	City       string  `json:"city"`                 // city
	State      string  `json:"state"`                // state, usually two letters
	ZipCode    string  `json:"zip_code"`             // ZIP code, such as 94105 or 94105-1234
	// Unit is nil if there is none.
	//
	// Deprecated: there is no replacement.
	Unit *string `json:"unit,omitzero"`
	// AccessNotes describes how to enter the building. It has at most 1000 characters, and is nil
	// if absent.
	AccessNotes *string `json:"access_notes,omitzero"`

	RawObject `json:"-"`
}

// LngLat is a position in degrees.
type LngLat struct {
	Lng float64 `json:"lng"` // longitude, -180 to 180
	Lat float64 `json:"lat"` // latitude, -90 to 90

	RawObject `json:"-"`
}

// AppointmentAvailability holds the times at which an appointment can be booked: the response of
// [AppointmentsService.AtHomeAvailability] and [AppointmentsService.WalkInAvailability].
type AppointmentAvailability struct {
	Slots []DaySlots `json:"slots"` // by day, and for walk-in appointments by site
	// Timezone is the IANA time zone of the dates, nil if they have several or it is unknown. Then
	// it may be in the location of each day.
	Timezone *string `json:"timezone,omitzero"`

	RawObject `json:"-"`
}

func (a *AppointmentAvailability) verify() error { return requireList(a.Slots) }

// DaySlots holds the times of one day, at one site.
type DaySlots struct {
	// Location is the site of a walk-in appointment, nil for an appointment at home.
	Location *AppointmentLocation `json:"location,omitzero"`
	Date     Date                 `json:"date"`  // the day, in the time zone of the location
	Slots    []TimeSlot           `json:"slots"` // may be empty

	RawObject `json:"-"`
}

// AppointmentLocation is the site of a walk-in appointment: a patient service center.
type AppointmentLocation struct {
	Location LngLat    `json:"location"`          // position
	Distance *int64    `json:"distance,omitzero"` // nil if unknown; no unit is documented; probably miles
	Address  USAddress `json:"address"`           // address
	Code     string    `json:"code"`              // site code, for [WalkInAvailabilityParams]
	Name     string    `json:"name"`              // human-readable name
	// IANATimezone is the time zone of the site, nil if unknown.
	IANATimezone *string `json:"iana_timezone,omitzero"`

	RawObject `json:"-"`
}

// TimeSlot is a time at which an appointment can be booked.
type TimeSlot struct {
	// BookingKey identifies the slot for [BookAppointmentBody] and [RescheduleAppointmentBody]. If
	// it is nil, the slot cannot be booked.
	BookingKey *string   `json:"booking_key,omitzero"`
	Start      time.Time `json:"start"` // start of the slot
	End        time.Time `json:"end"`   // end of the slot
	// ExpiresAt is when the booking key becomes invalid, nil if unknown.
	ExpiresAt *time.Time `json:"expires_at,omitzero"`
	// Price has the digits of the response. No currency is documented.
	Price      json.Number `json:"price"`
	IsPriority bool        `json:"is_priority"` // whether the slot is a priority appointment
	// NumAppointmentsAvailable is how many appointments can still be booked in the slot.
	NumAppointmentsAvailable int64 `json:"num_appointments_available"`

	RawObject `json:"-"`
}

// AppointmentCancellationReason is a reason to cancel an appointment.
type AppointmentCancellationReason struct {
	ID           uuid.UUID `json:"id"`            // for [CancelAppointmentBody]
	Name         string    `json:"name"`          // human-readable reason
	IsRefundable bool      `json:"is_refundable"` // whether the appointment is refunded

	RawObject `json:"-"`
}
