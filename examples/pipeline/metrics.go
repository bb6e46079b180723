package main

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// gauge returns a metric in addition to those of package labhealthprom. Labels of all metrics have
// few values, none of which are IDs or data of deliveries.
func gauge(name, help string, value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// check returns why a role of this process is not ready.
type check func(context.Context) error

// adminHandler is for operators, not for the public. /healthz reports that the process is alive.
// /readyz/receive reports whether deliveries can be stored, for a load balancer, and does not
// depend on the database. /readyz/work reports whether they can be applied, and /readyz reports on
// all roles of the process.
func adminHandler(registry *prometheus.Registry, checks map[string]check) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	var all []check
	for role, ready := range checks {
		all = append(all, ready)
		mux.HandleFunc("GET /readyz/"+role, readyPage(ready))
	}
	mux.HandleFunc("GET /readyz", readyPage(all...))
	return mux
}

// readyPage responds with 503 and the reason if a check fails.
func readyPage(checks ...check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		for _, ready := range checks {
			if err := ready(ctx); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		w.Write([]byte("ready\n"))
	}
}
