// Unmatched results, and the tests that make them.

package labhealthtest

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// unmatchedResult is a result that a lab sent without a matching order.
type unmatchedResult struct {
	matchReview
	Reason         string                  `json:"reason"`
	Patient        map[string]any          `json:"patient"`
	Lab            map[string]any          `json:"lab"`
	Markers        []map[string]any        `json:"markers"`
	Interpretation string                  `json:"interpretation"`
	ResultStatus   string                  `json:"result_status"`
	Note           *string                 `json:"note"`
	AllowedActions []string                `json:"allowed_actions"`
	Candidates     []matchReviewCandidates `json:"candidate_groups"`
	CreatedAt      timestamp               `json:"created_at"`
	UpdatedAt      timestamp               `json:"updated_at"`
	ReviewedAt     *timestamp              `json:"reviewed_at"`

	orders []*order // the candidates
}

// matchReview is the data of the events of an unmatched result.
type matchReview struct {
	ID               uuid.UUID  `json:"id"`
	Status           string     `json:"status"`
	DecisionCode     string     `json:"decision_code"`
	SubReasonCodes   []string   `json:"sub_reason_codes"`
	ResolutionAction *string    `json:"resolution_action"`
	ResolvedUserID   *uuid.UUID `json:"resolved_user_id"`
	ResolvedOrderID  *uuid.UUID `json:"resolved_order_id"`
}

type matchReviewCandidates struct {
	UserID     uuid.UUID        `json:"user_id"`
	Candidates []map[string]any `json:"candidates"`
}

// addUnmatchedResult adds a result of which the orders are the candidates, and sends its event.
func (s *Server) addUnmatchedResult(testCase string, test *labTest, orders []*order, interpretation, resultStatus string, now time.Time) *unmatchedResult {
	v := &unmatchedResult{
		matchReview: matchReview{ID: s.newID(), Status: "pending_customer_review", DecisionCode: testCase, SubReasonCodes: []string{}},
		Reason:      "The result has no order: " + testCase, Interpretation: interpretation, ResultStatus: resultStatus,
		Lab:            map[string]any{"id": test.Lab.ID, "name": test.Lab.Name, "slug": test.Lab.Slug},
		AllowedActions: []string{"accept", "reject", "unsure"}, Candidates: []matchReviewCandidates{},
		CreatedAt: timestamp(now), UpdatedAt: timestamp(now), orders: orders,
	}
	p := people[0]
	if len(orders) > 0 && orders[0].PatientDetails != nil {
		p = orders[0].PatientDetails
	}
	v.Patient = map[string]any{"first_name": p.FirstName, "last_name": p.LastName, "dob": p.DOB, "gender": p.Gender}
	for _, m := range test.Markers {
		v.Markers = append(v.Markers, map[string]any{"provider_id": m.ProviderID, "name": m.Name})
	}
	for _, o := range orders {
		v.Candidates = append(v.Candidates, matchReviewCandidates{o.UserID, []map[string]any{{
			"candidate_type": "order_option", "order_id": o.ID, "order_transaction_id": o.Transaction.ID, "last_status": o.lowLevelStatus(),
			"confidence_level": "medium", "confidence_score": 0.5, "reasons": []string{"demographic_match", "marker_overlap_exact"},
			"marker_overlap": map[string]int{"matched": len(test.Markers)}, "status_context": nil,
		}}})
	}
	if len(orders) == 0 {
		v.AllowedActions = v.AllowedActions[1:]
	}
	s.unmatched = append(s.unmatched, v)
	s.emitMatchReview(v, "created")
	return v
}

// emitMatchReview sends the event of a result, without a user if it has no candidate.
func (s *Server) emitMatchReview(v *unmatchedResult, change string) {
	eventType := "labtest.match_review." + change
	switch {
	case len(v.orders) > 0:
		s.emit(s.userByID[v.orders[0].UserID], eventType, v.matchReview)
	case len(s.endpoints) > 0:
		s.enqueue(encode(map[string]any{"event_type": eventType, "data": v.matchReview, "team_id": s.TeamID}))
	}
}

var unmatchedFilters = []filter[*unmatchedResult]{
	equals("decision_code", func(v *unmatchedResult) string { return v.DecisionCode }),
	equals("lab_slug", func(v *unmatchedResult) string { return v.Lab["slug"].(string) }),
	equals("status", func(v *unmatchedResult) string { return v.Status }),
	since("created_at_start", func(v *unmatchedResult) time.Time { return time.Time(v.CreatedAt) }),
	until("created_at_end", func(v *unmatchedResult) time.Time { return time.Time(v.CreatedAt) }),
	contains("search_input", func(v *unmatchedResult) string {
		return strings.ToLower(v.Patient["first_name"].(string) + " " + v.Patient["last_name"].(string) + " " + v.ID.String())
	}),
}

