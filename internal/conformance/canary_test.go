package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/canarytest"
	"github.com/labhealth/labhealth-go/management"
)

// The canaries, in short.
const (
	canaryKey     = canarytest.Key
	canaryFirst   = canarytest.First
	canaryLast    = canarytest.Last
	canaryDOB     = canarytest.DOB
	canaryPhone   = canarytest.Phone
	canaryEmail   = canarytest.Email
	canaryStreet  = canarytest.Street
	canaryCity    = canarytest.City
	canaryZip     = canarytest.Zip
	canarySample  = canarytest.Sample
	canaryNotes   = canarytest.Notes
	canaryUser    = canarytest.User
	canaryNPI     = canarytest.NPI
	canaryTracker = canarytest.Tracking
)

func canaryImport() labhealth.ImportOrderBody {
	body := faultImport()
	body.PatientDetails.FirstName, body.PatientDetails.LastName = canaryFirst, canaryLast
	body.PatientDetails.DOB = labhealth.Date{Year: 1957, Month: time.November, Day: 23}
	body.PatientDetails.PhoneNumber, body.PatientDetails.Email = canaryPhone, canaryEmail
	body.PatientDetails.MedicalProxy = &labhealth.GuarantorDetails{
		FirstName: canaryFirst, LastName: canaryLast, PhoneNumber: canaryPhone, Email: new(canaryEmail),
		Address: labhealth.Address{FirstLine: canaryStreet, City: canaryCity, Zip: canaryZip, Country: "US", State: "CA"},
	}
	body.PatientAddress = labhealth.PatientAddress{
		ReceiverName: canaryFirst + " " + canaryLast, FirstLine: canaryStreet, City: canaryCity, State: "CA", Zip: canaryZip, Country: "US",
		AccessNotes: new(canaryNotes),
	}
	body.Physician = &labhealth.PhysicianCreateRequest{FirstName: canaryFirst, LastName: canaryLast, NPI: canaryNPI, Email: new(canaryEmail)}
	body.SampleID = canarySample
	return body
}

func canaryRegistration() labhealth.RegisterTestkitBody {
	i := canaryImport()
	return labhealth.RegisterTestkitBody{
		SampleID: canarySample, PatientDetails: i.PatientDetails,
		PatientAddress: labhealth.PatientAddressWithValidation{
			ReceiverName: canaryFirst, FirstLine: canaryStreet, City: canaryCity, State: "CA", Zip: canaryZip, Country: "US", PhoneNumber: new(canaryPhone),
		},
		Physician: &labhealth.PhysicianCreateRequestBase{FirstName: canaryFirst, LastName: canaryLast, NPI: canaryNPI},
		HealthInsurance: &labhealth.HealthInsuranceCreateRequest{
			Subjective: new(canaryNotes), InsuranceID: new(canaryNPI), ResponsibleDetails: &labhealth.PersonDetails{
				FirstName: canaryFirst, LastName: canaryLast, PhoneNumber: canaryPhone, Address: i.PatientDetails.MedicalProxy.Address,
			},
		},
	}
}

// canaryOrder is an order with canaries in its fields.
var canaryOrder = fmt.Sprintf(`{"id":%q,"user_id":%[1]q,"team_id":%[1]q,
	"patient_details":{"dob":"1957-11-23T00:00:00+00:00","gender":"female","first_name":%q,"last_name":%q,"phone_number":%q,"email":%q,
		"medical_proxy":{"first_name":%[2]q,"last_name":%[3]q,"phone_number":%[4]q,"address":{"first_line":%[6]q,"city":%[7]q,"zip":%[8]q,"state":"CA","country":"US"}}},
	"patient_address":{"first_line":%[6]q,"city":%q,"zip":%q,"state":"CA","country":"US","receiver_name":%[2]q,"access_notes":%q},
	"lab_test":{"id":%[1]q,"slug":"s","name":"n","sample_type":"serum","method":"testkit","price":1,"is_active":true,"status":"active","lab":null,"markers":null},
	"details":{"type":"testkit","data":{"id":%[1]q,"shipment":{"id":%[1]q,"outbound_tracking_number":%q,"notes":%[9]q},"created_at":"2025-01-01T00:00:00Z","updated_at":"2025-01-01T00:00:00Z"}},
	"sample_id":%q,"notes":%[9]q,"clinical_notes":%[9]q,"created_at":"2025-01-01T00:00:00Z","updated_at":"2025-01-01T00:00:00Z",
	"events":[{"id":1,"created_at":"2025-01-01T00:00:00Z","status":"received.testkit.ordered"}],
	"last_event":{"id":1,"created_at":"2025-01-01T00:00:00Z","status":"received.testkit.ordered"},
	"physician":{"first_name":%[2]q,"last_name":%[3]q,"npi":%q},"health_insurance_id":null,"requisition_form_url":"https://example.com/?name=%[3]s",
	"shipping_details":{"receiver_name":%[2]q,"first_line":%[6]q,"city":%[7]q,"state":"CA","zip":%[8]q,"country":"US","phone_number":%[4]q},
	"passthrough":%[9]q,"has_abn":false}`,
	faultOrderID, canaryFirst, canaryLast, canaryPhone, canaryEmail, canaryStreet, canaryCity, canaryZip, canaryNotes, canaryTracker, canarySample, canaryNPI)

