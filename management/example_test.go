package management_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/management"
	"github.com/labhealth/labhealth-go/webhooks"
)

// newSecret returns a random webhook secret.
func newSecret() labhealth.Secret {
	key := make([]byte, 32)
	rand.Read(key) // never returns an error
	return labhealth.Secret("whsec_" + base64.StdEncoding.EncodeToString(key))
}

// show prints the type of an event.
func show(_ context.Context, e *webhooks.Event) error {
	fmt.Println("received", e.Type)
	return nil
}

// Create a webhook and receive its first event.
func ExampleWebhooksService_Create() {
	srv, err := labhealthtest.Start() // in production, use the base URL of the management API
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()

	// Choose the secret here, so that the receiver has it before the first event arrives.
	secret := newSecret()
	verifier, err := webhooks.NewVerifier(string(secret))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhooks.NewHandler(verifier, show)
	if err != nil {
		log.Fatal(err)
	}
	receiver := httptest.NewServer(handler)
	defer receiver.Close()

	admin, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer admin.CloseIdleConnections()
	_, err = admin.Webhooks.Create(ctx, srv.TeamID, labhealth.TeamEnvironmentSandbox, management.CreateWebhookBody{
		URL: receiver.URL, Secret: secret, FilterTypes: []string{"provider.connection.created", "labtest.order.created"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("secret:", secret)

	// A user connects a wearable.
	if err := srv.Connect(srv.AddUser("ada"), "oura"); err != nil {
		log.Fatal(err)
	}
	if err := srv.Flush(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// secret: [redacted]
	// received provider.connection.created
}

// Rotate the secret of a webhook without losing a delivery: the receiver accepts the new secret
// before the sender uses it.
func ExampleWebhooksService_RotateSecret() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	const sandbox = labhealth.TeamEnvironmentSandbox

	admin, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer admin.CloseIdleConnections()

	// current is replaced while the receiver runs.
	var current atomic.Pointer[webhooks.Handler]
	accept := func(secrets ...string) error {
		verifier, err := webhooks.NewVerifier(secrets...)
		if err != nil {
			return err
		}
		handler, err := webhooks.NewHandler(verifier, show)
		current.Store(handler)
		return err
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.Load().ServeHTTP(w, r) }))
	defer receiver.Close()

	webhook, err := admin.Webhooks.Create(ctx, srv.TeamID, sandbox, management.CreateWebhookBody{URL: receiver.URL})
	if err != nil {
		log.Fatal(err)
	}
	old, err := admin.Webhooks.Secret(ctx, srv.TeamID, sandbox, webhook.ID)
	if err != nil {
		log.Fatal(err)
	}
	next := newSecret()
	connect := func() error {
		if err := srv.Connect(srv.AddUser("ada"), "oura"); err != nil {
			return err
		}
		return srv.Flush(ctx)
	}
	for _, step := range []func() error{
		func() error { return accept(string(old.Key)) },
		connect,
		func() error { return accept(string(old.Key), string(next)) }, // first the receiver
		connect,
		func() error { return admin.Webhooks.RotateSecret(ctx, srv.TeamID, sandbox, webhook.ID, next) }, // then the sender
		connect,
		func() error { return accept(string(next)) }, // a day or more later
		connect,
	} {
		if err := step(); err != nil {
			log.Fatal(err)
		}
	}
	for _, d := range srv.Deliveries() {
		fmt.Println(d.Attempt, d.StatusCode)
	}
	// Output:
	// received provider.connection.created
	// received provider.connection.created
	// received provider.connection.created
	// received provider.connection.created
	// 1 204
	// 1 204
	// 1 204
	// 1 204
}

// Use short-lived tokens in place of a team API key. They are created when needed.
func ExampleTeamsService_Credentials() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx, baseURL, teamID := context.Background(), srv.URL, srv.TeamID

	admin, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer admin.CloseIdleConnections()
	tokens := admin.Teams.Credentials(teamID, labhealth.TeamEnvironmentSandbox) // admin is a *management.Client
	client, err := labhealth.NewClient("", labhealth.WithEnvironment(labhealth.SandboxUS, baseURL), labhealth.WithCredentials(tokens))
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for range 2 {
		if _, err := client.Users.List(ctx, labhealth.ListUsersParams{}); err != nil {
			log.Fatal(err)
		}
	}
	for _, r := range srv.Requests() {
		fmt.Println(r.Method, r.Path[strings.LastIndex(r.Path, "/"):], r.StatusCode)
	}
	// Output:
	// POST /create_api_access_token 200
	// GET / 200
	// GET / 200
}

