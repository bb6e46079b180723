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

// The details of an order depend on how the sample is collected. What this version does not know keeps its bytes.
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
		fmt.Println("a kit, on its way:", data.Shipment != nil)
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

// Enumerations may gain values at any time: a switch over them needs a default case. A status has three parts, and the first of
// them changes least.
func ExampleOrderStatus() {
	for _, status := range []labhealth.OrderStatus{
		labhealth.OrderStatusCompletedTestkitCompleted,
		"collecting_sample.drone_collection.in_flight",
	} {
		switch status.TopLevel() {
		case labhealth.TopLevelCompleted:
			fmt.Println("done")
		case labhealth.TopLevelCancelled, labhealth.TopLevelFailed:
			fmt.Println("over")
		default:
			fmt.Println("under way:", status.TopLevel(), "by", status.Method(), "now", status.LowLevel())
		}
	}
	// Output:
	// done
	// under way: collecting_sample by drone_collection now in_flight
}

// A member whose value does not fit never fails its order: it is left zero, is named, and keeps its bytes. Encoding the order writes
// all that came, with the program's changes on top.
func ExampleRawObject() {
	var event labhealth.OrderEvent
	err := json.Unmarshal([]byte(`{"id":7,"created_at":"yesterday","status":"received.testkit.ordered","new_member":[1]}`), &event)
	fmt.Println(err, event.ID, event.Status, event.CreatedAt.IsZero())
	for _, m := range event.Malformed() {
		fmt.Println(m.Path, "is not a", m.Want)
	}
	fmt.Println(string(event.RawJSON()))

	event.ID = 8
	text, err := json.Marshal(event)
	fmt.Println(string(text), err)
	// Output:
	// <nil> 7 received.testkit.ordered true
	// created_at is not a date-time
	// {"id":7,"created_at":"yesterday","status":"received.testkit.ordered","new_member":[1]}
	// {"id":8,"created_at":"yesterday","status":"received.testkit.ordered","new_member":[1]} <nil>
}

// For activate_by, leaving it out and null are different things: null releases the order.
func ExampleNullable() {
	for _, body := range []labhealth.UpdateOrderBody{
		{},
		{ActivateBy: labhealth.Null[labhealth.Date]()},
		{ActivateBy: labhealth.Value(labhealth.Date{Year: 2030, Month: time.May, Day: 17})},
		{ActivateBy: labhealth.Value(labhealth.Date{})}, // a date that was forgotten must not release an order
	} {
		text, err := json.Marshal(body)
		fmt.Println(string(text), err != nil)
	}
	// Output:
	// {} false
	// {"activate_by":null} false
	// {"activate_by":"2030-05-17"} false
	//  true
}

// Types that hold patient data do not show it, printed or logged. Encoding to JSON is complete.
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
	// labhealth.PatientDetailsWithValidation{redacted}
	// labhealth.PatientDetailsWithValidation{redacted}
	// level=INFO msg=imported patient=labhealth.PatientDetailsWithValidation{redacted}
}

// A date has no time and no zone, and can be compared.
func ExampleDateOf() {
	tokyo := time.FixedZone("Tokyo", 9*60*60)
	midnight := time.Date(2030, time.May, 17, 0, 30, 0, 0, tokyo)
	fmt.Println(labhealth.DateOf(midnight), labhealth.DateOf(midnight.UTC()))
	fmt.Println(labhealth.DateOf(midnight) == labhealth.Date{Year: 2030, Month: time.May, Day: 17})
	// Output:
	// 2030-05-17 2030-05-16
	// true
}
