package attack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// wrapper is an http.RoundTripper that a program may put between the client and an http.Transport.
type wrapper struct {
	name string
	// hidden wrappers send a write more than once without the hooks of net/http/httptrace, so that
	// nobody can stop them: they may cause as many commits as they send requests.
	hidden bool
	// misleading wrappers return the response to a request that the hooks saw, after another one
	// that they did not see: they may make a commit look like a rejection.
	misleading bool
	// ignoresContext wrappers do not stop at the end of the attempt, which may take longer than its
	// deadline, by as much as the wrapper takes.
	ignoresContext bool
	make           func(w *world, inner http.RoundTripper) roundTripper
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Wrappers of slowWrite.
const (
	ownDeadline  = "gives up after a second and goes on"
	deadlineOnly = "without hooks, passes the deadline on"
)

// errWrapper is the error of wrappers that make up their own.
var errWrapper = errors.New("connection refused by " + patientCanary)

// wrapperNamed returns one that passes requests on for an empty name.
func wrapperNamed(name string) *wrapper {
	for i := range wrappers {
		if wrappers[i].name == name {
			return &wrappers[i]
		}
	}
	return nil
}

var wrappers = []wrapper{
	{name: "passes on", make: func(_ *world, inner http.RoundTripper) roundTripper { return inner.RoundTrip }},
	{name: "clones", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) { return inner.RoundTrip(r.Clone(r.Context())) }
	}},
	{name: "buffers the body", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) { return inner.RoundTrip(copyOf(r, bodyOfRequest(r))) }
	}},
	{name: "buffers the body for replays", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			content := bodyOfRequest(r)
			c := copyOf(r, content)
			c.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
			c.Header.Set("Idempotency-Key", "made up")
			return inner.RoundTrip(c)
		}
	}},
	{name: "retries after errors and 5xx", make: func(_ *world, inner http.RoundTripper) roundTripper { return retrying(inner, 3) }},
	{name: "retries, ignores its context", ignoresContext: true, make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			return retrying(inner, 3)(r.WithContext(context.WithoutCancel(r.Context())))
		}
	}},
	{name: "retries, unseen", hidden: true, ignoresContext: true, make: func(_ *world, inner http.RoundTripper) roundTripper {
		return retrying(unseen(inner), 3)
	}},
	{name: "retries unseen after a 5xx that was seen", hidden: true, ignoresContext: true, make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			content := bodyOfRequest(r)
			resp, err := inner.RoundTrip(copyOf(r, content))
			if err == nil && resp.StatusCode < 500 {
				return resp, nil
			}
			closeBody(resp)
			return unseen(inner)(copyOf(r, content))
		}
	}},
	{name: "without hooks", hidden: false, ignoresContext: true, make: func(_ *world, inner http.RoundTripper) roundTripper { return unseen(inner) }},
	{name: deadlineOnly, make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithCancel(context.Background())
			stop := context.AfterFunc(r.Context(), cancel)
			resp, err := inner.RoundTrip(r.WithContext(ctx))
			if err != nil {
				stop()
				cancel()
				return resp, err
			}
			resp.Body = &closing{resp.Body, func() { stop(); cancel() }}
			return resp, nil
		}
	}},
	{name: "fails over to another connection", make: func(_ *world, inner http.RoundTripper) roundTripper {
		refusing := &http.Transport{DialContext: refuse}
		return func(r *http.Request) (*http.Response, error) {
			content := bodyOfRequest(r)
			if resp, err := refusing.RoundTrip(copyOf(r, content)); err == nil {
				return resp, nil
			}
			return inner.RoundTrip(copyOf(r, content))
		}
	}},
	{name: "fails over, unseen", ignoresContext: true, make: func(_ *world, inner http.RoundTripper) roundTripper {
		refusing := &http.Transport{DialContext: refuse}
		return func(r *http.Request) (*http.Response, error) {
			content := bodyOfRequest(r)
			if resp, err := refusing.RoundTrip(copyOf(r, content)); err == nil {
				return resp, nil
			}
			return unseen(inner)(copyOf(r, content))
		}
	}},
	{name: "fails over to another host", make: func(_ *world, inner http.RoundTripper) roundTripper { return elsewhere(inner, "") }},
	{name: "fails over to another host and its name", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return elsewhere(inner, "other.example.com")
	}},
	{name: "sends each twice", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			content := bodyOfRequest(r)
			resp, err := inner.RoundTrip(copyOf(r, content))
			if err == nil {
				closeBody(resp)
			}
			return inner.RoundTrip(copyOf(r, content))
		}
	}},
	{name: "sends two at once", make: func(w *world, inner http.RoundTripper) roundTripper { return twice(w, inner, inner) }},
	{name: "sends two at once, one unseen", hidden: true, misleading: true, ignoresContext: true, make: func(w *world, inner http.RoundTripper) roundTripper {
		return twice(w, inner, unseen(inner))
	}},
	{name: "returns before it has sent", make: func(w *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			w.sendLater(inner, copyOf(r.WithContext(context.WithoutCancel(r.Context())), bodyOfRequest(r)), nil)
			return nil, errWrapper
		}
	}},
	{name: "fires a hook and sends after the attempt", make: func(w *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).GetConn(r.URL.Host)
			w.sendLater(inner, copyOf(r.WithContext(context.WithoutCancel(r.Context())), bodyOfRequest(r)), r.Context().Done())
			return nil, errWrapper
		}
	}},
	{name: "gives up at the end of the attempt and goes on", ignoresContext: true, make: func(w *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			c := copyOf(r.WithContext(context.WithoutCancel(r.Context())), bodyOfRequest(r))
			responses := make(chan *http.Response)
			w.late.Go(func() {
				resp, err := inner.RoundTrip(c)
				if err != nil {
					resp = nil
				}
				select {
				case responses <- resp:
				case <-r.Context().Done():
					closeBody(resp)
				}
			})
			select {
			case resp := <-responses:
				if resp == nil {
					return nil, errWrapper
				}
				return resp, nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
	}},
	{name: ownDeadline, ignoresContext: true, make: func(w *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			type result struct {
				resp *http.Response
				err  error
			}
			c := r.WithContext(context.WithoutCancel(r.Context()))
			results, left := make(chan result), make(chan struct{})
			defer close(left)
			w.late.Go(func() {
				resp, err := inner.RoundTrip(c)
				select {
				case results <- result{resp, err}:
				case <-left:
					closeBody(resp)
				}
			})
			timer := time.NewTimer(time.Second)
			defer timer.Stop()
			select {
			case got := <-results:
				return got.resp, got.err
			case <-timer.C:
				return nil, errWrapper
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
	}},
	{name: "adds hooks", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			trace := &httptrace.ClientTrace{GetConn: func(string) {}, WroteHeaders: func() {}}
			return inner.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		}
	}},
	{name: "drops an empty body", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			c := copyOf(r, bodyOfRequest(r))
			if r.ContentLength <= 0 {
				c.Body, c.ContentLength = nil, 0
			}
			return inner.RoundTrip(c)
		}
	}},
	// It waits for the response if the connection is one that another attempt dialed, over HTTP/2.
	{name: "gives up while it connects, and sends later", ignoresContext: true, make: func(w *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			connects := make(chan struct{})
			var once sync.Once
			trace := &httptrace.ClientTrace{GetConn: func(string) { once.Do(func() { close(connects) }) }}
			later := r.WithContext(httptrace.WithClientTrace(context.WithoutCancel(r.Context()), trace))
			w.late.Go(func() {
				if resp, err := inner.RoundTrip(later); err == nil {
					closeBody(resp)
				}
				once.Do(func() { close(connects) })
			})
			<-connects
			return nil, errWrapper
		}
	}},
	{name: "turns 5xx into an error", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil && resp.StatusCode >= 500 {
				closeBody(resp)
				return nil, errWrapper
			}
			return resp, err
		}
	}},
	{name: "turns errors into a 503", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err != nil {
				resp = madeUp(r, http.StatusServiceUnavailable)
			}
			return resp, nil
		}
	}},
	{name: "is a client of its own", make: func(_ *world, inner http.RoundTripper) roundTripper {
		client := &http.Client{Transport: inner}
		return func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.RequestURI = ""
			return client.Do(r)
		}
	}},
	{name: "returns nothing", make: func(_ *world, _ http.RoundTripper) roundTripper {
		return func(*http.Request) (*http.Response, error) { return nil, nil }
	}},
	{name: "returns nothing after the response", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			if resp, err := inner.RoundTrip(r); err == nil {
				closeBody(resp)
			}
			return nil, nil
		}
	}},
	{name: "returns a response and an error", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			return resp, errors.Join(err, errWrapper)
		}
	}},
	{name: "returns a response without a body", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil {
				closeBody(resp)
				resp.Body = nil
			}
			return resp, err
		}
	}},
	{name: "closes the body", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil {
				closeBody(resp)
			}
			return resp, err
		}
	}},
	// It reads where the client cannot close the body: over HTTP/2 net/http does not notice the end
	// of the attempt while the server responds early and takes no more of the request.
	{name: "buffers the response", ignoresContext: true, make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
			closeBody(resp)
			if err != nil {
				return nil, err
			}
			resp.Body = io.NopCloser(bytes.NewReader(content))
			return resp, nil
		}
	}},
	{name: "drops the request of the response", make: func(_ *world, inner http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil {
				resp.Request = nil
			}
			return resp, err
		}
	}},
}

