//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
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

// Encoding a page with wrapped lab tests loses nothing of it, also after a change.
func TestWrappedLabTestsAreLossless(t *testing.T) {
	const first = `{"rank":1,"lab_test":{"id":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01","name":"Lipid Panel","new":[1]},"offer":{"until":"2030"}}`
	const second = `{"id":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f02","name":"Lead"}`
	for _, bare := range []bool{false, true} {
		body := "[" + first + "," + second + "]"
		page := `{"data":` + body + `,"next_cursor":null}`
		if !bare {
			body = page
		}
		client, _ := scripted(t, []reply{{status: 200, body: body}})
		got := must[*labhealth.LabTestPage](t)(client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{}))
		equal(t, page, encoded(t, got))
		got.Data[0].Name = "Lipids"
		got.Data[0], got.Data[1] = got.Data[1], got.Data[0]
		want := `{"data":[` + second + `,` + strings.Replace(first, "Lipid Panel", "Lipids", 1) + `],"next_cursor":null}`
		equal(t, want, encoded(t, got))
		equal(t, `{"id":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01","name":"Lipids","new":[1]}`, encoded(t, got.Data[1]))
	}
	// A malformed field of a wrapped lab test has its path on the page.
	client, _ := scripted(t, []reply{{status: 200, body: `{"data":[{"lab_test":{"id":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01","price":"free"}}],"next_cursor":null}`}})
	got := must[*labhealth.LabTestPage](t)(client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{}))
	equal(t, []labhealth.Malformed{{Path: "data.0.lab_test.price", Want: "number"}}, got.Malformed())
	equal(t, []labhealth.Malformed{{Path: "price", Want: "number"}}, got.Data[0].Malformed())
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A price modifier is one amount or a range of amounts, and a price may be missing.
func TestPricing(t *testing.T) {
	const body = `{"markers":[],"total":0,"page":1,"size":50,"pages":0,"pricing":{"currency":null,"data":{
		"901":{"base_amount_minor":1000,"modifiers":[
			{"delta_amount_minor":-250,"conditions":{"us_state":{"any_of":["NY","NJ"]}}},
			{"delta_amount_minor":{"minimum":100,"maximum":900,"typical":500},"conditions":{"us_state":null,"reflex":{}}}]},
		"902":{"unspecified":"refer_to_contract"},
		"903":{"base_amount_minor":"7","modifiers":null,"tiers":[1,2]}}}}`
	client, _ := scripted(t, []reply{{status: 200, body: body}})
	got := must[*labhealth.MarkerPage](t)(client.LabTests.Markers(t.Context(), labhealth.ListMarkersParams{IncludePricing: true}))
	equal(t, &labhealth.MarkerPricing{Currency: "USD", Data: map[string]labhealth.Pricing{
		"901": {BaseAmountMinor: new(int64(1000)), Modifiers: []labhealth.PricingModifier{
			{
				DeltaAmountMinor: labhealth.PricingModifierRange{Minimum: -250, Maximum: -250},
				Conditions:       labhealth.PricingConditions{USState: &labhealth.USStatePricingCondition{AnyOf: []string{"NY", "NJ"}}},
			},
			{
				DeltaAmountMinor: labhealth.PricingModifierRange{Minimum: 100, Maximum: 900},
				Conditions:       labhealth.PricingConditions{Reflex: json.RawMessage(`{}`)},
			},
		}},
		"902": {Unspecified: new(labhealth.UnspecifiedPricingReferToContract)},
		"903": {},
	}}, got.Pricing)
	equal(t, []labhealth.Malformed{{Path: "pricing.data.903.base_amount_minor", Want: "integer"}}, got.Malformed())
	var compact bytes.Buffer
	_ = json.Compact(&compact, []byte(body))
	equal(t, compact.String(), encoded(t, got))
	// A change leaves the rest as it was.
	got.Pricing.Data["901"].Modifiers[0].DeltaAmountMinor.Maximum = 0
	equal(t, strings.Replace(compact.String(), `"delta_amount_minor":-250`, `"delta_amount_minor":{"minimum":-250,"maximum":0}`, 1), encoded(t, got))
}