func (s *Server) listUnmatchedResults(r *request) (any, error) {
	found := selected(r, s.unmatched, unmatchedFilters)
	page, err := page(r, "data", found, func(v *unmatchedResult) string { return v.ID.String() })
	if fields, ok := page.(map[string]any); ok {
		fields["total"] = len(found)
	}
	return page, err
}

// requestedUnmatched returns the result in the path.
func (s *Server) requestedUnmatched(r *request) (*unmatchedResult, error) {
	id := r.pathUUID("raw_result_id")
	if v, ok := first(s.unmatched, func(v *unmatchedResult) bool { return v.ID == id }); ok {
		return v, nil
	}
	return nil, reject(http.StatusNotFound, "Unmatched result not found")
}

func (s *Server) getUnmatchedResult(r *request) (any, error) { return s.requestedUnmatched(r) }

// decide records a decision of the team about a result, and sends its event.
func (s *Server) decide(v *unmatchedResult, status, action string, note *string, now time.Time) {
	v.Status, v.ResolutionAction, v.Note, v.AllowedActions = status, &action, note, []string{}
	v.UpdatedAt, v.ReviewedAt = timestamp(now), new(timestamp(now))
	s.emitMatchReview(v, "updated")
}

var (
	alreadyDecided = reject(http.StatusBadRequest, "This result does not wait for a decision")
	noCandidate    = reject(http.StatusBadRequest, "The order is not a candidate of this result")
)

// acceptUnmatchedResult completes the only candidate that the body selects.
func (s *Server) acceptUnmatchedResult(r *request, v *unmatchedResult) (any, error) {
	var body struct {
		UserID  *uuid.UUID `json:"user_id"`
		OrderID *uuid.UUID `json:"order_id"`
		Note    *string    `json:"note"`
	}
	r.decode(&body)
	candidates := selectFunc(v.orders, func(o *order) bool {
		return (body.UserID == nil || o.UserID == *body.UserID) && (body.OrderID == nil || o.ID == *body.OrderID)
	})
	switch {
	case v.Status != "pending_customer_review":
		return nil, alreadyDecided
	case len(candidates) == 0:
		return nil, noCandidate
	case len(candidates) > 1:
		return nil, reject(http.StatusBadRequest, "order_id is required: there are several candidates")
	}
	o := candidates[0]
	status := "completed." + o.Details.Type + ".completed"
	if o.Status == "completed" {
		status = "completed." + o.Details.Type + ".corrected"
	}
	o.Interpretation = &v.Interpretation
	s.setStatus(o, status, "", r.now)
	s.emitOrder(o)
	v.ResolvedUserID, v.ResolvedOrderID = &o.UserID, &o.ID
	s.decide(v, "resolved", "accept", body.Note, r.now)
	return o, nil
}

// resolveUnmatchedResult leaves a result of which the team is unsure to the service.
func (s *Server) resolveUnmatchedResult(r *request, v *unmatchedResult) (any, error) {
	var body struct {
		Action string  `json:"action"`
		Note   *string `json:"note"`
	}
	r.decode(&body)
	if v.Status != "pending_customer_review" {
		return nil, alreadyDecided
	}
	status := "resolved"
	if body.Action == "unsure" {
		status = "pending_ops_review"
	}
	s.decide(v, status, body.Action, body.Note, r.now)
	return v, nil
}

// testCase is a case of which the service can make an unmatched result.
type testCase struct {
	Case        string            `json:"case"`
	Roles       []string          `json:"order_roles"`
	Statuses    map[string]string `json:"required_statuses"`
	Constraints []string          `json:"lab_constraints"`
}

var testCases = []testCase{
	newTestCase("match_completed", "completed", "order"),
	newTestCase("match_cancelled", "cancelled", "order"),
	newTestCase("wrong_collection", "requisition_created", "order"),
	newTestCase("wrong_lab", "requisition_created", "order"),
	newTestCase("multiple_demo_match", "requisition_created", "first", "second"),
	newTestCase("match_sample_id_mismatch_demo", "requisition_created", "order"),
	newTestCase("match_demo", "requisition_created", "order"),
	newTestCase("no_match", ""),
}

func newTestCase(name, status string, roles ...string) testCase {
	c := testCase{name, append([]string{}, roles...), map[string]string{}, []string{}}
	for _, role := range roles {
		c.Statuses[role] = status
	}
	return c
}

func (s *Server) listTestCases(*request) (any, error) { return map[string]any{"data": testCases}, nil }

