package sqlstore_test

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// truth is a service, and what it tells a client that the tests can bend.
type truth struct {
	*labhealthtest.Server
	client    *labhealth.Client
	transport http.Transport
	direct    http.RoundTripper // in place of transport, unless it is nil

	mu       sync.Mutex
	requests []string                                     // the paths, with a star for IDs
	before   func(n int, path string, q url.Values) error // of the n-th request; may change the query
	hidden   map[uuid.UUID]bool                           // orders and users that the service does not have
	rewrite  func(page map[string]any)                    // changes lists
	notFound int                                          // status of a response for what is hidden
}

func newTruth(t testing.TB, opts ...labhealthtest.Option) *truth {
	t.Helper()
	s := &truth{Server: labhealthtest.NewServer(t, opts...), hidden: map[uuid.UUID]bool{}, notFound: http.StatusNotFound}
	t.Cleanup(s.transport.CloseIdleConnections)
	s.client = s.connect(t, s.APIKey, s.URL)
	return s
}

func (s *truth) connect(t testing.TB, key, url string) *labhealth.Client {
	t.Helper()
	client, err := labhealth.NewClient(key, labhealth.WithBaseURL(url), labhealth.WithHTTPClient(&http.Client{Transport: s}),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// RoundTrip implements http.RoundTripper.
func (s *truth) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	isHidden := false
	for i, part := range parts {
		if id, err := uuid.Parse(part); err == nil {
			isHidden, parts[i] = isHidden || s.hidden[id], "*"
		}
	}
	path := strings.Join(parts, "/")
	s.requests = append(s.requests, path)
	r = r.Clone(r.Context())
	var err error
	if s.before != nil {
		query := r.URL.Query()
		err = s.before(len(s.requests), path, query)
		r.URL.RawQuery = query.Encode()
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if isHidden {
		return response(r, s.notFound, []byte(`{"detail":"not found"}`)), nil
	}
	var via http.RoundTripper = &s.transport
	if s.direct != nil {
		via = s.direct
	}
	resp, err := via.RoundTrip(r)
	if err != nil || path != "orders" && path != "v2/user" {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return response(r, resp.StatusCode, s.hide(body)), nil
}

func response(r *http.Request, status int, body []byte) *http.Response {
	return &http.Response{Status: http.StatusText(status), StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
}

// hide removes hidden orders and users from a list.
func (s *truth) hide(body []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hidden) == 0 && s.rewrite == nil {
		return body
	}
	var page map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&page) != nil {
		return body
	}
	for _, name := range []string{"orders", "users"} {
		list, ok := page[name].([]any)
		if !ok {
			continue
		}
		page[name] = slices.DeleteFunc(list, func(v any) bool {
			element := v.(map[string]any)
			id, _ := element["id"].(string)
			if name == "users" {
				id, _ = element["user_id"].(string)
			}
			parsed, _ := uuid.Parse(id)
			return s.hidden[parsed]
		})
	}
	if s.rewrite != nil {
		s.rewrite(page)
	}
	body, _ = json.Marshal(page)
	return body
}

// set changes how the service behaves.
func (s *truth) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// count returns how many requests there were for a path since the last call.
func (s *truth) count(path string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = slices.DeleteFunc(s.requests, func(r string) bool {
		if r == path {
			n++
		}
		return r == path
	})
	return n
}

// orderLines returns what the service has of all orders, as the lines of storedLines.
func (s *truth) orderLines(t testing.TB) (lines []string) {
	t.Helper()
	client, err := labhealth.NewClient(s.APIKey, labhealth.WithBaseURL(s.URL), labhealth.WithHTTPClient(&http.Client{Transport: s.Direct()}))
	if err != nil {
		t.Fatal(err)
	}
	for order, err := range client.Orders.All(t.Context(), labhealth.ListOrdersParams{Size: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s updated %d", order.ID, order.CurrentStatus(), order.UpdatedAt.UnixNano()))
		for _, e := range order.Events {
			lines = append(lines, fmt.Sprintf("%s event %d %s %d", order.ID, e.ID, e.Status, e.CreatedAt.UnixNano()))
		}
		if !order.HasResults() {
			continue
		}
		results, err := client.Orders.Results(t.Context(), order.ID)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s results %s", order.ID, results.RawJSON()))
	}
	slices.Sort(lines)
	return lines
}

// storedLines returns all orders of a store, with timelines and results.
func storedLines(t testing.TB, store *sqlstore.Store) (lines []string) {
	t.Helper()
	for stored, err := range store.Orders(context.Background(), sqlstore.OrderFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		id := stored.Order.ID
		lines = append(lines, fmt.Sprintf("%s %s updated %d", id, stored.Status, stored.Order.UpdatedAt.UnixNano()))
		timeline, err := store.Timeline(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range timeline {
			lines = append(lines, fmt.Sprintf("%s event %s %s %d", id, e.ID, e.Status, e.At.UnixNano()))
		}
		results, ok, err := store.OrderResults(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			lines = append(lines, fmt.Sprintf("%s results %s", id, results.RawJSON()))
		}
	}
	slices.Sort(lines)
	return lines
}

func (s *truth) equal(t testing.TB, store *sqlstore.Store) {
	t.Helper()
	if diff := cmp.Diff(s.orderLines(t), storedLines(t, store)); diff != "" {
		t.Errorf("the store differs from the service: %s", diff)
	}
}

// advance moves orders through a part of their lives.
func (s *truth) advance(t testing.TB, ids []uuid.UUID) {
	t.Helper()
	for i, id := range ids {
		for range i % 11 {
			if _, err := s.Advance(id); err != nil {
				break
			}
		}
		if i%7 == 3 {
			_ = s.Cancel(id) // unless it is complete
		}
	}
}

func (d database) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	db := d.open(t)
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

// A receiver that has received nothing ends equal to the service after one call, and the next call
// finds no differences.
func TestReconcileEverythingLost(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t, labhealthtest.WithSamplesPerPage(7))
		var complete webhooks.Latest
		handler, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, e *webhooks.Event) error {
			_, err := complete.Apply(webhooks.Delivery{Event: e})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		receiver := httptest.NewServer(handler)
		defer receiver.Close()
		if err := srv.DeliverTo(receiver.URL); err != nil {
			t.Fatal(err)
		}
		outage := time.Now()
		users := srv.AddUsers(3)
		srv.advance(t, srv.AddOrders(33))
		for i, user := range users[:2] {
			at := labhealthtest.StartingAt(time.Now().AddDate(0, 0, -i))
			if _, err := srv.AddSummary(user, "sleep", at); err != nil {
				t.Fatal(err)
			}
			for _, resource := range []string{"glucose", "body_weight"} {
				if err := srv.AddSamples(user, resource, 10, at); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := srv.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		found, err := r.Since(t.Context(), outage)
		if err != nil {
			t.Fatal(err)
		}
		srv.equal(t, store)
		if diff := cmp.Diff(contentsOfLatest(&complete), contentsOf(t, store)); diff != "" {
			t.Error(diff)
		}
		if found.Differences.Orders != 33 || found.Differences.Samples != 40 || found.Differences.Summaries != 2 || found.Failed != 0 || !found.Complete ||
			found.Differences.Results == 0 || found.Requests < 3*62 {
			t.Errorf("%+v", found)
		}
		again, err := r.Since(t.Context(), outage)
		if err != nil || again.Differences.Total() != 0 || again.Read.Orders != 33 {
			t.Errorf("%+v %v", again, err)
		}
	})
}

// The number of requests for orders.
func TestReconcileRequests(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		srv.AddOrders(250)
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		for _, since := range []time.Time{time.Now().Add(-time.Minute), {}} {
			found, err := r.Since(t.Context(), since)
			if err != nil {
				t.Fatal(err)
			}
			// One user, of whom ReadAll reads 61 or 62 lists.
			lists, users, all := srv.count("orders"), srv.count("v2/user"), len(srv.requests)
			srv.set(func() { srv.requests = nil })
			if lists != 3 || users != 1 || found.Requests != lists+users+all {
				t.Errorf("%d and %d of %d requests for lists", lists, users, found.Requests)
			}
			if found.Read.Orders < 250 || found.Read.Orders > 260 { // those of the last microsecond of a page are read again
				t.Errorf("read %d orders", found.Read.Orders)
			}
		}
		r.OrdersOnly = true
		if found, err := r.Since(t.Context(), time.Time{}); err != nil || found.Requests != 3 {
			t.Errorf("%d requests without users, %v", found.Requests, err)
		}
		srv.equal(t, store)
	})
}

// A pass that is interrupted at any request goes on where it was.
func TestReconcileResumed(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		intervals := []int{3, 64}
		if long {
			intervals = []int{2, 3, 5, 7, 11, 64}
		}
		for _, every := range intervals {
			store, srv := d.store(t), newTruth(t)
			for _, table := range []string{"orders", "order_events", "order_results", "reconciled", "reconciled_users"} {
				d.exec(t, "DELETE FROM labhealth_"+table)
			}
			srv.AddUsers(2)
			srv.advance(t, srv.AddOrders(130))
			outage := time.Now().Add(-time.Minute)
			calls, requests := 0, 0
			for {
				ctx, cancel := context.WithCancel(t.Context())
				limit := every
				if every < 64 && calls > 150 { // the data of a user is not read in parts
					limit = 1000
				}
				srv.set(func() {
					sent := 0
					srv.before = func(int, string, url.Values) error {
						if sent++; sent == limit {
							cancel()
							return context.Canceled
						}
						return nil
					}
				})
				found, err := (&sqlstore.Reconciler{Store: store, Client: srv.client, Parallel: 1}).Since(ctx, outage)
				requests += found.Requests
				cancel()
				if calls++; err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) || calls > 300 {
					t.Fatal(calls, err)
				}
			}
			srv.set(func() { srv.before = nil })
			srv.equal(t, store)
			// Each interruption costs at most the request that it interrupts, of the orders.
			results := srv.count("v3/order/*/result")
			if n := srv.count("orders"); n > 2+calls || results > 130+calls || every == 64 && calls > 20 {
				t.Errorf("every %d: %d lists, %d results, %d calls, %d requests", every, n, results, calls, requests)
			}
		}
	})
}

