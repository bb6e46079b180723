package labhealthtest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Each of many watchers, also a slow one, gets every request of many writers once and in order, and
// the user that it created before it.
func TestWatchWithManyWriters(t *testing.T) {
	const writers, each, watchers = 50, 4, 20
	srv, err := labhealthtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var watching sync.WaitGroup
	for w := range watchers {
		activities := srv.Watch(t.Context())
		watching.Go(func() {
			users, last := map[uuid.UUID]bool{}, 0
			for a := range activities {
				switch {
				case a.Request != nil:
					if a.Request.Number != last+1 {
						t.Errorf("watcher %d: request %d after %d", w, a.Request.Number, last)
					}
					if last = a.Request.Number; last == writers*each {
						if len(users) != last {
							t.Errorf("watcher %d: %d users", w, len(users))
						}
						return
					}
				case a.Delivery == nil:
					users[a.UserID] = true
				}
				if w == 0 {
					time.Sleep(100 * time.Microsecond)
				}
			}
			t.Errorf("watcher %d ended after request %d", w, last)
		})
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}
	defer client.CloseIdleConnections()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for n := range each {
				r, _ := http.NewRequest("POST", srv.URL+"/v2/user", strings.NewReader(fmt.Sprintf(`{"client_user_id":"w-%d-%d"}`, w, n)))
				r.Header.Set("X-Service-Api-Key", srv.APIKey)
				r.Header.Set("Content-Type", "application/json")
				response, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				if response.StatusCode != 200 {
					t.Errorf("status %d", response.StatusCode)
				}
			}
		})
	}
	writing.Wait()
	watching.Wait()
}
