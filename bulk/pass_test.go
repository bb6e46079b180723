package bulk_test

import (
	"io"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// The source is read as far as something is left to do: records that have an order are read once,
// in the check.
func TestReadsOfSource(t *testing.T) {
	numbersFrom1 := []string{"check: 4", "send: 4"}
	for name, c := range map[string]struct {
		before   int // records of an earlier run
		byUser   bool
		rejected io.Writer
		fault    func(n int, body labhealth.ImportOrderBody) string
		want     []string // the records that each pass has read
	}{
		"first run":             {want: numbersFrom1},
		"finished":              {before: 4, want: []string{"check: 4"}},
		"finished, rejections":  {before: 4, rejected: io.Discard, want: []string{"check: 4"}},
		"resumed":               {before: 3, want: numbersFrom1},
		"a lost response":       {fault: lose("S-00001"), want: append(numbersFrom1, "look up: 2")},
		"a lost response, user": {byUser: true, fault: lose("S-00001"), want: append(numbersFrom1, "look up: 2")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &service{}
				journal := new(bulk.Memory)
				opts := bulk.Options{Concurrency: 1}
				if c.before > 0 {
					if _, err := bulk.Run(t.Context(), service.client(t), from(numbered(c.before)), journal, opts); err != nil {
						t.Fatal(err)
					}
				}
				service.onImport = c.fault
				opts.ListByUser, opts.Rejections = c.byUser, c.rejected
				var reads []int
				source := func(yield func(bulk.Record, error) bool) {
					reads = append(reads, 0)
					pass := len(reads) - 1
					for record, err := range from(numbered(4)) {
						if reads[pass]++; !yield(record, err) {
							return
						}
					}
				}
				report, err := bulk.Run(t.Context(), service.client(t), source, journal, opts)
				if err != nil || report.Applied != 4 {
					t.Fatal(report, err)
				}
				var got []string
				for i, n := range reads {
					got = append(got, []string{"check", "send", "look up", "again"}[i]+": "+strconv.Itoa(n))
				}
				checkEqual(t, "reads", got, c.want)
			})
		})
	}
}

// lose returns a fault that loses the first response to the import of a record.
func lose(sampleID string) func(int, labhealth.ImportOrderBody) string {
	done := false
	return func(_ int, body labhealth.ImportOrderBody) string {
		if body.SampleID != sampleID || done {
			return ""
		}
		done = true
		return "lost"
	}
}
