package sqlstore_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// faulty is a service whose responses the tests replace, in fake time.
type faulty struct {
	*truth
	d     database
	store *sqlstore.Store
	// respond returns a response in place of the service's, or nil. Every request calls it.
	respond func(r *http.Request) *http.Response
	found   map[string]sqlstore.Reconciled // by pass
	errs    map[string]int                 // steps that failed, by pass
}

// RoundTrip implements http.RoundTripper.
func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.respond != nil {
		if resp := f.respond(r); resp != nil && resp.StatusCode == 0 {
			return nil, io.ErrUnexpectedEOF
		} else if resp != nil {
			return resp, nil
		}
	}
	return f.truth.RoundTrip(r)
}

// lost takes the place of a response if the connection is lost.
var lost = new(http.Response)

func failure(r *http.Request, code int) *http.Response {
	return response(r, code, fmt.Appendf(nil, `{"detail":"status %d"}`, code))
}

func htmlPage(r *http.Request, code int) *http.Response {
	resp := response(r, code, []byte("<html><body>Not Found</body></html>"))
	resp.Header.Set("Content-Type", "text/html")
	return resp
}

// inFakeTime runs a test with SQLite and a service without a network.
func inFakeTime(t *testing.T, f func(t *testing.T, s *faulty)) {
	t.Helper()
	srv := labhealthtest.NewServer(t, labhealthtest.WithClock(time.Now)) // its goroutines are not in the bubble
	d := sqliteFile(t)
	synctest.Test(t, func(t *testing.T) {
		s := &faulty{
			truth: &truth{Server: srv, direct: srv.Direct(), hidden: map[uuid.UUID]bool{}, notFound: http.StatusNotFound}, d: d, store: d.store(t),
			found: map[string]sqlstore.Reconciled{}, errs: map[string]int{},
		}
		client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithHTTPClient(&http.Client{Transport: s}),
			labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2}))
		if err != nil {
			t.Fatal(err)
		}
		s.client = client
		f(t, s)
	})
}

// run runs a Reconciler for a time, and adds up what it has found.
func (f *faulty) run(t *testing.T, r *sqlstore.Reconciler, limit time.Duration) {
	t.Helper()
	r.Store, r.Client = f.store, f.client
	r.Observe = func(_ context.Context, found sqlstore.Reconciled, err error) {
		f.set(func() {
			sum := f.found[found.Pass]
			sum.Failed += found.Failed
			sum.MissingOrders += found.MissingOrders
			sum.MissingUsers += found.MissingUsers
			sum.Requests += found.Requests
			sum.Complete = sum.Complete || found.Complete
			f.found[found.Pass] = sum
			if err != nil {
				f.errs[found.Pass]++
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := r.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// completeOrders adds orders of a user that have results.
func (f *faulty) completeOrders(t *testing.T, user uuid.UUID, n int) (ids []uuid.UUID) {
	t.Helper()
	for range n {
		id, err := f.AddOrder(user, f.LabTests.WalkIn)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			time.Sleep(time.Millisecond)
			_, err = f.Advance(id)
		}
		ids = append(ids, id)
	}
	return ids
}

// hasResults returns how many of the orders have stored results.
func (f *faulty) hasResults(t *testing.T, ids []uuid.UUID) (n int) {
	t.Helper()
	for _, id := range ids {
		_, ok, err := f.store.OrderResults(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			n++
		}
	}
	return n
}

func mentionsAny(r *http.Request, ids []uuid.UUID) bool {
	return slices.ContainsFunc(ids, func(id uuid.UUID) bool { return strings.Contains(r.URL.Path, id.String()) })
}

// Four orders whose results cannot be read do not delay those of sixty others, and are read within
// minutes when they can be.
func TestReconcileFailingResults(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		ids := s.completeOrders(t, s.AddUsers(1)[0], 64)
		failing, good := []uuid.UUID{ids[0], ids[20], ids[21], ids[63]}, []uuid.UUID{}
		for _, id := range ids {
			if !slices.Contains(failing, id) {
				good = append(good, id)
			}
		}
		s.respond = func(r *http.Request) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/result") && mentionsAny(r, failing) {
				return failure(r, http.StatusGatewayTimeout)
			}
			return nil
		}
		s.run(t, &sqlstore.Reconciler{OrdersOnly: true, Rate: 100}, 10*time.Minute)
		if n := s.hasResults(t, good); n != 60 || s.found["results"].Failed < 8 || s.found["results"].Failed > 80 || len(s.errs) != 0 {
			t.Errorf("%d of 60 good orders have results; %d failures, %v", n, s.found["results"].Failed, s.errs)
		}
		if n := s.count("v3/order/*/result"); n != 60 { // those that fail are not counted
			t.Errorf("%d requests for the results of 60 orders", n)
		}
		s.respond = nil
		s.run(t, &sqlstore.Reconciler{OrdersOnly: true, Rate: 100}, 5*time.Minute)
		if n := s.hasResults(t, failing); n != 4 {
			t.Errorf("%d of 4 orders have results when they can be read", n)
		}
		s.equal(t, s.store)
	})
}

