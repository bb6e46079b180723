package conformance

import (
	"testing"

	"github.com/labhealth/labhealth-go"
)

// A deployment that has the operations elsewhere.
func TestWearablePaths(t *testing.T) {
	client, s := scripted(t, []reply{{status: 200, body: `{"sleep":[]}`}},
		labhealth.WithPath("GET /v2/summary/{resource}/{user_id}", "/wearables/{user_id}/{resource}"))
	_, err := client.Wearables.Summaries(t.Context(), userID, labhealth.SummarySleep, sinceMarch)
	equal(t, nil, err)
	equal(t, testURL+"/wearables/"+userID.String()+"/sleep?start_date=2025-03-01", s.only(t).URL)
}
