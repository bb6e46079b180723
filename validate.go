package labhealth

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Local checks report only what the interface specification or the public API reference rules out:
// when in doubt, the request is sent and the service decides. Two operations on lists of teams are
// stricter, because an empty list may mean every team.

// checker collects what is wrong with a request, with the paths that the service itself would give.
type checker struct {
	loc  []string
	list []FieldError
}

func (c *checker) add(name, kind, msg string) {
	loc := append(append([]string{}, c.loc...), name)
	c.list = append(c.list, FieldError{Loc: loc, Type: kind, Msg: msg})
}

// at runs checks of the members of name.
func (c *checker) at(name string, checks func()) {
	c.loc = append(c.loc, name)
	checks()
	c.loc = c.loc[:len(c.loc)-1]
}

// in returns what was found, as members of root.
func (c *checker) in(root string) []FieldError {
	for i := range c.list {
		c.list[i].Loc = append([]string{root}, c.list[i].Loc...)
	}
	return c.list
}

func (c *checker) err() error {
	if len(c.list) == 0 {
		return nil
	}
	return &ValidationError{Fields: c.in("body")}
}

func problemsOf(err error) []FieldError {
	var e *ValidationError
	if errors.As(err, &e) {
		return e.Fields
	}
	return nil
}

func (c *checker) text(name, v string) {
	if v == "" {
		c.add(name, "missing", "is required")
	}
}

func (c *checker) length(name, v string, least, most int) {
	if n := utf8.RuneCountInString(v); n < least {
		c.add(name, "string_too_short", fmt.Sprintf("is required: %d to %d characters", least, most))
	} else if n > most {
		c.add(name, "string_too_long", fmt.Sprintf("must have at most %d characters", most))
	}
}

func (c *checker) notes(v *string) {
	if v != nil {
		c.length("access_notes", *v, 0, 1000)
	}
}

func (c *checker) id(name string, v uuid.UUID) {
	if v == uuid.Nil {
		c.add(name, "missing", "is required: a UUID that is not nil")
	}
}

func (c *checker) idPtr(name string, v *uuid.UUID) {
	if v != nil && *v == uuid.Nil {
		c.add(name, "uuid", "must be left out or be a UUID that is not nil")
	}
}

func (c *checker) atLeast(name string, v, least int) {
	if v < least {
		c.add(name, "greater_than_equal", fmt.Sprintf("must be at least %d", least))
	}
}

func (c *checker) within(name string, v, least, most int) {
	if v < least || v > most {
		c.add(name, "value_error", fmt.Sprintf("must be between %d and %d", least, most))
	}
}

func (c *checker) date(name string, d Date) bool {
	switch {
	case d.IsZero():
		c.add(name, "missing", "is required: a date")
	case !d.valid():
		c.add(name, "date", "must be a date that exists")
	default:
		return true
	}
	return false
}

// earliestToday is today where the day begins last, latestToday where it begins first: somewhere on earth it is either.
func earliestToday() Date { return DateOf(time.Now().UTC().Add(-12 * time.Hour)) }
func latestToday() Date   { return DateOf(time.Now().UTC().Add(14 * time.Hour)) }

// minor reports whether somebody born on that day is under 18 everywhere on earth. Who is born on
// 29 February may come of age on 28 February. A birth date in the future makes nobody a minor: it is
// another mistake, which neither the specification nor the reference rules out, so the service decides.
func minor(dob Date) bool {
	adult := Date{dob.Year + 18, dob.Month, dob.Day}
	if dob.Month == time.February && dob.Day == 29 {
		adult.Day = 28
	}
	today := latestToday()
	return adult.Compare(today) > 0 && dob.Compare(today) <= 0
}

func (c *checker) email(v string) {
	user, host, _ := strings.Cut(v, "@")
	switch {
	case v == "":
		c.add("email", "missing", "is required")
	case user == "" || host == "" || strings.Contains(host, "@") || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		c.add("email", "value_error", "must be an email address: one @ and no spaces")
	}
}

