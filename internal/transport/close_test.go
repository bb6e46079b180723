package transport

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
)

// closedBody is a body that records its Close.
type closedBody struct {
	io.Reader
	closed bool
}

func (b *closedBody) Close() error {
	b.closed = true
	return nil
}

// The body of a response is closed at the end of the attempt, even if the call has replaced it in
// the response meanwhile. What closes it runs at the same time as the call.
func TestCloseAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		body := &closedBody{Reader: http.NoBody}
		resp := &http.Response{Body: body}
		newProof(ctx, cancel).closeAtEnd(resp)
		resp.Body = http.NoBody
		cancel()
		synctest.Wait()
		if !body.closed {
			t.Error("the body was not closed")
		}
	})
}