// closing is a body that calls a function when it is closed.
type closing struct {
	io.ReadCloser
	then func()
}

func (c *closing) Close() error {
	defer c.then()
	return c.ReadCloser.Close()
}

func closeBody(resp *http.Response) {
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
}

// bodyOfRequest reads the body, unless the length says that it is empty.
func bodyOfRequest(r *http.Request) []byte {
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	_ = r.Body.Close()
	return content
}

// copyOf returns a copy of a request with its own body.
func copyOf(r *http.Request, content []byte) *http.Request {
	c := r.Clone(r.Context())
	if r.Body != nil {
		c.Body = io.NopCloser(bytes.NewReader(content))
	}
	return c
}

// unseen sends requests with another context, which has no hooks and no end.
func unseen(inner http.RoundTripper) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		return inner.RoundTrip(r.WithContext(context.Background()))
	}
}

// retrying sends a request up to n times, until the response is not a 5xx.
func retrying(inner http.RoundTripper, n int) roundTripper {
	return func(r *http.Request) (resp *http.Response, err error) {
		content := bodyOfRequest(r)
		for i := range n {
			if resp, err = inner.RoundTrip(copyOf(r, content)); err == nil && resp.StatusCode < 500 {
				return resp, nil
			}
			if i < n-1 && err == nil {
				closeBody(resp)
			}
		}
		return resp, err
	}
}

