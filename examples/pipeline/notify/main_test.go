package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

const want = `1 of 7 events have arrived
the results of order 3d548014-7a18-42bb-afea-a21a0d2bbebd are there
`

// The program prints what is here and in README.md.
func TestOutput(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	main()
	w.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want) {
		t.Error("README.md does not have the output")
	}
}
