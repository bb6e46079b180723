package main

import (
	"os"
	"regexp"
	"testing"
)

// docs/scaling.md has no statement that changes tables: readers would run it while workers write,
// and lose data.
func TestScalingChangesNoTables(t *testing.T) {
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range regexp.MustCompile(`(?i)\b(alter|create|drop|attach|truncate)\s+(table|index|partition)\b`).FindAll(page, -1) {
		t.Errorf("the page has %q", statement)
	}
}