// Since reads the results of all orders, also if they take several steps.
func TestReconcileManyResults(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		ids := s.completeOrders(t, s.AddUsers(1)[0], 130)
		found, err := (&sqlstore.Reconciler{Store: s.store, Client: s.client, OrdersOnly: true}).Since(t.Context(), time.Time{})
		if n := s.hasResults(t, ids); err != nil || !found.Complete || n != 130 {
			t.Errorf("%d of 130 orders have results, %+v %v", n, found, err)
		}
	})
}

// Stored orders that are not listed and cannot be read do not end the walk, and are read again
// soon.
func TestReconcileFailingOrders(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		ids := s.AddOrders(40)
		r := &sqlstore.Reconciler{OrdersOnly: true, Rate: 100}
		s.run(t, r, time.Minute)
		failing, deleted := []uuid.UUID{ids[3], ids[4]}, ids[30]
		s.hidden[failing[0]], s.hidden[failing[1]], s.hidden[deleted] = true, true, true
		s.respond = func(r *http.Request) *http.Response {
			if mentionsAny(r, failing) {
				return failure(r, http.StatusServiceUnavailable)
			}
			return nil
		}
		r.Walk = time.Minute
		s.found = map[string]sqlstore.Reconciled{}
		s.run(t, r, 10*time.Minute)
		if walk := s.found["walk"]; !walk.Complete || walk.MissingOrders != 1 || walk.Failed < 2 || len(s.errs) != 0 {
			t.Errorf("%+v %v", walk, s.errs)
		}
		for _, id := range []uuid.UUID{deleted, failing[0], failing[1]} {
			order, _, err := s.store.Order(t.Context(), id)
			if err != nil || order.MissingSince.IsZero() == (id == deleted) {
				t.Errorf("%v %v", order.MissingSince, err)
			}
		}
		// They are read again within minutes.
		s.respond, r.Walk = nil, 0
		s.run(t, r, 10*time.Minute)
		if n := count(t, s.d.open(t), "labhealth_orders WHERE missing IS NOT NULL"); n != 3 {
			t.Errorf("%d of 3 orders are missing", n)
		}
	})
}

// Users who cannot be read do not keep others from being compared, in one call.
func TestReconcileFailingUsers(t *testing.T) {
	for _, n := range []int{2, 4, 5} { // the last is all of them
		inFakeTime(t, func(t *testing.T, s *faulty) {
			users := s.AddUsers(5)
			for _, user := range users {
				if err := s.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(time.Now().Add(-time.Hour))); err != nil {
					t.Fatal(err)
				}
			}
			s.respond = func(r *http.Request) *http.Response {
				if mentionsAny(r, users[:n]) {
					return failure(r, http.StatusServiceUnavailable)
				}
				return nil
			}
			r := &sqlstore.Reconciler{Store: s.store, Client: s.client}
			found, err := r.Since(t.Context(), time.Now())
			if err != nil || !found.Complete || found.Failed != n || found.Differences.Samples != 3*(5-n) {
				t.Errorf("%+v %v", found, err)
			}
			s.run(t, &sqlstore.Reconciler{Rate: 100}, 10*time.Minute)
			if users := s.found["users"]; !users.Complete || users.Failed < 2*n || users.Failed > 10*n || len(s.errs) != 0 {
				t.Errorf("%+v %v", users, s.errs)
			}
			s.respond = nil
			s.run(t, &sqlstore.Reconciler{Rate: 100}, 6*time.Minute)
			if stored := count(t, s.d.open(t), "labhealth_samples"); stored != 15 {
				t.Errorf("%d samples", stored)
			}
		})
	}
}

