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

// bounded are the options of a handler that takes bodies of 1 MiB and holds 4 MiB of them.
func bounded() []webhooks.HandlerOption {
	return []webhooks.HandlerOption{webhooks.WithBodyLimit(1 << 20), webhooks.WithInFlightLimit(4 << 20)}
}

// large is an event of n bytes.
func large(n int) string { return "{}" + strings.Repeat(" ", n-2) }

// count returns how often each result was reported.
func (a *answers) count() map[string]int {
	n := map[string]int{}
	for _, text := range a.results() {
		n[text]++
	}
	return n
}

// Bodies that the application holds count until it returns, whatever was answered; small deliveries have room all the same.
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
				seen := new(answers)
				opts := append(bounded(), webhooks.WithObserver(seen.add))
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
					senders.Go(func() { deliver(h, delivery(fmt.Sprintf("large_%d", n), large(1<<20))) })
					synctest.Wait()
				}
				for n := range 100 {
					if status := deliver(h, delivery(fmt.Sprintf("small_%d", n), large(64<<10))); status != 204 {
						t.Errorf("status %d of a small delivery", status)
					}
				}
				senders.Wait() // until the deadline
				if count := seen.count(); count["503 deadline"] != 2 || count["503 overloaded"] != 8 || count[done] != 100 {
					t.Errorf("%v", count)
				}
				// The calls go on and hold their bodies.
				if status := deliver(h, delivery("again", large(1<<20))); status != 503 {
					t.Errorf("status %d while the room is taken", status)
				}
				close(release)
				synctest.Wait()
				if status := deliver(h, delivery("again", large(1<<20))); status != 204 {
					t.Errorf("status %d after the room was returned", status)
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

func readStatus(conn net.Conn) (status string) {
	answer := make([]byte, 12)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err.Error()
	}
	return string(answer[9:])
}

// Bodies that are there in part and together take all of the room do not wait for each other until the deadline.
func TestPartialBodiesMakeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHandler(t, webhooks.Unsigned, new(application), bounded()...)
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
					for rest := large(1 << 20); rest != ""; rest = rest[32<<10:] {
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

// Neither do small ones, whatever the limits and whether or not the sender says how large they are.
func TestPartialSmallBodiesMakeProgress(t *testing.T) {
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
								for rest := large(size); rest != ""; rest = rest[step:] {
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

// panickingBody is a body that a middleware has wrapped, and that panics after some bytes.
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

// A body that panics gives back what it took.
func TestPanickingBodyIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHandler(t, webhooks.Unsigned, new(application), bounded()...)
		for n := range 300 {
			func() {
				defer func() {
					if recover() != http.ErrAbortHandler {
						t.Error("the panic was not passed on")
					}
				}()
				r := delivery(fmt.Sprintf("msg_%d", n), "")
				r.Body, r.ContentLength = &panickingBody{n << 11}, 1<<20
				deliver(h, r)
			}()
		}
		if status := deliver(h, delivery("large", large(1<<20))); status != 204 {
			t.Errorf("status %d", status)
		}
		shutDown(t, h)
	})
}

// Senders that stop in the middle keep out neither small deliveries, nor large ones for longer than the deadline.
func TestSendersThatStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHandler(t, webhooks.Unsigned, new(application), bounded()...)
		listener := newPipes()
		server := &http.Server{Handler: h}
		go server.Serve(listener)
		var senders sync.WaitGroup
		var slow []net.Conn
		for n := range 100 {
			conn := connect(t, listener, fmt.Sprintf("slow_%d", n), 1<<20)
			slow = append(slow, conn)
			senders.Go(func() { io.WriteString(conn, large(900<<10)) })
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
			late <- deliver(h, delivery("late", large(1<<20)))
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

// A shutdown does not wait for deliveries that wait for room.
func TestShutdownWhileWaitingForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &application{do: func(ctx context.Context, _ *webhooks.Event) error { <-ctx.Done(); return ctx.Err() }}
		h, seen := newHandler(t, webhooks.Unsigned, app, bounded()...)
		var senders sync.WaitGroup
		for n := range 10 {
			senders.Go(func() { deliver(h, delivery(fmt.Sprintf("msg_%d", n), large(1<<20))) })
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

// What is rejected by its headers is answered whether or not its body arrives, and the connection serves the next delivery if it does.
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
				const text = "HTTP/1.1 401 Unauthorized"
				response := make([]byte, 4096)
				n, err := conn.Read(response)
				if err != nil || !strings.HasPrefix(string(response[:n]), text) || time.Since(began) != test.took {
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

// Over the network: however many large bodies arrive at once that nobody signed, what the sender did sign gets through.
func TestSignedGetsThroughForged(t *testing.T) {
	verifier := newVerifier(t, vectorSecret)
	h, seen := newHandler(t, verifier, new(application), bounded()...)
	server := httptest.NewServer(h)
	defer server.Close()
	client := server.Client()
	forged := large(1 << 20)
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
