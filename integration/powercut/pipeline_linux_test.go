package powercut_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The example loses no delivery to which a receiver has responded with a 2xx: each is in the stream
// or applied, and in the end applied. The receivers, the workers and nats-server are programs of
// their own, which the test knows by their flags, their addresses and their tables only.
func testPipeline(t *testing.T, program built) {
	for _, test := range []struct {
		experiment
		onDisk bool  // PostgreSQL too
		limit  int64 // bytes of the stream
		always bool
	}{
		{experiment{name: "PostgreSQL elsewhere", cuts: 4, many: 700}, false, 0, true},
		{experiment{name: "PostgreSQL elsewhere, files of 32 kB", many: 300}, false, 128_000, true},
		{experiment{name: "PostgreSQL on the same disk", many: 300}, true, 0, true},
		{experiment{name: "default sync_interval, not monitored", many: 20, unsafe: true}, false, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.cuts == 0 && !long {
				t.Skip("LABHEALTH_TEST_LONG is not set")
			}
			e := test.experiment
			var dir string
			e.disk, dir = newServerDisk(t)
			p := newPipeline(t, program, dir, test.onDisk, test.limit, test.always)
			e.system, e.span, e.copies = p, 600, true
			e.name = "pipeline, " + e.name
			e.run(t)
			t.Logf("%d copies of first deliveries were found in the stream, and at the end %d messages that were applied", p.copies, p.left)
		})
	}
}

// A receiver rejects deliveries if the broker does not sync what it acknowledges, and says which
// version it needs.
func rejects(t *testing.T, program built, broker string) {
	t.Helper()
	s := newNATS(t, t.TempDir(), natsRules{program: broker})
	t.Cleanup(s.stop)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.createStream(ctx, 0); err != nil {
		t.Fatal(err)
	}
	p := &pipeline{program: program.pipeline, nats: s, monitors: true}
	t.Cleanup(p.stopPrograms)
	r := &p.receivers[0]
	if err := p.startReceiver(ctx, r); err != nil {
		t.Fatal(err)
	}
	if _, err := r.running.prints(ctx, "it needs sync_interval: always, and nats-server 2.10 or later"); err != nil {
		t.Fatal(err)
	}
	status, err := p.post(ctx, r.url, 1)
	if status != http.StatusServiceUnavailable || err != nil {
		t.Errorf("status %d, %v, want 503", status, err)
	}
	if stored, _, err := s.messages(ctx); len(stored) > 0 || err != nil {
		t.Errorf("%v, %v", stored, err)
	}
}

// pipeline is the example: two receivers, a nats-server on the disk, a worker and PostgreSQL.
type pipeline struct {
	program   string
	monitors  bool // whether receivers verify what the broker is configured to do
	limit     int64
	nats      *natsServer
	postgres  *postgresServer
	onDisk    bool // PostgreSQL too
	db        *sql.DB
	receivers [2]receiver
	worker    *server
	kills     int
	copies    int // messages that were published again, as found after cuts
	left      int // messages that were acknowledged and are in the stream at the end of lives
}

// receiver is one of the processes that receive.
type receiver struct {
	running *server
	url     string
}

func newPipeline(t *testing.T, program built, dir string, onDisk bool, limit int64, always bool) *pipeline {
	t.Helper()
	p := &pipeline{program: program.pipeline, monitors: always, limit: limit, onDisk: onDisk}
	p.nats = newNATS(t, dir, natsRules{program: program.nats, always: always})
	if onDisk {
		p.postgres = newPostgres(t, dir)
	} else {
		p.postgres = newPostgres(t, publicDir(t), "fsync=off") // it is not killed
	}
	db, err := sql.Open("pgx", p.postgres.url())
	if err != nil {
		t.Fatal(err)
	}
	p.db = db
	t.Cleanup(func() {
		p.stop()
		p.postgres.stop()
		_ = db.Close() // the server is gone
	})
	return p
}

func (p *pipeline) prepare(ctx context.Context) error {
	if err := p.postgres.create(ctx); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	if err := p.nats.createStream(ctx, p.limit); err != nil {
		return err
	}
	if err := p.serve(ctx); err != nil {
		return err
	}
	tables := func() (bool, error) {
		_, err := p.db.ExecContext(ctx, "SELECT value FROM labhealth_samples LIMIT 1")
		return err == nil, err
	}
	if err := poll(ctx, tables); err != nil {
		return err
	}
	p.stopPrograms()
	p.nats.stop()
	if p.onDisk {
		return p.postgres.shutDown()
	}
	return nil
}

func (p *pipeline) start(ctx context.Context) error {
	return errors.Join(p.nats.start(ctx), p.postgres.start(ctx, p.db))
}

func (p *pipeline) serve(ctx context.Context) error {
	if !p.worker.runs() {
		p.worker.end()
		var err error
		if p.worker, err = p.launch("worker", "-role", "work", "-postgres", p.postgres.url(), "-ack-wait", "1s"); err != nil {
			return err
		}
	}
	for i := range p.receivers {
		if err := p.startReceiver(ctx, &p.receivers[i]); err != nil {
			return err
		}
	}
	return nil
}