// A process that is killed during any request is followed by one that goes on where it was.
func TestReconcileKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		srv.advance(t, srv.AddOrders(220))
		target, err := url.Parse(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		var sent, lists atomic.Int64
		var kill atomic.Pointer[func() error]
		forward := httputil.NewSingleHostReverseProxy(target)
		forward.Transport = &srv.transport
		forward.ErrorLog = log.New(io.Discard, "", 0) // of connections of killed processes
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Trim(r.URL.Path, "/") == "orders" {
				lists.Add(1)
			}
			if sent.Add(1)%70 == 0 {
				(*kill.Load())()
			}
			forward.ServeHTTP(w, r)
		}))
		defer proxy.Close()
		start := int(time.Now().Unix()) - 60
		kills := 0
		for ; ; kills++ {
			cmd := child(t.Context(), d, "reconcile", start)
			cmd.Env = append(cmd.Env, childURL+"="+proxy.URL, childKey+"="+srv.APIKey)
			stop := func() error { return cmd.Process.Kill() }
			kill.Store(&stop)
			if err := cmd.Run(); err == nil {
				break
			}
			if kills == 20 {
				t.Fatal("the passes never end")
			}
		}
		if kills < 2 || lists.Load() > int64(3+kills) {
			t.Errorf("%d kills, %d lists", kills, lists.Load())
		}
		srv.equal(t, store)
	})
}

