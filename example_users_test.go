package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// List the team's users. All fetches one page at a time.
func ExampleUsersService_All() {
	client, srv, _ := exampleService()
	defer srv.Close()
	srv.AddUser("grace")
	srv.AddUser("alan")
	ctx := context.Background()

	for user, err := range client.Users.All(ctx, labhealth.ListUsersParams{Limit: 500}) {
		if err != nil {
			log.Fatal(err) // the iterator stops after an error
		}
		fmt.Println(user.ClientUserID)
	}
	// Output:
	// ada
	// grace
	// alan
}

// GetOrCreate is idempotent: calling it again returns the same user.
func ExampleUsersService_GetOrCreate() {
	client, srv, _ := exampleService()
	defer srv.Close()
	ctx := context.Background()

	first, err := client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "grace"})
	if err != nil {
		log.Fatal(err)
	}
	second, err := client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "grace"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("same user:", first.UserID == second.UserID)
	// Output:
	// same user: true
}

// Creating a user fails if the client user ID is in use. The error holds the existing user's ID.
func ExampleUserConflictError() {
	client, srv, _ := exampleService()
	defer srv.Close()

	_, err := client.Users.Create(context.Background(), labhealth.CreateUserBody{ClientUserID: "ada"})
	var conflict *labhealth.UserConflictError
	if errors.As(err, &conflict) {
		fmt.Println("existing user:", conflict.UserID)
	}
	// Output:
	// existing user: d67084ca-af0e-4d36-8849-6db7fef55fe0
}

// A deleted user can be restored for seven days.
func ExampleUsersService_UndoDelete() {
	now := time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)
	srv, err := labhealthtest.Start(labhealthtest.WithClock(func() time.Time { return now }))
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	userID := srv.AddUser("ada")

	for _, days := range []int{7, 8} {
		if _, err := client.Users.Delete(ctx, userID); err != nil {
			log.Fatal(err)
		}
		_, err = client.Users.Get(ctx, userID)
		fmt.Println("deleted:", errors.Is(err, labhealth.ErrNotFound))

		now = now.AddDate(0, 0, days)
		_, err = client.Users.UndoDelete(ctx, labhealth.UndoDeleteParams{ClientUserID: "ada"})
		fmt.Printf("restored after %d days: %v\n", days, err == nil)
	}
	// Output:
	// deleted: true
	// restored after 7 days: true
	// deleted: true
	// restored after 8 days: false
}

// Read the status of the historical pulls that follow when a user connects a provider.
func ExampleUsersService_AllHistoricalPulls() {
	client, srv, userID := exampleService()
	defer srv.Close()
	if err := srv.Connect(userID, "oura"); err != nil {
		log.Fatal(err)
	}
	if err := srv.SetHistoricalPull(userID, "oura", "sleep", "retrying", "provider_rate_limit_exceeded"); err != nil {
		log.Fatal(err)
	}
	params := labhealth.ListHistoricalPullsParams{Provider: "oura"}
	for pulls, err := range client.Users.AllHistoricalPulls(context.Background(), params) {
		if err != nil {
			log.Fatal(err)
		}
		sleep := pulls.Provider["oura"].Pulled["sleep"]
		fmt.Println("sleep:", sleep.Status, string(sleep.ErrorDetails))
		fmt.Println("activity:", pulls.Provider["oura"].Pulled["activity"].Status)
	}
	// Output:
	// sleep: retrying "provider_rate_limit_exceeded"
	// activity: success
}
