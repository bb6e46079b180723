package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A filter selects the subjects of the users of its partition, and no others.
func TestFilter(t *testing.T) {
	for list, want := range map[string]string{
		"0-255":   "s.>",
		"0-127":   "s.0.>",
		"128-255": "s.1.>",
		"64-127":  "s.0.1.>",
		"6-7":     "s.0.0.0.0.0.1.1.>",
		"255":     "s.1.1.1.1.1.1.1.1.>",
		"0":       "s.0.0.0.0.0.0.0.0.>",
	} {
		all, err := parsePartitions(list)
		if err != nil || len(all) != 1 || all[0].filter("s") != want || all[0].String() != list {
			t.Errorf("%s: %v %v, want %s", list, all, err, want)
		}
	}
	for _, list := range []string{"", "-1", "0-", "256", "0-256", "1-2", "0-2", "3-2", "0-127 ,128-255", "0-127,", "all"} {
		if all, err := parsePartitions(list); err == nil {
			t.Errorf("%q: %v", list, all)
		}
	}
	four, err := parsePartitions("192-255,0-63,64-127,128-191")
	if err != nil || complete(four) != nil {
		t.Fatal(four, err, complete(four))
	}
	seen := make([]int, 4)
	for range 1000 {
		s := subject("s", batch(uuid.New(), []int{1}, func(int) float64 { return 1 }))
		selected := slices.IndexFunc(four, func(p partition) bool { return strings.HasPrefix(s, strings.TrimSuffix(p.filter("s"), ">")) })
		seen[selected]++
	}
	if slices.Min(seen) < 180 {
		t.Errorf("1000 users are spread as %v", seen)
	}
}

// A worker for one part of the users leaves the rest to others. One whose partition overlaps those
// of others waits, and says so, until the stream is partitioned for it.
func TestPartition(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	receiver := ready(t, at.args("receive")...)
	client := newClient()
	defer client.CloseIdleConnections()
	quarters := map[string]int{}
	for n := range 64 {
		body := batch(uuid.New(), []int{n}, func(int) float64 { return 1 })
		quarters[subject("", body)[:4]]++
		if _, err := deliver(t.Context(), client, []string{receiver.events}, message{fmt.Sprintf("msg_%d", n), body}); err != nil {
			t.Fatal(err)
		}
	}
	left := 64
	for quarter, list := range map[string]string{".0.1": "64-127", ".1.1": "192-255"} {
		p := ready(t, at.args("work", "-partition", list)...)
		left -= quarters[quarter]
		wait(t, time.Minute, "the events of the partition", func() bool { return at.pending(t) == left })
		if got := appliedEvents(p.metrics(t)); got != float64(quarters[quarter]) {
			t.Errorf("partition %s: %v events, want %d", list, got, quarters[quarter])
		}
	}
	if n := len(stored(t, at)); n != 64-left || left == 0 {
		t.Errorf("%d samples, %d events are left", n, left)
	}

	half := launch(t, at.args("work", "-partition", "0-127")...)
	const reason = "the stream is not partitioned for -partition 0-127, but for 64-127,192-255"
	wait(t, time.Minute, "the worker to say what it waits for", func() bool { return strings.Contains(half.body(t, "/readyz"), reason) })
	at.once(t, "-role", "repartition", "-nats", at.nats, "-partition", "0-127,128-255")
	wait(t, time.Minute, "the worker to be ready", func() bool { return half.body(t, "/readyz") == "ready\n" })
	ready(t, at.args("work", "-partition", "128-255")...)
	at.drained(t)
	if n := len(stored(t, at)); n != 64 {
		t.Errorf("%d samples", n)
	}
}
