package conformance

import (
	"errors"
	"net/http"
	"testing"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/management"
)

// A key of one API is rejected by the other.
func TestKeyOfOtherAPI(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	alone := labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	team, err := srv.AddTeamManagementKey(srv.TeamID)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{srv.OrgKey, team} {
		client := must[*labhealth.Client](t)(labhealth.NewClient(key, labhealth.WithBaseURL(srv.URL), alone))
		if _, err := client.Users.List(t.Context(), labhealth.ListUsersParams{}); !errors.Is(err, labhealth.ErrUnauthorized) {
			t.Errorf("a management key on the team API: %v", err)
		}
	}
	admin := must[*management.Client](t)(management.NewClient(srv.OrgID, srv.APIKey, labhealth.WithBaseURL(srv.URL), alone))
	if _, err := admin.Organisation.Get(t.Context()); !errors.Is(err, labhealth.ErrUnauthorized) {
		t.Errorf("a team API key on the management API: %v", err)
	}
	limited := must[*management.Client](t)(management.NewClient(srv.OrgID, team, labhealth.WithBaseURL(srv.URL), alone))
	if _, err := limited.Organisation.Get(t.Context()); !errors.Is(err, labhealth.ErrForbidden) {
		t.Errorf("a Team Management Key on the organisation: %v", err)
	}
}
