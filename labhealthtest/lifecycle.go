package labhealthtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// next is the natural next step of each status, from the diagrams of the public reference. requisition_bypassed goes on like
// requisition_created.
var next = map[string]string{
	"received.testkit.ordered":                              "received.testkit.requisition_created",
	"received.testkit.awaiting_registration":                "collecting_sample.testkit.transit_customer",
	"received.testkit.requisition_created":                  "collecting_sample.testkit.transit_customer",
	"received.testkit.requisition_bypassed":                 "collecting_sample.testkit.transit_customer",
	"received.testkit.registered":                           "received.testkit.requisition_created",
	"collecting_sample.testkit.transit_customer":            "collecting_sample.testkit.out_for_delivery",
	"collecting_sample.testkit.problem_in_transit_customer": "collecting_sample.testkit.out_for_delivery",
	"collecting_sample.testkit.out_for_delivery":            "collecting_sample.testkit.with_customer",
	"collecting_sample.testkit.with_customer":               "collecting_sample.testkit.transit_lab",
	"collecting_sample.testkit.transit_lab":                 "sample_with_lab.testkit.delivered_to_lab",
	"collecting_sample.testkit.problem_in_transit_lab":      "sample_with_lab.testkit.delivered_to_lab",
	"sample_with_lab.testkit.delivered_to_lab":              "completed.testkit.completed",
	"sample_with_lab.testkit.lab_processing_blocked":        "completed.testkit.completed",

	"received.walk_in_test.ordered":                        "received.walk_in_test.requisition_created",
	"received.walk_in_test.requisition_created":            "collecting_sample.walk_in_test.appointment_pending",
	"received.walk_in_test.requisition_bypassed":           "collecting_sample.walk_in_test.appointment_pending",
	"collecting_sample.walk_in_test.appointment_pending":   "collecting_sample.walk_in_test.appointment_scheduled",
	"collecting_sample.walk_in_test.appointment_cancelled": "collecting_sample.walk_in_test.appointment_pending",
	"collecting_sample.walk_in_test.redraw_available":      "collecting_sample.walk_in_test.appointment_pending",
	"collecting_sample.walk_in_test.appointment_scheduled": "completed.walk_in_test.completed",
	"sample_with_lab.walk_in_test.partial_results":         "completed.walk_in_test.completed",

	"received.at_home_phlebotomy.ordered":                        "received.at_home_phlebotomy.requisition_created",
	"received.at_home_phlebotomy.requisition_created":            "collecting_sample.at_home_phlebotomy.appointment_pending",
	"received.at_home_phlebotomy.requisition_bypassed":           "collecting_sample.at_home_phlebotomy.appointment_pending",
	"collecting_sample.at_home_phlebotomy.appointment_pending":   "collecting_sample.at_home_phlebotomy.appointment_scheduled",
	"collecting_sample.at_home_phlebotomy.appointment_cancelled": "collecting_sample.at_home_phlebotomy.appointment_pending",
	"collecting_sample.at_home_phlebotomy.appointment_scheduled": "collecting_sample.at_home_phlebotomy.draw_completed",
	"collecting_sample.at_home_phlebotomy.draw_completed":        "completed.at_home_phlebotomy.completed",
	"sample_with_lab.at_home_phlebotomy.partial_results":         "completed.at_home_phlebotomy.completed",

	"received.on_site_collection.ordered":                "received.on_site_collection.requisition_created",
	"received.on_site_collection.requisition_created":    "sample_with_lab.on_site_collection.draw_completed",
	"received.on_site_collection.requisition_bypassed":   "sample_with_lab.on_site_collection.draw_completed",
	"sample_with_lab.on_site_collection.draw_completed":  "completed.on_site_collection.completed",
	"sample_with_lab.on_site_collection.partial_results": "completed.on_site_collection.completed",
}

// nextOfRegistrable replaces steps of a testkit that had to be registered by its user: the requisition is made when the user has
// the kit.
var nextOfRegistrable = map[string]string{
	"collecting_sample.testkit.with_customer": "received.testkit.registered",
	"received.testkit.requisition_created":    "collecting_sample.testkit.transit_lab",
}

