package sqlstore

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

// memoryOrders keeps orders in maps.
type memoryOrders struct {
	rows      map[orderKey]orderRow
	timelines map[orderKey]map[string]Transition
}

// apply does with the orders of a batch what a Store does.
func (m *memoryOrders) apply(b *batch, now int64) ([]Applied, error) {
	applied := slices.Clone(b.applied)
	b.resetOrders(now)
	for i, s := range b.orderSlots {
		if i > 0 && compareSlots(b.orderSlots[i-1], s) >= 0 {
			return nil, fmt.Errorf("the orders are not in the order of their keys")
		}
		if s.row, s.isStored = m.rows[s.key]; s.isStored && s.row.updated < s.lowest {
			s.row.document = ""
		}
		s.found = s.isStored
		maps.Copy(s.timeline, m.timelines[s.key])
	}
	for _, s := range b.decideOrders(applied, now) {
		row := s.row
		if row.document = s.newDocument(); row.document == "" {
			row.document = m.rows[s.key].document
		}
		m.rows[s.key] = row
		if m.timelines[s.key] == nil {
			m.timelines[s.key] = map[string]Transition{}
		}
		maps.Copy(m.timelines[s.key], s.written)
	}
	return applied, nil
}

// applyTo applies batches to an empty store, and returns its content without what depends on the
// time at which it was written.
func applyTo(t testing.TB, batches [][]webhooks.Delivery) (content []string, transitions int) {
	t.Helper()
	m := &memoryOrders{rows: map[orderKey]orderRow{}, timelines: map[orderKey]map[string]Transition{}}
	s, err := Open(new(sql.DB), SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for _, deliveries := range batches {
		b := newBatch(deliveries, s.version)
		applied, err := m.apply(b, s.now().UnixNano())
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, a := range applied {
			sum += a.Transitions
		}
		if sum != len(b.transitions) {
			t.Errorf("%d transitions are counted, and %d queued", sum, len(b.transitions))
		}
		transitions += sum
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.rows), compareOrders) {
		row := m.rows[id]
		row.changed, row.resultAt = 0, 0
		content = append(content, fmt.Sprintf("%+v", row))
		for _, e := range sortedTimeline(m.timelines[id]) {
			content = append(content, fmt.Sprintf("%s %s %v %s %s", e.OrderID, e.ID, e.At, string(e.Status), string(e.Detail)))
		}
	}
	return content, transitions
}

