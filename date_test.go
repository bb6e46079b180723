package labhealth

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseDate(t *testing.T) {
	read := map[string]Date{
		"2025-03-01":                       {2025, time.March, 1},
		"2024-02-29":                       {2024, time.February, 29},
		"1900-02-28":                       {1900, time.February, 28},
		"2000-02-29":                       {2000, time.February, 29},
		"0001-01-01":                       {1, time.January, 1},
		"9999-12-31":                       {9999, time.December, 31},
		"1990-01-31T00:00:00+00:00":        {1990, time.January, 31},
		"1990-01-31T23:59:59.999999-12:00": {1990, time.January, 31}, // the day as written
		"2022-07-06T22:20:26.796Z":         {2022, time.July, 6},
		"1990-01-31T00:00:00":              {1990, time.January, 31},
		"1990-01-31 00:00:00":              {1990, time.January, 31},
	}
	for text, want := range read {
		if got, err := ParseDate(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "2024-15-", "2020-01-50", "2025-02-29", "1900-02-29", "2025-04-31", "2025-00-10", "2025-13-01", "2025-1-1", "18/08/1993", "20250301",
		"2025-03-01x", "2025-03-01T", "2025-03-01T25:00:00Z", "2025-03-01T12:00", "-025-03-01", "+025-03-01", "２０２５-03-01", " 2025-03-01", "2025-03-01 ",
	} {
		got, err := ParseDate(text)
		if err == nil || got != (Date{}) {
			t.Errorf("%s: read as %v", text, got)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: quoted by %v", text, err)
		}
	}
}

func TestDateJSON(t *testing.T) {
	type value struct {
		D Date  `json:"d"`
		P *Date `json:"p,omitzero"`
	}
	tests := []struct {
		text string
		want value
		back string
	}{
		{`{"d":"2025-03-01","p":"0001-01-01"}`, value{Date{2025, 3, 1}, &Date{1, 1, 1}}, `{"d":"2025-03-01","p":"0001-01-01"}`},
		{`{"d":"1990-01-31T00:00:00+00:00"}`, value{D: Date{1990, 1, 31}}, `{"d":"1990-01-31"}`},
		{`{"d":"2025\u002d03-01"}`, value{D: Date{2025, 3, 1}}, `{"d":"2025-03-01"}`},
		{`{"d":null,"p":null}`, value{}, `{"d":null}`},
		{`{}`, value{}, `{"d":null}`},
	}
	for _, test := range tests {
		var got value
		if err := json.Unmarshal([]byte(test.text), &got); err != nil || got.D != test.want.D || (got.P == nil) != (test.want.P == nil) || (got.P != nil && *got.P != *test.want.P) {
			t.Errorf("%s: %v, %v", test.text, got, err)
		}
		if b := mustEncode(t, got); string(b) != test.back {
			t.Errorf("%s: written as %s", test.text, b)
		}
	}
	for _, text := range []string{`{"d":""}`, `{"d":"2025-02-29"}`, `{"d":20250301}`, `{"d":{}}`, `{"d":["2025-03-01"]}`, `{"d":true}`, `{"d":"\u0000"}`} {
		var got value
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s: read as %v", text, got)
		}
	}
	for _, text := range []string{``, `"`, `x`, `"\"`, `"\x"`} {
		if err := new(Date).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	for _, d := range []Date{{2025, 2, 29}, {2025, 13, 1}, {2025, 1, 0}, {0, 1, 1}, {10000, 1, 1}, {-1, 1, 1}, {2025, 1, 32}} {
		if b, err := json.Marshal(d); err == nil {
			t.Errorf("%v is written as %s", d, b)
		}
	}
}

func TestDateCompare(t *testing.T) {
	days := []Date{{}, {1999, 12, 31}, {2000, 1, 1}, {2000, 1, 2}, {2000, 2, 1}, {2001, 1, 1}}
	for i, d := range days {
		for j, e := range days {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := d.Compare(e); got != want {
				t.Errorf("%v and %v: got %d, want %d", d, e, got, want)
			}
		}
		if d.IsZero() != (i == 0) {
			t.Errorf("%v: IsZero is %v", d, d.IsZero())
		}
	}
}

func TestDateString(t *testing.T) {
	for want, d := range map[string]Date{"2025-03-01": {2025, 3, 1}, "0001-01-01": {1, 1, 1}, "0000-00-00": {}} {
		if d.String() != want || fmt.Sprint(d) != want {
			t.Errorf("got %v, want %s", d, want)
		}
	}
	at := time.Date(2025, 3, 1, 23, 30, 0, 0, time.FixedZone("", -5*3600))
	if got := DateOf(at); got != (Date{2025, 3, 1}) {
		t.Errorf("got %v", got)
	}
	if got := DateOf(at.UTC()); got != (Date{2025, 3, 2}) {
		t.Errorf("got %v", got)
	}
}

// A time of day other than midnight is what a time zone makes of a date, such as 10 December,
// midnight, east of UTC. It is invalid in a request, and the date as written in a response.
func TestDateOfRequest(t *testing.T) {
	for text, want := range map[string]Date{
		"1985-12-10":                    {1985, 12, 10},
		"1985-12-10T00:00:00":           {1985, 12, 10},
		"1985-12-10T00:00:00.000Z":      {1985, 12, 10},
		"1985-12-10T00:00:00+02:00":     {1985, 12, 10},
		"1985-12-10 00:00:00.000-11:30": {1985, 12, 10},
		"1985-12-09T23:00:00.000Z":      {},
		"1985-12-09T23:00:00Z":          {},
		"1985-12-09T18:30:00+00:00":     {},
		"1985-12-09T00:00:00.001Z":      {},
		"1985-12-09 00:00:01":           {},
		"1985-12-09T00:01:00":           {},
		"1985-12-09T24:00:00Z":          {},
	} {
		for name, decode := range map[string]func([]byte) (Date, error){
			"patient_details.dob": func(b []byte) (Date, error) {
				var body ImportOrderBody
				err := json.Unmarshal([]byte(`{"sample_id":"S","patient_details":{"first_name":"A","dob":`+string(b)+`}}`), &body)
				return body.PatientDetails.DOB, err
			},
			"activate_by": func(b []byte) (Date, error) {
				body := CreateOrderBody{ActivateBy: new(Date)}
				err := json.Unmarshal([]byte(`{"activate_by":`+string(b)+`}`), &body)
				return *body.ActivateBy, err
			},
			"fallback_birth_date": func(b []byte) (Date, error) {
				var body UpdateUserBody
				err := json.Unmarshal([]byte(`{"fallback_birth_date":`+string(b)+`}`), &body)
				date, _ := body.FallbackBirthDate.Get()
				return date, err
			},
			"ingestion_start": func(b []byte) (Date, error) {
				body := CreateUserBody{IngestionStart: new(Date)}
				err := json.Unmarshal([]byte(`{"ingestion_start":`+string(b)+`}`), &body)
				return *body.IngestionStart, err
			},
			"dob": func(b []byte) (Date, error) {
				var body UpdateUserInfoBody
				err := json.Unmarshal([]byte(`{"dob":`+string(b)+`}`), &body)
				return body.DOB, err
			},
		} {
			for _, quoted := range []string{`"` + text + `"`, `"` + strings.ReplaceAll(text, "-", `\u002d`) + `"`} {
				got, err := decode([]byte(quoted))
				if got != want || (err == nil) != (want != Date{}) {
					t.Errorf("%s %s: %v, %v", name, quoted, got, err)
				}
				// Package json of Go 1.27 adds no field to the errors of UnmarshalJSON.
				isNamed := err != nil && (strings.Contains(err.Error(), "."+name+" of type") || strings.HasSuffix(err.Error(), "Go value of type labhealth.Date"))
				if err != nil && (!isNamed || strings.Contains(err.Error(), "1985") || !strings.Contains(err.Error(), "want YYYY-MM-DD")) {
					t.Errorf("%s: the error does not name the field, or quotes the date: %v", name, err)
				}
			}
		}
		var order Order
		if err := json.Unmarshal([]byte(`{"patient_details":{"dob":"`+text+`"}}`), &order); err != nil {
			t.Fatal(err)
		}
		if order.PatientDetails.DOB.Day < 9 && text != "1985-12-09T24:00:00Z" {
			t.Errorf("%s in a response: %v", text, order.PatientDetails.DOB)
		}
	}
}
