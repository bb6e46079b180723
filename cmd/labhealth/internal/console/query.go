package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// query is what the address of a list selects: some of its parameters, without empty ones.
type query struct {
	path   string
	values url.Values
}

// queryOf returns the named parameters of a request, or of a form.
func queryOf(r *http.Request, path string, names ...string) query {
	_ = r.ParseForm()
	return newQuery(r.Form, path, names...)
}

func newQuery(from url.Values, path string, names ...string) query {
	q := query{path, url.Values{}}
	for _, name := range names {
		if value := strings.TrimSpace(from.Get(name)); value != "" {
			q.values.Set(name, value)
		}
	}
	return q
}

// Get returns a parameter, empty if it is missing.
func (q query) Get(name string) string { return q.values.Get(name) }

// with returns the query with other values of parameters, of which empty ones are removed.
func (q query) with(pairs ...string) query {
	values := url.Values{}
	for name, value := range q.values {
		values[name] = value
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			values.Del(pairs[i])
		} else {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return query{q.path, values}
}

// Address returns the address of the list.
func (q query) Address() string { return q.of("") }

// Beside returns the address of one thing beside the list.
func (q query) Beside(item any) string { return q.of("/" + fmt.Sprint(item)) }

func (q query) of(rest string) string {
	if len(q.values) == 0 {
		return q.path + rest
	}
	return q.path + rest + "?" + q.values.Encode()
}

// matchesWords reports whether a text has all words of a search.
func matchesWords(text, search string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// chipView is a link that selects a part of a list.
type chipView struct {
	Name, Path, Icon string
	Count            int
	Current          bool
}