// Advance moves an order to the natural next step of its collection method and returns the status it has then. A testkit goes
// from ordered to completed by way of the customer, the other methods by way of an appointment or a draw; one that was set to
// received.testkit.awaiting_registration is registered on its way. Advance fails for an order that does not exist, and where no
// next step is known: at the end, and after a status that [Server.SetStatus] made up.
func (s *Server) Advance(orderID uuid.UUID) (status string, err error) {
	err = s.change(orderID, func(o *order, now time.Time) error {
		from := o.LastEvent.Status
		status = o.following(from)
		if status == "" {
			return fmt.Errorf("labhealthtest: no step follows %q", from)
		}
		s.step(o, status, "", now)
		return nil
	})
	return status, err
}

// SetStatus gives an order a new event with any status, such as "collecting_sample.testkit.with_customer" or one that is not in
// the interface document. It fails for an order that does not exist; moves are not restricted.
func (s *Server) SetStatus(orderID uuid.UUID, status string) error {
	return s.change(orderID, func(o *order, now time.Time) error {
		s.step(o, status, "", now)
		return nil
	})
}

// PartialResults moves an order to partial_results; doing it again repeats the status in the order's events. It fails for
// testkits, which know no such status.
func (s *Server) PartialResults(orderID uuid.UUID) error {
	return s.change(orderID, func(o *order, now time.Time) error {
		if o.Details.Type == "testkit" {
			return fmt.Errorf("labhealthtest: testkit orders have no partial results")
		}
		s.step(o, "sample_with_lab."+o.Details.Type+".partial_results", "", now)
		return nil
	})
}

// Fail moves an order to sample_error with the status detail, such as "sample_hemolyzed"; the detail is null where it is empty.
// Other failures are set by [Server.SetStatus].
func (s *Server) Fail(orderID uuid.UUID, detail string) error {
	return s.change(orderID, func(o *order, now time.Time) error {
		s.step(o, "failed."+o.Details.Type+".sample_error", detail, now)
		return nil
	})
}

// Cancel cancels an order and so its transaction. It fails for an order that is completed or cancelled already.
func (s *Server) Cancel(orderID uuid.UUID) error {
	return s.change(orderID, s.cancel)
}

// SetInterpretation sets the interpretation of an order's results, such as "abnormal"; an empty one is null. It sends no event.
func (s *Server) SetInterpretation(orderID uuid.UUID, interpretation string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orderByID[orderID]
	if o == nil {
		return errNoOrder
	}
	o.Interpretation = nil
	if interpretation != "" {
		o.Interpretation = &interpretation
	}
	o.UpdatedAt = stamp(s.now())
	return nil
}

// Orders returns the ids of all orders, oldest first: what the server committed, whatever its clients were told.
func (s *Server) Orders() []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]uuid.UUID, len(s.orders))
	for i, o := range s.orders {
		ids[i] = o.ID
	}
	return ids
}

// AddOrder creates an order of an existing user for one of [Server.LabTests], with an invented patient and for immediate
// processing, and sends the event labtest.order.created. It fails where there is no such user or no such active lab test.
func (s *Server) AddOrder(userID, labTestID uuid.UUID) (uuid.UUID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, test := s.user(userID), s.labTestByID[labTestID]
	if u == nil {
		return uuid.Nil, errNoUser
	}
	if test == nil || test.Status != "active" {
		return uuid.Nil, errNoLabTest
	}
	o := s.place(u, test, test.Method, &placeOrder{
		BillingType:    "client_bill",
		PatientDetails: people[0],
		PatientAddress: addresses[0],
	}, s.now())
	s.emitOrder(o)
	return o.ID, nil
}

// AddOrders creates n orders with invented patients and returns their ids. It takes the users in turn, adding one if there is
// none, and the collection methods in turn, testkit first, and goes on from there when it is called again. It sends no events.
func (s *Server) AddOrders(n int) []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) == 0 && n > 0 {
		s.addUser("user-1")
	}
	s.orders = slices.Grow(s.orders, max(n, 0))
	ids := make([]uuid.UUID, 0, max(n, 0))
	for range n {
		i := s.seeded
		s.seeded++
		test := catalogue[i%len(collectionMethods)]
		o := s.place(s.users[i%len(s.users)], test, test.Method, &placeOrder{
			BillingType:    "client_bill",
			PatientDetails: people[i%len(people)],
			PatientAddress: addresses[i%len(addresses)],
		}, s.now())
		ids = append(ids, o.ID)
	}
	return ids
}