// One list of a user that cannot be read delays neither the other lists nor other users.
func TestReconcileFailingSamples(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		users := s.AddUsers(3)
		for _, user := range users {
			for _, resource := range []string{"afib_burden", "glucose", "water"} {
				if err := s.AddSamples(user, resource, 3, labhealthtest.StartingAt(time.Now().Add(-time.Hour))); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.respond = func(r *http.Request) *http.Response {
			if mentionsAny(r, users[:1]) && strings.Contains(r.URL.Path, "glucose") {
				return failure(r, http.StatusInternalServerError)
			}
			return nil
		}
		s.run(t, &sqlstore.Reconciler{Rate: 100}, 10*time.Minute)
		if stored := count(t, s.d.open(t), "labhealth_samples"); stored != 24 || s.found["users"].Failed < 2 || !s.found["users"].Complete || len(s.errs) != 0 {
			t.Errorf("%d samples, %+v, %v", stored, s.found["users"], s.errs)
		}
		s.respond = nil
		s.run(t, &sqlstore.Reconciler{Rate: 100}, 6*time.Minute)
		if stored := count(t, s.d.open(t), "labhealth_samples"); stored != 27 {
			t.Errorf("%d samples", stored)
		}
	})
}

// A page of a list that cannot be read is passed, and everything else is stored.
func TestReconcileFailingPages(t *testing.T) {
	for name, fails := range map[string]func(query url.Values, body string, first, second uuid.UUID) bool{
		"two orders": func(_ url.Values, body string, first, second uuid.UUID) bool {
			return strings.Contains(body, first.String()) || strings.Contains(body, second.String())
		},
		"a start": func(query url.Values, body string, _, second uuid.UUID) bool {
			return query.Get("start_date") != "" && strings.Contains(body, second.String()) && query.Get("size") == "100"
		},
	} {
		inFakeTime(t, func(t *testing.T, s *faulty) {
			ids := []uuid.UUID{}
			for range 350 {
				time.Sleep(time.Second)
				ids = append(ids, s.AddOrders(1)...)
			}
			bad := []uuid.UUID{ids[0], ids[150], ids[151], ids[349]}
			heal := false
			s.respond = func(r *http.Request) *http.Response {
				if heal || r.URL.Path != "/orders" || r.URL.Query().Get("start_date") == "" && r.URL.Query().Get("updated_start_date") == "" && r.URL.Query().Get("order_key") == "" {
					return nil
				}
				resp, err := s.truth.RoundTrip(r)
				if err != nil {
					return lost
				}
				body, _ := io.ReadAll(resp.Body)
				for i := 0; i < len(bad); i += 2 {
					if fails(r.URL.Query(), string(body), bad[i], bad[i+1]) {
						return failure(r, http.StatusGatewayTimeout)
					}
				}
				return response(r, resp.StatusCode, body)
			}
			s.run(t, &sqlstore.Reconciler{OrdersOnly: true, Rate: 100}, 10*time.Minute)
			stored := count(t, s.d.open(t), "labhealth_orders")
			if walk := s.found["walk"]; stored < 346 || !walk.Complete || len(s.errs) != 0 || (walk.Failed < 2) != (name == "a start") || walk.Requests > 2000 {
				t.Errorf("%s: %d orders, %+v %v", name, stored, walk, s.errs)
			}
			heal = true
			s.run(t, &sqlstore.Reconciler{OrdersOnly: true, Rate: 100}, 10*time.Minute)
			if stored := count(t, s.d.open(t), "labhealth_orders"); stored != 350 {
				t.Errorf("%s: %d orders when they can be read", name, stored)
			}
		})
	}
}

