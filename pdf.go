// Responses that are a PDF, written to the caller's writer.

package labhealth

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/labhealth/labhealth-go/internal/transport"
)

const (
	maxPDF   = 64 << 20
	pdfMagic = "%PDF-"
	pdfEnd   = "%%EOF"
	// maxPDFTail is how many bytes of the end readers of PDF search for pdfEnd. Some files are
	// filled up with more bytes, but those are all space or zero.
	maxPDFTail = 1024
)

// callPDF sends r, whose response is a PDF, writes the PDF to w and returns the number of bytes
// written. Nothing is written to w unless the response is a PDF.
func callPDF(ctx context.Context, c *core, r request, w io.Writer, opts []CallOption) (n int64, err error) {
	out := &pdfCopy{countingWriter: countingWriter{w: w}}
	r.out, r.maxBody = out, maxPDF
	err = c.do(ctx, r, opts)
	return out.n, err
}

// pdfCopy is what a PDF is written to.
type pdfCopy struct {
	countingWriter
	limit int64     // bytes of the PDF
	body  io.Reader // of the response
}

// isNil reports whether v is nil, or an interface with a nil pointer.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.Kind() == reflect.Pointer && value.IsNil()
}

func (p *pdfCopy) accepts() string { return "application/pdf" }

func (p *pdfCopy) check() error {
	if isNil(p.w) {
		return invalid("must not be nil", "w")
	}
	return nil
}

// open reads the start of a body. If the body is not a PDF, the part that was read may contain the
// reason.
func (p *pdfCopy) open(body io.Reader, limit int64) (pdf io.Reader, rejected []byte, err error) {
	p.body, p.limit = body, limit
	if p.limit < int64(len(pdfMagic)) {
		return nil, nil, transport.ErrTooLarge
	}
	in := bufio.NewReaderSize(io.LimitReader(body, p.limit), 32<<10)
	start, err := in.Peek(len(pdfMagic))
	switch {
	case err != nil && strings.HasPrefix(pdfMagic, string(start)):
		truncated := !errors.Is(err, io.EOF) || len(start) > 0
		return nil, bytes.Clone(start), &unreadable{reason: "it ended before the PDF began", cause: err, truncated: truncated}
	case string(start) != pdfMagic:
		rejected, _ = io.ReadAll(io.LimitReader(in, transport.MaxErrorBody))
		return nil, rejected, &unreadable{reason: "it is not a PDF"}
	}
	return in, nil, nil
}

// read writes the PDF. Nothing is written unless it was opened.
func (p *pdfCopy) read(resp *transport.Response) error {
	_, err := io.Copy(&p.countingWriter, resp.Stream)
	if p.err != nil {
		return &unreadable{reason: "it could not be written", cause: p.err, failure: FailureOther}
	}
	if err == nil && p.n == p.limit {
		var more int
		if more, err = io.ReadFull(p.body, make([]byte, 1)); more > 0 {
			return transport.ErrTooLarge
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return &unreadable{reason: "it ended too early", cause: err}
	}
	if !bytes.Contains(p.tail, []byte(pdfEnd)) {
		return &unreadable{reason: "it is not a complete PDF: %%EOF is missing at its end", failure: FailureTruncated}
	}
	return nil
}

// countingWriter counts the bytes written and keeps the error of w, to distinguish it from one of
// the reader.
type countingWriter struct {
	w    io.Writer
	n    int64
	tail []byte // the last maxPDFTail bytes written, without space and zeros after them
	err  error
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	end := bytes.TrimRight(p, "\x00 \t\r\n")
	end = end[max(0, len(end)-maxPDFTail):]
	kept := c.tail[max(0, len(c.tail)+len(end)-maxPDFTail):]
	c.tail = append(append(c.tail[:0], kept...), end...)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	c.err = err
	return n, err
}
