// Transactions, their combined results, and redraws.

package labhealthtest

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// transactionSummary is the response of getTransaction.
type transactionSummary struct {
	ID     uuid.UUID      `json:"id"`
	TeamID uuid.UUID      `json:"team_id"`
	Status string         `json:"status"`
	Orders []orderSummary `json:"orders"`
}

type orderSummary struct {
	ID                  uuid.UUID      `json:"id"`
	Origin              string         `json:"origin"`
	ParentID            *uuid.UUID     `json:"parent_id"`
	LastStatus          string         `json:"last_status"`
	LastStatusCreatedAt microTimestamp `json:"last_status_created_at"`
	UpdatedAt           microTimestamp `json:"updated_at"`
	CreatedAt           microTimestamp `json:"created_at"`
}

func (s *Server) getTransaction(_ *request, orders []*order) (any, error) {
	t := orders[0].Transaction
	summary := transactionSummary{t.ID, s.TeamID, t.Status, nil}
	for _, o := range t.Orders {
		summary.Orders = append(summary.Orders, orderSummary{
			o.ID, o.Origin, o.ParentID, o.LowLevelStatus, o.LowLevelStatusCreatedAt, o.UpdatedAt, o.CreatedAt,
		})
	}
	return summary, nil
}

// requestedTransaction returns the orders of the transaction in the path, oldest
// first.
func (s *Server) requestedTransaction(r *request) ([]*order, error) {
	id := r.pathUUID("transaction_id")
	var orders []*order
	for _, o := range s.orders {
		if o.Transaction.ID == id {
			orders = append(orders, o)
		}
	}
	if orders == nil {
		return nil, reject(http.StatusNotFound, "This order transaction doesn't exist")
	}
	return orders, nil
}

// requestedTransactionResults returns the orders of the transaction in the path that have results.
func (s *Server) requestedTransactionResults(r *request) ([]*order, error) {
	orders, err := s.requestedTransaction(r)
	if err != nil {
		return nil, err
	}
	orders = slices.DeleteFunc(orders, func(o *order) bool { return !o.hasResults() })
	if len(orders) == 0 {
		return nil, errNoResults
	}
	return orders, nil
}

// getTransactionResults combines the results of all orders. For a marker that was measured more
// than once the latest result counts. Results that SetResults has set are not combined.
func (s *Server) getTransactionResults(_ *request, orders []*order) (any, error) {
	var all orderResults
	for _, o := range orders {
		latest := o.inventResults()
		for _, previous := range all.Results {
			if !slices.ContainsFunc(latest.Results, func(v result) bool { return v.Slug == previous.Slug }) {
				latest.Results = append(latest.Results, previous)
			}
		}
		for _, previous := range all.Missing {
			if !slices.ContainsFunc(latest.Missing, func(v missingResult) bool { return v.Slug == previous.Slug }) {
				latest.Missing = append(latest.Missing, previous)
			}
		}
		latest.Missing = slices.DeleteFunc(latest.Missing, func(m missingResult) bool {
			return slices.ContainsFunc(latest.Results, func(v result) bool { return v.Slug == m.Slug })
		})
		maps.Copy(latest.Samples, all.Samples)
		all = latest
	}
	if last := orders[len(orders)-1]; last.results != nil {
		return last.setResults(), nil
	}
	return all, nil
}

func (s *Server) getTransactionResultsPDF(_ *request, orders []*order) (any, error) {
	return pdfResponse("Results of order transaction %s", orders[0].Transaction.ID)
}

// Redraw adds an order that repeats another one, as the service does when a sample cannot be
// analyzed. The new order belongs to the same transaction, has the origin redraw and no sample ID,
// and starts with the status ordered. Redraw sends the event labtest.order.created. It does not
// change the status of the other order. It returns an error if the order does not exist, is
// canceled, has no patient yet, or was redrawn before.
func (s *Server) Redraw(orderID uuid.UUID) (uuid.UUID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.simulateDelayed(s.now())
	parent := s.orderByID[orderID]
	switch {
	case parent == nil:
		return uuid.Nil, errNoOrder
	case parent.Status == "cancelled" || parent.PatientDetails == nil:
		return uuid.Nil, errors.New("labhealthtest: the order is canceled or not registered")
	case slices.ContainsFunc(parent.Transaction.Orders, func(o transactionOrder) bool { return o.ParentID != nil && *o.ParentID == orderID }):
		return uuid.Nil, errors.New("labhealthtest: the order was redrawn before")
	}
	o := s.addOrderTo(parent.Transaction, s.userByID[parent.UserID], parent.LabTest, parent.Details.Type, &orderRequest{
		BillingType: parent.BillingType, Physician: parent.Physician, PatientDetails: parent.PatientDetails,
		PatientAddress: parent.PatientAddress, Priority: parent.Priority, ICDCodes: parent.ICDCodes,
		Passthrough: parent.Passthrough, ClinicalNotes: parent.ClinicalNotes,
	}, &parent.ID, s.now())
	s.emitOrder(o)
	return o.ID, nil
}

// update updates the entry of an order in its transaction, and the status of the transaction.
func (t *transaction) update(o *order, now time.Time) {
	i := slices.IndexFunc(t.Orders, func(e transactionOrder) bool { return e.ID == o.ID })
	entry := &t.Orders[i]
	entry.topLevel = o.Status
	entry.LowLevelStatus = o.lowLevelStatus()
	entry.LowLevelStatusCreatedAt = microTimestamp(now)
	entry.UpdatedAt = microTimestamp(now)
	t.updateStatus()
}

// updateStatus updates the status of the transaction. The last order without a redraw decides,
// unless it is canceled: a transaction is canceled only if all of its orders are.
func (t *transaction) updateStatus() {
	t.Status = "active"
	isCanceled := func(e transactionOrder) bool { return e.topLevel == "cancelled" }
	if !slices.ContainsFunc(t.Orders, func(e transactionOrder) bool { return !isCanceled(e) }) {
		t.Status = "cancelled"
		return
	}
	live := slices.DeleteFunc(slices.Clone(t.Orders), isCanceled)
	if live[len(live)-1].topLevel == "completed" {
		t.Status = "completed"
	}
}
