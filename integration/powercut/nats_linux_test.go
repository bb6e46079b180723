package powercut_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nats-server loses nothing that it acknowledged with sync_interval: always, except what it
// acknowledged as a duplicate: a process that was killed has written that, and perhaps not synced.
// With its default it loses everything since the last sync. So does the one of Debian 12, which has
// no other setting. The example loses nothing with sync_interval: always.
func TestNATS(t *testing.T) {
	skipShort(t)
	program := programs(t)
	t.Run("server", func(t *testing.T) { testServer(t, program) })
	t.Run("pipeline", func(t *testing.T) { testPipeline(t, program) })
	t.Run("rejected default", func(t *testing.T) { rejects(t, program, program.nats) })
	t.Run("rejected version", func(t *testing.T) { rejects(t, program, installedNATS(t)) })
}

// Published by the test itself.
func testServer(t *testing.T, program built) {
	for _, test := range []struct {
		experiment
		rules natsRules
	}{
		{experiment{name: "sync_interval: always", cuts: 8, many: 1000}, natsRules{program: program.nats, always: true}},
		{experiment{name: "default", cuts: 50, many: 50, unsafe: true}, natsRules{program: program.nats}},
		{experiment{name: "a duplicate counts as stored", many: 300, unsafe: true}, natsRules{program: program.nats, always: true, duplicates: true}},
		{experiment{name: "before 2.10", many: 50, unsafe: true}, natsRules{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.cuts == 0 && !long {
				t.Skip("LABHEALTH_TEST_LONG is not set")
			}
			if test.rules.program == "" {
				test.rules.program = installedNATS(t)
			}
			e := test.experiment
			var dir string
			e.disk, dir = newServerDisk(t)
			e.system, e.span = newPublisher(t, dir, test.rules), 600
			e.name = "nats-server, " + e.name
			e.run(t)
		})
	}
}

// built are the programs of the example that these tests run.
type built struct{ nats, pipeline string }

// programs builds the example and the nats-server that it requires.
func programs(t *testing.T) built {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", "../../examples/pipeline", "-o", dir+"/", ".", "github.com/nats-io/nats-server/v2")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return built{nats: filepath.Join(dir, "nats-server"), pipeline: filepath.Join(dir, "pipeline")}
}

// installedNATS returns the nats-server of the machine. It skips the test if there is none that is
// older than 2.10.
func installedNATS(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nats-server", "/usr/sbin/nats-server"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(t.Context(), path, "-v").Output()
		if err == nil && bytes.Contains(out, []byte("v2.9.")) {
			return path
		}
	}
	t.Skip("there is no nats-server before 2.10 on this machine")
	return ""
}

// natsRules are what differs between the tests of nats-server.
type natsRules struct {
	program    string
	always     bool // sync_interval: always
	duplicates bool // what is acknowledged as a duplicate counts as stored
}

// natsServer is a nats-server with JetStream.
type natsServer struct {
	program       string
	config        string
	port, monitor string
	running       *server
	conn          *nats.Conn
	js            jetstream.JetStream
}

// newNATS returns a server that stores its streams in a folder.
func newNATS(t *testing.T, dir string, rules natsRules) *natsServer {
	t.Helper()
	s := &natsServer{program: rules.program, port: fixedPort(t), monitor: fixedPort(t), config: filepath.Join(t.TempDir(), "nats.conf")}
	always := ""
	if rules.always {
		always = "sync_interval: always"
	}
	text := fmt.Sprintf("listen: 127.0.0.1:%s\nhttp: 127.0.0.1:%s\njetstream {\n  store_dir: %q\n  max_file_store: 1G\n  max_memory_store: 64M\n  %s\n}\n",
		s.port, s.monitor, filepath.Join(dir, "nats"), always)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *natsServer) url() string { return "nats://127.0.0.1:" + s.port }