// allCanaries is one string with every canary, for responses that echo the request.
var allCanaries = canarytest.All

// echoes respond with canaries in every string of a response.
var echoes = map[string]func(exchange){
	"422 with input": func(x exchange) {
		x.respond(422, fmt.Sprintf(`{"detail":[{"type":"value_error","loc":["body","patient_details",%q],"msg":%[2]q,"input":%[2]q,"ctx":{"error":%[2]q}},
			{"type":%[2]q,"loc":[%[2]q],"msg":%[2]q}]}`, "first_name", allCanaries))
	},
	"400 with a text": func(x exchange) { x.respond(400, fmt.Sprintf(`{"detail":%q}`, allCanaries)) },
	"400 with an object": func(x exchange) {
		x.respond(400, fmt.Sprintf(`{"detail":{"user_id":%q,"error":%q}}`, faultOrderID, allCanaries))
	},
	"400 of a user": func(x exchange) {
		x.respond(400, fmt.Sprintf(`{"detail":{"error_type":%q,"error_message":%[1]q,"user_id":%q,"created_on":%[1]q}}`, allCanaries, faultOrderID))
	},
	"400 of a refresh": func(x exchange) {
		x.respond(400, fmt.Sprintf(`{"success":false,"user_id":%q,"error":%q,"failed_sources":["oura/sleep"]}`, faultOrderID, allCanaries))
	},
	"400 with a message": func(x exchange) {
		x.respond(400, fmt.Sprintf(`{"error":%q,"message":%[1]q,"status_code":400}`, allCanaries))
	},
	"409 of a team": func(x exchange) { x.respond(409, fmt.Sprintf(`{"team_id":%q,"detail":%q}`, faultOrderID, allCanaries)) },
	"200 with an error": func(x exchange) {
		x.respond(200, fmt.Sprintf(`{"state":"error","error_type":%q,"error":%[1]q}`, allCanaries))
	},
	"known phrase and more": func(x exchange) {
		x.respond(400, fmt.Sprintf(`{"detail":"Test does not exist: %s"}`, canaryFirst))
	},
	"500 plain":           func(x exchange) { x.respond(500, allCanaries, "Content-Type", "text/plain") },
	"429":                 func(x exchange) { x.respond(429, allCanaries, "Retry-After", "3600", "X-Note", allCanaries) },
	"429, to be repeated": func(x exchange) { x.respond(429, allCanaries) },
	"junk Retry-After":    func(x exchange) { x.respond(503, allCanaries, "Retry-After", allCanaries) },
	"request id":          func(x exchange) { x.respond(404, "{}", "Traceresponse", canaryEmail, "X-Request-Id", canaryUser) },
	"200 HTML":            func(x exchange) { x.respond(200, "<html>"+allCanaries, "Content-Type", "text/html; name="+canaryLast) },
	"200 text":            func(x exchange) { x.respond(200, allCanaries) },
	"200 string":          func(x exchange) { x.respond(200, fmt.Sprintf("%q", allCanaries)) },
	"200 list":            func(x exchange) { x.respond(200, fmt.Sprintf("[%q]", allCanaries)) },
	"200 two documents":   func(x exchange) { x.respond(200, fmt.Sprintf("{} %q", allCanaries)) },
	"200 bad UTF-8":       func(x exchange) { x.respond(200, `{"a":"`+allCanaries+"\xff\"}") },
	"200 without an id": func(x exchange) {
		x.respond(200, fmt.Sprintf(`{"id":%q,"order":{"id":%[1]q},"user_id":%[1]q}`, allCanaries))
	},
	"200 wrong kinds": func(x exchange) { x.respond(200, fmt.Sprintf(`{"id":{"a":%q},"order":%[1]q}`, allCanaries)) },
	"200 cut": func(x exchange) {
		x.Header().Set("Content-Length", "100000")
		x.respond(200, fmt.Sprintf(`{"a":%q`, allCanaries))
		abort(x)
	},
	"200 too large": func(x exchange) { x.respond(200, strings.Repeat(allCanaries, 500)) },
	"302": func(x exchange) {
		x.respond(302, allCanaries, "Location", "https://elsewhere.example.com/"+url.PathEscape(allCanaries)+"?a="+url.QueryEscape(allCanaries))
	},
	"307": func(x exchange) {
		x.respond(307, allCanaries, "Location", "https://elsewhere.example.com/"+url.PathEscape(allCanaries))
	},
	"302 user info": func(x exchange) {
		x.respond(302, "", "Location", "http://"+canaryFirst+":"+canaryLast+"@elsewhere.example.com/")
	},
	"302 bad":       func(x exchange) { x.respond(302, "", "Location", "http://[::1]%"+canaryLast+":"+canaryPhone+"/") },
	"302 to itself": func(x exchange) { x.respond(302, "", "Location", "/"+url.PathEscape(canaryUser)) },
	"status line":   rawEcho(allCanaries + "\r\n\r\n"),
	"status":        rawEcho("HTTP/1.1 200" + allCanaries + "\r\n\r\n"),
	"status text":   rawEcho("HTTP/1.1 503 " + allCanaries + "\r\nContent-Length: 0\r\n\r\n"),
	"version":       rawEcho("HTTP/9." + canaryZip + " 200 " + allCanaries + "\r\n\r\n"),
	"header line":   rawEcho("HTTP/1.1 200 OK\r\n" + allCanaries + "\r\n\r\n"),
	"header name":   rawEcho("HTTP/1.1 200 OK\r\nA " + canaryLast + " B: c\r\n\r\n"),
	"length":        rawEcho("HTTP/1.1 200 OK\r\nContent-Length: " + canaryPhone + "x\r\n\r\n"),
	"two lengths":   rawEcho("HTTP/1.1 200 OK\r\nContent-Length: 94199\r\nContent-Length: " + canaryNPI + "\r\n\r\n"),
	"coding":        rawEcho("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canaryLast + "\r\n\r\n"),
	"chunk":         rawEcho("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + allCanaries + "\r\n"),
	"trailer":       rawEcho("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\n{}\r\n0\r\n" + allCanaries + "\r\n\r\n"),
	"gzip":          rawEcho("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 100\r\n\r\n" + strings.Repeat(canaryLast, 10)),
	"more":          rawEcho("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + allCanaries),
	"more, kept": func(x exchange) {
		c := x.raw()
		io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"+allCanaries)
		c.Read(make([]byte, 1))
		c.Close()
	},
	"upgrade": rawEcho("HTTP/1.1 101 " + allCanaries + "\r\nUpgrade: " + canaryLast + "\r\nConnection: upgrade\r\n\r\n" + allCanaries),
	"closed":  func(x exchange) { x.raw().Close() },
}

func rawEcho(text string) func(exchange) {
	return func(x exchange) {
		c := x.raw()
		io.WriteString(c, text)
		c.Close()
	}
}

// canaryOutputs are what a client writes, or passes to a program, during its calls. Each passes it
// to check. Every call of these tests is made with all of them.
var canaryOutputs = map[string]func(check *canarytest.Checker, where string) labhealth.Option{
	"text log": func(check *canarytest.Checker, where string) labhealth.Option {
		return labhealth.WithLogger(slog.New(slog.NewTextHandler(check.Writer(where), &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true})))
	},
	"JSON log": func(check *canarytest.Checker, where string) labhealth.Option {
		return labhealth.WithLogger(slog.New(slog.NewJSONHandler(check.Writer(where), &slog.HandlerOptions{Level: slog.LevelDebug})).WithGroup("labhealth"))
	},
	"debug": func(check *canarytest.Checker, where string) labhealth.Option {
		return labhealth.WithDebug(check.Writer(where), strings.Repeat("x", 52))
	},
	"observer": func(check *canarytest.Checker, where string) labhealth.Option {
		return observing(func(_ context.Context, attempt labhealth.Attempt) {
			attempt = withoutTimes(attempt)
			check.Value(where, attempt)
			check.JSON(where, attempt)
			check.Printed(where+" Err", attempt.Err)
		})
	},
	"call observer": func(check *canarytest.Checker, where string) labhealth.Option {
		return labhealth.WithCallObserver(labhealth.CallObserver{End: func(_ context.Context, call labhealth.Call) {
			call = withoutTimes(call)
			call.Attempts = slices.Clone(call.Attempts)
			for i, attempt := range call.Attempts {
				call.Attempts[i] = withoutTimes(attempt)
			}
			check.Value(where, call)
			check.JSON(where, call)
		}})
	},
}

// withoutTimes returns a copy of a struct without times and durations, so that equal texts are
// searched once.
func withoutTimes[T any](v T) T {
	fields := reflect.ValueOf(&v).Elem()
	for i := range fields.NumField() {
		switch fields.Field(i).Interface().(type) {
		case time.Time, time.Duration:
			fields.Field(i).SetZero()
		}
	}
	return v
}

// canaryOptions returns the options of a client all of whose outputs are checked.
func canaryOptions(check *canarytest.Checker, where, base string, opts ...labhealth.Option) []labhealth.Option {
	all := []labhealth.Option{
		labhealth.WithBaseURL(base),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1, ReadTimeout: 50 * time.Millisecond, WriteTimeout: 50 * time.Millisecond}),
		labhealth.WithBodyLimit(50_000),
	}
	for name, output := range canaryOutputs {
		all = append(all, output(check, where+", "+name))
	}
	return append(all, opts...)
}

