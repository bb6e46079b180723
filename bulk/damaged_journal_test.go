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

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// finishedJournal runs an import with most kinds of entries and returns the content of its journal:
// B is found in a list, C is rejected, D is postponed and then sent twice.
func finishedJournal(t *testing.T, s *service, path string) []byte {
	t.Helper()
	faults := map[string][]string{"B": {"lost"}, "C": {"422 fields"}, "D": {"401", "drop"}}
	s.onImport = func(_ int, body labhealth.ImportOrderBody) string {
		if left := faults[body.SampleID]; len(left) > 0 {
			faults[body.SampleID] = left[1:]
			return left[0]
		}
		return ""
	}
	for run := range 2 {
		j := open(t, path)
		report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C", "D")), j, bulk.Options{Target: "sandbox", Concurrency: 1})
		if run == 0 && !errors.Is(err, labhealth.ErrUnauthorized) || run == 1 && (err != nil || report.Applied != 3 || report.Rejected != 1) {
			t.Fatal(report, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.onImport = nil
	return content
}

// A finished journal that was truncated, damaged or reassembled never leads to a second order, even
// with a service that accepts duplicate sample IDs: it is an error, or the existing orders are
// found before anything is sent.
func TestDamagedJournal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	bulk.SkipSync(t)
	path := filepath.Join(t.TempDir(), "run.journal")
	synctest.Test(t, func(t *testing.T) {
		s := &service{twice: true}
		content := finishedJournal(t, s, path)
		d := &damageTest{service: s, client: s.client(t), path: path, orders: slices.Clone(s.orders), long: os.Getenv("LABHEALTH_TEST_LONG") != ""}
		for cut := range len(content) + 1 {
			d.try(t, fmt.Sprintf("cut at byte %d", cut), content[:cut])
		}
		for at := range content {
			for i, bits := range []byte{1, 1 << 5, 1 << 7, 0xff} {
				if d.long || at%3 == 0 && i == at%4 {
					flipped := bytes.Clone(content)
					flipped[at] ^= bits
					d.try(t, fmt.Sprintf("byte %d changed by %x", at, bits), flipped)
				}
			}
		}
		lines := slices.Collect(strings.Lines(string(content)))
		for i, line := range lines {
			for k := i + 1; k <= len(lines); k++ {
				d.try(t, fmt.Sprintf("without lines %d to %d", i+1, k), []byte(strings.Join(slices.Concat(lines[:i], lines[k:]), "")))
				d.try(t, fmt.Sprintf("lines %d to %d twice", i+1, k), []byte(strings.Join(slices.Concat(lines[:k], lines[i:]), "")))
			}
			d.try(t, fmt.Sprintf("line %d repeated at the end", i+1), []byte(string(content)+line))
			d.try(t, fmt.Sprintf("line %d first", i+1), []byte(line+string(content)))
		}
		t.Logf("%d bytes, %d lines: %d journals, %d errors, %d requests", len(content), len(lines), d.tried, d.failed, d.sent)
		if d.failed == 0 || d.sent == 0 {
			t.Error("nothing was tested")
		}
	})
}

// damageTest runs imports with damaged journals.
type damageTest struct {
	service *service
	client  *labhealth.Client
	path    string
	orders  []held // before each run
	long    bool   // every variant, twice

	tried, sent, failed int
}

// damageVariants are the sources and options of the runs.
var damageVariants = []struct {
	name string
	user uuid.UUID
	opts bulk.Options
}{
	{"same records", ada, bulk.Options{Target: "sandbox", Timeout: time.Second, Settle: 2 * time.Second}},
	{"with rejected ones", ada, bulk.Options{Target: "sandbox", Timeout: time.Second, Settle: 2 * time.Second, RetryRejected: true, ListByUser: true}},
	{"for another user", grace, bulk.Options{Target: "sandbox", Timeout: time.Second, Settle: 2 * time.Second, ListByUser: true}},
}

// try runs imports with a journal and checks that each sample has one order.
func (d *damageTest) try(t *testing.T, what string, journal []byte) {
	t.Helper()
	d.tried++
	for i, v := range damageVariants {
		if !d.long && i != d.tried%len(damageVariants) {
			continue
		}
		if err := os.WriteFile(d.path, journal, 0o600); err != nil {
			t.Fatal(err)
		}
		d.service.orders, d.service.sent = slices.Clone(d.orders), nil
		rows := records("A", "B", "C", "D")
		for i := range rows {
			rows[i].UserID = v.user
		}
		runs := 1
		if d.long {
			runs = 2
		}
		for run := range runs {
			report, err := d.run(t, rows, v.opts)
			if err != nil {
				d.failed++
				break
			}
			if !report.Done() || run == 1 && report.Sent > 0 || report.Applied+report.Rejected+report.Changed != 4 {
				t.Errorf("%s, %s, run %d: %v, sent %d", what, v.name, run+1, report, report.Sent)
			}
		}
		d.sent += len(d.service.sent)
		for id, n := range d.service.ordersBySample() {
			if n != 1 {
				t.Fatalf("%s, %s: %d orders for %s", what, v.name, n, id)
			}
		}
	}
}

func (d *damageTest) run(t *testing.T, rows []labhealth.ImportOrderBody, opts bulk.Options) (*bulk.Report, error) {
	j, err := bulk.OpenFile(d.path)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	return bulk.Run(t.Context(), d.client, from(rows), j, opts)
}

// A service and a source may show a sample ID in another case or without spaces at its ends: it is
// the same sample.
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
				checkCounts(t, report, bulk.Report{Records: 1, Applied: 1, Found: 1, Sent: 1})
				for _, variant := range []string{id, "SAMPLE-ß1", "sample-ß1 "} {
					report, err := bulk.Run(t.Context(), s.client(t), from(records(variant)), j, bulk.Options{})
					if err != nil || report.Applied+report.Changed != 1 {
						t.Errorf("%v, %v", report, err)
					}
					// A truncated journal.
					cut := new(bulk.Memory)
					cut.Append(entries(t, j)[:1])
					report, err = bulk.Run(t.Context(), s.client(t), from(records(variant)), cut, bulk.Options{})
					if err != nil {
						t.Fatal(err)
					}
					checkCounts(t, report, bulk.Report{Records: 1, Applied: 1, Found: 1})
				}
				if len(s.orders) != 1 {
					t.Errorf("%d orders", len(s.orders))
				}
				report, err = bulk.Run(t.Context(), s.client(t), from(records("a", "A", "B", "B ")), new(bulk.Memory), bulk.Options{})
				if err != nil {
					t.Fatal(err)
				}
				checkCounts(t, report, bulk.Report{Records: 4, Invalid: 4})
			})
		})
	}
}

