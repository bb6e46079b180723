// The lab test that an order set selects.

package labhealthtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// resolveTest returns the lab test and the collection method of a new order. For several lab tests
// or for markers it generates a lab test.
func (s *Server) resolveTest(body *orderRequest) (test *labTest, method string, err error) {
	tests, err := s.testsByID(body.labTestIDs())
	if err != nil {
		return nil, "", err
	}
	if body.OrderSet != nil && body.OrderSet.AddOn != nil && body.CollectionMethod == "" {
		return nil, "", reject(http.StatusBadRequest, "collection_method is required with an add_on")
	}
	markers, err := body.OrderSet.addOnMarkers()
	if err != nil {
		return nil, "", err
	}
	if len(tests) == 0 && len(markers) == 0 {
		return nil, "", reject(http.StatusBadRequest, "order_set must contain lab_test_ids or an add_on")
	}
	l, method, err := labAndMethod(tests, markers, body.CollectionMethod)
	if err != nil {
		return nil, "", err
	}
	if err := s.checkAccount(body, l); err != nil {
		return nil, "", err
	}
	if len(tests) == 1 && len(markers) == 0 {
		return tests[0], method, nil
	}
	return s.generateTest(tests, markers, l, method), method, nil
}

func (body *orderRequest) labTestIDs() []uuid.UUID {
	switch {
	case body.OrderSet != nil:
		return body.OrderSet.LabTestIDs
	case body.LabTestID != nil:
		return []uuid.UUID{*body.LabTestID}
	}
	return nil
}

// testsByID returns lab tests that can be ordered.
func (s *Server) testsByID(ids []uuid.UUID) ([]*labTest, error) {
	var tests []*labTest
	for _, id := range ids {
		t := s.labTestByID[id]
		switch {
		case t == nil:
			return nil, reject(http.StatusBadRequest, "Test does not exist")
		case t.Status != "active":
			return nil, reject(http.StatusBadRequest, "Test is not active")
		}
		tests = append(tests, t)
	}
	return tests, nil
}

// addOnMarkers returns the markers that an order set has in addition to lab tests.
func (set *orderSet) addOnMarkers() ([]marker, error) {
	if set == nil || set.AddOn == nil {
		return nil, nil
	}
	ids, providerIDs := set.AddOn.MarkerIDs, set.AddOn.ProviderIDs
	switch {
	case len(ids) == 0 && len(providerIDs) == 0:
		return nil, reject(http.StatusBadRequest, "add_on must contain marker_ids or provider_ids")
	case len(ids) > 0 && len(providerIDs) > 0:
		return nil, reject(http.StatusBadRequest, "add_on must not contain both marker_ids and provider_ids")
	}
	return markersByID(ids, providerIDs)
}

// markersByID returns the markers with these IDs and those with these IDs of their provider.
func markersByID(ids []int64, providerIDs []string) ([]marker, error) {
	markers, err := findMarkers(ids, func(m marker) int64 { return m.ID })
	if err != nil {
		return nil, err
	}
	others, err := findMarkers(providerIDs, func(m marker) string { return *m.ProviderID })
	return append(markers, others...), err
}

func findMarkers[ID comparable](ids []ID, idOf func(marker) ID) ([]marker, error) {
	var markers []marker
	known := slices.Concat(allMarkers, unlistedMarkers)
	for _, id := range ids {
		i := slices.IndexFunc(known, func(m marker) bool { return idOf(m) == id })
		if i < 0 {
			return nil, reject(http.StatusBadRequest, "Marker does not exist")
		}
		markers = append(markers, known[i])
	}
	return markers, nil
}

var errSeveralLabs = reject(http.StatusBadRequest, "All tests of an order must belong to the same lab")

// labAndMethod returns the common lab of all tests and markers, and the collection method:
// requested, or the common method of the tests if requested is empty.
func labAndMethod(tests []*labTest, markers []marker, requested string) (l *lab, method string, err error) {
	if len(tests) > 0 {
		l, method = tests[0].Lab, tests[0].Method
	} else {
		l = labOf(markers[0])
	}
	for _, t := range tests {
		if t.Lab.ID != l.ID {
			return nil, "", errSeveralLabs
		}
		if t.Method != method && requested == "" {
			return nil, "", reject(http.StatusBadRequest,
				"Tests of an order have different collection methods, collection_method is required")
		}
	}
	for _, m := range markers {
		if *m.LabID != l.ID {
			return nil, "", errSeveralLabs
		}
	}
	if requested != "" {
		method = requested
	}
	if !slices.Contains(l.CollectionMethods, method) {
		return nil, "", reject(http.StatusBadRequest, "Cannot set collection_method to "+strings.ToUpper(method))
	}
	return l, method, nil
}

func labOf(m marker) *lab {
	if *m.LabID == otherLab.ID {
		return otherLab
	}
	return mainLab
}

// generateTest returns a lab test with the markers of all tests and the other markers. It adds it
// to the catalog. Orders with the same content share it.
func (s *Server) generateTest(tests []*labTest, others []marker, l *lab, method string) *labTest {
	var names []string
	var markers []marker
	key := method // identifies the content, which names do not
	sampleType := "serum"
	for _, t := range tests {
		key += t.ID.String()
		names = append(names, t.Name)
		sampleType = t.SampleType
		markers = append(markers, t.Markers...)
	}
	for _, m := range others {
		key += m.Slug
		names = append(names, m.Name)
	}
	name := strings.Join(names, " + ")
	id := labTestID(catalogIDs.Testkit, key+name)
	if t := s.labTestByID[id]; t != nil {
		return t
	}
	t := newLabTest(id, name, method, sampleType, l, withoutDuplicates(append(markers, others...))...)
	t.AutoGenerated = true
	s.addLabTest(t)
	return t
}

func withoutDuplicates(markers []marker) []marker {
	var unique []marker
	for _, m := range markers {
		if !slices.ContainsFunc(unique, func(u marker) bool { return u.ID == m.ID }) {
			unique = append(unique, m)
		}
	}
	return unique
}

// checkAnswers returns an error if the answer to a required question of the test is missing.
func checkAnswers(t *labTest, body *orderRequest) error {
	for _, m := range t.Markers {
		if m.AoE == nil {
			continue
		}
		for _, q := range m.AoE.Questions {
			if q.Required && !body.hasAnswer(m.ID, q.ID) {
				return reject(http.StatusBadRequest, fmt.Sprintf("Missing required questions for marker %d: [%d]", m.ID, q.ID))
			}
		}
	}
	return nil
}

func (body *orderRequest) hasAnswer(markerID, questionID int64) bool {
	for _, a := range body.AoEAnswers {
		if a.MarkerID == markerID && a.QuestionID == questionID && a.Answer != "" {
			return true
		}
	}
	return false
}
