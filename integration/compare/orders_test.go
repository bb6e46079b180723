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

// atOnce answers everything with one body, without a network.
type atOnce []byte

func (a atOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(a)), ContentLength: int64(len(a)), Request: r,
	}, nil
}

// BenchmarkOrderPage reads a page of 50 orders: with the whole client over a transport that answers at once, every byte kept;
// with the others from a text that is there, into structs that keep nothing.
func BenchmarkOrderPage(b *testing.B) { compare(b, orderPage(b)) }

func orderPage(t testing.TB) work[any] {
	text := plain.OrderPageText(50)
	client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: atOnce(text)}))
	if err != nil {
		t.Fatal(err)
	}
	by := func(unmarshal func([]byte, any) error) func([]byte) (any, error) {
		return func(text []byte) (any, error) {
			v := new(plain.OrderPage)
			return v, unmarshal(text, v)
		}
	}
	readers := []reader{
		{"encoding", by(json.Unmarshal)},
		{"ours", func([]byte) (any, error) {
			return client.Orders.List(t.Context(), labhealth.ListOrdersParams{Size: 50})
		}},
		{"goccy", by(gojson.Unmarshal)},
		{"sonic", by(sonic.ConfigFastest.Unmarshal)},
	}
	return work[any]{text, readers, func(v any) any { return content(t, v) }, reflect.DeepEqual}
}

// content is what a value says as JSON: without members that are null, and with all times in UTC.
func content(t testing.TB, v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return plainly(tree)
}

func plainly(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				v[name] = plainly(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = plainly(v[i])
		}
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			return t.UTC()
		}
	}
	return v
}
