package webhooks_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	labhealth "github.com/labhealth/labhealth-go"
	tables "github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// The data of every resource of the reference is read with the documented number of requests.
func TestReadAllResources(t *testing.T) {
	requests := 0
	s := newWearableService(t, func(next http.RoundTripper) http.RoundTripper {
		return transportFunc(func(r *http.Request) (*http.Response, error) {
			requests++
			return next.RoundTrip(r)
		})
	}, labhealthtest.WithSamplesPerPage(3))
	if err := s.Connect(s.user, "oura"); err != nil {
		t.Fatal(err)
	}
	count := func(params webhooks.ReadAllParams) (int, []*webhooks.Event) {
		t.Helper()
		requests = 0
		events := collect(t, webhooks.ReadAll(t.Context(), s.client, s.user, params))
		return requests, events
	}
	now := time.Now()
	recent := webhooks.ReadAllParams{StartDate: now.AddDate(0, 0, -7)}
	if n, events := count(recent); n != 63 || len(events) != 0 {
		t.Errorf("%d requests and %d events without data", n, len(events))
	}

	summaries, samples := wearableResources()
	want := map[string]int{}
	opts := []labhealthtest.DataOption{labhealthtest.Undelivered(), labhealthtest.StartingAt(now.AddDate(0, 0, -6))}
	for _, resource := range summaries {
		if _, err := s.AddSummary(s.user, string(resource), opts...); err != nil {
			t.Fatal(err)
		}
		want[string(resource)] = 1
	}
	want["profile"] = 2 // of oura, and without a provider
	for _, resource := range samples {
		if err := s.AddSamples(s.user, string(resource), 2, opts...); err != nil {
			t.Fatal(err)
		}
		event := map[labhealth.SampleResource]string{"body_weight": "weight", "body_fat": "fat"}[resource]
		want[cmp.Or(event, string(resource))] = 1
	}
	check := func(n, wantRequests int, events []*webhooks.Event) {
		t.Helper()
		got := map[string]int{}
		for _, event := range events {
			got[event.Type.Resource()]++
		}
		if diff := gocmp.Diff(want, got); diff != "" || n != wantRequests {
			t.Errorf("%d requests, want %d; resources (-want +got):\n%s", n, wantRequests, diff)
		}
	}
	n, events := count(recent)
	check(n, 62, events)
	n, events = count(webhooks.ReadAllParams{StartDate: now.AddDate(0, 0, -300)}) // two half years
	for _, resource := range summaries {
		if resource != "profile" && resource != "menstrual_cycle" {
			want[string(resource)] = len(slices.DeleteFunc(slices.Clone(events), func(e *webhooks.Event) bool { return e.Type.Resource() != string(resource) }))
		}
	}
	check(n, 62+7, events)
	if err := s.AddSamples(s.user, "glucose", 2, labhealthtest.StartingAt(now)); err != nil {
		t.Fatal(err)
	}
	if n, _ := count(recent); n != 63 {
		t.Errorf("%d requests with another page of samples", n)
	}
	// A provider of the data that is not connected has a profile too.
	if _, err := s.AddSummary(s.user, "profile", labhealthtest.FromSource("fitbit", "watch")); err != nil {
		t.Fatal(err)
	}
	if n, events := count(recent); n != 64 || len(events) != 58+1+3 { // a further page, and three profiles
		t.Errorf("%d requests and %d events with two profiles", n, len(events))
	}
}

// A store that received nothing has everything after ReadAll.
func TestReadAllRecovers(t *testing.T) {
	s := newWearableService(t, nil, labhealthtest.WithSamplesPerPage(7))
	var complete, recovered webhooks.Latest
	addRandomly(t, s, rand.New(rand.NewPCG(5, 5)), 150)
	apply(t, &complete, s.take(t)...)
	apply(t, &recovered, collect(t, webhooks.ReadAll(t.Context(), s.client, s.user, webhooks.ReadAllParams{StartDate: longAgo}))...)
	if diff := gocmp.Diff(contentOf(&complete), contentOf(&recovered)); diff != "" || len(contentOf(&complete)) == 0 {
		t.Errorf("(-complete +recovered):\n%s", diff)
	}
	// A user that does not exist is no user without data.
	_, err := all(webhooks.ReadAll(t.Context(), s.client, readUser, webhooks.ReadAllParams{StartDate: longAgo}))
	if !errors.Is(err, labhealth.ErrNotFound) {
		t.Errorf("the error for an unknown user is %v", err)
	}
	_, err = all(webhooks.ReadAll(t.Context(), s.client, s.user, webhooks.ReadAllParams{}))
	if err == nil || !errors.Is(err, webhooks.ErrPermanent) {
		t.Errorf("the error without a start is %v", err)
	}
}

