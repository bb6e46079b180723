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

// receiver receives deliveries, and acknowledges each after the broker or the inbox has stored it.
type receiver struct {
	handler *webhooks.Handler
	server  *http.Server
}

func (p *pipeline) receive(failed chan<- error) (*receiver, error) {
	verifier := webhooks.Unsigned
	if p.unsigned {
		p.log.Warn("deliveries are accepted without a signature")
	} else {
		var err error
		if verifier, err = webhooks.NewVerifier(p.secrets...); err != nil {
			return nil, errors.New("LABHEALTH_WEBHOOK_SECRET: " + err.Error()) // err never quotes it
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

// address returns the address it listens on.
func (r *receiver) address() string {
	if r == nil {
		return ""
	}
	return r.server.Addr
}

func (r *receiver) shutdown(ctx context.Context) error {
	return errors.Join(r.server.Shutdown(ctx), r.handler.Shutdown(ctx))
}

// serve starts a server. Its Addr is the address it listens on, with the port.
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

// adminHandler is for operators, not for the public. /healthz reports that the process is alive.
// /readyz reports that the database and the broker are available. It fails when ctx is done, so
// that a process that is stopping gets no new deliveries.
func (p *pipeline) adminHandler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.metrics.handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		check, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		switch {
		case ctx.Err() != nil:
			http.Error(w, "stopping", http.StatusServiceUnavailable)
		case p.db != nil && p.db.PingContext(check) != nil:
			http.Error(w, "the database is unavailable", http.StatusServiceUnavailable)
		case p.broker != nil && p.broker.check(check) != nil:
			http.Error(w, "the broker is unavailable", http.StatusServiceUnavailable)
		default:
			w.Write([]byte("ready\n"))
		}
	})
	return mux
}
