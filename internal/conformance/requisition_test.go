package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

const (
	pdfOp  = "labhealth: GET /v3/order/{order_id}/requisition/pdf: "
	pdfURL = "https://api.example.com/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b/requisition/pdf"
	pdf    = "%PDF-1.4\n1 0 obj" + pdfEnd
	pdfEnd = "\n%%EOF\n"
)

// body is the body of a response: pieces, and the error after them.
type body struct {
	pieces []string
	end    error // io.EOF if nil
	closed *bool
}

func (b *body) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		if b.end == nil {
			return 0, io.EOF
		}
		return 0, b.end
	}
	n := copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

func (b *body) Close() error {
	if b.closed != nil {
		*b.closed = true
	}
	return nil
}

// streaming is a transport that responds to each attempt with the next body.
type streaming struct {
	bodies      []io.ReadCloser
	contentType string
	sent        []sent
}

func (s *streaming) RoundTrip(req *http.Request) (*http.Response, error) {
	s.sent = append(s.sent, sent{req.Method, req.URL.String(), req.Header.Clone(), ""})
	if len(s.sent) > len(s.bodies) {
		return nil, errors.New("the script is over")
	}
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {s.contentType}},
		Request: req, Body: s.bodies[len(s.sent)-1], ContentLength: -1,
	}, nil
}

func streamed(t testing.TB, contentType string, bodies ...io.ReadCloser) (*labhealth.Client, *streaming) {
	t.Helper()
	s := &streaming{bodies: bodies, contentType: contentType}
	client, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

func TestRequisitionPDF(t *testing.T) {
	for _, contentType := range []string{"application/pdf", "application/octet-stream", "application/json", ""} {
		client, s := respondingWith(t, 200, pdf, "Content-Type", contentType)
		var b bytes.Buffer
		var resp labhealth.Response
		n, err := client.Orders.RequisitionPDF(t.Context(), orderID, &b, labhealth.WithResponse(&resp))
		equal(t, "", errorText(err))
		equal(t, int64(len(pdf)), n)
		equal(t, pdf, b.String())
		equal(t, 200, resp.StatusCode)
		equal(t, 0, len(resp.Body))
		equal(t, sent{Method: "GET", URL: pdfURL, Header: http.Header{
			"Accept": {"application/pdf"}, "User-Agent": {"labhealth-go/0.1.0"}, "X-Service-Api-Key": {testKey},
		}}, s.only(t))
	}
}

// A body that is not a PDF is never written. It is requested again only if the connection was lost
// before the start of a PDF was complete.
func TestRequisitionPDFErrors(t *testing.T) {
	lost := io.ErrUnexpectedEOF
	const (
		notPDF   = "200 OK, but the response could not be read (it is not a PDF)"
		noBegin  = "200 OK, but the response could not be read (it ended before the PDF began)"
		jsonText = `{"state":"error","error_type":"x","error":"Ada Example"}`
	)
	for _, test := range []struct {
		name        string
		contentType string
		body        body
		text        string
		attempts    int
		cause       error
		kept        string // of the body, in the error
	}{
		{"HTML", "text/html", body{pieces: []string{"<html><body>Ada Example</body></html>"}}, notPDF, 1, nil, "<html><body>Ada Example</body></html>"},
		{"HTML said to be a PDF", "application/pdf", body{pieces: []string{"<html>"}}, notPDF, 1, nil, "<html>"},
		{"an error in JSON", "application/json", body{pieces: []string{jsonText}}, notPDF, 1, nil, jsonText},
		{"other text", "application/pdf", body{pieces: []string{"%PD", "G-1.4 and so on"}}, notPDF, 1, nil, "%PDG-1.4 and so on"},
		{"space before the PDF", "application/pdf", body{pieces: []string{"\n" + pdf}}, notPDF, 1, nil, "\n" + pdf},
		{"much else", "text/plain", body{pieces: []string{strings.Repeat("x", 100<<10)}}, notPDF, 1, nil, strings.Repeat("x", 64<<10)},
		{"short text", "text/plain", body{pieces: []string{"no"}}, notPDF, 1, nil, "no"},
		{"short text, cut", "text/plain", body{pieces: []string{"no"}, end: lost}, notPDF, 1, nil, "no"},
		{"empty", "application/pdf", body{}, noBegin, 1, nil, ""},
		{"cut before the first byte", "application/pdf", body{end: lost}, noBegin, 3, lost, ""},
		{"cut after one byte", "application/pdf", body{pieces: []string{"%"}, end: lost}, noBegin, 3, lost, "%"},
		{"cut after four bytes", "application/pdf", body{pieces: []string{"%P", "DF"}, end: lost}, noBegin, 3, lost, "%PDF"},
		{"ended after four bytes", "application/pdf", body{pieces: []string{"%PDF"}}, noBegin, 3, nil, "%PDF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies []io.ReadCloser
				closed := make([]bool, 3)
				for i := range closed {
					b := test.body
					b.closed = &closed[i]
					b.pieces = append([]string{}, b.pieces...)
					bodies = append(bodies, &b)
				}
				client, s := streamed(t, test.contentType, bodies...)
				n, err := client.Orders.RequisitionPDF(t.Context(), orderID, writerFunc(func(p []byte) (int, error) {
					t.Errorf("%d bytes were written", len(p))
					return len(p), nil
				}))
				equal(t, int64(0), n)
				want := pdfOp + test.text
				if test.attempts > 1 {
					want += " (" + strconv.Itoa(test.attempts) + " attempts)"
				}
				equal(t, want, errorText(err))
				var e *labhealth.DecodeError
				if !errors.As(err, &e) {
					t.Fatalf("%T is no *DecodeError", err)
				}
				equal(t, test.kept, string(e.Body()))
				equal(t, test.attempts, e.Attempts)
				equal(t, test.attempts, len(s.sent))
				equal(t, true, test.cause == nil || errors.Is(err, test.cause))
				equal(t, labhealth.OutcomeUnknown, labhealth.OutcomeOf(err))
				for i := range s.sent {
					equal(t, true, closed[i])
				}
			})
		})
	}
}

