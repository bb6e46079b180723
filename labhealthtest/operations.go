package labhealthtest

import (
	"net/http"
	"net/url"
	"strings"
)

// operation is one row of what the server can do.
type operation struct {
	method string
	// pattern is a path whose segments in braces match any one segment that is not empty. Paths are matched as they were sent, so
	// an escaped slash is part of its segment, and a slash at the end makes another path.
	pattern string
	// handle runs under Server.mu.
	handle func(*Server, *request) answer
}

// operations is searched from the top: the first row with the method and a matching path answers.
var operations = []operation{
	{http.MethodPost, "/v3/order/import", (*Server).importOrder},
	{http.MethodPost, "/v3/order", (*Server).createOrder},
	{http.MethodPatch, "/v3/order/{order_id}", (*Server).updateOrder},
	{http.MethodGet, "/v3/order/{order_id}", (*Server).getOrder},
	// The interface document says /orders, the public reference says /v3/orders.
	{http.MethodGet, "/orders", (*Server).listOrders},
	{http.MethodGet, "/v3/orders", (*Server).listOrders},
	{http.MethodPost, "/v3/order/resend_events", (*Server).resendEvents},
	{http.MethodPost, "/v3/order/{order_id}/cancel", (*Server).cancelOrder},
	{http.MethodPost, "/v3/order/{order_id}/test", (*Server).simulateOrder},
	{http.MethodGet, "/v3/order/{order_id}/result", (*Server).getResults},
	{http.MethodGet, "/v3/order/{order_id}/result/metadata", (*Server).getResultsMetadata},
	{http.MethodGet, "/v3/order/{order_id}/requisition/pdf", (*Server).getRequisition},

	{http.MethodGet, "/v3/lab_test", (*Server).listLabTests},
	{http.MethodGet, "/v3/lab_tests", (*Server).listLabTestsOld},

	// The interface document says /v2/user/, the public reference says /v2/user.
	{http.MethodGet, "/v2/user/", (*Server).listUsers},
	{http.MethodGet, "/v2/user", (*Server).listUsers},
	{http.MethodPost, "/v2/user/", (*Server).createUser},
	{http.MethodPost, "/v2/user", (*Server).createUser},
	{http.MethodGet, "/v2/user/resolve/{client_user_id}", (*Server).resolveUser},
	{http.MethodPost, "/v2/user/undo_delete", (*Server).undoDelete},
	{http.MethodGet, "/v2/user/{user_id}", (*Server).getUser},
	{http.MethodPatch, "/v2/user/{user_id}", (*Server).patchUser},
	{http.MethodDelete, "/v2/user/{user_id}", (*Server).deleteUser},

	{http.MethodGet, "/v2/introspect/historical_pull", (*Server).listHistoricalPulls},
	{http.MethodGet, "/v2/timeseries/workouts/{workout_id}/stream", (*Server).getWorkoutStream},
}

// find returns the operation of a request and sets r.vars, or returns the methods that the path allows, if it is known.
func find(r *request) (op *operation, allow string) {
	var methods []string
	for i := range operations {
		vars, ok := match(operations[i].pattern, r.path)
		if !ok {
			continue
		}
		if operations[i].method == r.method {
			r.vars = vars
			return &operations[i], ""
		}
		methods = append(methods, operations[i].method)
	}
	return nil, strings.Join(methods, ", ")
}

// match compares an escaped path with a pattern and returns its variables, unescaped.
func match(pattern, path string) (vars map[string]string, ok bool) {
	for {
		want, patternRest, morePattern := strings.Cut(pattern, "/")
		got, pathRest, morePath := strings.Cut(path, "/")
		switch {
		case morePattern != morePath:
			return nil, false
		case strings.HasPrefix(want, "{"):
			value, err := url.PathUnescape(got)
			if err != nil || value == "" {
				return nil, false
			}
			if vars == nil {
				vars = map[string]string{}
			}
			vars[strings.Trim(want, "{}")] = value
		case want != got:
			return nil, false
		}
		if !morePattern {
			return vars, true
		}
		pattern, path = patternRest, pathRest
	}
}
