package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go"
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "labhealth-test-*")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	// The tests neither see nor change the files of the user.
	os.Setenv("XDG_STATE_HOME", dir)
	code := m.Run()
	closeBrowser()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		return 1
	}
	return code
}

// box is a sandbox that a test runs.
type box struct {
	sandboxState

	t      *testing.T
	errors *lockedBuffer
	stop   func() int // interrupts it and returns the exit code
}

// startBox runs the command sandbox, as a user does, until the test completes or calls stop.
func startBox(t *testing.T, args ...string) *box {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	b := &box{t: t, errors: &lockedBuffer{}}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"sandbox", "--addr", "127.0.0.1:0", "--json"}, args...), streams{strings.NewReader(""), in, b.errors})
		in.Close()
	}()
	b.stop = sync.OnceValue(func() int {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if code := b.stop(); code != 0 {
			t.Errorf("the sandbox ended with %d: %s", code, b.errors)
		}
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the sandbox did not start: %s", b.errors)
	}
	if err := json.Unmarshal(line, b); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	return b
}

// client returns a client of the sandbox, as an application has it.
func (b *box) client() *labhealth.Client {
	b.t.Helper()
	transport := &http.Transport{}
	b.t.Cleanup(transport.CloseIdleConnections)
	c, err := labhealth.NewClient(b.APIKey, labhealth.WithBaseURL(b.URL), labhealth.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// call sends a request with the key of the team and decodes the response.
func (b *box) call(method, path, body string, v any) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("x-service-api-key", b.APIKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp := roundTrip(b.t, req)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode >= 300 {
		b.t.Fatalf("%s %s: status %d: %s", method, path, resp.StatusCode, text)
	}
	if v != nil {
		if err := json.Unmarshal(text, v); err != nil {
			b.t.Fatal(err)
		}
	}
}

// roundTrip follows no redirect and keeps no connection.
func roundTrip(t *testing.T, req *http.Request) *http.Response {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// lockedBuffer can be written and read at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
