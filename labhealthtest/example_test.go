package labhealthtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func Example() {
	srv, err := labhealthtest.Start(
		labhealthtest.WithSeed(1),
		labhealthtest.WithClock(func() time.Time { return time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC) }),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.AddUser("ada")

	req, err := http.NewRequest(http.MethodGet, srv.URL+"/v2/user/", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("x-service-api-key", srv.APIKey)
	resp, err := httpClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Status)
	fmt.Println(string(body))
	fmt.Println(srv.Requests()[0].Path)
	// Output:
	// 200 OK
	// {"users":[{"user_id":"d67084ca-af0e-4d36-8849-6db7fef55fe0","team_id":"6ae6783f-4fbd-491b-aeb8-8b73a48ed247","client_user_id":"ada","created_on":"2025-03-04T12:00:00+00:00","connected_sources":[],"fallback_birth_date":null,"fallback_time_zone":null}],"total":1,"offset":0,"limit":100}
	// /v2/user/
}

// An application that receives the events of an order while the order goes its way.
func ExampleServer_DeliverTo() {
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct {
			Type string `json:"event_type"`
			Data struct {
				LastEvent struct {
					Status string `json:"status"`
				} `json:"last_event"`
			} `json:"data"`
		}
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		kind := strings.TrimPrefix(event.Type, "labtest.order.")
		fmt.Printf("%s: %s\n", kind, event.Data.LastEvent.Status)
	}))
	defer application.Close()

	srv, err := labhealthtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	if err := srv.DeliverTo(application.URL); err != nil {
		fmt.Println(err)
		return
	}

	order, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.OnSite)
	for range 3 {
		if err == nil {
			_, err = srv.Advance(order)
		}
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.Flush(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// created: received.on_site_collection.ordered
	// updated: received.on_site_collection.requisition_created
	// updated: sample_with_lab.on_site_collection.draw_completed
	// updated: completed.on_site_collection.completed
}
