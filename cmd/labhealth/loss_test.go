package main

import (
	"os"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// An import whose last records are rejected is finished by the same command.
func TestImportOfRejectedRest(t *testing.T) {
	service := newService(t)
	file := importFile(t, t.TempDir(), service, service.AddUsers(1)[0].String(), 2)
	if got := command(t, "orders", "import", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	start := strings.Index(line, `"user_id":"`) + len(`"user_id":"`)
	line = strings.Replace(line, line[start:start+36], "99999999-9999-4999-8999-999999999999", 1)
	line = strings.Replace(line, "S-IMPORT-0", "S-IMPORT-OTHER", 1)
	if err := os.WriteFile(file, append(content, line+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := command(t, "orders", "import", file); got.code != 5 || !strings.Contains(got.stdout, "2 applied, 1 rejected") {
			t.Fatalf("%+v", got)
		}
	}
}

// An error of an import names the flags of the command.
func TestImportNamesFlags(t *testing.T) {
	service := newService(t)
	file := importFile(t, t.TempDir(), service, "99999999-9999-4999-8999-999999999999", 20)
	got := command(t, "orders", "import", file)
	if got.code != 3 || !strings.Contains(got.stderr, "see --rejection-limit") || strings.Contains(got.stderr, "Options.") {
		t.Fatalf("%+v", got)
	}
}

// A replay that is interrupted says how to send the rest, and nothing twice.
func TestInterruptedReplay(t *testing.T) {
	filter := &inspect.Filter{After: 9}
	for _, test := range []struct {
		replay        inspect.Replay
		sent, copies  int
		last          int64
		want, notWant string
	}{
		{inspect.Replay{Filter: filter}, 11, 1, 20, "11 deliveries were sent, the last is that of 20. To continue, use a range that starts with 21", "times"},
		{inspect.Replay{Filter: filter, Copies: 3}, 32, 2, 20, "the last is that of 20, 2 of 3 times.", ""},
		{inspect.Replay{Filter: filter, Order: "reversed"}, 1, 1, 20, "1 delivery was sent, the last is that of 20. To continue, use the range 10-19", ""},
		{inspect.Replay{Filter: filter, Order: "shuffled"}, 5, 1, 20, "select those that are not listed above", "range"},
		{inspect.Replay{Numbers: []int64{3, 20}}, 1, 1, 3, "select those that are not listed above", "range"},
		{inspect.Replay{Filter: filter}, 0, 0, 0, "interrupted: nothing was sent", "range"},
	} {
		got := interruptedReplay(test.replay, test.sent, test.last, test.copies)
		if !strings.Contains(got, test.want) || test.notWant != "" && strings.Contains(got, test.notWant) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
