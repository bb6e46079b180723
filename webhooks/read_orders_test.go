package webhooks_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

const orderDocument = `{"id":"7c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c1%d","user_id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","new":[1, 2],"created_at":"2025-03-01T12:00:00Z"}`

// orderPages is a client of a service whose requests take a second each. Every page has two orders.
func orderPages(t *testing.T, pages int) *labhealth.Client {
	client, err := labhealth.NewClient("key", labhealth.WithBaseURL("https://api.example"), labhealth.WithHTTPClient(&http.Client{
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			number := 1
			fmt.Sscan(r.URL.Query().Get("page"), &number)
			body := fmt.Sprintf(`{"orders":[`+orderDocument+`,`+orderDocument+`],"page":%d,"size":2,"total":%d}`, 2*number-2, 2*number-1, number, 2*pages)
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestReadOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := orderPages(t, 3)
		var own labhealth.Response
		for name, c := range map[string]struct {
			opts []labhealth.CallOption
			want []string
		}{
			"no options":   {nil, []string{"0s", "0s", "21s", "21s", "42s", "42s"}},
			"WithResponse": {[]labhealth.CallOption{labhealth.WithResponse(&own)}, []string{"0s", "0s", "21s", "21s", "42s", "42s"}},
		} {
			start := time.Now()
			var got []string
			n := 0
			for e, err := range webhooks.ReadOrders(t.Context(), client, labhealth.ListOrdersParams{Size: 2}, c.opts...) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.ReceivedAt.Sub(start).String())
				order := e.Data.(*webhooks.LabOrder)
				if want := fmt.Sprintf(orderDocument, n); e.Type != webhooks.LabTestOrderUpdated || string(order.RawJSON()) != want || e.UserID != order.UserID || e.UserID == uuid.Nil {
					t.Errorf("%s: %v %s, want %s", name, e.Type, order.RawJSON(), want)
				}
				n++
				time.Sleep(10 * time.Second) // what the caller does with it
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if own.StatusCode != 200 {
			t.Error("the caller's response was not filled")
		}
	})
}

func TestReadOrdersFails(t *testing.T) {
	n := 0
	for e, err := range webhooks.ReadOrders(t.Context(), nil, labhealth.ListOrdersParams{}) {
		if n++; e != nil || err == nil {
			t.Error(e, err)
		}
	}
	if n != 1 {
		t.Error(n)
	}
}

func TestEventOfOrder(t *testing.T) {
	at := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, order := range []*labhealth.Order{nil, {}} {
		if e, err := webhooks.EventOfOrder(order, at); e != nil || !errors.Is(err, webhooks.ErrPermanent) {
			t.Error(e, err)
		}
	}
	order := &labhealth.Order{ID: uuid.MustParse("7c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c10"), TeamID: uuid.MustParse("3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c12")}
	e, err := webhooks.EventOfOrder(order, at)
	if err != nil || e.UserID != uuid.Nil || e.TeamID != order.TeamID || !e.ReceivedAt.Equal(at) || e.Data.(*webhooks.LabOrder).ID != order.ID {
		t.Error(e, err)
	}
}
