package bulk

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What an earlier process wrote before it was killed may be in memory only, as may the name of a
// file that it made. A run that relies on either after a power cut would import again what it
// cannot see any more.
func TestOpenFileSyncsWhatItFinds(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.journal")
	var synced []string
	sync := syncFile
	t.Cleanup(func() { syncFile = sync })
	syncFile = func(f *os.File) error {
		synced = append(synced, f.Name())
		return sync(f)
	}
	for _, found := range []string{"", "+{\"step\":\"begin\"", "whole"} {
		text := []byte("00000000" + found)
		if found == "whole" {
			text = []byte(`9717880f+{"step":"begin","at":"2025-03-04T12:00:00Z","version":1,"key":"MDEyMzQ1Njc4OWFiY2RlZg==","target":"sandbox"}` + "\n")
		}
		if found != "" {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		synced = nil
		j, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		if !slices.Contains(synced, path) || !slices.Contains(synced, dir) {
			t.Errorf("with %q in the file: synced %q, want the file and its folder", found, synced)
		}
	}
}
