//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/canarytest"
)

const resultsJSON = `{
	"metadata": {
		"age": "35", "dob": "18/08/1990", "clia_#": "99D0000000", "patient": "Ada Example", "provider": "Jane Doctor",
		"laboratory": "Example Laboratories", "date_reported": "2025-03-04T12:00:00+00:00", "date_collected": "03/03/2025",
		"date_received": null, "specimen_number": "SPECIMEN-1", "interpretation": "critical", "patient_id": "P-1", "account_id": null,
		"species": "human"
	},
	"results": [
		{
			"name": "Total Cholesterol", "slug": "total-cholesterol", "result": "412", "result_type": "numeric", "value": 412.0, "unit": "mg/dL",
			"timestamp": "2025-03-04T12:00:00+00:00", "notes": "fasting", "reference_range": "0-200", "min_range_value": 0, "max_range_value": 200,
			"is_above_max_range": true, "is_below_min_range": false, "interpretation": "critical", "loinc": "2093-3",
			"loinc_slug": "cholesterol", "source_interpretation": "N", "provider_id": "P-901", "performing_laboratory": "Example Laboratories", "source_sample_id": "SAMPLE-1",
			"source_markers": [{"marker_id": 901, "name": "Total Cholesterol", "slug": "total-cholesterol", "provider_id": "P-901"}]
		},
		{"name": "Ketones", "result": "Negative", "type": "coded_value", "timestamp": "2025-03-04", "interpretation": null, "trend": [1, 2]}
	],
	"missing_results": [{
		"name": "HDL Cholesterol", "slug": "hdl", "inferred_failure_type": "quantity_not_sufficient_failure", "note": "too little",
		"loinc": "2085-9", "loinc_slug": "hdl", "provider_id": "P-902", "source_markers": [{"marker_id": 902, "name": "HDL", "slug": "hdl"}]
	}],
	"sample_information": {"SAMPLE-1": {
		"sample_id": "SAMPLE-1", "control_number": "C-1",
		"date_collected": {"timestamp": "2025-03-03T12:00:00+00:00", "timezone_offset": -18000},
		"date_received": "03/04/2025 08:15", "date_reported": "2025-03-04T12:00:00Z",
		"performing_laboratories": {"EL": {"name": "Example Laboratories", "phone_number": "+14155550124", "medical_director": "Jane Doctor",
			"address": {"first_line": "1 Lab Way", "country": "US", "zip": "89501", "city": "Reno", "state": "NV"}}},
		"clinical_information": {"notes": "none", "information": "fasting", "total_volume": "2 mL"}
	}},
	"order_transaction": {"id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", "status": "completed", "orders": []}
}`

func TestResults(t *testing.T) {
	client, _ := respondingWith(t, 200, resultsJSON)
	got := must[*labhealth.OrderResults](t)(client.Orders.Results(t.Context(), orderID))
	equal(t, 0, len(got.Malformed()))
	equal(t, resultsJSON, string(got.RawJSON()))
	equal(t, jsonData(t, resultsJSON), jsonData(t, mustEncode(t, got)))

	// Unknown fields stay beside a change.
	got.Results[1].Notes = new("seen")
	got.Metadata.Age = "36"
	want := strings.Replace(strings.Replace(resultsJSON, `"trend": [1, 2]`, `"trend": [1, 2], "notes": "seen"`, 1), `"age": "35"`, `"age": "36"`, 1)
	equal(t, jsonData(t, want), jsonData(t, mustEncode(t, got)))
}

