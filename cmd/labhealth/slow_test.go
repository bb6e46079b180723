package main

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A body that does not arrive is not waited for, whether the request is processed or rejected
// before it is read.
func TestSlowBodies(t *testing.T) {
	defer func(d time.Duration) { bodyTime = d }(bodyTime)
	bodyTime = 300 * time.Millisecond
	t.Setenv(secretVariable, listenSecret)
	b := startBox(t, "--users", "1", "--orders", "1")
	public := startBox(t, "--users", "1", "--orders", "0", "--public", "--addr", net.JoinHostPort(publicAddress(t), "0"))
	l := startListen(t, "--file", filepath.Join(t.TempDir(), "d.db"))
	var running sync.WaitGroup
	defer running.Wait()
	key := "x-service-api-key: " + b.APIKey
	for _, c := range []struct{ name, url, line, header string }{
		{"operation", b.URL, "POST /v3/order", key},
		{"no key", b.URL, "POST /v3/order", "X-Nothing: 1"},
		{"no operation", b.URL, "POST /nothing", key},
		{"GET", b.URL, "GET /v2/user/", key},
		{"console", b.URL, "POST /console/orders", "X-Nothing: 1"},
		{"proof", b.URL, "POST " + proofPath, "X-Nothing: 1"},
		{"foreign host", b.URL, "POST /v3/order", "X-Nothing: 1\r\nHost: attacker.example"},
		{"public", public.URL, "POST /v3/order", key},
		{"public, local", public.LocalURL, "POST /v3/order", key},
		{"receiver", l.Receiver, "POST /webhooks", "X-Nothing: 1"},
		{"receiver, GET", l.Receiver, "GET /webhooks", "X-Nothing: 1"},
		{"receiver, website", l.Receiver, "POST /webhooks", "Origin: http://attacker.example"},
		{"receiver, console", l.Receiver, "POST /console/deliveries", "X-Nothing: 1"},
	} {
		for _, body := range []string{"Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\n{", "Content-Length: 9000000\r\n\r\n{"} {
			running.Go(func() {
				address := strings.TrimPrefix(c.url, "http://")
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				host := "Host: " + address + "\r\n"
				if strings.Contains(c.header, "Host:") {
					host = ""
				}
				fmt.Fprintf(conn, "%s HTTP/1.1\r\n%s%s\r\n%s", c.line, host, c.header, body)
				conn.SetReadDeadline(time.Now().Add(20 * time.Second))
				if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
					t.Errorf("%s, %.20q: the connection stays open", c.name, body)
				}
			})
		}
	}
}

// A body that arrives slowly, but in time, is read, and the time is not that of the response.
func TestSlowResponse(t *testing.T) {
	defer func(d time.Duration) { bodyTime = d }(bodyTime)
	bodyTime = time.Second
	t.Setenv(secretVariable, listenSecret)
	app, _, _ := application(t, listenSecret)
	l := startListen(t, "--file", filepath.Join(t.TempDir(), "d.db"), "--forward", app)
	for range 2 {
		if status := post(t, l.Receiver, "", nil, listenSecret, `{"event_type":"x","data":{}}`); status != 200 {
			t.Error(status)
		}
	}
}
