package bulk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/bulk"
)

var someEntries = []bulk.Entry{
	{Step: bulk.StepBegin, At: time.Date(2025, 3, 4, 12, 0, 0, 0, time.UTC), Version: 1, Key: []byte("0123456789abcdef"), Target: "sandbox"},
	{Step: bulk.StepIntent, At: time.Date(2025, 3, 4, 12, 0, 1, 0, time.UTC), SampleID: "A\n\u2028", Record: 1, Digest: "00deadbeef"},
	{Step: bulk.StepIntent, At: time.Date(2025, 3, 4, 12, 0, 1, 0, time.UTC), SampleID: "B", Record: 2, Digest: "1111111111"},
	{Step: bulk.StepApplied, At: time.Date(2025, 3, 4, 12, 0, 2, 0, time.UTC), SampleID: "A\n\u2028", Record: 1, OrderID: uuid.MustParse("00000000-0000-4000-8000-000000000001")},
	{Step: bulk.StepRejected, At: time.Date(2025, 3, 4, 12, 0, 2, 0, time.UTC), SampleID: "B", Record: 2, StatusCode: 422, RequestID: "req-1",
		Fields: []bulk.Problem{{Path: "body.user_id", Reason: "missing"}}},
}

const someLines = `9717880f+{"step":"begin","at":"2025-03-04T12:00:00Z","version":1,"key":"MDEyMzQ1Njc4OWFiY2RlZg==","target":"sandbox"}
9b6dbb7f+{"step":"intent","at":"2025-03-04T12:00:01Z","sample_id":"A\n\u2028","record":1,"digest":"00deadbeef"}
a804b5fa {"step":"intent","at":"2025-03-04T12:00:01Z","sample_id":"B","record":2,"digest":"1111111111"}
638213c9+{"step":"applied","at":"2025-03-04T12:00:02Z","sample_id":"A\n\u2028","record":1,"order_id":"00000000-0000-4000-8000-000000000001"}
c314732c {"step":"rejected","at":"2025-03-04T12:00:02Z","sample_id":"B","record":2,"status":422,"request_id":"req-1","fields":[{"path":"body.user_id","reason":"missing"}]}
`

func open(t *testing.T, path string) *bulk.File {
	t.Helper()
	j, err := bulk.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func entries(t *testing.T, j bulk.Journal) (list []bulk.Entry) {
	t.Helper()
	for e, err := range j.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.journal")
	j := open(t, path)
	for _, batch := range [][]bulk.Entry{someEntries[:1], someEntries[1:3], someEntries[3:]} {
		if err := j.Append(batch); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if diff := cmp.Diff(someEntries, entries(t, j)); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
	}
	if _, err := bulk.OpenFile(path); !errors.Is(err, bulk.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if err := errors.Join(j.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(someEntries[:1]); err == nil {
		t.Error("a closed journal accepted an entry")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, "file", string(content), someLines)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if diff := cmp.Diff(someEntries, entries(t, open(t, path))); diff != "" {
		t.Errorf("entries of the file opened again (-want +got):\n%s", diff)
	}
}

// A crash can truncate the file anywhere in its last batch, and lose any part of that batch.
func TestFileAfterCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	lines := strings.SplitAfter(someLines, "\n")
	lastBatch := len(strings.Join(lines[:3], ""))
	path := filepath.Join(t.TempDir(), "run.journal")
	try := func(content string, want int) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, path)
		if got := entries(t, j); len(got) != want {
			t.Errorf("%d entries, want %d", len(got), want)
		}
		more := bulk.Entry{Step: bulk.StepIntent, SampleID: "C", Digest: "2222222222"}
		if err := j.Append([]bulk.Entry{more}); err != nil {
			t.Fatal(err)
		}
		if got := entries(t, j); len(got) != want+1 || got[want].SampleID != "C" {
			t.Errorf("after a further entry: %d entries, want %d", len(got), want+1)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for cut := range len(someLines) {
		whole := strings.Count(someLines[:cut], "\n")
		if cut > 9 || whole > 0 {
			try(someLines[:cut], whole)
		}
	}
	try("", 0)
	try(string(make([]byte, len(lines[0]))), 0) // a new file can have the length of its first line without the content
	// A block of the last batch that was not written reads as zeros.
	for at := lastBatch; at < len(someLines); at += 7 {
		content := []byte(someLines)
		clear(content[at:min(at+40, len(content))])
		want := 3
		if at > lastBatch+len(lines[3]) {
			want = 4
		}
		if got := bytes.Count(content[lastBatch:at], []byte("\n")); got+3 != want && at+40 < len(content) {
			want = 3 + got
		}
		try(string(content), want)
	}
}

// Any other damage, or a file that is not a journal, is an error, and the file is not changed.
func TestInvalidFiles(t *testing.T) {
	lines := strings.SplitAfter(someLines, "\n")
	flipped := []byte(someLines)
	flipped[len(lines[0])+40] ^= 1
	for name, content := range map[string]string{
		"a bit in the second batch":  string(flipped),
		"a line missing its end":     lines[0] + lines[1][:20] + "\n" + strings.Join(lines[2:], ""),
		"records instead of journal": `{"user_id":"00000000-0000-4000-8000-000000000001","sample_id":"A"}` + "\n",
		"text without lines":         "hello, here is something of mine that is worth keeping",
		"a short file":               "note\n",
		"zeros":                      string(make([]byte, 2000)),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.journal")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := bulk.OpenFile(path); err == nil || strings.Contains(err.Error(), "sample_id") {
				t.Errorf("error %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != content {
				t.Error("the file was changed")
			}
			if _, err := bulk.OpenFile(path); errors.Is(err, bulk.ErrLocked) {
				t.Error("an invalid file stays locked")
			}
		})
	}
	if _, err := bulk.OpenFile(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
}

func TestLongLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.journal")
	j := open(t, path)
	want := []bulk.Entry{someEntries[0]}
	for i := range 5 {
		want = append(want, bulk.Entry{Step: bulk.StepIntent, SampleID: fmt.Sprint(i, strings.Repeat("x", i*50_000)), Digest: "3333333333"})
	}
	if err := j.Append(want); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if diff := cmp.Diff(want, entries(t, open(t, path))); diff != "" {
		t.Error("long lines changed")
	}
}

// A journal that this version does not support is an error.
func TestUnsupportedJournals(t *testing.T) {
	s := &service{}
	for name, list := range map[string][]bulk.Entry{
		"a later version": {{Step: bulk.StepBegin, Version: 2, Key: []byte("k")}},
		"two beginnings":  {someEntries[0], someEntries[0]},
		"no beginning":    {someEntries[1]},
		"an unknown step": {someEntries[0], {Step: "revoked", SampleID: "A"}},
		"a bad digest":    {someEntries[0], {Step: bulk.StepIntent, SampleID: "A", Digest: "xxxxxxxxxx"}},
		"no digest":       {someEntries[0], {Step: bulk.StepIntent, SampleID: "A"}},
	} {
		j := new(bulk.Memory)
		j.Append(list)
		if _, err := bulk.Run(t.Context(), s.client(t), from(records("A")), j, bulk.Options{Target: "sandbox"}); err == nil || len(s.sent) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