// Other forms of results. Malformed fields are reported and keep their raw bytes.
func TestResultsOddShapes(t *testing.T) {
	for _, test := range []struct {
		name, body string
		malformed  []labhealth.Malformed
		want       labhealth.OrderResults
	}{
		{"results as an object", `{"metadata":{"status":"partial"},"results":{"total-cholesterol":{"value":182}}}`, nil,
			labhealth.OrderResults{Metadata: labhealth.ResultsMetadata{Status: labhealth.ResultsStatusPartial}}},
		{"results as text", `{"results":"none yet"}`, []labhealth.Malformed{{Path: "results", Want: "array"}}, labhealth.OrderResults{}},
		{"age as a number", `{"metadata":{"age":35,"patient":"Ada Example","status":null},"results":[]}`,
			nil,
			labhealth.OrderResults{Metadata: labhealth.ResultsMetadata{Age: "35", Patient: "Ada Example", Status: labhealth.ResultsStatusFinal}, Results: []labhealth.Result{}}},
		{"result as a number", `{"metadata":null,"results":[{"name":"Glucose","slug":null,"result":92,"value":"92","type":"numeric"}],"missing_results":null}`,
			[]labhealth.Malformed{{Path: "results.0.result", Want: "string"}, {Path: "results.0.value", Want: "number"}},
			labhealth.OrderResults{Results: []labhealth.Result{{
				Name: "Glucose", Type: new(labhealth.ResultTypeNumeric), Interpretation: labhealth.InterpretationNormal,
			}}}},
		{"new values", `{"metadata":{"status":"amended"},"results":[{"result":"x","result_type":"image","interpretation":"borderline"}],"missing_results":[{"inferred_failure_type":"lost_in_space"}]}`, nil,
			labhealth.OrderResults{Metadata: labhealth.ResultsMetadata{Status: "amended"},
				Results:        []labhealth.Result{{Result: "x", ResultType: new(labhealth.ResultType("image")), Interpretation: "borderline"}},
				MissingResults: []labhealth.MissingResult{{InferredFailureType: "lost_in_space"}}}},
		{"nothing", `{}`, nil, labhealth.OrderResults{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _ := respondingWith(t, 200, test.body)
			got := must[*labhealth.OrderResults](t)(client.Orders.Results(t.Context(), orderID))
			equal(t, &test.want, got)
			equal(t, test.malformed, got.Malformed())
			equal(t, test.body, mustEncode(t, got))
		})
	}
}

// Older orders have an object instead of the list. It is kept as received, also beside a change,
// and is not malformed.
func TestResultsThatAreAnObject(t *testing.T) {
	const body = `{"metadata":{"age":"35"},"results": {"glucose" : {"value":92.0, "unit":"mg/dL"}, "glucose": null},"missing_results":[]}`
	client, _ := respondingWith(t, 200, body)
	got := must[*labhealth.OrderResults](t)(client.Orders.Results(t.Context(), orderID))
	equal(t, `{"glucose" : {"value":92.0, "unit":"mg/dL"}, "glucose": null}`, string(got.LegacyResults()))
	equal(t, 0, len(got.Results))
	equal(t, 0, len(got.Malformed()))
	equal(t, body, string(must[[]byte](t)(got.MarshalJSON())))
	got.Metadata.Age = "36"
	equal(t, strings.Replace(body, `"35"`, `"36"`, 1), string(must[[]byte](t)(got.MarshalJSON())))
	for _, list := range []string{`{"results":[]}`, `{"results":null}`, `{}`, `{"results":"none"}`, `{"results":{},"results":[]}`} {
		var other labhealth.OrderResults
		if err := json.Unmarshal([]byte(list), &other); err != nil || other.LegacyResults() != nil {
			t.Errorf("%s: %s, %v", list, other.LegacyResults(), err)
		}
	}
	equal(t, json.RawMessage(nil), (&labhealth.OrderResults{}).LegacyResults())
}

