package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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

// An organisation changes the brand of a team in steps: a field that is not sent is unchanged, null
// clears one, and the other environment has its own brand.
func TestBrandInformationOverTheWire(t *testing.T) {
	c, srv, _ := managedService(t)
	ctx := t.Context()
	const sandbox = labhealth.TeamEnvironmentSandbox
	for _, step := range []struct {
		body management.UpdateBrandInformationBody
		want *management.BrandInformation
	}{
		{management.UpdateBrandInformationBody{CompanyName: labhealth.Value("Clinic"), SupportEmail: labhealth.Value("help@example.com"),
			SupportContact: labhealth.Value("+14155550123"), CompanyWebsite: labhealth.Value("https://example.com")},
			&management.BrandInformation{CompanyName: "Clinic", CompanyWebsite: new("https://example.com"), SupportEmail: new("help@example.com"),
				SupportContact: new("+14155550123"), CompanyAddress: new(""), BrandColor: new("")}},
		{management.UpdateBrandInformationBody{BrandColor: labhealth.Value("#0a0"), SupportEmail: labhealth.Null[string](),
			SupportContact: labhealth.Null[string](), CompanyWebsite: labhealth.Null[string]()},
			&management.BrandInformation{CompanyName: "Clinic", CompanyWebsite: new(""), CompanyAddress: new(""), BrandColor: new("#0a0")}},
	} {
		team, err := c.Teams.UpdateBrandInformation(ctx, srv.TeamID, sandbox, step.body)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, step.want, team.Sandbox.BrandInformation)
		if team.Production.BrandInformation != nil {
			t.Error("production has the brand of the sandbox")
		}
	}
	_, err := c.Teams.UpdateBrandInformation(ctx, srv.TeamID, labhealth.TeamEnvironmentProduction, management.UpdateBrandInformationBody{BrandColor: labhealth.Value("#0a0")})
	equal(t, "labhealth: PATCH /v1/org/{org_id}/team/{team_id}: 422 Unprocessable Entity: rejected: body.production.brand_information.company_name (missing)",
		strings.Split(errorText(err), " (request")[0])
}

// The allowlist of a lab account decides which team sees it. A Team Management Key has no access to
// the accounts of the organisation.
func TestLabAccountsOverTheWire(t *testing.T) {
	c, srv, opts := managedService(t)
	ctx := t.Context()
	const us, sandbox = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox
	north, err := c.Teams.Create(ctx, management.CreateTeamBody{Name: "North", Region: us})
	if err != nil {
		t.Fatal(err)
	}
	key, err := c.TeamAPIKeys.Create(ctx, sandbox, us, management.CreateTeamAPIKeyBody{Label: "North", TeamID: north.ID})
	if err != nil {
		t.Fatal(err)
	}
	teams := []*labhealth.Client{
		must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, opts...)),
		must[*labhealth.Client](t)(labhealth.NewClient(string(key.Value), opts...)),
	}
	seen := func() (counts []int) {
		for _, team := range teams {
			accounts, err := team.LabTests.LabAccounts(ctx, labhealth.ListLabAccountsParams{Status: labhealth.LabAccountStatusActive})
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, len(accounts))
		}
		return counts
	}
	equal(t, []int{1, 0}, seen())
	active, err := c.LabAccounts.List(ctx, sandbox, us, management.ListLabAccountsParams{Status: labhealth.LabAccountStatusActive, TeamID: srv.TeamID})
	if err != nil || len(active) != 1 {
		t.Fatal(active, err)
	}
	changed, err := c.LabAccounts.UpdateTeamIDAllowlist(ctx, sandbox, us, active[0].ID, append(active[0].TeamIDAllowlist, north.ID))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []uuid.UUID{srv.TeamID, north.ID}, changed.LabAccount.TeamIDAllowlist)
	equal(t, []int{1, 1}, seen())
	_, err = c.LabAccounts.UpdateTeamIDAllowlist(ctx, sandbox, us, active[0].ID, []uuid.UUID{north.ID})
	equal(t, []any{error(nil), []int{0, 1}}, []any{err, seen()})

	limited := must[*management.Client](t)(management.NewClient(srv.OrgID, must[string](t)(srv.AddTeamManagementKey(north.ID)), opts...))
	if _, err := limited.LabAccounts.List(ctx, sandbox, us, management.ListLabAccountsParams{}); !errors.Is(err, labhealth.ErrForbidden) {
		t.Errorf("a Team Management Key on the accounts of the organisation: %v", err)
	}
	if _, err := limited.Teams.ScopeRequirements(ctx, srv.TeamID, management.ScopeRequirementsParams{}); !errors.Is(err, labhealth.ErrForbidden) {
		t.Errorf("a Team Management Key on another team: %v", err)
	}
	if _, err := limited.Teams.ScopeRequirements(ctx, north.ID, management.ScopeRequirementsParams{}); err != nil {
		t.Errorf("a Team Management Key on its team: %v", err)
	}
}

