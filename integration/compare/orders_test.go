package compare

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/bytedance/sonic"
	gojson "github.com/goccy/go-json"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/plain"
)

// instantTransport responds to every request with one body, without a network.
type instantTransport []byte

func (a instantTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(a)), ContentLength: int64(len(a)), Request: r,
	}, nil
}

// BenchmarkOrderPage gets a page of 50 orders. This module uses the whole client, over a transport
// that responds at once, and keeps the received JSON. The others decode a document in memory.
func BenchmarkOrderPage(b *testing.B) { compare(b, orderPage(b)) }

func orderPage(t testing.TB) comparison[any] {
	document := plain.OrderPageJSON(50)
	client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: instantTransport(document)}))
	if err != nil {
		t.Fatal(err)
	}
	by := func(unmarshal func([]byte, any) error) func([]byte) (any, error) {
		return func(document []byte) (any, error) {
			v := new(plain.OrderPage)
			return v, unmarshal(document, v)
		}
	}
	decoders := []decoder{
		{"encoding", by(json.Unmarshal)},
		{"ours", func([]byte) (any, error) {
			return client.Orders.List(t.Context(), labhealth.ListOrdersParams{Size: 50})
		}},
		{"goccy", by(gojson.Unmarshal)},
		{"sonic", by(sonic.ConfigFastest.Unmarshal)},
	}
	return comparison[any]{document, decoders, func(v any) any { return content(t, v) }, reflect.DeepEqual}
}

// content returns the JSON of a value as a tree, without null fields and with all times in UTC.
func content(t testing.TB, v any) any {
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(encoded, &tree); err != nil {
		t.Fatal(err)
	}
	return normalizeTree(tree)
}

func normalizeTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			if field == nil {
				delete(v, name)
			} else {
				v[name] = normalizeTree(field)
			}
		}
	case []any:
		for i := range v {
			v[i] = normalizeTree(v[i])
		}
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			return t.UTC()
		}
	}
	return v
}
