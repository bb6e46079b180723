package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// smallLimits are options for bodies of up to 1 MiB, of which 4 MiB may be in flight.
func smallLimits() []webhooks.HandlerOption {
	return []webhooks.HandlerOption{webhooks.WithBodyLimit(1 << 20), webhooks.WithInFlightLimit(4 << 20)}
}

// eventOfSize returns an event of n bytes.
func eventOfSize(n int) string { return "{}" + strings.Repeat(" ", n-2) }

// count returns how often each result was reported.
func (r *recorder) count() map[string]int {
	n := map[string]int{}
	for _, line := range r.results() {
		n[line]++
	}
	return n
}

// Bodies count until the application returns, even after their responses. Small deliveries are
// accepted nevertheless.
func TestInFlightLimit(t *testing.T) {
	for _, raw := range []bool{false, true} {
		t.Run(fmt.Sprintf("raw %t", raw), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				hold := func(id string) error {
					if strings.HasPrefix(id, "large") {
						<-release
					}
					return nil
				}
				seen := new(recorder)
				opts := append(smallLimits(), webhooks.WithObserver(seen.add))
				h, err := webhooks.NewHandler(webhooks.Unsigned, func(ctx context.Context, _ *webhooks.Event) error {
					return hold(webhooks.DeliveryIDFrom(ctx))
				}, opts...)
				done := "204 applied"
				if raw {
					h, err = webhooks.NewRawHandler(webhooks.Unsigned, func(_ context.Context, d webhooks.RawDelivery) error { return hold(d.ID) }, opts...)
					done = "204 stored"
				}
				if err != nil {
					t.Fatal(err)
				}
				var senders sync.WaitGroup
				for n := range 10 {
					senders.Go(func() { deliver(h, delivery(fmt.Sprintf("large_%d", n), eventOfSize(1<<20))) })
					synctest.Wait()
				}
				for n := range 100 {
					if status := deliver(h, delivery(fmt.Sprintf("small_%d", n), eventOfSize(64<<10))); status != 204 {
						t.Errorf("status %d of a small delivery", status)
					}
				}
				senders.Wait() // until the deadline
				if count := seen.count(); count["503 deadline"] != 2 || count["503 overloaded"] != 8 || count[done] != 100 {
					t.Errorf("%v", count)
				}
				// The calls go on and hold their bodies.
				if status := deliver(h, delivery("again", eventOfSize(1<<20))); status != 503 {
					t.Errorf("status %d while the memory is in use", status)
				}
				close(release)
				synctest.Wait()
				if status := deliver(h, delivery("again", eventOfSize(1<<20))); status != 204 {
					t.Errorf("status %d after the memory was released", status)
				}
				shutDown(t, h)
			})
		})
	}
}

// connect opens a connection to a handler and sends the headers of a delivery of n bytes.
func connect(t *testing.T, listener *pipes, id string, n int) net.Conn {
	t.Helper()
	conn, err := listener.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nSvix-Id: %s\r\nContent-Length: %d\r\n\r\n", id, n)
	return conn
}

// readStatus returns the status code of a response, or an error message.
func readStatus(conn net.Conn) string {
	head := make([]byte, len("HTTP/1.1 204"))
	if _, err := io.ReadFull(conn, head); err != nil {
		return err.Error()
	}
	return string(head[len("HTTP/1.1 "):])
}

// Partly received bodies that together exceed the limit do not block each other.
func TestPartialBodiesMakeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHandler(t, webhooks.Unsigned, new(application), smallLimits()...)
		listener := newPipes()
		server := &http.Server{Handler: h}
		go server.Serve(listener)
		began := time.Now()
		var senders sync.WaitGroup
		for n := range 40 {
			senders.Go(func() {
				conn := connect(t, listener, fmt.Sprintf("msg_%d", n), 1<<20)
				defer conn.Close()
				senders.Go(func() {
					for rest := eventOfSize(1 << 20); rest != ""; rest = rest[32<<10:] {
						io.WriteString(conn, rest[:32<<10])
						time.Sleep(time.Millisecond)
					}
				})
				if status := readStatus(conn); status != "204" {
					t.Errorf("status %s", status)
				}
			})
		}
		senders.Wait()
		synctest.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		checkResults(t, seen, strings.Split(strings.Repeat("204 applied,", 39)+"204 applied", ",")...)
		server.Close()
		shutDown(t, h)
	})
}