// people and addresses are those of seeded orders; people[i] lives at addresses[i].
var (
	people = []*patientDetails{
		person("Ada", "Example", "1990-01-31", "female", "+14155550123"),
		person("Grace", "Sample", "1976-12-09", "female", "+14155550124"),
		person("Alan", "Specimen", "1982-06-23", "male", "+14155550125"),
	}
	addresses = []*patientAddress{
		residence("Ada Example", "1 Main Street", "San Francisco", "CA", "94105"),
		residence("Grace Sample", "2 Oak Avenue", "Reno", "NV", "89501"),
		residence("Alan Specimen", "3 Elm Road", "Austin", "TX", "78701-1234"),
	}
)

func person(first, last, dob, gender, phone string) *patientDetails {
	return &patientDetails{
		DOB: birthDate(dob), Gender: gender, FirstName: first, LastName: last, PhoneNumber: phone,
		Email:      strings.ToLower(first) + "@example.com",
		searchName: strings.ToLower(first + " " + last),
	}
}

func residence(receiver, line, city, state, zip string) *patientAddress {
	return &patientAddress{ReceiverName: receiver, FirstLine: line, City: city, State: state, Zip: zip, Country: "US"}
}

// change runs f on an order and sends the order's event if f succeeds.
func (s *Server) change(orderID uuid.UUID, f func(o *order, now time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orderByID[orderID]
	if o == nil {
		return errNoOrder
	}
	if err := f(o, s.now()); err != nil {
		return err
	}
	s.emitOrder(o)
	return nil
}

// step adds an event to an order and brings the rest of the order up to it.
func (s *Server) step(o *order, status, detail string, now time.Time) {
	s.lastEventID++
	o.LastEvent = orderEvent{ID: s.lastEventID, CreatedAt: stamp(now), Status: status}
	if detail != "" {
		o.LastEvent.StatusDetail = &detail
	}
	o.Events = append(o.Events, o.LastEvent)
	o.Status, _, _ = strings.Cut(status, ".")
	o.UpdatedAt = stamp(now)
	low := o.lowLevel()

	t := &o.Transaction
	t.Orders[0].LowLevelStatus = low
	t.Orders[0].LowLevelStatusCreatedAt = microStamp(now)
	t.Orders[0].UpdatedAt = microStamp(now)
	switch o.Status {
	case "completed", "cancelled":
		t.Status = o.Status
	default:
		t.Status = "active"
	}

	o.Details.Data.(interface{ touch(time.Time) }).touch(now)
	switch data := o.Details.Data.(type) {
	case *testkitData:
		s.ship(data, low)
	case *appointmentData:
		if low == "appointment_scheduled" && data.AppointmentID == nil {
			data.AppointmentID = new(s.newID())
		}
	}
}

// ship gives a testkit the numbers of its way to the customer and to the lab.
func (s *Server) ship(data *testkitData, low string) {
	if low != "transit_customer" && low != "transit_lab" {
		return
	}
	if data.Shipment == nil {
		data.Shipment = &shipment{ID: s.newID()}
	}
	number := fmt.Sprintf("1Z%09d", s.lastEventID)
	url := "https://example.com/track/" + number
	switch low {
	case "transit_customer":
		data.Shipment.OutboundTrackingNumber, data.Shipment.OutboundTrackingURL = &number, &url
		data.Shipment.OutboundCourier = new("usps")
	case "transit_lab":
		data.Shipment.InboundTrackingNumber, data.Shipment.InboundTrackingURL = &number, &url
		data.Shipment.InboundCourier = new("usps")
	}
}

// lowLevel is the last part of the current status.
func (o *order) lowLevel() string {
	status := o.LastEvent.Status
	return status[strings.LastIndexByte(status, '.')+1:]
}