// canaryClient returns a client all of whose outputs are checked.
func canaryClient(t *testing.T, check *canarytest.Checker, where, base string, opts ...labhealth.Option) *labhealth.Client {
	t.Helper()
	client := must[*labhealth.Client](t)(labhealth.NewClient(canaryKey, canaryOptions(check, where, base, opts...)...))
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// canaryCalls send the patient's data in every string of a request.
func canaryCalls(ctx context.Context, client *labhealth.Client, r *labhealth.Response) map[string]func() (any, error) {
	see := labhealth.WithResponse(r)
	note := labhealth.WithHeader("X-Note", canaryNotes)
	return map[string]func() (any, error){
		"Import": func() (any, error) { return client.Orders.Import(ctx, canaryImport(), see, note) },
		"Create": func() (any, error) {
			i := canaryImport()
			return client.Orders.Create(ctx, labhealth.CreateOrderBody{
				UserID: i.UserID, PatientDetails: i.PatientDetails, ClinicalNotes: new(canaryNotes), Passthrough: new(canaryNotes),
			}, see, labhealth.WithoutValidation(), labhealth.WithIdempotencyKey(canarySample))
		},
		"CreateTestkit": func() (any, error) {
			return client.Orders.CreateTestkit(ctx, labhealth.CreateTestkitBody{
				UserID: faultOrderID, LabTestID: faultOrderID, Passthrough: new(canaryNotes), ShippingDetails: labhealth.ShippingAddress{
					ReceiverName: canaryFirst + " " + canaryLast, FirstLine: canaryStreet, City: canaryCity, State: "CA", Zip: canaryZip,
					Country: "US", PhoneNumber: canaryPhone,
				},
			}, see)
		},
		"RegisterTestkit": func() (any, error) { return client.Orders.RegisterTestkit(ctx, canaryRegistration(), see) },
		"ResultsPDF":      func() (any, error) { return client.Orders.ResultsPDF(ctx, faultOrderID, io.Discard, see) },
		"Get": func() (any, error) {
			return client.Orders.Get(ctx, faultOrderID, see, labhealth.WithQuery("name", canaryLast))
		},
		"Release": func() (any, error) {
			return client.Orders.Release(ctx, faultOrderID, see, labhealth.WithQuery("name", canaryLast))
		},
		"List": func() (any, error) {
			return client.Orders.List(ctx, labhealth.ListOrdersParams{PatientName: canaryLast, SearchInput: canaryEmail, ShippingRecipientName: canaryFirst}, see)
		},
		"Resolve": func() (any, error) { return client.Users.Resolve(ctx, canaryUser, see) },
		"Users.Create": func() (any, error) {
			return client.Users.Create(ctx, labhealth.CreateUserBody{ClientUserID: canaryUser, FallbackBirthDate: &labhealth.Date{Year: 1957, Month: time.November, Day: 23}}, see)
		},
		"Refresh": func() (any, error) {
			return client.Users.Refresh(ctx, faultOrderID, labhealth.RefreshUserParams{}, see)
		},
		"ConnectDemo": func() (any, error) {
			return client.Link.ConnectDemo(ctx, labhealth.ConnectDemoBody{UserID: faultOrderID, Provider: labhealth.Provider("oura")}, see)
		},
		"Do GET": func() (any, error) {
			var out struct{ ID []int }
			return nil, client.Do(ctx, "GET", "/v2/any/"+url.PathEscape(canaryUser), nil, &out, see, labhealth.WithQuery("email", canaryEmail))
		},
		"Do PUT": func() (any, error) {
			return nil, client.Do(ctx, "PUT", "/v2/any/"+url.PathEscape(canaryUser), map[string]string{"a": allCanaries}, nil, see)
		},
		"Do DELETE": func() (any, error) {
			return nil, client.Do(ctx, "DELETE", "/v2/any/"+url.PathEscape(canaryUser), nil, nil, see)
		},
	}
}

// managementCanaryCalls send canaries to the management API.
func managementCanaryCalls(ctx context.Context, client *management.Client) map[string]func() error {
	return map[string]func() error{
		"Teams.Create": func() error {
			_, err := client.Teams.Create(ctx, management.CreateTeamBody{Name: canaryLast, Region: labhealth.RegionUS, IntegrationTeamID: new(canaryUser)})
			return err
		},
		"Teams.List": func() error {
			_, err := client.Teams.List(ctx, management.ListTeamsParams{SearchQuery: canaryLast})
			return err
		},
		"Webhooks.RotateSecret": func() error {
			return client.Webhooks.RotateSecret(ctx, faultOrderID, labhealth.TeamEnvironmentSandbox, canaryLast, labhealth.Secret(canaryKey))
		},
	}
}

// foreignErrors are errors of a transport that show canaries in every way that an error can.
var foreignErrors = map[string]error{
	"a text":         errors.New(allCanaries),
	"a URL":          &url.Error{Op: canaryLast, URL: "https://example.com/" + canaryUser, Err: errors.New(allCanaries)},
	"an address":     &net.OpError{Op: "dial", Net: "tcp", Addr: foreignAddr{}, Err: &os.SyscallError{Syscall: canaryLast, Err: syscall.ECONNREFUSED}},
	"a name":         &net.OpError{Op: "dial", Err: &net.DNSError{Err: allCanaries, Name: canaryLast, Server: canaryEmail, IsNotFound: true}},
	"a lookup":       &net.DNSError{Err: allCanaries, Name: canaryLast, Server: canaryEmail},
	"a certificate":  x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{canaryLast}}, Host: canaryFirst},
	"an authority":   &tls.CertificateVerificationError{Err: errors.New(allCanaries)},
	"a record":       tls.RecordHeaderError{Msg: allCanaries},
	"a reset":        fmt.Errorf("%s: %w", allCanaries, syscall.ECONNRESET),
	"an end":         fmt.Errorf("%s: %w", allCanaries, io.ErrUnexpectedEOF),
	"a timeout":      fmt.Errorf("%s: %w", allCanaries, context.DeadlineExceeded),
	"a panic's text": foreignError{Text: allCanaries},
	"several":        errors.Join(errors.New(allCanaries), foreignError{Text: allCanaries}),
}

