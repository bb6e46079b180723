// OrderTransactionsService: orders with their redraws.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"
)

// OrderTransactionsService provides access to order transactions: an order with its redraws and
// recreations. See [Client.OrderTransactions]. Source of its operations: public API reference only.
type OrderTransactionsService struct{ core *core }

const (
	opGetOrderTransaction        = "GET /v3/order_transaction/{transaction_id}"
	opOrderTransactionResults    = "GET /v3/order_transaction/{transaction_id}/result"
	opOrderTransactionResultsPDF = "GET /v3/order_transaction/{transaction_id}/result/pdf"
)

// OrderTransactionDetails is the response of [OrderTransactionsService.Get]. Orders contain the
// shorter [OrderTransaction].
type OrderTransactionDetails struct {
	ID     uuid.UUID              `json:"id"`              // transaction ID
	TeamID uuid.UUID              `json:"team_id"`         // team ID
	Status OrderTransactionStatus `json:"status"`          // active, completed or cancelled
	Orders []OrderSummary         `json:"orders,omitzero"` // all orders; nil if not reported

	RawObject `json:"-"`
}

func (t *OrderTransactionDetails) verify() error { return requireID(t.ID, "order transaction") }

// OrderSummary is one order of [OrderTransactionDetails].
type OrderSummary struct {
	ID                  uuid.UUID           `json:"id"`                     // order ID
	Origin              *OrderOrigin        `json:"origin,omitzero"`        // nil if unknown
	ParentID            *uuid.UUID          `json:"parent_id,omitzero"`     // the order that this one follows, nil for the first
	LastStatus          OrderLowLevelStatus `json:"last_status"`            // low-level part of the current status
	LastStatusCreatedAt time.Time           `json:"last_status_created_at"` // when the order reached LastStatus
	UpdatedAt           time.Time           `json:"updated_at"`             // when the order was last changed
	CreatedAt           time.Time           `json:"created_at"`             // when the order was created

	RawObject `json:"-"`
}

// Get returns a transaction and a summary of its orders: GET
// /v3/order_transaction/{transaction_id}. [Order.OrderTransaction] has the ID.
func (s *OrderTransactionsService) Get(ctx context.Context, transactionID uuid.UUID, opts ...CallOption) (*OrderTransactionDetails, error) {
	return call(ctx, coreOf(s), new(OrderTransactionDetails), request{op: opGetOrderTransaction, ids: []string{transactionID.String()}}, opts)
}

// Results returns the results of all orders of a transaction: GET
// /v3/order_transaction/{transaction_id}/result.
func (s *OrderTransactionsService) Results(ctx context.Context, transactionID uuid.UUID, opts ...CallOption) (*OrderResults, error) {
	return call(ctx, coreOf(s), new(OrderResults), request{op: opOrderTransactionResults, ids: []string{transactionID.String()}}, opts)
}

// ResultsPDF streams the lab report of a transaction to w and returns the number of bytes written:
// GET /v3/order_transaction/{transaction_id}/result/pdf. See [OrdersService.RequisitionPDF] for w,
// large files and errors.
func (s *OrderTransactionsService) ResultsPDF(ctx context.Context, transactionID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	r := request{op: opOrderTransactionResultsPDF, ids: []string{transactionID.String()}}
	return callPDF(ctx, coreOf(s), r, w, opts)
}
