package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// The statements of docs/scaling.md for tables in partitions do what the page says: the store works on them, and a month goes at once.
func TestPartitionedTables(t *testing.T) {
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(scripts) != 2 {
		t.Fatalf("%d scripts, want one for each kind of partitions", len(scripts))
	}
	for name, script := range map[string]string{"by time": scripts[0][1], "by series": scripts[1][1]} {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, true)
			for statement := range strings.SplitSeq(script, ";\n") {
				if strings.TrimSpace(statement) == "" {
					continue
				}
				if _, err := at.db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			p := ready(t, at.args("all")...)
			client := newClient()
			defer client.CloseIdleConnections()
			send := func(n int, value float64) {
				t.Helper()
				const month = 43_800 // minutes
				minutes := make([]int, 13)
				for i := range minutes {
					minutes[i] = i*month + n
				}
				body := batch(uuid.MustParse(fmt.Sprintf("6f0f9ad7-9f0e-4f8c-8e0e-0a4f0f4d%04d", n)), minutes, func(int) float64 { return value })
				if _, err := deliver(t.Context(), client, []string{p.events}, message{"msg_" + uuid.NewString(), body}); err != nil {
					t.Fatal(err)
				}
			}
			for value := range 2 {
				for n := range 20 {
					send(n, float64(value))
				}
				at.drained(t)
			}
			all := stored(t, at)
			for key, s := range all {
				if s.Value != 1 {
					t.Errorf("%v is %g", key, s.Value)
				}
			}
			if len(all) != 20*13 {
				t.Errorf("%d samples, want %d", len(all), 20*13)
			}
			if name == "by time" {
				if _, err := at.db.Exec("drop table labhealth_samples_2026_11"); err != nil {
					t.Fatal(err)
				}
				if n := len(stored(t, at)); n != 20*12 {
					t.Errorf("%d samples without November, want %d", n, 20*12)
				}
				send(3, 2) // what is older comes in all the same
				at.drained(t)
				if n := len(stored(t, at)); n != 20*12+1 {
					t.Errorf("%d samples, want %d", n, 20*12+1)
				}
			}
		})
	}
}
