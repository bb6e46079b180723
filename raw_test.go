package labhealth

import (
	"maps"
	"slices"
	"testing"

	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// Two types stand for what differs from the reference.
func TestResponsesAreLosslessAndSpecified(t *testing.T) {
	referencetest.Lossless(t, slices.AppendSeq(referenceTypes(), maps.Values(resourceTypes)), "UnknownOrderDetails", "SummaryPage")
}

func TestEveryResponseRoundTrips(t *testing.T) {
	if n := referencetest.RoundTrips(t, slices.AppendSeq(referenceTypes(), maps.Values(resourceTypes))); n < 60 {
		t.Errorf("only %d types", n)
	}
}
