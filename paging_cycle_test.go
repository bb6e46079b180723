package labhealth

import (
	"errors"
	"testing"

	"github.com/google/uuid"
)

// Cursors that lead round in a circle end the list with an error, wherever the circle begins and however long it is.
func TestPagedCycle(t *testing.T) {
	for prefix := range 6 {
		for length := 1; length <= 40; length++ {
			fetched := 0
			fetch := func(at int) (p page[User, int], err error) {
				fetched++
				p.items = []User{{UserID: uuid.New()}}
				if p.next = at + 1; p.next == prefix+length {
					p.next = prefix
				}
				return p, nil
			}
			var last error
			for _, err := range paginate("GET /pages", 0, func(u *User) uuid.UUID { return u.UserID }, fetch) {
				last = err
				if fetched > 4*(prefix+length)+4 {
					break
				}
			}
			var bad *DecodeError
			if !errors.As(last, &bad) || bad.Reason != "it leads back to a page before it" {
				t.Fatalf("%d pages, then a circle of %d: %v after %d requests", prefix, length, last, fetched)
			}
		}
	}
}
