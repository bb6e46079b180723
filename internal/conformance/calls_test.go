package conformance

import (
	"context"
	"slices"

	"github.com/labhealth/labhealth-go"
)

// apiCall is one call of a method, with the request that it sends and the response that it gets.
type apiCall struct {
	method   string // such as "Orders.Cancel"
	op       string // the operation, such as "POST /v3/order/{order_id}/cancel"
	url      string // path and query of the request, as sent
	body     string // body of the request, as sent; empty for none
	response string // body of a 200 response with every field; empty for none
	// want is the value as JSON, if it is not the response itself: that of an iterator is a list,
	// that of a PDF is the string that was written.
	want string
	call func(context.Context, *labhealth.Client, ...labhealth.CallOption) (value any, err error)
}

// apiCalls has every method whose operation is in the public API reference only.
var apiCalls = slices.Concat(orderCalls, labTestCalls, appointmentCalls, userCalls, teamAPICalls, wearableCalls)
