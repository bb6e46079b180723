//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
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

func days(n int) labhealth.Date { return labhealth.DateOf(time.Now().UTC().AddDate(0, 0, n)) }

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