// A PDF is requested again only if the connection was lost before the first byte was written.
func TestRequisitionPDFRetried(t *testing.T) {
	lost := io.ErrUnexpectedEOF
	synctest.Test(t, func(t *testing.T) {
		client, s := streamed(t, "application/pdf", &body{pieces: []string{"%PD"}, end: lost}, &body{pieces: []string{pdf}})
		var b bytes.Buffer
		n, err := client.Orders.RequisitionPDF(t.Context(), orderID, &b)
		equal(t, "", errorText(err))
		equal(t, int64(len(pdf)), n)
		equal(t, pdf, b.String())
		equal(t, 2, len(s.sent))
		equal(t, s.sent[0], s.sent[1])
	})
	for _, cut := range []int{5, 6, len(pdf)} {
		client, s := streamed(t, "application/pdf", &body{pieces: []string{pdf[:cut]}, end: lost}, &body{pieces: []string{pdf}})
		var b bytes.Buffer
		n, err := client.Orders.RequisitionPDF(t.Context(), orderID, &b)
		equal(t, pdfOp+"200 OK, but the response could not be read (it ended too early)", errorText(err))
		equal(t, true, errors.Is(err, lost))
		equal(t, int64(cut), n)
		equal(t, pdf[:cut], b.String())
		equal(t, 1, len(s.sent))
	}
	synctest.Test(t, func(t *testing.T) {
		client, s := scripted(t, []reply{{status: 503}, {err: io.ErrUnexpectedEOF}, {status: 200, body: pdf}}, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 3}))
		var b bytes.Buffer
		_, err := client.Orders.RequisitionPDF(t.Context(), orderID, &b)
		equal(t, "", errorText(err))
		equal(t, pdf, b.String())
		equal(t, 3, len(s.sent))
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestRequisitionPDFWriterFails(t *testing.T) {
	full := errors.New("the disk is full")
	long := "%PDF-1.4\n" + strings.Repeat("x", 100_000) + pdfEnd
	for _, test := range []struct {
		name  string
		write func(*int) writerFunc
		n     int64
		cause error
	}{
		{"at once", func(*int) writerFunc { return func([]byte) (int, error) { return 0, full } }, 0, full},
		{"halfway", func(*int) writerFunc { return func(p []byte) (int, error) { return 3, full } }, 3, full},
		{"without saying so", func(*int) writerFunc { return func(p []byte) (int, error) { return 3, nil } }, 3, io.ErrShortWrite},
		{"later", func(calls *int) writerFunc {
			return func(p []byte) (int, error) {
				if *calls++; *calls > 1 {
					return 0, full
				}
				return len(p), nil
			}
		}, 32 << 10, full},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := streamed(t, "application/pdf", io.NopCloser(strings.NewReader(long)), io.NopCloser(strings.NewReader(long)))
			n, err := client.Orders.RequisitionPDF(t.Context(), orderID, test.write(new(int)))
			equal(t, pdfOp+"200 OK, but the response could not be read (it could not be written)", errorText(err))
			equal(t, true, errors.Is(err, test.cause))
			equal(t, test.n, n)
			equal(t, 1, len(s.sent))
		})
	}
	client, s := scripted(t, nil)
	_, err := client.Orders.RequisitionPDF(t.Context(), orderID, nil)
	equal(t, pdfOp+"not sent: w must not be nil", errorText(err))
	equal(t, 0, len(s.sent))
}

