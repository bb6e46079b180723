package labhealthtest

import (
	"fmt"
	"net/http"
	"strings"
)

// getRequisition returns a PDF with one page. Imported orders have no requisition, other orders
// have one after the status requisition_created.
func (s *Server) getRequisition(r *request) (any, error) {
	o, err := s.requestedOrder(r)
	if err != nil {
		return nil, err
	}
	for _, e := range o.Events {
		if strings.HasSuffix(e.Status, ".requisition_created") {
			return pdfResponse("Requisition for order " + o.ID.String()), nil
		}
	}
	return nil, reject(http.StatusNotFound, "Requisition is not available")
}

// pdfResponse returns a PDF with one line.
func pdfResponse(line string) *response {
	return &response{statusCode: http.StatusOK, body: pdf(line), contentType: "application/pdf"}
}

func pdf(line string) []byte {
	text := "BT /F1 14 Tf 72 720 Td (" + line + ") Tj ET"
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
