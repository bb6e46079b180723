package compare

import (
	"bufio"
	"encoding/json"
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

// serving is the variable of the environment that makes this program the service.
const (
	serving = "LABHEALTH_COMPARE_SERVE"
	apiKey  = "sk_test_0123456789"
	userCap = 500 // users on a page
)

// serve answers with orders and users until its input ends. It prints its address.
func serve() {
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, text []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text)
	}
	order := []byte(plain.OrderText(1))
	mux.HandleFunc("GET /v3/order/{id}", func(w http.ResponseWriter, _ *http.Request) { write(w, order) })
	mux.HandleFunc("GET /v2/user/", func(w http.ResponseWriter, r *http.Request) {
		offset, _ := strconv.Atoi(r.FormValue("offset"))
		total, _ := strconv.Atoi(os.Getenv(serving))
		write(w, plain.UserPageText(nil, offset, userCap, total))
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

// startService starts the service in a process of its own, with so many users, and returns its address.
func startService(b *testing.B, users int) string {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", serving, users))
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
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// clients are this module's and a bare one, which has the same limits in the least code: a time limit and a cap.
func clients(b *testing.B, address string) (*labhealth.Client, *http.Client) {
	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL(address))
	if err != nil {
		b.Fatal(err)
	}
	bare := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}
	b.Cleanup(func() { client.CloseIdleConnections(); bare.CloseIdleConnections() })
	return client, bare
}

// get is a call over bare net/http and encoding/json.
func get(c *http.Client, url string, v any) error {
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
	return json.Unmarshal(body, v)
}
