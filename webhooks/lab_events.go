// The payloads of lab tests.

package webhooks

// Source of this file: public API reference only.

import (
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// apiObject is implemented by the payloads that embed an object of the API.
type apiObject interface {
	Payload

	// apiObject returns the object and its ID, without which it is not usable.
	apiObject() (object any, id *uuid.UUID)
}

// LabOrder is an order whose status changed: the data of labtest.order.created and .updated. Events
// come in any order and more than once, so treat one as a notification and call Orders.Get for the
// current order. An event that is an order itself, without an envelope, is one without a type: the
// public pages show some events so.
type LabOrder struct {
	labhealth.Order
}

func (o *LabOrder) apiObject() (any, *uuid.UUID) { return &o.Order, &o.ID }

// LabAppointment is an appointment that changed: the data of labtest.appointment.created and
// .updated. What is said of [LabOrder] applies to it as well. It redacts itself as
// [labhealth.Appointment] does.
type LabAppointment struct {
	labhealth.Appointment
}

func (a *LabAppointment) apiObject() (any, *uuid.UUID) { return &a.Appointment, &a.ID }

// CriticalResult reports that an order has a critical result: the data of labtest.result.critical.
// The result itself can be read with Orders.Results of a [labhealth.Client]. Printed or logged, it
// shows only its IDs.
type CriticalResult struct {
	OrderID        uuid.UUID                `json:"order_id"`       // the order
	TeamID         uuid.UUID                `json:"team_id"`        // the team
	UserID         uuid.UUID                `json:"user_id"`        // the service's ID of the user
	SampleID       string                   `json:"sample_id"`      // the lab's ID of the sample
	Status         CriticalResultStatus     `json:"status"`         // whether further results follow
	Interpretation labhealth.Interpretation `json:"interpretation"` // values other than its constants occur
	CreatedAt      time.Time                `json:"created_at"`     // when the result was created
	UpdatedAt      time.Time                `json:"updated_at"`     // when it last changed

	labhealth.RawObject `json:"-"`
}

// CriticalResultStatus says whether a [CriticalResult] is final. Values other than the constants
// occur.
type CriticalResultStatus string

// The documented states of a critical result.
const (
	CriticalResultFinal   CriticalResultStatus = "final"
	CriticalResultPartial CriticalResultStatus = "partial"
)

// MatchReview reports the review of a result that a lab sent without a matching order: the data of
// labtest.match_review.created and .updated. The event may have no user. Printed or logged, it
// shows only its IDs.
type MatchReview struct {
	ID             uuid.UUID                      `json:"id"`                        // the review
	Status         labhealth.MatchReviewStatus    `json:"status"`                    // who decides next
	DecisionCode   labhealth.MatchDecisionCode    `json:"decision_code"`             // what the service found
	SubReasonCodes []labhealth.MatchSubReasonCode `json:"sub_reason_codes,omitzero"` // further reasons; nil if missing
	// ResolutionAction is the decision of the reviewer; nil before it is made.
	ResolutionAction *labhealth.MatchReviewResolutionAction `json:"resolution_action,omitzero"`
	ResolvedUserID   *uuid.UUID                             `json:"resolved_user_id,omitzero"`  // the user that the result belongs to; nil if undecided
	ResolvedOrderID  *uuid.UUID                             `json:"resolved_order_id,omitzero"` // the order that the result belongs to; nil if undecided

	labhealth.RawObject `json:"-"`
}
