// The buffers that responses are read into, and when they are reused.

package transport

import (
	"io"
	"math"
	"net/http"
	"sync"
)

// buffer holds the body of a response. Buffers are reused, so that reading a response allocates
// nothing that does not outlive its call. A buffer whose body may still be referred to must not be
// released: it is left to the garbage collector.
type buffer struct {
	data []byte // its length is its capacity
	used int    // how much of it a Read had
	pool *sync.Pool
}

// buffers are the free buffers, which have one of a few sizes. Larger ones are not kept.
var buffers [5]sync.Pool

const (
	smallestBuffer = 4 << 10
	largestBuffer  = 1 << 20 // smallestBuffer, four times larger in each pool
)

// Poison overwrites each buffer with 0xFF when it is released. Tests set it, to find what refers to
// the body of a response that another call may read over.
var Poison bool

// newBuffer returns a buffer of at least size bytes.
func newBuffer(size int64) *buffer {
	n := int64(smallestBuffer)
	for i := range buffers {
		if size <= n {
			pool := &buffers[i]
			if b, ok := pool.Get().(*buffer); ok {
				return b
			}
			return &buffer{data: make([]byte, n), pool: pool}
		}
		n *= 4
	}
	return &buffer{data: make([]byte, size)}
}

// release makes b available to other calls. b may be nil. All that a Read had is erased: it may use
// all of its buffer, and that of a custom http.RoundTripper may report that it read more than it
// wrote.
func (b *buffer) release() {
	if b == nil {
		return
	}
	clear(b.data[:b.used])
	for i := 0; Poison && i < len(b.data); i++ {
		b.data[i] = 0xFF
	}
	if b.pool != nil {
		b.pool.Put(b)
	}
}

// readAll reads the body to its end, so that the connection can be reused. It allocates at most six
// times the limit, or one of the smallest buffers, regardless of the length of the body.
//
// The buffer may be released when nothing refers to the body. After an error it is nil: the body
// may be that of a custom http.RoundTripper, whose Read may have left a goroutine that writes.
func readAll(resp *http.Response, limit int64) ([]byte, *buffer, error) {
	limit = min(limit, math.MaxInt-1)
	size := int64(smallestBuffer)
	if n := resp.ContentLength; n >= 0 {
		size = min(n, largestBuffer-1) + 1 // one more, so that the end is found without growing
	}
	n, end := 0, int(min(size, limit+1))
	b := newBuffer(int64(end))
	for {
		b.used = end
		got, err := resp.Body.Read(b.data[n:end:end])
		n += got
		switch {
		case int64(n) > limit:
			return nil, nil, ErrTooLarge
		case err == io.EOF:
			return b.data[:n:n], b, nil
		case err != nil:
			return b.data[:n:n], nil, err
		case n == end:
			if end == len(b.data) {
				next := newBuffer(min(2*int64(end), limit+1))
				copy(next.data, b.data)
				b.release()
				b = next
			}
			end = int(min(int64(len(b.data)), limit+1))
		}
	}
}
