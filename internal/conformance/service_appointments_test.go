package conformance

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// homeOfAda is the address of the first invented patient.
var homeOfAda = labhealth.USAddress{FirstLine: "1 Main Street", City: "San Francisco", State: "CA", ZipCode: "94105"}

// orderFor adds an order of an invented patient.
func orderFor(t testing.TB, srv *labhealthtest.Server, labTest uuid.UUID) uuid.UUID {
	t.Helper()
	return must[uuid.UUID](t)(srv.AddOrder(srv.AddUser(fmt.Sprintf("user-%d", len(srv.Orders()))), labTest))
}
