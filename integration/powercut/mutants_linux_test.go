package powercut_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/integration/internal/mutate"
	"github.com/labhealth/labhealth-go/integration/powercut/cutfs"
)

// mutant is the library without one of the lines that make it safe.
type mutant struct {
	name     string
	file     string // in the root of the repository
	old, new string
	test     string // finds it
	cuts     string // at most
	loss     string // what the test reports
}

var mutants = []mutant{
	{
		"a commit without a change", "webhooks/sqlstore/transaction.go",
		"func ensureCommit(ctx context.Context, tx *sql.Tx) error {\n", "func ensureCommit(ctx context.Context, tx *sql.Tx) error {\n\treturn nil\n",
		"^TestSQLite$/^full-on-strict$", "400", "acknowledged and lost: [",
	},
	{
		"an ID that was seen", "webhooks/sqlstore/transaction.go",
		"return s.transact(ctx, \"seen\", func(*sql.Tx) error { return nil })", "return nil",
		"^TestSQLite$/^full-on-strict$", "400", "acknowledged and lost: [",
	},
	{
		"the end of a journal", "bulk/journal_file.go",
		"if err := j.f.Sync(); err != nil { // a killed process may not have synced its last batch", "if err := error(nil); err != nil {",
		"^TestBulk$/^strict$", "400", "a journal is rejected",
	},
	{
		"the name of a journal", "bulk/journal_file.go",
		"if err = j.recover(); err == nil {", "if err = j.recover(); err == nil && !j.existed {",
		"^TestBulk$/^strict$", "400", "is asked for again",
	},
	{
		"a journal of zeros", "bulk/journal_file.go",
		`isZero := len(bytes.Trim(content, "\x00")) == 0`, "isZero := false",
		"^TestBulk$/^strict$", "400", "a journal is rejected",
	},
}

// The tests find the library without each of the syncs that they made necessary. The short form
// only checks that each defect can be planted.
func TestMutants(t *testing.T) {
	if long {
		mount(t, cutfs.New(cutfs.Strict)) // or skip
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			files := mutate.Apply(t, mutate.Edit{File: m.file, Old: m.old, New: m.new})
			if !long {
				return
			}
			cmd := exec.Command(mutate.Build(t, files), "-test.v", "-test.run", m.test)
			cmd.Env = append(os.Environ(), "LABHEALTH_CUTS="+m.cuts, "LABHEALTH_CUT_SEED=")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), m.loss) {
				t.Errorf("not found in %s cuts: %v\n%s", m.cuts, err, out)
			}
			t.Log(lastTally(string(out)))
		})
	}
}

// lastTally returns the line of the output that has the figures.
func lastTally(out string) (tally string) {
	for line := range strings.Lines(out) {
		if strings.Contains(line, " cuts ") {
			tally = strings.TrimSpace(line)
		}
	}
	return tally
}