// fuzzedDelivery returns a version of one of three orders. Four bytes select its fields.
func fuzzedDelivery(t testing.TB, code []byte) webhooks.Delivery {
	pick := func(b byte, of ...string) string { return of[int(b)%len(of)] }
	at := func(n byte) string { return noon.Add(time.Duration(n%4) * time.Second).Format(time.RFC3339) }
	event := func(b byte) string {
		fields := []string{`"status":"` + pick(b>>4, "received.testkit.ordered", "sample_with_lab.testkit.partial_results", "completed.testkit.completed", "cancelled.testkit.cancelled") + `"`}
		if b&8 == 0 {
			fields = append(fields, `"id":`+fmt.Sprint(1+b>>4))
		}
		if b&4 == 0 {
			fields = append(fields, `"created_at":"`+at(b)+`"`)
		}
		if b == 255 {
			fields = append(fields, `"status_detail":"fulfillment_error"`)
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	fields := []string{fmt.Sprintf(`"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c1%d"`, code[0]%3)}
	for i, field := range []string{
		fmt.Sprintf(`"user_id":%q`, adaID), `"updated_at":"` + at(code[1]) + `"`, `"events":[` + event(code[2]) + `,` + event(code[3]) + `]`,
		`"last_event":` + event(code[3]), `"notes":"x"`, `"status":"cancelled"`,
	} {
		if code[0]>>2&(1<<i) != 0 {
			fields = append(fields, field)
		}
	}
	data := []byte("{" + strings.Join(fields, ",") + "}")
	receivedAt := noon.Add(time.Duration(code[1]>>2%8) * time.Second)
	if code[1]>>7 == 0 {
		e, err := webhooks.Parse([]byte(`{"event_type":"labtest.order.updated","data":` + string(data) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		e.ReceivedAt = receivedAt
		return webhooks.Delivery{Event: e}
	}
	order := new(labhealth.Order)
	if err := json.Unmarshal(data, order); err != nil {
		t.Fatal(err)
	}
	e, err := webhooks.EventOfOrder(order, receivedAt)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks.Delivery{Event: e}
}

// The content after some events and reads does not depend on their order, on repetitions or on
// batches, and every transition is new once.
func FuzzOrders(f *testing.F) {
	f.Add([]byte("\xff\x01\x10\x20\x7c\x82\x31\x04\xfd\x00\xff\x0c"))
	f.Add([]byte("\x1c\x01\x00\x14\x1c\x01\x14\x00\x1c\x81\x00\x14\x04\x01\x00\x00\x84\x02\x00\x00"))
	f.Fuzz(func(t *testing.T, code []byte) {
		var all []webhooks.Delivery
		for chunk := range slices.Chunk(code[:min(len(code), 80)/4*4], 4) {
			all = append(all, fuzzedDelivery(t, chunk))
		}
		if len(all) == 0 {
			return
		}
		want, transitions := applyTo(t, slices.Collect(slices.Chunk(all, 1)))
		reversed := slices.Clone(all)
		slices.Reverse(reversed)
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, func(a, b webhooks.Delivery) int {
			return strings.Compare(string(a.Event.RawJSON()), string(b.Event.RawJSON()))
		})
		for name, batches := range map[string][][]webhooks.Delivery{
			"in one batch": {all}, "reversed": slices.Collect(slices.Chunk(reversed, 1)), "reversed, in pairs": slices.Collect(slices.Chunk(reversed, 2)),
			"sorted": slices.Collect(slices.Chunk(sorted, 3)), "twice": {all, reversed},
		} {
			got, n := applyTo(t, batches)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if n != transitions {
				t.Errorf("%s: %d transitions are new, want %d", name, n, transitions)
			}
		}
	})
}

func TestResultsState(t *testing.T) {
	const ordered, partial, done, corrected, canceled = "received.testkit.ordered", "sample_with_lab.testkit.partial_results",
		"completed.testkit.completed", "completed.testkit.corrected", "cancelled.testkit.cancelled"
	for _, c := range []struct {
		top      labhealth.OrderTopLevelStatus
		timeline string
		stored   labhealth.ResultsStatus
		want     ResultsState
	}{
		{"received", ordered, "", ResultsNone},
		{"", "", "", ResultsNone},
		{"completed", "", "", ResultsFinal}, // by the deprecated status alone
		{"sample_with_lab", ordered + " " + partial, "", ResultsPartial},
		{"failed", partial + " failed.testkit.sample_error", "", ResultsPartial},
		{"completed", partial + " " + done, "", ResultsFinal},
		{"collecting_sample", done + " collecting_sample.walk_in_test.redraw_available", "", ResultsFinal},
		{"completed", corrected + " " + done, "", ResultsCorrected},
		{"completed", "completed.new_method.new", "", ResultsFinal},
		{"cancelled", done + " " + canceled, "", ResultsNone},
		{"cancelled", canceled, "partial", ResultsPartial},
		{"cancelled", done + " " + canceled, "partial", ResultsFinal},
		{"received", ordered, "partial", ResultsPartial},
		{"received", ordered, "final", ResultsFinal},
		{"received", partial, "new", ResultsFinal},
		{"completed", done, "partial", ResultsFinal},
		{"completed", corrected, "final", ResultsCorrected},
	} {
		timeline := map[string]Transition{}
		for i, status := range strings.Fields(c.timeline) {
			timeline[fmt.Sprint(i)] = Transition{Status: labhealth.OrderStatus(status)}
		}
		if got := resultsStateOf(c.top, timeline, c.stored); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestSchedule(t *testing.T) {
	now := noon.UnixNano()
	in := func(at int64) string {
		if at == 0 {
			return "never"
		}
		return (time.Duration(at-now) / time.Hour * time.Hour).String()
	}
	ago := func(d time.Duration) int64 { return now - int64(d) }
	for _, c := range []struct {
		state   ResultsState
		pending bool
		status  labhealth.OrderStatus
		since   int64
		want    string
	}{
		{ResultsNone, false, "received.testkit.ordered", ago(day), "never"},
		{ResultsNone, false, "sample_with_lab.testkit.delivered_to_lab", ago(0), "24h0m0s"},
		{ResultsNone, false, "sample_with_lab.testkit.delivered_to_lab", ago(4 * day), "48h0m0s"},
		{ResultsNone, false, "collecting_sample.at_home_phlebotomy.draw_completed", ago(0), "24h0m0s"},
		{ResultsNone, false, "sample_with_lab.testkit.delivered_to_lab", ago(91 * day), "never"},
		{ResultsNone, false, "new.new.new", ago(0), "24h0m0s"},
		{ResultsNone, false, "failed.testkit.lost", ago(0), "never"},
		{ResultsPartial, false, "sample_with_lab.testkit.partial_results", ago(0), "24h0m0s"},
		{ResultsPartial, true, "failed.testkit.sample_error", ago(2 * day), "24h0m0s"},
		{ResultsFinal, true, "completed.testkit.completed", ago(0), "24h0m0s"},
		{ResultsFinal, false, "completed.testkit.completed", ago(0), "24h0m0s"},
		{ResultsFinal, false, "completed.testkit.completed", ago(day), "144h0m0s"},
		{ResultsCorrected, false, "completed.testkit.corrected", ago(8 * day), "528h0m0s"},
		{ResultsFinal, false, "completed.testkit.completed", ago(30 * day), "never"},
		{ResultsFinal, false, "completed.testkit.completed", now + int64(day), "48h0m0s"}, // the service's clock is ahead
	} {
		if got := in(resultsAt(c.state, c.pending, c.status, c.since, now)); got != c.want {
			t.Errorf("%+v: results to be read in %s", c, got)
		}
	}
	for age, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Minute, 0: time.Minute, time.Hour: 15 * time.Minute, 40 * time.Hour: 10 * time.Hour, 10 * day: day, 91 * day: 30 * day,
	} {
		if got := time.Duration(nextPoll(ago(age), now) - now); got != want {
			t.Errorf("after %v: results to be read in %v", age, got)
		}
	}
}

func TestSameOrder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"id":1}`, `{"id":1}`, true},
		{`{"id":1,"events":[{"id":1}]}`, `{ "events": [{"id": 1}], "id": 1}`, true},
		{`{"id":1,"requisition_form_url":"a"}`, `{"id":1,"requisition_form_url":"b"}`, true},
		{`{"id":1,"requisition_form_url":"a"}`, `{"id":1}`, true},
		{`{"id":1}`, `{"id":1.0}`, false},
		{`{"id":1}`, `{"id":1,"notes":null}`, false},
		{`{"events":[1,2]}`, `{"events":[2,1]}`, false},
		{``, `{}`, false},
		{`x`, `y`, false},
	} {
		if got := isSameOrder(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestTimelineOrder(t *testing.T) {
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	want := []Transition{
		{ID: "x@0"}, {ID: "4"}, {ID: "a@1", At: at(1)}, {ID: "b@1", At: at(1)}, {ID: "-1", At: at(1)}, {ID: "9", At: at(1)}, {ID: "10", At: at(1)}, {ID: "1", At: at(2)},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareTransitions)
	if diff := cmp.Diff(fmt.Sprintf("%#v", idsOf(want)), fmt.Sprintf("%#v", idsOf(got))); diff != "" {
		t.Error(diff)
	}
}

func idsOf(all []Transition) (ids []string) {
	for _, t := range all {
		ids = append(ids, t.ID)
	}
	return ids
}

func TestOrdersPrintNothing(t *testing.T) {
	name := "Ada"
	order := StoredOrder{Order: &labhealth.Order{ID: adaID, Notes: &name}, UserID: adaID, Status: "received.testkit.ordered"}
	for _, v := range []any{order, &order, []StoredOrder{order}, StoredOrder{Status: "Ada"}, Transition{OrderID: adaID, ID: "Ada@1", Status: "Ada", Detail: "Ada"}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, "Ada") {
				t.Errorf("%T with %s: %s", v, verb, s)
			}
		}
	}
	if s := fmt.Sprint(order); !strings.Contains(s, "received.testkit.ordered") || !strings.Contains(s, adaID.String()) {
		t.Error(s)
	}
}

// An order without an envelope is stored like one in an event.
func TestOrderWithoutEnvelope(t *testing.T) {
	const order = `{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",` +
		`"team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3","updated_at":"2025-03-01T12:00:00Z","sample_id":"S-1",` +
		`"events":[{"id":1,"created_at":"2025-03-01T12:00:00Z","status":"received.testkit.ordered"}]}`
	var contents [][]string
	for _, body := range []string{`{"event_type":"labtest.order.updated","data":` + order + `}`, order, "\ufeff" + order} {
		d, err := webhooks.RawDelivery{ID: "msg_1", Body: []byte(body), ReceivedAt: noon}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		content, transitions := applyTo(t, [][]webhooks.Delivery{{d}})
		if len(content) == 0 || transitions != 1 {
			t.Errorf("%s: %d transitions, %s", body, transitions, content)
		}
		contents = append(contents, content)
	}
	for _, content := range contents[1:] {
		if diff := cmp.Diff(contents[0], content); diff != "" {
			t.Error(diff)
		}
	}
}
