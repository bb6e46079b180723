package attack

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

// keyCanary is part of every key. No error may contain it, and no other host may get it.
const keyCanary = "canarykey"

// Faults of dialing.
const (
	dialRefused = "refused"
	dialDNS     = "temporary DNS failure"
	dialUnknown = "unknown host"
	dialStall   = "stall"
)

func (w *world) dialFault(ctx context.Context, p *connPlan) error {
	if p.DialDelay > 0 {
		select {
		case <-time.After(p.DialDelay):
		case <-ctx.Done():
			return &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
	}
	if p.Dial != "" {
		w.count("dial " + p.Dial)
	}
	switch p.Dial {
	case dialRefused:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case dialDNS:
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: w.protocol.address, IsTemporary: true}}
	case dialUnknown:
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: w.protocol.address, IsNotFound: true}}
	case dialStall:
		timer := time.NewTimer(longStall) // the context may have no end
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		case <-timer.C:
			return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT}
		case <-w.ended:
			return net.ErrClosed
		}
	}
	return nil
}

// pipes connects with connections in memory.
func pipes(window int) (client, server net.Conn, err error) {
	client, server = newPipe(window)
	return client, server, nil
}

// protocolNamed returns HTTP/1 for an empty name.
func protocolNamed(name string) protocol {
	for _, p := range protocols {
		if p.name == name {
			return p
		}
	}
	return protocols[0]
}

func newWorld(s *schedule) *world {
	w := &world{
		plan: s, protocol: protocolNamed(s.Protocol), pair: pipes, ended: make(chan struct{}), open: map[net.Conn]bool{},
		calls: make([]callRecord, len(s.Calls)), faults: map[string]int{}, keys: map[string]string{},
	}
	w.closed = sync.NewCond(&w.mu)
	return w
}

// outcome is how a call ended.
type outcome struct {
	value    any
	err      error
	response labhealth.Response
	start    time.Time
	took     time.Duration
}

// run makes the calls of the schedule, and returns what violated an invariant.
func (w *world) run() (results []outcome, broken []string) {
	p := &w.plan.Client
	transport := &http.Transport{
		DialContext: w.dial, ResponseHeaderTimeout: p.HeaderTimeout, MaxConnsPerHost: p.MaxConns, DisableKeepAlives: p.NoKeepAlives,
		DisableCompression: p.NoCompression, MaxResponseHeaderBytes: p.MaxHeaderBytes,
	}
	w.protocol.configure(w, transport)
	client, err := w.newClient(transport)
	if err != nil {
		return nil, []string{"no client: " + err.Error()}
	}
	results = make([]outcome, len(w.plan.Calls))
	var running sync.WaitGroup
	for i := range w.plan.Calls {
		c := &w.plan.Calls[i]
		if !c.Concurrent {
			running.Wait()
		}
		time.Sleep(c.After)
		running.Go(func() { results[i] = w.call(client, i, c) })
	}
	running.Wait()
	close(w.ended)
	w.late.Wait()
	client.CloseIdleConnections()
	transport.CloseIdleConnections()
	if !w.real { // net/http keeps an HTTP/2 connection that was dialed for a call that has ended meanwhile
		time.Sleep(time.Second)
		client.CloseIdleConnections()
		transport.CloseIdleConnections()
	}
	if left := w.wait(); left > 0 {
		broken = append(broken, fmt.Sprintf("%d connections were left open", left))
	}
	return results, append(broken, w.check(results)...)
}

// maxLinger is how long connections may stay open after the last call.
const maxLinger = time.Hour

// wait waits until no connection is served, and returns how many connections it had to close.
func (w *world) wait() (left int) {
	over := make(chan struct{})
	go func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for len(w.open) > 0 {
			w.closed.Wait()
		}
		close(over)
	}()
	timer := time.NewTimer(maxLinger)
	defer timer.Stop()
	select {
	case <-over:
		return 0
	case <-timer.C:
	}
	w.mu.Lock()
	left = len(w.open)
	for c := range w.open {
		resetConn(c)
	}
	w.mu.Unlock()
	<-over
	return left
}

func (w *world) newClient(transport *http.Transport) (doer, error) {
	var between http.RoundTripper = transport
	if wrapper := w.wrapper(); wrapper != nil {
		between = w.recorded(wrapper.make(w, w.counted(transport)))
	}
	p := &w.plan.Client
	options := []labhealth.Option{
		labhealth.WithBaseURL(w.protocol.base),
		labhealth.WithHTTPClient(&http.Client{Transport: between, Timeout: p.HTTPTimeout}),
		labhealth.WithRetry(labhealth.RetryPolicy{
			MaxAttempts: p.Attempts, BaseWait: p.BaseWait, ReadTimeout: p.Timeout, WriteTimeout: p.Timeout, MaxRetryAfter: p.RetryAfter, Strict: p.Strict,
		}),
	}
	if p.RateLimit {
		options = append(options, labhealth.WithRateLimit(50, 3))
	}
	if p.BodyLimit > 0 {
		options = append(options, labhealth.WithBodyLimit(p.BodyLimit))
	}
	if p.Observer {
		options = append(options, labhealth.WithCallObserver(labhealth.CallObserver{Attempt: w.observe}))
	}
	key := keyCanary
	if p.Credentials {
		key = ""
		options = append(options, labhealth.WithCredentials(w.credentials))
	}
	if len(w.plan.Calls) > 0 && callNamed(w.plan.Calls[0].Method).isManagement() {
		return management.NewClient(anID, key, options...)
	}
	return labhealth.NewClient(key, options...)
}

// credentials returns a new key every time.
func (w *world) credentials(context.Context) (labhealth.Credentials, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.issued++
	return labhealth.Credentials{Key: labhealth.Secret(keyCanary + "-" + strconv.Itoa(w.issued))}, nil
}

// wrapper returns what stands between the client and its transport; nil for nothing.
func (w *world) wrapper() *wrapper { return wrapperNamed(w.plan.Transport) }

// call makes one call.
func (w *world) call(client doer, i int, p *callPlan) (result outcome) {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), callKey{}, i))
	defer cancel()
	if p.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, p.Timeout)
		defer stop()
	}
	if p.Cancel > 0 {
		timer := time.AfterFunc(p.Cancel, cancel)
		defer timer.Stop()
	}
	options := []labhealth.CallOption{labhealth.WithHeader(callHeader, strconv.Itoa(i)), labhealth.WithResponse(&result.response)}
	if p.Filler > 0 {
		options = append(options, labhealth.WithHeader("X-Filler", strings.Repeat("x", p.Filler)))
	}
	if p.Idempotency {
		options = append(options, labhealth.WithIdempotencyKey("key-"+strconv.Itoa(i)))
	}
	if p.Attempts > 0 {
		options = append(options, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: p.Attempts}))
	}
	result.start = time.Now()
	result.value, result.err = callNamed(p.Method).invoke(ctx, client, options...)
	result.took = time.Since(result.start)
	w.leave(i)
	return result
}
