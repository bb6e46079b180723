package bulk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// finished runs an import to its end, with some of everything that a journal can say, and returns
// the journal's text: B is found, C is rejected, D is postponed and then sent twice.
func finished(t *testing.T, s *service, path string) []byte {
	t.Helper()
	fates := map[string][]string{"B": {"lost"}, "C": {"422 fields"}, "D": {"401", "drop"}}
	s.onImport = func(_ int, body labhealth.ImportOrderBody) string {
		if left := fates[body.SampleID]; len(left) > 0 {
			fates[body.SampleID] = left[1:]
			return left[0]
		}
		return ""
	}
	for run := range 2 {
		j := open(t, path)
		report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C", "D")), j, bulk.Options{Target: "sandbox", Concurrency: 1})
		if run == 0 && !errors.Is(err, labhealth.ErrUnauthorized) || run == 1 && (err != nil || report.Applied != 3 || report.Refused != 1) {
			t.Fatal(report, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.onImport = nil
	return text
}

// A finished journal that was cut, damaged or put together wrongly never leads to a second order,
// also at a service that takes a sample twice: it is not read, or the orders that are there are
// found before anything is sent.
func TestDamagedJournal(t *testing.T) {
	bulk.SkipSync(t)
	long := os.Getenv("LABHEALTH_TEST_LONG") != ""
	path := filepath.Join(t.TempDir(), "run.journal")
	synctest.Test(t, func(t *testing.T) {
		s := &service{twice: true}
		client := s.client(t)
		text := finished(t, s, path)
		orders := slices.Clone(s.orders)
		rows := records("A", "B", "C", "D")
		moved := slices.Clone(rows)
		for i := range moved {
			moved[i].UserID = grace
		}
		variants := []struct {
			name   string
			source []labhealth.ImportOrderBody
			opts   bulk.Options
		}{
			{"the same again", rows, bulk.Options{Target: "sandbox", Timeout: time.Second, Settle: 2 * time.Second}},
			{"rejected ones too", rows, bulk.Options{Target: "sandbox", Timeout: time.Second, Settle: 2 * time.Second, RetryRefused: true, ListByUser: true}},
			{"for another user", moved, bulk.Options{Target: "sandbox", Timeout: time.Second, Settle: 2 * time.Second, ListByUser: true}},
		}
		tried, sent, failed := 0, 0, 0
		try := func(what string, damaged []byte) {
			t.Helper()
			tried++
			for i, v := range variants {
				if !long && i != tried%len(variants) {
					continue
				}
				if err := os.WriteFile(path, damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				s.orders, s.sent = slices.Clone(orders), nil
				for run := range 2 {
					j, err := bulk.OpenFile(path)
					if err != nil {
						failed++
						break
					}
					report, err := bulk.Run(t.Context(), client, from(v.source), j, v.opts)
					j.Close()
					if err != nil {
						failed++
						break
					}
					if !report.Done() || run == 1 && report.Sent > 0 || report.Applied+report.Refused+report.Changed != 4 {
						t.Errorf("%s, %s, run %d: %v, sent %d", what, v.name, run+1, report, report.Sent)
					}
					if !long {
						break
					}
				}
				sent += len(s.sent)
				for id, n := range s.samples() {
					if n != 1 {
						t.Fatalf("%s, %s: %d orders for %s", what, v.name, n, id)
					}
				}
			}
		}
		for cut := range len(text) + 1 {
			try(fmt.Sprintf("cut at byte %d", cut), text[:cut])
		}
		for at := range text {
			for i, bits := range []byte{1, 1 << 5, 1 << 7, 0xff} {
				if long || i == at%4 {
					flipped := bytes.Clone(text)
					flipped[at] ^= bits
					try(fmt.Sprintf("byte %d changed by %x", at, bits), flipped)
				}
			}
		}
		lines := slices.Collect(strings.Lines(string(text)))
		for i, line := range lines {
			for k := i + 1; k <= len(lines); k++ {
				try(fmt.Sprintf("without lines %d to %d", i+1, k), []byte(strings.Join(slices.Concat(lines[:i], lines[k:]), "")))
				try(fmt.Sprintf("lines %d to %d twice", i+1, k), []byte(strings.Join(slices.Concat(lines[:k], lines[i:]), "")))
			}
			try(fmt.Sprintf("line %d again at the end", i+1), []byte(string(text)+line))
			try(fmt.Sprintf("line %d first", i+1), []byte(line+string(text)))
		}
		t.Logf("%d bytes, %d lines: %d journals, %d errors, %d requests", len(text), len(lines), tried, failed, sent)
		if failed == 0 || sent == 0 {
			t.Error("nothing was tried")
		}
	})
}

// A service may show sample ids in another case or without spaces at their ends, and a source may
// repeat them so: that is one sample.
func TestSampleIDsInAnotherForm(t *testing.T) {
	for name, shown := range map[string]func(string) string{
		"upper case": strings.ToUpper, "lower case": strings.ToLower, "no spaces": strings.TrimSpace, "as they are": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{twice: true, shown: shown}, new(bulk.Memory)
				s.onImport = func(n int, _ labhealth.ImportOrderBody) string { return []string{"lost", "", "", "", ""}[n-1] }
				const id = " Sample-ß1"
				report, err := bulk.Run(t.Context(), s.client(t), from(records(id)), j, bulk.Options{})
				if err != nil {
					t.Fatal(err)
				}
				counts(t, report, bulk.Report{Records: 1, Applied: 1, Found: 1, Sent: 1})
				for _, again := range []string{id, "SAMPLE-ß1", "sample-ß1 "} {
					report, err := bulk.Run(t.Context(), s.client(t), from(records(again)), j, bulk.Options{})
					if err != nil || report.Applied+report.Changed != 1 {
						t.Errorf("%v, %v", report, err)
					}
					// What is left of a journal that was cut.
					start := new(bulk.Memory)
					start.Append(entries(t, j)[:1])
					report, err = bulk.Run(t.Context(), s.client(t), from(records(again)), start, bulk.Options{})
					if err != nil {
						t.Fatal(err)
					}
					counts(t, report, bulk.Report{Records: 1, Applied: 1, Found: 1})
				}
				if len(s.orders) != 1 {
					t.Errorf("%d orders", len(s.orders))
				}
				report, err = bulk.Run(t.Context(), s.client(t), from(records("a", "A", "B", "B ")), new(bulk.Memory), bulk.Options{})
				if err != nil {
					t.Fatal(err)
				}
				counts(t, report, bulk.Report{Records: 4, Invalid: 4})
			})
		})
	}
}

