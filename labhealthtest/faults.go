// Injected faults.

package labhealthtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is a handler that replaces the response to a request. body is the body of the response
// that the request would have had, or nil if the request was not processed. Tests can implement
// their own faults. A fault runs in the goroutine of the request and must not use w after it
// returns.
//
// No fault refuses connections. To test that, close the server and the client's idle connections: a
// request on an idle connection has an unknown outcome. HTTP/2 errors are not available either,
// because the server does not support HTTP/2.
type Fault func(w http.ResponseWriter, r *http.Request, body []byte)

// FaultPlan is a fault of future requests, for [Server.AddFault].
type FaultPlan struct {
	// Name is for [Request.Fault].
	Name string
	// Operation is one of [Operations], or "" for all requests.
	Operation string
	// Times is the number of requests, or negative for all until the fault is removed.
	Times int
	// Before makes the fault replace the processing of the request, and not only its response.
	Before bool
	// Fault is required.
	Fault Fault
}

// plannedFault is a plan and the number of requests that remain.
type plannedFault struct {
	FaultPlan
	method, pattern string // of the operation
}

// FailAfter makes the server process the next requests for an operation and then respond with a
// fault. Unless the fault is a conclusive response, the client cannot know whether the request was
// processed. operation is the method and the path of an operation, such as "POST /v3/order/import"
// or "PATCH /v3/order/{order_id}", or "" for all operations. times is the number of requests; if it
// is negative, all requests fail until [Server.ClearFaults]. Faults are used in the order in which
// they were added. FailAfter returns an error if the server does not have the operation.
func (s *Server) FailAfter(operation string, times int, fault Fault) error {
	_, err := s.AddFault(FaultPlan{Operation: operation, Times: times, Fault: fault})
	return err
}

// FailBefore is like [Server.FailAfter], but the server does not process the requests. Their status
// code in [Server.Requests] is 0.
func (s *Server) FailBefore(operation string, times int, fault Fault) error {
	_, err := s.AddFault(FaultPlan{Operation: operation, Times: times, Fault: fault, Before: true})
	return err
}

// AddFault is like [Server.FailAfter], or [Server.FailBefore] if p.Before is set, for a fault that
// is removed before it was used up: remove removes it, and no other. Requests that have met it are
// not affected. Further calls of remove do nothing.
func (s *Server) AddFault(p FaultPlan) (remove func(), err error) {
	f := &plannedFault{FaultPlan: p}
	f.method, f.pattern, _ = strings.Cut(p.Operation, " ")
	names := Operations()
	if p.Operation != "" && !slices.Contains(names, p.Operation) {
		return nil, fmt.Errorf("labhealthtest: no such operation: %q: want one of %q", p.Operation, names)
	}
	if p.Fault == nil {
		return nil, errors.New("labhealthtest: no fault is given")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Times != 0 {
		s.faults = append(s.faults, f)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		removeFunc(&s.faults, func(other *plannedFault) bool { return other == f })
	}, nil
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// nextFault returns the first fault for a request and counts it.
func (s *Server) nextFault(hr *http.Request) *plannedFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.pattern != "" {
			if _, ok := match(f.pattern, hr.URL.EscapedPath()); !ok || f.method != hr.Method {
				continue
			}
		}
		if f.Times > 0 {
			f.Times--
		}
		if f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f
	}
	return nil
}

// fail responds to a request with a fault. readErr is the error of reading its body.
func (s *Server) fail(f *plannedFault, w http.ResponseWriter, hr *http.Request, body []byte, readErr error, received time.Time) {
	entry := Request{ReceivedAt: received, Faulted: true, Fault: f.Name}
	if f.Before {
		s.mu.Lock()
		s.log(hr, body, entry)
		s.mu.Unlock()
		f.Fault(w, hr, nil)
		return
	}
	resp := s.process(hr, body, readErr, entry)
	w.Header().Set("Traceresponse", resp.trace)
	f.Fault(w, hr.WithContext(context.WithValue(hr.Context(), responseKey{}, resp)), resp.body)
}

// FaultResponse responds with a status code, a body and headers, which are names and values in
// turn. The default content type is application/json. Examples:
//
//	FaultResponse(503, "", "Retry-After", "2")
//	FaultResponse(200, "<html>…", "Content-Type", "text/html")      // the page of a proxy
//	FaultResponse(200, `{"order":{},"status":"","message":""}`)     // no order ID
//	FaultResponse(307, "", "Location", "https://elsewhere.example") // a redirect
func FaultResponse(statusCode int, body string, header ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		w.WriteHeader(statusCode)
		io.WriteString(w, body)
	}
}

// FaultClosed closes the connection without a response.
func FaultClosed(w http.ResponseWriter, _ *http.Request, _ []byte) { hijack(w, "", false) }

// FaultReset resets the connection without a response.
func FaultReset(w http.ResponseWriter, _ *http.Request, _ []byte) { hijack(w, "", true) }

// FaultGarbage sends bytes that are not HTTP.
func FaultGarbage(w http.ResponseWriter, _ *http.Request, _ []byte) {
	hijack(w, "SSH-2.0-example\r\n", false)
}

// FaultHalfHeader closes the connection in the middle of the header.
func FaultHalfHeader(w http.ResponseWriter, _ *http.Request, _ []byte) {
	hijack(w, "HTTP/1.1 200 OK\r\nContent-Ty", false)
}

// FaultSilence does not respond until the client closes the connection.
func FaultSilence(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }

// responseKey is the context key of the response that a fault replaces.
type responseKey struct{}

// FaultDelay sends the response that the request would have had after a delay, unless the client
// closes the connection before. If the request was not processed, it closes the connection after
// the delay. The delay does not depend on the server's clock.
func FaultDelay(delay time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ []byte) {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
			return
		case <-timer.C:
		}
		if resp, ok := r.Context().Value(responseKey{}).(response); ok {
			resp.write(w)
			return
		}
		hijack(w, "", false)
	}
}

// FaultHalfBody sends half of the body and closes the connection.
func FaultHalfBody(w http.ResponseWriter, _ *http.Request, body []byte) {
	writeHalf(w, body)
	panic(http.ErrAbortHandler)
}

// FaultSlowBody sends half of the body, and then nothing until the client closes the connection.
func FaultSlowBody(w http.ResponseWriter, r *http.Request, body []byte) {
	writeHalf(w, body)
	<-r.Context().Done()
}

// FaultTooLarge sends 64 MiB of spaces before the body.
func FaultTooLarge(w http.ResponseWriter, _ *http.Request, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	spaces := bytes.Repeat([]byte(" "), 64<<10)
	for range 1 << 10 {
		if _, err := w.Write(spaces); err != nil {
			return
		}
	}
	w.Write(body)
}

// writeHalf sends a header and half of the body. An empty body is replaced by an empty object.
func writeHalf(w http.ResponseWriter, body []byte) {
	if len(body) < 2 {
		body = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body[:len(body)/2])
	http.NewResponseController(w).Flush()
}

// hijack sends text instead of a response and closes or resets the connection.
func hijack(w http.ResponseWriter, text string, reset bool) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer c.Close()
	io.WriteString(c, text)
	if tcp, ok := c.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
}
