package labhealth

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go/internal/transport"
)

func TestMain(m *testing.M) {
	transport.Poison = true
	goleak.VerifyTestMain(m)
}
