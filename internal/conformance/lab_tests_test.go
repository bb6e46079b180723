//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

const labTestJSON = `{
	"id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "slug": "lipid-panel", "name": "Lipid Panel", "sample_type": "serum",
	"method": "walk_in_test", "price": 45.0, "is_active": true, "status": "active", "fasting": true,
	"lab": {"id": 27, "slug": "example-lab", "name": "Example Laboratories", "first_line_address": "1 Lab Way", "city": "Reno",
		"zipcode": "89501", "collection_methods": ["walk_in_test"], "sample_types": ["serum"], "logo_url": null},
	"markers": [{"id": 901, "name": "Total Cholesterol", "slug": "total-cholesterol", "price": "N/A", "lab_id": 27, "type": "biomarker",
		"aoe": {"questions": [{"id": 1234567890251, "code": "PURPOSE", "value": "Purpose", "required": true, "type": "choice", "sequence": 1,
			"answers": [{"id": 1, "code": "I", "value": "Initial"}]}]}}],
	"common_tat_days": 3, "description": "not in the specification"
}`

func wantLabTest() labhealth.LabTest {
	return labhealth.LabTest{
		ID: labTestID, Slug: "lipid-panel", Name: "Lipid Panel", SampleType: labhealth.SampleTypeSerum, Method: labhealth.CollectionMethodWalkInTest,
		Price: "45.0", IsActive: true, Status: labhealth.LabTestStatusActive, Fasting: true,
		Lab: &labhealth.Lab{ID: 27, Slug: "example-lab", Name: "Example Laboratories", FirstLineAddress: "1 Lab Way", City: "Reno", Zipcode: "89501",
			CollectionMethods: []labhealth.LabTestCollectionMethod{"walk_in_test"}, SampleTypes: []labhealth.LabTestSampleType{"serum"}},
		Markers: []labhealth.Marker{{
			ID: 901, Name: "Total Cholesterol", Slug: "total-cholesterol", Price: new("N/A"), LabID: new(int64(27)),
			Type: new(labhealth.MarkerTypeBiomarker), IsOrderable: new(true),
			AoE: &labhealth.AoE{Questions: []labhealth.AoEQuestion{{
				ID: 1234567890251, Code: "PURPOSE", Value: "Purpose", Required: new(true), Type: new(labhealth.AoEQuestionTypeChoice),
				Sequence: new(int64(1)), Answers: []labhealth.AoEAnswerOption{{ID: 1, Code: "I", Value: "Initial"}},
			}}},
		}},
		CommonTATDays: new(int64(3)),
	}
}

// The forms of lists of lab tests: paged, as a bare list, and with each element wrapped.
func TestListLabTests(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       labhealth.LabTestPage
	}{
		{"a page", `{"data":[` + labTestJSON + `],"next_cursor":"bmV4dA==","pricing":{"data":{"x":{"pricing":{"base_amount_minor":4500}}}}}`,
			labhealth.LabTestPage{Data: []labhealth.LabTest{wantLabTest()}, NextCursor: new("bmV4dA=="), Pricing: &labhealth.LabTestPricing{
				Currency: "USD", Data: map[string]labhealth.LabTestPanelPricing{"x": {Pricing: labhealth.Pricing{BaseAmountMinor: new(int64(4500))}}}}}},
		{"the last page", `{"data":[],"next_cursor":null}`, labhealth.LabTestPage{Data: []labhealth.LabTest{}}},
		{"a bare list", `[` + labTestJSON + `]`, labhealth.LabTestPage{Data: []labhealth.LabTest{wantLabTest()}}},
		{"an empty list", " [ ] ", labhealth.LabTestPage{Data: []labhealth.LabTest{}}},
		{"wrapped", `{"data":[{"lab_test":` + labTestJSON + `},` + labTestJSON + `],"next_cursor":null}`,
			labhealth.LabTestPage{Data: []labhealth.LabTest{wantLabTest(), wantLabTest()}}},
		{"a bare list, wrapped", `[{"lab_test":` + labTestJSON + `}]`, labhealth.LabTestPage{Data: []labhealth.LabTest{wantLabTest()}}},
		{"reduced", `{"data":[{"name":"Lipid Panel","method":"testkit","lab":null,"markers":null},{"lab_test":7},{"lab_test":null}]}`,
			labhealth.LabTestPage{Data: []labhealth.LabTest{{Name: "Lipid Panel", Method: "testkit"}, {}, {}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _ := scripted(t, []reply{{status: 200, body: test.body}, {status: 200, body: test.body}})
			got := must[*labhealth.LabTestPage](t)(client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{}))
			equal(t, &test.want, got)
			equal(t, 0, len(got.Malformed()))
			for _, l := range got.Data {
				if l.ID != uuid.Nil {
					equal(t, labTestJSON, string(l.RawJSON()))
				}
			}
			old := must[[]labhealth.LabTest](t)(client.LabTests.ListDeprecated(t.Context(), labhealth.ListLabTestsParams{}))
			equal(t, test.want.Data, old)
		})
	}
}