func TestRequisitionPDFLimit(t *testing.T) {
	const tooLarge = "200 OK, but the response could not be read (the response is larger than the limit: raise it with WithBodyLimit)"
	long := "%PDF-1.4\n" + strings.Repeat("x", 100_000) + pdfEnd
	size := int64(len(long))
	for _, test := range []struct {
		limit int64
		end   error
		text  string
		n     int64
	}{
		{size, nil, "", size},
		{size + 1, nil, "", size},
		{size - 1, nil, tooLarge, size - 1},
		{6, nil, tooLarge, 6},
		{5, nil, tooLarge, 5},
		{4, nil, tooLarge, 0},
		{1, nil, tooLarge, 0},
		// A lost connection at the limit does not show whether the file ends there.
		{size, io.ErrUnexpectedEOF, "200 OK, but the response could not be read (it ended too early)", size},
	} {
		t.Run(fmt.Sprint(test.limit, test.end), func(t *testing.T) {
			s := &streaming{contentType: "application/pdf", bodies: []io.ReadCloser{&body{pieces: []string{long}, end: test.end}, &body{pieces: []string{long}}}}
			client := faultClient(t, testURL, s, labhealth.WithBodyLimit(test.limit))
			var b bytes.Buffer
			n, err := client.Orders.RequisitionPDF(t.Context(), orderID, &b)
			if test.text != "" {
				test.text = pdfOp + test.text
			}
			equal(t, test.text, errorText(err))
			equal(t, test.n, n)
			equal(t, long[:test.n], b.String())
			equal(t, 1, len(s.sent))
		})
	}
	// Files have a larger limit than other responses.
	client, _ := respondingWith(t, 200, "%PDF-1.4\n"+strings.Repeat("x", 9<<20)+pdfEnd)
	n, err := client.Orders.RequisitionPDF(t.Context(), orderID, io.Discard)
	equal(t, "", errorText(err))
	equal(t, int64(9<<20+len("%PDF-1.4\n"+pdfEnd)), n)
}

func TestRequisitionPDFContext(t *testing.T) {
	for _, begun := range []string{"", "%PD", pdf} {
		t.Run(begun, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				stuck := &stuckBody{Reader: strings.NewReader(begun), ctx: ctx}
				client, s := streamed(t, "application/pdf", stuck, &body{pieces: []string{pdf}})
				time.AfterFunc(time.Second, cancel)
				start := time.Now()
				var b bytes.Buffer
				n, err := client.Orders.RequisitionPDF(ctx, orderID, &b)
				equal(t, time.Second, time.Since(start))
				equal(t, true, errors.Is(err, context.Canceled))
				equal(t, int64(b.Len()), n)
				equal(t, begun == pdf, n > 0)
				equal(t, 1, len(s.sent))
			})
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	client, s := scripted(t, nil)
	n, err := client.Orders.RequisitionPDF(ended, orderID, io.Discard)
	equal(t, int64(0), n)
	equal(t, true, errors.Is(err, context.Canceled))
	equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(err))
	equal(t, 0, len(s.sent))
}

// stuckBody returns what it has and then blocks until the context ends, like a body of net/http.
type stuckBody struct {
	io.Reader
	ctx context.Context
}

func (b *stuckBody) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (*stuckBody) Close() error { return nil }

// A file of 30 MB passes from a connection to a pipe with little memory.
func TestRequisitionPDFMemory(t *testing.T) {
	const size = 30 << 20
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4<<10) // 64 KiB
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		io.WriteString(w, "%PDF-1.7\n")
		for sent := 9 + len(pdfEnd); sent < size; sent += len(chunk) {
			w.Write(chunk[:min(len(chunk), size-sent)])
		}
		io.WriteString(w, pdfEnd)
	}))
	defer server.Close()
	client, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()

	from, to := io.Pipe()
	var most atomic.Uint64
	read := make(chan int64)
	go func() {
		var total int64
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			before := total >> 22
			if total += int64(n); total>>22 != before {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), m.HeapAlloc))
			}
			if err != nil {
				read <- total
				return
			}
		}
	}()
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, err := client.Orders.RequisitionPDF(t.Context(), orderID, to)
	to.CloseWithError(err)
	equal(t, "", errorText(err))
	equal(t, int64(size), n)
	equal(t, int64(size), <-read)
	grown := int64(most.Load()) - int64(before.HeapAlloc)
	t.Logf("the heap grew by %d KiB at most", grown>>10)
	if grown > 1<<20 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
}

