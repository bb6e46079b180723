package sqlstore

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// A reaction that fails is delayed by twice as long each time, up to an hour, and then given up.
func TestReactionDelays(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		reactor Reactor
		want    []string
	}{
		{Reactor{}, []string{"5s", "10s", "20s", "40s", "1m20s", "2m40s", "5m20s", "10m40s", "21m20s", "failed"}},
		{Reactor{Delay: 20 * time.Minute, Attempts: 5}, []string{"20m0s", "40m0s", "1h0m0s", "1h0m0s", "failed"}},
		{Reactor{Attempts: 1}, []string{"failed"}},
	} {
		var got []string
		for attempts := range test.want {
			test.reactor.Store = new(Store)
			run := &reacting{Reactor: &test.reactor, calls: t.Context()}
			c := &reactionCall{row: reactionRow{attempts: attempts}}
			run.end(c, fmt.Errorf("canary Ada"), nil)
			run.finished = []*reactionCall{c}
			one := run.settlements(run.finished, now)[0]
			if one.next == givenUp {
				got = append(got, "failed")
			} else {
				got = append(got, time.Duration(one.next-now.UnixNano()).String())
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// The reactions to transitions of the same time have the order of the timeline, then come those to
// results.
func TestReactionOrder(t *testing.T) {
	b := &batch{
		results: []resultsChange{{revision: 1}},
		transitions: []Transition{
			{ID: "10", At: time.Unix(2, 0)}, {ID: "9", At: time.Unix(2, 0)}, {ID: "ordered@1", At: time.Unix(2, 0)}, {ID: "11", At: time.Unix(1, 0)},
		},
	}
	rows := b.transitionReactions(b.resultsReactions(nil), 0)
	for i := range rows {
		rows[i].queued = int64(i)
	}
	sortReactions(rows)
	var got []string
	for i := range rows {
		r := rows[i].reaction()
		got = append(got, string(r.Kind)+" "+r.Transition.ID)
	}
	if diff := cmp.Diff([]string{"transition 11", "transition ordered@1", "transition 9", "transition 10", "results "}, got); diff != "" {
		t.Error(diff)
	}
}

// Printed and logged, a reaction shows its kind and the IDs.
func TestPrintReaction(t *testing.T) {
	id, user := uuid.MustParse("00000000-0000-4000-8000-00000000000a"), uuid.MustParse("00000000-0000-4000-8000-00000000000b")
	order := uuid.MustParse("00000000-0000-4000-8000-00000000000c")
	const start = " 00000000-0000-4000-8000-00000000000a user 00000000-0000-4000-8000-00000000000b"
	for _, test := range []struct {
		r    Reaction
		want string
	}{
		{Reaction{Kind: ReactTransition, OrderID: order, Transition: Transition{OrderID: order, ID: "7", Status: "canary", Detail: "canary"}},
			"sqlstore.Reaction{transition" + start + " order 00000000-0000-4000-8000-00000000000c}"},
		{Reaction{Kind: ReactResults, OrderID: order}, "sqlstore.Reaction{results" + start + " order 00000000-0000-4000-8000-00000000000c}"},
		{Reaction{Kind: ReactSummary, Summary: webhooks.SummaryKey{UserID: user, Resource: "canary", ID: order}},
			"sqlstore.Reaction{summary" + start + " summary 00000000-0000-4000-8000-00000000000c}"},
		{Reaction{Kind: ReactSamples, Series: webhooks.Series{UserID: user, Resource: "canary", Provider: "canary"}}, "sqlstore.Reaction{samples" + start + "}"},
	} {
		test.r.ID, test.r.UserID = id, user
		for _, got := range []string{fmt.Sprintf("%v", test.r), fmt.Sprintf("%+v", &test.r), fmt.Sprintf("%#v", test.r), slog.AnyValue(test.r).Resolve().String()} {
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		}
		f := FailedReaction{Reaction: test.r, Attempts: 10, Reason: "it took too long"}
		want := "sqlstore.FailedReaction{" + test.want + " 10 attempts, it took too long}"
		if got := fmt.Sprintf("%#v", f); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