// A page of the list of users that cannot be read is passed.
func TestReconcileFailingUserPage(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		users := s.AddUsers(20)
		for _, user := range users {
			if err := s.AddSamples(user, "glucose", 1, labhealthtest.StartingAt(time.Now().Add(-time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		s.respond = func(r *http.Request) *http.Response {
			if strings.Trim(r.URL.Path, "/") != "v2/user" {
				return nil
			}
			resp, err := s.truth.RoundTrip(r)
			if err != nil {
				return lost
			}
			body, _ := io.ReadAll(resp.Body)
			if strings.Contains(string(body), users[7].String()) {
				return failure(r, http.StatusGatewayTimeout)
			}
			return response(r, resp.StatusCode, body)
		}
		s.run(t, &sqlstore.Reconciler{Rate: 100}, 10*time.Minute)
		if n := count(t, s.d.open(t), "labhealth_samples"); n != 19 || !s.found["users"].Complete || s.found["users"].Failed == 0 || len(s.errs) != 0 {
			t.Errorf("%d samples, %+v %v", n, s.found["users"], s.errs)
		}
		s.respond = nil
		s.run(t, &sqlstore.Reconciler{Rate: 100}, 6*time.Minute)
		if n := count(t, s.d.open(t), "labhealth_samples"); n != 20 {
			t.Errorf("%d samples when it can be read", n)
		}
	})
}

// While the service is not available, nothing is postponed and nothing is missing. Afterwards
// everything is read within a minute.
func TestReconcileUnavailable(t *testing.T) {
	for name, fault := range map[string]func(r *http.Request) *http.Response{
		"503":      func(r *http.Request) *http.Response { return failure(r, http.StatusServiceUnavailable) },
		"500":      func(r *http.Request) *http.Response { return failure(r, http.StatusInternalServerError) },
		"401":      func(r *http.Request) *http.Response { return failure(r, http.StatusUnauthorized) },
		"403":      func(r *http.Request) *http.Response { return failure(r, http.StatusForbidden) },
		"429":      func(r *http.Request) *http.Response { return failure(r, http.StatusTooManyRequests) },
		"lost":     func(*http.Request) *http.Response { return lost },
		"HTML 404": func(r *http.Request) *http.Response { return htmlPage(r, http.StatusNotFound) },
		"HTML 200": func(r *http.Request) *http.Response { return htmlPage(r, http.StatusOK) },
		"HTML 410": func(r *http.Request) *http.Response { return htmlPage(r, http.StatusGone) },
		"no body":  func(r *http.Request) *http.Response { return response(r, http.StatusNotFound, nil) },
		"a gateway": func(r *http.Request) *http.Response {
			return response(r, http.StatusNotFound, []byte(`{"message":"Not Found"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, s *faulty) {
				user := s.AddUsers(1)[0]
				ids := s.completeOrders(t, user, 30)
				time.Sleep(10 * 24 * time.Hour)
				var started atomic.Bool
				s.respond = func(r *http.Request) *http.Response {
					if strings.HasSuffix(r.URL.Path, "/result") {
						started.Store(true)
					}
					if started.Load() {
						return fault(r)
					}
					return nil
				}
				s.run(t, &sqlstore.Reconciler{Rate: 100}, 30*time.Second)
				if s.errs["results"] == 0 || s.found["results"].Failed != 0 || s.found["walk"].MissingOrders+s.found["users"].MissingUsers != 0 {
					t.Errorf("%v %+v", s.errs, s.found)
				}
				s.respond = nil
				s.run(t, &sqlstore.Reconciler{Rate: 100}, time.Minute)
				if n := s.hasResults(t, ids); n != 30 {
					t.Errorf("%d of 30 orders have results", n)
				}
			})
		})
	}
}

// What a proxy says about orders and users is not the service's word, even if lists work.
func TestReconcileProxy(t *testing.T) {
	for name, fault := range map[string]func(r *http.Request) *http.Response{
		"HTML": func(r *http.Request) *http.Response { return htmlPage(r, http.StatusNotFound) },
		"gone": func(r *http.Request) *http.Response { return htmlPage(r, http.StatusGone) },
		"a gateway": func(r *http.Request) *http.Response {
			return response(r, http.StatusNotFound, []byte(`{"message":"Not Found"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, s *faulty) {
				ids := s.completeOrders(t, s.AddUsers(1)[0], 50)
				s.respond = func(r *http.Request) *http.Response {
					if strings.HasSuffix(r.URL.Path, "/result") {
						return fault(r)
					}
					return nil
				}
				s.run(t, &sqlstore.Reconciler{Rate: 100}, time.Minute) // the results are not there, it says
				s.rewrite = func(page map[string]any) {
					for _, name := range []string{"orders", "users"} {
						if page[name] != nil {
							page[name], page["total"] = []any{}, 0
						}
					}
				}
				s.respond = func(r *http.Request) *http.Response {
					if path := strings.Trim(r.URL.Path, "/"); path != "orders" && path != "v2/user" {
						return fault(r)
					}
					return nil
				}
				s.run(t, &sqlstore.Reconciler{Rate: 100, Walk: time.Minute}, 5*time.Minute)
				if s.found["results"].Failed == 0 || s.found["walk"].MissingOrders+s.found["users"].MissingUsers != 0 || s.found["walk"].Failed == 0 {
					t.Errorf("%v %+v", s.errs, s.found)
				}
				db := s.d.open(t)
				if n := count(t, db, "labhealth_orders WHERE missing IS NOT NULL") + count(t, db, "labhealth_reconciled_users WHERE missing IS NOT NULL"); n != 0 {
					t.Errorf("%d are missing", n)
				}
				s.respond, s.rewrite = nil, nil
				s.run(t, &sqlstore.Reconciler{Rate: 100}, 5*time.Minute)
				if n := s.hasResults(t, ids); n != 50 {
					t.Errorf("%d of 50 orders have results", n)
				}
			})
		})
	}
}

// While only the lists are not available, the orders in them are neither passed nor missing.
func TestReconcileNoLists(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		ids := s.AddOrders(250)
		s.run(t, &sqlstore.Reconciler{Rate: 100}, time.Minute)
		s.hidden[ids[7]] = true
		s.respond = func(r *http.Request) *http.Response {
			if path := strings.Trim(r.URL.Path, "/"); path == "orders" || path == "v2/user" {
				return failure(r, http.StatusServiceUnavailable)
			}
			return nil
		}
		s.found = map[string]sqlstore.Reconciled{}
		s.run(t, &sqlstore.Reconciler{Rate: 100, Walk: time.Minute, Interval: time.Minute}, 10*time.Minute)
		for _, pass := range []string{"walk", "users", "changed"} {
			if found := s.found[pass]; found.Complete || found.Failed != 0 || found.MissingOrders != 0 || s.errs[pass] < 3 || s.errs[pass] > 30 {
				t.Errorf("%s: %+v %v", pass, found, s.errs)
			}
		}
		s.respond = nil
		s.run(t, &sqlstore.Reconciler{Rate: 100, Walk: time.Minute}, 2*time.Minute)
		if walk := s.found["walk"]; !walk.Complete || walk.MissingOrders != 1 {
			t.Errorf("%+v", walk)
		}
	})
}