type foreignAddr struct{}

func (foreignAddr) Network() string { return canaryLast }
func (foreignAddr) String() string  { return allCanaries }

// foreignError shows its text to fmt, log/slog and encoding/json.
type foreignError struct{ Text string }

func (e foreignError) Error() string              { return e.Text }
func (e foreignError) Format(s fmt.State, _ rune) { io.WriteString(s, e.Text) }
func (e foreignError) LogValue() slog.Value       { return slog.StringValue(e.Text) }
func (e foreignError) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"e": e.Text})
}

func TestCanary(t *testing.T) {
	check := canarytest.New(t)
	logged := captureLog(t)
	stderr := captureStderr(t)
	calls := 0
	// The short form makes a third of the calls.
	skip := func(call string) bool { return testing.Short() && crc32.ChecksumIEEE([]byte(call))%3 != 0 }
	run := func(ctx context.Context, t *testing.T, name, base string, opts ...labhealth.Option) {
		client := canaryClient(t, check, name, base, opts...)
		defer client.CloseIdleConnections()
		var r labhealth.Response
		for method, call := range canaryCalls(ctx, client, &r) {
			if skip(name + method) {
				continue
			}
			calls++
			v, err := call()
			check.Error(name+", "+method, err)
			check.Value(name+", "+method+" value", v)
			check.Value(name+", "+method+" response", r)
			check.Value(name+", "+method+" response pointer", &r)
		}
		admin := must[*management.Client](t)(management.NewClient(faultOrderID, canaryKey, canaryOptions(check, name, base, opts...)...))
		defer admin.CloseIdleConnections()
		for method, call := range managementCanaryCalls(ctx, admin) {
			if skip(name + method) {
				continue
			}
			calls++
			check.Error(name+", management "+method, call())
		}
	}
	for name, echo := range echoes {
		srv := startFaults(t, false, -1, func(x exchange) bool { echo(x); return true })
		run(t.Context(), t, name, srv.URL)
		srv.CloseClientConnections()
	}
	synctest.Test(t, func(t *testing.T) {
		l := newMemoryListener()
		srv := startFaultsOn(t, l, false, -1, func(x exchange) bool { x.hang(); return true })
		run(t.Context(), t, "silence", srv.URL, labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}))
	})
	run(t.Context(), t, "connection refused", "http://"+closedAddress(t))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	run(canceled, t, "canceled", testURL)
	for name, cause := range foreignErrors {
		run(t.Context(), t, "transport with "+name, testURL, labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, cause
		})}))
	}
	run(t.Context(), t, "transport that quotes the request", testURL, labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body := []byte{}
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		return nil, fmt.Errorf("cannot send %s to %s with %v", body, r.URL, r.Header)
	})}))
	check.Text("default logger", logged.String())
	check.Text("stderr", stderr())
	if text := logged.String(); text != "" {
		t.Errorf("the default logger was written to: %q", text)
	}
	for _, name := range []string{
		"*labhealth.APIError", "*labhealth.TransportError", "*labhealth.DecodeError", "*labhealth.RedirectError",
		"*labhealth.UserConflictError", "*labhealth.UserRefreshError", "*labhealth.TeamConflictError",
	} {
		if !testing.Short() && !check.SawError(name) {
			t.Errorf("no call had an error of type %s", name)
		}
	}
	t.Logf("%d calls, %d outputs of the client: %v", calls, len(canaryOutputs), check)
}

