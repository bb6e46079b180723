package labhealthtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Fault answers a request badly. good is the answer that the request would have had, empty if it was not carried out. A test
// can write its own; it runs in the goroutine of the request and must not outlive it.
//
// A connection that is refused is not among the faults: the address of a server that was closed does that, once the client's idle
// connections are closed too (a request on one of those has an unknown outcome). Nor are refusals of HTTP/2, which this server
// does not speak.
type Fault func(w http.ResponseWriter, r *http.Request, good []byte)

// scripted is a fault that waits for its requests.
type scripted struct {
	fault           Fault
	method, pattern string // empty for any
	times           int    // how often it still strikes; negative for ever
	after           bool   // the request is carried out first
}

// FailAfter lets the next requests for an operation be carried out and then answers them with the fault: the client cannot know
// what became of them, unless the fault is an answer that says so. operation is a method and a path of the interface, such as
// "POST /v3/order/import" or "PATCH /v3/order/{order_id}", and "" for all; times is how many requests are met, negative for all
// until [Server.Mend]. Faults strike in the order in which they were scripted. It fails for an operation that the server does not
// have.
func (s *Server) FailAfter(operation string, times int, fault Fault) error {
	return s.script(operation, times, fault, true)
}

// FailBefore answers the next requests with the fault and does not carry them out. See [Server.FailAfter]. Their status in
// [Server.Requests] is 0.
func (s *Server) FailBefore(operation string, times int, fault Fault) error {
	return s.script(operation, times, fault, false)
}

// Mend ends all faults.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) script(name string, times int, fault Fault, after bool) error {
	method, pattern, _ := strings.Cut(name, " ")
	known := slices.ContainsFunc(operations, func(o operation) bool { return o.method == method && o.pattern == pattern })
	if name != "" && !known && !strings.HasPrefix(pattern, managementPath) {
		names := make([]string, len(operations))
		for i, o := range operations {
			names[i] = o.method + " " + o.pattern
		}
		slices.Sort(names)
		return fmt.Errorf("labhealthtest: no such operation: %q: want one of %q, or one of management", name, slices.Compact(names))
	}
	if fault == nil {
		return errors.New("labhealthtest: no fault is given")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if times != 0 {
		s.faults = append(s.faults, &scripted{fault, method, pattern, times, after})
	}
	return nil
}

// nextFault takes the first fault that waits for the request.
func (s *Server) nextFault(hr *http.Request) *scripted {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.pattern != "" {
			if _, ok := match(f.pattern, hr.URL.EscapedPath()); !ok || f.method != hr.Method {
				continue
			}
		}
		if f.times > 0 {
			f.times--
		}
		if f.times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f
	}
	return nil
}

// strike answers a request with a fault.
func (s *Server) strike(f *scripted, w http.ResponseWriter, hr *http.Request, body []byte, err error) {
	if !f.after {
		s.mu.Lock()
		s.record(hr, body, 0)
		s.mu.Unlock()
		f.fault(w, hr, nil)
		return
	}
	a := s.respond(hr, body, err)
	w.Header().Set("Traceresponse", a.trace)
	f.fault(w, hr, a.body)
}

// FaultAnswer answers with a status, a body and headers given as names and values in turn; the content type is application/json
// unless they say otherwise. It makes every fault that is an answer:
//
//	FaultAnswer(503, "", "Retry-After", "2")
//	FaultAnswer(200, "<html>…", "Content-Type", "text/html")      // a proxy's page
//	FaultAnswer(200, `{"order":{},"status":"","message":""}`)     // no order id
//	FaultAnswer(307, "", "Location", "https://elsewhere.example") // a redirect
func FaultAnswer(status int, body string, header ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// FaultClosed closes the connection without an answer.
func FaultClosed(w http.ResponseWriter, _ *http.Request, _ []byte) { hijack(w, "", false) }

// FaultReset resets the connection without an answer.
func FaultReset(w http.ResponseWriter, _ *http.Request, _ []byte) { hijack(w, "", true) }

// FaultGarbage answers with what is no HTTP.
func FaultGarbage(w http.ResponseWriter, _ *http.Request, _ []byte) {
	hijack(w, "SSH-2.0-example\r\n", false)
}

// FaultHalfHeader closes the connection within the header of a good answer.
func FaultHalfHeader(w http.ResponseWriter, _ *http.Request, _ []byte) {
	hijack(w, "HTTP/1.1 200 OK\r\nContent-Ty", false)
}

// FaultSilence does not answer until the client goes away.
func FaultSilence(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }

// FaultHalfBody sends half of the good answer and closes the connection.
func FaultHalfBody(w http.ResponseWriter, _ *http.Request, good []byte) {
	half(w, good)
	panic(http.ErrAbortHandler)
}

// FaultSlowBody sends half of the good answer and then nothing until the client goes away.
func FaultSlowBody(w http.ResponseWriter, r *http.Request, good []byte) {
	half(w, good)
	<-r.Context().Done()
}

// FaultTooLarge sends the good answer after 64 MiB of spaces.
func FaultTooLarge(w http.ResponseWriter, _ *http.Request, good []byte) {
	w.Header().Set("Content-Type", "application/json")
	spaces := bytes.Repeat([]byte(" "), 64<<10)
	for range 1 << 10 {
		if _, err := w.Write(spaces); err != nil {
			return
		}
	}
	w.Write(good)
}

// half sends a header and half a body, of an empty object at least.
func half(w http.ResponseWriter, good []byte) {
	if len(good) < 2 {
		good = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(good)))
	w.Write(good[:len(good)/2])
	http.NewResponseController(w).Flush()
}

// hijack writes text instead of an answer and ends the connection.
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
