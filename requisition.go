package labhealth

import (
	"context"
	"io"

	"github.com/google/uuid"
)

const opRequisitionPDF = "GET /v3/order/{order_id}/requisition/pdf"

// RequisitionPDF streams the requisition of an order to w and returns the number of bytes written:
// GET /v3/order/{order_id}/requisition/pdf, which replaces [Order.RequisitionFormURL]. Source of
// the path: public API reference only.
//
// Nothing is written to w unless the response is a PDF. The request is retried only while nothing
// is written; if it fails later, w holds n bytes of an incomplete file. A file of more than 64 MiB
// (see [WithCallBodyLimit]) is truncated and is an error. errors.Is matches an error of w.
// [Response.Body] does not hold the file. Imported orders have no requisition. Source of the
// latter: public API reference only.
func (s *OrdersService) RequisitionPDF(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	return callPDF(ctx, s.core, request{op: opRequisitionPDF, ids: []string{orderID.String()}}, w, opts)
}
