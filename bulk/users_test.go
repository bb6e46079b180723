package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// usersService is a proxy in front of an embedded service. It counts requests, with a latency.
type usersService struct {
	*labhealthtest.Server
	client  *labhealth.Client
	latency time.Duration
	mu      sync.Mutex
	count   map[string]int // by method and path, without IDs
	active  atomic.Int64
	most    int64 // active at the same time
}

func newUsersService(t *testing.T, latency time.Duration) *usersService {
	t.Helper()
	s := &usersService{Server: labhealthtest.NewServer(t), latency: latency, count: map[string]int{}}
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := s.active.Add(1)
		defer s.active.Add(-1)
		path := r.URL.Path
		if rest, ok := strings.CutPrefix(path, "/v2/user/resolve/"); ok {
			path = strings.TrimSuffix(path, rest)
		}
		if len(path) == len("/v2/user/")+36 {
			path = "/v2/user/{user_id}"
		}
		s.mu.Lock()
		s.count[r.Method+" "+path]++
		s.most = max(s.most, now)
		s.mu.Unlock()
		time.Sleep(s.latency)
		proxy.ServeHTTP(w, r)
	}))
	s.client, err = labhealth.NewClient(s.APIKey, labhealth.WithBaseURL(front.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	return s
}

// clientIDs returns the client user IDs of all users of the service.
func clientIDs(t *testing.T, client *labhealth.Client) (list []string) {
	t.Helper()
	for u, err := range client.Users.All(t.Context(), labhealth.ListUsersParams{Limit: 500}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, u.ClientUserID)
	}
	slices.Sort(list)
	return list
}

// userRow is a valid row without a user ID.
const (
	userHeader = "sample_id,client_user_id,patient_details.first_name,patient_details.last_name,patient_details.dob,patient_details.gender," +
		"patient_details.phone_number,patient_details.email,patient_address.receiver_name,patient_address.first_line,patient_address.city," +
		"patient_address.state,patient_address.zip\n"
	userRow = "%s,%s,Ada,Example,1985-12-10,female,+14155550123,%s,Ada Example,1 Example Street,Monterey,CA,93940\n"
)

func usersCSV(rows []string, users *bulk.Users, test uuid.UUID) bulk.Source {
	return bulk.CSV(strings.NewReader(userHeader+strings.Join(rows, "")), bulk.CSVOptions{Users: users, Defaults: labhealth.ImportOrderBody{
		BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodWalkInTest,
		OrderSet:       labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{test}},
		PatientAddress: labhealth.PatientAddress{Country: "US"},
	}})
}

// Each user is created once, and not for an invalid row or in a dry run.
func TestUsers(t *testing.T) {
	s := newUsersService(t, 0)
	ada := s.AddUser("ada")
	var rows []string
	for i, user := range []string{"ada", "bo", "cy", "bo", "invalid", "", "ada", "dee"} {
		email := "ada@example.com"
		if user == "invalid" {
			email = "none"
		}
		rows = append(rows, fmt.Sprintf(userRow, fmt.Sprint("S-", i), user, email))
	}
	wantRejections := map[int]string{
		6: "patient_details.email: must be an email address: one @ and no spaces",
		7: "client_user_id: is required: the row has neither a user ID nor a client user ID",
	}

	for _, client := range []*labhealth.Client{s.client, nil} {
		var rejections bytes.Buffer
		opts := bulk.Options{DryRun: true, Rejections: &rejections}
		report, err := bulk.Run(t.Context(), nil, usersCSV(rows, bulk.NewUsers(t.Context(), client, opts), s.LabTests.WalkIn), nil, opts)
		if err != nil || report.Pending != 6 || report.Invalid != 2 {
			t.Errorf("dry run: %v %v", report, err)
		}
		checkEqual(t, "rejections", readReasons(t, rejections.Bytes(), nil), wantRejections)
	}
	checkEqual(t, "users after the dry run", clientIDs(t, s.client), []string{"ada"})

	var rejections bytes.Buffer
	opts := bulk.Options{Rejections: &rejections}
	users := bulk.NewUsers(t.Context(), s.client, opts)
	report, err := bulk.Run(t.Context(), s.client, usersCSV(rows, users, s.LabTests.WalkIn), new(bulk.Memory), opts)
	if err != nil || report.Applied != 6 || report.Invalid != 2 {
		t.Errorf("%v %v", report, err)
	}
	checkEqual(t, "rejections", readReasons(t, rejections.Bytes(), nil), wantRejections)
	checkEqual(t, "users", clientIDs(t, s.client), []string{"ada", "bo", "cy", "dee"})
	if id, err := users.ID(labhealth.CreateUserBody{ClientUserID: "ada"}); err != nil || id != ada {
		t.Error(id, err)
	}
	checkEqual(t, "creations", s.count["POST /v2/user"], 3)
	if printed := fmt.Sprintf("%v %+v %#v", users, *users, []any{users}); strings.Contains(printed, "ada") || strings.Contains(printed, s.APIKey) {
		t.Error(printed)
	}
}

