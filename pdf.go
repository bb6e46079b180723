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
	if isNil(w) {
		r.misuse = invalid("must not be nil", "w")
	}
	out := &countingWriter{w: w}
	r.maxBody, r.accept = maxPDF, "application/pdf"
	r.stream = func(body io.Reader, limit int64) ([]byte, error) {
		*out = countingWriter{w: w} // nothing was written by an earlier attempt
		return copyPDF(out, body, limit)
	}
	err = c.do(ctx, r, opts)
	return out.n, err
}

// isNil reports whether v is nil, or an interface with a nil pointer.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.Kind() == reflect.Pointer && value.IsNil()
}

// copyPDF writes a response body of at most limit bytes to out. If the body is not a PDF, copyPDF
// returns the part that it read, which may contain the reason.
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
		return nil, &unreadable{reason: "it could not be written", cause: out.err, failure: FailureOther}
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
	if !bytes.Contains(out.tail, []byte(pdfEnd)) {
		return nil, &unreadable{reason: "it is not a complete PDF: %%EOF is missing at its end", failure: FailureTruncated}
	}
	return nil, nil
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
