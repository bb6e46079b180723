// UnmatchedResultsService: results that a lab sent without a matching order.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// UnmatchedResultsService provides access to the results that a lab sent without a matching order.
// See [Client.UnmatchedResults]. The events labtest.match_review.created and .updated report them.
// A result whose status is [MatchReviewPendingCustomerReview] waits for a decision of the team:
// [UnmatchedResultsService.Accept] or [UnmatchedResultsService.Resolve].
type UnmatchedResultsService struct{ core *core }

const (
	opListUnmatchedResults   = "GET /v3/unmatched_result"
	opGetUnmatchedResult     = "GET /v3/unmatched_result/{raw_result_id}"
	opAcceptUnmatchedResult  = "POST /v3/unmatched_result/{raw_result_id}/accept"
	opResolveUnmatchedResult = "POST /v3/unmatched_result/{raw_result_id}/resolve"
)

// UnmatchedResult is a result that a lab sent without a matching order. Printed or logged, it shows
// only its ID.
type UnmatchedResult struct {
	ID             uuid.UUID            `json:"id"`                        // ID of the result
	Status         MatchReviewStatus    `json:"status"`                    // who decides next
	DecisionCode   MatchDecisionCode    `json:"decision_code"`             // what the service found
	SubReasonCodes []MatchSubReasonCode `json:"sub_reason_codes,omitzero"` // further reasons; nil if missing
	Reason         string               `json:"reason"`                    // why there is no match, for people
	Patient        *MatchReviewPatient  `json:"patient,omitzero"`          // the patient as the lab names him, nil if unknown
	Lab            MatchReviewLab       `json:"lab"`                       // the lab that sent it
	Markers        []MatchReviewMarker  `json:"markers,omitzero"`          // what was measured; nil if missing
	Interpretation *Interpretation      `json:"interpretation,omitzero"`   // nil if there is none
	ResultStatus   *ResultsStatus       `json:"result_status,omitzero"`    // whether more will follow, nil if unknown
	Note           *string              `json:"note,omitzero"`             // of the person who decided, nil if there is none
	// ResolutionAction is the decision; nil before it is made.
	ResolutionAction *MatchReviewResolutionAction `json:"resolution_action,omitzero"`
	ResolvedUserID   *uuid.UUID                   `json:"resolved_user_id,omitzero"`  // the user that it belongs to; nil if undecided
	ResolvedOrderID  *uuid.UUID                   `json:"resolved_order_id,omitzero"` // the order that it belongs to; nil if undecided
	// AllowedActions are the decisions that are possible; nil if missing.
	AllowedActions []MatchReviewResolutionAction `json:"allowed_actions,omitzero"`
	// CandidateGroups are the orders to which it may belong, by user; nil if missing.
	CandidateGroups []MatchReviewCandidateGroup `json:"candidate_groups,omitzero"`
	CreatedAt       time.Time                   `json:"created_at"`           // when it arrived
	UpdatedAt       time.Time                   `json:"updated_at"`           // when it changed last
	ReviewedAt      *time.Time                  `json:"reviewed_at,omitzero"` // when it was decided; nil if undecided

	RawObject `json:"-"`
}

// LogValue returns the ID of the result.
func (v UnmatchedResult) LogValue() slog.Value {
	return slog.StringValue("labhealth.UnmatchedResult{" + v.ID.String() + ", redacted}")
}

func (r *UnmatchedResult) verify() error { return requireID(r.ID, "result") }

// MatchReviewPatient is the patient of an [UnmatchedResult]. What the lab did not send is nil.
type MatchReviewPatient struct {
	FirstName *string `json:"first_name,omitzero"` // given name
	LastName  *string `json:"last_name,omitzero"`  // family name
	DOB       *Date   `json:"dob,omitzero"`        // date of birth
	Gender    *Gender `json:"gender,omitzero"`     // any string; the constants are usual

	RawObject `json:"-"`
}

