package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// Bodies are read completely, up to the limit, whether their length is known, unknown or wrong.
func TestReadAll(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 16384, 16385, 300_000, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5 << 20} {
		body := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
		for _, limit := range []int{10, size - 1, size, size + 1, 8 << 20} {
			for _, length := range []int64{-1, 0, int64(size / 2), int64(size), int64(2*size + 1), 1 << 40} {
				resp := &http.Response{Body: io.NopCloser(strings.NewReader(body)), ContentLength: length}
				got, read, err := readAll(resp, int64(limit))
				switch {
				case size > limit && (!errors.Is(err, ErrTooLarge) || got != nil || read != nil):
					t.Errorf("%d bytes, limit %d, length %d: %d bytes, %v", size, limit, length, len(got), err)
				case size <= limit && (err != nil || string(got) != body || cap(got) != len(got)):
					t.Errorf("%d bytes, limit %d, length %d: %d bytes of %d, %v", size, limit, length, len(got), cap(got), err)
				}
				read.release()
			}
		}
	}
}

// bodyOf responds with a body.
func bodyOf(status int, body io.Reader) *Client {
	return NewClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, Request: r}, nil
	})})
}

// Only the body of a call that succeeded is reused, after Release.
func TestRelease(t *testing.T) {
	errUnread := errors.New("it is not readable")
	for _, test := range []struct {
		name     string
		status   int
		body     io.Reader
		read     func(*Response) error
		released bool
	}{
		{"success", 200, strings.NewReader("received"), accept, true},
		{"retained", 200, strings.NewReader("received"), func(r *Response) error { r.Retain(); return nil }, false},
		{"rejected", 422, strings.NewReader("received"), accept, false},
		{"not readable", 200, strings.NewReader("received"), func(*Response) error { return errUnread }, false},
		{"truncated", 200, io.MultiReader(strings.NewReader("received"), iotest.ErrReader(io.ErrUnexpectedEOF)), accept, false},
	} {
		r := bodyOf(test.status, test.body).Do(t.Context(), &Request{
			Method: "GET", URL: "https://api.example.com/", MaxBody: 1 << 20,
			Policy: Policy{Attempts: 1, ReadTimeout: time.Minute},
		}, test.read)
		body := r.Response.Body
		if string(body) != "received" {
			t.Fatalf("%s: %q", test.name, body)
		}
		r.Release()
		r.Release()
		want := "received"
		if test.released {
			want = strings.Repeat("\xFF", len(want))
		}
		if string(body) != want || (r.Response.Body == nil) != test.released {
			t.Errorf("%s: %q, %q after the release", test.name, body, r.Response.Body)
		}
	}
	new(Result).Release()
}

// lateBody reads in a goroutine that continues after Read has returned the error of a timeout.
type lateBody struct {
	goOn chan struct{}
	done chan struct{}
}

func (b *lateBody) Read(p []byte) (int, error) {
	go func() {
		<-b.goOn
		copy(p, "late")
		close(b.done)
	}()
	return 0, errors.New("the middleware gave up")
}

// A buffer that a middleware still writes to is not reused, whatever follows.
func TestLateWriteToBuffer(t *testing.T) {
	late := &lateBody{make(chan struct{}), make(chan struct{})}
	bodies := []io.Reader{late, strings.NewReader("the second attempt")}
	c := NewClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body := bodies[0]
		bodies = bodies[1:]
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, Request: r}, nil
	})})
	r := c.Do(t.Context(), &Request{
		Method: "GET", URL: "https://api.example.com/", MaxBody: 1 << 20,
		Policy: Policy{Attempts: 2, BaseWait: 1, MaxWait: 1, ReadTimeout: time.Minute},
	}, func(r *Response) error {
		close(late.goOn)
		<-late.done
		if string(r.Body) != "the second attempt" {
			t.Errorf("%q", r.Body)
		}
		return nil
	})
	if r.Err != nil || r.Attempts != 2 {
		t.Fatalf("%d attempts, %v", r.Attempts, r.Err)
	}
	r.Release()
}

// A call that follows another one reads into the same memory.
func TestBufferIsReused(t *testing.T) {
	page := bytes.Repeat([]byte("x"), 200_000)
	c := NewClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(page)), ContentLength: 200_000, Request: r}, nil
	})})
	seen := map[*byte]bool{}
	for range 100 {
		r := c.Do(t.Context(), &Request{
			Method: "GET", URL: "https://api.example.com/", MaxBody: 1 << 20,
			Policy: Policy{Attempts: 1, ReadTimeout: time.Minute},
		}, accept)
		seen[&r.Response.Body[0]] = true
		r.Release()
	}
	if len(seen) > 75 { // with the race detector, a pool drops every fourth on purpose
		t.Errorf("%d buffers for 100 calls", len(seen))
	}
}

// The memory of a large body is not kept for later calls.
func TestLargeBufferIsNotKept(t *testing.T) {
	for range 100 { // a pool may drop a buffer
		newBuffer(4 * largestBuffer).release()
		b := newBuffer(largestBuffer)
		if len(b.data) != largestBuffer {
			t.Fatalf("a buffer of %d bytes", len(b.data))
		}
		b.release()
	}
}

// overstated is a body whose Read reports bytes that it did not write.
type overstated struct{ done bool }

func (o *overstated) Read(p []byte) (int, error) {
	if o.done {
		return 0, io.EOF
	}
	o.done = true
	return len(p), nil
}

// A body of which less was written than reported has nothing of the body before it.
func TestReadAllOverstated(t *testing.T) {
	defer func(before bool) { Poison = before }(Poison)
	Poison = false
	for range 100 {
		_, read, err := readAll(&http.Response{Body: io.NopCloser(strings.NewReader("secret")), ContentLength: 6}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		read.release()
		got, read, err := readAll(&http.Response{Body: io.NopCloser(&overstated{}), ContentLength: 6}, 1<<20)
		if err != nil || bytes.Contains(got, []byte("secret")) {
			t.Fatalf("%q, %v", got, err)
		}
		read.release()
	}
}

// scribbler is a body whose Read writes to all of its buffer and reports a part.
type scribbler struct{ reports int }

func (s *scribbler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 's'
	}
	if s.reports == 0 {
		return 0, io.EOF
	}
	n := min(s.reports, len(p))
	s.reports -= n
	return n, nil
}

// Nothing of a body stays in a buffer that is released, wherever it was written.
func TestBuffersAreErased(t *testing.T) {
	defer func(before bool) { Poison = before }(Poison)
	Poison = false
	for _, reports := range []int{0, 1, 1000, 4096, 5000, 20_000, 300_000} {
		for _, length := range []int64{-1, 0, int64(reports)} {
			_, read, err := readAll(&http.Response{Body: io.NopCloser(&scribbler{reports}), ContentLength: length}, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			data := read.data
			read.release()
			if left := bytes.Count(data, []byte("s")); left > 0 {
				t.Errorf("%d bytes, length %d: %d bytes are left", reports, length, left)
			}
		}
	}
}
