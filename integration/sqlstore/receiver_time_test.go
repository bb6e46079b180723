package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// noListener accepts no connection: tests with fake time have none.
type noListener chan struct{}

func (l noListener) Accept() (net.Conn, error) { <-l; return nil, net.ErrClosed }
func (l noListener) Close() error              { close(l); return nil }
func (noListener) Addr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// inTime is a Receiver on SQLite, and a service, with fake time.
type inTime struct {
	*sqlstore.Receiver
	service *labhealthtest.Server
	db      *sql.DB
	log     *logRecord
	end     func()
	ended   chan error
}

// startInTime starts a Receiver with the given options and the defaults of everything else.
func startInTime(t *testing.T, o sqlstore.ReceiverOptions) *inTime {
	t.Helper()
	service, err := labhealthtest.Start(labhealthtest.WithListener(make(noListener)))
	must(t, err)
	if o.Client == nil {
		o.Client = clientOf(t, service, service.APIKey)
	}
	o.Verifier = webhooks.Unsigned
	d := sqliteFile(t)
	db, err := sql.Open(d.driver, d.source)
	must(t, err)
	r, err := sqlstore.NewReceiver(db, d.dialect, o)
	must(t, err)
	s := &inTime{Receiver: r, service: service, db: db, ended: make(chan error, 1), log: logTo(t, r.Store)}
	go func() { s.ended <- r.Run(context.Background()) }()
	s.end = func() {
		must(t, r.Shutdown(context.Background()))
		service.Close()
		must(t, db.Close())
	}
	return s
}

func clientOf(t *testing.T, service *labhealthtest.Server, key string) *labhealth.Client {
	t.Helper()
	client, err := labhealth.NewClient(key, labhealth.WithBaseURL(service.URL), labhealth.WithHTTPClient(&http.Client{Transport: service.Direct()}))
	must(t, err)
	return client
}

// within waits until a line with the parts is in the log, in steps of a second.
func (s *inTime) within(t *testing.T, limit time.Duration, parts ...string) {
	t.Helper()
	start := time.Now()
	for time.Since(start) <= limit {
		for line := range strings.Lines(s.log.String()) {
			missing := false
			for _, part := range parts {
				missing = missing || !strings.Contains(line, part)
			}
			if !missing {
				t.Logf("after %v: %s", time.Since(start), line)
				return
			}
		}
		time.Sleep(time.Second)
	}
	t.Errorf("no line with %q in %v:\n%s", parts, limit, s.log)
}

func (s *inTime) completeOne(t *testing.T) uuid.UUID {
	t.Helper()
	id := s.service.AddOrders(1)[0]
	for {
		if _, err := s.service.Advance(id); err != nil {
			return id
		}
	}
}