// Partly received small bodies do not block each other either, with or without a Content-Length.
func TestPartialSmallBodiesMakeProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const size, step, senders = 60 << 10, 4 << 10, 200
	for _, limit := range []int64{64 << 10, 64<<10 + 1, 1 << 20} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("limit %d chunked %t", limit, chunked), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, seen := newHandler(t, webhooks.Unsigned, new(application), webhooks.WithBodyLimit(limit), webhooks.WithInFlightLimit(4*limit))
					listener := newPipes()
					server := &http.Server{Handler: h}
					go server.Serve(listener)
					length := fmt.Sprintf("Content-Length: %d", size)
					if chunked {
						length = "Transfer-Encoding: chunked"
					}
					var all sync.WaitGroup
					for n := range senders {
						all.Go(func() {
							conn, err := listener.Dial(t.Context(), "", "")
							if err != nil {
								t.Error(err)
								return
							}
							defer conn.Close()
							fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nSvix-Id: msg_%d\r\n%s\r\n\r\n", n, length)
							all.Go(func() {
								for rest := eventOfSize(size); rest != ""; rest = rest[step:] {
									if chunked {
										fmt.Fprintf(conn, "%x\r\n%s\r\n", step, rest[:step])
									} else {
										io.WriteString(conn, rest[:step])
									}
									time.Sleep(time.Millisecond)
								}
								if chunked {
									io.WriteString(conn, "0\r\n\r\n")
								}
							})
							readStatus(conn)
						})
					}
					all.Wait()
					synctest.Wait()
					if count := seen.count(); count["204 applied"] != senders {
						t.Errorf("%v", count)
					}
					server.Close()
					shutDown(t, h)
				})
			})
		}
	}
}

// panickingBody is a body, as of a middleware, that panics after some bytes.
type panickingBody struct{ left int }

func (b *panickingBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		panic(http.ErrAbortHandler)
	}
	n := min(b.left, len(p))
	b.left -= n
	return n, nil
}

func (*panickingBody) Close() error { return nil }

// A body that panics releases its memory.
func TestPanickingBodyIsReleased(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHandler(t, webhooks.Unsigned, new(application), smallLimits()...)
		for n := range 300 {
			func() {
				defer func() {
					if recover() != http.ErrAbortHandler {
						t.Error("the handler recovered the panic")
					}
				}()
				r := delivery(fmt.Sprintf("msg_%d", n), "")
				r.Body, r.ContentLength = &panickingBody{n << 11}, 1<<20
				deliver(h, r)
			}()
		}
		if status := deliver(h, delivery("large", eventOfSize(1<<20))); status != 204 {
			t.Errorf("status %d", status)
		}
		shutDown(t, h)
	})
}

// Senders that stop in the middle do not block small deliveries, and block large ones only until
// the deadline.
func TestSendersThatStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHandler(t, webhooks.Unsigned, new(application), smallLimits()...)
		listener := newPipes()
		server := &http.Server{Handler: h}
		go server.Serve(listener)
		var senders sync.WaitGroup
		var slow []net.Conn
		for n := range 100 {
			conn := connect(t, listener, fmt.Sprintf("slow_%d", n), 1<<20)
			slow = append(slow, conn)
			senders.Go(func() { io.WriteString(conn, eventOfSize(900<<10)) })
		}
		synctest.Wait()
		for n := range 1000 {
			if status := deliver(h, delivery(fmt.Sprintf("small_%d", n), glucoseEvent)); status != 204 {
				t.Fatalf("status %d of a small delivery", status)
			}
		}
		late := make(chan int)
		go func() { // before the others' deadline
			time.Sleep(5 * time.Second)
			began := time.Now()
			late <- deliver(h, delivery("late", eventOfSize(1<<20)))
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("it waited %s", took)
			}
		}()
		if status := <-late; status != 204 {
			t.Errorf("status %d of a large delivery that waited", status)
		}
		time.Sleep(5 * time.Second)
		for _, conn := range slow {
			conn.Close()
		}
		time.Sleep(time.Second) // net/http closes them half a second later
		count := seen.count()
		if count["503 overloaded"]+count["400 incomplete"] != 100 || count["204 applied"] != 1001 {
			t.Errorf("%v", count)
		}
		server.Close()
		senders.Wait()
		shutDown(t, h)
	})
}

// A shutdown does not wait for deliveries that wait for memory.
func TestShutdownWhileWaitingForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &application{do: func(ctx context.Context, _ *webhooks.Event) error { <-ctx.Done(); return ctx.Err() }}
		h, seen := newHandler(t, webhooks.Unsigned, app, smallLimits()...)
		var senders sync.WaitGroup
		for n := range 10 {
			senders.Go(func() { deliver(h, delivery(fmt.Sprintf("msg_%d", n), eventOfSize(1<<20))) })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		h.Shutdown(ctx)
		senders.Wait()
		if took := time.Since(began); took != time.Second || seen.count()["503 shutdown"] != 10 {
			t.Errorf("%v after %s", seen.count(), took)
		}
		shutDown(t, h)
	})
}

