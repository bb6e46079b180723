//go:build unix

// Package postgrestest starts PostgreSQL servers for tests that kill them.
package postgrestest

import (
	"context"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Server is a PostgreSQL server of a test, which can be killed and started again.
type Server struct {
	URL string // of a database that a superuser can use without a password

	program string
	args    []string
	attr    *syscall.SysProcAttr
	process *os.Process
	exited  chan struct{} // closed when process has exited
}

// New creates and starts a server with further arguments. The end of the test stops and removes it.
// If PostgreSQL is not installed, New skips the test. The program must import the driver "pgx".
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Skip("there is no PostgreSQL on this machine to be killed")
	}
	dir, err := os.MkdirTemp("", "labhealth-postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{program: found[0], exited: make(chan struct{})}
	close(s.exited)
	if os.Getuid() == 0 { // PostgreSQL does not run as root
		account, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("there is no account for PostgreSQL")
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		s.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	data := filepath.Join(dir, "data")
	create := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(s.program), "initdb"),
		"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
	create.SysProcAttr, create.Dir = s.attr, dir
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port := freePort(t)
	s.URL = "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable"
	s.args = append([]string{"-D", data, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1"}, args...)
	t.Cleanup(func() {
		if s.process != nil {
			_ = s.process.Signal(syscall.SIGQUIT) // stops without a checkpoint
		}
		<-s.exited
	})
	s.Start(t)
	return s
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Start starts a server that was killed, and waits until it accepts connections. After a kill, its
// old processes may still exist for a moment, during which new ones exit.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	db, err := sql.Open("pgx", s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(50 * time.Millisecond) {
		select {
		case <-s.exited:
			s.launch(t)
		default:
		}
		if db.PingContext(t.Context()) == nil {
			return
		}
	}
	t.Fatal("PostgreSQL does not start")
}

func (s *Server) launch(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), s.program, s.args...)
	cmd.SysProcAttr = s.attr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.process, s.exited = cmd.Process, exited
}

// Kill kills the server without a warning. Its other processes notice that, and exit.
func (s *Server) Kill() {
	_ = s.process.Kill()
}