// Create a team and an API key for it. The integration team ID makes creating the team idempotent.
func ExampleTeamsService_Create() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()

	admin, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer admin.CloseIdleConnections()
	body := management.CreateTeamBody{Name: "Example Clinic", Region: labhealth.RegionUS, IntegrationTeamID: new("clinic-1")}
	team, err := admin.Teams.Create(ctx, body)
	if err != nil {
		log.Fatal(err)
	}
	_, err = admin.Teams.Create(ctx, body)
	var conflict *labhealth.TeamConflictError
	fmt.Println("team exists:", errors.As(err, &conflict) && conflict.TeamID == team.ID)

	const env = labhealth.SandboxUS
	key, err := admin.TeamAPIKeys.Create(ctx, env.TeamEnvironment(), env.Region(),
		management.CreateTeamAPIKeyBody{Label: "backend", TeamID: team.ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("key:", key.Value)

	// In production, the team API has its own base URL.
	client, err := labhealth.NewClient(string(key.Value), labhealth.WithEnvironment(env, srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	user, err := client.Users.Create(ctx, labhealth.CreateUserBody{ClientUserID: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("user belongs to the new team:", user.TeamID == team.ID)
	// Output:
	// team exists: true
	// key: [redacted]
	// user belongs to the new team: true
}

// Change the brand information of a team in steps. Omitted fields are unchanged, and Null clears one.
func ExampleTeamsService_UpdateBrandInformation() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	const sandbox = labhealth.TeamEnvironmentSandbox

	admin, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer admin.CloseIdleConnections()
	for _, body := range []management.UpdateBrandInformationBody{
		{CompanyName: labhealth.Value("Example Clinic"), SupportContact: labhealth.Value("+14155550123")},
		{BrandColor: labhealth.Value("#0a7d5c")},
		{SupportContact: labhealth.Null[string]()},
	} {
		if _, err := admin.Teams.UpdateBrandInformation(ctx, srv.TeamID, sandbox, body); err != nil {
			log.Fatal(err)
		}
	}

	team, err := admin.Teams.Get(ctx, srv.TeamID, management.GetTeamParams{IncludeEnvironment: []labhealth.TeamEnvironment{sandbox}})
	if err != nil {
		log.Fatal(err)
	}
	brand := team.Sandbox.BrandInformation
	fmt.Println(brand.CompanyName, *brand.BrandColor, brand.SupportContact == nil)
	// Output: Example Clinic #0a7d5c true
}

// Let another team use a lab account of the organisation.
func ExampleLabAccountsService_UpdateTeamIDAllowlist() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	const us, sandbox = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox

	admin, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer admin.CloseIdleConnections()
	team, err := admin.Teams.Create(ctx, management.CreateTeamBody{Name: "North", Region: us})
	if err != nil {
		log.Fatal(err)
	}
	accounts, err := admin.LabAccounts.List(ctx, sandbox, us, management.ListLabAccountsParams{Status: labhealth.LabAccountStatusActive})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range accounts {
		// The list replaces the previous one: keep its teams.
		changed, err := admin.LabAccounts.UpdateTeamIDAllowlist(ctx, sandbox, us, a.ID, append(a.TeamIDAllowlist, team.ID))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(changed.LabAccount.Lab, len(changed.LabAccount.TeamIDAllowlist))
	}
	// Output: quest 2
}

// Create a Team Management Key for two teams, which the web dashboard does not offer.
func ExampleKeysService_Create() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()

	org, err := management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer org.CloseIdleConnections()
	bindings := []management.TeamRoleBinding{}
	for _, name := range []string{"North", "South", "West"} {
		team, err := org.Teams.Create(ctx, management.CreateTeamBody{Name: name, Region: labhealth.RegionUS})
		if err != nil {
			log.Fatal(err)
		}
		bindings = append(bindings, management.TeamRoleBinding{TeamID: team.ID})
	}
	key, err := org.Keys.Create(ctx, management.CreateKeyBody{
		Label: "North and South", Role: management.KeyRoleTeamAdmin, TeamRoleBindings: bindings[:2],
	})
	if err != nil {
		log.Fatal(err)
	}

	limited, err := management.NewClient(srv.OrgID, string(key.Key), labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer limited.CloseIdleConnections()
	for team, err := range limited.Teams.All(ctx, management.ListTeamsParams{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(team.Name)
	}
	_, err = limited.Teams.Get(ctx, bindings[2].TeamID, management.GetTeamParams{})
	fmt.Println("other team is forbidden:", errors.Is(err, labhealth.ErrForbidden))
	_, err = limited.Teams.Create(ctx, management.CreateTeamBody{Name: "East", Region: labhealth.RegionUS})
	fmt.Println("creating a team is forbidden:", errors.Is(err, labhealth.ErrForbidden))
	// Output:
	// North
	// South
	// other team is forbidden: true
	// creating a team is forbidden: true
}

// Find out where an event is routed without calling the service.
func ExampleUpsertETLPipelinesBody_EventHubDestination() {
	body := management.UpsertETLPipelinesBody{
		TeamIDs: []uuid.UUID{uuid.MustParse("c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40")},
		AzureAMQP: &management.AzureAMQP{
			DefaultEventHub: "everything-else",
			EventHubMatchers: []management.EventHubMatcher{
				{EventTypePrefix: new("daily.data.sleep."), EventHub: new("sleep")},
				{EventTypeRegex: new(`^labtest\.`), EventHub: new("lab")},
			},
		},
	}
	for _, eventType := range []string{"daily.data.sleep.created", "labtest.order.updated", "provider.connection.created"} {
		destination, ok, err := body.EventHubDestination(eventType)
		fmt.Println(destination.EventHub, ok, err)
	}
	// Output:
	// sleep true <nil>
	// lab true <nil>
	// everything-else true <nil>
}