// secret signs the deliveries.
const secret = "whsec_bGFiaGVhbHRoLXBvd2VyY3V0LXRlc3Qtc2VjcmV0"

func (p *pipeline) launch(name string, args ...string) (*server, error) {
	cmd := exec.Command(p.program, append([]string{"-nats", p.nats.url(), "-admin", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "LABHEALTH_WEBHOOK_SECRET="+secret)
	return launch(name, cmd)
}

func (p *pipeline) startReceiver(ctx context.Context, r *receiver) (err error) {
	if r.running.runs() {
		return nil
	}
	r.running.end()
	args := []string{"-role", "receive", "-addr", "127.0.0.1:0"}
	if p.monitors {
		args = append(args, "-nats-monitor", "http://127.0.0.1:"+p.nats.monitor)
	}
	if r.running, err = p.launch("receiver", args...); err != nil {
		return err
	}
	line, err := r.running.prints(ctx, "msg=running role=receive events=")
	if err != nil {
		return err
	}
	address, _, _ := strings.Cut(line, " ")
	r.url = "http://" + address + "/events"
	return nil
}

// kill kills the servers that write to the disk, and some of the other processes.
func (p *pipeline) kill() {
	p.kills++
	p.nats.kill()
	if p.onDisk {
		p.postgres.kill()
	}
	for i, other := range []*server{p.receivers[0].running, p.receivers[1].running, p.worker} {
		if p.kills>>i&1 == 1 {
			other.kill()
		}
	}
}

func (p *pipeline) stopPrograms() {
	for i := range p.receivers {
		p.receivers[i].running.end()
		p.receivers[i].running = nil
	}
	p.worker.end()
	p.worker = nil
}

func (p *pipeline) stop() {
	p.nats.kill() // all at once
	if p.onDisk {
		p.postgres.stop()
	}
	p.stopPrograms()
	p.nats.stop()
}

// deliver sends a delivery to a receiver, and to the other one if that does not accept it.
func (p *pipeline) deliver(ctx context.Context, n int) error {
	var problem error
	for i := range p.receivers {
		status, err := p.post(ctx, p.receivers[(n+i)%2].url, n)
		switch {
		case err != nil:
			problem = err
		case status >= 200 && status <= 299:
			return nil
		default:
			problem = fmt.Errorf("status %d", status)
		}
	}
	select { // else those that nobody accepts would take all the time
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
	}
	return problem
}

// post sends a signed delivery and returns the status of the response.
func (p *pipeline) post(ctx context.Context, url string, n int) (status int, err error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return 0, err
	}
	padding := 0
	if n%8 == 7 { // so that the stream has several files
		padding = 20_000
	}
	body, now := sampleOf(n, padding), strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", idOf(n), now, body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("webhook-id", idOf(n))
	req.Header.Set("webhook-timestamp", now)
	req.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (p *pipeline) stored(ctx context.Context, first int) (map[int]int, error) {
	inStream, copies, err := p.nats.messages(ctx)
	if err != nil {
		return nil, err
	}
	p.copies += copies
	inInbox, err := p.inInbox(ctx)
	if err != nil {
		return nil, err
	}
	applied, err := p.applied(ctx, first)
	return merged(merged(inStream, inInbox), applied), err
}

// inInbox returns the deliveries that wait in the database: batches that took too long.
func (p *pipeline) inInbox(ctx context.Context) (map[int]int, error) {
	rows, err := p.db.QueryContext(ctx, "SELECT delivery_id FROM labhealth_inbox")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	waiting := map[int]int{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		n, err := numberOf(id)
		if err != nil {
			return nil, err
		}
		waiting[n]++
	}
	return waiting, rows.Err()
}

func (p *pipeline) applied(ctx context.Context, first int) (map[int]int, error) {
	rows, err := p.db.QueryContext(ctx, "SELECT value FROM labhealth_samples WHERE at >= $1", firstSample.Add(time.Duration(first)*time.Second).UnixNano())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	applied := map[int]int{}
	for rows.Next() {
		var value float64
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		applied[int(value)]++
	}
	return applied, rows.Err()
}

// finish waits until nothing is pending for the worker. A broker that was killed may keep messages
// that were acknowledged: then they are not pending, and are applied.
func (p *pipeline) finish(ctx context.Context, first int) (map[int]int, error) {
	var state jetstream.StreamState
	var workers *jetstream.ConsumerInfo
	err := poll(ctx, func() (bool, error) {
		stream, err := p.nats.js.Stream(ctx, streamName)
		if err != nil {
			return false, err
		}
		consumer, err := stream.Consumer(ctx, "workers")
		if err != nil {
			return false, err
		}
		inInbox, err := p.inInbox(ctx)
		if err != nil {
			return false, err
		}
		state, workers = stream.CachedInfo().State, consumer.CachedInfo()
		return workers.NumPending == 0 && workers.NumAckPending == 0 && len(inInbox) == 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the stream: %+v, the consumer: %+v, the worker: %s", err, state, workers, p.worker.log.last())
	}
	p.left += int(state.Msgs)
	return p.applied(ctx, first)
}
