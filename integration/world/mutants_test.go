package world

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/integration/internal/mutate"
)

// mutant is a defect that is planted in a copy of a source file.
type mutant struct {
	name     string
	seed     uint64 // of a schedule that finds it, which is run first
	file     string // from the root of the repository
	old, new string
}

var mutants = []mutant{
	{"the journal is not synced", 88, "bulk/journal_file.go", "return j.keepErr(j.f.Sync())", "return nil"},
	{"the intent is forgotten", 4, "bulk/send.go", "b.writer.add(e)", "_ = e"},
	{"an intent without a mark was never sent", 173, "bulk/index.go", "if x.lease.marks && x.lease.isOf(x.boot) {", "if true {"},
	{"nothing is waited for", 2, "bulk/resolve.go", "left := r.opts.Settle - start.Sub(since)", "left := 0 * (r.opts.Settle - start.Sub(since))"},
	{"all attempts ended long ago", 2, "bulk/lease.go", "min(ago, w.opts.Settle-minSettle)", "max(ago, w.opts.Settle-minSettle)"},
	{"a lost connection means not sent", 17, "internal/transport/retry.go", "if c.proof != nil && c.proof.notSent() && !c.redirected {", "if c.proof != nil {"},
	{"a lost connection means rejected", 17, "internal/transport/retry.go", "v := verdict{outcome: Unknown}\n\tif c.proof", "v := verdict{outcome: Rejected}\n\tif c.proof"},
	{"a repeated delivery is acknowledged without a sync", 51, "webhooks/sqlstore/transaction.go", "if err := ensureCommit(ctx, tx); err != nil {", "if err := error(nil); err != nil {"},
	{"the log is not synced", 10, "integration/world/vfs_test.go", "synchronous(FULL)", "synchronous(NORMAL)"},
	{"the ID is stored before the delivery", 1, "webhooks/process.go", "	reason, err := h.dispatch(ctx, c, d)", "	_ = h.storeID(ctx, c, d.id)\n	reason, err := h.dispatch(ctx, c, d)"},
	{"the ID is not stored", 13, "webhooks/sqlstore/inbox.go", "if isNew, err := s.addID(ctx, tx, slot, r.id); err != nil || !isNew {", "if _, err := s.addID(ctx, tx, slot, r.id); err != nil {"},
	{"the delivery is acknowledged before it is stored", 1, "webhooks/sqlstore/transaction.go", "	case w.writing <- struct{}{}:\n	}\n	w.mu.Lock()", "	case w.writing <- struct{}{}:\n		go func() { w.receiveAll(context.WithoutCancel(ctx), s, []*receipt{r}); w.release() }()\n		return nil\n	}\n	w.mu.Lock()"},
	{"the older version of a sample wins", 25, "internal/newest/newest.go", "case received < stored:", "case received > stored:"},
	{"the older version of an order wins", 1, "webhooks/sqlstore/orders_write.go", "	case c < 0:\n		return newest.Older, false", "	case c > 0:\n		return newest.Older, false"},
	{"a found journal is not synced", 2423, "bulk/journal_file.go", "if err := j.f.Sync(); err != nil { // a killed", "if err := error(nil); err != nil { // a killed"},
	{"a goroutine panics", 2, "bulk/resolve.go", "r.reporter.setPhase(PhaseListing)", `panic("planted")`},
	{"the directory of the journal is not synced", 88, "bulk/journal_file.go", "err = m.SyncDir(path)", "err = nil"},
}

// The schedules find every planted defect. The short form only checks that each can be planted.
//
//	LABHEALTH_TEST_LONG=1 go test -C integration -timeout 1h -v -run TestMutants ./world
//	LABHEALTH_TEST_LONG=1 LABHEALTH_WORLD_SEARCH=1 go test -C integration -timeout 1h -v -run TestMutants ./world   without the committed seeds
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			files := mutate.Apply(t, mutate.Edit{File: m.file, Old: m.old, New: m.new})
			if os.Getenv("LABHEALTH_TEST_LONG") == "" {
				return
			}
			if os.Getenv("LABHEALTH_WORLD_SEARCH") != "" {
				m.seed = 0
			}
			m.find(t, mutate.Build(t, files))
		})
	}
}

// limit is the number of schedules in which a defect must be found.
const limit = 6_000

// find runs the seed of the mutant. If it does not find it, because a change has given it another
// schedule, find searches for another one.
func (m mutant) find(t *testing.T, executable string) {
	if m.seed != 0 && failuresOf(t, executable, m.seed) > 0 {
		return
	}
	r := shards{First: 1, Count: limit, UntilFailure: true, executable: executable}.run(t)
	if len(r.Failed) == 0 {
		t.Errorf("not found in %d schedules", r.Schedules)
		return
	}
	t.Logf("found after %d schedules", r.Schedules)
	best, most := uint64(0), 0
	for seed := range r.Failed {
		if n := failuresOf(t, executable, seed); n > most {
			best, most = seed, n
		}
	}
	if best != m.seed {
		t.Logf("commit seed %d", best)
	}
}

// failuresOf returns how many of 20 runs of a seed fail.
func failuresOf(t *testing.T, executable string, seed uint64) int {
	t.Helper()
	const runs = 20
	start := time.Now()
	r := shards{Listed: []uint64{seed}, Repeat: runs, executable: executable}.run(t)
	problem := ""
	if n := r.Failures[seed]; n > 0 {
		problem, _, _ = strings.Cut(r.Failed[seed][0], "\n")
	}
	t.Logf("seed %d fails in %d of %d runs, %v: %s", seed, r.Failures[seed], r.Schedules, time.Since(start).Round(time.Millisecond), problem)
	return r.Failures[seed]
}