// MatchReviewLab is the lab of an [UnmatchedResult].
type MatchReviewLab struct {
	ID   int64  `json:"id"`   // ID of the lab
	Name string `json:"name"` // human-readable name
	Slug string `json:"slug"` // stable identifier

	RawObject `json:"-"`
}

// MatchReviewMarker is a marker of an [UnmatchedResult].
type MatchReviewMarker struct {
	ProviderID *string `json:"provider_id,omitzero"` // the lab's code of the marker, nil if unknown
	Name       *string `json:"name,omitzero"`        // human-readable name, nil if unknown

	RawObject `json:"-"`
}

// MatchReviewCandidateGroup has the orders of one user to which an [UnmatchedResult] may belong.
type MatchReviewCandidateGroup struct {
	UserID     *uuid.UUID             `json:"user_id,omitzero"`    // the user, nil if unknown
	Candidates []MatchReviewCandidate `json:"candidates,omitzero"` // the orders; nil if missing

	RawObject `json:"-"`
}

// MatchReviewCandidate is an order to which an [UnmatchedResult] may belong.
type MatchReviewCandidate struct {
	CandidateType      MatchCandidateType   `json:"candidate_type"`                // why it is a candidate
	OrderID            *uuid.UUID           `json:"order_id,omitzero"`             // ID of the order, nil if there is none
	OrderTransactionID *uuid.UUID           `json:"order_transaction_id,omitzero"` // ID of its transaction, nil if unknown
	LastStatus         *OrderLowLevelStatus `json:"last_status,omitzero"`          // its latest status, nil if unknown
	ConfidenceLevel    MatchConfidence      `json:"confidence_level"`              // how well it matches
	ConfidenceScore    *float64             `json:"confidence_score,omitzero"`     // as a number, nil if unknown
	Reasons            []MatchReason        `json:"reasons,omitzero"`              // what speaks for and against it; nil if missing
	MarkerOverlap      json.RawMessage      `json:"marker_overlap,omitzero"`       // an object without a documented shape, nil if absent
	StatusContext      json.RawMessage      `json:"status_context,omitzero"`       // an object without a documented shape, nil if absent

	RawObject `json:"-"`
}

// UnmatchedResultPage is one page of the list: the response of [UnmatchedResultsService.List].
type UnmatchedResultPage struct {
	Data       []UnmatchedResult `json:"data,omitzero" jsonread:"own"` // the results of the page
	NextCursor *string           `json:"next_cursor,omitzero"`         // where the next page starts, nil on the last page
	Total      int64             `json:"total"`                        // results on all pages

	RawObject `json:"-"`
}

func (p *UnmatchedResultPage) verify() error { return requireList(p.Data) }

func (p *UnmatchedResultPage) elements() (any, *string) { return p.Data, p.NextCursor }

// ListUnmatchedResultsParams selects unmatched results. Zero fields are not sent.
type ListUnmatchedResultsParams struct {
	Redacted

	Limit int // results per page; the service's default is 50
	// NextCursor is where the page starts: NextCursor of the previous page, or empty for the first.
	NextCursor     string
	DecisionCode   MatchDecisionCode // results with this finding
	LabSlug        string            // results of one lab
	Status         MatchReviewStatus // results with this status; not documented for [MatchReviewMatched]
	CreatedAtStart Date              // results that arrived on this day or later
	CreatedAtEnd   Date              // results that arrived on this day or earlier; that the day is included is an inference
	SearchInput    string            // free text; what is searched is not documented
}

func (p ListUnmatchedResultsParams) validate(v *validator) { v.atLeast("limit", p.Limit, 0) }

func (p ListUnmatchedResultsParams) query() queryValues {
	q := newQuery()
	q.setInt("limit", p.Limit)
	q.setString("next_cursor", p.NextCursor)
	q.setString("decision_code", string(p.DecisionCode))
	q.setString("lab_slug", p.LabSlug)
	q.setString("status", string(p.Status))
	q.setDate("created_at_start", p.CreatedAtStart)
	q.setDate("created_at_end", p.CreatedAtEnd)
	q.setString("search_input", p.SearchInput)
	return q
}