// The deprecated list is one response, which may be larger than others.
func TestListLabTestsDeprecatedLimit(t *testing.T) {
	large := `[{"description":"` + strings.Repeat("x", 9<<20) + `"},` + labTestJSON + `]`
	client, _ := scripted(t, []reply{{status: 200, body: large}, {status: 200, body: large}, {status: 200, body: large}})
	got := must[[]labhealth.LabTest](t)(client.LabTests.ListDeprecated(t.Context(), labhealth.ListLabTestsParams{}))
	equal(t, wantLabTest(), got[1])
	const tooLarge = ": the response (status 200) could not be read: the response is larger than the limit"
	_, err := client.LabTests.ListDeprecated(t.Context(), labhealth.ListLabTestsParams{}, labhealth.WithCallBodyLimit(8<<20))
	equal(t, "labhealth: GET /v3/lab_tests"+tooLarge, errorText(err))
	_, err = client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{})
	equal(t, "labhealth: GET /v3/lab_test"+tooLarge, errorText(err))
}

// An empty page with a cursor is valid in every list: iteration goes on, for up to 100 such pages
// in a row.
func TestEmptyPagesWithACursor(t *testing.T) {
	const us, sandbox = labhealth.RegionUS, labhealth.TeamEnvironmentSandbox
	ctx := t.Context()
	type all func(*testing.T, []reply) (n, requests int, err error)
	team := func(list func(*labhealth.Client) (int, error)) all {
		return func(t *testing.T, replies []reply) (int, int, error) {
			client, s := scripted(t, replies)
			n, err := list(client)
			return n, len(s.sent), err
		}
	}
	organisation := func(list func(*labhealth.ManagementClient) (int, error)) all {
		return func(t *testing.T, replies []reply) (int, int, error) {
			client, s := managing(t, replies)
			n, err := list(client)
			return n, len(s.sent), err
		}
	}
	for _, test := range []struct {
		list, id string
		all      all
	}{
		{"data", "id", team(func(c *labhealth.Client) (int, error) {
			return count(c.LabTests.All(ctx, labhealth.ListLabTestsParams{}))
		})},
		{"data", "user_id", team(func(c *labhealth.Client) (int, error) {
			return count(c.Users.AllHistoricalPulls(ctx, labhealth.ListHistoricalPullsParams{}))
		})},
		{"teams", "id", organisation(func(c *labhealth.ManagementClient) (int, error) {
			return count(c.Teams.All(ctx, labhealth.ListTeamsParams{}))
		})},
		{"data", "id", organisation(func(c *labhealth.ManagementClient) (int, error) {
			return count(c.Keys.All(ctx, labhealth.ListManagementKeysParams{}))
		})},
		{"data", "id", organisation(func(c *labhealth.ManagementClient) (int, error) {
			return count(c.Webhooks.All(ctx, testTeam, sandbox, labhealth.ListWebhooksParams{}))
		})},
		{"api_keys", "id", organisation(func(c *labhealth.ManagementClient) (int, error) {
			return count(c.TeamAPIKeys.All(ctx, sandbox, us, labhealth.ListTeamAPIKeysParams{}))
		})},
		{"credentials", "id", organisation(func(c *labhealth.ManagementClient) (int, error) {
			return count(c.CustomCredentials.All(ctx, sandbox, us, labhealth.ListTeamCustomCredentialsParams{}))
		})},
		{"pipelines", "team_id", organisation(func(c *labhealth.ManagementClient) (int, error) {
			return count(c.Pipelines.All(ctx, sandbox, us, labhealth.ListETLPipelinesParams{}))
		})},
	} {
		empty := func(n int) reply {
			return reply{status: 200, body: fmt.Sprintf(`{%q:[],"next_cursor":"c%d"}`, test.list, n)}
		}
		full := func(n int, next string) reply {
			return reply{status: 200, body: fmt.Sprintf(`{%q:%s,"next_cursor":%s}`, test.list, elements(test.id, n, n), next)}
		}
		n, requests, err := test.all(t, []reply{empty(1), full(1, `"c2"`), empty(3), empty(4), full(2, `"c5"`), empty(6), {status: 200, body: fmt.Sprintf(`{%q:[],"next_cursor":null}`, test.list)}})
		if n != 2 || err != nil || requests != 7 {
			t.Errorf("%s: %d elements, %v, %d requests", test.list, n, err, requests)
		}
		many := []reply{full(1, `"c0"`)}
		for n := range 99 {
			many = append(many, empty(n+1))
		}
		n, _, err = test.all(t, append(slices.Clone(many), full(2, "null")))
		if n != 2 || err != nil {
			t.Errorf("%s, 99 empty pages: %d elements, %v", test.list, n, err)
		}
		n, requests, err = test.all(t, append(many, empty(100)))
		var bad *labhealth.DecodeError
		if n != 1 || requests != 101 || !errors.As(err, &bad) || bad.Reason != "it is the 100th empty page in a row although more is to come" {
			t.Errorf("%s, 100 empty pages: %d elements, %v, %d requests", test.list, n, err, requests)
		}
	}
}

