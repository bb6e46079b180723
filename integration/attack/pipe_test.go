package attack

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection in memory. Its waits are those of a [sync.Cond], so that
// in a synctest bubble they let the time pass.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond
	data    []byte
	linger  time.Duration // how much later a write returns
	window  int           // the writer waits while so many bytes are unread; 0 for no limit
	ended   error         // what the reader gets after the data
	broken  error         // what the writer gets at once
	lost    error         // what the reader gets at once

	readBy, writeBy deadline
}

func newStream(window int) *stream {
	s := &stream{window: window}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// deadline wakes those who wait on a stream.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) hasPassed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (s *stream) setDeadline(d *deadline, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), s.wake)
	}
	s.changed.Broadcast()
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.lost != nil:
			return 0, s.lost
		case s.readBy.hasPassed():
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0:
			n := copy(p, s.data)
			s.data = s.data[n:]
			s.changed.Broadcast()
			return n, nil
		case s.ended != nil:
			return 0, s.ended
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.broken != nil:
			return n, s.broken
		case s.ended != nil:
			return n, syscall.EPIPE
		case s.writeBy.hasPassed():
			return n, os.ErrDeadlineExceeded
		}
		room := len(p)
		if s.window > 0 {
			room = min(room, s.window-len(s.data))
		}
		if room > 0 {
			s.data = append(s.data, p[:room]...)
			p, n = p[room:], n+room
			s.changed.Broadcast()
		}
		if len(p) == 0 {
			s.lingers()
			return n, nil
		}
		if room <= 0 {
			s.changed.Wait()
		}
	}
}

// lingers waits at the end of a write.
func (s *stream) lingers() {
	if s.linger == 0 {
		return
	}
	end := time.Now().Add(s.linger)
	timer := time.AfterFunc(s.linger, s.wake)
	defer timer.Stop()
	for s.linger > 0 && s.broken == nil && s.ended == nil && time.Now().Before(end) {
		s.changed.Wait()
	}
}

// end makes the reader get err after the data that was written.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = err
	}
	s.changed.Broadcast()
}

// cut makes the reader and the writer get errors at once; what was written and not read is lost.
func (s *stream) cut(reader, writer error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.lost, s.broken = reader, writer
	}
	s.changed.Broadcast()
}

// pipeConn is one end of a connection in memory.
type pipeConn struct {
	in, out *stream
	address pipeAddress
	once    sync.Once
}

type pipeAddress string

func (a pipeAddress) Network() string { return "tcp" }
func (a pipeAddress) String() string  { return string(a) }

// newPipe returns both ends of a connection. The client can write window bytes that the server has
// not read; 0 is no limit. The server can write 256 KiB.
func newPipe(window int) (client, server *pipeConn) {
	toServer, toClient := newStream(window), newStream(256<<10)
	return &pipeConn{in: toClient, out: toServer, address: "192.0.2.1:443"},
		&pipeConn{in: toServer, out: toClient, address: "192.0.2.2:40000"}
}

func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, wrap("read", err)
}

func (c *pipeConn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, wrap("write", err)
}

// wrap returns err as package net does.
func wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Addr: pipeAddress("192.0.2.1:443"), Err: err}
}

func (c *pipeConn) Close() error {
	c.once.Do(func() {
		c.out.end(io.EOF)
		c.in.cut(net.ErrClosed, syscall.ECONNRESET)
		for _, d := range []struct {
			s *stream
			d *deadline
		}{{c.in, &c.in.readBy}, {c.out, &c.out.writeBy}} {
			d.s.setDeadline(d.d, time.Time{})
		}
	})
	return nil
}

// reset ends the connection as a TCP RST does: the peer loses what it has not read.
func (c *pipeConn) reset() {
	c.out.cut(syscall.ECONNRESET, syscall.ECONNRESET)
	c.in.cut(syscall.ECONNRESET, syscall.ECONNRESET)
	_ = c.Close()
}

func (c *pipeConn) LocalAddr() net.Addr  { return pipeAddress("192.0.2.3:1") }
func (c *pipeConn) RemoteAddr() net.Addr { return c.address }

func (c *pipeConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *pipeConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *pipeConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

// resetConn resets the connection below c.
func resetConn(c net.Conn) {
	for {
		switch conn := c.(type) {
		case *pipeConn:
			conn.reset()
			return
		case *net.TCPConn:
			_ = conn.SetLinger(0)
			_ = conn.Close()
			return
		case interface{ NetConn() net.Conn }: // such as *tls.Conn
			c = conn.NetConn()
		default:
			_ = c.Close()
			return
		}
	}
}
