package labhealthtest

import (
	"time"

	"github.com/google/uuid"
)

// OrderState is what a list of orders shows of an order, without patient data.
type OrderState struct {
	// ID is the ID of the order.
	ID uuid.UUID
	// UserID is the ID of the user.
	UserID uuid.UUID
	// ClientUserID is the application's own ID of the user.
	ClientUserID string
	// Method is the collection method, such as "walk_in_test".
	Method string
	// LabTest is the name of the lab test.
	LabTest string
	// SampleID is empty if there is none.
	SampleID string
	// Status is the current status, and StatusDetail its detail, empty if there is none.
	Status, StatusDetail string
	// Since is when the order reached Status.
	Since time.Time
	// CreatedAt is when the order was created.
	CreatedAt time.Time
}

// OrderStates returns the states of all orders, oldest first. Other than lists of the API, it does
// not encode the orders, so that a program can show thousands of them.
func (s *Server) OrderStates() []OrderState {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.simulateDelayed(s.now())
	states := make([]OrderState, len(s.orders))
	for i, o := range s.orders {
		states[i] = s.orderState(o)
	}
	return states
}

// OrderState returns the state of an order, and whether the order exists.
func (s *Server) OrderState(orderID uuid.UUID) (state OrderState, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.simulateDelayed(s.now())
	o := s.orderByID[orderID]
	if o == nil {
		return OrderState{}, false
	}
	return s.orderState(o), true
}

func (s *Server) orderState(o *order) OrderState {
	state := OrderState{
		ID: o.ID, UserID: o.UserID, Method: o.Details.Type, Status: o.LastEvent.Status,
		Since: time.Time(o.LastEvent.CreatedAt), CreatedAt: time.Time(o.CreatedAt),
	}
	if o.LabTest != nil {
		state.LabTest = o.LabTest.Name
	}
	if o.SampleID != nil {
		state.SampleID = *o.SampleID
	}
	if o.LastEvent.StatusDetail != nil {
		state.StatusDetail = *o.LastEvent.StatusDetail
	}
	if u := s.user(o.UserID); u != nil {
		state.ClientUserID = u.ClientUserID
	}
	return state
}
