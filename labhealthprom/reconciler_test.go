package labhealthprom_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

func TestReconciler(t *testing.T) {
	registry := prometheus.NewRegistry()
	var observers []func(context.Context, sqlstore.Reconciled, error)
	for range 2 { // two Reconcilers share the metrics
		observe, err := labhealthprom.Reconciler(registry)
		if err != nil {
			t.Fatal(err)
		}
		observers = append(observers, observe)
	}
	observers[0](t.Context(), sqlstore.Reconciled{Pass: "changed", Requests: 3, Read: sqlstore.ReconciledCounts{Orders: 250},
		Differences: sqlstore.ReconciledCounts{Orders: 2, Transitions: 5}, MissingOrders: 1}, nil)
	observers[1](t.Context(), sqlstore.Reconciled{Pass: "changed", Requests: 1, Failed: 2, MissingUsers: 4},
		&labhealth.APIError{StatusCode: http.StatusTooManyRequests})
	compare(t, series(t, registry, ""),
		"labhealth_reconciler_differences_total{kind=orders,pass=changed} 2",
		"labhealth_reconciler_differences_total{kind=results,pass=changed} 0",
		"labhealth_reconciler_differences_total{kind=samples,pass=changed} 0",
		"labhealth_reconciler_differences_total{kind=summaries,pass=changed} 0",
		"labhealth_reconciler_differences_total{kind=transitions,pass=changed} 5",
		"labhealth_reconciler_failures_total{error=429,pass=changed} 1",
		"labhealth_reconciler_failures_total{error=element,pass=changed} 2",
		"labhealth_reconciler_missing_total{kind=orders} 1",
		"labhealth_reconciler_missing_total{kind=users} 4",
		"labhealth_reconciler_read_total{kind=orders,pass=changed} 250",
		"labhealth_reconciler_read_total{kind=results,pass=changed} 0",
		"labhealth_reconciler_read_total{kind=samples,pass=changed} 0",
		"labhealth_reconciler_read_total{kind=summaries,pass=changed} 0",
		"labhealth_reconciler_read_total{kind=transitions,pass=changed} 0",
		"labhealth_reconciler_requests_total{pass=changed} 4")
	if _, err := labhealthprom.Reconciler(nil); err == nil {
		t.Error("no error without a registerer")
	}
}