// A PDF whose end is missing is an error, even if its response was complete. Readers accept other
// bytes after the end, and so does the client.
func TestIncompletePDF(t *testing.T) {
	const reason = "200 OK, but the response could not be read (it is not a complete PDF: %%EOF is missing at its end)"
	large := "%PDF-1.7\n" + strings.Repeat("0123456789abcdef\n", 20_000)
	for _, test := range []struct {
		name, body string
		complete   bool
	}{
		{"bare", "%PDF-", false},
		{"first line", "%PDF-1.7\n", false},
		{"half", large[:len(large)/2], false},
		{"without its last byte", large + "startxref\n9\n%%EO", false},
		{"one of the first revision", "%PDF-1.7\n%%EOF\n" + large, false},
		{"one just too far from the end", large + "%%EOF" + strings.Repeat("x", 1024-4), false},

		{"whole", large + "startxref\n9\n%%EOF", true},
		{"line break", large + "%%EOF\r\n", true},
		{"bytes after it", large + "%%EOF" + strings.Repeat("x", 1024-5), true},
		{"filled up with zeros", large + "%%EOF\n" + strings.Repeat("\x00", 100_000), true},
		{"filled up with lines", large + "%%EOF" + strings.Repeat("\r\n", 70_000), true},
		{"two revisions", large + "%%EOF\n" + large + "%%EOF\n", true},
		{"smallest", "%PDF-%%EOF", true},
	} {
		for _, size := range []int{1 << 20, 7, 1024} {
			var pieces []string
			for rest := test.body; rest != ""; {
				n := min(size, len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			client, s := streamed(t, "application/pdf", &body{pieces: pieces})
			var b bytes.Buffer
			n, err := client.Orders.ResultsPDF(t.Context(), orderID, &b)
			equal(t, []any{len(test.body), true, 1}, []any{int(n), test.body == b.String(), len(s.sent)})
			want := ""
			if !test.complete {
				want = "labhealth: GET /v3/order/{order_id}/result/pdf: " + reason
				equal(t, labhealth.FailureTruncated, labhealth.FailureOf(err))
				equal(t, true, errors.As(err, new(*labhealth.DecodeError)))
			}
			equal(t, test.name+": "+want, test.name+": "+errorText(err))
		}
	}
}

// A 206 has a part of what a request without Range asks for.
func TestPartialContent(t *testing.T) {
	const reason = "206 Partial Content, but the response could not be read: outcome unknown (the response is only a part, which was not requested)"
	respond := func(body string) (*labhealth.Client, *script) {
		return respondingWith(t, 206, body, "Content-Range", "bytes 0-9/100")
	}
	for _, test := range []struct {
		name, body string
		call       func(*labhealth.Client) error
		after      string
	}{
		{"GET /v3/order/{order_id}", `{"id":"` + orderID.String() + `"}`, func(c *labhealth.Client) error { _, err := c.Orders.Get(t.Context(), orderID); return err }, ")"},
		{"GET /v2/user/", `{"users":[],"total":0,"offset":0}`, func(c *labhealth.Client) error {
			_, err := c.Users.List(t.Context(), labhealth.ListUsersParams{})
			return err
		}, ")"},
		{"POST /v3/order/import", placedJSON, func(c *labhealth.Client) error { _, err := c.Orders.Import(t.Context(), importBody()); return err },
			"; check whether it took effect before you repeat it)"},
		{"DELETE /v2/user/{user_id}", `{"success":true}`, func(c *labhealth.Client) error { _, err := c.Users.Delete(t.Context(), orderID); return err },
			"; check whether it took effect before you repeat it)"},
		{"GET /v3/order/{order_id}/result/pdf", pdf, func(c *labhealth.Client) error {
			n, err := c.Orders.ResultsPDF(t.Context(), orderID, writerFunc(func([]byte) (int, error) { t.Error("a part was written"); return 0, nil }))
			equal(t, int64(0), n)
			return err
		}, ")"},
		{"GET (Do)", `{}`, func(c *labhealth.Client) error { return c.Do(t.Context(), "GET", "/", nil, nil) }, ")"},
	} {
		client, s := respond(test.body)
		err := test.call(client)
		equal(t, ofOperation(test.name, "labhealth: "+test.name+": "+strings.TrimSuffix(reason, ")")+test.after), errorText(err))
		equal(t, labhealth.OutcomeUnknown, labhealth.OutcomeOf(err))
		equal(t, labhealth.FailureUnreadable, labhealth.FailureOf(err))
		s.only(t)
	}
}

// What is read of a 206 stays within the limit for bodies.
func TestPartialContentIsLimited(t *testing.T) {
	var response labhealth.Response
	client, _ := scripted(t, []reply{{status: 206, body: strings.Repeat("x", 5000)}}, labhealth.WithBodyLimit(100))
	_, err := client.Orders.Get(t.Context(), orderID, labhealth.WithResponse(&response))
	equal(t, labhealth.FailureUnreadable, labhealth.FailureOf(err))
	equal(t, 100, len(response.Body))
}
