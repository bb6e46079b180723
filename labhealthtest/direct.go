// Calls without a connection, and middleware.

package labhealthtest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
)

// WithMiddleware wraps the handler of the server. Use it to serve other paths on the same port, and
// to observe or change requests and responses. If it is given several times, the first one is the
// outermost. A nil function, and one that returns nil, has no effect. [Server.Close] waits for the
// middleware of all requests, after it has canceled their contexts: middleware must not call it.
func WithMiddleware(wrap func(http.Handler) http.Handler) Option {
	return func(s *Server) {
		if wrap != nil {
			s.middleware = append(s.middleware, wrap)
		}
	}
}

// Direct returns a transport that calls the operations of the server without a connection, with the
// same keys as other requests. Middleware and faults do not apply to these requests, and neither
// [Server.Requests] nor [Server.Watch] has them, so that a test can look at the server while a
// program uses it. What they change is reported and delivered as usual:
//
//	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
//		labhealth.WithHTTPClient(&http.Client{Transport: srv.Direct()}))
//
// The transport ignores the host of the base URL. A closed server still processes the requests, but
// delivers and reports nothing.
func (s *Server) Direct() http.RoundTripper { return direct{s.organisationServer()} }

// direct is the transport of a server that listens.
type direct struct{ server *Server }

// RoundTrip processes a request at once: a context that is done later has no effect.
func (d direct) RoundTrip(hr *http.Request) (*http.Response, error) {
	if hr.Body != nil {
		defer hr.Body.Close()
	}
	if hr.URL == nil {
		return nil, errors.New("labhealthtest: the request has no URL")
	}
	if err := hr.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	var err error
	if hr.Body != nil {
		body, err = io.ReadAll(http.MaxBytesReader(nil, hr.Body, maxBody))
		if tooLarge := (*http.MaxBytesError)(nil); err != nil && !errors.As(err, &tooLarge) {
			return nil, err
		}
	}
	d.server.mu.Lock()
	resp := d.server.execute(hr, body, err)
	d.server.mu.Unlock()
	w := httptest.NewRecorder()
	w.Header().Set(proofHeader, d.server.DebugToken)
	resp.write(w)
	if hr.Method == http.MethodHead {
		w.Body.Reset()
	}
	result := w.Result()
	result.Request = hr
	return result, nil
}
