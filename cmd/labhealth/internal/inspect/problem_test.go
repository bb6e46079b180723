package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reports collects what an inspector reports.
type reports struct {
	mu  sync.Mutex
	all []string
}

func (r *reports) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, text)
}

func (r *reports) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

func (r *reports) want(t *testing.T, want ...string) {
	t.Helper()
	got := r.take()
	if len(got) != len(want) {
		t.Fatalf("reported %q, want %q", got, want)
	}
	for n := range want {
		if !strings.Contains(got[n], want[n]) {
			t.Errorf("reported %q, want %q", got[n], want[n])
		}
	}
}

// What cannot be stored is reported at once, with the file and what to do, and at the end with a
// count. No report has anything of a delivery.
func TestProblemOfFile(t *testing.T) {
	const noSpace = "there is no space left for FILE: free some, or choose another file with --file"
	const removed = "FILE was removed or replaced: start labhealth again"
	for name, test := range map[string]struct {
		spoil func(*Inspector, string) error
		want  string
	}{
		"full": {func(i *Inspector, _ string) error {
			_, err := i.writer.db.ExecContext(t.Context(), `PRAGMA max_page_count = 1`) // the pages that there are
			return err
		}, noSpace},
		"read-only": {func(i *Inspector, _ string) error {
			_, err := i.writer.db.ExecContext(t.Context(), `PRAGMA query_only = 1`)
			return err
		}, "FILE cannot be written: check its permissions, and that its file system is not read-only"},
		"removed": {func(_ *Inspector, file string) error { return os.Remove(file) }, removed},
		"replaced": {func(_ *Inspector, file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, nil, 0o600))
		}, removed},
		"removed with its directory": {func(_ *Inspector, file string) error { return os.RemoveAll(filepath.Dir(file)) }, removed},
		"log removed":                {func(_ *Inspector, file string) error { return os.Remove(file + "-wal") }, strings.Replace(removed, "FILE", "FILE-wal", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var r reports
			file := filepath.Join(t.TempDir(), "dir", "d.db")
			i, err := Open(t.Context(), Config{Secrets: []string{testSecret}, File: file, Problem: r.add})
			if err != nil {
				t.Fatal(err)
			}
			large := strings.Replace(glucoseBody(testUser, time.Now(), 5), "patient-17", strings.Repeat("patient-17 ", 10_000), 1)
			if got := deliver(i, request(t, "msg_0", glucoseBody(testUser, time.Now(), 5))); got != 204 {
				t.Fatalf("status %d", got)
			}
			await(t, i, 1)
			if err := test.spoil(i, file); err != nil {
				t.Fatal(err)
			}
			r.take()
			for n := range 57 {
				if got := deliver(i, request(t, fmt.Sprint("msg_", n+1), large)); got != 503 {
					t.Fatalf("delivery %d: status %d", n, got)
				}
			}
			want := "cannot store deliveries: " + strings.ReplaceAll(test.want, "FILE", file)
			var stored []string
			for _, text := range r.take() {
				if strings.Contains(text, "patient-17") || strings.Contains(text, testUser.String()) {
					t.Errorf("the report has a part of the delivery: %q", text)
				}
				if strings.HasPrefix(text, "cannot store deliveries") {
					stored = append(stored, text)
				}
			}
			if len(stored) != 1 || stored[0] != want {
				t.Errorf("reported %q, want %q", stored, want)
			}
			if err := i.Close(); err != nil && strings.Contains(err.Error(), "patient") {
				t.Error(err)
			}
			if all := strings.Join(r.take(), "\n"); !strings.Contains(all, want+" (57 times since ") {
				t.Errorf("at the end: %q", all)
			}
		})
	}
}

// An application that cannot be reached is reported, which a sandbox prints nowhere else.
func TestProblemOfForward(t *testing.T) {
	var r reports
	i, err := Open(t.Context(), Config{Secrets: []string{testSecret}, Forward: "http://127.0.0.1:1/hooks?key=secret", Problem: r.add})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if got := deliver(i, request(t, fmt.Sprint("msg_", n), glucoseBody(testUser, time.Now(), 5))); got != 502 {
			t.Errorf("status %d", got)
		}
	}
	const text = "cannot forward deliveries to http://127.0.0.1:1/hooks: connection refused: is the application running, and on this port?"
	r.want(t, text)
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	r.want(t, text+" (3 times since ")
}

// A problem that lasts is reported once a minute. Its end is reported with the count, and one that
// comes and goes does not flood the terminal.
func TestProblemsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reports
		p := problems{report: r.add}
		failed := errors.New("it is full")
		for range 10_000 { // 100 s
			p.note("store", failed)
			time.Sleep(10 * time.Millisecond)
		}
		r.want(t, "cannot store: it is full", "cannot store: it is full (6001 times since ")
		p.note("store", nil)
		p.note("store", nil)
		r.want(t, "can store again: 10000 failed since ")
		time.Sleep(time.Hour)
		p.note("store", nil)
		r.want(t)
		p.note("store", failed)
		p.note("store", nil)
		r.want(t, "cannot store: it is full", "can store again: 1 failed since ")
		for range 10_000 {
			p.note("store", failed)
			p.note("store", nil)
			p.note("read", nil)
			time.Sleep(10 * time.Millisecond)
		}
		if got := r.take(); len(got) > 4 {
			t.Errorf("reported %q", got)
		}
	})
}