// AcceptUnmatchedResultBody is the request of [UnmatchedResultsService.Accept]. Every field is
// optional.
type AcceptUnmatchedResultBody struct {
	Redacted

	UserID  *uuid.UUID `json:"user_id,omitzero"`  // the user of a [MatchReviewCandidateGroup]
	OrderID *uuid.UUID `json:"order_id,omitzero"` // the order of a [MatchReviewCandidate]
	Note    *string    `json:"note,omitzero"`     // a reason, for people
}

func (b *AcceptUnmatchedResultBody) validate(v *validator) {
	v.optionalID("user_id", b.UserID)
	v.optionalID("order_id", b.OrderID)
}

// ResolveUnmatchedResultBody is the request of [UnmatchedResultsService.Resolve].
type ResolveUnmatchedResultBody struct {
	Redacted

	Action MatchReviewResolutionAction `json:"action"`        // [MatchResolutionReject] or [MatchResolutionUnsure]
	Note   *string                     `json:"note,omitzero"` // a reason, for people
}

func (b *ResolveUnmatchedResultBody) validate(v *validator) { v.required("action", string(b.Action)) }

// List returns one page of the unmatched results: GET /v3/unmatched_result.
func (s *UnmatchedResultsService) List(ctx context.Context, params ListUnmatchedResultsParams, opts ...CallOption) (*UnmatchedResultPage, error) {
	return call(ctx, coreOf(s), new(UnmatchedResultPage), request{op: opListUnmatchedResults, query: params}, opts)
}

// All returns an iterator over the unmatched results, page by page. It behaves like
// [LabTestsService.All].
func (s *UnmatchedResultsService) All(ctx context.Context, params ListUnmatchedResultsParams, opts ...CallOption) iter.Seq2[*UnmatchedResult, error] {
	id := func(r *UnmatchedResult) uuid.UUID { return r.ID }
	return cursorPages(ctx, opts, opListUnmatchedResults, params.NextCursor, id, func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, params, opts...)
	})
}

// Get returns an unmatched result: GET /v3/unmatched_result/{raw_result_id}.
func (s *UnmatchedResultsService) Get(ctx context.Context, resultID uuid.UUID, opts ...CallOption) (*UnmatchedResult, error) {
	return call(ctx, coreOf(s), new(UnmatchedResult), request{op: opGetUnmatchedResult, ids: []string{resultID.String()}}, opts)
}

// Accept decides to which order a result belongs, and returns the order: POST
// /v3/unmatched_result/{raw_result_id}/accept. If the outcome is unknown, read the result before
// you decide again.
func (s *UnmatchedResultsService) Accept(ctx context.Context, resultID uuid.UUID, body AcceptUnmatchedResultBody, opts ...CallOption) (*Order, error) {
	return call(ctx, coreOf(s), new(Order), request{op: opAcceptUnmatchedResult, ids: []string{resultID.String()}, body: &body}, opts)
}

// Resolve decides that a result belongs to no order of the team, or that the team does not know:
// POST /v3/unmatched_result/{raw_result_id}/resolve.
func (s *UnmatchedResultsService) Resolve(ctx context.Context, resultID uuid.UUID, body ResolveUnmatchedResultBody, opts ...CallOption) (*UnmatchedResult, error) {
	return call(ctx, coreOf(s), new(UnmatchedResult), request{op: opResolveUnmatchedResult, ids: []string{resultID.String()}, body: &body}, opts)
}

// MatchReviewStatus is the state of a [UnmatchedResult]. Values other than the constants occur.
type MatchReviewStatus string

