package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	tables "github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// wearableResources are the resources of the API: the names in paths.
var wearableResources = func() (summaries []labhealth.SummaryResource, samples []labhealth.SampleResource) {
	for _, o := range tables.Operations() {
		parts := strings.Split(o.Path, "/")
		switch {
		case strings.HasPrefix(o.Path, "/v2/summary/"):
			summaries = append(summaries, labhealth.SummaryResource(parts[3]))
		case strings.HasSuffix(o.Path, "/grouped"):
			samples = append(samples, labhealth.SampleResource(parts[4]))
		}
	}
	return summaries, samples
}

// wearableService is an embedded service whose events are received.
type wearableService struct {
	*labhealthtest.Server
	client *labhealth.Client
	user   uuid.UUID

	mu       sync.Mutex
	received []*webhooks.Event
	onEvent  func(*webhooks.Event) // nil for none
}

func newWearableService(t testing.TB, transport func(http.RoundTripper) http.RoundTripper, opts ...labhealthtest.Option) *wearableService {
	t.Helper()
	s := &wearableService{Server: labhealthtest.NewServer(t, opts...)}
	s.user = s.AddUser("ada")
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	httpClient := &http.Client{Transport: own}
	if transport != nil {
		httpClient.Transport = transport(own)
	}
	var err error
	s.client, err = labhealth.NewClient(s.APIKey, labhealth.WithBaseURL(s.URL), labhealth.WithHTTPClient(httpClient))
	if err != nil {
		t.Fatal(err)
	}
	handler, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, e *webhooks.Event) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.received = append(s.received, e)
		if s.onEvent != nil {
			s.onEvent(e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(handler)
	t.Cleanup(receiver.Close)
	if err := s.DeliverTo(receiver.URL); err != nil {
		t.Fatal(err)
	}
	return s
}

// take returns the events that were received since the last call.
func (s *wearableService) take(t testing.TB) []*webhooks.Event {
	t.Helper()
	if err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	received := s.received
	s.received = nil
	return received
}

var (
	longAgo       = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	allSummaries  = labhealth.ListSummariesParams{StartDate: labhealth.DateOf(longAgo)}
	allSamples    = labhealth.ListSamplesParams{StartDate: longAgo}
	sourceOptions = []labhealthtest.SourceShape{labhealthtest.SourceComplete, labhealthtest.SourceNamed, labhealthtest.SourceTyped}
)

// readAll reads every resource of the user.
func (s *wearableService) readAll(ctx context.Context) iter.Seq2[*webhooks.Event, error] {
	return func(yield func(*webhooks.Event, error) bool) {
		summaries, samples := wearableResources()
		var lists []iter.Seq2[*webhooks.Event, error]
		for _, resource := range summaries {
			for _, provider := range []string{"oura", "fitbit", "withings"} { // a profile is that of one
				params := allSummaries
				params.Provider = provider
				lists = append(lists, webhooks.ReadSummaries(ctx, s.client, s.user, resource, params))
			}
		}
		for _, resource := range samples {
			lists = append(lists, webhooks.ReadSamples(ctx, s.client, s.user, resource, allSamples))
		}
		for _, list := range lists {
			for event, err := range list {
				if errors.Is(err, labhealth.ErrNotFound) {
					continue // a user without a profile
				}
				if !yield(event, err) {
					return
				}
			}
		}
	}
}

func collect(t testing.TB, list iter.Seq2[*webhooks.Event, error]) (events []*webhooks.Event) {
	t.Helper()
	for event, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

func apply(t testing.TB, latest *webhooks.Latest, events ...*webhooks.Event) {
	t.Helper()
	for _, event := range events {
		if _, err := latest.Apply(webhooks.Delivery{Event: event}); err != nil {
			t.Errorf("%s: %v", event.Type, err)
		}
	}
}

// contentOf returns the summaries and samples as sorted lines.
func contentOf(latest *webhooks.Latest) (lines []string) {
	for key, sample := range latest.Samples() {
		document, _ := sample.MarshalJSON()
		lines = append(lines, fmt.Sprintf("%+v %s", key, document))
	}
	for key, summary := range latest.Summaries() {
		document, _ := summary.MarshalJSON()
		lines = append(lines, fmt.Sprintf("%+v %T %s", key, summary, document))
	}
	slices.Sort(lines)
	return lines
}

// What is read of every resource, in every shape of a source, has the keys and the payload of the
// event that delivered it.
func TestReadLikeDelivered(t *testing.T) {
	s := newWearableService(t, nil)
	summaries, samples := wearableResources()
	if len(summaries) != 9 || len(samples) != 50 {
		t.Fatalf("%d and %d resources", len(summaries), len(samples))
	}
	known := map[string]bool{}
	for _, e := range tables.Events() {
		known[e.Type] = true
	}
	check := func(t *testing.T, resource string, read []*webhooks.Event, from time.Time) {
		t.Helper()
		delivered := s.take(t)
		if len(delivered) != 1 || len(read) != 1 {
			t.Fatalf("%d events were delivered, %d read", len(delivered), len(read))
		}
		want, got := delivered[0], read[0]
		wantKeys, wantErr := want.Keys()
		gotKeys, gotErr := got.Keys()
		if wantErr != nil || gotErr != nil || !cmp.Equal(wantKeys, gotKeys) || wantKeys.Samples == nil == (wantKeys.Summary == webhooks.SummaryKey{}) {
			t.Errorf("%s: keys %v (%v), want %v (%v)", resource, gotKeys, gotErr, wantKeys, wantErr)
		}
		if got.Type.Resource() != want.Type.Resource() || got.Type.Action() != "updated" || !known[string(got.Type)] {
			t.Errorf("%s: type %s, want that of %s", resource, got.Type, want.Type)
		}
		if reflect.TypeOf(got.Data) != reflect.TypeOf(want.Data) || got.UserID != s.user {
			t.Errorf("%s: %T of %v, want %T", resource, got.Data, got.UserID, want.Data)
		}
		if got.ReceivedAt.Before(from) || got.ReceivedAt.After(time.Now()) || got.Err() != nil {
			t.Errorf("%s: received at %v, error %v", resource, got.ReceivedAt, got.Err())
		}
		var reparsed webhooks.Event
		if err := reparsed.UnmarshalJSON(got.RawJSON()); err != nil || reparsed.Type != got.Type || reparsed.UserID != got.UserID {
			t.Errorf("%s: the JSON of the event is not an event: %v", resource, err)
		}
	}
	for i, shape := range sourceOptions {
		day := longAgo.AddDate(0, 0, 10*i)
		opts := []labhealthtest.DataOption{
			labhealthtest.StartingAt(day), labhealthtest.WithSourceShape(shape), labhealthtest.FromSource("withings", "scale"),
		}
		date := labhealth.DateOf(day)
		for _, resource := range summaries {
			if _, err := s.AddSummary(s.user, string(resource), opts...); err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			params := labhealth.ListSummariesParams{StartDate: date, EndDate: date, Provider: "withings"}
			check(t, string(resource), collect(t, webhooks.ReadSummaries(t.Context(), s.client, s.user, resource, params)), now)
		}
		for _, resource := range samples {
			if err := s.AddSamples(s.user, string(resource), 5, opts...); err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			params := labhealth.ListSamplesParams{StartDate: day, EndDate: day.AddDate(0, 0, 1), Provider: "withings"}
			check(t, string(resource), collect(t, webhooks.ReadSamples(t.Context(), s.client, s.user, resource, params)), now)
		}
	}
	// Events name two resources differently. Both names are valid.
	for _, resource := range []labhealth.SampleResource{"weight", "fat"} {
		events := collect(t, webhooks.ReadSamples(t.Context(), s.client, s.user, resource, allSamples))
		if len(events) == 0 || events[0].Type.Resource() != string(resource) {
			t.Errorf("%s: %v", resource, events)
		}
	}
}

// A store that missed deliveries and read the data back has the content of one that missed none,
// in whatever order it applies what it has.
func TestReadRecoversLostDeliveries(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newWearableService(t, nil, labhealthtest.WithSamplesPerPage(1+r.IntN(20)))
		var complete, recovered webhooks.Latest
		addRandomly(t, s, r, 120)
		delivered := s.take(t)
		apply(t, &complete, delivered...)
		events := collect(t, s.readAll(t.Context()))
		if len(events) < 60 {
			t.Fatalf("%d events were read", len(events))
		}
		for _, event := range delivered {
			if r.IntN(3) > 0 {
				events = append(events, event)
			}
		}
		r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		apply(t, &recovered, events...)
		if diff := cmp.Diff(contentOf(&complete), contentOf(&recovered)); diff != "" {
			t.Errorf("seed %d (-complete +recovered):\n%s", seed, diff)
		}
	}
}

// addRandomly adds n summaries and batches of samples, many of which replace others.
func addRandomly(t testing.TB, s *wearableService, r *rand.Rand, n int, opts ...labhealthtest.DataOption) {
	t.Helper()
	summaries, samples := wearableResources()
	sources := [][2]string{{"oura", "ring"}, {"fitbit", "watch"}, {"withings", "scale"}}
	for range n {
		source := r.IntN(len(sources)) // each has one shape, as the source types differ between shapes
		opts := append([]labhealthtest.DataOption{
			labhealthtest.FromSource(sources[source][0], sources[source][1]), labhealthtest.WithSourceShape(sourceOptions[source]),
			labhealthtest.StartingAt(longAgo.AddDate(0, 0, 100*r.IntN(5))),
		}, opts...)
		var err error
		if r.IntN(2) == 0 {
			_, err = s.AddSummary(s.user, string(summaries[r.IntN(len(summaries))]), opts...)
		} else {
			err = s.AddSamples(s.user, string(samples[r.IntN(12)]), 1+r.IntN(40), opts...)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A version that is delivered while a response is on its way replaces the older one of the
// response, and a response replaces what was delivered before its page was requested.
func TestReadVersions(t *testing.T) {
	var onResponse func(page int)
	pages := 0
	s := newWearableService(t, func(next http.RoundTripper) http.RoundTripper {
		return transportFunc(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			pages++
			onResponse(pages)
			return resp, err
		})
	}, labhealthtest.WithSamplesPerPage(2))
	add := func(opts ...labhealthtest.DataOption) {
		t.Helper()
		if err := s.AddSamples(s.user, "glucose", 4, append(opts, labhealthtest.StartingAt(longAgo))...); err != nil {
			t.Fatal(err)
		}
	}
	deliver := func() {
		t.Helper()
		add()
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// read calls onPage after the events of each page, before the next one is requested.
	read := func(onPage func(page int)) (events []*webhooks.Event) {
		t.Helper()
		pages = 0
		for event, err := range webhooks.ReadSamples(t.Context(), s.client, s.user, "glucose", allSamples) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
			onPage(len(events))
		}
		return events
	}
	values := func(events ...*webhooks.Event) (values []float64) {
		for _, event := range events {
			for _, sample := range event.Data.(*webhooks.Samples).Data {
				values = append(values, sample.Value)
			}
		}
		return values
	}
	check := func(name string, events []*webhooks.Event, want []float64) {
		t.Helper()
		for _, order := range [][]*webhooks.Event{events, reversed(events)} {
			var latest webhooks.Latest
			apply(t, &latest, order...)
			var got []float64
			for _, sample := range latest.Samples() {
				got = append(got, sample.Value)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}

	add(labhealthtest.Undelivered())
	onResponse = func(page int) {
		if page == 2 {
			deliver()
		}
	}
	events := read(func(int) {})
	delivered := s.take(t)
	check("delivered after the responses", append(events, delivered...), values(delivered...))

	onResponse = func(int) {}
	events = read(func(page int) {
		if page == 1 {
			deliver()
			add(labhealthtest.Undelivered())
		}
	})
	delivered = s.take(t)
	want := append(values(delivered...)[:2], values(events[1])...)
	check("delivered between the pages", append(events, delivered...), want)
	if len(events) != 2 || slices.Equal(want, values(delivered...)) {
		t.Error("the versions are the same")
	}
}

func reversed(events []*webhooks.Event) []*webhooks.Event {
	events = slices.Clone(events)
	slices.Reverse(events)
	return events
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// respond returns a client whose requests get the responses of a function of the URL, and a list of
// those URLs.
func respond(t testing.TB, body func(url string) string) (*labhealth.Client, *[]string) {
	t.Helper()
	urls := new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*urls = append(*urls, r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body(r.URL.String()))
	}))
	t.Cleanup(server.Close)
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	client, err := labhealth.NewClient("key", labhealth.WithBaseURL(server.URL), labhealth.WithHTTPClient(&http.Client{Transport: own}))
	if err != nil {
		t.Fatal(err)
	}
	return client, urls
}

var readUser = uuid.MustParse("0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4")

// The provider of a group is that of its source or, if it has none, the key of its map.
func TestReadSamplesProvider(t *testing.T) {
	const data = `"data":[{"timestamp":"2025-03-01T12:00:00Z","type":"ring","unit":"bpm","value":60,"unit_system":"si"}]`
	for source, want := range map[string]string{
		`"source":{"provider":"oura","type":"ring"},`:                          "oura",
		`"source":{"name":"Oura","slug":"oura","logo":""},`:                    "oura",
		`"source":{"provider":"unknown","slug":"oura"},`:                       "oura",
		`"provider":{"slug":"oura"},`:                                          "oura",
		`"source":{"provider":null},`:                                          "the_key",
		`"source":{"provider":"","type":"ring","app_id":"x"},"provider":null,`: "the_key",
		`"source":null,`: "the_key",
		``:               "the_key",
	} {
		client, _ := respond(t, func(string) string { return `{"groups":{"the_key":[ { ` + source + data + ` } ]}}` })
		events := collect(t, webhooks.ReadSamples(t.Context(), client, readUser, "heartrate", allSamples))
		if len(events) != 1 {
			t.Fatalf("%s: %d events", source, len(events))
		}
		keys, err := events[0].Keys()
		key := webhooks.SampleKey{UserID: readUser, Resource: "heartrate", Provider: want, SourceType: "ring", UnixNano: 1740830400000000000}
		if err != nil || !slices.Equal(keys.Samples, []webhooks.SampleKey{key}) {
			t.Errorf("%s: %+v, %v", source, keys.Samples, err)
		}
		if raw := string(events[0].Data.(*webhooks.Samples).Data[0].RawJSON()); !strings.Contains(raw, `"unit_system":"si"`) {
			t.Errorf("%s: the sample is %s", source, raw)
		}
	}
	client, _ := respond(t, func(string) string { return `{"groups":{"unknown":[{ }],"x":[{}, 7]}}` })
	events := collect(t, webhooks.ReadSamples(t.Context(), client, readUser, "heartrate", allSamples))
	if len(events) != 3 || events[2].Err() != webhooks.ErrUnreadable {
		t.Errorf("%v", events)
	}
}

// Groups without samples are left out. What is not a list of groups is not lost.
func TestReadOddGroups(t *testing.T) {
	const group = `{"source":{"provider":"oura","type":"ring"},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":60}]}`
	for groups, want := range map[string]string{
		`{}`:                                     "",
		`{"oura":null}`:                          "",
		`{"oura":[null]}`:                        "",
		`{"oura":[{"data":null},` + group + `]}`: "1 <nil>\n",
		`{"oura":[{"data":[]}]}`:                 "0 <nil>\n",
		`{"oura":` + group + `}`:                 "1 <nil>\n",
		`{"a":"x","oura":[` + group + `],"z":null}`: "1 <nil>\n0 webhooks: some of the data cannot be read\n",
		`{"oura":[[],{"data":{}}]}`:                 "0 <nil>\n0 <nil>\n",
		`{"oura":[["x"],{"data":{"a":1}}]}`:         "0 webhooks: some of the data cannot be read\n0 webhooks: the summary has no readable id\n",
	} {
		client, _ := respond(t, func(string) string { return `{"groups":` + groups + `}` })
		got := ""
		var latest webhooks.Latest
		for _, event := range collect(t, webhooks.ReadSamples(t.Context(), client, readUser, "heartrate", allSamples)) {
			changes, err := latest.Apply(webhooks.Delivery{Event: event})
			got += fmt.Sprintln(changes.Added, err)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", groups, got, want)
		}
	}
}

// Data of another user is not stored, in whatever form its ID is.
func TestReadOtherUser(t *testing.T) {
	for id, isOther := range map[string]bool{
		`"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"`:          true,
		`"3C1F8F43-0D1C-4F55-9A0B-2F1F6F0B7C11"`:          true,
		`"3c1f8f430d1c4f559a0b2f1f6f0b7c11"`:              true,
		`"urn:uuid:3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"`: true,
		`"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"`:          false,
		`"0B8F3A1E6D574C7E8F432A9D51C0E7B4"`:              false,
		`"00000000-0000-0000-0000-000000000000"`:          false,
		`null`:                                            false,
	} {
		data := `{"id":"9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f31","user_id":` + id + `,"data":[]}`
		client, _ := respond(t, func(string) string { return `{"groups":{"oura":[` + data + `]},"sleep":[` + data + `]}` })
		for name, list := range map[string]iter.Seq2[*webhooks.Event, error]{
			"summaries": webhooks.ReadSummaries(t.Context(), client, readUser, "sleep", labhealth.ListSummariesParams{StartDate: labhealth.DateOf(time.Now())}),
			"samples":   webhooks.ReadSamples(t.Context(), client, readUser, "hrv", allSamples),
		} {
			for event, err := range list {
				if isOther != (event == nil) || isOther != errors.Is(err, webhooks.ErrPermanent) {
					t.Errorf("%s of %s: %v, %v", name, id, event, err)
				}
			}
		}
	}
}

// variants yields copies of a JSON value with one value in it replaced.
func variants(value any, replacements []any) iter.Seq[any] {
	return func(yield func(any) bool) {
		for _, replacement := range replacements {
			if !yield(replacement) {
				return
			}
		}
		switch value := value.(type) {
		case map[string]any:
			for name := range value {
				for variant := range variants(value[name], replacements) {
					changed := maps.Clone(value)
					changed[name] = variant
					if !yield(changed) {
						return
					}
				}
			}
		case []any:
			for i := range value {
				for variant := range variants(value[i], replacements) {
					changed := slices.Clone(value)
					changed[i] = variant
					if !yield(changed) {
						return
					}
				}
			}
		}
	}
}

// Whatever is in the place of a value, every sample or summary of the response is stored, or there
// is an error.
func TestReadLosesNothingSilently(t *testing.T) {
	var body string
	client, _ := respond(t, func(string) string { return body })
	samples := webhooks.ReadSamples(t.Context(), client, readUser, "heartrate", allSamples)
	day := labhealth.ListSummariesParams{StartDate: labhealth.DateOf(time.Now())}
	for _, test := range []struct {
		resource string
		list     iter.Seq2[*webhooks.Event, error]
		page     string
		mark     string // what each sample or summary has
		variants int
	}{
		{"heartrate", samples, `{"groups":{
			"oura":[
				{"source":{"provider":"oura","type":"ring"},"data":[
					{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":60},{"timestamp":"2025-03-01T12:01:00Z","unit":"bpm","value":61}]},
				{"source":{"slug":"oura"},"data":[{"timestamp":"2025-03-01T12:00:00Z","type":"chest_strap","unit":"bpm","value":62}]}],
			"fitbit":[{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","provider":{"slug":"fitbit"},"data":[{"start":"2025-03-01T12:00:00Z","unit":"bpm","value":63}]}]
			},"next_cursor":null}`, `"value":6`, 324},
		{"meal", webhooks.ReadSummaries(t.Context(), client, readUser, "meal", day), `{"count":1,"meals":[
			{"id":"9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f31","source":{"provider":"oura"},"data":{"oats":{"energy":{"unit":"kcal","value":380}}}},
			{"id":"9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f32","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","updated_at":null}
			]}`, `"9a2c4e60`, 144},
		{"profile", webhooks.ReadSummaries(t.Context(), client, readUser, "profile", day),
			`{"id":"9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f31","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","height":180,"source":{"x":1}}`, `"9a2c4e60`, 54},
	} {
		var page any
		if err := json.Unmarshal([]byte(test.page), &page); err != nil {
			t.Fatal(err)
		}
		n := 0
		for variant := range variants(page, []any{nil, true, 7, "x", "", []any{}, []any{nil}, map[string]any{}, map[string]any{"x": nil}}) {
			n++
			document, err := json.Marshal(variant)
			if err != nil {
				t.Fatal(err)
			}
			body = string(document)
			var latest webhooks.Latest
			failed := false
			for event, err := range test.list {
				if err == nil {
					_, err = latest.Apply(webhooks.Delivery{Event: event})
				}
				failed = failed || err != nil
			}
			stored := 0
			count := func(user uuid.UUID, resource string) {
				stored++
				if user != readUser || resource != test.resource {
					t.Errorf("%s: %s of %v", body, resource, user)
				}
			}
			for key := range latest.Samples() {
				count(key.UserID, key.Resource)
			}
			for key := range latest.Summaries() {
				count(key.UserID, key.Resource)
			}
			if want := strings.Count(body, test.mark); stored < want && !failed {
				t.Errorf("%d of %d are stored: %s", stored, want, body)
			}
		}
		if n != test.variants {
			t.Errorf("%s: %d variants", test.resource, n)
		}
	}
}

// Data that cannot be read is an event like a delivered one. Data of another user ends the
// iteration.
func TestReadOddData(t *testing.T) {
	const id = "3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"
	client, _ := respond(t, func(string) string {
		return `{"sleep":[{"id":"` + id + `","total":1}, "text", {"total":2}, {"id":"` + id + `","user_id":"` + id + `"}, {"id":"` + id + `"}]}`
	})
	var got []string
	for event, err := range webhooks.ReadSummaries(t.Context(), client, readUser, labhealth.SummarySleep, labhealth.ListSummariesParams{StartDate: labhealth.DateOf(time.Now())}) {
		if err != nil {
			got = append(got, strings.TrimSpace(fmt.Sprintln("error:", err, event == nil, errors.Is(err, webhooks.ErrPermanent))))
			continue
		}
		_, keyErr := event.Keys()
		got = append(got, fmt.Sprint(event.Type, " ", event.Err(), " ", keyErr))
	}
	want := []string{
		"daily.data.sleep.updated <nil> <nil>",
		"daily.data.sleep.updated webhooks: some of the data cannot be read <nil>",
		"daily.data.sleep.updated <nil> webhooks: the summary has no readable id",
		"error: webhooks: the response has data of another user true true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A long period is read in parts that overlap.
func TestReadSummariesOfLongPeriods(t *testing.T) {
	client, urls := respond(t, func(string) string { return `{"body":[{},{}]}` })
	date := func(text string) labhealth.Date {
		d, err := labhealth.ParseDate(text)
		if err != nil && text != "" {
			t.Fatal(err)
		}
		return d
	}
	for _, test := range []struct {
		resource   labhealth.SummaryResource
		start, end string
		want       []string // start and end of the requests
		events     int
	}{
		{"body", "2024-01-01", "2025-02-01", []string{"2024-01-01 2024-06-29", "2024-06-27 2024-12-24", "2024-12-22 2025-02-01"}, 6},
		{"body", "2024-01-01", "2024-03-01", []string{"2024-01-01 2024-03-01"}, 2},
		{"body", "2024-01-01", "2023-01-01", []string{"2024-01-01 2023-01-01"}, 2},
		{"menstrual_cycle", "2020-01-01", "2025-02-01", []string{"2020-01-01 2025-02-01"}, 2},
		{"profile", "", "", []string{" "}, 2},
	} {
		params := labhealth.ListSummariesParams{StartDate: date(test.start), EndDate: date(test.end), Provider: "oura"}
		list := webhooks.ReadSummaries(t.Context(), client, readUser, test.resource, params)
		for range 2 { // the iterator can be used again
			*urls = nil
			events := collect(t, list)
			var got []string
			for _, sent := range *urls {
				r := httptest.NewRequest("GET", sent, nil)
				got = append(got, r.FormValue("start_date")+" "+r.FormValue("end_date"))
			}
			if !slices.Equal(got, test.want) || len(events) != test.events {
				t.Errorf("%s: %d events, requests %q", test.resource, len(events), got)
			}
		}
	}
	// The end is today, and the last request leaves it to the service. A far end is not read.
	start := time.Now().UTC().AddDate(0, 0, -400)
	for _, end := range []labhealth.Date{{}, {Year: 9999, Month: 12, Day: 31}} {
		*urls = nil
		collect(t, webhooks.ReadSummaries(t.Context(), client, readUser, "body", labhealth.ListSummariesParams{StartDate: labhealth.DateOf(start), EndDate: end}))
		if len(*urls) != 3 || strings.Contains((*urls)[2], "end_date") == end.IsZero() {
			t.Errorf("%q", *urls)
		}
	}
}

// The iterators stop at the first error and when the loop ends.
func TestReadStops(t *testing.T) {
	for name, response := range map[string]string{"not JSON": "x", "no list": "{}", "the same cursor": `{"groups":{"a":[{}]},"sleep":[],"next_cursor":"b"}`} {
		client, urls := respond(t, func(string) string { return response })
		for resource, list := range map[string]iter.Seq2[*webhooks.Event, error]{
			"summaries": webhooks.ReadSummaries(t.Context(), client, readUser, "sleep", allSummaries),
			"samples":   webhooks.ReadSamples(t.Context(), client, readUser, "hrv", allSamples),
		} {
			*urls = nil
			failed := 0
			for event, err := range list {
				if err != nil {
					failed++
				}
				if (event == nil) != (err != nil) {
					t.Errorf("%s of %s: %v and %v", resource, name, event, err)
				}
			}
			if want := name != "the same cursor" || resource == "samples"; want != (failed == 1) || failed > 1 {
				t.Errorf("%s of %s: %d errors", resource, name, failed)
			}
		}
	}
	client, urls := respond(t, func(string) string {
		return `{"sleep":[{},{}],"groups":{"a":[{},{}]},"next_cursor":"b"}`
	})
	for range webhooks.ReadSummaries(t.Context(), client, readUser, "sleep", allSummaries) {
		break
	}
	for range webhooks.ReadSamples(t.Context(), client, readUser, "hrv", allSamples) {
		break
	}
	if len(*urls) != 2 {
		t.Errorf("%q", *urls)
	}
}
