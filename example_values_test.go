package labhealth_test

import (
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/labhealth/labhealth-go"
)

// The type of an order's details depends on the collection method. Unknown types keep their JSON.
func ExampleOrderDetails() {
	var order labhealth.Order
	err := json.Unmarshal([]byte(`{
		"id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
		"details": {"type": "drone_collection", "data": {"drone": 7}}
	}`), &order)
	if err != nil {
		log.Fatal(err)
	}
	switch data := order.Details.Data.(type) {
	case *labhealth.TestkitOrder:
		fmt.Println("test kit shipped:", data.Shipment != nil)
	case *labhealth.WalkInTestOrder:
		fmt.Println("appointment:", data.AppointmentID)
	case *labhealth.AtHomePhlebotomyOrder:
		fmt.Println("appointment:", data.AppointmentID)
	case *labhealth.OnSiteCollectionOrder:
		fmt.Println("collected on site")
	case *labhealth.UnknownOrderDetails:
		fmt.Println(order.Details.Type, string(data.RawJSON()))
	case nil:
		fmt.Println("no details")
	}
	// Output:
	// drone_collection {"drone": 7}
}

// Switch on the first part of a status, which changes least. New values may appear at any time, so
// the switch needs a default case.
func ExampleOrderStatus() {
	for _, status := range []labhealth.OrderStatus{
		labhealth.OrderStatusCompletedTestkitCompleted,
		"collecting_sample.drone_collection.in_flight",
	} {
		switch status.TopLevel() {
		case labhealth.TopLevelCompleted:
			fmt.Println("done")
		case labhealth.TopLevelCancelled, labhealth.TopLevelFailed:
			fmt.Println("closed")
		default:
			fmt.Println(status.TopLevel(), status.Method(), status.LowLevel())
		}
	}
	// Output:
	// done
	// collecting_sample drone_collection in_flight
}

// A malformed field is left zero and reported by Malformed. Encoding the value writes every
// received field, including malformed and unknown ones, with the program's changes.
func ExampleRawObject() {
	var event labhealth.OrderEvent
	err := json.Unmarshal([]byte(`{"id":7,"created_at":"yesterday","status":"received.testkit.ordered","new_member":[1]}`), &event)
	fmt.Println(err, event.ID, event.Status, event.CreatedAt.IsZero())
	for _, m := range event.Malformed() {
		fmt.Println(m.Path, "is not a", m.Want)
	}
	fmt.Println(string(event.RawJSON()))

	event.ID = 8
	encoded, err := json.Marshal(event)
	fmt.Println(string(encoded), err)
	// Output:
	// <nil> 7 received.testkit.ordered true
	// created_at is not a date-time
	// {"id":7,"created_at":"yesterday","status":"received.testkit.ordered","new_member":[1]}
	// {"id":8,"created_at":"yesterday","status":"received.testkit.ordered","new_member":[1]} <nil>
}

// For activate_by, null and an omitted field differ: null releases the order.
func ExampleNullable() {
	for _, body := range []labhealth.UpdateOrderBody{
		{},
		{ActivateBy: labhealth.Null[labhealth.Date]()},
		{ActivateBy: labhealth.Value(labhealth.Date{Year: 2030, Month: time.May, Day: 17})},
		{ActivateBy: labhealth.Value(labhealth.Date{})}, // the zero Date is an error: it must not release the order
	} {
		encoded, err := json.Marshal(body)
		fmt.Println(string(encoded), err != nil)
	}
	// Output:
	// {} false
	// {"activate_by":null} false
	// {"activate_by":"2030-05-17"} false
	//  true
}

// Types that hold patient data are redacted when printed or logged. Encoding them as JSON is not.
func ExamplePatientDetailsWithValidation() {
	fmt.Printf("%v\n%+v\n", ada, &ada)
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	logger.Info("imported", "patient", ada)
	// Output:
	// {redacted}
	// {redacted}
	// level=INFO msg=imported patient={redacted}
}

// A Date has neither a time nor a zone, and is comparable.
func ExampleDateOf() {
	tokyo := time.FixedZone("Tokyo", 9*60*60)
	midnight := time.Date(2030, time.May, 17, 0, 30, 0, 0, tokyo)
	fmt.Println(labhealth.DateOf(midnight), labhealth.DateOf(midnight.UTC()))
	fmt.Println(labhealth.DateOf(midnight) == labhealth.Date{Year: 2030, Month: time.May, Day: 17})
	// Output:
	// 2030-05-17 2030-05-16
	// true
}