// Errors have fields from the response, for programs. fmt, log/slog and encoding/json do not show
// them, also in a Call.
func TestCanaryInFieldsOfErrors(t *testing.T) {
	for name, echo := range map[string]func(exchange){
		"*labhealth.RedirectError": func(x exchange) { x.respond(302, "", "Location", "https://"+canaryLast+".example.com/") },
		"*labhealth.UserRefreshError": func(x exchange) {
			x.respond(400, fmt.Sprintf(`{"success":false,"user_id":%q,"failed_sources":[%q]}`, faultOrderID, allCanaries))
		},
	} {
		check := canarytest.New(t)
		srv := startFaults(t, false, -1, func(x exchange) bool { echo(x); return true })
		show := func(where string, v any) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				check.Text(where+" "+verb, fmt.Sprintf(verb, v))
			}
			check.JSON(where, v)
			slog.New(slog.NewJSONHandler(check.Writer(where+" slog JSON"), nil)).Info("message", "value", v)
			slog.New(slog.NewTextHandler(check.Writer(where+" slog text"), nil)).Info("message", "value", v)
		}
		client := faultClient(t, srv.URL, nil, labhealth.WithCallObserver(labhealth.CallObserver{End: func(_ context.Context, call labhealth.Call) {
			show(name+" in a Call", call)
			show(name+" in a list of calls", []labhealth.Call{call})
		}}))
		_, err := client.Users.Refresh(t.Context(), faultOrderID, labhealth.RefreshUserParams{})
		equal(t, name, fmt.Sprintf("%T", err))
		show(name, err)
		show(name+", wrapped", fmt.Errorf("my call: %w", err))
		show(name+", value", reflect.ValueOf(err).Elem().Interface())
	}
}

