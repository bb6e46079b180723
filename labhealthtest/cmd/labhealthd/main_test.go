package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the program until stop is called. It returns the printed values by name.
func start(t *testing.T, args ...string) (printed map[string]string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), in, io.Discard)
		in.CloseWithError(err)
		done <- err
	}()
	printed = map[string]string{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "  ")
		printed[name] = strings.TrimSpace(value)
		if name == "try" {
			break
		}
	}
	go io.Copy(io.Discard, out)
	return printed, func() error {
		cancel()
		return <-done
	}
}

func get(t *testing.T, printed map[string]string, path string, v any) {
	t.Helper()
	call(t, printed, http.MethodGet, path, v)
}

func call(t *testing.T, printed map[string]string, method, path string, v any) {
	t.Helper()
	req, err := http.NewRequest(method, printed["base URL"]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-service-api-key", printed["key"])
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d", path, resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	events := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var event struct {
			Type string `json:"event_type"`
		}
		json.NewDecoder(r.Body).Decode(&event)
		events <- event.Type
	}))
	defer receiver.Close()
	printed, stop := start(t, "-users", "7", "-orders", "30", "-deliver", receiver.URL)
	if printed["holds"] != "7 users, 30 orders" || !strings.Contains(printed["try"], printed["base URL"]+"/v2/user/") {
		t.Errorf("printed %v", printed)
	}
	if len(printed["debug"]) < 32 {
		t.Errorf("debug token %q", printed["debug"])
	}
	var users struct{ Total int }
	get(t, printed, "/v2/user/", &users)
	var orders struct {
		Total  int
		Orders []struct{ ID, Status string }
	}
	get(t, printed, "/orders", &orders)
	var stream struct{ Time []int64 }
	get(t, printed, "/v2/timeseries/workouts/"+printed["workout"]+"/stream", &stream)
	if users.Total != 7 || orders.Total != 30 || len(stream.Time) != 600 {
		t.Errorf("%d users, %d orders, %d seconds", users.Total, orders.Total, len(stream.Time))
	}
	var received string
	states := map[string]bool{}
	for _, o := range orders.Orders {
		states[o.Status] = true
		if o.Status == "received" {
			received = o.ID
		}
	}
	for _, state := range []string{"received", "collecting_sample", "sample_with_lab", "completed", "cancelled"} {
		if !states[state] {
			t.Errorf("no order is %s", state)
		}
	}
	var result string
	call(t, printed, http.MethodPost, "/v3/order/"+received+"/test", &result)
	if event := <-events; result != "Success" || event != "labtest.order.updated" {
		t.Errorf("response %q, event %s", result, event)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(printed["base URL"], "http://")); err == nil {
		conn.Close()
		t.Error("the server still listens")
	}
}

// The key depends on the seed. Seed 0 is random.
func TestSeed(t *testing.T) {
	var keys []string
	for _, args := range [][]string{nil, nil, {"-seed", "0"}, {"-seed", "2"}} {
		printed, stop := start(t, append(args, "-users", "0", "-orders", "0")...)
		keys = append(keys, printed["key"])
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if keys[0] != keys[1] || keys[0] == keys[2] || keys[0] == keys[3] || keys[2] == keys[3] || keys[0] == "" {
		t.Error(keys)
	}
}

func TestInvalidArguments(t *testing.T) {
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"-addr", occupied.Addr().String()}, {"-addr", "nowhere"}, {"-deliver", "ftp://example.com", "-addr", "127.0.0.1:0"}, {"now"}, {"-users", "many"},
	} {
		if err := run(ctx, args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	if err := run(ctx, []string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}
