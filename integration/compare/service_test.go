package compare

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/plain"
)

const (
	// serving is the environment variable that makes this program the service: the number of users
	// and how long a page of users is on its way.
	serving  = "LABHEALTH_COMPARE_SERVE"
	apiKey   = "sk_test_0123456789"
	maxUsers = 500 // per page

	plainTimeout = 30 * time.Second // that of this module for a GET
)

// serve responds with orders and users until its input ends. It prints its base URL.
func serve() {
	var users int
	var link time.Duration
	if _, err := fmt.Sscan(os.Getenv(serving), &users, (*int64)(&link)); err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, document []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(document)))
		_, _ = w.Write(document)
	}
	order := []byte(plain.OrderJSON(1))
	mux.HandleFunc("GET /v3/order/{id}", func(w http.ResponseWriter, _ *http.Request) { write(w, order) })
	mux.HandleFunc("GET /v2/user/", func(w http.ResponseWriter, r *http.Request) {
		offset, _ := strconv.Atoi(r.FormValue("offset"))
		time.Sleep(link)
		write(w, plain.AppendUserPage(nil, offset, maxUsers, users))
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + l.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	panic(http.Serve(l, mux))
}

// startService starts the service in its own process and returns its base URL.
func startService(b *testing.B, users int, link time.Duration) string {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", serving, users, link))
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	baseURL, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(baseURL)
}

// clients returns a client of this module, and a plain one with the same limits.
func clients(b *testing.B, baseURL string) (*labhealth.Client, *http.Client) {
	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL(baseURL))
	if err != nil {
		b.Fatal(err)
	}
	plainClient := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: plainTimeout}
	b.Cleanup(func() { client.CloseIdleConnections(); plainClient.CloseIdleConnections() })
	return client, plainClient
}

// get makes a call with net/http.
func get(c *http.Client, url string, v any, unmarshal func([]byte, any) error) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("x-service-api-key", apiKey)
	req.Header.Set("Accept", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	return unmarshal(body, v)
}