// Orders are created, updated and deleted while a list is read. None is skipped.
func TestReconcileShiftingPages(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		ids := srv.AddOrders(350)
		srv.before = func(n int, path string, _ url.Values) error {
			if path != "orders" {
				return nil
			}
			switch n {
			case 2: // these are on the first page, which has been read
				for _, id := range ids[:30] {
					srv.hidden[id] = true
				}
			case 3:
				for _, id := range ids[100:120] {
					srv.hidden[id] = true
				}
				srv.AddOrders(40)
			}
			return nil
		}
		if _, err := (&sqlstore.Reconciler{Store: store, Client: srv.client}).Since(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		srv.set(func() { srv.before, srv.hidden = nil, map[uuid.UUID]bool{} })
		srv.equal(t, store)
	})
}

// What the service has deleted is found, reported once, and not deleted here. What comes back is
// found too.
func TestReconcileMissing(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		users := srv.AddUsers(2)
		ids := srv.AddOrders(230)
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		since := func() sqlstore.Reconciled {
			t.Helper()
			found, err := r.Since(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		since()
		gone := []uuid.UUID{ids[0], ids[99], ids[100], ids[229]}
		srv.set(func() {
			for _, id := range append([]uuid.UUID{users[1]}, gone...) {
				srv.hidden[id] = true
			}
		})
		found := since()
		slices.SortFunc(gone, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		slices.SortFunc(found.MissingOrderIDs, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		if found.MissingOrders != 4 || !slices.Equal(found.MissingOrderIDs, gone) || found.MissingUsers != 1 || found.MissingUserIDs[0] != users[1] {
			t.Errorf("%+v", found)
		}
		if found = since(); found.MissingOrders != 0 || found.MissingUsers != 0 || found.Differences.Total() != 0 {
			t.Errorf("%+v", found)
		}
		if order, ok, err := store.Order(t.Context(), ids[99]); err != nil || !ok || order.MissingSince.IsZero() {
			t.Error(order, ok, err)
		}
		srv.set(func() { srv.hidden = map[uuid.UUID]bool{} })
		since()
		if order, ok, err := store.Order(t.Context(), ids[99]); err != nil || !ok || !order.MissingSince.IsZero() {
			t.Error(order, ok, err)
		}
		if n := count(t, d.open(t), "labhealth_reconciled_users WHERE missing IS NOT NULL"); n != 0 {
			t.Errorf("%d users are missing", n)
		}
		srv.equal(t, store)
	})
}

// The results of an order that comes back are read, although it has not changed.
func TestReconcileBackWithResults(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		id, err := srv.AddOrder(srv.AddUsers(1)[0], srv.LabTests.WalkIn)
		for err == nil {
			_, err = srv.Advance(id)
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client, OrdersOnly: true}
		if _, err := r.Since(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		d.exec(t, "DELETE FROM labhealth_order_results")
		srv.set(func() { srv.hidden[id] = true })
		found, err := r.Since(t.Context(), time.Time{})
		if n := count(t, d.open(t), "labhealth_orders WHERE results_at IS NULL"); err != nil || found.MissingOrders != 1 || n != 1 {
			t.Errorf("%+v %v, %d", found, err, n)
		}
		srv.set(func() { delete(srv.hidden, id) })
		srv.runUntil(t, r, "walk")
	})
}

// An event that is repeated does not bring back an order that the service does not have. A newer
// one and a read do.
func TestReconcileMissingAndEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		srv.notFound = http.StatusGone
		id := srv.AddOrders(2)[1]
		sender, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL)) // from which nothing is hidden
		if err != nil {
			t.Fatal(err)
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		since := func(missing int) {
			t.Helper()
			if found, err := r.Since(t.Context(), time.Time{}); err != nil || found.MissingOrders != missing || found.Failed != 0 {
				t.Errorf("%+v %v", found, err)
			}
		}
		deliver := func() {
			t.Helper()
			order, err := sender.Orders.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			event, err := webhooks.EventOfOrder(order, time.Now().Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Apply(t.Context(), webhooks.Delivery{ID: "repeated", Event: event}); err != nil {
				t.Fatal(err)
			}
		}
		isMissing := func(want bool) {
			t.Helper()
			order, ok, err := store.Order(t.Context(), id)
			if err != nil || !ok || order.MissingSince.IsZero() == want {
				t.Error(order.MissingSince, ok, err)
			}
		}
		since(0)
		before := time.Now()
		srv.set(func() { srv.hidden[id] = true })
		since(1)
		isMissing(true)
		changed := 0
		for _, err := range store.Orders(t.Context(), sqlstore.OrderFilter{ChangedSince: before}) {
			if err != nil {
				t.Fatal(err)
			}
			changed++
		}
		if changed != 1 {
			t.Errorf("%d orders have changed", changed)
		}
		deliver()
		isMissing(true)
		since(0)
		if _, err := srv.Advance(id); err != nil {
			t.Fatal(err)
		}
		deliver()
		isMissing(false)
		since(1)
		srv.set(func() { delete(srv.hidden, id) })
		if _, err := r.Order(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		isMissing(false)
		srv.equal(t, store)
	})
}

