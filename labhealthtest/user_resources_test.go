package labhealthtest_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

func TestResources(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddUsers(4)
	for _, i := range []int{0, 2, 3} {
		noError(t, srv.Connect(ids[i], "oura"))
	}
	noError(t, srv.SetHistoricalPull(ids[0], "oura", "sleep", "failure", "unexpected_error"))
	noError(t, srv.SetHistoricalPull(ids[0], "oura", "body", "scheduled", ""))

	// Events are counted when they are sent.
	rec := newReceiver(t)
	noError(t, srv.DeliverTo(rec.URL))
	event := func(user uuid.UUID, typ, source string) []byte {
		return fmt.Appendf(nil, `{"event_type":%q,"user_id":%q,"data":{"source":%s}}`, typ, user, source)
	}
	for _, e := range [][]byte{
		event(ids[0], "daily.data.sleep.created", `{"slug":"oura"}`), event(ids[0], "daily.data.sleep.updated", `{"provider":"oura"}`),
		event(ids[0], "daily.data.glucose.created", `{"provider":"dexcom_v3"}`), event(ids[0], "daily.data.sleep.created", `{}`),
		event(ids[0], "daily.data.", `{"slug":"oura"}`), event(ids[0], "x.daily.data.sleep.y", `{"slug":"oura"}`),
		event(uuid.Nil, "daily.data.sleep.created", `{"slug":"oura"}`), []byte("daily.data."), []byte("{}"),
	} {
		noError(t, srv.Send(e))
	}
	_, err := srv.AddWorkout(ids[0], 3)
	noError(t, err)
	noError(t, srv.Flush(t.Context()))

	const (
		at      = `"2025-03-04T12:00:00+00:00"`
		success = `{"last_attempt":{"timestamp":` + at + `,"status":"success"},"oldest_data":"2024-12-04T12:00:00+00:00","newest_data":` + at + `,"sent_count":0}`
		failure = `{"last_attempt":{"timestamp":` + at + `,"status":"failure"},"oldest_data":null,"newest_data":null,"sent_count":2}`
		nothing = `{"last_attempt":null,"oldest_data":null,"newest_data":null,"sent_count":0}`
		once    = `{"last_attempt":null,"oldest_data":null,"newest_data":null,"sent_count":1}`
	)
	check(t, do(t, srv, "GET", "/v2/introspect/resources?user_id="+ids[0].String(), ""), 200, fmt.Sprintf(`{"next":null,"next_cursor":null,"data":[
		{"user_id":%q,"provider":{"oura":{"activity":%s,"sleep":%s,"workouts":%[2]s,"body":%[4]s},
			"dexcom_v3":{"glucose":%[5]s},"wahoo":{"workout_stream":%[5]s}}}]}`, ids[0], success, failure, nothing, once))
	check(t, do(t, srv, "GET", "/v2/introspect/resources?provider=wahoo", ""), 200, fmt.Sprintf(`{"next":null,"next_cursor":null,"data":[
		{"user_id":%q,"provider":{"wahoo":{"workout_stream":%s}}}]}`, ids[0], once))

	type page struct {
		Data []struct {
			UserID uuid.UUID `json:"user_id"`
		}
		Next       *string
		NextCursor *string `json:"next_cursor"`
	}
	first := decode[page](t, do(t, srv, "GET", "/v2/introspect/resources?user_limit=2", ""))
	if len(first.Data) != 2 || first.Data[1].UserID != ids[2] || *first.Next != *first.NextCursor {
		t.Fatalf("%+v", first)
	}
	for _, name := range []string{"next_cursor", "cursor"} {
		second := decode[page](t, do(t, srv, "GET", "/v2/introspect/resources?user_limit=2&"+name+"="+*first.NextCursor, ""))
		if len(second.Data) != 1 || second.Data[0].UserID != ids[3] || second.NextCursor != nil {
			t.Errorf("%+v", second)
		}
	}
	if got := do(t, srv, "GET", "/v2/introspect/resources?provider=sundial", ""); got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
