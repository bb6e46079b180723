package attack

import (
	"net"
	"slices"
	"time"
)

// maxWriteWait is how long net/http waits for the end of a write after the end of its response.
const maxWriteWait = 50 * time.Millisecond

// lingers reports whether writes return late.
func (s *schedule) lingers() bool {
	return slices.ContainsFunc(s.Conns, func(p connPlan) bool { return p.Linger > 0 })
}

// linger makes the writes of a client return late, as those of a process that the system suspends.
func linger(c net.Conn, d time.Duration) {
	if c, ok := c.(*pipeConn); ok {
		c.out.linger = d
	}
}

// open ends what delays the writes of a client of the server's connection c.
func open(c net.Conn) {
	switch c := c.(type) {
	case *pipeConn:
		c.in.mu.Lock()
		c.in.window, c.in.linger = 0, 0
		c.in.mu.Unlock()
		c.in.wake()
	case interface{ NetConn() net.Conn }:
		open(c.NetConn())
	}
}
