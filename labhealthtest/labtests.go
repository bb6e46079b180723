package labhealthtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// LabTests are the ids of the lab tests that every server offers. They are the same on every server.
type LabTests struct {
	// One for each collection method, all of one lab and of the same markers.
	Testkit, WalkIn, AtHome, OnSite uuid.UUID
	// OtherLab is a walk-in test of a second lab, which an order cannot combine with the ones above.
	OtherLab uuid.UUID
	// WithQuestions is a walk-in test with a question that must be answered when an order is created: marker 904, question
	// 1234567890251, any answer.
	WithQuestions uuid.UUID
	// Inactive is a test that cannot be ordered any more.
	Inactive uuid.UUID
}

var catalogueIDs = LabTests{
	Testkit:       uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"),
	WalkIn:        uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"),
	AtHome:        uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f03"),
	OnSite:        uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f04"),
	OtherLab:      uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f05"),
	WithQuestions: uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f06"),
	Inactive:      uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f07"),
}

var (
	mainLab = &lab{
		ID: 27, Slug: "example-lab", Name: "Example Laboratories", FirstLineAddress: "1 Lab Way", City: "Reno", Zipcode: "89501",
		CollectionMethods: collectionMethods, SampleTypes: []string{"dried_blood_spot", "serum"},
	}
	otherLab = &lab{
		ID: 31, Slug: "other-lab", Name: "Other Laboratories", FirstLineAddress: "2 Lab Way", City: "Austin", Zipcode: "78701",
		CollectionMethods: []string{"walk_in_test"}, SampleTypes: []string{"serum"},
	}
)

// Prices are text; "N/A" is a price too.
var (
	cholesterol = newMarker(901, mainLab, "Total Cholesterol", "mg/dL", "10.00")
	hdl         = newMarker(902, mainLab, "HDL Cholesterol", "mg/dL", "N/A")
	glucose     = newMarker(903, otherLab, "Glucose", "mg/dL", "7.50")
	lead        = func() marker {
		m := newMarker(904, mainLab, "Lead, Blood", "ug/dL", "21.00")
		m.AoE = &aoe{Questions: []question{{
			ID: 1234567890251, Required: true, Code: "PURPOSE", Value: "Purpose of the test", Type: "choice", Sequence: 1,
			Answers: []questionAnswer{{1, "I", "Initial"}, {2, "R", "Repeat"}},
		}}}
		return m
	}()
)

// catalogue holds the lab tests that every server begins with; it is never changed.
var catalogue = []*labTest{
	newLabTest(catalogueIDs.Testkit, "Lipid Panel Testkit", "testkit", "dried_blood_spot", mainLab, cholesterol, hdl),
	newLabTest(catalogueIDs.WalkIn, "Lipid Panel", "walk_in_test", "serum", mainLab, cholesterol, hdl),
	newLabTest(catalogueIDs.AtHome, "Lipid Panel at Home", "at_home_phlebotomy", "serum", mainLab, cholesterol, hdl),
	newLabTest(catalogueIDs.OnSite, "Lipid Panel on Site", "on_site_collection", "serum", mainLab, cholesterol, hdl),
	newLabTest(catalogueIDs.OtherLab, "Glucose", "walk_in_test", "serum", otherLab, glucose),
	newLabTest(catalogueIDs.WithQuestions, "Lead", "walk_in_test", "serum", mainLab, lead),
	func() *labTest {
		t := newLabTest(catalogueIDs.Inactive, "Old Lipid Panel", "walk_in_test", "serum", mainLab, cholesterol)
		t.IsActive, t.Status = false, "inactive"
		return t
	}(),
}

func newLabTest(id uuid.UUID, name, method, sampleType string, l *lab, markers ...marker) *labTest {
	return &labTest{
		ID: id, Slug: slug(name), Name: name, SampleType: sampleType, Method: method, Price: "45.00", IsActive: true, Status: "active",
		Lab: l, Markers: markers, HasCollectionInstructions: new(method == "testkit"), CommonTATDays: new(3), WorstCaseTATDays: new(7),
	}
}

func newMarker(id int64, l *lab, name, unit, price string) marker {
	return marker{
		ID: id, Name: name, Slug: slug(name), LabID: &l.ID, ProviderID: new(fmt.Sprintf("P-%d", id)), Type: new("biomarker"),
		Unit: &unit, Price: &price, ALaCarteEnabled: true, CommonTATDays: new(3), WorstCaseTATDays: new(7), IsOrderable: new(true),
	}
}

func slug(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(name, ",", "")), " ", "-")
}