// Values of [MatchReviewStatus].
const (
	MatchReviewMatched               MatchReviewStatus = "matched"
	MatchReviewPendingCustomerReview MatchReviewStatus = "pending_customer_review"
	MatchReviewPendingOpsReview      MatchReviewStatus = "pending_ops_review"
	MatchReviewResolved              MatchReviewStatus = "resolved"
)

// MatchDecisionCode is what the service found out about a result. Values other than the constants
// occur.
type MatchDecisionCode string

// Values of [MatchDecisionCode].
const (
	MatchDecisionMatchSampleID             MatchDecisionCode = "match_sample_id"
	MatchDecisionMatchCompleted            MatchDecisionCode = "match_completed"
	MatchDecisionMatchCancelled            MatchDecisionCode = "match_cancelled"
	MatchDecisionWrongCollection           MatchDecisionCode = "wrong_collection"
	MatchDecisionWrongLab                  MatchDecisionCode = "wrong_lab"
	MatchDecisionMultipleDemoMatch         MatchDecisionCode = "multiple_demo_match"
	MatchDecisionMatchSampleIDMismatchDemo MatchDecisionCode = "match_sample_id_mismatch_demo"
	MatchDecisionMatchDemo                 MatchDecisionCode = "match_demo"
	MatchDecisionNoMatch                   MatchDecisionCode = "no_match"
)

// MatchSubReasonCode is a further reason of a [UnmatchedResult]. Values other than the constants
// occur.
type MatchSubReasonCode string

// Values of [MatchSubReasonCode].
const (
	MatchSubReasonLabAccountMismatch MatchSubReasonCode = "lab_account_mismatch"
)

// MatchReviewResolutionAction is the decision of a reviewer. Values other than the constants occur.
type MatchReviewResolutionAction string

// Values of [MatchReviewResolutionAction].
const (
	MatchResolutionAccept MatchReviewResolutionAction = "accept"
	MatchResolutionReject MatchReviewResolutionAction = "reject"
	MatchResolutionUnsure MatchReviewResolutionAction = "unsure"
)

// MatchCandidateType is why an order is a [MatchReviewCandidate]. Values other than the constants
// occur.
type MatchCandidateType string

// Values of [MatchCandidateType].
const (
	MatchCandidateProvenanceOrder MatchCandidateType = "provenance_order"
	MatchCandidateOrderOption     MatchCandidateType = "order_option"
)

// MatchConfidence is how well a [MatchReviewCandidate] matches. Values other than the constants
// occur.
type MatchConfidence string

// Values of [MatchConfidence].
const (
	MatchConfidenceHigh   MatchConfidence = "high"
	MatchConfidenceMedium MatchConfidence = "medium"
	MatchConfidenceLow    MatchConfidence = "low"
)

// MatchReason speaks for or against a [MatchReviewCandidate]. Values other than the constants
// occur.
type MatchReason string

// Values of [MatchReason].
const (
	MatchReasonSampleIDMatch          MatchReason = "sample_id_match"
	MatchReasonLabAccountMismatch     MatchReason = "lab_account_mismatch"
	MatchReasonMatchedCompletedOrder  MatchReason = "matched_completed_order"
	MatchReasonMatchedCancelledOrder  MatchReason = "matched_cancelled_order"
	MatchReasonInvalidCollectionState MatchReason = "invalid_collection_state"
	MatchReasonDemographicMismatch    MatchReason = "demographic_mismatch"
	MatchReasonDemographicMatch       MatchReason = "demographic_match"
	MatchReasonPossibleWrongLab       MatchReason = "possible_wrong_lab"
	MatchReasonSameLab                MatchReason = "same_lab"
	MatchReasonSameUser               MatchReason = "same_user"
	MatchReasonMarkerOverlapExact     MatchReason = "marker_overlap_exact"
	MatchReasonMarkerOverlapPartial   MatchReason = "marker_overlap_partial"
	MatchReasonMarkerOverlapNone      MatchReason = "marker_overlap_none"
)
