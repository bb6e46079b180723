package labhealth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// answeringWith returns a client whose every request gets this answer, and the bodies of those requests.
func answeringWith(t *testing.T, body string) (*Client, *[]string) {
	t.Helper()
	var sent []string
	client, err := NewClient("key", WithBaseURL("https://api.example.com"), WithHTTPClient(&http.Client{
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			b, _ := io.ReadAll(r.Body)
			sent = append(sent, string(b))
			return &http.Response{
				StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
			}, nil
		}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return client, &sent
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A date that was forgotten must not become the null that releases an order.
func TestZeroDateDoesNotRelease(t *testing.T) {
	client, sent := answeringWith(t, `{}`)
	for _, opts := range [][]CallOption{nil, {WithoutValidation()}} {
		_, err := client.Orders.Reschedule(t.Context(), uuid.New(), Date{}, opts...)
		if OutcomeOf(err) != OutcomeNotSent || !errors.Is(err, ErrValidation) {
			t.Errorf("%v", err)
		}
	}
	if len(*sent) > 0 {
		t.Errorf("sent %q", *sent)
	}
	if b, err := json.Marshal(UpdateOrderBody{ActivateBy: Value(Date{})}); err == nil {
		t.Errorf("encoded as %s", b)
	}
	if b, err := json.Marshal(UpdateOrderBody{ActivateBy: Null[Date]()}); err != nil || string(b) != `{"activate_by":null}` {
		t.Errorf("%s, %v", b, err)
	}
}

// Through Do, too, only an order id proves that there is an order.
func TestDoWantsAnOrder(t *testing.T) {
	client, _ := answeringWith(t, `{}`)
	for _, out := range []any{&PostOrderResponse{}, &Order{}} {
		err := client.Do(t.Context(), "POST", "/v3/order/import", map[string]int{}, out)
		var unreadable *DecodeError
		if !errors.As(err, &unreadable) || OutcomeOf(err) != OutcomeUnknown {
			t.Errorf("%T: %v", out, err)
		}
	}
}

// A status is text from outside, and only what looks like a status is printed.
func TestOddStatusIsNotPrinted(t *testing.T) {
	o := Order{LastEvent: OrderEvent{Status: "received.testkit.ordered"}}
	if got := fmt.Sprint(o); got != "labhealth.Order{00000000-0000-0000-0000-000000000000 received.testkit.ordered, redacted}" {
		t.Error(got)
	}
	o.LastEvent.Status = "Ada Example 1990\nfoo"
	if got := fmt.Sprint(o); got != "labhealth.Order{00000000-0000-0000-0000-000000000000 ?, redacted}" {
		t.Error(got)
	}
}

// Members of a map that did not fit stay beside one that is changed.
func TestChangedMapKeepsTheRest(t *testing.T) {
	var h WebhookHeaders
	if err := json.Unmarshal([]byte(`{"headers":{"X-B":5,"X-A":"1","X-C":{"a":1},"X-D":"4"},"new":1}`), &h); err != nil {
		t.Fatal(err)
	}
	h.Headers["X-A"] = "2"
	delete(h.Headers, "X-D")
	b, err := json.Marshal(h)
	if want := `{"headers":{"X-A":"2","X-B":5,"X-C":{"a":1}},"new":1}`; err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}

func TestImagesAreBase64(t *testing.T) {
	if got := *NewJPEG([]byte("image")); got != (SignatureImage{Content: "aW1hZ2U=", ContentType: "image/jpeg"}) {
		t.Error(got.Content, got.ContentType)
	}
	if got := *NewPNG([]byte("image")); got != (SignatureImage{Content: "aW1hZ2U=", ContentType: "image/png"}) {
		t.Error(got.Content, got.ContentType)
	}
}

// What was read of a brand is sent again without the members that this version does not know.
func TestBrandIsSentAsKnown(t *testing.T) {
	var brand BrandInformation
	if err := json.Unmarshal([]byte(`{"company_name":"Example","new_member":1}`), &brand); err != nil {
		t.Fatal(err)
	}
	var sent string
	client, err := NewManagementClient(uuid.New(), "key", WithBaseURL("https://api.example.com"), WithHTTPClient(&http.Client{
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			b, _ := io.ReadAll(r.Body)
			sent = string(b)
			return nil, errors.New("enough")
		}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"sandbox":{"brand_information":{"company_name":"Example"}}}`
	_, _ = client.Teams.SetBrandInformation(t.Context(), uuid.New(), TeamEnvironmentSandbox, brand)
	if sent != want {
		t.Error(sent)
	}
	settings := UpdateTeamSettings{BrandInformation: Value(brand)}
	_, _ = client.Teams.Update(t.Context(), uuid.New(), UpdateTeamBody{Sandbox: &settings})
	if sent != want {
		t.Error(sent)
	}
	if given, _ := settings.BrandInformation.Get(); given.RawJSON() == nil {
		t.Error("the caller's brand was changed")
	}
}