// elsewhere sends a request to another host after an error or a 5xx. The name replaces that of the
// service in the header, if it is not empty.
func elsewhere(inner http.RoundTripper, name string) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		content := bodyOfRequest(r)
		resp, err := inner.RoundTrip(copyOf(r, content))
		if err == nil && resp.StatusCode < 500 {
			return resp, nil
		}
		closeBody(resp)
		c := copyOf(r, content)
		c.URL.Scheme, c.URL.Host = "http", "other.example.com"
		c.Host = cmp.Or(name, c.Host)
		return inner.RoundTrip(c)
	}
}

// twice sends a request through first and second at once, and returns a response if there is one.
func twice(w *world, first, second http.RoundTripper) roundTripper {
	type result struct {
		resp *http.Response
		err  error
	}
	return func(r *http.Request) (*http.Response, error) {
		content := bodyOfRequest(r)
		results := make(chan result, 2)
		for _, next := range []http.RoundTripper{first, second} {
			c := copyOf(r, content)
			w.late.Go(func() {
				resp, err := next.RoundTrip(c)
				results <- result{resp, err}
			})
		}
		one, other := <-results, <-results
		if one.err != nil {
			one, other = other, one
		}
		if other.err == nil {
			closeBody(other.resp)
		}
		return one.resp, one.err
	}
}

// sendLater sends a request in the background, when the channel is closed if there is one.
func (w *world) sendLater(inner http.RoundTripper, r *http.Request, when <-chan struct{}) {
	w.late.Go(func() {
		if when != nil {
			<-when
		}
		if resp, err := inner.RoundTrip(r); err == nil {
			closeBody(resp)
		}
	})
}

// refuse is a network on which nothing listens.
func refuse(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// madeUp returns a response that no server has sent.
func madeUp(r *http.Request, status int) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(patientCanary))), ContentLength: int64(len(patientCanary)),
	}
}

// counted counts the requests that a wrapper sends for each call.
func (w *world) counted(inner http.RoundTripper) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		if i, err := strconv.Atoi(r.Header.Get(callHeader)); err == nil && i < len(w.calls) {
			w.mu.Lock()
			w.calls[i].sent++
			w.mu.Unlock()
		}
		return inner.RoundTrip(r)
	}
}