// A resumed run lists the orders once before it sends anything; the first run does not.
func TestListBeforeResuming(t *testing.T) {
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
		if err := run(12, bulk.Options{}); err != nil || lists() != 6 { // with an empty page
			t.Errorf("two more: %v, %d lists", err, lists())
		}
		if err := run(14, bulk.Options{TrustJournal: true}); err != nil || lists() != 0 || len(s.sent) != 14 {
			t.Errorf("two more and trust: %v, %d lists", err, lists())
		}
		s.onList = func(int, map[string][]string) string { return "404" }
		if got := fmt.Sprint(run(16, bulk.Options{})); len(s.sent) != 14 || got != "bulk: the list of orders could not be read in full, so that nothing "+
			"was sent: the journal may have lost what an earlier run did (Options.TrustJournal): labhealth: GET /orders: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text) (request req-1)" {
			t.Errorf("no list: %v, %d requests", got, len(s.sent))
		}
		s.onList = nil
		s.orders = append(s.orders, held{ada, ada, ""}) // one that does not show its sample ID
		if got := fmt.Sprint(run(16, bulk.Options{})); len(s.sent) != 14 ||
			got != "bulk: the list of orders does not show the user and sample id of every order: 2 records are not certain" {
			t.Errorf("a list that hides a sample ID: %v, %d requests", got, len(s.sent))
		}
	})
}

// A journal that was restored from before an attempt for another user does not show its order. The
// resumed run finds it, even if it lists the orders by user.
func TestOrderOfAnotherUserAfterRestore(t *testing.T) {
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
		restored := new(bulk.Memory)
		restored.Append(entries[:3]) // the attempt for the first user, without its outcome
		checkCounts(t, run(mine, restored), bulk.Report{Records: 1, Rejected: 1})
		if n := s.ordersBySample()["A"]; n != 1 {
			t.Errorf("%d orders", n)
		}
	})
}

// After a row that is too long and may not have an end, nothing is sent.
func TestTooLongLines(t *testing.T) {
	const over = 16<<20 + 1
	long := strings.Repeat("x", over)
	for name, test := range map[string]struct {
		source bulk.Source
		err    string
	}{
		"an open quote": {bulk.CSV(strings.NewReader("sample_id\n\""+strings.Repeat("S-1\n", over/4+20_000)), bulk.CSVOptions{}),
			`bulk: the source cannot be read: bulk: line 2, column "sample_id" of the CSV file: this cell and its row are longer than 16 MiB and ` +
				"have line breaks: the quote at its start may not be closed; the start of the next row is unknown"},
		"CSV header": {bulk.CSV(strings.NewReader(long+long), bulk.CSVOptions{}), "bulk: the source cannot be read: bulk: the CSV header cannot be read: longer than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{}
			report, err := bulk.Run(t.Context(), s.client(t), test.source, new(bulk.Memory), bulk.Options{})
			checkEqual(t, "error", fmt.Sprint(err), test.err)
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
	checkEqual(t, "error", fmt.Sprint(err), "bulk: the journal entry of record 7: longer than 16 MiB")
	j.Close()
	if err := os.WriteFile(path, []byte(someLines+long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = bulk.OpenFile(path)
	checkEqual(t, "error", fmt.Sprint(err), "bulk: line 6 of the journal: longer than 16 MiB")
}
