// The state of an order, for programs that show it.

package labhealthtest

import (
	"encoding/json"
	"slices"
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
	// Next are the statuses that [Server.NextStatuses] returns.
	Next []string
	// Reached is the number of different statuses that the order has had.
	Reached int
	// Markers is the number of markers of the lab test.
	Markers int
	// RedrawOf is the order that this one repeats, zero if there is none.
	RedrawOf uuid.UUID
	// Results counts the results, nil if there are none.
	Results *ResultCounts
}

// ResultCounts counts the results of an order.
type ResultCounts struct {
	// Total is the number of results, of which Abnormal are outside of the normal range but not
	// critical, and Critical are critical.
	Total, Abnormal, Critical int
	// Missing is the number of markers that could not be measured.
	Missing int
	// Interpretation is that of all results, such as "abnormal", empty if there is none.
	Interpretation string
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
		state.LabTest, state.Markers = o.LabTest.Name, len(o.LabTest.Markers)
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
	var seen []string
	for _, e := range o.Events {
		if !slices.Contains(seen, e.Status) {
			seen = append(seen, e.Status)
		}
	}
	state.Next, state.Reached, state.Results = o.nextStatuses(), len(seen), o.countResults()
	for _, e := range o.Transaction.Orders {
		if e.ID == o.ID && e.ParentID != nil {
			state.RedrawOf = *e.ParentID
		}
	}
	return state
}

// countResults counts the results; it returns nil if there are none, or if those that SetResults
// has set cannot be read.
func (o *order) countResults() *ResultCounts {
	if !o.hasResults() {
		return nil
	}
	c := &ResultCounts{}
	if o.results == nil {
		all := o.inventResults()
		for _, r := range all.Results {
			c.add(r.Interpretation, r.IsAboveMaxRange || r.IsBelowMinRange)
		}
		c.Missing, c.Interpretation = len(all.Missing), o.interpretation()
		return c
	}
	var all struct {
		Metadata struct {
			Interpretation string `json:"interpretation"`
		} `json:"metadata"`
		Results []struct {
			Interpretation string `json:"interpretation"`
			Above          bool   `json:"is_above_max_range"`
			Below          bool   `json:"is_below_min_range"`
		} `json:"results"`
		Missing []json.RawMessage `json:"missing_results"`
	}
	if json.Unmarshal(o.results, &all) != nil {
		return nil
	}
	for _, r := range all.Results {
		c.add(r.Interpretation, r.Above || r.Below)
	}
	c.Missing, c.Interpretation = len(all.Missing), all.Metadata.Interpretation
	return c
}

func (c *ResultCounts) add(interpretation string, isOutside bool) {
	c.Total++
	switch {
	case interpretation == "critical":
		c.Critical++
	case interpretation == "abnormal" || isOutside:
		c.Abnormal++
	}
}