// A POST that only reads is not repeated either, unless it was provably not processed.
func TestMarkersOfOrderSetAreNotRetried(t *testing.T) {
	client, s := scripted(t, []reply{{status: 503, body: `{}`}, {status: 200, body: `{"markers":[]}`}})
	_, err := client.LabTests.MarkersOfOrderSet(t.Context(), labhealth.OrderSetRequest{}, labhealth.ListMarkersOfOrderSetParams{})
	equal(t, labhealth.OutcomeUnknown, labhealth.OutcomeOf(err))
	equal(t, 1, len(s.sent))
}

// The deprecated list is one response, which may be larger than others.
func TestListLabTestsDeprecatedLimit(t *testing.T) {
	large := `[{"description":"` + strings.Repeat("x", 9<<20) + `"},` + labTestJSON + `]`
	client, _ := scripted(t, []reply{{status: 200, body: large}, {status: 200, body: large}})
	got := must[[]labhealth.LabTest](t)(client.LabTests.ListDeprecated(t.Context(), labhealth.ListLabTestsParams{}))
	equal(t, wantLabTest(), got[1])
	const tooLarge = ": 200 OK, but the response could not be read: applied (the response is larger than the limit: raise it with WithBodyLimit)"
	limited, _ := scripted(t, []reply{{status: 200, body: large}}, labhealth.WithBodyLimit(8<<20)) // holds for all operations
	_, err := limited.LabTests.ListDeprecated(t.Context(), labhealth.ListLabTestsParams{})
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
	organisation := func(list func(*management.Client) (int, error)) all {
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
		{"teams", "id", organisation(func(c *management.Client) (int, error) {
			return count(c.Teams.All(ctx, management.ListTeamsParams{}))
		})},
		{"data", "id", organisation(func(c *management.Client) (int, error) {
			return count(c.Keys.All(ctx, management.ListKeysParams{}))
		})},
		{"data", "id", organisation(func(c *management.Client) (int, error) {
			return count(c.Webhooks.All(ctx, testTeam, sandbox, management.ListWebhooksParams{}))
		})},
		{"api_keys", "id", organisation(func(c *management.Client) (int, error) {
			return count(c.TeamAPIKeys.All(ctx, sandbox, us, management.ListTeamAPIKeysParams{}))
		})},
		{"credentials", "id", organisation(func(c *management.Client) (int, error) {
			return count(c.CustomCredentials.All(ctx, sandbox, us, management.ListTeamCustomCredentialsParams{}))
		})},
		{"pipelines", "team_id", organisation(func(c *management.Client) (int, error) {
			return count(c.Pipelines.All(ctx, sandbox, us, management.ListETLPipelinesParams{}))
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
		again := append(slices.Clone(many), full(2, `"d0"`)) // only those in a row count
		for n := range 99 {
			again = append(again, empty(1000+n))
		}
		n, _, err = test.all(t, append(again, full(3, "null")))
		if n != 3 || err != nil {
			t.Errorf("%s, twice 99 empty pages: %d elements, %v", test.list, n, err)
		}
		n, requests, err = test.all(t, append(many, empty(100)))
		var bad *labhealth.DecodeError
		if n != 1 || requests != 101 || !errors.As(err, &bad) || bad.Reason != "it is the 100th empty page in a row although more is to come" {
			t.Errorf("%s, 100 empty pages: %d elements, %v, %d requests", test.list, n, err, requests)
		}
	}
}

// The public API reference makes the list of lab accounts optional: an empty object has none. An
// object with something else is no such response.
func TestNoLabAccounts(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: "", " { } ": "", `{"data":[]}`: "",
		`{"error":"e"}`: "it has no list", `{"data":"x"}`: "it has no list", `{"data":{}}`: "it has no list", `[]`: "it is not a JSON object",
	} {
		client, _ := respondingWith(t, 200, body)
		got, err := client.LabTests.LabAccounts(t.Context(), labhealth.ListLabAccountsParams{})
		if len(got) > 0 || (err == nil) != (want == "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}
