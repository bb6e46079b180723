package attack

import (
	"net"
	"sync"
	"testing"
	"time"
)

// loopback connects through the TCP of the operating system, with its own resets and its own
// buffers.
type loopback struct {
	mu       sync.Mutex
	listener net.Listener
}

func (l *loopback) pair(int) (client, server net.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	client, err = net.Dial("tcp", l.listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	server, err = l.listener.Accept()
	if err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return client, server, nil
}

// hurry reduces all times of a schedule, whose world is in real time.
func (s *schedule) hurry() {
	const timeout, wait = 100 * time.Millisecond, 3 * time.Millisecond
	s.Client.BaseWait, s.Client.RetryAfter, s.Client.Timeout = 1, wait, timeout
	s.Client.RateLimit = false
	s.Client.HTTPTimeout, s.Client.HeaderTimeout = min(s.Client.HTTPTimeout, timeout), min(s.Client.HeaderTimeout, timeout)
	for i := range s.Calls {
		c := &s.Calls[i]
		c.After, c.Cancel = min(c.After, wait), 0
		if c.Timeout > 0 {
			c.Timeout = timeout + min(c.Timeout, wait)
		}
	}
	for i := range s.Conns {
		p := &s.Conns[i]
		p.DialDelay = min(p.DialDelay, wait)
		for j := range p.Exchanges {
			x := &p.Exchanges[j]
			x.Response.Delay = min(x.Response.Delay, wait)
			if x.HTTP1 != nil {
				x.HTTP1.PauseFor, x.HTTP1.EndDelay = min(x.HTTP1.PauseFor, wait), min(x.HTTP1.EndDelay, wait)
			}
		}
	}
}

// The invariants hold for real connections too.
func TestLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	network := &loopback{listener: listener}
	limit := number(t, "LABHEALTH_ATTACK_CALLS", defaultCalls) / 20
	total := newTally()
	var mu sync.Mutex
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for seed := range seeds {
				s := newSchedule(seed)
				if s.Protocol != protocols[0].name { // their waits take real time
					continue
				}
				if wrapper := wrapperNamed(s.Transport); wrapper != nil && wrapper.ignoresContext {
					s.Transport = ""
				}
				s.hurry()
				w := newWorld(s)
				w.real, w.pair = true, network.pair
				results, broken := w.run()
				mu.Lock()
				total.add(w, results)
				for _, b := range broken {
					t.Errorf("seed %d: %s\n%v", seed, b, s)
				}
				mu.Unlock()
			}
		})
	}
	for seed := number(t, "LABHEALTH_ATTACK_FROM", 1); ; seed++ {
		mu.Lock()
		enough := total.calls >= int(limit) || t.Failed()
		mu.Unlock()
		if enough {
			break
		}
		seeds <- seed
	}
	close(seeds)
	workers.Wait()
	t.Log(total)
}
