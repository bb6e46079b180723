package attack

import (
	"math/rand/v2"
	"net"
)

// http2Plan is what an HTTP/2 server does with the frames of one connection.
type http2Plan struct{}

// randomHTTP2 adds faults of HTTP/2 to a connection.
func randomHTTP2(_ *rand.Rand, p *connPlan) { p.HTTP2 = nil }

// serveHTTP2 serves one connection.
func serveHTTP2(c net.Conn, _ *world, _ *connPlan) { _ = c.Close() }
