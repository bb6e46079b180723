package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// The catalogue, page by page. An iterator holds one page at a time.
func ExampleLabTestsService_All() {
	client, service, _ := exampleService()
	defer service.Close()

	params := labhealth.ListLabTestsParams{
		Status: labhealth.LabTestStatusActive, CollectionMethod: labhealth.CollectionMethodWalkInTest, LabTestLimit: 2,
	}
	for labTest, err := range client.LabTests.All(context.Background(), params) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s of %s for %s:", labTest.Name, labTest.Lab.Name, labTest.Price)
		for _, marker := range labTest.Markers {
			fmt.Printf(" %d %s", marker.ID, marker.Slug)
		}
		fmt.Println()
	}
	// Output:
	// Lipid Panel of Example Laboratories for 45.00: 901 total-cholesterol 902 hdl-cholesterol
	// Glucose of Other Laboratories for 45.00: 903 glucose
	// Lead of Example Laboratories for 45.00: 904 lead-blood
}

// The event of a workout stream is only a notice: the stream is too large for it, and is read afterwards.
func ExampleWorkoutsService_Stream() {
	client, service, user := exampleService()
	defer service.Close()

	notices := make(chan *webhooks.WorkoutStreamNotice, 1)
	handler, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, event *webhooks.Event) error {
		if notice, ok := event.Data.(*webhooks.WorkoutStreamNotice); ok {
			notices <- notice
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	application := httptest.NewServer(handler)
	defer application.Close()
	if err := service.DeliverTo(application.URL); err != nil {
		log.Fatal(err)
	}
	if _, err := service.AddWorkout(user, 1800); err != nil {
		log.Fatal(err)
	}

	notice := <-notices
	stream, err := client.Workouts.Stream(context.Background(), notice.WorkoutID)
	if err != nil {
		log.Fatal(err)
	}
	var sum, n, missing int64
	for _, beat := range stream.Heartrate {
		if beat != nil {
			sum, n = sum+*beat, n+1
		} else {
			missing++
		}
	}
	fmt.Printf("%s: %d seconds, %d beats per minute, %d values missing\n", notice.Sport.Name, len(stream.Time), sum/n, missing)
	// Output:
	// Cycling: 1800 seconds, 130 beats per minute, 180 values missing
}

// The team's users, page by page.
func ExampleUsersService_All() {
	client, service, _ := exampleService()
	defer service.Close()
	service.AddUser("grace")
	service.AddUser("alan")

	for user, err := range client.Users.All(context.Background(), labhealth.ListUsersParams{Limit: 2}) {
		if err != nil {
			log.Fatal(err) // an error ends the list
		}
		fmt.Println(user.ClientUserID)
	}
	// Output:
	// ada
	// grace
	// alan
}

// GetOrCreate may be called as often as one likes: there is one user.
func ExampleUsersService_GetOrCreate() {
	client, service, _ := exampleService()
	defer service.Close()
	ctx := context.Background()

	first, err := client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "grace"})
	if err != nil {
		log.Fatal(err)
	}
	again, err := client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "grace"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same user:", first.UserID == again.UserID)
	// Output:
	// the same user: true
}

// For seven days a deletion can be undone.
func ExampleUsersService_UndoDelete() {
	now := time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)
	service, err := labhealthtest.Start(labhealthtest.WithClock(func() time.Time { return now }))
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	user := service.AddUser("ada")

	for _, days := range []int{7, 8} {
		if _, err := client.Users.Delete(ctx, user); err != nil {
			log.Fatal(err)
		}
		_, err = client.Users.Get(ctx, user)
		fmt.Println("deleted:", errors.Is(err, labhealth.ErrNotFound))

		now = now.AddDate(0, 0, days)
		_, err = client.Users.UndoDelete(ctx, labhealth.UndoDeleteParams{ClientUserID: "ada"})
		fmt.Printf("undone after %d days: %v\n", days, err == nil)
	}
	// Output:
	// deleted: true
	// undone after 7 days: true
	// deleted: true
	// undone after 8 days: false
}

// Whether the older data of a user's connections was pulled, and if not, why.
func ExampleUsersService_AllHistoricalPulls() {
	client, service, user := exampleService()
	defer service.Close()
	if err := service.Connect(user, "oura"); err != nil {
		log.Fatal(err)
	}
	if err := service.SetHistoricalPull(user, "oura", "sleep", "retrying", "provider_rate_limit_exceeded"); err != nil {
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