// captureStderr returns what is written to os.Stderr until it is called.
func captureStderr(t *testing.T) func() string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = write
	var out bytes.Buffer
	done := make(chan bool)
	go func() {
		defer close(done)
		io.Copy(&out, read)
	}()
	return func() string {
		os.Stderr = before
		write.Close()
		<-done
		read.Close()
		return out.String()
	}
}

// Calls that are invalid and not sent.
func TestCanaryInValidationErrors(t *testing.T) {
	check := canarytest.New(t)
	client := canaryClient(t, check, "invalid", "http://localhost:1")
	ctx := t.Context()
	long := strings.Repeat(canaryLast, 10)
	body := canaryImport()
	body.PatientDetails.FirstName, body.PatientDetails.Email, body.PatientDetails.PhoneNumber = long, long, canaryLast
	body.PatientAddress.AccessNotes = new(strings.Repeat(canaryNotes, 100))
	body.SampleID = canarySample + "\xff"
	body.BillingType = labhealth.Billing(canaryLast)
	check.Error("Validate", body.Validate())
	registration := canaryRegistration()
	registration.PatientAddress.Zip, registration.HealthInsurance.ResponsibleDetails.Address.AccessNotes = canaryStreet, body.PatientAddress.AccessNotes
	check.Error("Validate", registration.Validate())
	for name, call := range map[string]func() error{
		"Register":     func() error { _, err := client.Orders.RegisterTestkit(ctx, registration); return err },
		"Import":       func() error { _, err := client.Orders.Import(ctx, body); return err },
		"Import bytes": func() error { _, err := client.Orders.Import(ctx, body, labhealth.WithoutValidation()); return err },
		"Resolve":      func() error { _, err := client.Users.Resolve(ctx, canaryUser+"\n"); return err },
		"header name": func() error {
			_, err := client.Orders.Get(ctx, faultOrderID, labhealth.WithHeader("A "+canaryLast, "x"))
			return err
		},
		"header value": func() error {
			_, err := client.Orders.Get(ctx, faultOrderID, labhealth.WithHeader("A", canaryLast+"\n"))
			return err
		},
		"key": func() error {
			_, err := client.Orders.Get(ctx, faultOrderID, labhealth.WithIdempotencyKey(canarySample))
			return err
		},
		"bad key": func() error {
			_, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{}, labhealth.WithoutValidation(), labhealth.WithIdempotencyKey(canaryNotes))
			return err
		},
		"Do method":  func() error { return client.Do(ctx, canaryLast, "/", nil, nil) },
		"Do path":    func() error { return client.Do(ctx, "GET", "/"+canaryNotes, nil, nil) },
		"Do query":   func() error { return client.Do(ctx, "GET", "/a?name="+canaryLast, nil, nil) },
		"Do segment": func() error { return client.Do(ctx, "GET", "/../"+canaryLast, nil, nil) },
		"Do escape":  func() error { return client.Do(ctx, "GET", "/%zz"+canaryLast, nil, nil) },
		"Do bytes":   func() error { return client.Do(ctx, "POST", "/a", []byte(`{"a":`+canaryLast+`}`), nil) },
		"Do value":   func() error { return client.Do(ctx, "POST", "/a", unmarshalable{}, nil) },
		"NewClient key": func() error {
			_, err := labhealth.NewClient(canaryKey+"\n", labhealth.WithBaseURL(testURL))
			return err
		},
		"NewClient URL": func() error {
			_, err := labhealth.NewClient(canaryKey, labhealth.WithBaseURL("https://ada:"+canaryLast+"@example.com"))
			return err
		},
		"NewClient bad": func() error {
			_, err := labhealth.NewClient(canaryKey, labhealth.WithBaseURL("https://exa mple/"+canaryLast))
			return err
		},
	} {
		err := call()
		if err == nil || labhealth.OutcomeOf(err) == applied {
			t.Errorf("%s: %v", name, err)
		}
		check.Error(name, err)
	}
	t.Log(check)
}

