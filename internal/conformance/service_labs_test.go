package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// An order that an insurance pays needs one, whose payor was found, and refers to it.
func TestServiceInsurance(t *testing.T) {
	srv, client := serve(t)
	ctx, ada := t.Context(), srv.AddUser("ada")
	body := plainImport(srv, ada, "S-1")
	body.BillingType = labhealth.BillingCommercialInsurance
	_, err := client.Orders.Import(ctx, body)
	checkRejected(t, err, "POST /v3/order/import", 400, "User has no primary insurance")
	_, err = client.Users.LatestInsurance(ctx, ada, labhealth.LatestInsuranceParams{})
	checkRejected(t, err, "GET /v2/user/{user_id}/insurance/latest", 404, "Insurance not found")

	payors := must[[]labhealth.Payor](t)(client.Insurance.SearchPayors(ctx, labhealth.SearchPayorsParams{InsuranceName: "ehp"}))
	equal(t, []any{1, "PAY-EXAMPLE", labhealth.PayorSourcePlatform}, []any{len(payors), payors[0].PayorCode, payors[0].Source})
	former := must[[]labhealth.DeprecatedPayor](t)(client.Insurance.SearchPayorsDeprecated(ctx, labhealth.SearchPayorsParams{ //lint:ignore SA1019 it is tested
		Provider: labhealth.PayorProviderStedi, ProviderPayorID: "SA002",
	}))
	equal(t, []any{1, "PAY-SAMPLE"}, []any{len(former), former[0].Code})
	own := must[*labhealth.Payor](t)(client.Insurance.CreatePayor(ctx, labhealth.CreatePayorBody{Name: "Our Plan", Address: fullAddress}))
	equal(t, labhealth.PayorSourceTeam, own.Source)

	insured := labhealth.CreateInsuranceBody{PayorCode: "PAY-NONE", MemberID: "M-1", Relationship: labhealth.ResponsibleRelationshipSelf, Insured: insuredBody}
	_, err = client.Users.CreateInsurance(ctx, ada, insured)
	checkRejected(t, err, "POST /v2/user/{user_id}/insurance", 400, "Payor does not exist")
	insured.PayorCode = own.PayorCode
	created := must[*labhealth.Insurance](t)(client.Users.CreateInsurance(ctx, ada, insured))
	equal(t, []any{"Our Plan", true, "Ada"}, []any{created.Company.Name, created.IsPrimary, created.Insured.FirstName})
	latest := must[*labhealth.Insurance](t)(client.Users.LatestInsurance(ctx, ada, labhealth.LatestInsuranceParams{}))
	equal(t, created.MemberID, latest.MemberID)
	order := must[*labhealth.PostOrderResponse](t)(client.Orders.Import(ctx, body)).Order
	equal(t, true, order.HealthInsuranceID != nil && *order.HealthInsuranceID != uuid.Nil)

	found := must[[]labhealth.Diagnosis](t)(client.Insurance.SearchDiagnoses(ctx, "diabetes"))
	equal(t, []any{2, "E10.9"}, []any{len(found), found[0].DiagnosisCode})
	result := must[*labhealth.ICDValidation](t)(client.Insurance.ValidateICDCodes(ctx, []string{"E10.9", "E11.9"}))
	equal(t, []any{false, "E11.9"}, []any{result.Valid, result.Violations[0].ConflictsWith})
	equal(t, true, must[*labhealth.ICDValidation](t)(client.Insurance.ValidateICDCodes(ctx, []string{"E11.9"})).Valid)
}

