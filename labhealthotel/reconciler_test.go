package labhealthotel_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthotel"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

func TestReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTelemetry()
		observe := labhealthotel.Reconciler(r.options()...)
		observe(t.Context(), sqlstore.Reconciled{Pass: "changed", Complete: true, Requests: 3, Read: sqlstore.ReconciledCounts{Orders: 250},
			Differences: sqlstore.ReconciledCounts{Orders: 2, Transitions: 5}, MissingOrders: 1}, nil)
		observe(t.Context(), sqlstore.Reconciled{Pass: "changed", Requests: 1, Failed: 2, MissingUsers: 4}, &labhealth.APIError{StatusCode: http.StatusTooManyRequests})
		observe(t.Context(), sqlstore.Reconciled{Pass: "results"}, &sqlstore.Error{SQLState: "57P01"})
		observe(t.Context(), sqlstore.Reconciled{}, errors.New("Canaryna"))
		const pass = "labhealth.reconciler.pass="
		compare(t, "metrics", r.metrics(t),
			"labhealth.reconciler.differences [{item}] labhealth.reconciler.kind=orders "+pass+"changed: 2",
			"labhealth.reconciler.differences [{item}] labhealth.reconciler.kind=transitions "+pass+"changed: 5",
			"labhealth.reconciler.errors [{error}] error.type=429 "+pass+"changed: 1",
			"labhealth.reconciler.errors [{error}] error.type=57P01 "+pass+"results: 1",
			"labhealth.reconciler.errors [{error}] error.type=_OTHER "+pass+": 1",
			"labhealth.reconciler.failed [{item}] "+pass+"changed: 2",
			"labhealth.reconciler.last_complete [s] "+pass+"changed: 946684800",
			"labhealth.reconciler.missing [{item}] labhealth.reconciler.kind=orders: 1",
			"labhealth.reconciler.missing [{item}] labhealth.reconciler.kind=users: 4",
			"labhealth.reconciler.read [{item}] labhealth.reconciler.kind=orders "+pass+"changed: 250",
			"labhealth.reconciler.requests [{request}] "+pass+"changed: 4")
	})
}
