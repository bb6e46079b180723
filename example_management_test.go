package labhealth_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// newSecret makes what a webhook is signed with.
func newSecret() labhealth.Secret {
	key := make([]byte, 32)
	rand.Read(key) // It never returns an error.
	return labhealth.Secret("whsec_" + base64.StdEncoding.EncodeToString(key))
}

// show is an application that prints the events it is called with.
func show(_ context.Context, e *webhooks.Event) error {
	fmt.Println("received", e.Type)
	return nil
}

// Create a webhook and receive its first event.
func ExampleWebhooksService_Create() {
	srv, err := labhealthtest.Start() // In production: the address of the management API.
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()

	// The secret is chosen here, so that the receiver has it before the first event comes.
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

	management, err := labhealth.NewManagementClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer management.CloseIdleConnections()
	_, err = management.Webhooks.Create(ctx, srv.TeamID, labhealth.TeamEnvironmentSandbox, labhealth.CreateWebhookBody{
		URL: receiver.URL, Secret: secret, FilterTypes: []string{"provider.connection.created", "labtest.order.created"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the secret is", secret)

	// A user connects a wearable.
	if err := srv.Connect(srv.AddUser("ada"), "oura"); err != nil {
		log.Fatal(err)
	}
	if err := srv.Flush(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the secret is [redacted]
	// received provider.connection.created
}

// Rotate the secret of a webhook without losing a delivery: the receiver knows the new secret before the sender uses it.
func ExampleWebhooksService_RotateSecret() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	const sandbox = labhealth.TeamEnvironmentSandbox

	management, err := labhealth.NewManagementClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer management.CloseIdleConnections()

	// The receiver's handler can be exchanged while it runs.
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

	webhook, err := management.Webhooks.Create(ctx, srv.TeamID, sandbox, labhealth.CreateWebhookBody{URL: receiver.URL})
	if err != nil {
		log.Fatal(err)
	}
	old, err := management.Webhooks.Secret(ctx, srv.TeamID, sandbox, webhook.ID)
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
		func() error { return accept(string(old.Key), string(next)) }, // first the receiver,
		connect,
		func() error { return management.Webhooks.RotateSecret(ctx, srv.TeamID, sandbox, webhook.ID, next) }, // then the sender
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

// Create a team with an API key, and use it. The reference of the team makes that repeatable.
func ExampleTeamsService_Create() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()

	management, err := labhealth.NewManagementClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer management.CloseIdleConnections()
	body := labhealth.CreateTeamBody{Name: "Example Clinic", Region: labhealth.RegionUS, IntegrationTeamID: new("clinic-1")}
	team, err := management.Teams.Create(ctx, body)
	if err != nil {
		log.Fatal(err)
	}
	_, err = management.Teams.Create(ctx, body)
	var conflict *labhealth.TeamConflictError
	fmt.Println("there already:", errors.As(err, &conflict) && conflict.TeamID == team.ID)

	key, err := management.TeamAPIKeys.Create(ctx, labhealth.TeamEnvironmentSandbox, labhealth.RegionUS,
		labhealth.CreateTeamAPIKeyBody{Label: "backend", TeamID: team.ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the key is", key.Value)

	// The team API has an address of its own in production.
	client, err := labhealth.NewClient(string(key.Value), labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	user, err := client.Users.Create(ctx, labhealth.CreateUserBody{ClientUserID: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("a user of the new team:", user.TeamID == team.ID)
	// Output:
	// there already: true
	// the key is [redacted]
	// a user of the new team: true
}

// Make a Team Management Key for two teams, which the web dashboard cannot.
func ExampleManagementKeysService_Create() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()

	organisation, err := labhealth.NewManagementClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer organisation.CloseIdleConnections()
	bindings := []labhealth.TeamRoleBinding{}
	for _, name := range []string{"North", "South", "West"} {
		team, err := organisation.Teams.Create(ctx, labhealth.CreateTeamBody{Name: name, Region: labhealth.RegionUS})
		if err != nil {
			log.Fatal(err)
		}
		bindings = append(bindings, labhealth.TeamRoleBinding{TeamID: team.ID})
	}
	key, err := organisation.Keys.Create(ctx, labhealth.CreateManagementKeyBody{
		Label: "North and South", Role: labhealth.ManagementKeyRoleTeamAdmin, TeamRoleBindings: bindings[:2],
	})
	if err != nil {
		log.Fatal(err)
	}

	limited, err := labhealth.NewManagementClient(srv.OrgID, string(key.Key), labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer limited.CloseIdleConnections()
	for team, err := range limited.Teams.All(ctx, labhealth.ListTeamsParams{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(team.Name)
	}
	_, err = limited.Teams.Get(ctx, bindings[2].TeamID, labhealth.GetTeamParams{})
	fmt.Println("another team:", errors.Is(err, labhealth.ErrForbidden))
	_, err = limited.Teams.Create(ctx, labhealth.CreateTeamBody{Name: "East", Region: labhealth.RegionUS})
	fmt.Println("a new team:", errors.Is(err, labhealth.ErrForbidden))
	// Output:
	// North
	// South
	// another team: true
	// a new team: true
}

// Where events would go can be said without asking the service.
func ExampleUpsertETLPipelinesBody_EventHubDestination() {
	body := labhealth.UpsertETLPipelinesBody{
		TeamIDs: []uuid.UUID{uuid.MustParse("c2a7e5d4-0b1f-4c3e-8d6a-9e7f1b2c3d40")},
		AzureAMQP: &labhealth.AzureAMQP{
			DefaultEventHub: "everything-else",
			EventHubMatchers: []labhealth.EventHubMatcher{
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
