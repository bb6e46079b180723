package powercut_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
		"a commit without a change", "webhooks/sqlstore/sqlite.go",
		"func ensureCommit(ctx context.Context, tx *sql.Tx) error {\n", "func ensureCommit(ctx context.Context, tx *sql.Tx) error {\n\treturn nil\n",
		"^TestSQLite$/^full-on-strict$", "400", "acknowledged and lost: [",
	},
	{
		"an ID that was seen", "webhooks/sqlstore/sqlite.go",
		"return d.transact(ctx, func(*sql.Tx) error { return nil })", "return nil",
		"^TestSQLite$/^full-on-strict$", "400", "acknowledged and lost: [",
	},
	{
		"the end of a journal", "bulk/journal_file.go",
		"if err := syncFile(j.f); err != nil { // a killed process may not have synced its last batch", "if err := error(nil); err != nil {",
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

// The tests find the library without each of the syncs that they made necessary.
func TestMutants(t *testing.T) {
	if !long {
		t.Skip("takes minutes: LABHEALTH_TEST_LONG=1")
	}
	mount(t, cutfs.New(cutfs.Strict)) // or skip
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			binary := m.build(t)
			cmd := exec.Command(binary, "-test.v", "-test.run", m.test)
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

// build builds the tests with the mutant in place of the file.
func (m *mutant) build(t *testing.T) (binary string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(source), m.old) != 1 {
		t.Fatalf("%s does not have this once: %s", m.file, m.old)
	}
	dir := t.TempDir()
	replaced, overlay, binary := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{path: replaced}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{replaced: strings.Replace(string(source), m.old, m.new, 1), overlay: string(description)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%w\n%s", err, out))
	}
	return binary
}
