// Query parameters.

package labhealth

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// queryParams is implemented by the parameters of an operation.
type queryParams interface{ query() queryValues }

// queryValues encodes parameters and omits those that are zero.
type queryValues struct{ url.Values }

func newQuery() queryValues { return queryValues{url.Values{}} }

func (q queryValues) setString(name, v string) {
	if v != "" {
		q.Set(name, v)
	}
}

func (q queryValues) setInt(name string, v int) {
	if v != 0 {
		q.Set(name, strconv.Itoa(v))
	}
}

func (q queryValues) setTrue(name string, v bool) {
	if v {
		q.Set(name, "true")
	}
}

// setPage adds the page number and the number of elements per page.
func (q queryValues) setPage(page, size int) {
	q.setInt("page", page)
	q.setInt("size", size)
}

func (q queryValues) setBool(name string, v *bool) {
	if v != nil {
		q.Set(name, strconv.FormatBool(*v))
	}
}

func (q queryValues) setID(name string, v uuid.UUID) {
	if v != uuid.Nil {
		q.Set(name, v.String())
	}
}

func (q queryValues) setTime(name string, v time.Time) {
	if !v.IsZero() {
		q.Set(name, v.Format(time.RFC3339Nano))
	}
}

func (q queryValues) setDate(name string, v Date) {
	if !v.IsZero() {
		q.Set(name, v.String())
	}
}

func (q queryValues) addIDs(name string, ids []uuid.UUID) {
	for _, id := range ids {
		q.Add(name, id.String())
	}
}

func (q queryValues) addInts(name string, list []int64) {
	for _, v := range list {
		q.Add(name, strconv.FormatInt(v, 10))
	}
}

// checkQuery rejects text that is not valid UTF-8, as in bodies and paths: the service would read
// another text.
func checkQuery(query url.Values) error {
	if len(query) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !utf8.ValidString(name) || slices.ContainsFunc(query[name], func(v string) bool { return !utf8.ValidString(v) }) {
			return invalid("must be valid UTF-8", "query", strings.ToValidUTF8(name, "?"))
		}
	}
	return nil
}

// addStrings adds one parameter for each element of list.
func addStrings[T ~string](q queryValues, name string, list []T) {
	for _, v := range list {
		q.Add(name, string(v))
	}
}
