package world

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bug is a bug that is planted in a copy of a source file.
type bug struct {
	name     string
	file     string // from the root of the repository
	old, new string
}

var bugs = []bug{
	{"the journal is not synced", "bulk/journal_file.go", "return j.keepErr(j.f.Sync())", "return nil"},
	{"the intent is forgotten", "bulk/send.go", "r.addEntry(Entry{Step: StepIntent,", "_ = (Entry{Step: StepIntent,"},
	{"an intent without a mark was never sent", "bulk/index.go", "if x.lease.marks && x.lease.isOf(x.boot) {", "if true {"},
	{"nothing is waited for", "bulk/resolve.go", "left := r.opts.Settle - start.Sub(since)", "left := 0 * (r.opts.Settle - start.Sub(since))"},
	{"all attempts ended long ago", "bulk/lease.go", "min(ago, r.opts.Settle-minSettle)", "max(ago, r.opts.Settle-minSettle)"},
	{"a lost connection means not sent", "internal/transport/retry.go", "if c.proof != nil && c.proof.notSent() {", "if c.proof != nil {"},
	{"a lost connection means rejected", "internal/transport/retry.go", "v := verdict{outcome: Unknown}", "v := verdict{outcome: Rejected}"},
	{"a repeated delivery is acknowledged without a sync", "webhooks/sqlstore/sqlite.go", "if err := ensureCommit(ctx, tx); err != nil {", "if err := error(nil); err != nil {"},
	{"the log is not synced", "integration/world/vfs_test.go", "synchronous(FULL)", "synchronous(NORMAL)"},
	{"the ID is stored before the delivery", "webhooks/process.go", "	reason, err := h.dispatch(ctx, c, d)", "	_ = h.storeID(ctx, c, d.id)\n	reason, err := h.dispatch(ctx, c, d)"},
	{"the ID is not stored", "webhooks/sqlstore/sqlite.go", "n, err := result.RowsAffected(); err != nil || n == 0 {", "n, err := result.RowsAffected(); err != nil || n < 0 {"},
	{"the delivery is acknowledged before it is stored", "webhooks/sqlstore/sqlite.go", "	case d.writing <- struct{}{}:\n	}\n	d.mu.Lock()", "	case d.writing <- struct{}{}:\n		go func() { d.receiveAll(context.WithoutCancel(ctx), []*receipt{r}); d.release() }()\n		return nil\n	}\n	d.mu.Lock()"},
	{"the older version of a sample wins", "internal/newest/newest.go", "case received < stored:", "case received > stored:"},
	{"the older version of an order wins", "webhooks/sqlstore/orders_write.go", "	case c < 0:\n		return newest.Older, false", "	case c > 0:\n		return newest.Older, false"},
	{"a found journal is not synced", "bulk/journal_file.go", "if err := j.f.Sync(); err != nil { // a killed", "if err := error(nil); err != nil { // a killed"},
	{"the directory of the journal is not synced", "bulk/journal_file.go", "err = m.SyncDir(path)", "err = nil"},
}

// TestBugs plants bugs, and reports how many schedules find each:
//
//	LABHEALTH_WORLD_BUGS=1 go test -C integration -timeout 1h -v -run Bugs ./world
func TestBugs(t *testing.T) {
	selected := os.Getenv("LABHEALTH_WORLD_BUGS")
	if selected == "" {
		t.Skip("set LABHEALTH_WORLD_BUGS to 1, or to a part of a name")
	}
	for _, b := range bugs {
		if selected == "1" || strings.Contains(b.name, selected) {
			t.Run(b.name, b.find)
		}
	}
}

// limit is the number of schedules in which a bug must be found.
const limit = 6_000

func (b bug) find(t *testing.T) {
	executable := b.build(t)
	r := shards{First: 1, Count: limit, UntilFailure: true, executable: executable}.run(t)
	if len(r.Failed) == 0 {
		t.Errorf("not found in %d schedules", r.Schedules)
		return
	}
	var seeds []uint64
	for seed, problems := range r.Failed {
		seeds = append(seeds, seed)
		t.Logf("seed %d: %s", seed, problems[0])
	}
	const runs = 20
	slices.Sort(seeds)
	again := shards{Listed: seeds, Repeat: runs, executable: executable}.run(t)
	failures := 0
	for _, seed := range seeds {
		failures += again.Failures[seed]
	}
	t.Logf("found after %d schedules; the seeds fail again in %d of %d runs", r.Schedules, failures, runs*len(seeds))
}

// build builds the tests with the bug.
func (b bug) build(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, filepath.FromSlash(b.file))
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(source), b.old) != 1 {
		t.Fatalf("%s has %d times %q", b.file, strings.Count(string(source), b.old), b.old)
	}
	dir := t.TempDir()
	planted, overlay, executable := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "world.test")
	encoded, err := json.Marshal(map[string]any{"Replace": map[string]string{path: planted}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{planted: strings.Replace(string(source), b.old, b.new, 1), overlay: string(encoded)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", executable, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return executable
}