func TestResultParse(t *testing.T) {
	number := func(n float64) labhealth.ResultValue { return labhealth.NumericResult{Value: n} }
	between := func(low, high float64) labhealth.ResultValue { return labhealth.RangeResult{Low: &low, High: &high} }
	below := func(high float64, strict bool) labhealth.ResultValue {
		return labhealth.RangeResult{High: &high, HighStrict: strict}
	}
	above := func(low float64, strict bool) labhealth.ResultValue {
		return labhealth.RangeResult{Low: &low, LowStrict: strict}
	}
	// Without want, the result cannot be parsed and keeps its type and text.
	for _, test := range []struct {
		kind labhealth.ResultType
		text string
		want labhealth.ResultValue
	}{
		{"numeric", "182", number(182)},
		{"numeric", "0", number(0)},
		{"numeric", "-0.5", number(-0.5)},
		{"numeric", "+3", number(3)},
		{"numeric", ".5", number(0.5)},
		{"numeric", "5.", number(5)},
		{"numeric", "1.5e3", number(1500)},
		{"numeric", "1E-2", number(0.01)},
		{"numeric", "  92 \n", number(92)},
		{"numeric", "<0.5", below(0.5, true)},
		{"numeric", "< 0.5", below(0.5, true)},
		{"numeric", "<=0.5", below(0.5, false)},
		{"numeric", "≤ 0.5", below(0.5, false)},
		{"numeric", "> 90", above(90, true)},
		{"numeric", " >=90 ", above(90, false)},
		{"numeric", "≥90", above(90, false)},
		{"numeric", "5-10", between(5, 10)},
		{"numeric", "1e400", nil},
		{"numeric", "-1e400", nil},
		{"numeric", "<1e400", nil},
		{"numeric", "Infinity", nil},
		{"numeric", "inf", nil},
		{"numeric", "NaN", nil},
		{"numeric", "0x1p-2", nil},
		{"numeric", "0x10", nil},
		{"numeric", "1_000", nil},
		{"numeric", "1,000", nil},
		{"numeric", "1 000", nil},
		{"numeric", "1e", nil},
		{"numeric", "e5", nil},
		{"numeric", ".", nil},
		{"numeric", "-", nil},
		{"numeric", "--5", nil},
		{"numeric", "12 mg/dL", nil},
		{"numeric", "<", nil},
		{"numeric", "<<5", nil},
		{"numeric", "= 5", nil},
		{"numeric", "5<", nil},
		{"numeric", "٣", nil},
		{"numeric", "", nil},
		{"numeric", " \t\n", nil},
		{"numeric", "Negative", nil},
		{"numeric", "Ada Example", nil},

		{"range", "5 - 10", between(5, 10)},
		{"range", "5 to 10", between(5, 10)},
		{"range", "5–10", between(5, 10)},
		{"range", "-5--1", between(-5, -1)},
		{"range", "-5 - 1", between(-5, 1)},
		{"range", "-5-1", between(-5, 1)},
		{"range", "1e-2-1e-1", between(0.01, 0.1)},
		{"range", "0.5-0.5", between(0.5, 0.5)},
		{"range", "7", between(7, 7)},
		{"range", "-7", between(-7, -7)},
		{"range", "<0.5", below(0.5, true)},
		{"range", "> -2", above(-2, true)},
		{"numeric", "> OR = 60", above(60, false)},
		{"numeric", "< OR = 9.9", below(9.9, false)},
		{"numeric", ">OR=60", above(60, false)},
		{"numeric", "  >  or  =  60 ", above(60, false)},
		{"numeric", "<\tOr =\u00a09.9", below(9.9, false)},
		{"numeric", "> = 60", above(60, false)},
		{"numeric", "< / = 9.9", below(9.9, false)},
		{"numeric", ">/=60", above(60, false)},
		{"numeric", "<\u00a00.5", below(0.5, true)},
		{"numeric", "\u202f≥\u20092", above(2, false)},
		{"range", "< OR = -1.5e1", below(-15, false)},
		{"range", "> or = .5", above(0.5, false)},
		{"range", "<5", below(5, true)}, // the forms of reference ranges
		{"range", "<=10.5", below(10.5, false)},
		{"range", ">3", above(3, true)},
		{"range", ">=7.25", above(7.25, false)},
		{"range", "1-10", between(1, 10)},
		{"range", "> OR = 2", above(2, false)},
		{"range", "5 TO 10", between(5, 10)},
		{"range", "5\u00a0–\u00a010", between(5, 10)},
		{"numeric", "> OR 60", nil},
		{"numeric", "OR = 60", nil},
		{"numeric", "> OR = ", nil},
		{"numeric", "> AND = 60", nil},
		{"numeric", "> OR = OR = 60", nil},
		{"numeric", "> < = 60", nil},
		{"numeric", ">== 60", nil},
		{"numeric", "> O R = 60", nil},
		{"numeric", "> OR = 60 mL/min", nil},
		{"range", "10-5", nil},
		{"range", "5-", nil},
		{"range", "-5-", nil},
		{"range", "5-10-15", nil},
		{"range", "<5-10", nil},
		{"range", "5-1e400", nil},
		{"range", "", nil},

		{"comment", "See the report. ", labhealth.CommentResult{Text: "See the report. "}},
		{"comment", "12", labhealth.CommentResult{Text: "12"}},
		{"comment", "", labhealth.CommentResult{}},
		{"coded_value", "Negative", labhealth.CodedResult{Code: "Negative"}},
		{"coded_value", " 260415000\n", labhealth.CodedResult{Code: "260415000"}},
		{"coded_value", "", labhealth.CodedResult{}},

		{"image", "12", nil},
		{"Numeric", "12", nil},
		{"", "12", nil},
	} {
		if test.want == nil {
			test.want = labhealth.UnparsedResult{Type: test.kind, Text: test.text}
		}
		other := labhealth.ResultType("something else")
		for name, r := range map[string]labhealth.Result{
			"result_type": {Result: test.text, ResultType: &test.kind},
			"type":        {Result: test.text, Type: &test.kind},
			"both":        {Result: test.text, ResultType: &test.kind, Type: &other},
		} {
			t.Run(fmt.Sprintf("%s %q by %s", test.kind, test.text, name), func(t *testing.T) { equal(t, test.want, r.Parse()) })
		}
	}
	equal(t, labhealth.ResultValue(labhealth.UnparsedResult{Text: "12"}), (&labhealth.Result{Result: "12"}).Parse())
}

