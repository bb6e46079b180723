package labhealth

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/plain"
)

// instant responds with an empty body, without hooks.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A call without options allocates little apart from what the transport and the decoder do.
func TestCallAllocations(t *testing.T) {
	client, err := NewClient("sk_test_0123456789", WithBaseURL("https://api.example.com"), WithHTTPClient(&http.Client{Transport: instant{}}))
	if err != nil {
		t.Fatal(err)
	}
	r := request{op: opGetOrder, ids: []string{"0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"}}
	got := testing.AllocsPerRun(200, func() {
		if err := client.core.do(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	})
	if got > 38 { // 37, and under the race detector, a pool that drops elements on purpose
		t.Errorf("%v allocations, want at most 38", got)
	}
}

// respondingWith responds to every request with its bytes.
type respondingWith []byte

func (document respondingWith) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(document)), ContentLength: int64(len(document)), Request: r,
	}, nil
}

// A list takes few allocations for each element, decoded alone and got by the client. The limits
// have room for pools that drop elements.
func TestListAllocations(t *testing.T) {
	listOrders := func(c *Client) error {
		_, err := c.Orders.List(t.Context(), ListOrdersParams{Size: 50})
		return err
	}
	for _, test := range []struct {
		name     string
		document []byte
		elements int
		limit    float64 // for each element
		value    json.Unmarshaler
		call     func(*Client) error
	}{
		{"full orders", plain.OrderPageJSON(50), 50, 20, new(OrderPage), listOrders},
		{"typical orders", plain.TypicalOrderPageJSON(50), 50, 13, new(OrderPage), listOrders},
		{"users", plain.UserPageJSON(100), 100, 6, new(UserPage), func(c *Client) error {
			_, err := c.Users.List(t.Context(), ListUsersParams{Limit: 100})
			return err
		}},
		{"lab tests", plain.LabTestPageJSON(50), 50, 9, new(LabTestPage), func(c *Client) error {
			_, err := c.LabTests.List(t.Context(), ListLabTestsParams{})
			return err
		}},
		{"results", plain.ResultsJSON(30), 30, 6, new(OrderResults), func(c *Client) error {
			_, err := c.Orders.Results(t.Context(), uuid.UUID{15: 1})
			return err
		}},
	} {
		client, err := NewClient("sk_test_0123456789", WithBaseURL("https://api.example.com"), WithHTTPClient(&http.Client{Transport: respondingWith(test.document)}))
		if err != nil {
			t.Fatal(err)
		}
		for how, decode := range map[string]func() error{
			"decoded": func() error { return test.value.UnmarshalJSON(test.document) },
			"got":     func() error { return test.call(client) },
		} {
			got := testing.AllocsPerRun(20, func() {
				if err := decode(); err != nil {
					t.Fatal(err)
				}
			})
			if got /= float64(test.elements); got > test.limit {
				t.Errorf("%s %s: %.1f allocations for each, want at most %v", test.name, how, got, test.limit)
			}
			t.Logf("%s %s: %.1f allocations for each", test.name, how, got)
		}
	}
}
