package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

var sinceMarch = labhealth.ListSummariesParams{StartDate: marchFirst}

// The list of summaries has the name of the resource, its plural or any other. Fields beside it do
// not hide it. A profile is not in a list.
func TestSummaries(t *testing.T) {
	one, two := `{"id": "9a2c4e60-8b1d-4f37-a5c9-0e7d6b5a4f31", "data": [1], "weight": 7.150e1}`, `{"id":null,"x":"\u00e9"}`
	list := one + ", " + two
	for _, test := range []struct {
		resource       labhealth.SummaryResource
		response, want string
	}{
		{labhealth.SummaryBody, `{"body": [` + list + `]}`, list},
		{labhealth.SummaryMeal, `{"meals": [` + list + `], "more": []}`, list},
		{"moon", `{"count": 2, "moons": [` + list + `]}`, list},
		{labhealth.SummarySleep, `{"sleep": []}`, ""},
		{labhealth.SummaryWorkouts, `[` + list + `]`, list},
		{labhealth.SummarySleep, `{"warnings": [], "sleep": [` + list + `]}`, list},
		{labhealth.SummarySleep, `{"id": "1", "sleep": [` + list + `], "user": {"id": "2"}}`, list},
		{labhealth.SummaryProfile, one, one},
	} {
		client, s := respondingWith(t, 200, test.response)
		page := must[*labhealth.SummaryPage](t)(client.Wearables.Summaries(t.Context(), userID, test.resource, sinceMarch))
		equal(t, "https://api.example.com/v2/summary/"+string(test.resource)+"/"+userID.String()+"?start_date=2025-03-01", s.only(t).URL)
		got := ""
		for i, summary := range page.Data {
			if i > 0 {
				got += ", "
			}
			got += string(summary)
		}
		equal(t, test.want, got)
		equal(t, true, page.Data != nil)
		equal(t, "{redacted}", fmt.Sprintf("%+v", page))
		if test.response[0] == '{' {
			equal(t, jsonData(t, test.response), jsonData(t, mustEncode(t, page)))
			var again labhealth.SummaryPage
			equal(t, nil, json.Unmarshal([]byte(test.response), &again))
			equal(t, page, &again)
		}
	}
	equal(t, `{"data":[{"id":"1"}]}`, mustEncode(t, labhealth.SummaryPage{Data: []json.RawMessage{json.RawMessage(`{"id":"1"}`)}}))
	for _, response := range []string{`{"sleep": null}`, `{}`, `{"sleep": {"id": 1}}`, `{"warnings": [], "sleep": null}`} {
		client, _ := respondingWith(t, 200, response)
		_, err := client.Wearables.Summaries(t.Context(), userID, labhealth.SummarySleep, sinceMarch)
		var unreadable *labhealth.DecodeError
		equal(t, true, errors.As(err, &unreadable))
	}
}

func TestWearableParams(t *testing.T) {
	found := reply{status: 200, body: `{"id":"x"}`}
	client, s := scripted(t, []reply{found, found})
	_, err := client.Wearables.Summaries(t.Context(), userID, labhealth.SummarySleep, labhealth.ListSummariesParams{EndDate: labhealth.Date{Year: 2025, Month: 2, Day: 30}})
	equal(t, []labhealth.FieldError{
		{Loc: []string{"query", "start_date"}, Type: "missing", Msg: "is required: a date"},
		{Loc: []string{"query", "end_date"}, Type: "date", Msg: "must be a date that exists"},
	}, validationFields(t, err))
	_, err = client.Wearables.Samples(t.Context(), userID, "hrv", labhealth.ListSamplesParams{})
	equal(t, []labhealth.FieldError{{Loc: []string{"query", "start_date"}, Type: "missing", Msg: "is required: a time"}}, validationFields(t, err))
	_, err = client.Wearables.Summaries(t.Context(), userID, "", sinceMarch)
	equal(t, []string{"path", "resource"}, validationFields(t, err)[0].Loc)
	_, err = client.Wearables.Samples(t.Context(), uuid.Nil, "hrv", labhealth.ListSamplesParams{StartDate: time.Now()})
	equal(t, []string{"path", "user_id"}, validationFields(t, err)[0].Loc)
	equal(t, 0, len(s.sent))

	// A profile has no dates, and a resource can be any.
	_, err = client.Wearables.Summaries(t.Context(), userID, labhealth.SummaryProfile, labhealth.ListSummariesParams{})
	equal(t, nil, err)
	_, err = client.Wearables.Summaries(t.Context(), userID, "a/b?c", sinceMarch)
	equal(t, nil, err)
	equal(t, "https://api.example.com/v2/summary/a%2Fb%3Fc/"+userID.String()+"?start_date=2025-03-01", s.sent[1].URL)
}

func validationFields(t *testing.T, err error) []labhealth.FieldError {
	t.Helper()
	var invalid *labhealth.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	return invalid.Fields
}

// The iterator follows cursors, in the older name too, passes empty pages, and stops at a list that
// does not advance.
func TestSamplePages(t *testing.T) {
	params := labhealth.ListSamplesParams{StartDate: time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC)}
	page := func(value int, next string) reply {
		return reply{status: 200, body: fmt.Sprintf(`{"groups":{"oura":[{"source":{},"data":[%d]}]},%s}`, value, next)}
	}
	empty := func(next string) reply { return reply{status: 200, body: `{"groups":{},"next_cursor":"` + next + `"}`} }
	without := func(next string) reply {
		return reply{status: 200, body: `{"groups":{"oura":[{"data":[ ]},{"data":null},null]},"next_cursor":"` + next + `"}`}
	}
	for name, test := range map[string]struct {
		replies []reply
		pages   int
		err     string
	}{
		"cursors":                          {[]reply{page(1, `"next_cursor":"b"`), empty("c"), empty("d"), page(2, `"next_cursor":null,"next":"z"`)}, 4, ""},
		"older cursor":                     {[]reply{page(1, `"next":"b"`), page(2, `"next":""`)}, 2, ""},
		"the same cursor":                  {[]reply{page(1, `"next_cursor":"b"`), page(2, `"next_cursor":"b"`)}, 1, "it leads back to a page before it"},
		"the same page":                    {[]reply{page(1, `"next_cursor":"b"`), page(1, `"next_cursor":"c"`)}, 1, "it repeats an earlier page"},
		"no samples":                       {[]reply{without("b"), without("c"), page(1, `"next_cursor":null`)}, 3, ""},
		"a malformed older cursor":         {[]reply{page(1, `"next":{}`)}, 1, "its next cursor is malformed"},
		"an older cursor that is not used": {[]reply{page(1, `"next_cursor":"b","next":7`), page(2, `"next_cursor":""`)}, 2, ""},
		"a malformed cursor":               {[]reply{page(1, `"next_cursor":7`)}, 1, "its next cursor is malformed"},
		"no groups":                        {[]reply{{status: 200, body: `{"next_cursor":null}`}}, 0, "it has no list"},
		"a failure":                        {[]reply{page(1, `"next_cursor":"b"`), {status: 403, body: `{"detail":"no"}`}}, 1, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := scripted(t, test.replies)
			pages := 0
			var failed error
			for page, err := range client.Wearables.SamplePages(t.Context(), userID, "hrv", params) {
				if failed = err; err == nil {
					pages++
					equal(t, true, page.Groups != nil)
				}
			}
			equal(t, test.pages, pages)
			if test.err == "" != (failed == nil) || !strings.Contains(errorText(failed), test.err) {
				t.Errorf("error %v, want %q", failed, test.err)
			}
		})
	}
}