// The lab corrects final results without an event and without a change of the order.
func TestReconcileSilentCorrection(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		users := srv.AddUsers(2)
		var ids []uuid.UUID
		for i := range 4 {
			id, err := srv.AddOrder(users[i/2], srv.LabTests.WalkIn)
			for err == nil && i < 3 {
				_, err = srv.Advance(id)
			}
			ids = append(ids, id)
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		correct := func(value string) {
			t.Helper()
			for _, id := range ids[:3] {
				if err := srv.CorrectResult(id, 901, value); err != nil {
					t.Fatal(err)
				}
			}
		}
		check := func(found sqlstore.Reconciled, err error, differences, results int) {
			t.Helper()
			if err != nil || found.Differences.Results != differences || found.Differences.Total() != differences {
				t.Errorf("%+v %v", found, err)
			}
			if n := srv.count("v3/order/*/result"); n != results {
				t.Errorf("%d requests for results, want %d", n, results)
			}
		}
		if _, err := r.Since(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		srv.equal(t, store)
		srv.count("v3/order/*/result")
		correct("170")
		found, err := r.Since(t.Context(), time.Now().Add(-time.Hour)) // an outage: the orders are the same
		check(found, err, 0, 0)
		found, err = r.Since(t.Context(), time.Time{})
		check(found, err, 3, 3)
		srv.equal(t, store)
		correct("171")
		found, err = r.Order(t.Context(), ids[0])
		check(found, err, 1, 1)
		found, err = r.User(t.Context(), users[0], time.Now().AddDate(0, 0, -1), time.Time{})
		check(found, err, 1, 2)
		if n := count(t, d.open(t), "labhealth_orders WHERE results_at IS NOT NULL"); n != 3 {
			t.Errorf("the results of %d orders are to be read again", n)
		}
		d.exec(t, `UPDATE labhealth_orders SET results_at = 1 WHERE results_at IS NOT NULL`) // a day later
		srv.runUntil(t, r, "results")
		srv.equal(t, store)
	})
}

