package bulk

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The last batch of a killed process, and the name of a file that it created, may not be on the
// disk. A run that relied on either would import the same records again after a power failure.
func TestOpenFileSyncs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.journal")
	var synced []string
	original := syncFile
	t.Cleanup(func() { syncFile = original })
	syncFile = func(f *os.File) error {
		synced = append(synced, f.Name())
		return original(f)
	}
	for _, found := range []string{"", "+{\"step\":\"begin\"", "whole"} {
		content := []byte("00000000" + found)
		if found == "whole" {
			content = []byte(`9717880f+{"step":"begin","at":"2025-03-04T12:00:00Z","version":1,"key":"MDEyMzQ1Njc4OWFiY2RlZg==","target":"sandbox"}` + "\n")
		}
		if found != "" {
			if err := os.WriteFile(path, content, 0o600); err != nil {
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
			t.Errorf("with %q in the file: synced %q, want the file and its directory", found, synced)
		}
	}
}