// A delivery that is rejected by its headers gets its response whether or not its body arrives. If
// it does, the connection serves the next delivery.
func TestRejectedByHeaders(t *testing.T) {
	verifier := newVerifier(t, vectorSecret)
	for _, test := range []struct {
		name string
		body string
		took time.Duration
		next string // status of a second delivery on the connection
	}{
		{"body arrives", glucoseEvent, 0, "401"},
		{"body does not arrive", "", 10 * time.Second, "EOF"},
		{"half a body arrives", glucoseEvent[:20], 10 * time.Second, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, err := webhooks.NewHandler(verifier, new(application).apply)
				if err != nil {
					t.Fatal(err)
				}
				listener := newPipes()
				server := &http.Server{Handler: h}
				go server.Serve(listener)
				conn := connect(t, listener, "msg_1", len(glucoseEvent))
				began := time.Now()
				go io.WriteString(conn, test.body)
				const want = "HTTP/1.1 401 Unauthorized"
				response := make([]byte, 4096)
				n, err := conn.Read(response)
				if err != nil || !strings.HasPrefix(string(response[:n]), want) || time.Since(began) != test.took {
					t.Errorf("%q %v after %s", response[:n], err, time.Since(began))
				}
				go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n")
				if status := readStatus(conn); status != test.next {
					t.Errorf("then %s, want %s", status, test.next)
				}
				conn.Close()
				server.Close()
				shutDown(t, h)
				time.Sleep(time.Second) // net/http closes a connection half a second later
			})
		})
	}
}

// Signed deliveries are accepted while many large forged ones arrive.
func TestSignedAmongForged(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	verifier := newVerifier(t, vectorSecret)
	h, seen := newHandler(t, verifier, new(application), smallLimits()...)
	server := httptest.NewServer(h)
	defer server.Close()
	client := server.Client()
	forged := eventOfSize(1 << 20)
	send := func(id, body, signature string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("svix-id", id)
		r.Header.Set("svix-timestamp", fmt.Sprint(time.Now().Unix()))
		r.Header.Set("svix-signature", signature)
		resp, err := client.Do(r)
		if err != nil {
			return 0 // the response can be lost while the body is being sent
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}

	var senders sync.WaitGroup
	for n := range 150 {
		senders.Go(func() {
			if status := send(fmt.Sprintf("forged_%d", n), forged, vectorSignature); status >= 200 && status <= 299 {
				t.Errorf("status %d of a forged delivery", status)
			}
		})
	}
	for n := range 200 {
		id := fmt.Sprintf("msg_%d", n)
		if status := send(id, glucoseEvent, sign(t, verifier, id, time.Now(), glucoseEvent)); status != 204 {
			t.Errorf("status %d", status)
		}
	}
	senders.Wait()
	shutDown(t, h)
	if n := seen.count()["204 applied"]; n != 200 {
		t.Errorf("%d were applied", n)
	}
}

// A delivery that waits for another one with its ID holds no memory.
func TestInFlightBytesOfDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		app := &application{do: func(context.Context, *webhooks.Event) error { <-hold; return nil }}
		h, _ := newHandler(t, webhooks.Unsigned, app)
		var senders sync.WaitGroup
		for range 3 {
			senders.Go(func() { deliver(h, delivery("msg_1", eventOfSize(100_000))) })
			synctest.Wait()
		}
		if got := h.InFlightBytes(); got != 100_000 {
			t.Errorf("%d bytes are in flight while two duplicates wait", got)
		}
		close(hold)
		senders.Wait()
		shutDown(t, h)
		if got := h.InFlightBytes(); got != 0 {
			t.Errorf("%d bytes are in flight at the end", got)
		}
	})
}

func TestInFlightBytes(t *testing.T) {
	called, hold := make(chan struct{}), make(chan struct{})
	h, err := webhooks.NewRawHandler(webhooks.Unsigned, func(context.Context, webhooks.RawDelivery) error {
		called <- struct{}{}
		<-hold
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want int64) {
		t.Helper()
		if got := h.InFlightBytes(); got != want {
			t.Errorf("%d bytes are in flight, want %d", got, want)
		}
	}
	expect(0)
	var done sync.WaitGroup
	for range 3 {
		done.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(eventOfSize(100_000))))
		})
		<-called
	}
	expect(300_000)
	close(hold)
	done.Wait()
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(0)
	for _, unusable := range []*webhooks.Handler{nil, {}} {
		if got := unusable.InFlightBytes(); got != 0 {
			t.Errorf("%d bytes are in flight without a handler", got)
		}
	}
}
