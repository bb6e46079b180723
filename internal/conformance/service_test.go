//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// serve starts an embedded service and a client of it.
func serve(t testing.TB, opts ...labhealth.Option) (*labhealthtest.Server, *labhealth.Client) {
	t.Helper()
	srv := labhealthtest.NewServer(t)
	client, err := labhealth.NewClient(srv.APIKey, append([]labhealth.Option{labhealth.WithBaseURL(srv.URL)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return srv, client
}

// plainImport is an import that the embedded service accepts.
func plainImport(srv *labhealthtest.Server, user uuid.UUID, sampleID string) labhealth.ImportOrderBody {
	b := importBody()
	b.UserID, b.SampleID, b.LabAccountID = user, sampleID, nil
	b.PatientDetails.GenderIdentity = nil // a value that the service does not know
	b.OrderSet = labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.Testkit}}
	return b
}

func plainCreate(srv *labhealthtest.Server, user uuid.UUID, activateBy *labhealth.Date) labhealth.CreateOrderBody {
	b := createBody()
	b.UserID, b.ActivateBy = user, activateBy
	b.OrderSet = &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.WalkIn}}
	return b
}

func days(n int) labhealth.Date { return labhealth.DateOf(time.Now().UTC().AddDate(0, 0, n)) }

func statuses(o *labhealth.Order) []labhealth.OrderStatus {
	var list []labhealth.OrderStatus
	for _, e := range o.Events {
		list = append(list, e.Status)
	}
	return list
}

// checkRejected checks status and detail of an *APIError.
func checkRejected(t testing.TB, err error, op string, status int, detail string) {
	t.Helper()
	e := apiError(t, err)
	var text string
	_ = json.Unmarshal(e.Detail(), &text)
	if e.Op != op || e.StatusCode != status || text != detail {
		t.Errorf("%s: %d %q\nwant %s: %d %q", e.Op, e.StatusCode, text, op, status, detail)
	}
	if e.RequestID == "" {
		t.Error("no request id")
	}
	equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
}