// Placeholders of a dry run are not sent.
func TestUsersOfADryRun(t *testing.T) {
	s := newUsersService(t, 0)
	users := bulk.NewUsers(t.Context(), s.client, bulk.Options{DryRun: true})
	source := usersCSV([]string{fmt.Sprintf(userRow, "S-1", "ada", "ada@example.com")}, users, s.LabTests.WalkIn)
	_, err := bulk.Run(t.Context(), s.client, source, new(bulk.Memory), bulk.Options{})
	checkEqual(t, "error", fmt.Sprint(err), "bulk: the source has users that do not exist: its Users has options with DryRun, and Run has not")
	checkEqual(t, "imports", s.count["POST /v3/order/import"], 0)

	source = usersCSV([]string{fmt.Sprintf(userRow, "S-1", "ada", "ada@example.com")}, bulk.NewUsers(t.Context(), s.client, bulk.Options{}), s.LabTests.WalkIn)
	_, err = bulk.Run(t.Context(), s.client, source, nil, bulk.Options{DryRun: true})
	checkEqual(t, "error", fmt.Sprint(err), "bulk: the source creates users: Run has options with DryRun, and its Users has not")
}

// Many existing users are found by listing them, and new ones are created concurrently.
func TestManyUsers(t *testing.T) {
	s := newUsersService(t, 20*time.Millisecond)
	for i := range 1200 {
		s.AddUser(fmt.Sprint("old-", i))
	}
	var rows []string
	for i := range 1300 { // the last 100 are new
		rows = append(rows, fmt.Sprintf(userRow, fmt.Sprint("S-", i), strings.Replace(fmt.Sprint("old-", i), "old-12", "new-12", i/1200), "ada@example.com"))
	}
	users := bulk.NewUsers(t.Context(), s.client, bulk.Options{Concurrency: 10})
	source := usersCSV(rows, users, s.LabTests.WalkIn)
	start, seen := time.Now(), map[uuid.UUID]bool{}
	for range 2 {
		for record, err := range source {
			if err != nil {
				t.Fatal(err)
			}
			seen[record.Body.UserID] = true
		}
	}
	t.Logf("1300 users in %v: %v", time.Since(start), s.count)
	if s.count["POST /v2/user"] > 110 || s.count["GET /v2/user/"] > 5 || s.most < 5 || s.most > 10 {
		t.Errorf("%v, %d at the same time", s.count, s.most)
	}
	if len(seen) != 1300 || len(clientIDs(t, s.client)) != 1300 {
		t.Errorf("%d users, %d at the service", len(seen), len(clientIDs(t, s.client)))
	}
}

