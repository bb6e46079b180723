// Receives, logs, authenticates and dispatches requests.

package labhealthtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// maxBody is the longest request body, in bytes. A longer one gets a 413 response.
	maxBody = 16 << 20
	// maxRequests is the number of requests that the log keeps at least.
	maxRequests = 10_000
)

const (
	apiKeyHeader        = "X-Service-Api-Key"
	managementKeyHeader = "X-Management-Key"
	// orgKeyHeader is the deprecated name of managementKeyHeader.
	orgKeyHeader = "X-Service-Org-Key"
	// proofHeader has Server.DebugToken, in every response.
	proofHeader = "X-Labhealthtest-Proof"
)

// secretHeaders are not logged.
var secretHeaders = []string{apiKeyHeader, managementKeyHeader, orgKeyHeader, "Authorization"}

// Request is a request that the server received.
type Request struct {
	// Number counts the requests of the server from 1, as [Server.RequestCount] does.
	Number int
	// Method is the HTTP method.
	Method string
	// Path is the path as sent, with its escapes and the raw query.
	Path string
	// Header has no headers that carry keys.
	Header http.Header
	// Body is the received body.
	Body []byte
	// StatusCode is the status code of the response, or 0 if a fault replaced the processing of
	// the request (see [Server.FailBefore]).
	StatusCode int
	// Operation is the method and the path of the operation, such as
	// "PATCH /v3/order/{order_id}", or "" if there is none.
	Operation string
	// ReceivedAt is when the request was received, by the server's clock.
	ReceivedAt time.Time
	// Took is the time from ReceivedAt until the response was ready, without a fault.
	Took time.Duration
	// Faulted reports whether a fault replaced the response (see [Server.FailAfter]).
	Faulted bool
	// Fault is the name of the fault, if it has one (see [FaultPlan]).
	Fault string
	// Response is the body of the response that the request had without the fault. It is nil if the
	// request was not processed, and without [WithResponseLog].
	Response []byte
}

// Requests returns the requests received so far, oldest first, including rejected ones. The server
// keeps at least the latest 10,000; [Server.RequestCount] counts all. Those of other teams
// ([Server.Team]) and of the management API are included. Callers must not modify headers and
// bodies.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// WithResponseLog makes [Server.Requests] and [Server.Watch] contain response bodies: Requests has
// those of the latest n requests. By default both contain none. Responses of the management API
// have keys and secrets.
func WithResponseLog(n int) Option {
	return func(s *Server) { s.responseLog = max(n, 0) }
}

// RequestCount returns the number of requests received so far, including rejected ones.
func (s *Server) RequestCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requestCount
}

// newHandler returns the handler of the HTTP server.
func (s *Server) newHandler() http.Handler {
	var handler http.Handler = http.HandlerFunc(s.serve)
	for _, wrap := range slices.Backward(s.middleware) {
		if wrapped := wrap(handler); wrapped != nil {
			handler = wrapped
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			panic(http.ErrAbortHandler) // closes the connection without a response
		}
		s.running.Add(1)
		s.mu.Unlock()
		defer s.running.Done()
		handler.ServeHTTP(w, hr)
	})
}

// serve responds to a request for the service.
func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	w.Header().Set(proofHeader, s.DebugToken)
	received := s.now()
	w.Header().Set("Date", received.UTC().Format(http.TimeFormat)) // by the clock of WithClock
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxBody))
	if f := s.nextFault(hr); f != nil {
		s.fail(f, w, hr, body, err, received)
		return
	}
	s.process(hr, body, err, Request{ReceivedAt: received}).write(w)
}

// process executes a request and completes and logs its entry. readErr is the error of reading its
// body.
func (s *Server) process(hr *http.Request, body []byte, readErr error, entry Request) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := s.execute(hr, body, readErr)
	entry.StatusCode, entry.Response = resp.statusCode, resp.body
	s.log(hr, body, entry)
	return resp
}

// execute executes a request.
func (s *Server) execute(hr *http.Request, body []byte, readErr error) response {
	query, _ := url.ParseQuery(hr.URL.RawQuery) // Like the service, use the valid part.
	r := &request{
		method:    hr.Method,
		path:      hr.URL.EscapedPath(),
		query:     query,
		header:    hr.Header,
		body:      body,
		validator: validator{now: s.now()},
		values:    map[string][]string{},
	}
	resp := s.dispatch(r, readErr)
	resp.trace = s.newTrace()
	return resp
}

// log completes the entry of a request and records it for [Server.Requests].
func (s *Server) log(hr *http.Request, body []byte, entry Request) {
	header := hr.Header.Clone()
	for _, name := range secretHeaders {
		header.Del(name)
	}
	s.requestCount++
	entry.Number = s.requestCount
	if len(s.requests) >= 2*maxRequests {
		s.requests = slices.Delete(s.requests, 0, maxRequests)
	}
	entry.Method, entry.Path, entry.Header, entry.Body = hr.Method, hr.RequestURI, header, body
	entry.Operation = operationOf(hr.Method, hr.URL.EscapedPath())
	entry.Took = s.now().Sub(entry.ReceivedAt)
	if s.responseLog == 0 {
		entry.Response = nil
	} else if old := len(s.requests) - s.responseLog; old >= 0 {
		s.requests[old].Response = nil
	}
	s.requests = append(s.requests, entry)
	s.report(Activity{Request: &entry})
}

// dispatch authenticates a request and executes its operation.
func (s *Server) dispatch(r *request, readErr error) response {
	target, err := s.authenticate(r)
	if err != nil {
		return respond(nil, err)
	}
	if target != s {
		target.mu.Lock()
		defer target.mu.Unlock()
	}
	if err := bodyError(readErr); err != nil {
		return respond(nil, err)
	}
	o, err := route(r)
	if err == nil && r.caller != nil {
		err = s.checkOrg(r, o)
	}
	if err != nil {
		return respond(nil, err)
	}
	if o.isOfOrders() {
		target.simulateDelayed(r.now)
	}
	if target.importRejected != nil && o.pattern == importPath {
		return *target.importRejected
	}
	if err := r.validateRest(); err != nil {
		return respond(nil, err)
	}
	return respond(o.handle(target, r))
}

// authenticate returns the server that processes a request. For the team API this is the server of
// the team that the key or token belongs to. For the management API it sets r.caller.
func (s *Server) authenticate(r *request) (*Server, error) {
	if strings.HasPrefix(r.path, managementPrefix) {
		return s, s.authenticateManagement(r)
	}
	var team *Server
	token, isBearer := strings.CutPrefix(r.header.Get("Authorization"), "Bearer ")
	switch key := r.header.Get(apiKeyHeader); {
	case key != "":
		team = s.teamOfAPIKey(key)
	case isBearer:
		team = s.teamOfToken(token)
	default:
		return nil, reject(http.StatusUnauthorized, "Missing token")
	}
	if team == nil {
		return nil, reject(http.StatusUnauthorized, "Invalid token")
	}
	return team, nil
}

// bodyError returns the response to a request whose body could not be read.
func bodyError(readErr error) error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(readErr, &tooLarge) {
		return reject(http.StatusRequestEntityTooLarge, "Request body too large")
	}
	if readErr != nil {
		return errInvalidBody
	}
	return nil
}

// newTrace returns a traceresponse header (W3C Trace Context). Its second part identifies the
// request.
func (s *Server) newTrace() string {
	var b [24]byte
	s.traces.Read(b[:])
	return fmt.Sprintf("00-%x-%x-01", b[:16], b[16:])
}
