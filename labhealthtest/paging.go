// Pages and cursors.

package labhealthtest

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
)

// cursorPage returns the page of list that starts after the element that the parameter next_cursor
// identifies, and the cursor of the next page. Cursors identify elements, not positions, so that
// added elements do not shift pages.
func cursorPage[E any](r *request, list []E, limit int, id func(E) string) (page []E, next *string, err error) {
	from := 0
	if cursor, ok := r.cursor(); ok {
		last, err := decodeCursor(cursor)
		from = 1 + slices.IndexFunc(list, func(e E) bool { return err == nil && id(e) == last })
		if from == 0 {
			return nil, nil, errInvalidCursor
		}
	}
	to := from + min(limit, len(list)-from)
	if to < len(list) {
		next = encodeCursor(id(list[to-1]))
	}
	return append([]E{}, list[from:to]...), next, nil
}

// page returns the body with a page of a list of the management API, which is called name.
func page[E any](r *request, name string, list []E, id func(E) string) (any, error) {
	elements, next, err := cursorPage(r, list, cmp.Or(r.queryInt("limit"), 50), id)
	if err != nil {
		return nil, err
	}
	return map[string]any{name: elements, "next_cursor": next}, nil
}

// pageBounds returns where a page is in a list of n elements. The number of the first page is 1.
func pageBounds(page, size, n int) (from, to int) {
	from = n
	if page-1 <= n/size { // Avoids an overflow for a very large page.
		from = min((page-1)*size, n)
	}
	return from, min(from+size, n)
}

var errInvalidCursor = reject(http.StatusBadRequest, "Invalid cursor")

func encodeCursor(id string) *string {
	return new(base64.RawURLEncoding.EncodeToString([]byte(id)))
}

func decodeCursor(cursor string) (id string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	return string(b), err
}