// resolve finds what an order is for: the lab test, made up for the order where it asks for several or for markers, and the
// collection method. detail is the text of a refusal, if there is one.
func (s *Server) resolve(body *placeOrder) (test *labTest, method, detail string) {
	wanted := body.OrderSet
	if wanted == nil {
		wanted = &orderSet{}
		if body.LabTestID != nil {
			wanted.LabTestIDs = []uuid.UUID{*body.LabTestID}
		}
	}
	var tests []*labTest
	for _, id := range wanted.LabTestIDs {
		t := s.labTestByID[id]
		switch {
		case t == nil:
			return nil, "", "Test does not exist"
		case t.Status != "active":
			return nil, "", "Test is not active"
		}
		tests = append(tests, t)
	}
	var extra []marker
	if wanted.AddOn != nil {
		extra, detail = resolveAddOn(body, wanted)
		if detail != "" {
			return nil, "", detail
		}
	}
	if len(tests) == 0 && len(extra) == 0 {
		return nil, "", "order_set must contain lab_test_ids or an add_on"
	}

	var labID int
	if len(tests) > 0 {
		test, labID, method = tests[0], tests[0].Lab.ID, tests[0].Method
	} else {
		labID = *extra[0].LabID
	}
	for _, t := range tests {
		if t.Lab.ID != labID {
			return nil, "", "All tests of an order must belong to the same lab"
		}
		if t.Method != method && body.CollectionMethod == "" {
			return nil, "", "Tests of an order have different collection methods, collection_method is required"
		}
	}
	for _, m := range extra {
		if *m.LabID != labID {
			return nil, "", "All tests of an order must belong to the same lab"
		}
	}
	of := mainLab
	if labID == otherLab.ID {
		of = otherLab
	}
	if body.CollectionMethod != "" {
		method = body.CollectionMethod
	}
	if !slices.Contains(of.CollectionMethods, method) {
		return nil, "", "Cannot set collection_method to " + strings.ToUpper(method)
	}
	if len(tests) == 1 && len(extra) == 0 {
		return test, method, ""
	}
	return s.combine(tests, extra, of, method), method, ""
}

func resolveAddOn(body *placeOrder, wanted *orderSet) (extra []marker, detail string) {
	ids, providerIDs := wanted.AddOn.MarkerIDs, wanted.AddOn.ProviderIDs
	switch {
	case body.CollectionMethod == "":
		return nil, "collection_method is required with an add_on"
	case len(ids) == 0 && len(providerIDs) == 0:
		return nil, "add_on must contain marker_ids or provider_ids"
	case len(ids) > 0 && len(providerIDs) > 0:
		return nil, "add_on must not contain both marker_ids and provider_ids"
	}
	all := []marker{cholesterol, hdl, glucose, lead}
	for _, id := range ids {
		i := slices.IndexFunc(all, func(m marker) bool { return m.ID == id })
		if i < 0 {
			return nil, "Marker does not exist"
		}
		extra = append(extra, all[i])
	}
	for _, id := range providerIDs {
		i := slices.IndexFunc(all, func(m marker) bool { return *m.ProviderID == id })
		if i < 0 {
			return nil, "Marker does not exist"
		}
		extra = append(extra, all[i])
	}
	return extra, ""
}

// combine makes the lab test of an order for several tests and markers, which the catalogue then has too. Orders for the same
// ones share it.
func (s *Server) combine(tests []*labTest, extra []marker, l *lab, method string) *labTest {
	var names []string
	var markers []marker
	sampleType := "serum"
	add := func(more []marker) {
		for _, m := range more {
			if !slices.ContainsFunc(markers, func(have marker) bool { return have.ID == m.ID }) {
				markers = append(markers, m)
			}
		}
	}
	for _, t := range tests {
		names = append(names, t.Name)
		sampleType = t.SampleType
		add(t.Markers)
	}
	add(extra)
	for _, m := range extra {
		names = append(names, m.Name)
	}
	name := strings.Join(names, " + ")
	id := uuid.NewSHA1(catalogueIDs.Testkit, []byte(method+name))
	if t := s.labTestByID[id]; t != nil {
		return t
	}
	t := newLabTest(id, name, method, sampleType, l, markers...)
	t.AutoGenerated = true
	s.addLabTest(t)
	return t
}

// unanswered returns the text of a refusal if a question of the test that must be answered was not.
func unanswered(t *labTest, body *placeOrder) string {
	for _, m := range t.Markers {
		if m.AoE == nil {
			continue
		}
		for _, q := range m.AoE.Questions {
			answered := false
			for _, a := range body.AoEAnswers {
				answered = answered || a.MarkerID == m.ID && a.QuestionID == q.ID && a.Answer != ""
			}
			if q.Required && !answered {
				return fmt.Sprintf("Missing required questions for marker %d: [%d]", m.ID, q.ID)
			}
		}
	}
	return ""
}
