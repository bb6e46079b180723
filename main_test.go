package labhealth

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go/internal/testform"
	"github.com/labhealth/labhealth-go/internal/transport"
)

func TestMain(m *testing.M) {
	testform.Choose()
	transport.Poison = true
	goleak.VerifyTestMain(m)
}