// Before a run that goes on sends anything, it looks for the orders that its journal does not know,
// once; the first run does not.
func TestListBeforeGoingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{}, new(bulk.Memory)
		run := func(n int, opts bulk.Options) error {
			t.Helper()
			s.times = nil
			_, err := bulk.Run(t.Context(), s.client(t), from(numbered(n)), j, opts)
			return err
		}
		lists := func() int { return len(s.times["list"]) }
		if err := run(10, bulk.Options{}); err != nil || lists() != 0 {
			t.Errorf("first run: %v, %d lists", err, lists())
		}
		if err := run(10, bulk.Options{}); err != nil || lists() != 0 {
			t.Errorf("nothing to send: %v, %d lists", err, lists())
		}
		if err := run(12, bulk.Options{}); err != nil || lists() != 6 { // 10 orders, and an empty page
			t.Errorf("two more: %v, %d lists", err, lists())
		}
		if err := run(14, bulk.Options{TrustJournal: true}); err != nil || lists() != 0 || len(s.sent) != 14 {
			t.Errorf("two more and trust: %v, %d lists", err, lists())
		}
		s.onList = func(int, map[string][]string) string { return "404" }
		if got := fmt.Sprint(run(16, bulk.Options{})); len(s.sent) != 14 || got != "bulk: the list of orders could not be read in full, so that nothing "+
			"was sent: the journal may have lost what an earlier run did (Options.TrustJournal): labhealth: GET /orders: 404 Not Found (request req-1)" {
			t.Errorf("no list: %v, %d requests", got, len(s.sent))
		}
		s.onList = nil
		s.orders = append(s.orders, held{ada, ada, ""}) // one that does not show its sample id
		if got := fmt.Sprint(run(16, bulk.Options{})); len(s.sent) != 14 ||
			got != "bulk: the list of orders does not show the user and sample id of every order: 2 records are not certain" {
			t.Errorf("a list that hides something: %v, %d requests", got, len(s.sent))
		}
	})
}

