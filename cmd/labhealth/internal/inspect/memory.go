package inspect

import (
	"errors"
	"io"
	"sync/atomic"
)

var errBusy = errors.New("too many deliveries are in flight")

// reservation reads a body, and counts what was received of it in the memory that all bodies use.
type reservation struct {
	from io.Reader
	used *atomic.Int64
	held int64
}

func (r *reservation) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.held += int64(n)
	if r.used.Add(int64(n)) > maxMemory {
		return n, errBusy
	}
	return n, err
}

func (r *reservation) free() { r.used.Add(-r.held) }
