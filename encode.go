// The step that encodes a request: method, path, query, headers, body.

package labhealth

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// encode returns the HTTP request of r.
func (c *core) encode(r *request, cfg *callConfig) (*transport.Request, error) {
	method, path, err := c.endpoint(r)
	if err != nil {
		return nil, err
	}
	body, mediaType, err := encodeBody(r.body)
	if err != nil {
		return nil, err
	}
	if err := checkQuery(cfg.query); err != nil {
		return nil, err
	}
	target := c.base + path
	if len(cfg.query) > 0 {
		target += "?" + cfg.query.Encode()
	}
	out, isStream := r.out.(stream)
	h := cfg.header
	h["User-Agent"] = c.userAgent
	if h.Get("Accept") == "" {
		h["Accept"] = jsonType
		if isStream {
			h["Accept"] = []string{out.accepts()}
		}
	}
	if body != nil {
		h["Content-Type"] = mediaType
	}
	if cfg.idempotencyKey != "" {
		h.Set("X-Idempotency-Key", cfg.idempotencyKey)
	}
	p := cfg.policy
	q := &transport.Request{
		Operation: r.op, Method: method, URL: target, Header: h, Body: body, MaxBody: cfg.maxBody,
		Repeatable: cfg.idempotencyKey != "", Complete: complete,
		Policy: transport.Policy{
			Attempts: p.MaxAttempts, BaseWait: p.BaseWait, MaxWait: p.MaxWait, RetryAfterCap: p.MaxRetryAfter,
			ReadTimeout: p.ReadTimeout, WriteTimeout: max(p.WriteTimeout, r.minTimeout), Strict: p.Strict,
		},
	}
	if isStream {
		q.Open = func(body io.Reader) (io.Reader, []byte, error) { return out.open(body, q.MaxBody) }
	}
	return q, nil
}

// maxBody limits the body of most responses.
const maxBody = 8 << 20

// jsonType is the value of headers that many requests share. It is not modified.
var jsonType = []string{"application/json"}

// endpoint returns the method and the path with its parameters replaced.
func (c *core) endpoint(r *request) (method, path string, err error) {
	if r.target != nil {
		return r.target.method, r.target.path, nil
	}
	method, documented, _ := strings.Cut(r.op, " ")
	ids := r.ids
	if c.orgID != "" {
		ids = append([]string{c.orgID}, ids...)
	}
	path, err = expandPath(cmp.Or(c.paths[r.op], documented), pathParameters(documented), ids)
	return method, path, err
}

// wrapped is implemented by the body of a request of package management.
type wrapped interface{ unwrap() any }

// formBody is implemented by request bodies that are sent as multipart/form-data.
type formBody interface {
	form() (body []byte, mediaType string, err error)
}

// encodeBody returns the bytes of a body and the value of Content-Type.
func encodeBody(body any) (encoded []byte, mediaType []string, err error) {
	switch body := body.(type) {
	case nil:
		return nil, nil, nil
	case wrapped:
		return encodeBody(body.unwrap())
	case json.RawMessage:
		if jsonread.Valid(body) != nil {
			return nil, nil, invalid("must be valid JSON in UTF-8", "body")
		}
		return body, jsonType, nil
	case formBody:
		encoded, mediaType, err := body.form()
		if err != nil {
			return nil, nil, invalid("cannot be written as a form", "body")
		}
		return encoded, []string{mediaType}, nil
	}
	encoded, err = jsonread.MarshalPlain(body)
	if err == nil {
		return encoded, jsonType, nil
	}
	var at *jsonread.ValueError
	if errors.As(err, &at) {
		return nil, nil, invalid(at.Reason, append([]string{"body"}, at.Path...)...)
	}
	return nil, nil, invalid("cannot be written as JSON", "body")
}