// User reads the orders, the results and the wearable data of one user.
func TestReconcileUser(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		users := srv.AddUsers(2)
		srv.advance(t, srv.AddOrders(44))
		from := time.Now().AddDate(0, 0, -3)
		for _, user := range users {
			for day := range 4 { // of the first, nothing was lost for a time
				if err := srv.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(from.AddDate(0, 0, -3*day))); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		found, err := r.User(t.Context(), users[0], from, time.Time{})
		if err != nil || found.Pass != "user" || !found.Complete || found.Differences.Orders != 22 || found.Differences.Samples != 3 || found.Differences.Results == 0 {
			t.Errorf("%+v %v", found, err)
		}
		for order, err := range store.Orders(t.Context(), sqlstore.OrderFilter{}) {
			if err != nil || order.UserID != users[0] {
				t.Error(order, err)
			}
		}
		if found, err = r.User(t.Context(), users[0], from, time.Time{}); err != nil || found.Differences.Total() != 0 || found.Read.Orders != 22 {
			t.Errorf("%+v %v", found, err)
		}
		if found, err = r.User(t.Context(), users[1], from.AddDate(0, 0, -20), time.Time{}); err != nil || found.Differences.Samples != 12 {
			t.Errorf("%+v %v", found, err)
		}
		srv.equal(t, store)
		srv.set(func() { srv.hidden[users[1]] = true })
		for want := range []int{1, 0} {
			if found, err = r.User(t.Context(), users[1], from, time.Time{}); err != nil || found.MissingUsers != 1-want {
				t.Errorf("%+v %v", found, err)
			}
		}
	})
}

// A user who is deleted at the service and here while a pass reads results, or wearable data, stays
// deleted and is not reported.
func TestReconcileDeletedMeanwhile(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		users := srv.AddUsers(2)
		orders := map[uuid.UUID][]uuid.UUID{}
		for _, user := range users {
			for range 3 {
				id, err := srv.AddOrder(user, srv.LabTests.WalkIn)
				for err == nil {
					_, err = srv.Advance(id)
				}
				orders[user] = append(orders[user], id)
			}
		}
		before := []string{"v3/order/*/result", "v2/summary/sleep/*"}
		srv.before = func(_ int, path string, _ url.Values) error {
			for i, at := range before {
				if path != at {
					continue
				}
				before[i] = ""
				srv.hidden[users[i]] = true
				for _, id := range orders[users[i]] {
					srv.hidden[id] = i > 0 // the results are read once more
				}
				return store.DeleteUser(t.Context(), users[i])
			}
			return nil
		}
		found, err := (&sqlstore.Reconciler{Store: store, Client: srv.client}).Since(t.Context(), time.Time{})
		if err != nil || found.MissingUsers != 0 || found.MissingOrders != 0 || before[0]+before[1] != "" {
			t.Errorf("%+v %v, %q", found, err, before)
		}
		for _, table := range []string{"orders", "order_events", "order_results", "reconciled_users WHERE deleted IS NULL"} {
			if n := count(t, d.open(t), "labhealth_"+table); n != 0 {
				t.Errorf("%d rows in %s", n, table)
			}
		}
	})
}

