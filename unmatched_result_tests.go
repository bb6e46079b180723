// Tests that make unmatched results in the sandbox.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// The sandbox makes unmatched results on request, so that a team can test its decisions.

const (
	opListUnmatchedResultTestCases = "GET /v3/unmatched_result_test/case"
	opCreateUnmatchedResultTest    = "POST /v3/unmatched_result_test"
	opGetUnmatchedResultTest       = "GET /v3/unmatched_result_test/{run_id}"
)

// UnmatchedResultTestCase is why the result of a test does not match. Values other than the
// constants occur.
type UnmatchedResultTestCase string

// Values of [UnmatchedResultTestCase].
const (
	UnmatchedResultTestMatchCompleted            UnmatchedResultTestCase = "match_completed"
	UnmatchedResultTestMatchCancelled            UnmatchedResultTestCase = "match_cancelled"
	UnmatchedResultTestWrongCollection           UnmatchedResultTestCase = "wrong_collection"
	UnmatchedResultTestWrongLab                  UnmatchedResultTestCase = "wrong_lab"
	UnmatchedResultTestMultipleDemoMatch         UnmatchedResultTestCase = "multiple_demo_match"
	UnmatchedResultTestMatchSampleIDMismatchDemo UnmatchedResultTestCase = "match_sample_id_mismatch_demo"
	UnmatchedResultTestMatchDemo                 UnmatchedResultTestCase = "match_demo"
	UnmatchedResultTestNoMatch                   UnmatchedResultTestCase = "no_match"
)

// UnmatchedResultTestOrderSource is where the orders of a test come from. Values other than the
// constants occur.
type UnmatchedResultTestOrderSource string

// Values of [UnmatchedResultTestOrderSource].
const (
	UnmatchedResultTestManaged  UnmatchedResultTestOrderSource = "managed"  // the service creates them
	UnmatchedResultTestProvided UnmatchedResultTestOrderSource = "provided" // they are in Orders of the request
)

// UnmatchedResultTestRunStatus is the state of an [UnmatchedResultTest]. Values other than the
// constants occur.
type UnmatchedResultTestRunStatus string

// Values of [UnmatchedResultTestRunStatus].
const (
	UnmatchedResultTestQueued    UnmatchedResultTestRunStatus = "queued"
	UnmatchedResultTestRunning   UnmatchedResultTestRunStatus = "running"
	UnmatchedResultTestSucceeded UnmatchedResultTestRunStatus = "succeeded"
	UnmatchedResultTestFailed    UnmatchedResultTestRunStatus = "failed"
)

// UnmatchedResultTestCaseDefinition is a case and what its orders must be.
type UnmatchedResultTestCaseDefinition struct {
	Case             UnmatchedResultTestCase        `json:"case"`              // for [CreateUnmatchedResultTestBody.Case]
	OrderRoles       []string                       `json:"order_roles"`       // the keys of [CreateUnmatchedResultTestBody.Orders]
	RequiredStatuses map[string]OrderLowLevelStatus `json:"required_statuses"` // the status of the order of each role
	LabConstraints   []string                       `json:"lab_constraints"`   // rules about the labs; their values are not documented

	RawObject `json:"-"`
}

// testCaseList is the response of the operation that lists the cases.
type testCaseList struct {
	Data []UnmatchedResultTestCaseDefinition `json:"data" jsonread:"own"`

	RawObject `json:"-"`
}

func (l *testCaseList) verify() error { return requireList(l.Data) }

// CreateUnmatchedResultTestBody is the request of [UnmatchedResultsService.CreateTest].
type CreateUnmatchedResultTestBody struct {
	Redacted

	Case        UnmatchedResultTestCase        `json:"case"`            // why the result does not match
	OrderSource UnmatchedResultTestOrderSource `json:"order_source"`    // where the orders come from
	Orders      map[string]uuid.UUID           `json:"orders,omitzero"` // IDs of provided orders by their role
	// ResultStatus is final if empty.
	ResultStatus   ResultsStatus  `json:"result_status,omitzero"`
	Interpretation Interpretation `json:"interpretation,omitzero"`    // normal if empty
	LabTestID      *uuid.UUID     `json:"lab_test_id,omitzero"`       // the test of managed orders, nil for any
	WrongLabTestID *uuid.UUID     `json:"wrong_lab_test_id,omitzero"` // a test of another lab, for wrong_lab
}

