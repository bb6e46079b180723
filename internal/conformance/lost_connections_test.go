package conformance

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/labhealth/labhealth-go"
)

// cutConn loses what is written after up bytes, and closes after down bytes were read.
type cutConn struct {
	net.Conn
	up, down *int // nil for no limit
}

func (c cutConn) Write(p []byte) (int, error) {
	if c.up == nil {
		return c.Conn.Write(p)
	}
	n := min(len(p), *c.up)
	c.Conn.Write(p[:n])
	*c.up -= n
	if *c.up == 0 {
		c.Conn.Close()
	}
	return len(p), nil // as far as the sender knows
}

func (c cutConn) Read(p []byte) (int, error) {
	if c.down == nil {
		return c.Conn.Read(p)
	}
	if *c.down == 0 {
		c.Conn.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p[:min(len(p), *c.down)])
	*c.down -= n
	return n, err
}

// The request cut after every byte, and the response cut after every byte.
func TestCutAfterEveryByte(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		srv := startFaults(t, false, -1, func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			if chunked {
				io.WriteString(x, faultResponse[:50])
				http.NewResponseController(x.ResponseWriter).Flush()
				io.WriteString(x, faultResponse[50:])
				return true
			}
			io.WriteString(x, faultResponse)
			return true
		})
		cases := 0
		seen := map[string]int{}
		dials := int64(0)
		// once makes one call on new connections and reports whether it was cut.
		once := func(up, down *int) bool {
			cases++
			conn := cutConn{up: up, down: down}
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if err == nil {
					dials++
				}
				conn.Conn = c
				return conn, err
			}}
			client := faultClient(t, srv.URL, transport)
			before := srv.commits.Load()
			_, err := client.Orders.Import(t.Context(), faultImport())
			client.CloseIdleConnections()
			srv.settle(dials)
			commits, outcome := srv.commits.Load()-before, labhealth.OutcomeOf(err)
			seen[fmt.Sprintf("%v, %d done", outcome, commits)]++
			if commits > 1 || (outcome == notSent && commits != 0) || (outcome == applied && commits != 1) || outcome == rejected {
				t.Errorf("%v, %d done: %v", outcome, commits, err)
			}
			return err != nil
		}
		for n := 0; !chunked; n++ {
			if up := n; !once(&up, nil) {
				break
			}
		}
		for n := 0; ; n++ {
			if down := n; !once(nil, &down) {
				break
			}
		}
		t.Logf("chunked %v, %d cases: %v", chunked, cases, seen)
		if cases < 800 && !chunked {
			t.Errorf("%d cases", cases)
		}
	}
}

// A kept connection dies: while it is idle, or after the next request or the one after it has
// arrived.
func TestReusedConnectionDies(t *testing.T) {
	for _, call := range faultCalls {
		var dies atomic.Int64
		srv := startFaults(t, false, -1, func(x exchange) bool {
			if dies.Load() == 0 || dies.Add(1)%2 == 0 {
				x.respond(200, faultResponse)
				return true
			}
			x.raw().Close()
			return true
		})
		seen := map[string]int{}
		for range 50 {
			client := faultClient(t, srv.URL, nil)
			dies.Store(0)
			if err := call.do(t, client); err != nil {
				t.Fatal(err)
			}
			if rand.N(2) == 0 {
				dies.Store(1 + rand.N[int64](2))
			} else {
				srv.CloseClientConnections()
			}
			before := srv.commits.Load()
			err := call.do(t, client)
			client.CloseIdleConnections()
			commits, outcome := srv.commits.Load()-before, labhealth.OutcomeOf(err)
			seen[fmt.Sprintf("%v, %d done", outcome, commits)]++
			if call.method == "GET" && err != nil {
				t.Errorf("GET: %v", err)
			}
			if call.method != "GET" && commits > 1 || (outcome == notSent && commits != 0) || (outcome == applied && commits == 0) {
				t.Errorf("%s: %v, %d done: %v", call.method, outcome, commits, err)
			}
		}
		t.Logf("%s: %v", call.method, seen)
	}
}

// A read that the service has processed is not reported as not sent, even if its last attempt was
// not: after a truncated response, and after a redirect.
func TestProcessedReadIsSent(t *testing.T) {
	for _, row := range []struct {
		name   string
		inject func(exchange) bool
		want   labhealth.Outcome
	}{
		{"truncated", func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			io.WriteString(x, faultResponse[:50])
			http.NewResponseController(x.ResponseWriter).Flush()
			panic(http.ErrAbortHandler)
		}, applied},
		{"redirect", func(x exchange) bool {
			x.Header().Set("Connection", "close")
			return respond(302, "", "Location", "/elsewhere")(x)
		}, unknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			srv := startFaults(t, false, -1, row.inject)
			dials := 0
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials++; dials > 1 {
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}}
			_, err := faultClient(t, srv.URL, transport).Orders.Get(t.Context(), orderID)
			if got := labhealth.OutcomeOf(err); got != row.want {
				t.Errorf("%v, want %v: %v", got, row.want, err)
			}
		})
	}
}
