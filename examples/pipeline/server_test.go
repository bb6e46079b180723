package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// The tests use the nats-server that go.mod requires, with nats.conf, in the test process or, to be
// killed, in another one. Some also run on the one at LABHEALTH_TEST_NATS, which may be older.

// configure writes nats.conf with other addresses and another folder.
func configure(t testing.TB, dir, address, monitor string) (file string) {
	t.Helper()
	text, err := os.ReadFile("nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	for was, is := range map[string]string{"127.0.0.1:4222": address, "127.0.0.1:8222": monitor, "store_dir: nats-data": "store_dir: " + dir} {
		if strings.Count(config, was) != 1 {
			t.Fatalf("nats.conf does not have one %s", was)
		}
		config = strings.Replace(config, was, is, 1)
	}
	file = filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newServer(args ...string) (*server.Server, error) {
	none := func() {}
	options, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ContinueOnError), args, none, none, none)
	if err != nil {
		return nil, err
	}
	return server.NewServer(options)
}

// runServer runs nats-server until it is killed.
func runServer(args []string) int {
	s, err := newServer(args...)
	if err == nil {
		s.ConfigureLogger()
		err = server.Run(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.WaitForShutdown()
	return 0
}

// shared is the nats-server in the test process.
var shared struct {
	once    sync.Once
	server  *server.Server
	dir     string
	monitor string
}

// sharedServer starts nats-server if it does not run yet, and returns its address.
func sharedServer(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		var err error
		if shared.dir, err = os.MkdirTemp("", "labhealth-nats"); err != nil {
			t.Fatal(err)
		}
		if shared.server, err = newServer("-c", configure(t, shared.dir, "127.0.0.1:-1", "127.0.0.1:-1")); err != nil {
			t.Fatal(err)
		}
		shared.server.Start()
		shared.monitor = "http://" + shared.server.MonitorAddr().String()
	})
	if shared.server == nil || !shared.server.ReadyForConnections(time.Minute) {
		t.Fatal("nats-server does not start")
	}
	return shared.server.ClientURL()
}

func stopSharedServer() {
	if shared.server != nil {
		shared.server.Shutdown()
		shared.server.WaitForShutdown()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// brokers are the servers for tests of what brokers do.
func brokers(t testing.TB) map[string]string {
	all := map[string]string{"required": sharedServer(t)}
	if address := os.Getenv("LABHEALTH_TEST_NATS"); address != "" {
		all["installed"] = address
	}
	return all
}

// onBrokers runs a test on each of them.
func onBrokers(t *testing.T, test func(t *testing.T, at *place)) {
	t.Parallel()
	for name, address := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newPlaceOn(t, address))
		})
	}
}

// serverProcess is a nats-server that can be killed.
type serverProcess struct {
	program string // of another version, or empty for the required one
	args    []string
	address string // of the client port
	monitor string
	dir     string // for its files
	cmd     *exec.Cmd
}

// startServer starts the required nats-server with nats.conf, or another program without a
// configuration. The end of the test kills it.
func startServer(t testing.TB, program string) *serverProcess {
	t.Helper()
	return startServerWith(t, program, "")
}

// startServerWith adds a text to nats.conf.
func startServerWith(t testing.TB, program, more string) *serverProcess {
	t.Helper()
	client, monitor, dir := freePort(t), freePort(t), t.TempDir()
	s := &serverProcess{program: program, address: "nats://" + client, monitor: "http://" + monitor, dir: dir}
	if program == "" {
		file := configure(t, dir, client, monitor)
		s.args = []string{"-c", file}
		config, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, append(config, more...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		s.args = []string{"-js", "-a", "127.0.0.1", "-p", portOf(client), "-m", portOf(monitor), "-sd", dir}
	}
	s.start(t)
	t.Cleanup(func() { s.kill() })
	return s
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func (s *serverProcess) start(t testing.TB) {
	t.Helper()
	program := s.program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	s.cmd = exec.Command(program, s.args...)
	s.cmd.Env = append(os.Environ(), programVariable+"=nats-server")
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(s.address, "nats://")
	wait(t, time.Minute, "nats-server to listen", func() bool {
		conn, err := net.Dial("tcp", host)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (s *serverProcess) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// installedServer returns the program of the installed nats-server, or an empty string: if there is
// none, or only the required one is to be tested.
func installedServer() string {
	if os.Getenv("LABHEALTH_TEST_NATS") == "" {
		return ""
	}
	for _, name := range []string{"nats-server", "/usr/sbin/nats-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