// testRun is the run of a test. It is over when it is read.
type testRun struct {
	RunID        uuid.UUID         `json:"run_id"`
	Status       string            `json:"status"`
	Stage        string            `json:"stage"`
	Case         string            `json:"case"`
	OrderSource  string            `json:"order_source"`
	ResultStatus string            `json:"result_status"`
	Orders       map[string]any    `json:"orders"`
	RawResultID  *uuid.UUID        `json:"raw_result_id"`
	Error        map[string]string `json:"error"`
	CreatedAt    timestamp         `json:"created_at"`
	UpdatedAt    timestamp         `json:"updated_at"`
	StartedAt    *timestamp        `json:"started_at"`
	CompletedAt  *timestamp        `json:"completed_at"`

	key  string
	sent []byte // the request
}

type testRequest struct {
	Case           string               `json:"case"`
	OrderSource    string               `json:"order_source"`
	Orders         map[string]uuid.UUID `json:"orders"`
	ResultStatus   string               `json:"result_status"`
	Interpretation string               `json:"interpretation"`
	LabTestID      *uuid.UUID           `json:"lab_test_id"`
	WrongLabTestID *uuid.UUID           `json:"wrong_lab_test_id"`
}

// createTestRun responds with the run of a key that was used before if the body is the same.
func (s *Server) createTestRun(r *request) (any, error) {
	var body testRequest
	key := r.header.Get("X-Idempotency-Key")
	r.decode(&body)
	for _, run := range s.testRuns {
		if run.key == key {
			if !bytes.Equal(run.sent, r.body) {
				return nil, reject(http.StatusConflict, "The idempotency key was used with another body")
			}
			return &response{statusCode: http.StatusAccepted, body: encode(run)}, nil
		}
	}
	run := &testRun{
		RunID: s.newID(), Status: "queued", Stage: "queued", Case: body.Case, OrderSource: body.OrderSource, ResultStatus: body.ResultStatus,
		Orders: map[string]any{}, CreatedAt: timestamp(r.now), UpdatedAt: timestamp(r.now), key: key, sent: r.body,
	}
	s.testRuns = append(s.testRuns, run)
	accepted := &response{statusCode: http.StatusAccepted, body: encode(run)}
	s.executeTest(run, &body, r.now)
	return accepted, nil
}

// executeTest makes the unmatched result of a run.
func (s *Server) executeTest(run *testRun, body *testRequest, now time.Time) {
	run.StartedAt, run.CompletedAt = new(timestamp(now)), new(timestamp(now))
	test := s.labTestByID[catalogIDs.WalkIn]
	if body.LabTestID != nil {
		test = s.labTestByID[*body.LabTestID]
	}
	fail := func(code, message string) {
		run.Status, run.Stage, run.Error = "failed", "failed", map[string]string{"code": code, "message": message}
	}
	if test == nil {
		fail("lab_test_not_found", "The lab test does not exist")
		return
	}
	c, _ := first(testCases, func(c testCase) bool { return c.Case == body.Case })
	var orders []*order
	for _, role := range c.Roles {
		o := s.orderByID[body.Orders[role]]
		switch {
		case body.OrderSource == "managed":
			o = s.addInventedOrder(s.testUser(), test, 0)
			s.emitOrder(o)
			s.setStatus(o, statusOf(o.Details.Type, c.Statuses[role]), "", now)
			s.emitOrder(o)
		case o == nil:
			fail("order_not_found", "The order of the role "+role+" does not exist")
			return
		case o.lowLevelStatus() != c.Statuses[role]:
			fail("invalid_status", "The order of the role "+role+" must be "+c.Statuses[role])
			return
		}
		orders = append(orders, o)
		run.Orders[role] = map[string]uuid.UUID{"order_id": o.ID, "user_id": o.UserID, "order_transaction_id": o.Transaction.ID}
	}
	if wrong := body.WrongLabTestID; body.Case == "wrong_lab" && wrong != nil && s.labTestByID[*wrong] != nil {
		test = s.labTestByID[*wrong]
	}
	v := s.addUnmatchedResult(body.Case, test, orders, body.Interpretation, body.ResultStatus, now)
	run.Status, run.Stage, run.RawResultID = "succeeded", "succeeded", &v.ID
}

// testUser returns the user of the orders that tests create.
func (s *Server) testUser() *user {
	const name = "unmatched-result-test"
	if u := s.userByClient[name]; u != nil {
		return u
	}
	return s.addUser(name)
}

func (s *Server) getTestRun(r *request) (any, error) {
	id := r.pathUUID("run_id")
	if run, ok := first(s.testRuns, func(run *testRun) bool { return run.RunID == id }); ok {
		return run, nil
	}
	return nil, reject(http.StatusNotFound, "Test run not found")
}
