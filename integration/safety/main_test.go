package main

import (
	"os"
	"strings"
	"testing"
)

// The table of the documentation is what is measured. A row is measured again if it differs,
// because on a busy machine an attempt may exceed its timeout.
func TestTable(t *testing.T) {
	t.Chdir("..")
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) != 8 || len(clients) != 7 {
		t.Errorf("%d faults with %d clients", len(faults), len(clients))
	}
	var measured string
	for range 3 {
		measured = table(t.Context())
		if strings.Contains(string(text), "<!-- orders -->\n"+measured+"<!-- /orders -->") {
			return
		}
	}
	t.Errorf("%s has another table: run go run -C integration ./safety. Measured:\n%s", document, measured)
}
