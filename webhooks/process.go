// Handler: one call for each delivery ID, its deadline and its result.

package webhooks

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/labhealth/labhealth-go/internal/warn"
)

// call is a delivery being processed. Deliveries with the same ID share it.
type call struct {
	done   chan struct{}  // closed when there is a result
	result DeliveryResult // valid when done is closed

	// Guarded by the mutex of the handler.
	eventType EventType
	succeeded bool // all is done except storing the ID
}

// process processes a delivery, or waits for the call that processes the same ID.
func (h *Handler) process(ctx context.Context, d delivery) DeliveryResult {
	h.mu.Lock()
	c := h.calls[d.id]
	duplicate := c != nil
	if !duplicate {
		c = &call{done: make(chan struct{})}
		if d.id != "" {
			h.calls[d.id] = c
		}
		h.running++
		go h.run(ctx, c, d)
	}
	h.mu.Unlock()
	if duplicate {
		d.memory.releaseAll() // the call has its own copy of the body
	}

	select {
	case <-c.done:
	case <-ctx.Done():
		result := h.timedOut()
		result.Duplicate = duplicate
		if duplicate { // the call may have started later and have more time
			return result
		}
		h.finish(c, d.id, result)
	}
	result := c.result
	result.Duplicate = result.Duplicate || duplicate
	return result
}

// timedOut returns the result of a call whose context ended.
func (h *Handler) timedOut() DeliveryResult {
	if h.aborted.Err() != nil {
		return unavailable(ReasonShutdown)
	}
	return unavailable(ReasonDeadline)
}

// finish sets the result of a call, unless it has one, and reports whether it did. A call whose
// deadline passes while its ID is being stored has succeeded.
func (h *Handler) finish(c *call, id string, result DeliveryResult) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-c.done:
		return false
	default:
	}
	if c.succeeded && result.StatusCode != http.StatusNoContent {
		result.StatusCode, result.Reason = http.StatusNoContent, ReasonNotMarked
	}
	result.Type = c.eventType
	c.result = result
	if h.calls[id] == c {
		delete(h.calls, id)
	}
	close(c.done)
	return true
}

// run is the goroutine of a call.
func (h *Handler) run(ctx context.Context, c *call, d delivery) {
	defer h.leave()
	defer d.memory.releaseAll()
	result := unavailable(ReasonPanicked) // if handle does not return: a panic or runtime.Goexit
	defer func() {
		if v := recover(); v != nil {
			result.Panic = warn.Stack(v)
		}
		if h.finish(c, d.id, result) || result.StatusCode != http.StatusNoContent && result.Reason != ReasonPanicked {
			return
		}
		result.StatusCode, result.Type, result.Late = 0, c.result.Type, true
		h.report(ctx, d, result)
	}()
	result = h.handle(ctx, c, d)
}

// handle passes a delivery to the application, unless its ID is stored, and stores the ID.
func (h *Handler) handle(ctx context.Context, c *call, d delivery) DeliveryResult {
	if d.id != "" {
		seen, err := h.deduplicator.Seen(ctx, d.id)
		if err != nil {
			h.warnOfError(ReasonDeduplicator, err)
			return unavailable(ReasonDeduplicator)
		}
		if seen {
			return DeliveryResult{StatusCode: http.StatusNoContent, Reason: ReasonDuplicate, Duplicate: true}
		}
	}
	reason, err := h.dispatch(ctx, c, d)
	switch {
	case reason == ReasonUnreadable:
		h.warnOfError(reason, err)
		return DeliveryResult{StatusCode: http.StatusBadRequest, Reason: reason}
	case reason == ReasonPermanent:
		h.warnOfError(reason, err)
		return unavailable(reason)
	case err != nil && ctx.Err() != nil:
		return h.timedOut()
	case err != nil:
		h.warnOfError(ReasonFailed, err)
		return unavailable(ReasonFailed)
	}
	if d.id == "" {
		return DeliveryResult{StatusCode: http.StatusNoContent, Reason: reason}
	}
	if err := h.storeID(ctx, c, d.id); err != nil {
		h.warnOfError(ReasonNotMarked, err)
		reason = ReasonNotMarked
	}
	return DeliveryResult{StatusCode: http.StatusNoContent, Reason: reason}
}

// storeID stores the ID of a successful call. It has its own timeout, because the IDs of late calls
// are stored too.
func (h *Handler) storeID(ctx context.Context, c *call, id string) error {
	h.mu.Lock()
	c.succeeded = true
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)
	defer cancel()
	return h.deduplicator.MarkSeen(ctx, id)
}

// dispatch calls the application, the store or the dead-letter function. The reason assumes that
// the error is nil, except for [ReasonUnreadable] and [ReasonPermanent].
func (h *Handler) dispatch(ctx context.Context, c *call, d delivery) (Reason, error) {
	if h.store != nil {
		return ReasonStored, h.store(ctx, RawDelivery{d.id, d.body, d.receivedAt})
	}
	event, err := parse(d.body)
	failure := ReasonUnreadable
	if err == nil {
		event.ReceivedAt = d.receivedAt
		h.mu.Lock()
		c.eventType = event.Type
		h.mu.Unlock()
		if err = h.apply(ctx, event); !errors.Is(err, ErrPermanent) {
			return ReasonApplied, err
		}
		failure = ReasonPermanent
	}
	if h.deadLetter == nil {
		return failure, err
	}
	// The application may keep the event, which shares the body.
	return ReasonDeadLettered, h.deadLetter(ctx, bytes.Clone(d.body))
}