// A test makes an unmatched result, whose event leads to the decision of the team.
func TestServiceUnmatchedResults(t *testing.T) {
	srv, client := serve(t)
	ctx, results, events := t.Context(), client.UnmatchedResults, receive(t, srv)
	equal(t, 8, len(must[[]labhealth.UnmatchedResultTestCaseDefinition](t)(results.TestCases(ctx))))
	body := labhealth.CreateUnmatchedResultTestBody{Case: labhealth.UnmatchedResultTestMultipleDemoMatch, OrderSource: labhealth.UnmatchedResultTestManaged}
	started := must[*labhealth.UnmatchedResultTest](t)(results.CreateTest(ctx, "key-1", body))
	equal(t, labhealth.UnmatchedResultTestQueued, started.Status)
	equal(t, started.RunID, must[*labhealth.UnmatchedResultTest](t)(results.CreateTest(ctx, "key-1", body)).RunID)
	body.Case = labhealth.UnmatchedResultTestNoMatch
	_, err := results.CreateTest(ctx, "key-1", body)
	checkRejected(t, err, "POST /v3/unmatched_result_test", 409, "The idempotency key was used with another body")
	run := must[*labhealth.UnmatchedResultTest](t)(results.Test(ctx, started.RunID))
	equal(t, []any{labhealth.UnmatchedResultTestSucceeded, 2}, []any{run.Status, len(run.Orders)})

	noErr(t, srv.Flush(ctx))
	var review *webhooks.MatchReview
	for _, e := range events() {
		if v, ok := e.Data.(*webhooks.MatchReview); ok {
			review = v
		}
	}
	got := must[*labhealth.UnmatchedResult](t)(results.Get(ctx, review.ID))
	equal(t, []any{*run.RawResultID, labhealth.MatchReviewPendingCustomerReview, 2}, []any{got.ID, got.Status, len(got.CandidateGroups)})
	list := collected(t, client, labhealth.ListUnmatchedResultsParams{Status: labhealth.MatchReviewPendingCustomerReview})
	equal(t, "["+got.ID.String()+"]", fmt.Sprint(list))

	_, err = results.Accept(ctx, got.ID, labhealth.AcceptUnmatchedResultBody{})
	checkRejected(t, err, "POST /v3/unmatched_result/{raw_result_id}/accept", 400, "order_id is required: there are several candidates")
	chosen := got.CandidateGroups[1].Candidates[0].OrderID
	order := must[*labhealth.Order](t)(results.Accept(ctx, got.ID, labhealth.AcceptUnmatchedResultBody{OrderID: chosen, Note: new("called")}))
	equal(t, []any{*chosen, labhealth.OrderStatusCompletedWalkInTestCompleted}, []any{order.ID, order.CurrentStatus()})
	got = must[*labhealth.UnmatchedResult](t)(results.Get(ctx, got.ID))
	equal(t, []any{labhealth.MatchReviewResolved, labhealth.MatchResolutionAccept, *chosen}, []any{got.Status, *got.ResolutionAction, *got.ResolvedOrderID})
	_, err = results.Resolve(ctx, got.ID, labhealth.ResolveUnmatchedResultBody{Action: labhealth.MatchResolutionReject})
	checkRejected(t, err, "POST /v3/unmatched_result/{raw_result_id}/resolve", 400, "This result does not wait for a decision")

	// A result without an order belongs to no user, and nobody can accept it.
	run = must[*labhealth.UnmatchedResultTest](t)(results.CreateTest(ctx, "key-2", body))
	run = must[*labhealth.UnmatchedResultTest](t)(results.Test(ctx, run.RunID))
	unsure := must[*labhealth.UnmatchedResult](t)(results.Resolve(ctx, *run.RawResultID, labhealth.ResolveUnmatchedResultBody{Action: labhealth.MatchResolutionUnsure}))
	equal(t, labhealth.MatchReviewPendingOpsReview, unsure.Status)
	equal(t, 2, len(collected(t, client, labhealth.ListUnmatchedResultsParams{Limit: 1})))

	// Provided orders must have the status that the case requires.
	provided := labhealth.CreateUnmatchedResultTestBody{
		Case: labhealth.UnmatchedResultTestMatchCancelled, OrderSource: labhealth.UnmatchedResultTestProvided, Orders: map[string]uuid.UUID{"order": order.ID},
	}
	run = must[*labhealth.UnmatchedResultTest](t)(results.CreateTest(ctx, "key-3", provided))
	run = must[*labhealth.UnmatchedResultTest](t)(results.Test(ctx, run.RunID))
	equal(t, []any{labhealth.UnmatchedResultTestFailed, "invalid_status"}, []any{run.Status, run.Error.Code})
}

func collected(t *testing.T, client *labhealth.Client, params labhealth.ListUnmatchedResultsParams) (ids []uuid.UUID) {
	t.Helper()
	for r, err := range client.UnmatchedResults.All(t.Context(), params) {
		noErr(t, err)
		ids = append(ids, r.ID)
	}
	return ids
}

// A lab report is sent, and read when the job is asked for.
func TestServiceLabReports(t *testing.T) {
	srv, client := serve(t)
	ctx, events := t.Context(), receive(t, srv)
	body := labhealth.CreateParsingJobBody{
		UserID: srv.AddUser("ada"), Files: []labhealth.LabReportFile{{Name: "report.pdf", Content: []byte("%PDF-1.7\n%%EOF")}}, NeedsHumanReview: true,
	}
	job := must[*labhealth.ParsingJob](t)(client.LabReports.Create(ctx, body))
	equal(t, []any{labhealth.ParsingJobStarted, true}, []any{job.Status, job.NeedsHumanReview})
	job = must[*labhealth.ParsingJob](t)(client.LabReports.Get(ctx, job.ID))
	equal(t, []any{labhealth.ParsingJobCompleted, 2}, []any{job.Status, len(job.Data.Results)})
	body.Files[0] = labhealth.LabReportFile{Name: "report.txt", Content: []byte("text")}
	failed := must[*labhealth.ParsingJob](t)(client.LabReports.Create(ctx, body))
	failed = must[*labhealth.ParsingJob](t)(client.LabReports.Get(ctx, failed.ID))
	equal(t, labhealth.ParsingFailureInvalidInput, *failed.FailureReason)
	noErr(t, srv.Flush(ctx))
	var kinds []string
	for _, e := range events() {
		if v, ok := e.Data.(*webhooks.ParsingJob); ok {
			kinds = append(kinds, string(e.Type)+" "+string(v.Status))
		}
	}
	equal(t, "lab_report.parsing_job.created started, lab_report.parsing_job.updated completed, "+
		"lab_report.parsing_job.created started, lab_report.parsing_job.updated failed", strings.Join(kinds, ", "))

	_, err := client.LabReports.Create(ctx, labhealth.CreateParsingJobBody{Files: []labhealth.LabReportFile{{}}})
	equal(t, "labhealth: POST /lab_report/v1/parser/job: not sent: body.user_id is required: a UUID that is not nil; "+
		"body.file.0.name is required; body.file.0.content is required", errorText(err))
	_, err = client.LabReports.Get(ctx, orderID)
	equal(t, true, errors.Is(err, labhealth.ErrNotFound))
}

