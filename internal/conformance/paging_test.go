package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// nth returns an ID that contains n.
func nth(n int) uuid.UUID {
	id := uuid.MustParse("00000000-0000-4000-8000-000000000000")
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

// numbers ranges over a list and returns the numbers of its IDs, and the text of the error that
// ended it.
func numbers[T any](seq iter.Seq2[*T, error], id func(*T) uuid.UUID) (got []int, text string) {
	for v, err := range seq {
		if err != nil {
			return got, err.Error()
		}
		got = append(got, int(binary.BigEndian.Uint32(append([]byte{}, id(v).NodeID()[2:]...))))
	}
	return got, ""
}

func orderNumber(o *labhealth.Order) uuid.UUID { return o.ID }
func userNumber(u *labhealth.User) uuid.UUID   { return u.UserID }

// upTo returns from, from+1, …, to.
func upTo(from, to int) []int {
	var list []int
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

// elements returns JSON objects whose IDs have the numbers from, …, to.
func elements(name string, from, to int) string {
	var list []string
	for n := from; n <= to; n++ {
		list = append(list, fmt.Sprintf(`{%q:%q}`, name, nth(n)))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// Services page in many ways. The list is complete, or ends with an error before a third request.
func TestUserPages(t *testing.T) {
	users := func(from, to int, rest string) reply {
		return reply{status: 200, body: `{"users":` + elements("user_id", from, to) + rest + `}`}
	}
	const broken = "labhealth: GET /v2/user/: 200 OK, but the response could not be read: applied ("
	for _, test := range []struct {
		name    string
		params  labhealth.ListUsersParams
		replies []reply
		want    []int
		err     string
		urls    string // the queries, in order
	}{
		{"three pages", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), users(3, 4, `,"total":5,"offset":2,"limit":2`), users(5, 5, `,"total":5,"offset":4,"limit":2`),
		}, upTo(1, 5), "", "?limit=2 ?limit=2&offset=2 ?limit=2&offset=4"},
		{"none", labhealth.ListUsersParams{}, []reply{users(1, 0, `,"total":0,"offset":0,"limit":100`)}, nil, "", ""},
		{"exactly full", labhealth.ListUsersParams{Limit: 2}, []reply{users(1, 2, `,"total":2,"offset":0,"limit":2`)}, upTo(1, 2), "", "?limit=2"},
		{"from an offset", labhealth.ListUsersParams{Offset: 3}, []reply{users(4, 5, `,"total":5,"offset":3,"limit":100`)}, upTo(4, 5), "", "?offset=3"},
		{"offset beyond the end", labhealth.ListUsersParams{Offset: 9}, []reply{users(1, 0, `,"total":5,"offset":9,"limit":100`)}, nil, "", "?offset=9"},
		// The offset and limit of the response count, not those of the request.
		{"limit capped by the service", labhealth.ListUsersParams{Limit: 500}, []reply{
			users(1, 2, `,"total":3,"offset":0,"limit":2`), users(3, 3, `,"total":3,"offset":2,"limit":2`),
		}, upTo(1, 3), "", "?limit=500 ?limit=500&offset=2"},
		{"total shrinks", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), users(4, 4, `,"total":3,"offset":2,"limit":2`),
			users(2, 3, `,"total":3,"offset":0,"limit":2`), users(4, 4, `,"total":3,"offset":2,"limit":2`),
		}, upTo(1, 4), "", "?limit=2 ?limit=2&offset=2 ?limit=2 ?limit=2&offset=2"},
		{"total shrinks below the offset", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), users(1, 0, `,"total":1,"offset":2,"limit":2`),
			users(2, 2, `,"total":1,"offset":0,"limit":2`),
		}, upTo(1, 2), "", "?limit=2 ?limit=2&offset=2 ?limit=2"},
		{"total grows", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":3,"offset":0,"limit":2`), users(3, 4, `,"total":5,"offset":2,"limit":2`), users(5, 5, `,"total":5,"offset":4,"limit":2`),
		}, upTo(1, 5), "", "?limit=2 ?limit=2&offset=2 ?limit=2&offset=4"},
		// Without a total, only an empty page ends the list.
		{"no total", labhealth.ListUsersParams{}, []reply{
			users(1, 2, `,"offset":0`), users(3, 3, `,"offset":2`), users(1, 0, `,"offset":3`),
		}, upTo(1, 3), "", " ?offset=2 ?offset=3"},
		{"total of another type", labhealth.ListUsersParams{}, []reply{
			users(1, 2, `,"offset":0,"total":"2"`), users(1, 0, `,"offset":2,"total":"2"`),
		}, upTo(1, 2), "", " ?offset=2"},
		{"bare list", labhealth.ListUsersParams{}, []reply{{status: 200, body: elements("user_id", 1, 3)}}, upTo(1, 3), "", ""},

		{"offset ignored", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), users(1, 2, `,"total":5,"offset":0,"limit":2`),
		}, upTo(1, 2), broken + "its offset is not the requested one)", "?limit=2 ?limit=2&offset=2"},
		{"offset ignored at once", labhealth.ListUsersParams{Offset: 4}, []reply{users(1, 2, `,"total":5,"offset":0,"limit":2`)},
			nil, broken + "its offset is not the requested one)", "?offset=4"},
		{"offset echoed, page repeated", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), users(1, 2, `,"total":5,"offset":2,"limit":2`),
		}, upTo(1, 2), broken + "it repeats an earlier page)", "?limit=2 ?limit=2&offset=2"},
		{"page repeated, no total", labhealth.ListUsersParams{}, []reply{users(1, 2, `,"offset":0`), users(1, 2, `,"offset":2`)},
			upTo(1, 2), broken + "it repeats an earlier page)", " ?offset=2"},
		{"no offset", labhealth.ListUsersParams{}, []reply{users(1, 2, `,"total":5`), users(3, 4, `,"total":5`)},
			upTo(1, 2), broken + "its offset is not the requested one)", " ?offset=2"},
		{"an error with 200", labhealth.ListUsersParams{}, []reply{{status: 200, body: `{"state":"error","error_type":"INVALID"}`}}, nil, "labhealth: GET /v2/user/: 200 OK, but the response could not be read (it has no list)", ""},
		{"empty below total", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), users(1, 0, `,"total":5,"offset":2,"limit":2`),
		}, upTo(1, 2), broken + "it is empty although more is to come)", "?limit=2 ?limit=2&offset=2"},
		{"empty at once", labhealth.ListUsersParams{}, []reply{users(1, 0, `,"total":5,"offset":0,"limit":2`)}, nil, broken + "it is empty although more is to come)", ""},
		{"rejection in the middle", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), {status: 403, body: `{}`},
		}, upTo(1, 2), "labhealth: GET /v2/user/: 403 Forbidden: rejected (the team or the key has no access to this)", "?limit=2 ?limit=2&offset=2"},
		{"no response in the middle", labhealth.ListUsersParams{Limit: 2}, []reply{
			users(1, 2, `,"total":5,"offset":0,"limit":2`), {err: errors.New("lost")},
		}, upTo(1, 2), "labhealth: GET /v2/user/: the http.RoundTripper failed (see TransportError.Cause)", "?limit=2 ?limit=2&offset=2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := scripted(t, test.replies)
			got, problem := numbers(client.Users.All(t.Context(), test.params), userNumber)
			equal(t, test.want, got)
			equal(t, test.err, problem)
			checkPages(t, s, "https://api.example.com/v2/user/", test.urls, len(test.replies))
		})
	}
}

