// The PDF documents of an order.

package labhealthtest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// getRequisition returns a PDF with one page. Imported orders have no requisition, other orders
// have one after the status requisition_created.
func (s *Server) getRequisition(_ *request, o *order) (any, error) {
	for _, e := range o.Events {
		if strings.HasSuffix(e.Status, ".requisition_created") {
			return pdfResponse("Requisition for order %s", o.ID)
		}
	}
	return nil, reject(http.StatusNotFound, "Requisition is not available")
}

func (s *Server) getResultsPDF(_ *request, o *order) (any, error) {
	return pdfResponse("Results of order %s", o.ID)
}

// getLabels returns one page for all labels. Canceled orders have no labels.
func (s *Server) getLabels(r *request, o *order) (any, error) {
	if o.Status == "cancelled" {
		return nil, reject(http.StatusNotFound, "Labels are not available")
	}
	at, _, _ := r.queryTime("collection_date")
	return pdfResponse("%d labels for order %s, collected %s", r.queryInt("number_of_labels"), o.ID, at.Format("2006-01-02 15:04"))
}

func (s *Server) getABN(_ *request, o *order) (any, error) {
	if !o.HasABN {
		return nil, reject(http.StatusNotFound, "ABN is not available")
	}
	return pdfResponse("Advanced Beneficiary Notice for order %s", o.ID)
}

// SetABN sets whether an order has an Advanced Beneficiary Notice. It sends no event.
func (s *Server) SetABN(orderID uuid.UUID, hasABN bool) error {
	return s.editOrder(orderID, func(o *order) error {
		o.HasABN = hasABN
		o.UpdatedAt = timestamp(s.now())
		return nil
	})
}

func (s *Server) getCollectionInstructions(_ *request, o *order) (any, error) {
	if o.LabTest.HasCollectionInstructions == nil || !*o.LabTest.HasCollectionInstructions {
		return nil, reject(http.StatusNotFound, "Collection instructions are not available")
	}
	return pdfResponse("Collection instructions for order %s", o.ID)
}

func pdfResponse(format string, args ...any) (any, error) {
	return &response{statusCode: http.StatusOK, body: pdf(fmt.Sprintf(format, args...)), contentType: "application/pdf"}, nil
}

// pdf returns a PDF with one line of text, which must not contain parentheses.
func pdf(line string) []byte {
	text := fmt.Sprintf("BT /F1 14 Tf 72 720 Td (%s) Tj ET", line)
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, object := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table, len(objects)+1, start)
	return []byte(b.String())
}
