package inspect

import (
	"errors"
	"io"
	"sync/atomic"
)

// budget limits the memory of bodies.
type budget struct{ used atomic.Int64 }

// reservation is the part of a budget that one body has.
type reservation struct {
	*budget
	held int64
}

var errBusy = errors.New("too many deliveries are in flight")

func (r *reservation) grow(n int64) error {
	if r.used.Add(n) > maxMemory {
		r.used.Add(-n)
		return errBusy
	}
	r.held += n
	return nil
}

func (r *reservation) free() { r.used.Add(-r.held) }

// read reads a body. Memory is reserved for what was received, not for what was announced.
func (r *reservation) read(from io.Reader, length int64) ([]byte, error) {
	size := int64(8 << 10)
	if 0 <= length && length < 256<<10 {
		size = length + 1
	}
	if err := r.grow(size); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size)
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return body, err
		}
		if len(body) < cap(body) {
			continue
		}
		if err := r.grow(int64(cap(body))); err != nil {
			return nil, err
		}
		body = append(make([]byte, 0, 2*cap(body)), body...)
	}
}