// Preferences decide the historical pulls of users who connect later, until they are deleted.
func TestDataPullPreferencesOverTheWire(t *testing.T) {
	c, srv, opts := managedService(t)
	ctx := t.Context()
	const us, sandbox = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox
	client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, opts...))
	days := func(user string) int64 {
		id := srv.AddUser(user)
		if err := srv.Connect(id, "oura"); err != nil {
			t.Fatal(err)
		}
		page, err := client.Users.HistoricalPulls(ctx, labhealth.ListHistoricalPullsParams{UserID: id})
		if err != nil {
			t.Fatal(err)
		}
		return page.Data[0].Provider["oura"].Pulled["sleep"].DaysWithData
	}
	equal(t, int64(90), days("ada"))
	_, err := c.DataPullPreferences.Upsert(ctx, sandbox, us, management.UpsertTeamDataPullPreferencesBody{
		TeamIDs: []uuid.UUID{srv.TeamID}, Providers: map[string]management.UpsertProviderDataPullPreferences{"oura": {
			Default:           management.UpsertHistoricalDaysToPull{HistoricalDaysToPull: 30},
			ResourceOverrides: map[string]management.UpsertHistoricalDaysToPull{"sleep": {HistoricalDaysToPull: 7}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, int64(7), days("bob"))
	if err := c.DataPullPreferences.Delete(ctx, sandbox, us, []uuid.UUID{srv.TeamID}, nil); err != nil {
		t.Fatal(err)
	}
	equal(t, int64(90), days("eve"))
}

// The metric of a team counts the deliveries to its webhooks.
func TestEventDeliveryMetricOverTheWire(t *testing.T) {
	c, srv, _ := managedService(t)
	ctx := t.Context()
	const sandbox = labhealth.TeamEnvironmentSandbox
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer receiver.Close()
	delivered := func() (sum float64) {
		metric, err := c.Webhooks.EventDeliveryMetric(ctx, srv.TeamID, sandbox, management.EventDeliveryMetricParams{Interval: management.MetricInterval5Minutes})
		if err != nil {
			t.Fatal(err)
		}
		for _, series := range metric.Data.Result {
			for _, n := range series.Samples() {
				sum += n
			}
		}
		return sum
	}
	equal(t, 0.0, delivered())
	if _, err := c.Webhooks.Create(ctx, srv.TeamID, sandbox, management.CreateWebhookBody{URL: receiver.URL}); err != nil {
		t.Fatal(err)
	}
	ada := srv.AddUser("ada")
	for range 5 {
		if err := srv.Connect(ada, "oura"); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	equal(t, 5.0, delivered())
}

// managedService returns an embedded service, a client with its Org Management Key, and the options
// for more clients.
func managedService(t *testing.T) (*management.Client, *labhealthtest.Server, []labhealth.Option) {
	t.Helper()
	srv := labhealthtest.NewServer(t)
	opts := []labhealth.Option{
		labhealth.WithBaseURL(srv.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}),
	}
	return must[*management.Client](t)(management.NewClient(srv.OrgID, srv.OrgKey, opts...)), srv, opts
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
