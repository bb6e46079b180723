package world

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// network connects the processes. Each dial and each write is delayed, and can fail.
type network struct {
	mu        sync.Mutex
	world     *world
	listeners map[string]*listener
}

// identify returns the subject of a write, and its number, which is the time. Its choices depend on
// what is written, when and, for a response, on the request, and not on the connection: which of
// several goroutines gets which connection depends on the scheduler.
func (n *network) identify(name string, request uint64, data []byte) (subject string, number int, key uint64) {
	sum := fnv.New64a()
	sum.Write(binary.LittleEndian.AppendUint64(nil, request))
	sum.Write(withoutCall(data))
	key = sum.Sum64()
	return fmt.Sprintf("%s %016x", name, key), int(time.Since(n.world.history.start)), key
}

// withoutCall returns data without the header that identifies the call.
func withoutCall(data []byte) []byte {
	before, after, found := bytes.Cut(data, []byte(callHeader+": "))
	if !found {
		return data
	}
	_, after, _ = bytes.Cut(after, []byte("\r\n"))
	return slices.Concat(before, after)
}

// address is a net.Addr.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

type listener struct {
	network  *network
	process  *process
	address  string
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (n *network) listen(p *process, addr string) (net.Listener, error) {
	l := &listener{network: n, process: p, address: addr, accepted: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	n.listeners[addr] = l
	n.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports = append(p.ports, l)
	if p.isDead() {
		return nil, errDead
	}
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		if l.network.listeners[l.address] == l {
			delete(l.network.listeners, l.address)
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.address) }

// The faults of a connection.
const (
	faultReset     = iota // the write is lost, and the connection is reset
	faultTruncated        // a part of the write arrives, then the connection is reset
	faultDelivered        // the write arrives, then the connection is reset
	faultSilence          // nothing arrives anymore in this direction
	faultDelay            // the write arrives late
	faultKinds
)

var faultNames = [faultKinds]string{"is lost and resets", "is truncated and resets", "arrives and resets", "is lost silently", "is late"}

func (n *network) dial(ctx context.Context, p *process, addr string) (net.Conn, error) {
	w := n.world
	name := p.computer.name + " > " + addr
	subject := fmt.Sprint(name, " dial ", time.Since(w.history.start)) // the same for all at this time
	fault := w.networkFault(subject, 0)
	latency := time.Millisecond + w.choices.within(20*time.Millisecond, subject, 1)
	if fault == faultSilence {
		latency = time.Hour
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ctx.Done():
		return nil, errDead
	case <-timer.C:
	}
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil || fault >= 0 && fault != faultDelay {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	client, server := newConns(w, name, p, l.process)
	if !p.addConn(client) || !l.process.addConn(server) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	select {
	case l.accepted <- server:
		return client, nil
	case <-l.closed:
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	client.abandon(false)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// segment is data on its way.
type segment struct {
	at   time.Time
	data []byte
	err  error // the end of the stream
}

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	changed  *sync.Cond
	name     string
	isReply  bool
	key      uint64 // of the last write
	segments []segment
	last     time.Time // when the last segment arrives
	silent   bool      // nothing arrives anymore
	closed   error     // of the reader
	deadline time.Time // of the reader
}

// conn is one end of a connection.
type conn struct {
	world   *world
	process *process
	in, out *stream
	peer    *conn
	local   address
	remote  address

	mu     sync.Mutex
	closed bool
}

func newConns(w *world, name string, client, server *process) (*conn, *conn) {
	there, back := &stream{name: name}, &stream{name: name + " response", isReply: true}
	there.changed, back.changed = sync.NewCond(&there.mu), sync.NewCond(&back.mu)
	a := &conn{world: w, process: client, in: back, out: there, local: address(client.name), remote: address(server.name)}
	b := &conn{world: w, process: server, in: there, out: back, local: a.remote, remote: a.local, peer: a}
	a.peer = b
	return a, b
}

func (c *conn) Read(p []byte) (int, error) {
	s := c.in
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case s.closed != nil:
			return 0, s.closed
		case !s.deadline.IsZero() && !now.Before(s.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(s.segments) > 0 && !s.segments[0].at.After(now):
			first := &s.segments[0]
			if first.err != nil {
				return 0, first.err
			}
			n := copy(p, first.data)
			if first.data = first.data[n:]; len(first.data) == 0 {
				s.segments = s.segments[1:]
			}
			return n, nil
		}
		s.changed.Wait()
	}
}

func (c *conn) Write(p []byte) (n int, err error) {
	err = c.process.do("send", false, func(bool) error {
		n, err = c.write(p)
		return err
	})
	return n, err
}

func (c *conn) write(p []byte) (int, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	if c.resetByPeer() {
		return 0, syscall.ECONNRESET
	}
	s := c.out
	request := uint64(0)
	if s.isReply {
		request = c.in.lastKey()
	}
	subject, n, key := c.world.network.identify(s.name, request, p)
	s.mu.Lock()
	s.key = key
	s.mu.Unlock()
	data, fault := append([]byte(nil), p...), c.world.networkFault(subject, n)
	latency := time.Millisecond + c.world.choices.within(10*time.Millisecond, subject, n)
	switch fault {
	case faultReset:
		c.reset()
		return 0, syscall.ECONNRESET
	case faultTruncated:
		s.send(data[:len(data)/2], latency, nil)
		c.reset()
		return len(p), nil
	case faultDelivered:
		s.send(data, latency, nil)
		c.reset()
		return len(p), nil
	case faultSilence:
		s.mu.Lock()
		s.silent = true
		s.mu.Unlock()
	case faultDelay:
		latency = c.world.choices.within(settle/2, subject+" late", n) // the service has the other half
	}
	s.send(data, latency, nil)
	return len(p), nil
}

func (s *stream) lastKey() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// resetByPeer reports whether a reset has arrived.
func (c *conn) resetByPeer() bool {
	s := c.in
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 0 {
		return false
	}
	last := &s.segments[len(s.segments)-1]
	return errors.Is(last.err, syscall.ECONNRESET) && !last.at.After(time.Now())
}

// send delivers data, or the end of the stream, after a latency.
func (s *stream) send(data []byte, latency time.Duration, end error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent || s.closed != nil {
		return
	}
	at := time.Now().Add(latency)
	if at.Before(s.last) {
		at = s.last
	}
	s.last = at
	s.segments = append(s.segments, segment{at, data, end})
	time.AfterFunc(time.Until(at), s.wake)
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// reset resets the connection for both ends.
func (c *conn) reset() {
	c.out.send(nil, time.Millisecond, syscall.ECONNRESET)
	c.in.send(nil, time.Millisecond, syscall.ECONNRESET)
}

// abandon is what happens to a connection whose process dies.
func (c *conn) abandon(silently bool) {
	if silently {
		c.out.mu.Lock()
		c.out.silent = true
		c.out.mu.Unlock()
	} else {
		c.out.send(nil, time.Millisecond, syscall.ECONNRESET)
	}
	c.end(errDead)
}

// end ends reading.
func (c *conn) end(err error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.in.mu.Lock()
	if c.in.closed == nil {
		c.in.closed, c.in.segments = err, nil
	}
	c.in.changed.Broadcast()
	c.in.mu.Unlock()
}

func (c *conn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.process.removeConn(c)
	c.out.send(nil, time.Millisecond, io.EOF)
	c.end(net.ErrClosed)
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.deadline = t
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), c.in.wake)
	}
	c.in.changed.Broadcast()
	return nil
}

// SetWriteDeadline does nothing: writes do not block.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
