package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"net/url"
	"testing"
	"time"
)

// net/http does not call GetConn for an HTTP/2 connection that an earlier attempt has dialed. A
// transport that then fails over is stopped nevertheless.
func TestOtherHostAfterDialedConnection(t *testing.T) {
	for hostPort, want := range map[string]error{"other.example.com:443": ErrOtherHost, "api.example.com:443": nil} {
		ctx, cancel := context.WithCancel(t.Context())
		p := newProof(ctx, cancel)
		p.wanted, p.target = "api.example.com", &url.URL{Scheme: "https", Host: "api.example.com"}
		dialed, dialedServer := net.Pipe()
		next, nextServer := net.Pipe()
		p.gotConn(httptrace.GotConnInfo{Conn: dialed})
		p.startedRequest(true, "api.example.com")
		p.getConn(hostPort)
		p.gotConn(httptrace.GotConnInfo{Conn: next})
		p.startedRequest(false, "api.example.com")
		if err := p.judge(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", hostPort, err, want)
		}
		if want != nil {
			_ = next.SetDeadline(time.Now()) // a Write to an open pipe waits
			if _, err := next.Write([]byte("key")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: the connection is open: %v", hostPort, err)
			}
		}
		for _, c := range []net.Conn{dialed, dialedServer, next, nextServer} {
			_ = c.Close()
		}
		cancel()
	}
}
