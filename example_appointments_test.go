package labhealth_test

import (
	"context"
	"crypto/sha256"
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
	times, err := client.Appointments.AtHomeAvailability(ctx, address, labhealth.AtHomeAvailabilityParams{})
	if err != nil {
		log.Fatal(err)
	}
	slot := firstFree(times) // your choice among times.Slots: a slot that has a BookingKey
	appointment, err := client.Appointments.Book(ctx, labhealth.AppointmentAtHome, orderID,
		labhealth.BookAppointmentBody{BookingKey: *slot.BookingKey, AppointmentNotes: new("Please ring twice")})
	if err != nil {
		log.Fatal(err)
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

// firstFree returns the first slot that can be booked.
func firstFree(times *labhealth.AppointmentAvailability) labhealth.TimeSlot {
	for _, day := range times.Slots {
		for _, slot := range day.Slots {
			if slot.BookingKey != nil {
				return slot
			}
		}
	}
	log.Fatal("no free time")
	return labhealth.TimeSlot{}
}

// Book a walk-in appointment at a site of the order's lab. An idempotency key that is derived from
// the booking key permits retries, where the deployment honors it.
func ExampleAppointmentsService_WalkInAvailability() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	orderID, err := srv.AddOrder(userID, srv.LabTests.WalkIn)
	if err != nil {
		log.Fatal(err)
	}

	sites, err := client.Appointments.OrderSites(ctx, orderID, labhealth.OrderSitesParams{
		Capabilities: []labhealth.LabLocationCapability{labhealth.LabLocationScheduling},
	})
	if err != nil {
		log.Fatal(err)
	}
	params := labhealth.WalkInAvailabilityParams{Lab: sites.Slug}
	for _, site := range sites.PatientServiceCenters {
		params.SiteCodes = append(params.SiteCodes, site.SiteCode)
	}
	times, err := client.Appointments.WalkInAvailability(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	slot := firstFree(times)
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(*slot.BookingKey)))
	appointment, err := client.Appointments.Book(ctx, labhealth.AppointmentWalkIn, orderID,
		labhealth.BookAppointmentBody{BookingKey: *slot.BookingKey}, labhealth.WithIdempotencyKey(key))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sites.Slug, appointment.Status, appointment.Provider)
	// Output:
	// quest confirmed quest
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
