// The report of a run, and what it counts.

package bulk

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// reporter counts what a run does beside the records, whose counts are in the index.
type reporter struct {
	started time.Time

	before       atomic.Int64 // records that earlier runs applied
	found        atomic.Int64 // records whose orders were found in a list only
	sent         atomic.Int64 // requests
	queued       atomic.Int64 // records passed to the workers
	completed    atomic.Int64 // records that the workers are finished with
	existingLeft atomic.Int64 // records whose orders were listed and are not recorded yet
	listed       atomic.Int64 // orders read from all lists
	listTook     atomic.Int64 // the last list, in nanoseconds

	mu        sync.Mutex // guards the following fields
	phase     Phase
	list      listProgress // the current list
	settledAt time.Time    // when PhaseSettling ends
	settling  int64        // records that it waits for
	waitedFor int64        // the most of them
	waited    time.Duration
}

func newReporter() *reporter { return &reporter{started: time.Now(), phase: PhaseChecking} }

func (r *reporter) setPhase(p Phase) {
	r.mu.Lock()
	r.phase = p
	r.mu.Unlock()
}

// settle starts PhaseSettling.
func (r *reporter) settle(until time.Time, records int64) {
	r.mu.Lock()
	r.phase, r.settledAt, r.settling, r.waitedFor = PhaseSettling, until, records, max(r.waitedFor, records)
	r.mu.Unlock()
}

// settled ends PhaseSettling.
func (r *reporter) settled(took time.Duration) {
	r.mu.Lock()
	r.waited += took
	r.mu.Unlock()
}

// addPage reports a page of a list.
func (r *reporter) addPage(orders int64, list listProgress) {
	r.listed.Add(orders)
	r.mu.Lock()
	r.list = list
	r.mu.Unlock()
}

// report returns the current counts, with those of the records.
func (r *reporter) report(c [categories]int64) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := Report{
		Applied: c[categoryApplied], Rejected: c[categoryRejected], Invalid: c[categoryInvalid], Duplicates: c[categoryDuplicate],
		Changed: c[categoryChanged], Unknown: c[categoryUnknown], Pending: c[categoryPending],
		Before: r.before.Load(), Found: r.found.Load(), Sent: r.sent.Load(),
		Duration: time.Since(r.started), Waited: r.waited, WaitedFor: r.waitedFor,
	}
	for _, n := range c[categoryPending:] {
		report.Records += n
	}
	return report
}