// What is deleted here stays deleted, whatever the service still lists, until it is asked for.
func TestReconcileDeletedUser(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition}
		users := srv.AddUsers(2)
		for _, user := range users {
			if _, err := srv.AddOrder(user, srv.LabTests.WalkIn); err != nil {
				t.Fatal(err)
			}
		}
		r, db := &sqlstore.Reconciler{Store: store, Client: srv.client}, d.open(t)
		if _, err := r.Since(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := store.DeleteUser(t.Context(), users[0]); err != nil {
			t.Fatal(err)
		}
		found, err := r.Since(t.Context(), time.Time{})
		if err != nil || found.Differences.Total() != 0 || found.Failed+found.MissingUsers+found.MissingOrders != 0 {
			t.Errorf("%+v %v", found, err)
		}
		for _, table := range []string{"labhealth_orders", "labhealth_order_events", "labhealth_reactions"} {
			if n := count(t, db, table+fmt.Sprintf(" WHERE order_id IN (SELECT order_id FROM labhealth_orders WHERE user_id = '%s')", users[1])); n == 0 || n != count(t, db, table) {
				t.Errorf("%d of %d rows of %s are of the other user", n, count(t, db, table), table)
			}
		}
		if found, err := r.User(t.Context(), users[0], time.Now().AddDate(0, 0, -1), time.Time{}); err != nil || found.Differences.Orders != 1 {
			t.Errorf("%+v %v", found, err)
		}
	})
}

// Services whose lists have no total and fewer orders on a page than they report, and orders with
// one time of creation. Times in lists have fewer digits than those in events, which have no IDs.
func TestReconcileLists(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		noon := time.Now().Add(-time.Hour).Truncate(time.Second).Add(123456789)
		store, srv := d.store(t), newTruth(t, labhealthtest.WithClock(func() time.Time { return noon }))
		srv.AddOrders(250)
		srv.before = func(_ int, path string, query url.Values) error {
			if path == "orders" {
				query.Set("size", "20")
			}
			return nil
		}
		srv.rewrite = func(page map[string]any) {
			page["size"] = 100
			delete(page, "total")
			orders, _ := page["orders"].([]any)
			for _, order := range orders {
				for _, event := range order.(map[string]any)["events"].([]any) {
					delete(event.(map[string]any), "id")
				}
				delete(order.(map[string]any)["last_event"].(map[string]any), "id")
			}
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		if _, err := r.Since(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		found, err := r.Since(t.Context(), time.Time{})
		if err != nil || found.Differences.Total() != 0 || found.MissingOrders != 0 {
			t.Errorf("%+v %v", found, err)
		}
		if lists, ones := srv.count("orders"), srv.count("v3/order/*"); lists > 32 || ones != 0 {
			t.Errorf("%d lists, and %d orders were read one by one", lists, ones)
		}
		db := d.open(t)
		if orders, events := count(t, db, "labhealth_orders"), count(t, db, "labhealth_order_events"); orders != 250 || events != 250 {
			t.Errorf("%d orders, %d events", orders, events)
		}
	})
}

// Services that ignore filters, the sort key or page numbers.
func TestReconcileUnfiltered(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		all := map[string][]string{
			"dates": {"start_date", "end_date", "updated_start_date"},
			"order": {"order_key", "order_direction"},
		}
		if long {
			all["updated"] = []string{"updated_start_date"}
			all["both"] = []string{"order_key", "order_direction", "start_date", "updated_start_date"}
			all["size"] = []string{"size"}
		}
		for name, ignored := range all {
			store, srv := d.store(t), newTruth(t)
			for _, table := range []string{"orders", "order_events", "order_results", "reconciled", "reconciled_users"} {
				d.exec(t, "DELETE FROM labhealth_"+table)
			}
			ids := srv.AddOrders(230)
			srv.before = func(_ int, path string, query url.Values) error {
				for _, parameter := range ignored {
					query.Del(parameter)
				}
				return nil
			}
			r := &sqlstore.Reconciler{Store: store, Client: srv.client}
			for _, since := range []time.Time{time.Now().Add(-time.Hour), {}} {
				found, err := r.Since(t.Context(), since)
				if err != nil {
					t.Fatal(name, err)
				}
				if n := srv.count("orders"); n > 8 || found.MissingOrders != 0 {
					t.Errorf("%s: %d requests, %+v", name, n, found)
				}
			}
			srv.equal(t, store)
			srv.set(func() { srv.hidden[ids[7]], srv.hidden[ids[120]] = true, true })
			if found, err := r.Since(t.Context(), time.Time{}); err != nil || found.MissingOrders != 2 || found.Differences.Total() != 0 {
				t.Errorf("%s: %+v %v", name, found, err)
			}
			if n := srv.count("v3/order/*"); n > 2 {
				t.Errorf("%s: %d orders were read one by one", name, n)
			}
		}
	})
}