func TestServiceImport(t *testing.T) {
	srv, client := serve(t)
	user := srv.AddUser("ada")
	body := plainImport(srv, user, "SAMPLE-1")
	resp, err := client.Orders.Import(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	o := &resp.Order
	equal(t, []any{"success", "Order created successfully", user, srv.TeamID, "SAMPLE-1"}, []any{resp.Status, resp.Message, o.UserID, o.TeamID, *o.SampleID})
	equal(t, labhealth.OrderStatusReceivedTestkitRequisitionBypassed, o.CurrentStatus())
	equal(t, []labhealth.OrderStatus{labhealth.OrderStatusReceivedTestkitOrdered, labhealth.OrderStatusReceivedTestkitRequisitionBypassed}, statuses(o))
	equal(t, labhealth.CollectionMethodTestkit, o.Details.Type)
	equal(t, body.PatientDetails.DOB, o.PatientDetails.DOB)
	equal(t, body.PatientDetails.MedicalProxy.Address, o.PatientDetails.MedicalProxy.Address)
	equal(t, "Jane", o.Physician.FirstName)
	equal(t, json.Number("45.00"), o.LabTest.Price)
	equal(t, []labhealth.Malformed(nil), resp.Malformed())
	if o.CurrentStatus().Modifiable() {
		t.Error("an imported order says it can be modified")
	}

	// An imported order cannot be rescheduled or released.
	const op, detail = "PATCH /v3/order/{order_id}", "Order can not be modified in its current status"
	_, err = client.Orders.Reschedule(t.Context(), o.ID, days(7))
	checkRejected(t, err, op, 400, detail)
	_, err = client.Orders.Release(t.Context(), o.ID)
	checkRejected(t, err, op, 400, detail)
	// A duplicate sample ID.
	_, err = client.Orders.Import(t.Context(), body)
	checkRejected(t, err, "POST /v3/order/import", 400, "An order with this sample_id already exists")
	body.UserID, body.SampleID = uuid.New(), "SAMPLE-2"
	_, err = client.Orders.Import(t.Context(), body)
	checkRejected(t, err, "POST /v3/order/import", 404, "User not found")
	equal(t, true, errors.Is(err, labhealth.ErrNotFound))
	equal(t, []uuid.UUID{o.ID}, srv.Orders())

	// The order reads the same from everywhere.
	got, err := client.Orders.Get(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, o, got)
	page, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{SearchInput: "sample-1"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []labhealth.Order{*o}, page.Orders)
}

// The rejection of the closed beta has no documented status or body. Any is an *APIError.
func TestServiceClosedBeta(t *testing.T) {
	srv, client := serve(t)
	body := plainImport(srv, srv.AddUser("ada"), "SAMPLE-1")
	for _, test := range []struct {
		status        int
		body          string
		text          string
		detail        string
		sameAsUnknown bool
	}{
		{403, `{"detail":"This endpoint is in closed beta"}`, "403 Forbidden: rejected (the team is not enabled for this closed beta: ask the service for access)", `"This endpoint is in closed beta"`, false},
		{400, `{"detail":{"error_type":"NOT_ENABLED"}}`, "400 Bad Request: rejected (see APIError.Body)", `{"error_type":"NOT_ENABLED"}`, false},
		{404, `Not found`, "404 Not Found: rejected (no such path: check the base URL and WithPath, and whether the team is enabled for this closed beta)", "", false},
		{402, `This endpoint is in closed beta`, "402 Payment Required: rejected (the team is not enabled for this closed beta: ask the service for access)", "", false},
		{501, `{"detail":"soon"}`, "501 Not Implemented: outcome unknown (APIError.Message has the service's text; check whether it took effect before you repeat it)", `"soon"`, true},
	} {
		srv.RejectImports(test.status, test.body)
		_, err := client.Orders.Import(t.Context(), body)
		e := apiError(t, err)
		equal(t, "labhealth: POST /v3/order/import: "+test.text+" (request "+e.RequestID+")", errorText(err))
		equal(t, test.body, string(e.Body()))
		equal(t, test.detail, string(e.Detail()))
		want := labhealth.OutcomeRejected
		if test.sameAsUnknown {
			want = labhealth.OutcomeUnknown
		}
		equal(t, want, labhealth.OutcomeOf(err))
	}
	equal(t, 5, len(srv.Requests()))
	srv.RejectImports(0, "")
	if _, err := client.Orders.Import(t.Context(), body); err != nil {
		t.Error(err)
	}
}

// With an idempotency key the second creation returns the first order, also after a lost response.
func TestServiceIdempotencyKey(t *testing.T) {
	for op, place := range map[string]func(context.Context, *labhealthtest.Server, *labhealth.Client, string) (*labhealth.PostOrderResponse, error){
		"POST /v3/order": func(ctx context.Context, srv *labhealthtest.Server, client *labhealth.Client, key string) (*labhealth.PostOrderResponse, error) {
			return client.Orders.Create(ctx, plainCreate(srv, srv.AddUser("ada"), nil), labhealth.WithIdempotencyKey(key))
		},
		"POST /v3/order/testkit": func(ctx context.Context, srv *labhealthtest.Server, client *labhealth.Client, key string) (*labhealth.PostOrderResponse, error) {
			body := testkitBody()
			body.UserID, body.LabTestID, body.LabAccountID = srv.AddUser("ada"), srv.LabTests.Testkit, nil
			return client.Orders.CreateTestkit(ctx, body, labhealth.WithIdempotencyKey(key))
		},
	} {
		srv, client := serve(t)
		if err := srv.FailAfter(op, 1, labhealthtest.FaultClosed); err != nil {
			t.Fatal(err)
		}
		var ids []uuid.UUID
		for _, key := range []string{"k-1", "k-1", "k-2"} {
			resp, err := place(t.Context(), srv, client, key)
			if err != nil {
				t.Fatalf("%s: %v", op, err)
			}
			ids = append(ids, resp.Order.ID)
		}
		if ids[0] != ids[1] || ids[1] == ids[2] || len(srv.Orders()) != 2 || srv.RequestCount() != 4 {
			t.Errorf("%s: %v of %v, %d requests", op, ids, srv.Orders(), srv.RequestCount())
		}
	}
}

func TestServiceKeyAndDo(t *testing.T) {
	srv, client := serve(t)
	wrong := must[*labhealth.Client](t)(labhealth.NewClient("sk_us_wrong", labhealth.WithBaseURL(srv.URL)))
	defer wrong.CloseIdleConnections()
	_, err := wrong.Users.List(t.Context(), labhealth.ListUsersParams{})
	checkRejected(t, err, "GET /v2/user/", 401, "Invalid token")
	equal(t, true, errors.Is(err, labhealth.ErrUnauthorized))

	var user labhealth.User
	if err := client.Do(t.Context(), "POST", "/v2/user", map[string]string{"client_user_id": "ada"}, &user); err != nil {
		t.Fatal(err)
	}
	equal(t, "ada", user.ClientUserID)
	err = client.Do(t.Context(), "GET", "/v4/nothing", nil, nil)
	checkRejected(t, err, "GET (Do)", 404, "Not Found")
}

// The client and the service find the same invalid fields.
func TestServiceValidation(t *testing.T) {
	srv, client := serve(t)
	user := srv.AddUser("ada")
	minor := days(-5 * 365)
	long := strings.Repeat("x", 1001)
	for _, test := range []struct {
		name  string
		spoil func(*labhealth.ImportOrderBody)
		paths []string
	}{
		{"names", func(b *labhealth.ImportOrderBody) {
			b.PatientDetails.FirstName, b.PatientDetails.LastName = "", strings.Repeat("x", 51)
		}, []string{"body.patient_details.first_name", "body.patient_details.last_name"}},
		{"billing and method", func(b *labhealth.ImportOrderBody) { b.BillingType, b.CollectionMethod = "", "" },
			[]string{"body.billing_type", "body.collection_method"}},
		{"gender, phone and email", func(b *labhealth.ImportOrderBody) {
			b.PatientDetails.Gender, b.PatientDetails.PhoneNumber, b.PatientDetails.Email = "", "", "ada"
		}, []string{"body.patient_details.email", "body.patient_details.gender", "body.patient_details.phone_number"}},
		{"date of birth", func(b *labhealth.ImportOrderBody) { b.PatientDetails.DOB = labhealth.Date{} }, []string{"body.patient_details.dob"}},
		{"minor", func(b *labhealth.ImportOrderBody) { b.PatientDetails.DOB, b.PatientDetails.MedicalProxy = minor, nil },
			[]string{"body.patient_details.medical_proxy"}},
		{"access notes", func(b *labhealth.ImportOrderBody) {
			b.PatientAddress.AccessNotes, b.PatientDetails.MedicalProxy.Address.AccessNotes = &long, &long
		}, []string{"body.patient_address.access_notes", "body.patient_details.medical_proxy.address.access_notes"}},
		{"picture", func(b *labhealth.ImportOrderBody) { b.Physician.SignatureImage.ContentType = "image/gif" },
			[]string{"body.physician.signature_image.content_type"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := plainImport(srv, user, "SAMPLE-1")
			test.spoil(&body)
			before := len(srv.Requests())
			_, err := client.Orders.Import(t.Context(), body)
			var invalid *labhealth.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("%T: %v", err, err)
			}
			equal(t, test.paths, paths(invalid.Fields))
			equal(t, before, len(srv.Requests()))

			_, err = client.Orders.Import(t.Context(), body, labhealth.WithoutValidation())
			e := apiError(t, err)
			equal(t, 422, e.StatusCode)
			equal(t, test.paths, paths(e.Fields()))
			equal(t, true, errors.Is(err, labhealth.ErrValidation))
			for _, f := range e.Fields() {
				if f.Type == "" || f.Msg == "" {
					t.Errorf("%v lacks its type or text", f.Path())
				}
			}
		})
	}
	equal(t, 0, len(srv.Orders()))
}

