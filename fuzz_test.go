package labhealth

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// responses are the types of responses.
var responses = []func() any{
	func() any { return new(PostOrderResponse) }, func() any { return new(Order) }, func() any { return new(OrderPage) },
	func() any { return new(OrderDetails) }, func() any { return new(OrderResults) }, func() any { return new(LabTestPage) },
	func() any { return new(User) }, func() any { return new(UserPage) }, func() any { return new(WorkoutStream) },
	func() any { return new(HistoricalPullPage) }, func() any { return new(UserResourcesPage) }, func() any { return new(TeamDetails) },
}

func FuzzResponses(f *testing.F) {
	for i, text := range []string{
		`{"order":{"id":"11111111-2222-4333-8444-555555555555","notes":"x"},"status":"success","message":"ok"}`,
		`{"id":7,"details":{"data":{"shipment":{"inbound_tracking_number":"1Z"}},"type":"testkit"},"events":[null,{"status":"a.b.c"}]}`,
		`{"orders":[{},[],{"lab_test":{"markers":[{"price":"N/A"}]}}],"total":1e2}`,
		`{"type":"drone","data":[1,{"a":"b"}]}`, `{"type":"testkit","data":7}`, `{"data":null,"type":null}`,
		`{"metadata":{"age":"40","clia_#":"x"},"results":[{"result":"<5","type":"range"}],"sample_information":{"a":1}}`,
		`{"headers":{"A":1,"A":"b"}}`, `{"time":[1,null],"heartrate":[null,1.5,"x"]}`, ` [ ] `, `"\ud800"`, `{"id":`, "{\"a\":\"\xff\"}",
	} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		referencetest.CheckReceived(t, responses[int(which)%len(responses)](), text)
	})
}

// A date that parses exists, and formats to the day that was parsed.
func FuzzDate(f *testing.F) {
	for _, s := range []string{"2024-02-29", "2023-02-29", "1990-01-01T00:00:00+00:00", "2024-15-01", "0000-01-01", "2020-01-50", "2022-07-06T22:20:26.796Z", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDate(s)
		if err != nil {
			if d != (Date{}) || len(s) > 8 && strings.Contains(err.Error(), s) {
				t.Fatalf("%q: %v, %v", s, d, err)
			}
			return
		}
		if d.String() != s[:10] || d.Year > 0 && !d.valid() {
			t.Fatalf("%q was read as %v", s, d)
		}
		if d.Year == 0 {
			return // such a date is read, and cannot be sent
		}
		b, err := json.Marshal(d)
		var again Date
		if err != nil || json.Unmarshal(b, &again) != nil || again != d {
			t.Fatalf("%q: %s, %v", s, b, err)
		}
	})
}
