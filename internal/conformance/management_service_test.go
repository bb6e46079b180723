package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Every operation of the client, against the embedded service, which shares no code with it.
func TestManagementOverTheWire(t *testing.T) {
	const us, sandbox = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox
	ctx := t.Context()
	srv := labhealthtest.NewServer(t)
	alone := labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	attempts := map[string]int{}
	c, err := labhealth.NewManagementClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL), alone,
		labhealth.WithObserver(func(_ context.Context, a labhealth.Attempt) { attempts[a.Op]++ }))
	if err != nil {
		t.Fatal(err)
	}
	// read fails the test for an error and for malformed fields.
	read := func(v any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if bad := v.(interface{ Malformed() []labhealth.Malformed }).Malformed(); bad != nil {
			t.Errorf("%T: malformed: %v", v, bad)
		}
	}
	done := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	organisation, err := c.Organisation.Update(ctx, labhealth.UpdateOrganisationBody{Name: "Clinics"})
	read(organisation, err)
	organisation, err = c.Organisation.Get(ctx)
	read(organisation, err)
	equal(t, "Clinics", organisation.Name)

	team, err := c.Teams.Create(ctx, labhealth.CreateTeamBody{Name: "North", Region: us, IntegrationTeamID: new("north"), PartialWebhooksEnabled: new(true)})
	read(team, err)
	_, err = c.Teams.Create(ctx, labhealth.CreateTeamBody{Name: "North 2", Region: us, IntegrationTeamID: new("north")})
	var conflict *labhealth.TeamConflictError
	if !errors.As(err, &conflict) || conflict.TeamID != team.ID {
		t.Errorf("conflict: %v", err)
	}
	brand := labhealth.BrandInformation{CompanyName: "North Clinic", BrandColor: new("#0a0")}
	read(c.Teams.SetBrandInformation(ctx, team.ID, sandbox, brand))
	team, err = c.Teams.Get(ctx, team.ID, labhealth.GetTeamParams{IncludeEnvironment: []labhealth.TeamEnvironment{sandbox}})
	read(team, err)
	if s := team.Sandbox; team.Production != nil || !s.PartialWebhooksEnabled || s.BrandInformation.CompanyName != "North Clinic" || *s.BrandInformation.BrandColor != "#0a0" {
		t.Errorf("%+v", team)
	}
	team, err = c.Teams.Update(ctx, team.ID, labhealth.UpdateTeamBody{Name: new("North 1"), Sandbox: &labhealth.UpdateTeamSettings{BrandInformation: labhealth.Null[labhealth.BrandInformation]()}})
	read(team, err)
	if team.Name != "North 1" || team.Sandbox.BrandInformation != nil {
		t.Errorf("%+v", team)
	}
	resolved, err := c.Teams.Resolve(ctx, "north")
	read(resolved, err)
	equal(t, team.ID, resolved.ID)
	token, err := c.Teams.CreateAccessToken(ctx, team.ID, sandbox)
	read(token, err)
	equal(t, int64(600), token.ExpiresIn)
	n, err := count(c.Teams.All(ctx, labhealth.ListTeamsParams{Region: []labhealth.Region{us}}))
	equal(t, "2 <nil>", fmt.Sprint(n, err))

	key, err := c.Keys.Create(ctx, labhealth.CreateManagementKeyBody{Label: "CI", Role: labhealth.ManagementKeyRoleTeamAdmin,
		TeamRoleBindings: []labhealth.TeamRoleBinding{{TeamID: team.ID}, {TeamID: srv.TeamID}}})
	read(key, err)
	equal(t, labhealth.ManagementKeyCreatorManagementKey, key.Creator.Type)
	read(c.Keys.Update(ctx, key.ID, labhealth.UpdateManagementKeyBody{Label: new("CI 2"), TeamRoleBindings: key.TeamRoleBindings[:1]}))
	n, err = count(c.Keys.All(ctx, labhealth.ListManagementKeysParams{TeamID: team.ID, Role: labhealth.ManagementKeyRoleTeamAdmin}))
	equal(t, "1 <nil>", fmt.Sprint(n, err))
	done(c.Keys.Delete(ctx, key.ID))

	webhook, err := c.Webhooks.Create(ctx, team.ID, sandbox, labhealth.CreateWebhookBody{URL: "https://app.example.com", RateLimit: new(int64(3)), Disabled: new(true)})
	read(webhook, err)
	webhook, err = c.Webhooks.Update(ctx, team.ID, sandbox, webhook.ID, labhealth.UpdateWebhookBody{RateLimit: labhealth.Null[int64](), FilterTypes: labhealth.Value([]string{"a"})})
	read(webhook, err)
	if webhook.RateLimit != nil || len(webhook.FilterTypes) != 1 {
		t.Errorf("%+v", webhook)
	}
	read(c.Webhooks.Get(ctx, team.ID, sandbox, webhook.ID))
	n, err = count(c.Webhooks.All(ctx, team.ID, sandbox, labhealth.ListWebhooksParams{Limit: 1}))
	equal(t, "1 <nil>", fmt.Sprint(n, err))
	done(c.Webhooks.ReplaceHeaders(ctx, team.ID, sandbox, webhook.ID, map[string]labhealth.Secret{"X-A": "1", "Authorization": hidden}))
	headers, err := c.Webhooks.Headers(ctx, team.ID, sandbox, webhook.ID)
	read(headers, err)
	equal(t, map[string]labhealth.Secret{"X-A": "1"}, headers.Headers)
	equal(t, []string{"Authorization"}, headers.Sensitive)
	first, err := c.Webhooks.Secret(ctx, team.ID, sandbox, webhook.ID)
	read(first, err)
	done(c.Webhooks.RotateSecret(ctx, team.ID, sandbox, webhook.ID, ""))
	second, err := c.Webhooks.Secret(ctx, team.ID, sandbox, webhook.ID)
	read(second, err)
	if first.Key == second.Key {
		t.Error("the secret stays the same")
	}
	done(c.Webhooks.Delete(ctx, team.ID, sandbox, webhook.ID))
	if _, err := c.Webhooks.Get(ctx, team.ID, sandbox, webhook.ID); !errors.Is(err, labhealth.ErrNotFound) {
		t.Error(err)
	}

	apiKey, err := c.TeamAPIKeys.Create(ctx, sandbox, us, labhealth.CreateTeamAPIKeyBody{Label: "backend", TeamID: team.ID})
	read(apiKey, err)
	n, err = count(c.TeamAPIKeys.All(ctx, sandbox, us, labhealth.ListTeamAPIKeysParams{TeamID: team.ID}))
	equal(t, "1 <nil>", fmt.Sprint(n, err))
	deletion, err := c.TeamAPIKeys.Delete(ctx, sandbox, us, []uuid.UUID{apiKey.ID, testKeyID})
	read(deletion, err)
	equal(t, labhealth.BatchDeletion{Success: []uuid.UUID{apiKey.ID}, Failure: []uuid.UUID{}, NotFound: []uuid.UUID{testKeyID}}, *deletion)

	credentials, err := c.CustomCredentials.Upsert(ctx, sandbox, us, labhealth.UpsertTeamCustomCredentialsBody{TeamID: team.ID, Provider: "oura", ClientSecret: hidden})
	read(credentials, err)
	equal(t, "oura", credentials.Source)
	equal(t, false, credentials.CreatedAt.IsZero() || credentials.UpdatedAt.IsZero())
	n, err = count(c.CustomCredentials.All(ctx, sandbox, us, labhealth.ListTeamCustomCredentialsParams{}))
	equal(t, "1 <nil>", fmt.Sprint(n, err))
	preparation, err := c.CustomCredentials.Prepare(ctx, sandbox, us, team.ID, "oura")
	read(preparation, err)
	equal(t, labhealth.PreparationStatusPreparationsRequired, preparation.Status)
	read(c.CustomCredentials.Delete(ctx, sandbox, us, []uuid.UUID{credentials.ID}))

	pipelines, err := c.Pipelines.Upsert(ctx, sandbox, us, labhealth.UpsertETLPipelinesBody{TeamIDs: []uuid.UUID{team.ID, srv.TeamID}, Preferences: &pipeline1.Preferences,
		AzureAMQP: pipeline1.AzureAMQP})
	done(err)
	equal(t, 2, len(pipelines))
	equal(t, labhealth.EventHubCompressionAuto, *pipelines[0].AzureAMQP.Compression)
	for _, p := range pipelines {
		read(&p, nil)
	}
	destination, ok, err := pipelines[1].EventHubDestination("labtest.order.created")
	if !ok || err != nil || destination.BlobStorage.ContainerName != "lab" {
		t.Errorf("%+v %v %v", destination, ok, err)
	}
	n, err = count(c.Pipelines.All(ctx, sandbox, us, labhealth.ListETLPipelinesParams{}))
	equal(t, "2 <nil>", fmt.Sprint(n, err))
	pipelines, err = c.Pipelines.Delete(ctx, sandbox, us, []uuid.UUID{team.ID, srv.TeamID})
	done(err)
	equal(t, 2, len(pipelines))
	n, err = count(c.Pipelines.All(ctx, sandbox, us, labhealth.ListETLPipelinesParams{}))
	equal(t, "0 <nil>", fmt.Sprint(n, err))
	done(c.Teams.Delete(ctx, team.ID))

	if len(attempts) != 32 {
		t.Errorf("%d of 32 operations were called: %v", len(attempts), attempts)
	}
}

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
	management := must[*labhealth.ManagementClient](t)(labhealth.NewManagementClient(srv.OrgID, srv.APIKey, labhealth.WithBaseURL(srv.URL), alone))
	if _, err := management.Organisation.Get(t.Context()); !errors.Is(err, labhealth.ErrUnauthorized) {
		t.Errorf("a team API key on the management API: %v", err)
	}
	limited := must[*labhealth.ManagementClient](t)(labhealth.NewManagementClient(srv.OrgID, team, labhealth.WithBaseURL(srv.URL), alone))
	if _, err := limited.Organisation.Get(t.Context()); !errors.Is(err, labhealth.ErrForbidden) {
		t.Errorf("a Team Management Key on the organisation: %v", err)
	}
}