type unmarshalable struct{}

func (unmarshalable) MarshalJSON() ([]byte, error) { return nil, errors.New(allCanaries) }

// The values themselves, the client and its services.
func TestCanaryInValues(t *testing.T) {
	check := canarytest.New(t)
	var order labhealth.Order
	mustDecode(t, canaryOrder, &order)
	var page labhealth.OrderPage
	mustDecode(t, `{"orders":[`+canaryOrder+`],"total":1,"page":1,"size":50}`, &page)
	var placed labhealth.PostOrderResponse
	mustDecode(t, `{"order":`+canaryOrder+`,"status":"success","message":"`+canaryNotes+`"}`, &placed)
	var users labhealth.UserPage
	mustDecode(t, fmt.Sprintf(`{"users":[{"user_id":%q,"team_id":%[1]q,"client_user_id":%q,"created_on":"2025-01-01T00:00:00Z","connected_sources":[],
		"fallback_birth_date":{"value":%q,"source_slug":"oura","updated_at":"2025-01-01T00:00:00Z"},"fallback_time_zone":null}],"total":1,"offset":0,"limit":100}`,
		faultOrderID, canaryUser, canaryDOB), &users)
	body := canaryImport()
	client := canaryClient(t, check, "values", testURL)
	shipment := order.Details.Data.(*labhealth.TestkitOrder).Shipment
	create := labhealth.CreateOrderBody{
		PatientDetails: body.PatientDetails, ClinicalNotes: new(canaryNotes), Passthrough: new(canaryNotes),
		PatientAddress: labhealth.PatientAddressWithValidation{FirstLine: canaryStreet, City: canaryCity, Zip: canaryZip},
		AoEAnswers:     []labhealth.AoEAnswer{{Answer: canaryNotes}},
	}
	for name, v := range map[string]any{
		"client": client, "client value": *client, "Orders": client.Orders, "Users": client.Users, "Orders value": *client.Orders,
		"Order": order, "*Order": &order, "[]Order": []labhealth.Order{order}, "OrderPage": page, "*OrderPage": &page,
		"PostOrderResponse": placed, "*PostOrderResponse": &placed, "UserPage": users, "User": users.Users[0], "*User": &users.Users[0],
		"[]User": users.Users, "FallbackBirthDate": users.Users[0].FallbackBirthDate,
		"OrderPatientDetails": order.PatientDetails, "OrderPatientAddress": *order.PatientAddress, "ShippingAddress": order.ShippingDetails,
		"OrderPhysician": order.Physician, "OrderDetails": order.Details, "Shipment": shipment, "TestkitOrder": order.Details.Data,
		"ImportOrderBody": body, "*ImportOrderBody": &body, "PatientDetails": body.PatientDetails, "PatientAddress": body.PatientAddress,
		"GuarantorDetails": body.PatientDetails.MedicalProxy, "Address": body.PatientDetails.MedicalProxy.Address,
		"PhysicianCreateRequest": body.Physician, "CreateOrderBody": create, "AoEAnswer": create.AoEAnswers[0],
		"PatientAddressWithValidation": create.PatientAddress,
		"CreateUserBody":               labhealth.CreateUserBody{ClientUserID: canaryUser},
		"ListOrdersParams":             labhealth.ListOrdersParams{PatientName: canaryLast, SearchInput: canaryEmail},
		"Response":                     labhealth.Response{Body: []byte(allCanaries), Header: http.Header{"X-Note": {allCanaries}}},
		"SignatureImage":               labhealth.SignatureImage{Content: canaryNotes},
		"FieldError":                   labhealth.FieldError{Loc: []string{"body", canaryEmail}, Msg: allCanaries, Type: canaryNotes},
		"LabTest":                      order.LabTest, "OrderEvent": order.LastEvent, "[]OrderEvent": order.Events, "RawObject": order.RawObject,
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			check.Text(name+" "+verb, fmt.Sprintf(verb, v))
			check.Text(name+" in a slice "+verb, fmt.Sprintf(verb, []any{v, &v}))
			check.Text(name+" in a map "+verb, fmt.Sprintf(verb, map[string]any{"v": v}))
			check.Text(name+" in a field "+verb, fmt.Sprintf(verb, struct{ V any }{v}))
		}
		if name == "[]Order" || name == "[]User" || name == "client value" || name == "Orders value" || name == "RawObject" || name == "FieldError" || name == "[]OrderEvent" {
			continue // slog's JSON handler encodes what is in a slice, as the documentation says
		}
		check.Value(name, v)
	}
	t.Log(check)
}

