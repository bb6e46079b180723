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

// RequisitionPDF writes the requisition of an order to w as it comes, and returns how many bytes it wrote: GET
// /v3/order/{order_id}/requisition/pdf, which replaces [Order.RequisitionFormURL]. Source of
// the path: public API reference only.
//
// Nothing is written unless a PDF comes. It is asked for again only as long as nothing was written; after an error, n bytes of an
// incomplete file are in w. A file of more than 64 MiB (see [WithCallBodyLimit]) is cut there and is an error. An error of w can
// be found with errors.Is. Imported orders have no requisition. Source of the
// latter: public API reference only. [Response.Body] does not hold the file.
func (s *OrdersService) RequisitionPDF(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...CallOption) (n int64, err error) {
	if w == nil {
		return 0, ofOperation(opRequisitionPDF, refused("must not be nil", "w"))
	}
	r := request{op: opRequisitionPDF, params: []string{orderID.String()}, maxBody: maxPDF, accept: "application/pdf"}
	r.stream = func(a *transport.Answer, body io.Reader, limit int64) error {
		if limit < int64(len(pdfMagic)) {
			return transport.ErrTooLarge
		}
		from := bufio.NewReaderSize(io.LimitReader(body, limit), 32<<10)
		start, err := from.Peek(len(pdfMagic))
		switch {
		case err != nil && strings.HasPrefix(pdfMagic, string(start)):
			a.Body, a.Truncated = bytes.Clone(start), !errors.Is(err, io.EOF) || len(start) > 0
			return &unreadable{reason: "it ended before the PDF began", cause: err}
		case string(start) != pdfMagic:
			a.Body, _ = io.ReadAll(io.LimitReader(from, transport.MaxErrorBody)) // it may say why there is none
			return &unreadable{reason: "it is not a PDF"}
		}
		out := &countingWriter{w: w}
		_, err = io.Copy(out, from)
		n = out.n
		if out.err != nil {
			return &unreadable{reason: "it could not be written", cause: out.err}
		}
		if err == nil && n == limit {
			var more int
			if more, err = io.ReadFull(body, make([]byte, 1)); more > 0 {
				return transport.ErrTooLarge
			} else if errors.Is(err, io.EOF) {
				err = nil
			}
		}
		if err != nil {
			return &unreadable{reason: "it ended too early", cause: err}
		}
		return nil
	}
	err = s.core.do(ctx, r, opts)
	return n, err
}

// countingWriter tells a writer's error from a reader's.
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