func (b *CreateUnmatchedResultTestBody) validate(v *validator) {
	v.required("case", string(b.Case))
	v.required("order_source", string(b.OrderSource))
	v.optionalID("lab_test_id", b.LabTestID)
	v.optionalID("wrong_lab_test_id", b.WrongLabTestID)
}

// UnmatchedResultTest is the run of a test.
type UnmatchedResultTest struct {
	RunID        uuid.UUID                           `json:"run_id"`                 // ID of the run
	Status       UnmatchedResultTestRunStatus        `json:"status"`                 // whether it is over
	Stage        string                              `json:"stage"`                  // what it does: queued, validating, creating_orders and others
	Case         UnmatchedResultTestCase             `json:"case"`                   // as requested
	OrderSource  UnmatchedResultTestOrderSource      `json:"order_source"`           // as requested
	ResultStatus ResultsStatus                       `json:"result_status"`          // as requested
	Orders       map[string]UnmatchedResultTestOrder `json:"orders,omitzero"`        // the orders by their role; nil if missing
	RawResultID  *uuid.UUID                          `json:"raw_result_id,omitzero"` // for [UnmatchedResultsService.Get], nil before there is one
	Error        *UnmatchedResultTestFailure         `json:"error,omitzero"`         // why it failed, nil if it did not
	CreatedAt    time.Time                           `json:"created_at"`             // when it was requested
	UpdatedAt    time.Time                           `json:"updated_at"`             // when it changed last
	StartedAt    *time.Time                          `json:"started_at,omitzero"`    // nil before it starts
	CompletedAt  *time.Time                          `json:"completed_at,omitzero"`  // nil before it is over

	RawObject `json:"-"`
}

func (r *UnmatchedResultTest) verify() error { return requireID(r.RunID, "run") }

// UnmatchedResultTestOrder is an order of an [UnmatchedResultTest].
type UnmatchedResultTestOrder struct {
	OrderID            uuid.UUID `json:"order_id"`             // ID of the order
	UserID             uuid.UUID `json:"user_id"`              // the user of the order
	OrderTransactionID uuid.UUID `json:"order_transaction_id"` // ID of its transaction

	RawObject `json:"-"`
}

// UnmatchedResultTestFailure is why an [UnmatchedResultTest] failed.
type UnmatchedResultTestFailure struct {
	Code    string `json:"code"`    // its values are not documented
	Message string `json:"message"` // human-readable

	RawObject `json:"-"`
}

// TestCases returns the cases that can be tested: GET /v3/unmatched_result_test/case. Like the
// other methods of tests, it is for sandbox environments only.
func (s *UnmatchedResultsService) TestCases(ctx context.Context, opts ...CallOption) ([]UnmatchedResultTestCaseDefinition, error) {
	list, err := call(ctx, coreOf(s), new(testCaseList), request{op: opListUnmatchedResultTestCases}, opts)
	if err != nil {
		return nil, err
	}
	return list.Data, nil
}

// CreateTest starts to make an unmatched result: POST /v3/unmatched_result_test.
// [UnmatchedResultsService.Test] returns how far it is. The key identifies the run, so that a
// repeated call starts no other: see [WithIdempotencyKey] for its form. It is rejected with another
// body. The response is not documented: that it is the run is an inference.
func (s *UnmatchedResultsService) CreateTest(ctx context.Context, idempotencyKey string, body CreateUnmatchedResultTestBody, opts ...CallOption) (*UnmatchedResultTest, error) {
	r := request{op: opCreateUnmatchedResultTest, body: &body, repeatable: true}
	return call(ctx, coreOf(s), new(UnmatchedResultTest), r, append([]CallOption{WithIdempotencyKey(idempotencyKey)}, opts...))
}

// Test returns the run of a test: GET /v3/unmatched_result_test/{run_id}.
func (s *UnmatchedResultsService) Test(ctx context.Context, runID uuid.UUID, opts ...CallOption) (*UnmatchedResultTest, error) {
	return call(ctx, coreOf(s), new(UnmatchedResultTest), request{op: opGetUnmatchedResultTest, ids: []string{runID.String()}}, opts)
}
