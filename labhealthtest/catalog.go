// The labs, markers and lab tests that a server starts with.

package labhealthtest

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// LabTests are the IDs of the lab tests that every server has. They are the same on every server.
type LabTests struct {
	// One lab test per collection method, all of the same lab and with the same markers.
	Testkit, WalkIn, AtHome, OnSite uuid.UUID
	// OtherLab is a walk-in test of another lab. An order cannot combine it with the lab tests
	// above.
	OtherLab uuid.UUID
	// WithQuestions is a walk-in test with a required question: to create an order, answer question
	// 1234567890251 of marker 904 with any text.
	WithQuestions uuid.UUID
	// Inactive is a lab test that can no longer be ordered.
	Inactive uuid.UUID
}

var catalogIDs = LabTests{
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
		ID: 27, Slug: "quest", Name: "Example Laboratories",
		FirstLineAddress: "1 Lab Way", City: "Reno", Zipcode: "89501",
		CollectionMethods: collectionMethods, SampleTypes: []string{"dried_blood_spot", "serum"},
	}
	otherLab = &lab{
		ID: 31, Slug: "sonora_quest", Name: "Other Laboratories",
		FirstLineAddress: "2 Lab Way", City: "Austin", Zipcode: "78701",
		CollectionMethods: []string{"walk_in_test"}, SampleTypes: []string{"serum"},
	}
)

// Prices are strings, which are not always numbers.
var (
	cholesterol = newMarker(901, mainLab, "Total Cholesterol", "mg/dL", "10.00")
	hdl         = newMarker(902, mainLab, "HDL Cholesterol", "mg/dL", "N/A")
	glucose     = newMarker(903, otherLab, "Glucose", "mg/dL", "7.50")
	lead        = newMarker(904, mainLab, "Lead, Blood", "ug/dL", "21.00", question{
		ID: 1234567890251, Required: true, Code: "PURPOSE", Value: "Purpose of the test", Type: "choice", Sequence: 1,
		Answers: []questionAnswer{{1, "I", "Initial"}, {2, "R", "Repeat"}},
	})
	clearance = newMarker(905, mainLab, "Creatinine Clearance", "mL/min", "18.25",
		question{
			ID: 1234567890252, Required: true, Code: "VOLUME", Value: "Volume of the sample in mL", Type: "numeric", Sequence: 1,
			Answers: []questionAnswer{}, Constraint: new("1 to 5000"),
		},
		question{
			ID: 1234567890253, Code: "DRUGS", Value: "Medication", Type: "text", Sequence: 2, Answers: []questionAnswer{},
		},
		question{
			ID: 1234567890254, Code: "HISTORY", Value: "Conditions", Type: "multi_choice", Sequence: 3,
			Answers: []questionAnswer{{3, "D", "Diabetes"}, {4, "H", "Hypertension"}}, Default: new("H"),
		})
	lipids     = panel(newMarker(906, mainLab, "Lipids", "mg/dL", "25.00"))
	allMarkers = []marker{cholesterol, hdl, glucose, lead, clearance, lipids}
	// unlistedMarkers can be part of lab tests that are created, and are not in lists of markers.
	unlistedMarkers = []marker{
		newMarker(907, mainLab, "LDL Cholesterol", "mg/dL", "10.00"),
		newMarker(908, mainLab, "Triglycerides", "mg/dL", "9.00"),
		newMarker(909, mainLab, "HbA1c", "%", "14.00"),
		newMarker(910, mainLab, "hs-CRP", "mg/L", "16.00"),
		newMarker(911, mainLab, "Ferritin", "ng/mL", "12.50"),
		newMarker(912, mainLab, "TSH", "mIU/L", "13.00"),
		newMarker(913, mainLab, "Rheumatoid Factor", "", "15.00"),
		newMarker(914, mainLab, "Lipoprotein (a)", "nmol/L", "19.00"),
		newMarker(915, mainLab, "Fasting Glucose", "mg/dL", "6.50"),
		newMarker(916, mainLab, "Vitamin D, 25-OH", "ng/mL", "22.00"),
		newMarker(917, mainLab, "Testosterone, Total", "ng/dL", "24.00"),
	}
	allLabs = []*lab{mainLab, otherLab}
)

// catalog holds the lab tests that every server starts with. It is never modified.
var catalog = []*labTest{
	newLabTest(catalogIDs.Testkit, "Lipid Panel Testkit", "testkit", "dried_blood_spot", mainLab, cholesterol, hdl),
	newLabTest(catalogIDs.WalkIn, "Lipid Panel", "walk_in_test", "serum", mainLab, cholesterol, hdl),
	newLabTest(catalogIDs.AtHome, "Lipid Panel at Home", "at_home_phlebotomy", "serum", mainLab, cholesterol, hdl),
	newLabTest(catalogIDs.OnSite, "Lipid Panel on Site", "on_site_collection", "serum", mainLab, cholesterol, hdl),
	newLabTest(catalogIDs.OtherLab, "Glucose", "walk_in_test", "serum", otherLab, glucose),
	newLabTest(catalogIDs.WithQuestions, "Lead", "walk_in_test", "serum", mainLab, lead),
	inactive(newLabTest(catalogIDs.Inactive, "Old Lipid Panel", "walk_in_test", "serum", mainLab, cholesterol)),
}

func newLabTest(id uuid.UUID, name, method, sampleType string, l *lab, markers ...marker) *labTest {
	return &labTest{
		ID: id, Slug: slug(name), Name: name, SampleType: sampleType, Method: method, Price: "45.00",
		IsActive: true, Status: "active", Lab: l, Markers: markers,
		HasCollectionInstructions: new(method == "testkit"), CommonTATDays: new(3), WorstCaseTATDays: new(7),
	}
}

func inactive(t *labTest) *labTest {
	t.IsActive, t.Status = false, "inactive"
	return t
}

func newMarker(id int64, l *lab, name, unit, price string, questions ...question) marker {
	m := marker{
		ID: id, Name: name, Slug: slug(name), LabID: &l.ID, ProviderID: new(fmt.Sprintf("P-%d", id)),
		Type: new("biomarker"), Unit: &unit, Price: &price, ALaCarteEnabled: true,
		CommonTATDays: new(3), WorstCaseTATDays: new(7), IsOrderable: new(true),
	}
	if questions != nil {
		m.AoE = &aoe{questions}
	}
	return m
}

// panel returns m as a panel, which cannot be ordered on its own.
func panel(m marker) marker {
	m.Type, m.ALaCarteEnabled, m.IsOrderable = new("panel"), false, new(false)
	return m
}

// slug returns the slug of a name, such as "lead-blood" for "Lead, Blood".
func slug(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(name, ",", "")), " ", "-")
}