// What only time reveals is told within ten seconds after it does.
func TestReceiverSaysInTimeWhyItFails(t *testing.T) {
	results := func(f func(context.Context) error) sqlstore.ReceiverOptions {
		return sqlstore.ReceiverOptions{OnResults: func(ctx context.Context, _ sqlstore.StoredResults) error { return f(ctx) }}
	}
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"a function hangs", func(t *testing.T) { // its limit is a minute
			hang := make(chan struct{})
			var called sync.Once
			began := make(chan struct{})
			s := startInTime(t, results(func(context.Context) error { called.Do(func() { close(began) }); <-hang; return nil }))
			s.within(t, 5*time.Second, "has started")
			time.Sleep(2 * time.Second)
			s.completeOne(t)
			<-began
			s.within(t, 70*time.Second, "WARN", "ignores its context and does not return")
			close(hang)
			s.end()
		}},
		{"a function is slow", func(t *testing.T) {
			s := startInTime(t, results(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
			s.within(t, 5*time.Second, "has started")
			time.Sleep(2 * time.Second)
			s.completeOne(t)
			s.within(t, 6*time.Minute+10*time.Second, "WARN", "fails", `reason="it took too long"`) // 5 min until it is read, 1 min for the call
			s.end()
		}},
		{"OnEvent hangs", func(t *testing.T) { // the limit of a transaction is a minute
			hang := make(chan struct{})
			s := startInTime(t, sqlstore.ReceiverOptions{OnEvent: func(context.Context, *sql.Tx, *webhooks.Event) error { <-hang; return nil }})
			s.within(t, 5*time.Second, "has started")
			must(t, s.Store.Receive(t.Context(), heartrates("a", 1, "60")))
			s.within(t, 70*time.Second, "WARN", "Worker.Apply or OnEvent ignores its context")
			close(hang)
			s.end()
		}},
		{"nothing is delivered", func(t *testing.T) {
			s := startInTime(t, results(func(context.Context) error { return nil }))
			for range 20 { // 100 minutes
				s.completeOne(t)
				time.Sleep(5 * time.Minute)
			}
			s.within(t, 0, "WARN", "the Store has received no delivery for an hour")
			if n := strings.Count(s.log.String(), "no delivery for an hour"); n != 1 {
				t.Errorf("%d warnings", n)
			}
			s.end()
		}},
		{"the key is rejected", func(t *testing.T) {
			service, err := labhealthtest.Start(labhealthtest.WithListener(make(noListener)))
			must(t, err)
			s := startInTime(t, sqlstore.ReceiverOptions{Client: clientOf(t, service, "sk_wrong")})
			s.within(t, 10*time.Second, "WARN", "cannot read from the service", "401 Unauthorized")
			start := time.Now()
			if err := <-s.ended; !errors.Is(err, labhealth.ErrUnauthorized) || time.Since(start) > 100*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			s.within(t, 0, "ERROR", "the Receiver has stopped", "401 Unauthorized")
			s.end()
			service.Close()
		}},
		{"the key is rejected after a restart", func(t *testing.T) {
			s := startInTime(t, results(func(context.Context) error { return nil }))
			s.within(t, 5*time.Second, "has started")
			time.Sleep(time.Minute)
			must(t, s.Receiver.Shutdown(context.Background()))
			r, err := sqlstore.NewReceiver(s.db, sqlstore.SQLite, sqlstore.ReceiverOptions{Verifier: webhooks.Unsigned, Client: clientOf(t, s.service, "sk_wrong"), Logger: s.Store.Logger})
			must(t, err)
			go r.Run(context.Background())
			s.within(t, 10*time.Second, "WARN", "cannot read from the service", "401 Unauthorized")
			must(t, r.Shutdown(context.Background()))
			s.end()
		}},
		{"other functions in another process", func(t *testing.T) {
			s := startInTime(t, results(func(context.Context) error { return nil }))
			s.within(t, 5*time.Second, "has started")
			r, err := sqlstore.NewReceiver(s.db, sqlstore.SQLite, sqlstore.ReceiverOptions{Verifier: webhooks.Unsigned, Client: clientOf(t, s.service, s.service.APIKey), Logger: s.Store.Logger})
			must(t, err)
			go r.Run(context.Background())
			s.within(t, 10*time.Second, "WARN", "another process that writes to this database has reactions to other kinds of changes", "this=[] other=[results]")
			s.within(t, 70*time.Second, "WARN", "another process that writes to this database has reactions to other kinds of changes", "this=[results] other=[]")
			must(t, r.Shutdown(context.Background()))
			s.end()
		}},
		{"no Reactor", func(t *testing.T) { // reactions may wait for five minutes
			s := startInTime(t, sqlstore.ReceiverOptions{})
			s.within(t, 5*time.Second, "has started")
			s.end()
			d := sqliteFile(t)
			db, err := sql.Open(d.driver, d.source)
			must(t, err)
			store, err := sqlstore.Open(db, d.dialect)
			must(t, err)
			store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactSamples}
			store.Logger = s.Store.Logger
			must(t, store.Migrate(t.Context()))
			must(t, store.Receive(t.Context(), heartrates("a", 1, "60")))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- (&sqlstore.Worker{Store: store}).Run(ctx) }()
			s.within(t, 7*time.Minute, "WARN", "reactions wait for more than five minutes: does a Reactor run")
			cancel()
			<-ended
			must(t, db.Close())
		}},
	} {
		t.Run(test.name, func(t *testing.T) { t.Parallel(); synctest.Test(t, test.run) })
	}
}