// A service that fails every other request does not keep anything from being read.
func TestReconcileUnreliable(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		users := s.AddUsers(3)
		ids := s.completeOrders(t, users[0], 60)
		for _, user := range users {
			if err := s.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(time.Now().Add(-time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		s.respond = func(r *http.Request) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			if random.IntN(100) < 20 {
				return failure(r, http.StatusServiceUnavailable)
			}
			return nil
		}
		s.run(t, &sqlstore.Reconciler{Rate: 100}, 10*time.Minute)
		if n := s.hasResults(t, ids); n != 60 || s.found["walk"].MissingOrders != 0 {
			t.Errorf("%d of 60 orders have results, %+v", n, s.found)
		}
		if n := count(t, s.d.open(t), "labhealth_samples"); n != 9 {
			t.Errorf("%d samples, %+v", n, s.found)
		}
	})
}

// Lists of users and orders that never end do not keep others from being read.
func TestReconcileEndlessLists(t *testing.T) {
	for name, total := range map[string]any{"no total": nil, "a total": 1_000_000_000} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, s *faulty) {
				users := s.AddUsers(3)
				for _, user := range users {
					if err := s.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(time.Now().Add(-time.Hour))); err != nil {
						t.Fatal(err)
					}
				}
				s.respond = func(r *http.Request) *http.Response {
					switch {
					case strings.Trim(r.URL.Path, "/") == "v2/user":
						offset := r.URL.Query().Get("offset")
						r = r.Clone(r.Context())
						r.URL.RawQuery = ""
						resp, err := s.truth.RoundTrip(r)
						if err != nil {
							return lost
						}
						var page map[string]any
						if json.NewDecoder(resp.Body).Decode(&page) != nil {
							return lost
						}
						page["offset"], page["total"] = json.RawMessage(cmp.Or(offset, "0")), total
						body, _ := json.Marshal(page)
						return response(r, http.StatusOK, body)
					case mentionsAny(r, users[:1]) && strings.Contains(r.URL.Path, "water"):
						return response(r, http.StatusOK, fmt.Appendf(nil, `{"groups":{},"next_cursor":%q}`, uuid.NewString()))
					}
					return nil
				}
				s.run(t, &sqlstore.Reconciler{Rate: 100}, 10*time.Minute)
				pass := s.found["users"]
				if n := count(t, s.d.open(t), "labhealth_samples"); n != 9 || !pass.Complete || pass.Failed == 0 || pass.Requests > 5000 || len(s.errs) != 0 {
					t.Errorf("%d samples, %+v %v", n, pass, s.errs)
				}
			})
		})
	}
	// A list whose pages differ ends after very many.
	inFakeTime(t, func(t *testing.T, s *faulty) {
		s.respond = func(r *http.Request) *http.Response {
			switch strings.Trim(r.URL.Path, "/") {
			case "v2/user":
				return response(r, http.StatusOK, fmt.Appendf(nil, `{"users":[{"user_id":%q}],"total":1000000000,"offset":%s,"limit":1}`, uuid.New(), cmp.Or(r.URL.Query().Get("offset"), "0")))
			case "orders":
				return response(r, http.StatusOK, fmt.Appendf(nil, `{"orders":[{"id":%q,"user_id":%q,"created_at":%q}],"total":1000000000,"page":1,"size":1}`, uuid.New(), uuid.New(), time.Now().Format(time.RFC3339Nano)))
			}
			return response(r, http.StatusNotFound, []byte(`{"detail":"User not found"}`))
		}
		started := time.Now().UTC().Format(time.RFC3339Nano)
		for _, pass := range []string{"walk", "users", "changed"} {
			s.d.exec(t, `INSERT INTO labhealth_reconciled (slot, name, value) VALUES (0, '`+pass+`', '{"started":"`+started+`","pages":99990}')`)
		}
		s.run(t, &sqlstore.Reconciler{Rate: 100}, time.Minute)
		for _, pass := range []string{"walk", "users", "changed"} {
			if found := s.found[pass]; !found.Complete || found.Failed != 1 || s.errs[pass] != 0 {
				t.Errorf("%s: %+v %v", pass, found, s.errs)
			}
		}
	})
}