// start starts a server that does not run, and connects to it.
func (s *natsServer) start(ctx context.Context) (err error) {
	if s.running.runs() {
		return nil
	}
	s.stop()
	if s.running, err = launch("nats-server", exec.Command(s.program, "-c", s.config)); err != nil {
		return err
	}
	err = s.running.until(ctx, func() error {
		s.conn, err = nats.Connect(s.url(), nats.NoReconnect())
		return err
	})
	if err != nil {
		return err
	}
	if s.js, err = jetstream.New(s.conn); err != nil {
		return err
	}
	return s.running.until(ctx, func() error { // it listens before JetStream is ready
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := s.js.AccountInfo(ctx)
		return err
	})
}

func (s *natsServer) kill() { s.running.kill() }

func (s *natsServer) stop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	s.running.end()
	s.running = nil
}

// streamName is the name of the stream, which is the default of the example.
const streamName = "events"

// createStream creates the stream as the example does. A limit of bytes, which an operator may
// set, makes files of 32 kB instead of 4 MB.
func (s *natsServer) createStream(ctx context.Context, limit int64) error {
	config := jetstream.StreamConfig{Name: streamName, Subjects: []string{streamName + ".>"}, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: 1, Duplicates: 3 * time.Hour, MaxBytes: limit}
	_, err := s.js.CreateStream(ctx, config)
	return err
}

// copyHeader has the ID of a delivery that the example has published again.
const copyHeader = "Delivery-Id"

// messages returns how often each delivery is in the stream, and how many of these are copies that
// the example made.
func (s *natsServer) messages(ctx context.Context) (stored map[int]int, copies int, err error) {
	stream, err := s.js.Stream(ctx, streamName)
	if err != nil {
		return nil, 0, err
	}
	stored = map[int]int{}
	state := stream.CachedInfo().State
	sequences := make(chan uint64)
	var mu sync.Mutex
	var reading sync.WaitGroup
	for range 8 {
		reading.Go(func() {
			for sequence := range sequences {
				id, isCopy, failed := readID(ctx, stream, sequence)
				mu.Lock()
				if failed == nil && id != "" {
					var n int
					n, failed = numberOf(id)
					stored[n]++
				}
				if isCopy {
					copies++
				}
				err = errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	for n := max(state.FirstSeq, 1); n <= state.LastSeq; n++ {
		sequences <- n
	}
	close(sequences)
	reading.Wait()
	return stored, copies, err
}

// readID returns the ID of the delivery in a message; empty if the message was removed.
func readID(ctx context.Context, stream jetstream.Stream, sequence uint64) (id string, isCopy bool, err error) {
	msg, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if id = msg.Header.Get(copyHeader); id != "" {
		return id, true, nil
	}
	return msg.Header.Get(jetstream.MsgIDHeader), false, nil
}

// publisher publishes deliveries to a nats-server itself.
type publisher struct {
	*natsServer
	rules natsRules
}

func newPublisher(t *testing.T, dir string, rules natsRules) *publisher {
	t.Helper()
	p := &publisher{natsServer: newNATS(t, dir, rules), rules: rules}
	t.Cleanup(p.stop)
	return p
}

func (p *publisher) prepare(ctx context.Context) error {
	if err := p.start(ctx); err != nil {
		return err
	}
	defer p.stop()
	return p.createStream(ctx, 0)
}

func (p *publisher) serve(context.Context) error { return nil }

// errDuplicate is returned for a delivery that may be stored or not. It is not sent again.
var errDuplicate = errors.New("the delivery is a duplicate")

func (p *publisher) deliver(ctx context.Context, n int) error {
	size := 300
	if n%8 == 7 { // so that the stream has several files, of 4 MB
		size = 30_000
	}
	msg := &nats.Msg{Subject: streamName + ".00.x", Data: bytes.Repeat([]byte("x"), size), Header: nats.Header{jetstream.MsgIDHeader: {idOf(n)}}}
	ack, err := p.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	if err == nil && ack.Duplicate && !p.rules.duplicates {
		return errDuplicate
	}
	return err
}

func (p *publisher) stored(ctx context.Context, _ int) (map[int]int, error) {
	stored, _, err := p.messages(ctx)
	return stored, err
}

func (p *publisher) finish(ctx context.Context, first int) (map[int]int, error) {
	return p.stored(ctx, first)
}