// Parsed results redact themselves too.
func TestParsedResultsRedact(t *testing.T) {
	n := 412.5
	for _, v := range []labhealth.ResultValue{
		labhealth.NumericResult{Value: n}, labhealth.RangeResult{Low: &n, High: &n}, labhealth.CommentResult{Text: "412.5 Ada"},
		labhealth.CodedResult{Code: "412.5 Ada"}, labhealth.UnparsedResult{Type: "numeric", Text: "412.5 Ada"},
	} {
		var b bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%g"} {
			fmt.Fprintf(&b, verb+"\n", v)
			fmt.Fprintf(&b, verb+"\n", []labhealth.ResultValue{v})
			fmt.Fprintf(&b, verb+"\n", struct{ V labhealth.ResultValue }{v})
		}
		slog.New(slog.NewTextHandler(&b, canarytest.NoTime)).Info("result", "value", v)
		slog.New(slog.NewJSONHandler(&b, canarytest.NoTime)).Info("result", "value", v)
		for _, leak := range []string{"412", "Ada", "4.125", "0xc"} {
			if strings.Contains(b.String(), leak) {
				t.Errorf("%T shows %q:\n%s", v, leak, b.String())
			}
		}
	}
}

// An age is read as text or as a number, and encoded as it was received unless it is changed.
func TestAgeOfResults(t *testing.T) {
	for _, test := range []struct {
		age, want string
		malformed int
		changed   string
	}{
		{`19`, "19", 0, `"20"`}, {`"19"`, "19", 0, `"20"`}, {`19.50`, "19.50", 0, `"20"`}, {`1e1`, "1e1", 0, `"20"`}, {`-0`, "-0", 0, `"20"`}, {`"19Y"`, "19Y", 0, `"20"`},
		{`12345678901234567890`, "12345678901234567890", 0, `"20"`}, {`null`, "", 0, `"20"`}, {`""`, "", 0, `"20"`},
		{`true`, "", 1, `"20"`}, {`[19]`, "", 1, `"20"`}, {`{"years":19}`, "", 1, `"20"`},
	} {
		body := `{"metadata":{"age": ` + test.age + `,"patient":"Ada Example"},"results":[]}`
		var results labhealth.OrderResults
		if err := json.Unmarshal([]byte(body), &results); err != nil {
			t.Fatal(err)
		}
		equal(t, []any{test.age, test.want, test.malformed}, []any{test.age, results.Metadata.Age, len(results.Malformed())})
		equal(t, jsonData(t, body), jsonData(t, string(must[[]byte](t)(json.Marshal(&results)))))
		results.Metadata.Age = "20"
		want := `{"metadata":{"age":` + test.changed + `,"patient":"Ada Example"},"results":[]}`
		equal(t, jsonData(t, want), jsonData(t, string(must[[]byte](t)(json.Marshal(&results)))))
	}
}
