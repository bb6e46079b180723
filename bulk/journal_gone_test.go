//go:build unix

package bulk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

const journalGone = "bulk: the journal was removed, replaced or truncated while the run was using it, so that nothing more was sent: " +
	"put it back, or start the next run with a new journal and Options.Reconcile"

// A run whose journal is removed or replaced sends nothing more and fails: the next run would not
// know of its orders.
func TestJournalIsGone(t *testing.T) {
	bulk.SkipSync(t)
	for name, test := range map[string]struct {
		spoil func(path string) error
		want  bool // the run fails
	}{
		"removed": {os.Remove, true},
		"renamed": {func(path string) error { return os.Rename(path, path+".old") }, true},
		"replaced": {func(path string) error {
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path+".new", content, 0o600)
			}
			if err == nil {
				err = os.Rename(path+".new", path)
			}
			return err
		}, true},
		"directory renamed": {func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") }, true},
		"truncated":         {func(path string) error { return os.Truncate(path, 0) }, true},
		"copied":            {func(path string) error { return os.Link(path, path+".copy") }, false},
	} {
		for _, at := range []int{1, 57, 100} {
			synctest.Test(t, func(t *testing.T) {
				name := fmt.Sprint(name, " at ", at)
				path := filepath.Join(t.TempDir(), "dir", "run.journal")
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				s, j := &service{latency: 100 * time.Microsecond, twice: true}, open(t, path)
				s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
					if n == at {
						if err := test.spoil(path); err != nil {
							t.Error(err)
						}
					}
					return ""
				}
				_, err := bulk.Run(t.Context(), s.client(t), from(numbered(100)), j, bulk.Options{})
				if test.want && fmt.Sprint(err) != journalGone || !test.want && err != nil {
					t.Errorf("%s: error %v", name, err)
				}
				if most := at + 4; test.want && len(s.sent) > most {
					t.Errorf("%s: %d requests, want up to %d", name, len(s.sent), most)
				}
				if !test.want {
					return
				}
				j.Close()
				s.onImport = nil
				again := filepath.Join(t.TempDir(), "new.journal")
				report, err := bulk.Run(t.Context(), s.client(t), from(numbered(100)), open(t, again), bulk.Options{Reconcile: true})
				if err != nil || report.Applied != 100 || len(s.orders) != 100 {
					t.Errorf("%s: the next run: %v, %v, %d orders", name, report, err, len(s.orders))
				}
			})
		}
	}
}

// A run that sends nothing tells of a removed journal too, and a relative path stays the same one.
func TestJournalIsGoneAtTheEnd(t *testing.T) {
	bulk.SkipSync(t)
	dir := t.TempDir()
	t.Chdir(dir)
	s := new(service)
	path := filepath.Join("run.journal")
	j := open(t, path)
	t.Chdir(t.TempDir())
	if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(3)), j, bulk.Options{}); err != nil {
		t.Fatal(err)
	}
	passes := 0
	source := bulk.Source(func(yield func(bulk.Record, error) bool) {
		if passes++; passes == 1 {
			if err := os.Remove(filepath.Join(dir, path)); err != nil {
				t.Error(err)
			}
		}
		from(numbered(3))(yield)
	})
	_, err := bulk.Run(t.Context(), s.client(t), source, j, bulk.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "bulk: the journal was removed") {
		t.Errorf("error %v", err)
	}
}