// all returns the types of the events and the error.
func all(list func(func(*webhooks.Event, error) bool)) (types []string, failed error) {
	for event, err := range list {
		if err != nil {
			return types, err
		}
		types = append(types, string(event.Type))
	}
	return types, nil
}

// allService responds to the requests of ReadAll by path. Other paths are not found.
type allService struct {
	*labhealth.Client
	paths    map[string]string
	missing  map[string]string // paths for which a proxy responds, with the body of its 404
	requests []string
}

func newAllService(t *testing.T) *allService {
	t.Helper()
	s := &allService{paths: map[string]string{
		"/v2/user/providers/" + readUser.String(): `{"providers":[{"slug":"oura"},{"slug":""}]}`,
		"/v2/introspect/resources":                `{"data":[],"next_cursor":null}`,
		"/v2/user/" + readUser.String():           `{"user_id":"` + readUser.String() + `"}`,
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests = append(s.requests, r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		body, ok := s.paths[r.URL.Path]
		if cursor := r.FormValue("next_cursor"); cursor != "" {
			body, ok = s.paths[cursor]
		}
		if proxy, found := s.missing[r.URL.Path]; found {
			w.WriteHeader(http.StatusNotFound)
			body = proxy
		} else if !ok {
			w.WriteHeader(http.StatusNotFound)
			body = `{"detail":"Not Found"}`
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	var err error
	s.Client, err = labhealth.NewClient("key", labhealth.WithBaseURL(server.URL), labhealth.WithHTTPClient(&http.Client{Transport: own}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *allService) read(t *testing.T, params webhooks.ReadAllParams) ([]string, error) {
	t.Helper()
	s.requests = nil
	return all(webhooks.ReadAll(t.Context(), s.Client, readUser, params))
}

var march = webhooks.ReadAllParams{StartDate: time.Date(2025, time.March, 1, 22, 0, 0, 0, time.FixedZone("", -5*3600)), EndDate: time.Date(2025, time.April, 1, 0, 0, 0, 0, time.UTC)}

const (
	sampleGroups = `{"groups":{"oura":[{"source":{"provider":"oura","type":"ring"},"data":[]}]}}`
	summaryList  = `{"mood":[{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"}]}`
)

// Resources that only the introspection has are read, both as samples and as summaries.
func TestReadAllOtherResources(t *testing.T) {
	s := newAllService(t)
	samples := func(resource string) string {
		return "/v2/timeseries/" + readUser.String() + "/" + resource + "/grouped"
	}
	s.paths["/v2/introspect/resources"] = `{"data":[
		{"user_id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","provider":{"oura":{"of_another_user":{}}}},
		{"user_id":"` + readUser.String() + `","provider":{
			"oura":{"zinc":{},"mood":{},"glucose":{},"weight":{},"body_fat":{},"order":{},"workout_stream":{},"../x":{},"":{},"missing":{}},
			"fitbit":{"sleep":{},"pollen":{}}}}],"next_cursor":null}`
	for _, resource := range []string{"glucose", "body_weight", "body_fat", "zinc", "pollen", "of_another_user"} {
		s.paths[samples(resource)] = sampleGroups
	}
	s.paths["/v2/summary/mood/"+readUser.String()] = summaryList
	got, err := s.read(t, march)
	want := []string{"weight", "fat", "glucose", "mood", "pollen", "zinc"}
	for i := range want {
		want[i] = "daily.data." + want[i] + ".updated"
	}
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v; types (-want +got):\n%s", err, diff)
	}
	var profiles, sent []string
	for _, url := range s.requests {
		switch {
		case strings.HasPrefix(url, "/v2/summary/profile/"):
			profiles = append(profiles, strings.TrimPrefix(url, "/v2/summary/profile/"+readUser.String()))
		case strings.Contains(url, "/sleep/"), strings.Contains(url, "/menstrual_cycle/"), strings.Contains(url, "/zinc/grouped"):
			sent = append(sent, url[strings.Index(url, "?"):])
		case strings.Contains(url, "order"), strings.Contains(url, "workout_stream"), strings.Contains(url, "another"), strings.Contains(url, ".."):
			t.Error(url)
		}
	}
	// The days include the period in every time zone.
	wantSent := []string{"?end_date=2025-04-02&start_date=2025-03-01", "?end_date=2025-04-02&start_date=2024-12-01", "?end_date=2025-04-02T00%3A00%3A00Z&start_date=2025-03-01T03%3A00%3A00Z"}
	if diff := gocmp.Diff(wantSent, sent); diff != "" {
		t.Errorf("periods (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"", "?provider=fitbit", "?provider=oura"}, profiles); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}

	// Without an end, the period includes today in every time zone.
	from := time.Now()
	if _, err := s.read(t, webhooks.ReadAllParams{StartDate: from}); err != nil {
		t.Error(err)
	}
	ends := 0
	for _, day := range []time.Time{from, time.Now()} {
		for _, url := range s.requests {
			if strings.Contains(url, "end_date="+day.UTC().AddDate(0, 0, 1).Format(time.DateOnly)) {
				ends++
			}
		}
		if ends > 0 {
			break
		}
	}
	if ends != 8+50+2*4 { // of the known resources, and both of four others
		t.Errorf("%d requests have an end", ends)
	}

	// With a provider, there is one profile, and the resources of others are left out.
	params := march
	params.Provider = "oura"
	if got, err = s.read(t, params); err != nil || slices.Contains(got, "daily.data.pollen.updated") || !slices.Contains(got, "daily.data.zinc.updated") {
		t.Errorf("%v, %v", got, err)
	}
	for _, url := range s.requests[2 : len(s.requests)-1] {
		if !strings.Contains(url, "provider=oura") {
			t.Error(url)
		}
	}
	// A deployment without the introspection has the known resources.
	delete(s.paths, "/v2/introspect/resources")
	if got, err = s.read(t, march); err != nil || !slices.Equal(got, want[:3]) {
		t.Errorf("%v, %v", got, err)
	}
}

// An error that is not that of a missing resource ends the iteration, and no event follows it.
func TestReadAllErrors(t *testing.T) {
	glucose := "/v2/timeseries/" + readUser.String() + "/glucose/grouped"
	secondPage := strings.TrimSuffix(sampleGroups, "}") + `,"next_cursor":"second"}`
	for name, test := range map[string]struct {
		set     func(s *allService)
		types   int
		missing bool
	}{
		"no providers":        {func(s *allService) { delete(s.paths, "/v2/user/providers/"+readUser.String()) }, 0, true},
		"bad providers":       {func(s *allService) { s.paths["/v2/user/providers/"+readUser.String()] = "x" }, 0, false},
		"bad introspection":   {func(s *allService) { s.paths["/v2/introspect/resources"] = "x" }, 0, false},
		"a bad resource":      {func(s *allService) { s.paths["/v2/summary/body/"+readUser.String()] = "x" }, 0, false},
		"a missing page":      {func(s *allService) { s.paths[glucose] = secondPage }, 1, true},
		"the user is deleted": {func(s *allService) { s.paths[glucose] = sampleGroups; delete(s.paths, "/v2/user/"+readUser.String()) }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAllService(t)
			test.set(s)
			for range 2 { // the iterator can be used again
				types, err := s.read(t, march)
				if err == nil || errors.Is(err, labhealth.ErrNotFound) != test.missing || len(types) != test.types {
					t.Errorf("%v, %v", types, err)
				}
			}
		})
	}
	s := newAllService(t)
	s.paths[glucose] = sampleGroups
	for range webhooks.ReadAll(t.Context(), s.Client, readUser, march) {
		break
	}
	if last := s.requests[len(s.requests)-1]; !strings.HasPrefix(last, glucose) {
		t.Errorf("%s is requested after the loop ended", last)
	}
}

// What a proxy says of a resource is an error. A loop that goes on gets the other resources.
func TestReadAllProxy(t *testing.T) {
	glucose := "/v2/timeseries/" + readUser.String() + "/glucose/grouped"
	water := "/v2/timeseries/" + readUser.String() + "/water/grouped"
	for _, body := range []string{"<html>Not Found</html>", `{"message":"Not Found"}`, ""} {
		s := newAllService(t)
		s.paths[glucose], s.paths[water] = sampleGroups, sampleGroups
		s.missing = map[string]string{glucose: body}
		var types []string
		failures := 0
		for event, err := range webhooks.ReadAll(t.Context(), s.Client, readUser, march) {
			if api, ok := errors.AsType[*labhealth.APIError](err); ok && api.StatusCode == http.StatusNotFound {
				failures++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, string(event.Type))
		}
		if failures != 1 || !slices.Equal(types, []string{"daily.data.water.updated"}) {
			t.Errorf("%q: %d failures, %q", body, failures, types)
		}
		s.missing = map[string]string{"/v2/introspect/resources": body}
		if _, err := s.read(t, march); err == nil {
			t.Errorf("%q: no error for the resources", body)
		}
	}
}

// A list of samples that never ends is an error, whatever its pages have.
func TestReadSamplesNeverEnds(t *testing.T) {
	const sample = `{"groups":{"oura":[{"source":{"provider":"oura","type":"ring"},"data":[{"id":1,"timestamp":"2025-03-01T12:00:00Z","value":%d,"unit":"ml"}]}]},"next_cursor":"%d"}`
	const none, empty = `{"groups":{},"next_cursor":"%[2]d"}`, `{"groups":{"oura":[{"source":{"provider":"oura","type":"ring"},"data":[]}]},"next_cursor":"%[2]d"}`
	for name, test := range map[string]struct {
		page  func(n int) string
		most  int
		error string
	}{
		"no groups":    {func(int) string { return none }, 100, "empty page in a row"},
		"no samples":   {func(int) string { return empty }, 100, "empty page in a row"},
		"both":         {func(n int) string { return []string{none, empty}[n%2] }, 100, "empty page in a row"},
		"one repeated": {func(n int) string { return []string{empty, strings.Replace(sample, "%d", "%[1]d", 1), none}[n%3] }, 100, "repeats an earlier page"},
		"all samples":  {func(int) string { return sample }, 10_001, "more than 10000 pages"},
	} {
		requests := 0
		client, err := labhealth.NewClient("key", labhealth.WithBaseURL("http://127.0.0.1"), labhealth.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) string {
			requests++
			value := requests
			if name == "one repeated" {
				value = 1
			}
			return fmt.Sprintf(test.page(requests-1), value, requests)
		})}))
		if err != nil {
			t.Fatal(err)
		}
		var failure error
		for _, err := range webhooks.ReadSamples(t.Context(), client, readUser, "water", labhealth.ListSamplesParams{StartDate: march.StartDate}) {
			failure = err
		}
		if failure == nil || !strings.Contains(failure.Error(), test.error) || requests > test.most {
			t.Errorf("%s: %d requests, %v", name, requests, failure)
		}
	}
}

// A list may have many empty pages in a row, and end with one.
func TestReadSamplesAfterEmptyPages(t *testing.T) {
	requests := 0
	client, err := labhealth.NewClient("key", labhealth.WithBaseURL("http://127.0.0.1"), labhealth.WithHTTPClient(&http.Client{Transport: roundTrip(func(*http.Request) string {
		if requests++; requests == 100 {
			return `{"groups":{},"next_cursor":null}`
		}
		return fmt.Sprintf(`{"groups":{},"next_cursor":"%d"}`, requests)
	})}))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range webhooks.ReadSamples(t.Context(), client, readUser, "water", labhealth.ListSamplesParams{StartDate: march.StartDate}) {
		t.Error(err)
	}
	if requests != 100 {
		t.Errorf("%d requests", requests)
	}
}

// roundTrip is a transport without a network. It returns the body of each response.
type roundTrip func(r *http.Request) string

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	body := f(r)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
}

// Whatever the introspection has, the number of requests is limited, and an error says that
// something was not read.
func TestReadAllIsLimited(t *testing.T) {
	names, slugs, users := strings.Builder{}, strings.Builder{}, strings.Builder{}
	for n := range 5000 {
		fmt.Fprintf(&names, `,"name_%d":{}`, n)
		fmt.Fprintf(&slugs, `,"slug_%d":{}`, n)
		fmt.Fprintf(&users, `{"user_id":"3c1f8f43-0d1c-4f55-9a0b-%012d","provider":{}},`, n)
	}
	for name, body := range map[string]string{
		"resources": `{"data":[{"user_id":"` + readUser.String() + `","provider":{"oura":{"mood":{}` + names.String() + `}}}]}`,
		"providers": `{"data":[{"user_id":"` + readUser.String() + `","provider":{"oura":{}` + slugs.String() + `}}]}`,
		"users":     `{"data":[` + users.String() + `{"user_id":"` + readUser.String() + `","provider":{"oura":{"mood":{}}}}]}`,
	} {
		s := newAllService(t)
		s.paths["/v2/introspect/resources"] = body
		s.paths["/v2/timeseries/"+readUser.String()+"/glucose/grouped"] = sampleGroups
		types, err := s.read(t, march)
		if err == nil || !strings.Contains(err.Error(), "more than") || !slices.Equal(types, []string{"daily.data.glucose.updated"}) {
			t.Errorf("%s: %q %v", name, types, err)
		}
		if len(s.requests) > 62+2*50+10 {
			t.Errorf("%s: %d requests", name, len(s.requests))
		}
	}
	// The connected providers are limited too.
	s := newAllService(t)
	s.paths["/v2/user/providers/"+readUser.String()] = `{"providers":[{"slug":"oura"}` + strings.ReplaceAll(strings.ReplaceAll(slugs.String(), `:{}`, `}`), `,"`, `,{"slug":"`) + `]}`
	if _, err := s.read(t, march); err == nil || len(s.requests) > 62+50+10 {
		t.Errorf("%d requests, %v", len(s.requests), err)
	}
}

// EventTypes has every type of the reference, and changes to its result have no effect.
func TestEventTypes(t *testing.T) {
	types := webhooks.EventTypes()
	for _, e := range tables.Events() {
		if !slices.Contains(types, webhooks.EventType(e.Type)) {
			t.Errorf("%s is missing", e.Type)
		}
	}
	types[0] = ""
	if again := webhooks.EventTypes(); again[0] == "" || len(again) != len(types) {
		t.Error("a change has an effect")
	}
}
