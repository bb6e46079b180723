package reference

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Every document is valid JSON, the same for the same seed, and a plausible one has every field.
func TestGenerator(t *testing.T) {
	for name, fields := range Components() {
		if fields[0].Name == "(itself)" {
			continue
		}
		f := fields[0]
		for seed := range uint64(20) {
			document := NewGenerator(seed).Document(f.API, f.Component)
			if !json.Valid(document) {
				t.Fatalf("%s: %s", name, document)
			}
			if again := NewGenerator(seed).Document(f.API, f.Component); !bytes.Equal(document, again) {
				t.Fatalf("%s: seed %d gives %s and %s", name, seed, document, again)
			}
		}
		g := NewGenerator(1)
		g.Plausible = true
		document := g.Document(f.API, f.Component)
		var got map[string]json.RawMessage
		if err := json.Unmarshal(document, &got); err != nil {
			t.Fatalf("%s: %v in %s", name, err, document)
		}
		for _, f := range fields {
			if value, ok := got[f.Name]; !ok || string(value) == "null" {
				t.Errorf("%s is %q", f.Key(), value)
			}
		}
		if len(got) != len(fields) {
			t.Errorf("%s has %d fields, want %d", name, len(got), len(fields))
		}
	}
}

func TestFixedValues(t *testing.T) {
	g := NewGenerator(7)
	g.Fixed = map[string]any{"user_id": "a", "ClientFacingSource.slug": "fitbit", "ClientFacingSleep.total": 7}
	for range 100 {
		var got struct {
			UserID string `json:"user_id"`
			Total  int
			Source struct{ Slug string }
		}
		if err := json.Unmarshal(g.Document("team", "ClientFacingSleep"), &got); err != nil {
			t.Fatal(err)
		}
		if got.UserID != "a" || got.Total != 7 || got.Source.Slug != "fitbit" {
			t.Fatalf("%+v", got)
		}
	}
}
