package management

import (
	"testing"

	"github.com/labhealth/labhealth-go/internal/testform"
)

func TestMain(m *testing.M) {
	testform.Choose()
	m.Run()
}
