package labhealth

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/transport"
)

const opRequisitionPDF = "GET /v3/order/{order_id}/requisition/pdf"

const (
	maxPDF   = 64 << 20
	pdfMagic = "%PDF-"
)

// RequisitionPDF streams the requisition of an order to w and returns the number of bytes written:
// GET /v3/order/{order_id}/requisition/pdf, which replaces [Order.RequisitionFormURL]. Source of the
// path: public API reference only.
//
// Nothing is written unless the response is a PDF, and it is retried only while nothing is written;
// after an error, w holds n bytes of an incomplete file. A file of more than 64 MiB (see
// [WithCallBodyLimit]) is truncated there and is an error. errors.Is finds an error of w.
// [Response.Body] does not hold the file. Imported orders have no requisition. Source of the latter:
// public API reference only.
func (s *OrdersService) RequisitionPDF(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	if w == nil {
		return 0, withOp(opRequisitionPDF, invalid("must not be nil", "w"))
	}
	out := &countingWriter{w: w}
	r := request{op: opRequisitionPDF, ids: []string{orderID.String()}, maxBody: maxPDF, accept: "application/pdf"}
	r.stream = func(body io.Reader, limit int64) ([]byte, error) {
		*out = countingWriter{w: w} // nothing was written by an earlier attempt
		return copyPDF(out, body, limit)
	}
	err = s.core.do(ctx, r, opts)
	return out.n, err
}

// copyPDF writes a response body of at most limit bytes to out. If it is no PDF, copyPDF returns what
// it read of it, which may say why.
func copyPDF(out *countingWriter, body io.Reader, limit int64) (rejected []byte, err error) {
	if limit < int64(len(pdfMagic)) {
		return nil, transport.ErrTooLarge
	}
	in := bufio.NewReaderSize(io.LimitReader(body, limit), 32<<10)
	start, err := in.Peek(len(pdfMagic))
	switch {
	case err != nil && strings.HasPrefix(pdfMagic, string(start)):
		truncated := !errors.Is(err, io.EOF) || len(start) > 0
		return bytes.Clone(start), &unreadable{reason: "it ended before the PDF began", cause: err, truncated: truncated}
	case string(start) != pdfMagic:
		rejected, _ = io.ReadAll(io.LimitReader(in, transport.MaxErrorBody))
		return rejected, &unreadable{reason: "it is not a PDF"}
	}
	_, err = io.Copy(out, in)
	if out.err != nil {
		return nil, &unreadable{reason: "it could not be written", cause: out.err}
	}
	if err == nil && out.n == limit {
		var more int
		if more, err = io.ReadFull(body, make([]byte, 1)); more > 0 {
			return nil, transport.ErrTooLarge
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return nil, &unreadable{reason: "it ended too early", cause: err}
	}
	return nil, nil
}

// countingWriter counts the bytes written and keeps the error of w, to distinguish it from one of
// the reader.
type countingWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	c.err = err
	return n, err
}
