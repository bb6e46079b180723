package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"github.com/google/uuid"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// drifted returns ten deliveries of 100 samples, in shapes that a change of what the service sends
// could have. Every second sample of a mixed delivery can be read.
func drifted() (all []webhooks.RawDelivery) {
	add := func(event, data string) {
		n := len(all)
		all = append(all, webhooks.RawDelivery{
			ID: fmt.Sprintf("msg_%d", n), ReceivedAt: noon,
			Body: []byte(fmt.Sprintf(`{"event_type":%q,"user_id":%q,"data":%s}`, event, user(n), data)),
		})
	}
	list := func(sample func(i int, at time.Time) string) string {
		var samples []string
		for i := range 100 {
			samples = append(samples, sample(i, noon.Add(time.Duration(i)*time.Minute)))
		}
		return strings.Join(samples, ",")
	}
	seconds := list(func(i int, at time.Time) string {
		return fmt.Sprintf(`{"timestamp":%d,"unit":"bpm","value":%d}`, at.Unix(), i)
	})
	for range 5 {
		add("daily.data.heartrate.created", `{"source":{"slug":"ring"},"data":[`+seconds+`]}`)
	}
	add("daily.data.heartrate.created", `{"source":{"slug":"ring"},"data":[`+list(func(i int, at time.Time) string {
		return fmt.Sprintf(`{"measured_at":%q,"unit":"bpm","value":%d}`, at.Format(time.RFC3339), i)
	})+`]}`)
	add("daily.data.heartrate.created", `[`+seconds+`]`)
	add("daily.data.heartrate.created", `{"samples":[`+seconds+`]}`)
	add("daily.data.heartrate.created", `{"source":{"slug":"ring"},"data":[`+list(func(i int, at time.Time) string {
		if i%2 == 0 {
			return fmt.Sprintf(`{"timestamp":%q,"unit":"bpm","value":%d}`, at.Format(time.RFC3339), i)
		}
		return fmt.Sprintf(`{"timestamp":%d,"unit":"bpm","value":%d}`, at.Unix(), i)
	})+`]}`)
	add("daily.data.heartrate.created", `{"source":{"slug":"ring"},"data":[`+list(func(i int, at time.Time) string {
		return fmt.Sprintf(`{"timestamp":%q,"unit":"bpm","value":{"mean":%d}}`, at.Format(time.RFC3339), i)
	})+`]}`)
	return all
}

// After a change of what the service sends, no sample is lost: each is stored, or its delivery is a
// dead letter with the received bytes.
func TestDriftIsKept(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		all := drifted()
		fine := heartrates("msg_fine", 100, "60")
		news := webhooks.RawDelivery{ID: "msg_news", ReceivedAt: noon,
			Body: []byte(`{"event_type":"labtest.courier.called","data":{"id":7}}`)}
		receive(t, store, append(all, fine, news)...)
		var called []string
		w := &sqlstore.Worker{Store: store, Apply: func(_ context.Context, _ *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			called = append(called, fmt.Sprint(d.ID, " ", c.Added))
			return nil
		}}
		sum := drain(t, w, db)
		want := sqlstore.Step{Applied: 2, Dead: 10, Changes: webhooks.Changes{Added: 50 + 100 + 1, Keyless: 650}}
		if diff := cmp.Diff(want, sum); diff != "" {
			t.Error(diff)
		}
		wantCalled := []string{"msg_0 0", "msg_1 0", "msg_2 0", "msg_3 0", "msg_4 0", "msg_5 0", "msg_6 0", "msg_8 50", "msg_9 100", "msg_fine 1", "msg_news 0"}
		slices.Sort(called)
		if diff := cmp.Diff(wantCalled, called); diff != "" {
			t.Error(diff)
		}
		if n := count(t, db, "labhealth_samples"); n != 151 {
			t.Errorf("%d samples", n)
		}

		reasons, numbers := map[string]int{}, []uuid.UUID{}
		samples := 0
		for letter, err := range store.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n := slices.IndexFunc(all, func(d webhooks.RawDelivery) bool { return d.ID == letter.Delivery.ID })
			if n < 0 || string(letter.Delivery.Body) != string(all[n].Body) || letter.Attempts != 1 {
				t.Errorf("letter %v", letter)
			}
			reasons[letter.Reason]++
			numbers = append(numbers, letter.ID)
			samples += strings.Count(string(letter.Delivery.Body), `"unit"`)
		}
		if diff := cmp.Diff(map[string]int{"some of the data cannot be read": 9, "the summary has no readable id": 1}, reasons); diff != "" || samples != 1000 {
			t.Errorf("%d samples %s", samples, diff)
		}

		// Requeued too early, they become dead letters again, and nothing changes.
		for _, number := range numbers {
			if found, err := store.Requeue(t.Context(), number); !found || err != nil {
				t.Fatal(found, err)
			}
		}
		sum = drain(t, w, db)
		want = sqlstore.Step{Dead: 10, Changes: webhooks.Changes{Same: 150, Keyless: 650}}
		if diff := cmp.Diff(want, sum); diff != "" || count(t, db, "labhealth_dead_letters") != 10 {
			t.Error(diff)
		}
	})
}

// A sample whose fields a program has set is stored with all of them.
func TestSetFieldsAreStored(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		e := parse(t, []webhooks.RawDelivery{heartrates("msg_1", 1, "60", "61", "62", "63", "64")})[0]
		data := e.Event.Data.(*webhooks.Samples).Data
		data[0].TimezoneOffset = 3600
		data[1].Text = "after a run"
		data[2].Systolic, data[2].Diastolic = 120, 80
		data[3].Unit, data[3].End = "1/min", data[3].Timestamp.Add(time.Minute)
		data = append(data, webhooks.Sample{Timestamp: noon.Add(time.Hour), Value: 1, TimezoneOffset: -60})
		e.Event.Data.(*webhooks.Samples).Data = data
		var latest webhooks.Latest
		for range 2 {
			if _, err := store.Apply(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if _, err := latest.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		stored := samplesOf(t, store.Range(t.Context(), ring(1), noon, noon.Add(2*time.Hour)))
		var got, want, inMemory []string
		for i, s := range stored {
			for list, sample := range map[*[]string]webhooks.Sample{&got: s, &want: data[i]} {
				text, err := sample.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				var plain webhooks.Sample
				if err := plain.UnmarshalJSON(text); err != nil {
					t.Fatal(err)
				}
				*list = append(*list, fmt.Sprintf("%+v", fields(plain)))
			}
		}
		for _, s := range latest.Range(ring(1), noon, noon.Add(2*time.Hour)) {
			inMemory = append(inMemory, fmt.Sprintf("%+v", fields(s)))
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 6 {
			t.Error(diff)
		}
		if diff := cmp.Diff(got, inMemory); diff != "" {
			t.Error(diff)
		}
	})
}

// fields are the fields of a sample that a program can set, in a form that is printed whole.
func fields(s webhooks.Sample) [9]any {
	return [9]any{s.Timestamp, s.Start, s.End, s.Value, s.Systolic, s.Diastolic, s.TimezoneOffset, s.Text, s.Type + s.Unit}
}