// A journal that was set back to an attempt for one user does not know of the order that was made for another one later: the run
// that goes on finds it, also if it lists the orders by user.
func TestOrderOfAnotherUserAfterTheJournalWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{twice: true}, new(bulk.Memory)
		s.onImport = func(int, labhealth.ImportOrderBody) string { return "400 fields" }
		mine, theirs := records("A"), records("A")
		theirs[0].UserID = grace
		run := func(list []labhealth.ImportOrderBody, j bulk.Journal) *bulk.Report {
			t.Helper()
			report, err := bulk.Run(t.Context(), s.client(t), from(list), j, bulk.Options{ListByUser: true})
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
		run(mine, j)
		s.onImport = nil
		run(theirs, j)
		var entries []bulk.Entry
		for e := range j.Entries() {
			entries = append(entries, e)
		}
		back := new(bulk.Memory)
		back.Append(entries[:2]) // the attempt for the first user, without its outcome
		counts(t, run(mine, back), bulk.Report{Records: 1, Refused: 1})
		if n := s.samples()["A"]; n != 1 {
			t.Errorf("%d orders", n)
		}
	})
}

// A line that is too long is named, and nothing is sent.
func TestLinesThatAreTooLong(t *testing.T) {
	const over = 16<<20 + 1
	long := strings.Repeat("x", over)
	for name, test := range map[string]struct {
		source bulk.Source
		err    string
	}{
		"JSON Lines": {bulk.JSONLines(strings.NewReader("\n{\"sample_id\":\"" + long + "\"}\n")), "bulk: the source cannot be read: bulk: line 2: longer than 16 MiB"},
		"just above": {bulk.JSONLines(strings.NewReader(long[:over-2] + "xx")), "bulk: the source cannot be read: bulk: line 1: longer than 16 MiB"},
		"CSV":        {bulk.CSV(strings.NewReader("sample_id\nS-1\n"+long+"\n"), nil), "bulk: the source cannot be read: bulk: the row after line 2: longer than 16 MiB"},
		"an open quote": {bulk.CSV(strings.NewReader("sample_id\n\""+strings.Repeat("S-1\n", over/4+20_000)), nil),
			"bulk: the source cannot be read: bulk: the row after line 1: longer than 16 MiB"},
		"CSV header": {bulk.CSV(strings.NewReader(long+long), nil), "bulk: the source cannot be read: bulk: the CSV header cannot be read: longer than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{}
			report, err := bulk.Run(t.Context(), s.client(t), test.source, new(bulk.Memory), bulk.Options{})
			same(t, "error", fmt.Sprint(err), test.err)
			if len(s.sent) > 0 || report.Done() {
				t.Errorf("%d requests, %v", len(s.sent), report)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "run.journal")
	j := open(t, path)
	if err := j.Append(someEntries[:1]); err != nil {
		t.Fatal(err)
	}
	err := j.Append([]bulk.Entry{{Step: bulk.StepIntent, SampleID: long, Record: 7}})
	same(t, "error", fmt.Sprint(err), "bulk: the journal's entry of record 7: longer than 16 MiB")
	j.Close()
	if err := os.WriteFile(path, []byte(someLines+long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = bulk.OpenFile(path)
	same(t, "error", fmt.Sprint(err), "bulk: line 6 of the journal: longer than 16 MiB")
}
