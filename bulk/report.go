package bulk

import (
	"fmt"
	"strings"
	"time"
)

// Report counts the records of a source by their outcome in this run and earlier ones. Each record
// counts once:
//
//	Records = Applied + Rejected + Invalid + Duplicates + Changed + Unknown + Pending
type Report struct {
	Records    int64 // records in the source
	Applied    int64 // their orders exist
	Rejected   int64 // rejected by the service
	Invalid    int64 // not sent: unreadable, invalid, or different records with the same sample ID
	Duplicates int64 // not sent: equal to an earlier record of the source
	Changed    int64 // not sent: their orders exist, but were imported from a different record
	Unknown    int64 // possibly applied; the lists did not show it
	Pending    int64 // neither applied nor rejected: the next run sends them

	Before int64 // part of Applied: applied by earlier runs
	Found  int64 // part of Applied: found in a list of orders and not in the journal
	// Strays are records that are no longer in the source and whose outcome neither the journal nor
	// a list of orders shows. No other count includes them.
	Strays int64

	// Incomplete is true if the source was not read to its end. The counts do not include the rest.
	Incomplete bool

	Sent     int64         // requests of this run, including repeated attempts of the same record
	Duration time.Duration // of this run

	// Waited is the part of Duration in which the run waited until attempts with an unknown outcome
	// had settled: see [Options.Settle].
	Waited    time.Duration
	WaitedFor int64 // records that it waited for
}

// Done reports whether the import is finished: the source was read to its end, and another run
// would send nothing.
func (r *Report) Done() bool {
	return r != nil && !r.Incomplete && r.Unknown == 0 && r.Pending == 0 && r.Strays == 0
}

// String returns the counts, and what the run waited for, in one line.
func (r *Report) String() string {
	if r == nil {
		return "the run could not start"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d records: %d applied", r.Records, r.Applied)
	for _, c := range []struct {
		n    int64
		name string
	}{
		{r.Rejected, "rejected"}, {r.Invalid, "invalid"}, {r.Duplicates, "duplicates"}, {r.Changed, "changed since they were applied"},
		{r.Unknown, "unknown"}, {r.Pending, "pending"}, {r.Strays, "strays"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.name)
		}
	}
	if r.WaitedFor > 0 {
		fmt.Fprintf(&b, "; waited %v for %d records that may have been sent", r.Waited.Round(100*time.Millisecond), r.WaitedFor)
	}
	if r.Incomplete {
		b.WriteString("; the source was not read to its end")
	}
	return b.String()
}

// report returns the current counts. The caller holds r.mu.
func (r *run) report() Report {
	c := &r.index.counts
	return Report{
		Records: r.records, Duplicates: r.duplicates, Applied: c[categoryApplied], Rejected: c[categoryRejected],
		Invalid: c[categoryInvalid] + r.extraInvalid, Changed: c[categoryChanged], Unknown: c[categoryUnknown],
		Pending: c[categoryPending], Before: r.appliedBefore, Found: r.found, Sent: r.sent, Duration: time.Since(r.started),
		Waited: r.waited, WaitedFor: r.waitedFor,
	}
}