// A few users of a large team are looked up one by one.
func TestFewUsers(t *testing.T) {
	s := newUsersService(t, 0)
	for i := range 2600 {
		s.AddUser(fmt.Sprint("old-", i))
	}
	users := bulk.NewUsers(t.Context(), s.client, bulk.Options{})
	for _, id := range []string{"old-0", "old-2500", "new", "new", "old-2500"} {
		if _, err := users.ID(labhealth.CreateUserBody{ClientUserID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if s.count["GET /v2/user/"] != 1 || s.count["POST /v2/user"] > 3 {
		t.Error(s.count)
	}
	dry := bulk.NewUsers(t.Context(), s.client, bulk.Options{DryRun: true})
	for i := range 20 { // reads the whole list, then needs no requests
		one, err1 := dry.ID(labhealth.CreateUserBody{ClientUserID: fmt.Sprint("none-", i)})
		two, err2 := dry.ID(labhealth.CreateUserBody{ClientUserID: fmt.Sprint("none-", i)})
		if err1 != nil || err2 != nil || one != two || one == uuid.Nil {
			t.Error(one, two, err1, err2)
		}
	}
	if s.count["GET /v2/user/resolve/"] > 6 || s.count["POST /v2/user"] > 3 {
		t.Error(s.count)
	}
}

// Failures of the users endpoints: what is temporary is retried and then stops the run, which can
// be resumed; a user who is invalid makes the record invalid.
func TestUserFailures(t *testing.T) {
	const create = "POST /v2/user"
	quota := `{"detail":{"error_type":"INVALID_REQUEST","error_message":"You have reached the maximum of 50 users"}}`
	for name, test := range map[string]struct {
		fault     labhealthtest.Fault
		after     bool
		times     int
		wantErr   string
		applied   int64
		wantUsers int
	}{
		"connections are lost":       {labhealthtest.FaultClosed, true, 2, "", 2, 2},
		"connections are lost early": {labhealthtest.FaultClosed, false, 1, "", 2, 2},
		"a quota":                    {labhealthtest.FaultResponse(400, quota), false, 1, "line 2: bulk: a user could not be found or created: labhealth: POST /v2/user: 400 Bad Request", 0, -1},
		"a key":                      {labhealthtest.FaultResponse(401, `{}`), false, 1, "line 2: bulk: a user could not be found or created: labhealth: POST /v2/user: 401 Unauthorized", 0, -1},
		"a proxy":                    {labhealthtest.FaultResponse(422, "<html>Blocked</html>"), false, 1, "line 2: bulk: a user could not be found or created: labhealth: POST /v2/user: 422 Unprocessable Entity", 0, -1},
		"an invalid ID":              {labhealthtest.FaultResponse(422, `{"detail":[{"loc":["body","client_user_id"],"msg":"m","type":"value_error"}]}`), false, 1, "", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newUsersService(t, 0)
			fail := s.FailBefore
			if test.after {
				fail = s.FailAfter
			}
			if err := fail(create, test.times, test.fault); err != nil {
				t.Fatal(err)
			}
			rows := []string{fmt.Sprintf(userRow, "S-1", "ada", "ada@example.com"), fmt.Sprintf(userRow, "S-2", "bo", "ada@example.com")}
			var rejections bytes.Buffer
			opts := bulk.Options{Rejections: &rejections, Concurrency: 1, Timeout: time.Second, Settle: 1100 * time.Millisecond}
			users := bulk.NewUsers(t.Context(), s.client, opts)
			journal := new(bulk.Memory)
			report, err := bulk.Run(t.Context(), s.client, usersCSV(rows, users, s.LabTests.WalkIn), journal, opts)
			switch {
			case test.wantErr == "" && err != nil, test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
				t.Errorf("error %v, want %q", err, test.wantErr)
			case report.Applied != test.applied:
				t.Errorf("%v", report)
			case test.wantErr != "": // resumed, also with the same Users
				if report, err := bulk.Run(t.Context(), s.client, usersCSV(rows, users, s.LabTests.WalkIn), journal, opts); err != nil || report.Applied != 2 {
					t.Errorf("resumed: %v %v", report, err)
				}
			case len(clientIDs(t, s.client)) != test.wantUsers:
				t.Errorf("users: %q", clientIDs(t, s.client))
			}
			if test.applied == 1 {
				checkEqual(t, "rejections", readReasons(t, rejections.Bytes(), nil), map[int]string{
					2: "client_user_id: cannot be found: the service finds the client user ID invalid",
				})
			}
		})
	}
}

// When its context ends, a source stops within a request, and leaves no goroutine.
func TestUsersCanceled(t *testing.T) {
	s := newUsersService(t, 50*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	users := bulk.NewUsers(ctx, s.client, bulk.Options{})
	var rows []string
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(userRow, fmt.Sprint("S-", i), fmt.Sprint("u-", i), "ada@example.com"))
	}
	n, last := 0, error(nil)
	for _, err := range usersCSV(rows, users, s.LabTests.WalkIn) {
		if n, last = n+1, err; n == 5 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) || n > 12 {
		t.Errorf("%d records, %v", n, last)
	}
	if _, err := new(bulk.Users).ID(labhealth.CreateUserBody{ClientUserID: "ada"}); err == nil {
		t.Error("a Users without a client found a user")
	}
}

// A row function can create users itself, with other fields.
func TestUsersInARowFunction(t *testing.T) {
	s := newUsersService(t, 0)
	users := bulk.NewUsers(t.Context(), s.client, bulk.Options{})
	opts := bulk.CSVOptions{Rename: map[string]string{"Clinic": "-", "No": "-"}, Row: func(row bulk.Row, body *labhealth.ImportOrderBody) (err error) {
		if row.Get("No") == "" {
			return fmt.Errorf("no number: %w", func() error { _, err := users.ID(labhealth.CreateUserBody{}); return err }())
		}
		body.UserID, err = users.ID(labhealth.CreateUserBody{ClientUserID: row.Get("Clinic") + "/" + row.Get("No"), FallbackTimeZone: new("Europe/London")})
		return err
	}}
	list, errs := read(t, bulk.CSV(strings.NewReader("sample_id,Clinic,No\nS-1,A,1\nS-2,A,2\nS-3,A,1\nS-4,A,\n"), opts))
	if len(list) != 3 || list[0].UserID != list[2].UserID || list[0].UserID == list[1].UserID {
		t.Errorf("%d records", len(list))
	}
	checkEqual(t, "errors", errs, []string{"bulk: a record cannot be read, line 5: body.user_id is required: the client user ID is empty"})
	checkEqual(t, "users", clientIDs(t, s.client), []string{"A/1", "A/2"})
}
