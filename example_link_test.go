package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/labhealth/labhealth-go"
)

// Connect a user to a provider: create a link token, send the user to its page, and read the
// connection and its devices.
func ExampleLinkService() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	token, err := client.Link.CreateToken(ctx, labhealth.CreateLinkTokenBody{
		UserID:            userID,
		FilterOnProviders: []labhealth.Provider{labhealth.ProviderOura, labhealth.ProviderFitbit},
		RedirectURL:       new("https://app.example.com/connected"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token) // it is a secret; redirect the user to string(token.LinkWebURL)

	// In this example the embedded service does what the user does on the page.
	if err := srv.CompleteLink(string(token.LinkToken), "oura"); err != nil {
		log.Fatal(err)
	}

	connected, err := client.Users.ConnectedProviders(ctx, userID)
	if err != nil {
		log.Fatal(err)
	}
	for _, list := range connected {
		for _, p := range list {
			fmt.Println(p.Name, p.Status, p.ResourceAvailability["sleep"].Status)
		}
	}
	devices, err := client.Users.Devices(ctx, userID)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range devices {
		fmt.Println(*d.DeviceModel, d.SourceType)
	}
	// Output:
	// {redacted}
	// Oura connected available
	// Oura Ring Gen3 ring
}

// Refresh reads the newest data from the providers. It is allowed 8 times per hour and user.
func ExampleUsersService_Refresh() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	if err := srv.Connect(userID, "oura"); err != nil {
		log.Fatal(err)
	}

	refresh, err := client.Users.Refresh(ctx, userID, labhealth.RefreshUserParams{Timeout: 20 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("refreshed:", refresh.RefreshedSources)

	// The connection breaks. Its user has to connect again.
	if err := srv.SetConnectionError(userID, "oura", "token_refresh_failed"); err != nil {
		log.Fatal(err)
	}
	_, err = client.Users.Refresh(ctx, userID, labhealth.RefreshUserParams{})
	var failed *labhealth.UserRefreshError
	if errors.As(err, &failed) {
		fmt.Println("failed:", failed.FailedSources)
	}
	// Output:
	// refreshed: [oura/activity oura/sleep oura/workouts]
	// failed: [oura/activity oura/sleep oura/workouts]
}

// Update changes some fields of a user. Null clears a field, and fields that are left out keep their
// values.
func ExampleUsersService_Update() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	err := client.Users.Update(ctx, userID, labhealth.UpdateUserBody{
		ClientUserID:      new("ada-example"),
		FallbackTimeZone:  labhealth.Value("Europe/London"),
		FallbackBirthDate: labhealth.Null[labhealth.Date](),
	})
	if err != nil {
		log.Fatal(err)
	}
	user, err := client.Users.Resolve(ctx, "ada-example")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(user.FallbackTimeZone.ID, user.FallbackBirthDate == nil)
	// Output:
	// Europe/London true
}
