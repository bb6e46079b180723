// Package mutate builds the tests of a package with planted defects, which they must find.
package mutate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// root is that of the repository, from the directory of a test.
const root = "../.."

// Edit replaces a text that a file has once.
type Edit struct {
	File     string // from the root of the repository
	Old, New string
}

// Apply returns the edited files by their paths, and changes none. It fails the test if a file does
// not have a text once: the code has changed, and the defect has to follow it.
func Apply(t testing.TB, edits ...Edit) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, e := range edits {
		path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(e.File)))
		if err != nil {
			t.Fatal(err)
		}
		if files[path] == "" {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[path] = string(content)
		}
		if n := strings.Count(files[path], e.Old); n != 1 {
			t.Fatalf("%s has %q %d times", e.File, e.Old, n)
		}
		files[path] = strings.Replace(files[path], e.Old, e.New, 1)
	}
	return files
}

// Build compiles the tests of the package in the working directory with files in place of those of
// the tree, and returns the path of the program. It fails the test if they do not compile.
func Build(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	for path, content := range files {
		replaced[path] = filepath.Join(dir, strconv.Itoa(len(replaced))+".go")
		write(t, replaced[path], []byte(content))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	write(t, list, overlay)
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", list, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