func paths(fields []labhealth.FieldError) []string {
	var list []string
	for _, f := range fields {
		list = append(list, f.Path())
	}
	slices.Sort(list)
	return list
}

// Changes of an order are delivered as events, and the order within an event equals that of the
// API.
func TestServiceEvents(t *testing.T) {
	type event struct {
		Type   string          `json:"event_type"`
		UserID uuid.UUID       `json:"user_id"`
		Data   labhealth.Order `json:"data"`
	}
	var mu sync.Mutex
	var events []event
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e event
		if err := json.Unmarshal(body, &e); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}))
	defer receiver.Close()
	srv, client := serve(t)
	user := srv.AddUser("ada")
	if err := srv.DeliverTo(receiver.URL); err != nil {
		t.Fatal(err)
	}
	resp, err := client.Orders.Import(t.Context(), plainImport(srv, user, "SAMPLE-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Advance(resp.Order.ID); err != nil {
		t.Fatal(err)
	}
	if err := srv.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, e := range events {
		seen = append(seen, e.Type+" "+string(e.Data.CurrentStatus()))
		equal(t, []uuid.UUID{user, resp.Order.ID}, []uuid.UUID{e.UserID, e.Data.ID})
	}
	equal(t, []string{
		"labtest.order.created received.testkit.ordered",
		"labtest.order.updated received.testkit.requisition_bypassed",
		"labtest.order.updated collecting_sample.testkit.transit_customer",
	}, seen)
	equal(t, resp.Order, events[1].Data)
	got, err := client.Orders.Get(t.Context(), resp.Order.ID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, *got, events[2].Data)
	if got.Details.Data.(*labhealth.TestkitOrder).Shipment.OutboundTrackingNumber == nil {
		t.Error("no tracking number")
	}
}

// Unknown statuses decode.
func TestServiceUnknownStatus(t *testing.T) {
	srv, client := serve(t)
	order := srv.AddOrders(1)[0]
	if err := srv.SetStatus(order, "paused.testkit.waiting_for_spring"); err != nil {
		t.Fatal(err)
	}
	got, err := client.Orders.Get(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	s := got.CurrentStatus()
	equal(t, []any{labhealth.OrderTopLevelStatus("paused"), labhealth.OrderLowLevelStatus("waiting_for_spring"), false}, []any{s.TopLevel(), s.LowLevel(), s.Modifiable()})
	equal(t, new(labhealth.OrderTopLevelStatus("paused")), got.Status)
}

// Many goroutines import with one client, and every order exists once.
func TestServiceConcurrent(t *testing.T) {
	srv, client := serve(t)
	user := srv.AddUser("ada")
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			sample := fmt.Sprintf("SAMPLE-%d", i)
			resp, err := client.Orders.Import(t.Context(), plainImport(srv, user, sample))
			if err != nil {
				t.Error(err)
				return
			}
			got, err := client.Orders.Get(t.Context(), resp.Order.ID)
			if err != nil || *got.SampleID != sample {
				t.Errorf("%s: %v", sample, err)
			}
			for _, err := range client.Orders.All(t.Context(), labhealth.ListOrdersParams{UserID: user, Size: 20, Page: 1}) {
				if err != nil {
					t.Error(err)
				}
				break
			}
		})
	}
	group.Wait()
	equal(t, 50, len(srv.Orders()))
}
