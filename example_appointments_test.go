package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/labhealth/labhealth-go"
)

// Book an appointment at home: find the free times, book the first one that has a booking key, and
// follow the order.
func ExampleAppointmentsService_Book() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	orderID, err := srv.AddOrder(userID, srv.LabTests.AtHome) // client.Orders.Create
	if err != nil {
		log.Fatal(err)
	}

	address := labhealth.USAddress{FirstLine: "1 Example Street", City: "San Francisco", State: "CA", ZipCode: "94105"}
	availability, err := client.Appointments.AtHomeAvailability(ctx, address, labhealth.AtHomeAvailabilityParams{})
	if err != nil {
		log.Fatal(err)
	}
	var bookingKey string
	for _, day := range availability.Slots {
		for _, slot := range day.Slots {
			if slot.BookingKey != nil && bookingKey == "" {
				bookingKey = *slot.BookingKey
			}
		}
	}

	appointment, err := client.Appointments.Book(ctx, labhealth.AppointmentAtHome, orderID,
		labhealth.BookAppointmentBody{BookingKey: bookingKey, AppointmentNotes: new("Please ring twice")})
	if err != nil {
		log.Fatalf("%v (outcome: %s)", err, labhealth.OutcomeOf(err))
	}
	fmt.Println(appointment.Status, appointment.Provider)

	order, err := client.Orders.Get(ctx, orderID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.CurrentStatus())
	// Output:
	// confirmed getlabs
	// collecting_sample.at_home_phlebotomy.appointment_scheduled
}

// Cancel a walk-in appointment. The order is still open, and another appointment can be booked.
func ExampleAppointmentsService_Cancel() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	orderID, err := srv.AddOrder(userID, srv.LabTests.WalkIn)
	if err != nil {
		log.Fatal(err)
	}
	order, err := client.Orders.Get(ctx, orderID)
	if err != nil {
		log.Fatal(err)
	}
	kind := order.Details.Type.AppointmentType() // AppointmentWalkIn
	if _, err := client.Appointments.Get(ctx, kind, orderID); errors.Is(err, labhealth.ErrNotFound) {
		fmt.Println("no appointment yet")
	}
	for { // the embedded service schedules an appointment
		status, err := srv.Advance(orderID)
		if err != nil {
			log.Fatal(err)
		}
		if labhealth.OrderStatus(status).LowLevel() == labhealth.LowLevelAppointmentScheduled {
			break
		}
	}

	reasons, err := client.Appointments.CancellationReasons(ctx, kind)
	if err != nil {
		log.Fatal(err)
	}
	for _, reason := range reasons {
		fmt.Printf("%s, refundable: %t\n", reason.Name, reason.IsRefundable)
	}
	appointment, err := client.Appointments.Cancel(ctx, kind, orderID,
		labhealth.CancelAppointmentBody{CancellationReasonID: reasons[0].ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(appointment.Status)
	// Output:
	// no appointment yet
	// The patient is not available, refundable: true
	// Another site is closer, refundable: true
	// cancelled
}