// A service that ignores page numbers and dates is an error if it has more orders than a page.
func TestReconcileRepeatedPage(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		srv.before = func(_ int, path string, query url.Values) error {
			if path == "orders" {
				for _, parameter := range []string{"page", "start_date", "updated_start_date", "order_key", "order_direction"} {
					query.Del(parameter)
				}
			}
			return nil
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client, OrdersOnly: true}
		srv.AddOrders(60)
		if found, err := r.Since(t.Context(), time.Time{}); err != nil || !found.Complete {
			t.Errorf("%+v %v", found, err)
		}
		srv.AddOrders(60)
		found, err := r.Since(t.Context(), time.Time{})
		if lists := srv.count("orders"); err == nil || err.Error() != "sqlstore: the service repeats a page of orders" || lists > 10 {
			t.Errorf("%+v %v, %d lists", found, err, lists)
		}
	})
}

// Of an event and a read, the version wins that is newer by the service's clock, in whatever order
// and by whichever clock they were received.
func TestReconcileClock(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		id := srv.AddOrders(1)[0]
		read := func() *labhealth.Order {
			t.Helper()
			order, err := srv.client.Orders.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return order
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		deliver := func(order *labhealth.Order, receivedAt time.Time) {
			t.Helper()
			event, err := webhooks.EventOfOrder(order, receivedAt)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Apply(t.Context(), webhooks.Delivery{Event: event}); err != nil {
				t.Fatal(err)
			}
		}
		status := func(want labhealth.OrderStatus, transitions int) {
			t.Helper()
			stored, _, err := store.Order(t.Context(), id)
			timeline, err2 := store.Timeline(t.Context(), id)
			if err := errors.Join(err, err2); err != nil || stored.Status != want || len(timeline) != transitions {
				t.Errorf("%s with %d transitions, %v; want %s", stored.Status, len(timeline), err, want)
			}
		}
		advance := func() {
			t.Helper()
			time.Sleep(2 * time.Millisecond) // the service's times have microseconds
			if _, err := srv.Advance(id); err != nil {
				t.Fatal(err)
			}
		}
		first := read()
		advance()
		if _, err := r.Order(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		second := read().CurrentStatus()
		status(second, 2)
		deliver(first, time.Now().Add(time.Hour)) // an old event is repeated, received by a clock that is ahead
		status(second, 2)
		advance()
		newer := read()
		deliver(newer, time.Now().Add(-time.Hour)) // a newer event, received by a clock that is behind
		status(newer.CurrentStatus(), 3)
		if _, err := r.Order(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		status(newer.CurrentStatus(), 3)
	})
}

// runUntil runs a Reconciler until a pass is complete and the store is equal to the service.
func (s *truth) runUntil(t testing.TB, r *sqlstore.Reconciler, pass string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want := s.orderLines(t)
	var mu sync.Mutex
	isComplete := false
	r.Observe = func(_ context.Context, found sqlstore.Reconciled, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(found.Pass, err)
		}
		isComplete = isComplete || found.Complete && found.Pass == pass
		if isComplete && slices.Equal(want, storedLines(t, r.Store)) {
			cancel()
		}
	}
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// Run keeps the store equal, and one of two Reconcilers does the work.
func TestReconcileRun(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		ids := srv.AddOrders(20)
		var first, second atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ready := make(chan struct{}, 100)
		one := &sqlstore.Reconciler{Store: store, Client: srv.client, Interval: 10 * time.Millisecond, Poll: 10 * time.Millisecond, Rate: 1000,
			Observe: func(_ context.Context, found sqlstore.Reconciled, err error) {
				first.Add(int64(found.Requests))
				if err != nil {
					t.Error(found.Pass, err)
				}
				select {
				case ready <- struct{}{}:
				default:
				}
			}}
		two := &sqlstore.Reconciler{Store: d.store(t), Client: srv.client, Observe: func(context.Context, sqlstore.Reconciled, error) { second.Add(1) }}
		var all sync.WaitGroup
		all.Go(func() { one.Run(ctx) })
		<-ready
		all.Go(func() { two.Run(ctx) })
		srv.advance(t, ids)
		want := srv.orderLines(t)
		for ctx.Err() == nil && !slices.Equal(want, storedLines(t, store)) {
			select {
			case <-ready:
			case <-ctx.Done():
			}
		}
		cancel()
		all.Wait()
		if first.Load() == 0 || second.Load() != 0 {
			t.Errorf("%d requests, and %d observations of the other", first.Load(), second.Load())
		}
		srv.equal(t, store)
		// The lease was released. One that another process has is respected, until it ends.
		for until, wantRequests := range map[string]bool{"30s": false, "-1s": true} {
			wait, _ := time.ParseDuration(until)
			d.exec(t, `DELETE FROM labhealth_reconciled`)
			d.exec(t, `INSERT INTO labhealth_reconciled (slot, name, value) VALUES (0, 'lease', '`+
				fmt.Sprintf(`{"holder":"other","until":%q}`, time.Now().Add(wait).Format(time.RFC3339Nano))+`')`)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			asked := false
			three := &sqlstore.Reconciler{Store: store, Client: srv.client, Observe: func(context.Context, sqlstore.Reconciled, error) { cancel() }}
			if !wantRequests {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			srv.set(func() { srv.before = func(int, string, url.Values) error { asked = true; return nil } })
			three.Run(ctx)
			cancel()
			if asked != wantRequests {
				t.Errorf("lease until %s from now: requests %t", until, asked)
			}
		}
	})
}

