package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/management"
)

// Every operation of the client, against the embedded service, which shares no code with it.
func TestManagementOverTheWire(t *testing.T) {
	const us, sandbox = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox
	ctx := t.Context()
	srv := labhealthtest.NewServer(t)
	alone := labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	attempts := map[string]int{}
	c, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL), alone,
		observing(func(_ context.Context, a labhealth.Attempt) { attempts[a.Op]++ }))
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

	organisation, err := c.Organisation.Update(ctx, management.UpdateOrganisationBody{Name: "Clinics"})
	read(organisation, err)
	organisation, err = c.Organisation.Get(ctx)
	read(organisation, err)
	equal(t, "Clinics", organisation.Name)

	team, err := c.Teams.Create(ctx, management.CreateTeamBody{Name: "North", Region: us, IntegrationTeamID: new("north"), PartialWebhooksEnabled: new(true)})
	read(team, err)
	_, err = c.Teams.Create(ctx, management.CreateTeamBody{Name: "North 2", Region: us, IntegrationTeamID: new("north")})
	var conflict *labhealth.TeamConflictError
	if !errors.As(err, &conflict) || conflict.TeamID != team.ID {
		t.Errorf("conflict: %v", err)
	}
	brand := management.UpdateBrandInformationBody{CompanyName: labhealth.Value("North Clinic"), BrandColor: labhealth.Value("#0a0")}
	read(c.Teams.UpdateBrandInformation(ctx, team.ID, sandbox, brand))
	team, err = c.Teams.Get(ctx, team.ID, management.GetTeamParams{IncludeEnvironment: []labhealth.TeamEnvironment{sandbox}})
	read(team, err)
	if s := team.Sandbox; team.Production != nil || !*s.PartialWebhooksEnabled || s.BrandInformation.CompanyName != "North Clinic" || *s.BrandInformation.BrandColor != "#0a0" {
		t.Errorf("%+v", team)
	}
	team, err = c.Teams.Update(ctx, team.ID, management.UpdateTeamBody{Name: new("North 1"), Sandbox: labhealth.Value(management.UpdateTeamSettings{BrandInformation: labhealth.Null[management.UpdateBrandInformationBody]()})})
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
	n, err := count(c.Teams.All(ctx, management.ListTeamsParams{Region: []labhealth.Region{us}}))
	equal(t, "2 <nil>", fmt.Sprint(n, err))

	key, err := c.Keys.Create(ctx, management.CreateKeyBody{Label: "CI", Role: management.KeyRoleTeamAdmin,
		TeamRoleBindings: []management.TeamRoleBinding{{TeamID: team.ID}, {TeamID: srv.TeamID}}})
	read(key, err)
	equal(t, management.KeyCreatorManagementKey, key.Creator.Type)
	read(c.Keys.Update(ctx, key.ID, management.UpdateKeyBody{Label: new("CI 2"), TeamRoleBindings: key.TeamRoleBindings[:1]}))
	n, err = count(c.Keys.All(ctx, management.ListKeysParams{TeamID: team.ID, Role: management.KeyRoleTeamAdmin}))
	equal(t, "1 <nil>", fmt.Sprint(n, err))
	done(c.Keys.Delete(ctx, key.ID))

	webhook, err := c.Webhooks.Create(ctx, team.ID, sandbox, management.CreateWebhookBody{URL: "https://app.example.com", RateLimit: new(int64(3)), Disabled: new(true)})
	read(webhook, err)
	webhook, err = c.Webhooks.Update(ctx, team.ID, sandbox, webhook.ID, management.UpdateWebhookBody{RateLimit: labhealth.Null[int64](), FilterTypes: labhealth.Value([]string{"a"})})
	read(webhook, err)
	if webhook.RateLimit != nil || len(webhook.FilterTypes) != 1 {
		t.Errorf("%+v", webhook)
	}
	read(c.Webhooks.Get(ctx, team.ID, sandbox, webhook.ID))
	n, err = count(c.Webhooks.All(ctx, team.ID, sandbox, management.ListWebhooksParams{Limit: 1}))
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

	apiKey, err := c.TeamAPIKeys.Create(ctx, sandbox, us, management.CreateTeamAPIKeyBody{Label: "backend", TeamID: team.ID})
	read(apiKey, err)
	n, err = count(c.TeamAPIKeys.All(ctx, sandbox, us, management.ListTeamAPIKeysParams{TeamID: team.ID}))
	equal(t, "1 <nil>", fmt.Sprint(n, err))
	deletion, err := c.TeamAPIKeys.Delete(ctx, sandbox, us, []uuid.UUID{apiKey.ID, testKeyID})
	read(deletion, err)
	equal(t, management.BatchDeletion{Success: []uuid.UUID{apiKey.ID}, Failure: []uuid.UUID{}, NotFound: []uuid.UUID{testKeyID}}, *deletion)

	credentials, err := c.CustomCredentials.Upsert(ctx, sandbox, us, management.UpsertTeamCustomCredentialsBody{TeamID: team.ID, Provider: "oura", ClientSecret: hidden})
	read(credentials, err)
	equal(t, labhealth.ProviderOura, credentials.Source)
	equal(t, false, credentials.CreatedAt.IsZero() || credentials.UpdatedAt.IsZero())
	n, err = count(c.CustomCredentials.All(ctx, sandbox, us, management.ListTeamCustomCredentialsParams{}))
	equal(t, "1 <nil>", fmt.Sprint(n, err))
	preparation, err := c.CustomCredentials.Prepare(ctx, team.ID, sandbox, us, "oura")
	read(preparation, err)
	equal(t, management.PreparationStatusPreparationsRequired, preparation.Status)
	read(c.CustomCredentials.Delete(ctx, sandbox, us, []uuid.UUID{credentials.ID}))

	pipelines, err := c.Pipelines.Upsert(ctx, sandbox, us, management.UpsertETLPipelinesBody{TeamIDs: []uuid.UUID{team.ID, srv.TeamID}, Preferences: &pipeline1.Preferences,
		AzureAMQP: pipeline1.AzureAMQP})
	done(err)
	equal(t, 2, len(pipelines))
	equal(t, management.EventHubCompressionAuto, *pipelines[0].AzureAMQP.Compression)
	for _, p := range pipelines {
		read(&p, nil)
	}
	destination, ok, err := pipelines[1].EventHubDestination("labtest.order.created")
	if !ok || err != nil || destination.BlobStorage.ContainerName != "lab" {
		t.Errorf("%+v %v %v", destination, ok, err)
	}
	n, err = count(c.Pipelines.All(ctx, sandbox, us, management.ListETLPipelinesParams{}))
	equal(t, "2 <nil>", fmt.Sprint(n, err))
	pipelines, err = c.Pipelines.Delete(ctx, sandbox, us, []uuid.UUID{team.ID, srv.TeamID})
	done(err)
	equal(t, 2, len(pipelines))
	n, err = count(c.Pipelines.All(ctx, sandbox, us, management.ListETLPipelinesParams{}))
	equal(t, "0 <nil>", fmt.Sprint(n, err))

	done(c.Teams.UpsertScopeRequirements(ctx, team.ID, management.UpsertScopeRequirementsBody{Oura: &management.ProviderScopeRequirements{
		UserMustGrant: []management.OAuthScope{management.OuraScopeDaily}, UserMayGrant: []management.OAuthScope{management.OuraScopeTag}}}))
	scopes, err := c.Teams.ScopeRequirements(ctx, team.ID, management.ScopeRequirementsParams{Provider: labhealth.ProviderOura})
	done(err)
	equal(t, []management.TeamScopeRequirements{{UserMustGrant: []management.OAuthScope{management.OuraScopeDaily},
		UserMayGrant: []management.OAuthScope{management.OuraScopeTag}, TeamID: team.ID, Provider: labhealth.ProviderOura}}, scopes)
	read(c.Webhooks.EventDeliveryMetric(ctx, team.ID, sandbox, management.EventDeliveryMetricParams{Interval: management.MetricInterval1Day}))
	accounts, err := c.LabAccounts.List(ctx, sandbox, us, management.ListLabAccountsParams{})
	done(err)
	read(c.LabAccounts.UpdateTeamIDAllowlist(ctx, sandbox, us, accounts[0].ID, []uuid.UUID{team.ID}))
	read(c.DataPullPreferences.Upsert(ctx, sandbox, us, management.UpsertTeamDataPullPreferencesBody{
		TeamIDs:   []uuid.UUID{team.ID, srv.TeamID},
		Providers: map[string]management.UpsertProviderDataPullPreferences{"oura": {Default: management.UpsertHistoricalDaysToPull{HistoricalDaysToPull: 30}}},
	}))
	n, err = count(c.DataPullPreferences.All(ctx, sandbox, us, management.ListTeamDataPullPreferencesParams{Limit: 1}))
	equal(t, "2 <nil>", fmt.Sprint(n, err))
	done(c.DataPullPreferences.Delete(ctx, sandbox, us, []uuid.UUID{team.ID}, []labhealth.Provider{labhealth.ProviderOura}))
	done(c.Teams.Delete(ctx, team.ID))

	operations := slices.DeleteFunc(reference.Operations(), func(o reference.Operation) bool { return o.API != "management" })
	for _, o := range operations {
		if attempts[o.String()] == 0 {
			t.Errorf("%s was not called", o)
		}
	}
	equal(t, len(operations), len(attempts))
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
	admin := must[*management.Client](t)(management.NewClient(srv.OrgID, srv.APIKey, labhealth.WithBaseURL(srv.URL), alone))
	if _, err := admin.Organisation.Get(t.Context()); !errors.Is(err, labhealth.ErrUnauthorized) {
		t.Errorf("a team API key on the management API: %v", err)
	}
	limited := must[*management.Client](t)(management.NewClient(srv.OrgID, team, labhealth.WithBaseURL(srv.URL), alone))
	if _, err := limited.Organisation.Get(t.Context()); !errors.Is(err, labhealth.ErrForbidden) {
		t.Errorf("a Team Management Key on the organisation: %v", err)
	}
}
