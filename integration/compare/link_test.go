package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/plain"
)

// link responds to each request for a page of users after 20 ms.
type link struct{ total int }

func (l link) RoundTrip(r *http.Request) (*http.Response, error) {
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	body := plain.AppendUserPage(nil, offset, 500, l.total)
	select {
	case <-time.After(20 * time.Millisecond):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// BenchmarkLink lists 100,000 users in pages of 500 over a link of 20 ms, with a loop that takes no
// time, and one that takes 20 ms for a page.
func BenchmarkLink(b *testing.B) {
	const total, size = 100_000, 500
	client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: link{total}}))
	if err != nil {
		b.Fatal(err)
	}
	all := func(opts ...labhealth.CallOption) func(visit func(uuid.UUID)) error {
		return func(visit func(uuid.UUID)) error {
			for user, err := range client.Users.All(b.Context(), labhealth.ListUsersParams{Limit: size}, opts...) {
				if err != nil {
					return err
				}
				visit(user.UserID)
			}
			return nil
		}
	}
	byHand := func(visit func(uuid.UUID)) error {
		for offset := 0; offset < total; offset += size {
			resp, err := (&http.Client{Transport: link{total}}).Get(fmt.Sprintf("https://api.example.com/v2/user/?limit=%d&offset=%d", size, offset))
			if err != nil {
				return err
			}
			var page struct {
				Users []struct {
					UserID uuid.UUID `json:"user_id"`
				} `json:"users"`
			}
			if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
				return err
			}
			for _, user := range page.Users {
				visit(user.UserID)
			}
		}
		return nil
	}
	for _, pause := range []time.Duration{0, 20 * time.Millisecond} {
		for _, list := range []struct {
			name string
			all  func(visit func(uuid.UUID)) error
		}{{"byhand", byHand}, {"ours", all()}, {"prefetch", all(labhealth.WithPrefetch())}} {
			b.Run(fmt.Sprintf("%v/%s", pause, list.name), func(b *testing.B) {
				for b.Loop() {
					n := 0
					err := list.all(func(uuid.UUID) {
						if n++; n%size == 0 {
							time.Sleep(pause)
						}
					})
					if err != nil || n != total {
						b.Fatal(n, err)
					}
				}
			})
		}
	}
}