// One user that cannot be read does not stop the others.
func TestReconcileFailures(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		users := srv.AddUsers(3)
		for _, user := range users {
			if err := srv.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(time.Now())); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(users, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		failing := errors.New("a proxy fails")
		fail := false
		failed := &failingPath{s: srv, path: users[0].String(), fail: &fail, err: failing}
		client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithHTTPClient(&http.Client{Transport: failed}),
			labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		if err != nil {
			t.Fatal(err)
		}
		fail = true
		r := &sqlstore.Reconciler{Store: store, Client: client}
		found, err := r.Since(t.Context(), time.Time{})
		if err != nil || found.Failed != 1 || !found.Complete || found.Differences.Samples != 6 {
			t.Errorf("%+v %v", found, err)
		}
		fail = false
		if found, err = r.Since(t.Context(), time.Time{}); err != nil || found.Failed != 0 || found.Differences.Samples != 3 {
			t.Errorf("%+v %v", found, err)
		}
	})
}

// Run goes on after the service was unavailable, and the walks reach every order and user. A store
// has the data of its own users only.
func TestReconcileOutage(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		users := srv.AddUsers(2)
		srv.AddOrders(120)
		for _, user := range users {
			if err := srv.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(time.Now())); err != nil {
				t.Fatal(err)
			}
		}
		if err := srv.FailBefore("GET /orders", 2*3, labhealthtest.FaultResponse(http.StatusServiceUnavailable, `{}`)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var mu sync.Mutex
		var all sqlstore.ReconciledCounts
		failures, complete := 0, map[string]bool{}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client, Rate: 1000, Owns: func(user uuid.UUID) bool { return user == users[1] }}
		r.Observe = func(_ context.Context, found sqlstore.Reconciled, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures++
			}
			all.Orders += found.Differences.Orders
			all.Samples += found.Differences.Samples
			if complete[found.Pass] = complete[found.Pass] || found.Complete; complete["walk"] && complete["users"] && complete["changed"] {
				cancel()
			}
		}
		if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if failures != 2 || all.Orders != 60 || all.Samples != 3 {
			t.Errorf("%d failures, %+v", failures, all)
		}
	})
}

type failingPath struct {
	s    *truth
	path string
	fail *bool
	err  error
}

func (f *failingPath) RoundTrip(r *http.Request) (*http.Response, error) {
	if *f.fail && strings.Contains(r.URL.Path, f.path) {
		return nil, f.err
	}
	return f.s.RoundTrip(r)
}