// catalogue is a transport that responds with pages of n lab tests.
type catalogue struct {
	n        int
	requests atomic.Int64
}

func (c *catalogue) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	from, _ := strconv.Atoi(query.Get("next_cursor"))
	limit, _ := strconv.Atoi(query.Get("lab_test_limit"))
	var b strings.Builder
	b.WriteString(`{"data":[`)
	for i := from; i < min(from+limit, c.n); i++ {
		if i > from {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"5b41f610-ebc5-4803-8f0c-%012d","name":"Panel %d","price":45.00,"lab":{"id":27,"name":"Example Laboratories"},"markers":[{"id":901}]}`, i, i)
	}
	if from+limit < c.n {
		fmt.Fprintf(&b, `],"next_cursor":"%d"}`, from+limit)
	} else {
		b.WriteString(`],"next_cursor":null}`)
	}
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Request: req, Body: io.NopCloser(strings.NewReader(b.String())), ContentLength: int64(b.Len()),
	}, nil
}

func paging(t testing.TB, n int) (*labhealth.Client, *catalogue) {
	t.Helper()
	c := &catalogue{n: n}
	client, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithHTTPClient(&http.Client{Transport: c}))
	if err != nil {
		t.Fatal(err)
	}
	return client, c
}

// An iterator yields many lab tests once and in order, and the live heap does not grow with them.
func TestLabTestPagesMemory(t *testing.T) {
	n := 20_000
	if long {
		n = 100_000
	}
	client, c := paging(t, n)
	before, most, i := liveHeap(), int64(0), 0
	for l, err := range client.LabTests.All(t.Context(), labhealth.ListLabTestsParams{LabTestLimit: 500}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("Panel %d", i); l.Name != want {
			t.Fatalf("%q, want %q", l.Name, want)
		}
		if i++; i%10_000 == 250 {
			most = max(most, liveHeap()-before)
		}
	}
	equal(t, n, i)
	equal(t, int64(n/500), c.requests.Load())
	t.Logf("the live heap grew by at most %d KiB", most>>10)
	if most > 2<<20 {
		t.Errorf("the live heap grew by %d KiB", most>>10)
	}
}

// An iterator can be ranged over again, requests no page after its loop ends, starts at its cursor,
// and can be used by several goroutines.
func TestLabTestIteratorsRestart(t *testing.T) {
	client, c := paging(t, 25)
	all := client.LabTests.All(t.Context(), labhealth.ListLabTestsParams{LabTestLimit: 10})
	count := func() (n int) {
		for _, err := range all {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		return n
	}
	equal(t, 25, count())
	equal(t, 25, count())
	equal(t, int64(6), c.requests.Load())
	for range all {
		break
	}
	equal(t, int64(7), c.requests.Load())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { equal(t, 25, count()) })
	}
	group.Wait()
	n := 0
	for range client.LabTests.All(t.Context(), labhealth.ListLabTestsParams{LabTestLimit: 10, NextCursor: "20"}) {
		n++
	}
	equal(t, 5, n)
}

// With the embedded service, lab tests that are added during iteration change no page.
func TestLabTestsOfTheService(t *testing.T) {
	srv := labhealthtest.NewServer(t, labhealthtest.WithSeed(1))
	client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	srv.AddLabTests(120)
	var names []string
	for l, err := range client.LabTests.All(t.Context(), labhealth.ListLabTestsParams{Name: "panel ", LabTestLimit: 7, LabSlug: "example-lab", MarkerIDs: []int64{901}}) {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, 0, len(l.Malformed()))
		if len(names) == 50 {
			srv.AddLabTests(5)
		}
		names = append(names, l.Name)
	}
	want := []string{"Lipid Panel Testkit", "Lipid Panel at Home", "Lipid Panel on Site"}
	for i := range 125 {
		want = append(want, fmt.Sprintf("Panel %d", i+1))
	}
	equal(t, want, names)
	old := must[[]labhealth.LabTest](t)(client.LabTests.ListDeprecated(t.Context(), labhealth.ListLabTestsParams{Status: labhealth.LabTestStatusInactive}))
	equal(t, 1, len(old))
	equal(t, "Old Lipid Panel", old[0].Name)
	_, err := client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{OrderKey: "shoe size"})
	equal(t, "labhealth: GET /v3/lab_test: 422 Unprocessable Entity: query.order_key (enum)", strings.Split(errorText(err), " (request")[0])
	_, err = client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{NextCursor: "made up"})
	equal(t, true, errors.As(err, new(*labhealth.APIError)))
}