// A user is connected with a password, a code or an email address. An error has the status 200.
func TestServiceLinkCredentials(t *testing.T) {
	srv, client := serve(t)
	ctx, ada := t.Context(), srv.AddUser("ada")
	token := func() labhealth.CallOption {
		link := must[*labhealth.LinkToken](t)(client.Link.CreateToken(ctx, labhealth.CreateLinkTokenBody{UserID: ada}))
		return labhealth.WithHeader("X-Link-Token", string(link.LinkToken))
	}
	failed := func(err error, kind string) {
		t.Helper()
		e := apiError(t, err)
		equal(t, []any{200, labhealth.OutcomeRejected}, []any{e.StatusCode, labhealth.OutcomeOf(err)})
		if !strings.Contains(err.Error(), kind) {
			t.Error(err)
		}
	}
	_, err := client.Link.ConnectPassword(ctx, labhealth.ProviderWhoop, labhealth.ConnectPasswordBody{Username: "ada", Password: "right"})
	failed(err, "the link token is invalid")
	with := token()
	_, err = client.Link.ConnectPassword(ctx, labhealth.ProviderWhoop, labhealth.ConnectPasswordBody{Username: "ada", Password: "wrong"}, with)
	failed(err, "the provider rejected the user's name or password")
	link := must[*labhealth.ProviderLink](t)(client.Link.ConnectPassword(ctx, labhealth.ProviderWhoop, labhealth.ConnectPasswordBody{Username: "ada", Password: "right"}, with))
	equal(t, labhealth.ProviderLinkSuccess, link.State)

	with = token()
	link = must[*labhealth.ProviderLink](t)(client.Link.ConnectPassword(ctx, labhealth.ProviderDexcom, labhealth.ConnectPasswordBody{Username: "mfa-ada", Password: "right"}, with))
	equal(t, []any{labhealth.ProviderLinkPendingMFA, "sms"}, []any{link.State, link.ProviderMFA.Method})
	_, err = client.Link.CompletePasswordMFA(ctx, labhealth.ProviderDexcom, "000000", with)
	failed(err, "the code of the provider is wrong")
	link = must[*labhealth.ProviderLink](t)(client.Link.CompletePasswordMFA(ctx, labhealth.ProviderDexcom, "123456", with))
	equal(t, labhealth.ProviderLinkSuccess, link.State)
	noErr(t, client.Link.ConnectEmail(ctx, labhealth.ProviderFreeStyleLibre, labhealth.ConnectEmailBody{Email: "ada@example.com"}, token()))

	user := must[*labhealth.User](t)(client.Users.Get(ctx, ada))
	equal(t, 3, len(user.ConnectedSources))
	signIn := must[*labhealth.SignInToken](t)(client.Users.CreateSignInToken(ctx, ada))
	equal(t, true, signIn.UserID == ada && strings.HasPrefix(string(signIn.SignInToken), "sit_"))
}

// A lab report that is sent as JSON has no file.
func TestServiceLabReportsNeedAForm(t *testing.T) {
	srv, client := serve(t)
	err := client.Do(t.Context(), "POST", "/lab_report/v1/parser/job", map[string]string{"user_id": srv.AddUser("ada").String()}, nil)
	e := apiError(t, err)
	equal(t, []any{422, "file"}, []any{e.StatusCode, e.Fields()[0].Loc[len(e.Fields()[0].Loc)-1]})
}

// receive makes the server deliver its events, and returns a function that returns those delivered.
func receive(t testing.TB, srv *labhealthtest.Server) func() []*webhooks.Event {
	t.Helper()
	noErr(t, srv.DeliverTo(srv.URL))
	return func() (events []*webhooks.Event) {
		for _, d := range srv.Deliveries() {
			events = append(events, must[*webhooks.Event](t)(webhooks.Parse(d.Body)))
		}
		return events
	}
}
