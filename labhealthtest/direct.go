package labhealthtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// WithMiddleware wraps the handler of the server. Use it to serve other paths on the same port, and
// to observe or change requests and responses. If it is given several times, the first one is the
// outermost. A nil function has no effect.
func WithMiddleware(wrap func(http.Handler) http.Handler) Option {
	return func(s *Server) {
		if wrap != nil {
			s.middleware = append(s.middleware, wrap)
		}
	}
}

// Direct returns a transport that calls the operations of the server without a connection.
// Middleware and faults do not apply to these requests, and [Server.Requests] does not contain
// them, so that a test can look at the server while a program uses it:
//
//	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
//		labhealth.WithHTTPClient(&http.Client{Transport: srv.Direct()}))
//
// The context of a request has no effect. A closed server still responds to reads and writes.
func (s *Server) Direct() http.RoundTripper { return direct{s} }

type direct struct{ server *Server }

func (d direct) RoundTrip(hr *http.Request) (*http.Response, error) {
	if hr.URL == nil {
		return nil, errors.New("labhealthtest: the request has no URL")
	}
	var body []byte
	if hr.Body != nil {
		var err error
		body, err = io.ReadAll(io.LimitReader(hr.Body, maxBody+1))
		hr.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(body) > maxBody {
			return nil, errors.New("labhealthtest: the body is too large")
		}
	}
	d.server.mu.Lock()
	resp := d.server.execute(hr, body, nil)
	d.server.mu.Unlock()
	w := &memoryResponse{header: http.Header{}}
	resp.write(w)
	return &http.Response{
		Status:        fmt.Sprint(resp.statusCode, " ", http.StatusText(resp.statusCode)),
		StatusCode:    resp.statusCode,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.header,
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       hr,
	}, nil
}

// memoryResponse is a ResponseWriter for a response that is not sent.
type memoryResponse struct {
	header http.Header
	body   bytes.Buffer
}

func (w *memoryResponse) Header() http.Header         { return w.header }
func (w *memoryResponse) WriteHeader(int)             {}
func (w *memoryResponse) Write(b []byte) (int, error) { return w.body.Write(b) }
