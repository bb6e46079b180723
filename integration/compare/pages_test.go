package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bytedance/sonic"
	gojson "github.com/goccy/go-json"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/plain"
)

// instantTransport responds to every request with one body, without a network.
type instantTransport struct {
	document []byte
	latest   *url.URL // of a request
}

func (t *instantTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.latest = r.URL
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(t.document)), ContentLength: int64(len(t.document)), Request: r,
	}, nil
}

// page is a response with a list.
type page struct {
	name     string
	elements int    // of the list
	list     string // its field
	document []byte
	plain    reflect.Type // what the others decode into
	direct   func() json.Unmarshaler
	client   func(context.Context, *labhealth.Client) (any, error)
}

var pages = []page{
	{"full", 50, "Orders", plain.OrderPageJSON(50), reflect.TypeFor[plain.OrderPage](), func() json.Unmarshaler { return new(labhealth.OrderPage) }, listOrders},
	{"typical", 50, "Orders", plain.TypicalOrderPageJSON(50), reflect.TypeFor[plain.OrderPage](), func() json.Unmarshaler { return new(labhealth.OrderPage) }, listOrders},
	{"other", 50, "Orders", plain.OtherOrderPageJSON(50), reflect.TypeFor[plain.OrderPage](), func() json.Unmarshaler { return new(labhealth.OrderPage) }, listOrders},
	{"users", 100, "Users", plain.UserPageJSON(100), reflect.TypeFor[plain.UserPage](), func() json.Unmarshaler { return new(labhealth.UserPage) },
		func(ctx context.Context, c *labhealth.Client) (any, error) {
			return c.Users.List(ctx, labhealth.ListUsersParams{Limit: 100})
		}},
	{"lab-tests", 50, "Data", plain.LabTestPageJSON(50), reflect.TypeFor[plain.LabTestPage](), func() json.Unmarshaler { return new(labhealth.LabTestPage) },
		func(ctx context.Context, c *labhealth.Client) (any, error) {
			return c.LabTests.List(ctx, labhealth.ListLabTestsParams{})
		}},
	{"results", 30, "Results", plain.ResultsJSON(30), reflect.TypeFor[plain.OrderResults](), func() json.Unmarshaler { return new(labhealth.OrderResults) },
		func(ctx context.Context, c *labhealth.Client) (any, error) {
			return c.Orders.Results(ctx, uuid.UUID{15: 1})
		}},
}

func listOrders(ctx context.Context, c *labhealth.Client) (any, error) {
	return c.Orders.List(ctx, labhealth.ListOrdersParams{Size: 50})
}

// libraries are the other ones.
var libraries = []struct {
	name      string
	unmarshal func([]byte, any) error
}{{"encoding", json.Unmarshal}, {"goccy", gojson.Unmarshal}, {"sonic", sonic.ConfigFastest.Unmarshal}}

// comparison compares how a page is got through a client, labhealth.Client or http.Client, over a
// transport that responds at once, and, as "-direct", how a document in memory is decoded.
func (p page) comparison(t testing.TB) comparison[any] {
	transport := &instantTransport{document: p.document}
	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL("https://api.example.com"), labhealth.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	plainClient, address := &http.Client{Transport: transport, Timeout: plainTimeout}, transport.latest.String()
	decoders := []decoder{
		{"ours", func([]byte) (any, error) { return p.client(t.Context(), client) }},
		{"ours-direct", func(document []byte) (any, error) {
			v := p.direct()
			return v, v.UnmarshalJSON(document)
		}},
	}
	for _, l := range libraries {
		decoders = append(decoders,
			decoder{l.name, func([]byte) (any, error) {
				v := reflect.New(p.plain).Interface()
				return v, get(plainClient, address, v, l.unmarshal)
			}},
			decoder{l.name + "-direct", func(document []byte) (any, error) {
				v := reflect.New(p.plain).Interface()
				return v, l.unmarshal(document, v)
			}})
	}
	return comparison[any]{p.document, decoders, func(v any) any { return content(t, v) }, reflect.DeepEqual}
}

// BenchmarkPage gets or decodes a page.
func BenchmarkPage(b *testing.B) {
	for _, p := range pages {
		b.Run(p.name, func(b *testing.B) { compare(b, p.comparison(b)) })
	}
}

// BenchmarkRetained reports what a program retains per element if it stores the lists of pages, and
// if it stores the pages. Each page is decoded from its own copy of the document, which counts if
// the values refer to it.
func BenchmarkRetained(b *testing.B) {
	for _, p := range pages {
		for _, d := range p.comparison(b).decoders {
			if !strings.HasSuffix(d.name, "-direct") {
				continue // what a program retains of a call is the same
			}
			b.Run(p.name+"/"+d.name, func(b *testing.B) {
				retained := func(part func(any) any) float64 {
					keep := make([]any, 100)
					before := liveBytes()
					for i := range keep {
						v, err := d.decode(bytes.Clone(p.document))
						if err != nil {
							b.Fatal(err)
						}
						keep[i] = part(v)
					}
					size := liveBytes() - before
					runtime.KeepAlive(keep)
					return size / float64(len(keep)*p.elements)
				}
				for b.Loop() {
					b.ReportMetric(retained(func(v any) any { return reflect.ValueOf(v).Elem().FieldByName(p.list).Interface() }), "B/element")
					b.ReportMetric(retained(func(v any) any { return v }), "B/element-of-page")
				}
			})
		}
	}
}

// liveBytes returns the size of all reachable objects.
func liveBytes() float64 {
	runtime.GC()
	runtime.GC() // empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
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
			if field == nil || name == plain.UnknownField { // what only this module keeps
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
