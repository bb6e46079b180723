package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// output is a file that gets its name when it is complete.
type output struct {
	*os.File

	path string
}

func createOutput(path string) (*output, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".rejected-*")
	return &output{f, path}, err
}

func (o *output) finish() error {
	return errors.Join(o.Sync(), o.Close(), os.Rename(o.Name(), o.path))
}

// discard removes the file if it is not finished.
func (o *output) discard() {
	o.Close()
	os.Remove(o.Name())
}

// failures counts failed attempts by their error.
type failures struct {
	mu    sync.Mutex
	count map[string]int
}

// add is [bulk.Options.OnError]. The message quotes nothing; without the request ID it is the same
// for the same failure.
func (f *failures) add(_ string, err error) {
	message, _, _ := strings.Cut(err.Error(), " (request ")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count = map[string]int{}
	}
	f.count[message]++
}

// print writes the most frequent failures.
func (f *failures) print(w io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for message, n := range f.count {
		lines = append(lines, fmt.Sprintf("%6d × %s", n, message))
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	for _, line := range lines[:min(len(lines), 5)] {
		fmt.Fprintln(w, line)
	}
}
