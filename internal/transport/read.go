// Reading a response, and having it decoded after the attempts.

package transport

import (
	"cmp"
	"errors"
	"io"
	"net/http"
)

// receive reads a 2xx body to its end, or the start of one that is streamed.
func (c *call) receive(resp *http.Response, r *Response) (err error) {
	if resp.ProtoMajor == 2 && c.request.isWrite() {
		defer c.proof.closeAtEnd(resp)()
	}
	switch q := c.request; {
	case r.StatusCode == http.StatusPartialContent:
		r.Body, _ = io.ReadAll(io.LimitReader(resp.Body, min(MaxErrorBody, q.MaxBody)))
		return ErrPartial
	case q.Open != nil:
		if r.Stream, r.Body, err = q.Open(resp.Body); r.Stream != nil {
			r.open = resp.Body
		}
	default:
		var read *buffer
		if r.Body, read, err = readAll(resp, q.MaxBody); errors.Is(err, ErrTooLarge) {
			return err
		} else if err != nil {
			r.truncated = true
			return newFailure(ErrTruncated.Error(), cmp.Or(c.proof.ctx.Err(), err))
		}
		if q.Complete != nil {
			err = q.Complete(r)
		}
		if err == nil {
			r.buffer = read
		}
	}
	r.truncated = errors.Is(err, ErrTruncated)
	return err
}

// decode has the response that ended the loop decoded, which ends its attempt.
func (c *call) decode(decode func(*Response) error) {
	r := c.result.Response
	err := r.decode(decode)
	if err != nil {
		r.Retain()
	}
	r.truncated = errors.Is(err, ErrTruncated)
	v := c.judgeRead(r, err)
	v.retryable = false // nothing follows the loop
	c.end(&c.ctx, v, true)
}

func (r *Response) decode(decode func(*Response) error) error {
	if r.open != nil {
		defer r.open.Close()
	}
	return decode(r)
}
