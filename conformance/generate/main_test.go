package main

import (
	"bytes"
	"os"
	"testing"
)

// The committed vectors are those that this program writes.
func TestCommittedVectors(t *testing.T) {
	want, err := encode(vectors())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("conformance/signatures.json is not current: run go run ./generate in conformance")
	}
}

func TestSameNameTwice(t *testing.T) {
	if _, err := encode([]vector{{Name: "a"}, {Name: "a"}}); err == nil {
		t.Error("two vectors with one name are accepted")
	}
}
