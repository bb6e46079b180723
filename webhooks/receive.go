// Handler: verifies a request and reads its body.

package webhooks

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// deriveContext returns r with the context of [WithDeliveryContext].
func (h *Handler) deriveContext(r *http.Request) *http.Request {
	for _, derive := range h.contexts {
		func() {
			defer func() { recover() }()
			if ctx := derive(r.Context(), r); ctx != nil {
				r = r.WithContext(ctx)
			}
		}()
	}
	return r
}

// receive verifies a request, reads its body and processes the delivery.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, d *delivery) DeliveryResult {
	if r.Method != http.MethodPost {
		return DeliveryResult{StatusCode: http.StatusMethodNotAllowed, Reason: ReasonMethod}
	}
	if err := h.verifier.checkHeaders(r.Header, d.receivedAt); err != nil {
		return unverified(err)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), d.start.Add(h.timeout))
	defer cancel()
	defer context.AfterFunc(h.aborted, cancel)()
	d.memory = &reservation{inFlight: h.inFlight, large: r.ContentLength > maxSmallBody}
	processed := false
	defer func() {
		if !processed { // also if the body of a middleware panics
			d.memory.releaseAll()
		}
	}()
	err := h.readBody(ctx, w, r, d)
	if err == nil {
		d.id, err = h.verifier.verify(d.body, r.Header, d.receivedAt)
	}
	if err != nil {
		return h.notReceived(err)
	}
	processed = true
	return h.process(context.WithValue(ctx, newest.DeliveryIDKey{}, d.id), *d)
}

var errOverloaded = errors.New("webhooks: too much is in flight")

// notReceived returns the result for a body that was not read or not verified.
func (h *Handler) notReceived(err error) DeliveryResult {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return DeliveryResult{StatusCode: http.StatusRequestEntityTooLarge, Reason: ReasonTooLarge}
	case errors.Is(err, ErrSignature):
		return unverified(err)
	case errors.Is(err, errOverloaded) && h.aborted.Err() != nil:
		return unavailable(ReasonShutdown)
	case errors.Is(err, errOverloaded):
		return unavailable(ReasonOverloaded)
	}
	return DeliveryResult{StatusCode: http.StatusBadRequest, Reason: ReasonIncomplete}
}

// unverified returns the result for an error of the verifier.
func unverified(err error) DeliveryResult {
	reason := ReasonSignature
	switch {
	case errors.Is(err, ErrHeaders):
		reason = ReasonHeaders
	case errors.Is(err, ErrTimestamp):
		reason = ReasonTimestamp
	}
	return DeliveryResult{StatusCode: http.StatusUnauthorized, Reason: reason}
}

func unavailable(reason Reason) DeliveryResult {
	return DeliveryResult{StatusCode: http.StatusServiceUnavailable, Reason: reason}
}

// initialBuffer is the memory that a delivery takes before any of its body is received. The sender
// chooses Content-Length, so only small values are trusted; each further buffer is twice the size
// of the received data.
const initialBuffer = 16 << 10

// readBody reads the body into d until the deadline, if the connection supports one. It reserves
// the memory for it.
func (h *Handler) readBody(ctx context.Context, w http.ResponseWriter, r *http.Request, d *delivery) error {
	if r.ContentLength > h.maxBody {
		return &http.MaxBytesError{Limit: h.maxBody}
	}
	connection := http.NewResponseController(w)
	connection.SetReadDeadline(d.start.Add(h.timeout))
	source := http.MaxBytesReader(w, r.Body, h.maxBody)
	size := min(initialBuffer, h.maxBody)
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	if d.memory.acquire(ctx, size) != nil {
		return errOverloaded
	}
	body := make([]byte, 0, size)
	var next [1]byte // shows whether the body continues, before a larger buffer is made for it
	for {
		free := body[len(body):cap(body)]
		if len(free) == 0 {
			free = next[:]
		}
		n, err := source.Read(free)
		if n > 0 && len(body) == cap(body) {
			size := min(2*max(int64(cap(body)), initialBuffer/2), h.maxBody)
			if r.ContentLength > int64(len(body)) {
				size = min(size, r.ContentLength)
			}
			if d.memory.acquire(ctx, size) != nil {
				return errOverloaded
			}
			previous := int64(cap(body))
			body = append(append(make([]byte, 0, size), body...), next[0])
			d.memory.release(previous)
		} else {
			body = body[:len(body)+n]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	d.memory.complete()
	connection.SetReadDeadline(time.Time{}) // the server would treat it as a closed connection
	d.body = body
	return nil
}

// writeStatus writes a response that consists of its status.
func writeStatus(w http.ResponseWriter, status int) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	body := http.StatusText(status) + "\n"
	header := w.Header()
	if status == http.StatusMethodNotAllowed {
		header.Set("Allow", http.MethodPost)
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	io.WriteString(w, body) // an error means that the sender has disconnected
}

// report calls the observers.
func (h *Handler) report(ctx context.Context, d delivery, result DeliveryResult) {
	result.DeliveryID, result.ReceivedAt, result.Duration = d.id, d.receivedAt, time.Since(d.start)
	h.warnOfRequest(result)
	for _, observe := range h.observers {
		func() {
			defer func() { recover() }()
			observe(context.WithoutCancel(ctx), result)
		}()
	}
}
