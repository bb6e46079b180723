// Invented orders.

package labhealthtest

import (
	"slices"
	"strings"

	"github.com/google/uuid"
)

// AddOrder creates an order of a user for one of [Server.LabTests], with an invented patient and
// for immediate processing. It sends the event labtest.order.created. It returns an error if the
// user does not exist or the lab test does not exist or is not active.
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
	o := s.addInventedOrder(u, test, 0)
	s.emitOrder(o)
	return o.ID, nil
}

// AddOrders creates n orders with invented patients and returns their IDs. It uses all users in
// turn, and adds one if there is none. It uses all collection methods in turn, testkits first.
// Further calls continue both sequences. AddOrders sends no events.
func (s *Server) AddOrders(n int) []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) == 0 && n > 0 {
		s.addUser("user-1")
	}
	s.orders = slices.Grow(s.orders, max(n, 0))
	ids := make([]uuid.UUID, 0, max(n, 0))
	for range n {
		i := s.addedOrders
		s.addedOrders++
		o := s.addInventedOrder(s.users[i%len(s.users)], catalog[i%len(collectionMethods)], i)
		ids = append(ids, o.ID)
	}
	return ids
}

// addInventedOrder adds an order of the i-th invented patient.
func (s *Server) addInventedOrder(u *user, test *labTest, i int) *order {
	return s.addOrder(u, test, test.Method, &orderRequest{
		BillingType:    "client_bill",
		PatientDetails: people[i%len(people)],
		PatientAddress: addresses[i%len(addresses)],
	}, s.now())
}

// The invented patients of added orders. people[i] lives at addresses[i].
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