func checkPages(t *testing.T, s *script, base, want string, n int) {
	t.Helper()
	var urls []string
	for _, r := range s.sent {
		urls = append(urls, strings.TrimPrefix(r.URL, base))
	}
	equal(t, want, strings.Join(urls, " "))
	equal(t, n, len(urls))
}

func TestOrderPages(t *testing.T) {
	orders := func(from, to int, rest string) reply {
		return reply{status: 200, body: `{"orders":` + elements("id", from, to) + rest + `}`}
	}
	bare := func(from, to int) reply { return reply{status: 200, body: elements("id", from, to)} }
	const broken = "labhealth: GET /orders: 200 OK, but the response could not be read: applied ("
	for _, test := range []struct {
		name    string
		params  labhealth.ListOrdersParams
		replies []reply
		want    []int
		err     string
		urls    string
	}{
		{"three pages", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"total":5,"page":1,"size":2`), orders(3, 4, `,"total":5,"page":2,"size":2`), orders(5, 5, `,"total":5,"page":3,"size":2`),
		}, upTo(1, 5), "", "?page=1&size=2 ?page=2&size=2 ?page=3&size=2"},
		{"none", labhealth.ListOrdersParams{}, []reply{orders(1, 0, `,"total":0,"page":1,"size":50`)}, nil, "", "?page=1"},
		{"exactly full", labhealth.ListOrdersParams{Size: 2}, []reply{orders(1, 2, `,"total":2,"page":1,"size":2`)}, upTo(1, 2), "", "?page=1&size=2"},
		{"from a page", labhealth.ListOrdersParams{Page: 2, Size: 2}, []reply{
			orders(3, 4, `,"total":5,"page":2,"size":2`), orders(5, 5, `,"total":5,"page":3,"size":2`),
		}, upTo(3, 5), "", "?page=2&size=2 ?page=3&size=2"},
		{"page beyond the end", labhealth.ListOrdersParams{Page: 9, Size: 2}, []reply{orders(1, 0, `,"total":5,"page":9,"size":2`)}, nil, "", "?page=9&size=2"},
		{"size capped by the service", labhealth.ListOrdersParams{Size: 100}, []reply{
			orders(1, 2, `,"total":3,"page":1,"size":2`), orders(3, 3, `,"total":3,"page":2,"size":2`),
		}, upTo(1, 3), "", "?page=1&size=100 ?page=2&size=100"},
		{"size capped in silence", labhealth.ListOrdersParams{Size: 100}, []reply{
			orders(1, 2, `,"total":5`), orders(3, 4, `,"total":5`), orders(5, 5, `,"total":5`),
		}, upTo(1, 5), "", "?page=1&size=100 ?page=2&size=100 ?page=3&size=100"},
		{"size capped in silence, no total", labhealth.ListOrdersParams{Size: 100}, []reply{
			orders(1, 2, ``), orders(3, 4, ``), orders(5, 5, ``),
		}, upTo(1, 5), "", "?page=1&size=100 ?page=2&size=100 ?page=3&size=100"},
		{"another default size", labhealth.ListOrdersParams{}, []reply{orders(1, 2, `,"total":3`), orders(3, 3, `,"total":3`)},
			upTo(1, 3), "", "?page=1 ?page=2"},
		{"no total", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"page":1,"size":2`), orders(3, 3, `,"page":2,"size":2`),
		}, upTo(1, 3), "", "?page=1&size=2 ?page=2&size=2"},
		{"no total, exactly full", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"page":1,"size":2`), orders(1, 0, `,"page":2,"size":2`),
		}, upTo(1, 2), "", "?page=1&size=2 ?page=2&size=2"},
		{"nothing but orders", labhealth.ListOrdersParams{}, []reply{orders(1, 2, ``), orders(3, 3, ``)}, upTo(1, 3), "", "?page=1 ?page=2"},
		// A service without pages returns everything for every page.
		{"nothing but orders, the same for every page", labhealth.ListOrdersParams{}, []reply{orders(1, 2, ``), orders(1, 2, ``)}, upTo(1, 2), "", "?page=1 ?page=2"},
		{"nothing but orders, more than a page", labhealth.ListOrdersParams{Size: 2}, []reply{orders(1, 3, ``), orders(1, 3, ``)},
			upTo(1, 3), "", "?page=1&size=2 ?page=2&size=2"},
		{"bare list", labhealth.ListOrdersParams{}, []reply{bare(1, 3), bare(1, 3)}, upTo(1, 3), "", "?page=1 ?page=2"},
		{"bare list, then an empty one", labhealth.ListOrdersParams{}, []reply{bare(1, 3), bare(1, 0)}, upTo(1, 3), "", "?page=1 ?page=2"},
		{"bare empty list", labhealth.ListOrdersParams{}, []reply{bare(1, 0)}, nil, "", "?page=1"},
		{"bare lists, paged", labhealth.ListOrdersParams{Size: 2}, []reply{bare(1, 2), bare(3, 4), bare(5, 5)},
			upTo(1, 5), "", "?page=1&size=2 ?page=2&size=2 ?page=3&size=2"},
		{"nothing but orders, one page", labhealth.ListOrdersParams{}, []reply{orders(1, 2, ``), orders(1, 0, ``)}, upTo(1, 2), "", "?page=1 ?page=2"},
		{"total shrinks", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"total":5,"page":1,"size":2`), orders(4, 4, `,"total":3,"page":2,"size":2`),
			orders(2, 3, `,"total":3,"page":1,"size":2`), orders(4, 4, `,"total":3,"page":2,"size":2`),
		}, upTo(1, 4), "", "?page=1&size=2 ?page=2&size=2 ?page=1&size=2 ?page=2&size=2"},
		{"total shrinks below the page", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"total":5,"page":1,"size":2`), orders(1, 0, `,"total":1,"page":2,"size":2`),
			orders(1, 1, `,"total":1,"page":1,"size":2`),
		}, upTo(1, 2), "", "?page=1&size=2 ?page=2&size=2 ?page=1&size=2"},
		// A short page does not end the list.
		{"short page in the middle", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 1, `,"total":5,"page":1,"size":2`), orders(3, 4, `,"total":5,"page":2,"size":2`), orders(5, 5, `,"total":5,"page":3,"size":2`),
			orders(1, 0, `,"total":5,"page":4,"size":2`),
		}, []int{1, 3, 4, 5}, "", "?page=1&size=2 ?page=2&size=2 ?page=3&size=2 ?page=4&size=2"},
		{"pages shorter than the size", labhealth.ListOrdersParams{}, []reply{
			orders(1, 5, `,"total":12`), orders(6, 8, `,"total":12`), orders(9, 10, `,"total":12`), orders(11, 12, `,"total":12`),
		}, upTo(1, 12), "", "?page=1 ?page=2 ?page=3 ?page=4"},
		{"a page after full ones would have reached the total", labhealth.ListOrdersParams{}, []reply{
			orders(1, 5, `,"total":12`), orders(6, 8, `,"total":12`), orders(9, 10, `,"total":12`), orders(11, 11, `,"total":12`),
			orders(12, 12, `,"total":12`),
		}, upTo(1, 12), "", "?page=1 ?page=2 ?page=3 ?page=4 ?page=5"},
		{"pages shorter than the first, then an empty one", labhealth.ListOrdersParams{}, []reply{
			orders(1, 2, `,"total":5`), orders(3, 3, `,"total":5`), orders(4, 4, `,"total":5`), orders(1, 0, `,"total":5`),
		}, upTo(1, 4), "", "?page=1 ?page=2 ?page=3 ?page=4"},
		{"pages shorter than the reported size", labhealth.ListOrdersParams{}, []reply{
			orders(1, 2, `,"total":4,"size":4`), orders(3, 4, `,"total":4,"size":4`),
		}, upTo(1, 4), "", "?page=1 ?page=2"},
		{"total on the first page only", labhealth.ListOrdersParams{}, []reply{orders(1, 4, `,"total":7`), orders(5, 6, ``), orders(7, 7, ``)},
			upTo(1, 7), "", "?page=1 ?page=2 ?page=3"},
		{"total of zero", labhealth.ListOrdersParams{}, []reply{orders(1, 2, `,"total":0,"size":2`), orders(3, 3, `,"total":0,"size":2`)},
			upTo(1, 3), "", "?page=1 ?page=2"},
		{"negative total", labhealth.ListOrdersParams{}, []reply{orders(1, 2, `,"total":-1,"size":2`), orders(3, 3, `,"total":-1,"size":2`)},
			upTo(1, 3), "", "?page=1 ?page=2"},

		{"another page echoed", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"total":5,"page":1,"size":2`), orders(1, 2, `,"total":5,"page":1,"size":2`),
		}, upTo(1, 2), broken + "it is not the requested page)", "?page=1&size=2 ?page=2&size=2"},
		{"page repeated", labhealth.ListOrdersParams{Size: 2}, []reply{orders(1, 2, `,"total":5`), orders(1, 2, `,"total":5`)},
			upTo(1, 2), broken + "it repeats an earlier page)", "?page=1&size=2 ?page=2&size=2"},
		// A full page may be one of many of a service that ignores the page number.
		{"full page repeated, nothing but orders", labhealth.ListOrdersParams{Size: 2}, []reply{orders(1, 2, ``), orders(1, 2, ``)},
			upTo(1, 2), broken + "it repeats an earlier page)", "?page=1&size=2 ?page=2&size=2"},
		{"later page repeated, nothing but orders", labhealth.ListOrdersParams{}, []reply{orders(1, 2, ``), orders(3, 4, ``), orders(3, 4, ``)},
			upTo(1, 4), broken + "it repeats an earlier page)", "?page=1 ?page=2 ?page=3"},
		{"page repeated from a later page on", labhealth.ListOrdersParams{Page: 2}, []reply{orders(1, 2, ``), orders(1, 2, ``)},
			upTo(1, 2), broken + "it repeats an earlier page)", "?page=2 ?page=3"},
		{"two pages in turns, no total", labhealth.ListOrdersParams{}, []reply{
			orders(1, 2, ``), orders(3, 4, ``), orders(1, 2, ``),
		}, upTo(1, 4), broken + "it repeats an earlier page)", "?page=1 ?page=2 ?page=3"},
		{"empty below total", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"total":5,"page":1,"size":2`), orders(1, 0, `,"total":5,"page":2,"size":2`),
		}, upTo(1, 2), broken + "it is empty although more is to come)", "?page=1&size=2 ?page=2&size=2"},
		{"empty at once", labhealth.ListOrdersParams{}, []reply{orders(1, 0, `,"total":5,"page":1,"size":50`)},
			nil, broken + "it is empty although more is to come)", "?page=1"},
		{"rejection in the middle", labhealth.ListOrdersParams{Size: 2}, []reply{
			orders(1, 2, `,"total":5,"page":1,"size":2`), {status: 500, body: "Internal Server Error"},
		}, upTo(1, 2), "labhealth: GET /orders: 500 Internal Server Error (the service failed; try again later)", "?page=1&size=2 ?page=2&size=2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := scripted(t, test.replies)
			got, problem := numbers(client.Orders.All(t.Context(), test.params), orderNumber)
			equal(t, test.want, got)
			equal(t, test.err, problem)
			checkPages(t, s, "https://api.example.com/orders", test.urls, len(test.replies))
		})
	}
}

// A list with a cursor that does not advance ends with an error at the third request at the latest.
func TestCursorPages(t *testing.T) {
	page := func(cursor string, numbers ...int) string {
		var list []string
		for _, n := range numbers {
			list = append(list, fmt.Sprintf(`{"id":%q,"user_id":%[1]q}`, nth(n)))
		}
		return `{"data":[` + strings.Join(list, ",") + `],"next_cursor":` + cursor + `}`
	}
	for _, test := range []struct {
		name   string
		pages  []string
		start  string
		reason string
		want   []int
	}{
		{"two pages", []string{page(`"a"`, 1), page(`null`, 2)}, "", "", upTo(1, 2)},
		{"an empty page in the middle", []string{page(`"a"`), page(`null`, 1)}, "", "", upTo(1, 1)},
		{"an empty page at the end", []string{page(`"a"`, 1), page(`null`)}, "", "", upTo(1, 1)},
		{"an empty cursor", []string{page(`""`, 1, 2)}, "", "", upTo(1, 2)},
		{"a cursor of another type", []string{page(`7`, 1, 2)}, "", "its next cursor is malformed", upTo(1, 2)},
		{"a page repeated in another order", []string{page(`"a"`, 1, 2), page(`"b"`, 2, 1)}, "", "it repeats an earlier page", upTo(1, 2)},
		{"the same cursor twice", []string{page(`"a"`, 1, 2), page(`"a"`, 3, 4)}, "", "it leads back to a page before it", upTo(1, 2)},
		{"the cursor that was sent", []string{page(`"a"`, 1, 2)}, "a", "it leads back to a page before it", nil},
		{"empty pages with the same cursor", []string{page(`"a"`), page(`"a"`)}, "", "it leads back to a page before it", nil},
		{"two pages in turns, with new cursors", []string{page(`"a"`, 1, 2), page(`"b"`, 3, 4), page(`"c"`, 1, 2)}, "", "it repeats an earlier page", upTo(1, 4)},
		{"a page repeated after an empty one", []string{page(`"a"`, 1, 2), page(`"b"`), page(`"c"`, 1, 2)}, "", "it repeats an earlier page", upTo(1, 2)},
		{"a page repeated with another cursor", []string{page(`"a"`, 1, 2), page(`"b"`, 1, 2)}, "", "it repeats an earlier page", upTo(1, 2)},
		{"a page repeated at the end", []string{page(`"a"`, 1, 2), page(`null`, 1, 2)}, "", "it repeats an earlier page", upTo(1, 2)},
		{"no data at all", []string{`{"next_cursor":"a"}`}, "", "it has no list", nil},
	} {
		for _, list := range []struct {
			op  string
			all func(*labhealth.Client, string, ...labhealth.CallOption) ([]int, string)
		}{
			{"GET /v3/lab_test", func(c *labhealth.Client, cursor string, opts ...labhealth.CallOption) ([]int, string) {
				return numbers(c.LabTests.All(t.Context(), labhealth.ListLabTestsParams{NextCursor: cursor}), func(l *labhealth.LabTest) uuid.UUID { return l.ID })
			}},
			{"GET /v2/introspect/historical_pull", func(c *labhealth.Client, cursor string, opts ...labhealth.CallOption) ([]int, string) {
				return numbers(c.Users.AllHistoricalPulls(t.Context(), labhealth.ListHistoricalPullsParams{NextCursor: cursor}),
					func(u *labhealth.UserHistoricalPulls) uuid.UUID { return u.UserID })
			}},
		} {
			t.Run(test.name+"/"+list.op, func(t *testing.T) {
				var replies []reply
				for _, p := range test.pages {
					replies = append(replies, reply{status: 200, body: p})
				}
				want, outcome := "", "applied"
				if test.reason == "it has no list" {
					outcome = "outcome unknown"
				}
				if test.reason != "" {
					want = ofOperation(list.op, "labhealth: "+list.op+": 200 OK, but the response could not be read: "+outcome+" ("+test.reason+")")
				}
				client, s := scripted(t, replies)
				got, text := list.all(client, test.start)
				equal(t, test.want, got)
				equal(t, want, text)
				equal(t, len(test.pages), len(s.sent))
			})
		}
	}
}

// pages starts a server with n users and n orders, and counts the requests.
func pages(t *testing.T, n int) (client *labhealth.Client, requests func() int) {
	var mu sync.Mutex
	count := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		count++
		mu.Unlock()
		q := r.URL.Query()
		if r.URL.Path == "/orders" {
			page, _ := strconv.Atoi(q.Get("page"))
			fmt.Fprintf(w, `{"orders":%s,"total":%d,"page":%d,"size":10}`, elements("id", (page-1)*10+1, min(page*10, n)), n, page)
			return
		}
		offset, _ := strconv.Atoi(q.Get("offset"))
		fmt.Fprintf(w, `{"users":%s,"total":%d,"offset":%d,"limit":10}`, elements("user_id", offset+1, min(offset+10, n)), n, offset)
	}))
	t.Cleanup(srv.Close)
	client = must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL)))
	t.Cleanup(client.CloseIdleConnections)
	return client, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

func TestIteratorsRestart(t *testing.T) {
	client, requests := pages(t, 35)
	users := client.Users.All(t.Context(), labhealth.ListUsersParams{Offset: 5})
	orders := client.Orders.All(t.Context(), labhealth.ListOrdersParams{Page: 2})
	equal(t, 0, requests()) // nothing happens before somebody looks
	for range 3 {
		got, problem := numbers(users, userNumber)
		equal(t, upTo(6, 35), got)
		equal(t, "", problem)
		got, problem = numbers(orders, orderNumber)
		equal(t, upTo(11, 35), got)
		equal(t, "", problem)
	}
	equal(t, 3*(3+3), requests())
	// Nested and concurrent loops over one iterator are independent.
	n := 0
	for range users {
		if n++; n%10 == 0 {
			got, _ := numbers(users, userNumber)
			equal(t, upTo(6, 35), got)
			got, _ = numbers(orders, orderNumber)
			equal(t, upTo(11, 35), got)
		}
	}
	equal(t, 30, n)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			got, problem := numbers(users, userNumber)
			equal(t, upTo(6, 35), got)
			equal(t, "", problem)
			got, problem = numbers(orders, orderNumber)
			equal(t, upTo(11, 35), got)
			equal(t, "", problem)
		})
	}
	group.Wait()
}

// A loop that ends early requests no further page.
func TestIteratorsBreak(t *testing.T) {
	client, requests := pages(t, 35)
	for _, test := range []struct{ take, requests int }{{1, 1}, {10, 1}, {11, 2}, {20, 2}, {35, 4}} {
		before, n := requests(), 0
		for _, err := range client.Users.All(t.Context(), labhealth.ListUsersParams{}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == test.take {
				break
			}
		}
		for _, err := range client.Orders.All(t.Context(), labhealth.ListOrdersParams{}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2*test.take {
				break
			}
		}
		equal(t, 2*test.requests, requests()-before)
	}
}

// The call options apply to every page. The response is that of the latest page.
func TestIteratorOptions(t *testing.T) {
	client, s := scripted(t, []reply{
		{status: 200, body: `{"users":` + elements("user_id", 1, 1) + `,"total":2,"offset":0,"limit":1}`},
		{status: 200, body: `{"users":` + elements("user_id", 2, 2) + `,"total":2,"offset":1,"limit":1}`},
	})
	var resp labhealth.Response
	var seen []string
	for u, err := range client.Users.All(t.Context(), labhealth.ListUsersParams{}, labhealth.WithQuery("new", "1"), labhealth.WithHeader("X-A", "b"), labhealth.WithResponse(&resp)) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, u.UserID.String()[24:]+" "+string(resp.Body[len(resp.Body)-21:]))
	}
	equal(t, []string{`000000000001 "offset":0,"limit":1}`, `000000000002 "offset":1,"limit":1}`}, seen)
	equal(t, "https://api.example.com/v2/user/?new=1", s.sent[0].URL)
	equal(t, "https://api.example.com/v2/user/?new=1&offset=1", s.sent[1].URL)
	equal(t, []string{"b"}, s.sent[1].Header["X-A"])
}

// A kept element does not keep its page: 50 of 5,000 elements, one of each page, take a hundredth
// of the memory.
func TestElementsKeepNoPage(t *testing.T) {
	page := func(offset int) string {
		var b strings.Builder
		for n := range 100 {
			fmt.Fprintf(&b, `,{"user_id":%q,"padding":%q}`, nth(offset+n), strings.Repeat("x", 1000))
		}
		return fmt.Sprintf(`{"users":[%s],"total":5000,"offset":%d,"limit":100}`, b.String()[1:], offset)
	}
	var replies []reply
	for offset := 0; offset < 5000; offset += 100 {
		replies = append(replies, reply{status: 200, body: page(offset)})
	}
	client, s := scripted(t, replies)
	before, n := liveHeap(), 0
	var kept []*labhealth.User
	for u, err := range client.Users.All(t.Context(), labhealth.ListUsersParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%100 == 0 {
			kept = append(kept, u)
		}
	}
	grown := liveHeap() - before
	t.Logf("%d elements kept of %d: the heap grew by %d KiB", len(kept), n, grown>>10)
	if grown > 2<<20 { // the pages are 5 MiB
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(s)
}

// Iterators go through many users and orders, and the live heap does not grow with them. The
// service is in the same process; what it holds is allocated before the measurement.
func TestLargeLists(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	n := 20_000
	switch {
	case raceDetector():
		n = 5_000 // one goroutine at a time has no races, and the detector takes 20 times as long
	case long:
		n = 100_000
	}
	srv := labhealthtest.NewServer(t)
	client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	srv.AddUsers(n)
	walk[labhealth.User](t, "users", n, client.Users.All(t.Context(), labhealth.ListUsersParams{Limit: 500}), userNumber)
	srv.AddOrders(n)
	walk[labhealth.Order](t, "orders", n, client.Orders.All(t.Context(), labhealth.ListOrdersParams{Size: 100}), orderNumber)
}

func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func walk[T any](t *testing.T, name string, want int, seq iter.Seq2[*T, error], id func(*T) uuid.UUID) {
	t.Helper()
	seen := make(map[uuid.UUID]bool, want)
	before, most, n := liveHeap(), int64(0), 0
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		seen[id(v)] = true
		if n++; n%(want/4) == 0 {
			most = max(most, liveHeap()-before)
		}
	}
	t.Logf("%d %s: the live heap grew by at most %d KiB", n, name, most>>10)
	if n != want || len(seen) != want {
		t.Errorf("%d %s, %d different ones, want %d", n, name, len(seen), want)
	}
	if most > 2<<20+64*int64(want) { // the set of the ids that were seen grows
		t.Errorf("the live heap grew by %d KiB while %s went by", most>>10, name)
	}
}

// Cursors that lead round in a circle end the list with an error, wherever the circle starts and
// however long it is.
func TestCursorCycles(t *testing.T) {
	prefixes, lengths := []int{0, 1, 5}, []int{1, 2, 3, 5, 8, 13, 21, 40}
	if long {
		prefixes, lengths = upTo(0, 9), upTo(1, 80)
	}
	for _, prefix := range prefixes {
		for _, length := range lengths {
			requests := 0
			client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				requests++
				next, _ := strconv.Atoi(r.URL.Query().Get("next_cursor"))
				if next++; next == prefix+length {
					next = prefix
				}
				return responseTo(r, 200, fmt.Sprintf(`{"data":[{"id":%q}],"next_cursor":"%d"}`, uuid.New(), next)), nil
			}))
			var last error
			for _, err := range client.LabTests.All(t.Context(), labhealth.ListLabTestsParams{}) {
				if last = err; requests > 4*(prefix+length)+4 {
					break
				}
			}
			var invalid *labhealth.DecodeError
			if !errors.As(last, &invalid) || invalid.Reason != "it leads back to a page before it" {
				t.Fatalf("%d pages, then a circle of %d: %v after %d requests", prefix, length, last, requests)
			}
		}
	}
}

// Elements without a readable ID are distinguished by their JSON.
func TestPagesWithoutIDs(t *testing.T) {
	client, _ := scripted(t, []reply{
		{status: 200, body: `{"orders":[{"id":"a"},{"id":"b"}],"total":4,"size":2}`},
		{status: 200, body: `{"orders":[{"id":"c"},{"id":"d"}],"total":4,"size":2}`},
	})
	got, problem := numbers(client.Orders.All(t.Context(), labhealth.ListOrdersParams{Size: 2}), orderNumber)
	equal(t, []int{0, 0, 0, 0}, got)
	equal(t, "", problem)
}

// A list whose elements have no readable ID ends too.
func TestElementsWithoutIDs(t *testing.T) {
	for _, body := range []string{`{"orders":[{},{}]}`, `{"orders":[null,null],"total":1000000}`, `{"orders":[{"id":"bad"}]}`} {
		requests := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests++
			fmt.Fprint(w, body)
		}))
		client, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL))
		if err != nil {
			t.Fatal(err)
		}
		for range client.Orders.All(t.Context(), labhealth.ListOrdersParams{Size: 2}) {
			if requests > 10 {
				t.Errorf("%s: still not ended after %d requests", body, requests)
				break
			}
		}
		srv.Close()
	}
}

// A list that becomes shorter while it is read moves elements to earlier pages: they are read
// there.
func TestShrinkingLists(t *testing.T) {
	for _, limit := range []int{1, 3, 7, 10, 20, 100} {
		srv := labhealthtest.NewServer(t)
		client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL)))
		ids := srv.AddUsers(20)
		var deleted []uuid.UUID
		for user, err := range client.Users.All(t.Context(), labhealth.ListUsersParams{Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			deleted = append(deleted, user.UserID)
			if _, err := client.Users.Delete(t.Context(), user.UserID); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(ids, deleted) {
			t.Errorf("limit %d: %d of %d users were deleted", limit, len(deleted), len(ids))
		}
		client.CloseIdleConnections()
	}
}

// shrinkingService serves a list of users and of orders, and removes elements before a request.
type shrinkingService struct {
	list     []int
	requests int
	before   map[int][]int // the number of a request, and what is removed before it
	total    func(int) int // what it reports, nil for the truth
}

func (s *shrinkingService) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	gone := s.before[s.requests]
	s.list = slices.DeleteFunc(s.list, func(n int) bool { return slices.Contains(gone, n) })
	name, field, size := "users", "user_id", 3
	q := r.URL.Query()
	offset, _ := strconv.Atoi(q.Get("offset"))
	if strings.HasSuffix(r.URL.Path, "/orders") {
		number, _ := strconv.Atoi(q.Get("page"))
		name, field, offset = "orders", "id", (max(number, 1)-1)*size
	}
	part := s.list[min(offset, len(s.list)):min(offset+size, len(s.list))]
	var elements []string
	for _, n := range part {
		elements = append(elements, fmt.Sprintf(`{%q:%q}`, field, nth(n)))
	}
	total := len(s.list)
	if s.total != nil {
		total = s.total(s.requests)
	}
	return responseTo(r, 200, fmt.Sprintf(`{%q:[%s],"total":%d,"offset":%d,"size":%d}`, name, strings.Join(elements, ","), total, offset, size)), nil
}

func TestElementsRemovedByOthers(t *testing.T) {
	for _, test := range []struct {
		name   string
		before map[int][]int
		total  func(int) int
		want   []int
		err    string
	}{
		{"nothing", nil, nil, upTo(1, 10), ""},
		{"one before the cursor", map[int][]int{2: {1}}, nil, upTo(1, 10), ""},
		{"one after it", map[int][]int{2: {9}}, nil, []int{1, 2, 3, 4, 5, 6, 7, 8, 10}, ""},
		{"the first page", map[int][]int{2: {1, 2, 3}}, nil, upTo(1, 10), ""},
		{"a page after it", map[int][]int{2: {5, 6, 7}}, nil, []int{1, 2, 3, 4, 8, 9, 10}, ""},
		{"all but one", map[int][]int{2: {1, 2, 3, 4, 5, 6, 7, 8, 9}}, nil, []int{1, 2, 3, 10}, ""},
		{"all", map[int][]int{2: upTo(1, 10)}, nil, []int{1, 2, 3}, ""},
		{"the rest", map[int][]int{3: upTo(7, 10)}, nil, upTo(1, 6), ""},
		{"before each page", map[int][]int{2: {1}, 4: {2}, 6: {3}, 8: {4}}, nil, upTo(1, 10), ""},
		{"while it reads again", map[int][]int{2: {1}, 3: {2}, 4: {3}}, nil, upTo(1, 10), ""},
		{"a total without an end", nil, func(n int) int { return 1_000_000 - n*3 }, nil, "its total becomes smaller with every request"},
	} {
		for _, kind := range []string{"users", "orders"} {
			s := &shrinkingService{list: upTo(1, 10), before: test.before, total: test.total}
			client := faultClient(t, testURL, s)
			var got []int
			var problem string
			if kind == "users" {
				got, problem = numbers(client.Users.All(t.Context(), labhealth.ListUsersParams{Limit: 3}), userNumber)
			} else {
				got, problem = numbers(client.Orders.All(t.Context(), labhealth.ListOrdersParams{Size: 3}), orderNumber)
			}
			if test.err != "" {
				if !strings.Contains(problem, test.err) || s.requests > 1000 {
					t.Errorf("%s, %s: %d requests, %s", test.name, kind, s.requests, problem)
				}
				continue
			}
			slices.Sort(got)
			if problem != "" || !slices.Equal(test.want, got) || s.requests > 30 {
				t.Errorf("%s, %s: %v after %d requests, %s", test.name, kind, got, s.requests, problem)
			}
		}
	}
}