// A program that panics with what it has at hand prints none of it.
func TestCanaryInPanics(t *testing.T) {
	const variable = "LABHEALTH_TEST_PANIC"
	check := canarytest.New(t)
	kinds := map[string]func(client *labhealth.Client, err error){
		"error":        func(_ *labhealth.Client, err error) { panic(err) },
		"wrapped":      func(_ *labhealth.Client, err error) { panic(fmt.Errorf("import: %w", err)) },
		"printed":      func(c *labhealth.Client, err error) { panic(fmt.Sprintf("%+v %#v %#v", err, err, c)) },
		"client":       func(c *labhealth.Client, _ error) { panic(c) },
		"client value": func(c *labhealth.Client, _ error) { panic(*c) },
		"body":         func(*labhealth.Client, error) { panic(canaryImport()) },
		"nil order":    func(*labhealth.Client, error) { (*labhealth.Order)(nil).HasResults() },
		"in a hook":    nil,
	}
	if kind := os.Getenv(variable); kind != "" {
		client, err := labhealth.NewClient(canaryKey, labhealth.WithBaseURL("http://localhost"),
			observing(func(context.Context, labhealth.Attempt) {
				if kind == "in a hook" {
					panic("hook")
				}
			}),
			labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				return responseTo(r, 422, fmt.Sprintf(`{"detail":[{"type":"missing","loc":["body"],"msg":%q}]}`, allCanaries)), nil
			})}))
		if err != nil {
			os.Exit(3)
		}
		_, err = client.Orders.Import(context.Background(), canaryImport())
		kinds[kind](client, err)
		os.Exit(0) // not reached: without a panic, each process would start another one
	}
	for kind := range kinds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCanaryInPanics$")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GOCOVERDIR=") }), variable+"="+kind, "GOTRACEBACK=all")
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("panic")) {
			t.Errorf("%s: no panic: %v, %s", kind, err, out)
		}
		check.Text("panic with "+kind, string(out))
	}
	t.Log(check)
}

// The search finds each form of a canary.
func TestCanaryForms(t *testing.T) {
	for name, text := range map[string]string{
		"raw": canaryEmail, "hex": fmt.Sprintf("%x", "a"+canaryEmail), "HEX": fmt.Sprintf("%X", canaryEmail), "spaced": fmt.Sprintf("% x", "a"+canaryEmail),
		"bytes": fmt.Sprint([]byte("a" + canaryEmail)), "base64": base64.StdEncoding.EncodeToString([]byte("ab" + canaryEmail + "c")),
		"base64 alone": base64.URLEncoding.EncodeToString([]byte(canaryEmail)), "base64 after one": base64.StdEncoding.EncodeToString([]byte("a" + canaryEmail)),
		"query": url.QueryEscape("a b" + canaryEmail), "path": url.PathEscape("a/" + canaryEmail), "%#v": fmt.Sprintf("%#v", []byte(canaryEmail)),
	} {
		found := false
		for _, form := range canarytest.Forms(canaryEmail) {
			found = found || strings.Contains(text, form)
		}
		if !found {
			t.Errorf("%s: not found in %q", name, text)
		}
	}
}
