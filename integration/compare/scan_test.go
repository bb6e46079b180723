package compare

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/bytedance/sonic"
	"github.com/go-faster/jx"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/plain"
	"github.com/labhealth/labhealth-go/webhooks"
)

// BenchmarkScan only checks that an event with 10,000 samples is JSON: what reading could come to at best. "ours" is ParseEnvelope,
// which steps over the data; "ours-general" is the scanner of answers; sonic checks with vector instructions.
func BenchmarkScan(b *testing.B) {
	errInvalid := errors.New("not valid")
	valid := func(check func([]byte) bool) func([]byte) (any, error) {
		return func(text []byte) (any, error) {
			if !check(text) {
				return nil, errInvalid
			}
			return nil, nil
		}
	}
	readers := []reader{
		{"encoding", valid(json.Valid)},
		{"ours", func(text []byte) (any, error) {
			_, err := webhooks.ParseEnvelope(text)
			return nil, err
		}},
		{"ours-general", func(text []byte) (any, error) { return nil, jsonread.Valid(text) }},
		{"sonic", valid(sonic.Valid)},
		{"jx", valid(jx.Valid)},
	}
	for _, form := range []string{"uniform", "mixed"} {
		b.Run(form, func(b *testing.B) {
			text := plain.EventText(10_000, form)
			for _, r := range readers {
				if _, err := r.read(text[:len(text)-1]); err == nil {
					b.Fatal(r.name, "takes half an event")
				}
			}
			compare(b, work[bool]{text, readers, func(any) bool { return true }, func(a, b bool) bool { return a == b }})
		})
	}
}
