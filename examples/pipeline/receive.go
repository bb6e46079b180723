package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/webhooks"
)

// newHandler returns a handler that receives deliveries, and acknowledges each after the broker has
// stored it. The memory of the bodies that it holds is limited to 256 MiB: what exceeds it waits,
// and then gets a 503. See [webhooks.WithInFlightLimit].
func newHandler(b *broker, registry *prometheus.Registry) (*webhooks.Handler, error) {
	verifier, err := webhooks.NewVerifier(b.secrets...)
	if b.unsigned {
		verifier, err = webhooks.Unsigned, nil
		b.log.Warn("deliveries are accepted without a signature")
	}
	if err != nil {
		return nil, errors.New("LABHEALTH_WEBHOOK_SECRET: " + err.Error()) // err never quotes it
	}
	handler, err := webhooks.NewRawHandler(verifier, b.publish, webhooks.WithLogger(b.log), labhealthprom.Handler(registry))
	if err != nil {
		return nil, err
	}
	registry.MustRegister(gauge("labhealth_webhook_in_flight_bytes", "Memory of the bodies that are being received or stored.",
		func() float64 { return float64(handler.InFlightBytes()) }))
	return handler, nil
}

// shutdown takes no new deliveries, and responds to those in flight.
func shutdown(server *http.Server, handler *webhooks.Handler, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := errors.Join(server.Shutdown(ctx), handler.Shutdown(ctx)); err != nil {
		log.Warn("the receiver did not stop in time", "error", err)
	}
}
