package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labhealth/labhealth-go/labhealthprom"
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
	handler, err := webhooks.NewRawHandler(verifier, p.recorded(store), webhooks.WithBodyLimit(bodyLimit),
		labhealthprom.Handler(p.metrics.registry), webhooks.WithDeliveryContext(withCause), webhooks.WithObserver(p.logRefused))
	if err != nil {
		return nil, err
	}
	p.metrics.registerHandler(handler)
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
