package labhealth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// An order from its creation to its results. What moves the embedded service is the work of the patient and of the lab elsewhere.
func ExampleOrdersService_Results() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()

	placed, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{
		UserID:         user,
		PatientDetails: ada,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		OrderSet:   &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.WalkIn, service.LabTests.WithQuestions}},
		AoEAnswers: []labhealth.AoEAnswer{{MarkerID: 904, QuestionID: 1234567890251, Answer: "I"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	id := placed.Order.ID
	fmt.Println(placed.Order.CurrentStatus())

	_, err = client.Orders.Results(ctx, id)
	fmt.Println("not yet:", errors.Is(err, labhealth.ErrNotFound))

	for err = nil; err == nil; {
		_, err = service.Advance(id)
	}
	if err := service.SetMissing(id, 902, "quantity_not_sufficient_failure"); err != nil {
		fmt.Println(err)
		return
	}

	results, err := client.Orders.Results(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results.Results {
		switch v := r.Parse().(type) {
		case labhealth.NumericResult:
			fmt.Println(r.Slug, "is", v.Value, *r.Unit, r.Interpretation)
		case labhealth.RangeResult:
			if v.High != nil {
				fmt.Println(r.Slug, "is at most", *v.High, *r.Unit, r.Interpretation)
			}
		default:
			fmt.Println(r.Slug, "is text:", r.Result)
		}
	}
	for _, m := range results.MissingResults {
		fmt.Println(m.Slug, "is missing:", m.InferredFailureType)
	}
	// Output:
	// received.walk_in_test.ordered
	// not yet: true
	// total-cholesterol is 182 mg/dL normal
	// lead-blood is at most 1 ug/dL normal
	// hdl-cholesterol is missing: quantity_not_sufficient_failure
}

// The requisition goes to a file, to a response, or to anything else that is an io.Writer.
func ExampleOrdersService_RequisitionPDF() {
	client, service, user := exampleService()
	defer service.Close()
	id, err := service.AddOrder(user, service.LabTests.WalkIn)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Orders.RequisitionPDF(context.Background(), id, io.Discard)
	fmt.Println("not yet:", errors.Is(err, labhealth.ErrNotFound))

	if _, err := service.Advance(id); err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	n, err := client.Orders.RequisitionPDF(context.Background(), id, &file)
	fmt.Printf("%.8s, all of it: %v, error %v\n", &file, n == int64(file.Len()), err)
	// Output:
	// not yet: true
	// %PDF-1.4, all of it: true, error <nil>
}

// The catalogue, page by page. An iterator holds one page at a time.
func ExampleLabTestsService_All() {
	client, service, _ := exampleService()
	defer service.Close()

	params := labhealth.ListLabTestsParams{
		Status: labhealth.LabTestStatusActive, CollectionMethod: labhealth.CollectionMethodWalkInTest, LabTestLimit: 2,
	}
	for labTest, err := range client.LabTests.All(context.Background(), params) {
		if err != nil {
			fmt.Println(err)
			return
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
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
			return
		}
		event, err := webhooks.Parse(body)
		if err != nil {
			http.Error(w, "not an event", http.StatusBadRequest)
			return
		}
		if notice, ok := event.Data.(*webhooks.WorkoutStreamNotice); ok {
			notices <- notice
		}
	}))
	defer application.Close()
	if err := service.DeliverTo(application.URL); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := service.AddWorkout(user, 1800); err != nil {
		fmt.Println(err)
		return
	}

	notice := <-notices
	stream, err := client.Workouts.Stream(context.Background(), notice.WorkoutID)
	if err != nil {
		fmt.Println(err)
		return
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

// GetOrCreate may be called as often as one likes: there is one user.
func ExampleUsersService_GetOrCreate() {
	client, service, _ := exampleService()
	defer service.Close()
	ctx := context.Background()

	first, err := client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "grace"})
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "grace"})
	if err != nil {
		fmt.Println(err)
		return
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
		fmt.Println(err)
		return
	}
	defer service.Close()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	user := service.AddUser("ada")

	for _, days := range []int{7, 8} {
		if _, err := client.Users.Delete(ctx, user); err != nil {
			fmt.Println(err)
			return
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
		fmt.Println(err)
		return
	}
	if err := service.SetHistoricalPull(user, "oura", "sleep", "retrying", "provider_rate_limit_exceeded"); err != nil {
		fmt.Println(err)
		return
	}
	params := labhealth.HistoricalPullsParams{Provider: "oura"}
	for pulls, err := range client.Users.AllHistoricalPulls(context.Background(), params) {
		if err != nil {
			fmt.Println(err)
			return
		}
		sleep := pulls.Provider["oura"].Pulled["sleep"]
		fmt.Println("sleep:", sleep.Status, string(sleep.ErrorDetails))
		fmt.Println("activity:", pulls.Provider["oura"].Pulled["activity"].Status)
	}
	// Output:
	// sleep: retrying "provider_rate_limit_exceeded"
	// activity: success
}

// Cancelling has no method: it goes through Do, and the answer is read as that of the other operations on orders.
func ExampleClient_Do_cancel() {
	client, service, user := exampleService()
	defer service.Close()
	id, err := service.AddOrder(user, service.LabTests.Testkit)
	if err != nil {
		fmt.Println(err)
		return
	}
	var cancelled labhealth.PostOrderResponse
	path := "/v3/order/" + id.String() + "/cancel"
	if err := client.Do(context.Background(), http.MethodPost, path, nil, &cancelled); err != nil {
		fmt.Println(err, labhealth.OutcomeOf(err))
		return
	}
	fmt.Println(cancelled.Order.CurrentStatus())

	err = client.Do(context.Background(), http.MethodPost, path, nil, nil)
	fmt.Println("again:", labhealth.OutcomeOf(err))
	// Output:
	// cancelled.testkit.cancelled
	// again: rejected
}