// Validate reports everything in the request that the interface specification or the public API
// reference rules out, as a *[ValidationError]. [OrdersService.Import] calls it.
func (b ImportOrderBody) Validate() error {
	var c checker
	c.id("user_id", b.UserID)
	c.text("billing_type", string(b.BillingType))
	c.at("order_set", func() { b.OrderSet.check(&c) })
	c.text("collection_method", string(b.CollectionMethod))
	c.physician(b.Physician)
	c.at("patient_details", func() { b.PatientDetails.check(&c) })
	c.at("patient_address", func() {
		a := &b.PatientAddress
		c.text("receiver_name", a.ReceiverName)
		c.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
	})
	c.text("sample_id", b.SampleID)
	c.idPtr("lab_account_id", b.LabAccountID)
	return c.err()
}

// Validate reports everything in the request that the interface specification or the public API
// reference rules out, as a *[ValidationError]. [OrdersService.Create] calls it.
func (b CreateOrderBody) Validate() error {
	var c checker
	c.id("user_id", b.UserID)
	c.at("patient_details", func() { b.PatientDetails.check(&c) })
	c.at("patient_address", func() {
		a := &b.PatientAddress
		c.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
	})
	if b.OrderSet != nil {
		c.at("order_set", func() { b.OrderSet.check(&c) })
	}
	c.idPtr("lab_test_id", b.LabTestID)
	c.physician(b.Physician)
	if b.ActivateBy != nil { // it may be past: only the update of an order is said to refuse that
		c.date("activate_by", *b.ActivateBy)
	}
	c.idPtr("lab_account_id", b.LabAccountID)
	c.idPtr("creator_member_id", b.CreatorMemberID)
	return c.err()
}

// Validate reports everything in the request that the interface specification or the public API
// reference rules out, as a *[ValidationError]. [OrdersService.Update] calls it.
func (b UpdateOrderBody) Validate() error {
	var c checker
	if d, ok := b.ActivateBy.Get(); ok {
		if c.date("activate_by", d) && d.Compare(earliestToday()) < 0 {
			c.add("activate_by", "value_error", "must be today or later")
		}
	} else if !b.ActivateBy.IsNull() {
		c.add("activate_by", "missing", "must be set: a date, or Null to release the order")
	}
	return c.err()
}

func (s *OrderSetRequest) check(c *checker) {
	c.at("lab_test_ids", func() {
		for i, id := range s.LabTestIDs {
			c.idPtr(fmt.Sprint(i), &id)
		}
	})
	c.idPtr("lab_account_id", s.LabAccountID)
}

func (p *PatientDetailsWithValidation) check(c *checker) {
	c.length("first_name", p.FirstName, 1, 50)
	c.length("last_name", p.LastName, 1, 50)
	known := c.date("dob", p.DOB)
	c.text("gender", string(p.Gender))
	c.text("phone_number", p.PhoneNumber)
	c.email(p.Email)
	if p.MedicalProxy == nil {
		if known && minor(p.DOB) {
			c.add("medical_proxy", "missing", "is required for a patient under 18")
		}
		return
	}
	g := p.MedicalProxy
	c.at("medical_proxy", func() {
		c.text("first_name", g.FirstName)
		c.text("last_name", g.LastName)
		c.at("address", func() {
			a := &g.Address
			c.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
		})
		c.text("phone_number", g.PhoneNumber)
	})
}

func (c *checker) address(firstLine, city, state, zip, country string, notes *string) {
	c.text("first_line", firstLine)
	c.text("city", city)
	c.text("state", state)
	c.text("zip", zip)
	c.text("country", country)
	c.notes(notes)
}

func (c *checker) physician(p *PhysicianCreateRequest) {
	if p == nil {
		return
	}
	c.at("physician", func() {
		c.text("first_name", p.FirstName)
		c.text("last_name", p.LastName)
		c.text("npi", p.NPI)
		if s := p.SignatureImage; s != nil {
			c.at("signature_image", func() {
				c.text("content", s.Content)
				if s.ContentType != "image/jpeg" && s.ContentType != "image/png" {
					c.add("content_type", "value_error", "must be image/jpeg or image/png")
				}
			})
		}
	})
}
