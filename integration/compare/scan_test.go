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

// BenchmarkScan only validates an event with 10,000 samples, which is a lower bound for decoding
// it. "ours" is ParseEnvelope, which skips the data; "ours-general" is the scanner of responses;
// sonic uses vector instructions.
func BenchmarkScan(b *testing.B) {
	errInvalid := errors.New("not valid")
	valid := func(check func([]byte) bool) func([]byte) (any, error) {
		return func(document []byte) (any, error) {
			if !check(document) {
				return nil, errInvalid
			}
			return nil, nil
		}
	}
	decoders := []decoder{
		{"encoding", valid(json.Valid)},
		{"ours", func(document []byte) (any, error) {
			_, err := webhooks.ParseEnvelope(document)
			return nil, err
		}},
		{"ours-general", func(document []byte) (any, error) { return nil, jsonread.Valid(document) }},
		{"sonic", valid(sonic.Valid)},
		{"jx", valid(jx.Valid)},
	}
	for _, form := range []string{"uniform", "mixed"} {
		b.Run(form, func(b *testing.B) {
			document := plain.EventJSON(10_000, form)
			for _, d := range decoders {
				if _, err := d.decode(document[:len(document)-1]); err == nil {
					b.Fatal(d.name, "accepts a truncated event")
				}
			}
			compare(b, comparison[bool]{document, decoders, func(any) bool { return true }, func(a, b bool) bool { return a == b }})
		})
	}
}