// Orders that change while no delivery arrives for an hour are a warning. Deliveries end it.
func TestReconcileNoDeliveries(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		w := logTo(t, s.store)
		user := s.AddUsers(1)[0]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for time.Sleep(7 * time.Minute); ctx.Err() == nil; time.Sleep(7 * time.Minute) {
				s.completeOrders(t, user, 1)
			}
		}()
		s.run(t, &sqlstore.Reconciler{OrdersOnly: true}, 50*time.Minute)
		if strings.Contains(w.String(), "no delivery") {
			t.Errorf("warned too early:\n%s", w)
		}
		s.run(t, &sqlstore.Reconciler{OrdersOnly: true}, 80*time.Minute)
		const want = `msg="sqlstore: orders change at the service, but the Store has received no delivery for an hour: check the URL of the endpoint, its event types and the secret" orders=`
		if n := strings.Count(w.String(), want); n < 1 || n > 3 {
			t.Errorf("%d warnings:\n%s", n, w)
		}
		before := len(w.String())
		go func() {
			for ; ctx.Err() == nil; time.Sleep(time.Minute) {
				receive(t, s.store, heartrates(uuid.NewString(), 1, "60"))
			}
		}()
		s.run(t, &sqlstore.Reconciler{OrdersOnly: true}, 100*time.Minute)
		if after := w.String()[before:]; strings.Contains(after, "level=WARN") || !strings.Contains(after, "resolved: sqlstore: orders change") {
			t.Errorf("with deliveries:\n%s", after)
		}
		cancel()
		time.Sleep(10 * time.Minute)
	})
}

// Deliveries that nobody applies are a warning of whoever receives them.
func TestReceiveWithoutWorker(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *faulty) {
		w := logTo(t, s.store)
		for n := range 10 {
			d := heartrates(fmt.Sprint(n), 1, "60")
			d.ReceivedAt = time.Now()
			receive(t, s.store, d)
			time.Sleep(time.Minute)
			if warns := strings.Contains(w.String(), "deliveries wait for more than five minutes to be applied: does a Worker run?"); warns != (n > 5) {
				t.Errorf("after %d minutes: %v\n%s", n, warns, w)
			}
		}
	})
}
