// The PDF documents of an order: requisition, report, labels, notice and instructions.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"
)

const (
	opRequisitionPDF            = "GET /v3/order/{order_id}/requisition/pdf"
	opOrderResultsPDF           = "GET /v3/order/{order_id}/result/pdf"
	opOrderLabelsPDF            = "GET /v3/order/{order_id}/labels/pdf"
	opOrderABNPDF               = "GET /v3/order/{order_id}/abn_pdf"
	opCollectionInstructionsPDF = "GET /v3/order/{order_id}/collection_instruction_pdf"
)

// RequisitionPDF streams the requisition of an order to w and returns the number of bytes written:
// GET /v3/order/{order_id}/requisition/pdf, which replaces [Order.RequisitionFormURL]. Source of
// the path: public API reference only.
//
// Nothing is written to w unless the response is a PDF. The request is retried only while nothing
// is written; if it fails later, w holds n bytes of an incomplete file. A file of more than 64 MiB
// (see [WithBodyLimit]) is truncated and is an error, and so is one without %%EOF at its end.
// errors.Is matches an error of w. [Response.Body] does not hold the file. Imported orders have no
// requisition. Source of the latter: public API reference only.
func (s *OrdersService) RequisitionPDF(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	return callPDF(ctx, coreOf(s), request{op: opRequisitionPDF, ids: []string{orderID.String()}}, w, opts)
}

// ResultsPDF streams the lab report of an order to w and returns the number of bytes written: GET
// /v3/order/{order_id}/result/pdf. See [Order.HasResults] and [ErrNoResults] for when there is one,
// and [OrdersService.RequisitionPDF] for w, large files and errors.
func (s *OrdersService) ResultsPDF(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	return callPDF(ctx, coreOf(s), request{op: opOrderResultsPDF, ids: []string{orderID.String()}}, w, opts)
}

// LabelsPDFParams describes the labels of [OrdersService.LabelsPDF].
type LabelsPDFParams struct {
	// CollectionDate is when the sample is collected. It is required. The service may print it as
	// written, with its offset.
	CollectionDate time.Time
	NumberOfLabels int // the service's default is 3
}

func (p LabelsPDFParams) validate(v *validator) {
	if p.CollectionDate.IsZero() {
		v.add("collection_date", "missing", "is required: a time")
	}
	v.time("collection_date", p.CollectionDate)
}

func (p LabelsPDFParams) query() queryValues {
	q := newQuery()
	q.setTime("collection_date", p.CollectionDate)
	q.setInt("number_of_labels", p.NumberOfLabels)
	return q
}

// LabelsPDF streams labels for the sample tubes of an order to w and returns the number of bytes
// written: GET /v3/order/{order_id}/labels/pdf. See [OrdersService.RequisitionPDF] for w, large
// files and errors.
func (s *OrdersService) LabelsPDF(ctx context.Context, orderID uuid.UUID, params LabelsPDFParams, w io.Writer, opts ...CallOption) (n int64, err error) {
	return callPDF(ctx, coreOf(s), request{op: opOrderLabelsPDF, ids: []string{orderID.String()}, query: params}, w, opts)
}

// ABNPDF streams the Advanced Beneficiary Notice of an order to w and returns the number of bytes
// written: GET /v3/order/{order_id}/abn_pdf. [Order.HasABN] reports whether there is one. See
// [OrdersService.RequisitionPDF] for w, large files and errors.
func (s *OrdersService) ABNPDF(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	return callPDF(ctx, coreOf(s), request{op: opOrderABNPDF, ids: []string{orderID.String()}}, w, opts)
}

// CollectionInstructionsPDF streams the instructions for collecting the sample of an order to w and
// returns the number of bytes written: GET /v3/order/{order_id}/collection_instruction_pdf.
// [LabTest.HasCollectionInstructions] reports whether there are any. See
// [OrdersService.RequisitionPDF] for w, large files and errors.
func (s *OrdersService) CollectionInstructionsPDF(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	return callPDF(ctx, coreOf(s), request{op: opCollectionInstructionsPDF, ids: []string{orderID.String()}}, w, opts)
}
