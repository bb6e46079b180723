package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// receiver takes deliveries, and acknowledges each when it is stored: by the broker, or in the inbox of the database.
type receiver struct {
	handler *webhooks.Handler
	server  *http.Server
}

func (p *pipeline) receive(failed chan<- error) (*receiver, error) {
	verifier := webhooks.Unsigned
	if p.unsigned {
		p.log.Warn("everybody who knows the address is believed")
	} else {
		var err error
		if verifier, err = webhooks.NewVerifier(p.secrets...); err != nil {
			return nil, errors.New("LABHEALTH_WEBHOOK_SECRET: " + err.Error()) // which never quotes it
		}
	}
	var store func(context.Context, webhooks.RawDelivery) error
	if p.broker != nil {
		store = p.broker.publish
	} else {
		store = p.store.Receive
	}
	handler, err := webhooks.NewRawHandler(verifier, store,
		webhooks.WithBodyLimit(bodyLimit), webhooks.WithObserver(p.metrics.observe), webhooks.WithLogger(p.log))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/events", handler)
	server, err := p.serve(p.addr, mux, failed)
	return &receiver{handler, server}, err
}

// address is where it listens.
func (r *receiver) address() string {
	if r == nil {
		return ""
	}
	return r.server.Addr
}

func (r *receiver) shutdown(ctx context.Context) error {
	return errors.Join(r.server.Shutdown(ctx), r.handler.Shutdown(ctx))
}

// serve serves at an address. The server's Addr is the one that it got.
func (p *pipeline) serve(address string, h http.Handler, failed chan<- error) (*http.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &http.Server{
		Addr: listener.Addr().String(), Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return s, nil
}

// adminPage is for those who run the program, not for the public. /healthz says that the process lives; /readyz that the database
// and the broker can be reached, until ctx ends: a process that is about to end gets nothing new.
func (p *pipeline) adminPage(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.metrics.handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		check, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		switch {
		case ctx.Err() != nil:
			http.Error(w, "ending", http.StatusServiceUnavailable)
		case p.db != nil && p.db.PingContext(check) != nil:
			http.Error(w, "the database is away", http.StatusServiceUnavailable)
		case p.broker != nil && p.broker.check(check) != nil:
			http.Error(w, "the broker is away", http.StatusServiceUnavailable)
		default:
			w.Write([]byte("ready\n"))
		}
	})
	return mux
}
